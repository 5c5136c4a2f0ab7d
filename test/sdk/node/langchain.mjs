// Asks with LangChain (@langchain/openai).
import { ChatOpenAI } from '@langchain/openai';
import { MODEL, Report, run } from './common.mjs';

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
    useResponsesApi: false,
    ...more,
  });

async function joined(stream) {
  let message;
  for await (const chunk of await stream) message = message === undefined ? chunk : message.concat(chunk);
  return message;
}

const textOf = (message) => ({
  text: message.text,
  role: { ai: 'assistant' }[message.getType()],
  finish: message.response_metadata.finish_reason,
  tokens: message.usage_metadata.output_tokens,
});

const structured = (url) => model(url).withStructuredOutput(Report, { method: 'jsonSchema', strict: true });

await run({
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
});
