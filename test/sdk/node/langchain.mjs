// Asks with LangChain (@langchain/openai).
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { MODEL, Report, TOOLS, callsOf, resultOf, run, variants } from './common.mjs';

let responses = false; // which API the cases use

const model = (url, more) =>
  new ChatOpenAI({
    model: MODEL,
    apiKey: 'none',
    configuration: { baseURL: url },
    temperature: 0,
    maxTokens: 400,
    maxRetries: 0,
    timeout: 60_000,
    streamUsage: true,
    useResponsesApi: responses,
    ...more,
  });

async function joined(stream) {
  let message;
  for await (const chunk of await stream) message = message === undefined ? chunk : message.concat(chunk);
  return message;
}

const endOf = ({ response_metadata: end }) =>
  responses ? { status: end.status } : { finish: end.finish_reason };

const textOf = (message) => ({
  text: message.text,
  role: { ai: 'assistant' }[message.getType()],
  ...endOf(message),
  tokens: message.usage_metadata.output_tokens,
});

const structured = (url) => model(url).withStructuredOutput(Report, { method: 'jsonSchema', strict: true });

const tools = Object.fromEntries(
  Object.entries(TOOLS).map(([name, schema]) => [
    name,
    tool((args) => resultOf(name, args), { name, description: name, schema }),
  ]),
);
const bound = (url, more) => model(url).bindTools(Object.values(tools), { strict: true, ...more });
const required = { tool_choice: 'any' };
const named = { tool_choice: 'get_time', parallel_tool_calls: false };

function called(message) {
  if (message.invalid_tool_calls?.length) throw new Error(JSON.stringify(message.invalid_tool_calls));
  return callsOf(
    message.tool_calls.map((c) => ({ id: c.id, name: c.name, arguments: c.args })),
    { text: message.text, ...endOf(message) },
  );
}

const cases = {
  text: async (url, question) => textOf(await joined(model(url).stream(question))),
  whole: async (url, question) => textOf(await model(url).invoke(question)),
  choices: async (url, question) => {
    const result = await model(url, { n: 2, temperature: 1, modelKwargs: { seed: 7 } }).generate([[['user', question]]]);
    return {
      texts: result.generations[0].map((g) => g.text),
      finishes: result.generations[0].map((g) => g.generationInfo.finish_reason),
      tokens: result.llmOutput.tokenUsage.completionTokens,
    };
  },
  logprobs: async (url, question) => {
    const message = await joined(model(url, { logprobs: true, topLogprobs: 2 }).stream(question));
    const { content } = message.response_metadata.logprobs;
    return {
      text: message.text,
      tokens: content.map((t) => t.token),
      bytes: content.map((t) => t.bytes),
      logprobs: content.map((t) => t.logprob),
      tops: content.map((t) => t.top_logprobs.map((top) => [top.token, top.logprob])),
    };
  },
  schema: async (url, question) => ({ parsed: await structured(url).invoke(question) }),
  schema_streamed: async (url, question) => {
    let parsed;
    for await (const partial of await structured(url).stream(question)) parsed = partial;
    return { parsed };
  },
  reasoning: async (url, question) => {
    // On responses it shows nothing but a summary, for which it asks only models that it knows.
    const more = responses ? { modelKwargs: { reasoning: { summary: 'auto' } } } : {};
    const message = await joined(model(url, more).stream(question));
    const counted = message.usage_metadata.output_token_details.reasoning;
    return {
      ...textOf(message),
      reasoning: responses
        ? message.contentBlocks
            .filter((block) => block.type === 'reasoning')
            .map((block) => block.reasoning)
            .join('')
        : message.additional_kwargs.reasoning_content,
      counted: 0 < counted && counted < message.usage_metadata.output_tokens,
    };
  },
  tools: async (url, question) => called(await joined(bound(url).stream(question))),
  required: async (url, question) => called(await bound(url, required).invoke(question)),
  required_streamed: async (url, question) => called(await joined(bound(url, required).stream(question))),
  named: async (url, question) => called(await bound(url, named).invoke(question)),
  loop: async (url, question) => {
    const messages = [new HumanMessage(question)];
    const first = await joined(bound(url).stream(messages));
    messages.push(first);
    for (const call of first.tool_calls) messages.push(await tools[call.name].invoke({ ...call, type: 'tool_call' }));
    return { ...called(first), ...textOf(await joined(bound(url).stream(messages))), requests: 2 };
  },
};

const onResponses = (ask) => async (url, question) => {
  responses = true;
  try {
    return await ask(url, question);
  } finally {
    responses = false;
  }
};

await run({
  ...cases,
  ...variants('responses', Object.fromEntries(Object.entries(cases).map(([name, ask]) => [name, onResponses(ask)]))),
});
