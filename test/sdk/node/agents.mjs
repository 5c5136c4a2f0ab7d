// Asks with OpenAI's agents SDK (@openai/agents), on the Responses API, its
// default, and on the chat completions API. There it shows reasoning only where the server's field for it is called reasoning.
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { MODEL, Report, TOOLS, callsOf, resultOf, run, variants } from './common.mjs';

setTracingDisabled(true);

let Model = OpenAIChatCompletionsModel; // which API the cases use

const agent = (url, more) =>
  new Agent({
    name: 'test',
    model: new Model(new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 60_000 }), MODEL),
    ...more,
    modelSettings: { temperature: 0, maxTokens: 400, ...more?.modelSettings },
  });

const tools = Object.entries(TOOLS).map(([name, parameters]) =>
  tool({ name, description: name, parameters, strict: true, execute: (args) => resultOf(name, args) }),
);
const chosen = (modelSettings) => ({ tools, modelSettings });

const runner = new Runner();

async function streamed(url, question, more) {
  const result = await runner.run(agent(url, more), question, { stream: true });
  let deltas = '';
  for await (const event of result) {
    if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') deltas += event.data.delta;
  }
  await result.completed;
  return { result, deltas };
}

const textOf = (result) => ({
  text: result.finalOutput,
  role: result.newItems.at(-1).rawItem.role,
  tokens: result.runContext.usage.outputTokens,
});

const called = (result, more) =>
  callsOf(
    result.newItems
      .filter((item) => item.type === 'tool_call_item')
      .map(({ rawItem: c }) => ({ id: c.callId, name: c.name, arguments: JSON.parse(c.arguments) })),
    { text: result.finalOutput, requests: result.runContext.usage.requests, ...more },
  );

const cases = {
  text: async (url, question) => {
    const { result, deltas } = await streamed(url, question);
    return { ...textOf(result), deltas };
  },
  whole: async (url, question) => textOf(await runner.run(agent(url), question)),
  schema: async (url, question) => ({
    parsed: (await runner.run(agent(url, { outputType: Report }), question)).finalOutput,
  }),
  schema_streamed: async (url, question) => ({
    parsed: (await streamed(url, question, { outputType: Report })).result.finalOutput,
  }),
  required: async (url, question) =>
    called(await runner.run(agent(url, chosen({ toolChoice: 'required' })), question)),
  named: async (url, question) =>
    called(await runner.run(agent(url, chosen({ toolChoice: 'get_time', parallelToolCalls: false })), question)),
  loop: async (url, question) => called((await streamed(url, question, { tools })).result),
  schema_or_tools: async (url, question) => {
    const result = await runner.run(agent(url, { tools, outputType: Report }), question);
    return called(result, { text: undefined, parsed: result.finalOutput });
  },
};

const reasoning = async (url, question) => {
  const modelSettings = { reasoning: { summary: 'auto' } }; // it shows nothing else
  const { result, deltas } = await streamed(url, question, { modelSettings });
  const thoughts = result.newItems.filter((item) => item.type === 'reasoning_item').map((item) => item.rawItem);
  return {
    ...textOf(result),
    deltas,
    reasoning: thoughts.flatMap((thought) => thought.content.map((part) => part.text)).join(''),
  };
};

const onResponses = (ask) => async (url, question) => {
  Model = OpenAIResponsesModel;
  try {
    return await ask(url, question);
  } finally {
    Model = OpenAIChatCompletionsModel;
  }
};

await run({
  ...cases,
  ...variants(
    'responses',
    Object.fromEntries(Object.entries({ ...cases, reasoning }).map(([name, ask]) => [name, onResponses(ask)])),
  ),
});
