// Asks with the AI SDK of Vercel, through both providers that people use for
// servers like this one: @ai-sdk/openai-compatible and @ai-sdk/openai.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, isStepCount, streamText, tool } from 'ai';
import { MODEL, Report, TOOLS, callsOf, resultOf, run, variants } from './common.mjs';

const compatible = (url) =>
  createOpenAICompatible({ name: 'baton', baseURL: url, includeUsage: true, supportsStructuredOutputs: true })(MODEL);
const openai = (url) => createOpenAI({ baseURL: url, apiKey: 'none' });
const chat = (url) => openai(url).chat(MODEL);
const responses = (url) => openai(url).responses(MODEL);

// Of a model with an unknown name it must be said that it reasons, and only summaries
// are shown.
const reasons = { forceReasoning: true, reasoningSummary: 'auto' };

const ask = (model, question, more) => ({
  model,
  providerOptions: { openai: model.provider === 'openai.responses' ? reasons : {} },
  prompt: question,
  temperature: 0,
  maxOutputTokens: 400,
  maxRetries: 0,
  ...more,
});

// streamed waits for the end of a stream. Its errors are no exceptions otherwise.
async function streamed(params) {
  let failure;
  const result = streamText({ ...params, onError: ({ error }) => void (failure = error) });
  await result.consumeStream();
  if (failure) throw failure;
  return result;
}

const textOf = async (result) => ({
  text: await result.text,
  finish: await result.finishReason,
  tokens: (await result.usage).outputTokens,
});

const tools = Object.fromEntries(
  Object.entries(TOOLS).map(([name, inputSchema]) => [
    name,
    tool({ inputSchema, strict: true, execute: (args) => resultOf(name, args) }),
  ]),
);
const withTools = (model, question, more) => ask(model, question, { tools, stopWhen: isStepCount(1), ...more });
const required = { toolChoice: 'required' };
const named = { toolChoice: { type: 'tool', toolName: 'get_time' } };

async function called(result) {
  const steps = await result.steps;
  const calls = steps.flatMap((step) => step.toolCalls);
  for (const c of calls) if (c.invalid) throw c.error;
  return callsOf(
    calls.map((c) => ({ id: c.toolCallId, name: c.toolName, arguments: c.input })),
    { text: await result.text, reasoning: await result.reasoningText, finish: await result.finishReason, requests: steps.length },
  );
}

// casesOn are the cases of most providers.
const casesOn = (model) => ({
  text: async (url, question) => textOf(await streamed(ask(model(url), question))),
  whole: async (url, question) => textOf(await generateText(ask(model(url), question))),
  schema: async (url, question) => {
    const result = await generateText(ask(model(url), question, { output: Output.object({ schema: Report }) }));
    return { parsed: result.output, finish: result.finishReason };
  },
  schema_streamed: async (url, question) => {
    const result = await streamed(ask(model(url), question, { output: Output.object({ schema: Report }) }));
    return { parsed: await result.output, finish: await result.finishReason };
  },
  reasoning: async (url, question) => {
    const result = await streamed(ask(model(url), question));
    const { outputTokens, outputTokenDetails } = await result.usage;
    const counted = outputTokenDetails.reasoningTokens;
    return {
      ...(await textOf(result)),
      reasoning: await result.reasoningText,
      counted: 0 < counted && counted < outputTokens,
    };
  },
  tools: async (url, question) => called(await streamed(withTools(model(url), question))),
  required: async (url, question) => called(await generateText(withTools(model(url), question, required))),
  required_streamed: async (url, question) => called(await streamed(withTools(model(url), question, required))),
  named: async (url, question) => called(await generateText(withTools(model(url), question, named))),
  loop: async (url, question) =>
    called(
      await streamed(
        withTools(model(url), question, { stopWhen: isStepCount(5), providerOptions: { openai: { store: false } } }),
      ),
    ),
  schema_or_tools: async (url, question) => {
    const output = Output.object({ schema: Report });
    const result = await generateText(withTools(model(url), question, { output, stopWhen: isStepCount(9) }));
    return { ...(await called(result)), text: undefined, parsed: result.output };
  },
});

const logprobsOn = (model) => async (url, question) => {
  const result = await streamed(ask(model(url), question, { providerOptions: { openai: { logprobs: 2 } } }));
  const logprobs = (await result.providerMetadata).openai.logprobs.flat();
  return {
    text: await result.text,
    tokens: logprobs.map((t) => t.token),
    logprobs: logprobs.map((t) => t.logprob),
    tops: logprobs.map((t) => t.top_logprobs.map((top) => [top.token, top.logprob])),
  };
};

// In its default the second step of a loop refers to items of the first one.
const loopStored = async (url, question) =>
  called(await streamed(withTools(responses(url), question, { stopWhen: isStepCount(5) })));

await run({
  ...casesOn(compatible),
  ...variants('openai', { ...casesOn(chat), logprobs: logprobsOn(chat) }),
  ...variants('responses', { ...casesOn(responses), logprobs: logprobsOn(responses), loop_stored: loopStored }),
});
