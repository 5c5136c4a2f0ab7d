// Asks with the AI SDK of Vercel, through both providers that people use for
// servers like this one: @ai-sdk/openai-compatible and @ai-sdk/openai.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, streamText } from 'ai';
import { MODEL, Report, run } from './common.mjs';

const compatible = (url) =>
  createOpenAICompatible({ name: 'baton', baseURL: url, includeUsage: true, supportsStructuredOutputs: true })(MODEL);
const openai = (url) => createOpenAI({ baseURL: url, apiKey: 'none' }).chat(MODEL);

const ask = (model, question, more) => ({
  model,
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

await run({
  text: async (url, question) => textOf(await streamed(ask(compatible(url), question))),
  whole: async (url, question) => textOf(await generateText(ask(compatible(url), question))),
  'text.openai': async (url, question) => textOf(await streamed(ask(openai(url), question))),
  logprobs: async (url, question) => {
    const result = await streamed(ask(openai(url), question, { providerOptions: { openai: { logprobs: 2 } } }));
    const { logprobs } = (await result.providerMetadata).openai;
    return {
      text: await result.text,
      tokens: logprobs.map((t) => t.token),
      logprobs: logprobs.map((t) => t.logprob),
      tops: logprobs.map((t) => t.top_logprobs.map((top) => [top.token, top.logprob])),
    };
  },
  schema: async (url, question) => {
    const result = await generateText(ask(compatible(url), question, { output: Output.object({ schema: Report }) }));
    return { parsed: result.output, finish: result.finishReason };
  },
  schema_streamed: async (url, question) => {
    const result = await streamed(ask(compatible(url), question, { output: Output.object({ schema: Report }) }));
    return { parsed: await result.output, finish: await result.finishReason };
  },
});
