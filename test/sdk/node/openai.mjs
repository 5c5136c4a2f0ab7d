// Asks with openai-node. Its stream helper, which rebuilds a whole message from
// the chunks, is its strictest reader.
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { Report, TOOLS, ask, callsOf, resultOf, run, variants } from './common.mjs';
import { client, responses } from './openai_responses.mjs';

const completions = (url) => client(url).chat.completions;

const streamed = (url, params) =>
  completions(url).stream({ ...params, stream: true, stream_options: { include_usage: true } }).finalChatCompletion();

const textOf = ({ choices: [choice], usage }) => ({
  text: choice.message.content,
  role: choice.message.role,
  finish: choice.finish_reason,
  tokens: usage.completion_tokens,
});

const parsedOf = ({ choices: [choice] }) => ({ parsed: choice.message.parsed, finish: choice.finish_reason });

const called = ({ choices: [choice] }) =>
  callsOf(
    (choice.message.tool_calls ?? []).map((c) => ({
      id: c.id,
      name: c.function.name,
      arguments: c.function.parsed_arguments,
    })),
    { text: choice.message.content, finish: choice.finish_reason },
  );

// Strict tools: the helpers parse their arguments with the schemas.
const withTools = (question, more) =>
  ask(question, {
    tools: Object.entries(TOOLS).map(([name, parameters]) => zodFunction({ name, parameters })),
    ...more,
  });
const required = { tool_choice: 'required' };
const named = { tool_choice: { type: 'function', function: { name: 'get_time' } }, parallel_tool_calls: false };

const cases = {
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
  reasoning: async (url, question) => {
    let reasoning = '';
    const stream = completions(url).stream({
      ...ask(question),
      stream: true,
      stream_options: { include_usage: true },
    });
    stream.on('chunk', (chunk) => void (reasoning += chunk.choices[0]?.delta.reasoning_content ?? ''));
    const completion = await stream.finalChatCompletion();
    const counted = completion.usage.completion_tokens_details.reasoning_tokens;
    return {
      ...textOf(completion),
      reasoning,
      counted: 0 < counted && counted < completion.usage.completion_tokens,
    };
  },
  tools: async (url, question) => called(await streamed(url, withTools(question))),
  required: async (url, question) => called(await completions(url).parse(withTools(question, required))),
  required_streamed: async (url, question) => called(await streamed(url, withTools(question, required))),
  named: async (url, question) => called(await completions(url).parse(withTools(question, named))),
  // The helper that runs the tools and asks again until the model answers with text.
  loop: async (url, question) => {
    const calls = [];
    const runner = completions(url).runTools({
      ...withTools(question),
      stream: true,
      stream_options: { include_usage: true },
      tools: Object.entries(TOOLS).map(([name, parameters]) =>
        zodFunction({ name, parameters, function: (args) => resultOf(name, args) }),
      ),
    });
    runner.on('message', (message) => {
      for (const c of message.tool_calls ?? [])
        calls.push({ id: c.id, name: c.function.name, arguments: JSON.parse(c.function.arguments) });
    });
    const completion = await runner.finalChatCompletion();
    return callsOf(calls, { ...textOf(completion), requests: runner.allChatCompletions().length });
  },
};

await run({ ...cases, ...variants('responses', responses) });
