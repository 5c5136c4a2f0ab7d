// Asks with OpenAI's agents SDK (@openai/agents), on the chat completions API.
import { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';
import { MODEL, Report, run } from './common.mjs';

setTracingDisabled(true);

const agent = (url, more) =>
  new Agent({
    name: 'test',
    model: new OpenAIChatCompletionsModel(
      new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 60_000 }),
      MODEL,
    ),
    modelSettings: { temperature: 0, maxTokens: 400 },
    ...more,
  });

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

await run({
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
});
