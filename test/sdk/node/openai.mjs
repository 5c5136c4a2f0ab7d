// Asks with openai-node. Its stream helper, which rebuilds a whole message from
// the chunks, is its strictest reader.
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { Report, ask, run } from './common.mjs';

const completions = (url) =>
  new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 60_000 }).chat.completions;

const streamed = (url, params) =>
  completions(url).stream({ ...params, stream: true, stream_options: { include_usage: true } }).finalChatCompletion();

const textOf = ({ choices: [choice], usage }) => ({
  text: choice.message.content,
  role: choice.message.role,
  finish: choice.finish_reason,
  tokens: usage.completion_tokens,
});

const parsedOf = ({ choices: [choice] }) => ({ parsed: choice.message.parsed, finish: choice.finish_reason });

await run({
  text: async (url, question) => textOf(await streamed(url, ask(question))),
  whole: async (url, question) => textOf(await completions(url).create(ask(question))),
  choices: async (url, question) => {
    const completion = await streamed(url, ask(question, { n: 2, temperature: 1, seed: 7 }));
    return {
      texts: completion.choices.map((c) => c.message.content),
      finishes: completion.choices.map((c) => c.finish_reason),
      tokens: completion.usage.completion_tokens,
    };
  },
  logprobs: async (url, question) => {
    const [choice] = (await streamed(url, ask(question, { logprobs: true, top_logprobs: 2 }))).choices;
    const { content } = choice.logprobs;
    return {
      text: choice.message.content,
      tokens: content.map((t) => t.token),
      bytes: content.map((t) => t.bytes),
      logprobs: content.map((t) => t.logprob),
      tops: content.map((t) => t.top_logprobs.map((top) => [top.token, top.logprob])),
    };
  },
  schema: async (url, question) =>
    parsedOf(await completions(url).parse(ask(question, { response_format: zodResponseFormat(Report, 'report') }))),
  schema_streamed: async (url, question) =>
    parsedOf(await streamed(url, ask(question, { response_format: zodResponseFormat(Report, 'report') }))),
});
