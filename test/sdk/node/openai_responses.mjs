// The cases of openai-node on the Responses API.
import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { MODEL, Report, TOOLS, callsOf, resultOf } from './common.mjs';

export const client = (url) => new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0, timeout: 60_000 });

const ask = (question, more) => ({
  model: MODEL,
  input: question,
  temperature: 0,
  max_output_tokens: 400,
  ...more,
});

async function streamed(url, params) {
  let deltas = '';
  const stream = client(url).responses.stream(params);
  stream.on('response.output_text.delta', (event) => void (deltas += event.delta));
  return { response: await stream.finalResponse(), deltas };
}

const textOf = (response) => ({
  text: response.output_text,
  role: response.output.findLast((item) => item.type === 'message').role,
  status: response.status,
  tokens: response.usage.output_tokens,
});

const withTools = (question, more) =>
  ask(question, {
    tools: Object.entries(TOOLS).map(([name, parameters]) => zodResponsesFunction({ name, parameters })),
    ...more,
  });
const required = { tool_choice: 'required' };
const named = { tool_choice: { type: 'function', name: 'get_time' }, parallel_tool_calls: false };

const called = (response) =>
  callsOf(
    response.output
      .filter((item) => item.type === 'function_call')
      .map((item) => ({ id: item.call_id, name: item.name, arguments: item.parsed_arguments })),
    { text: response.output_text, status: response.status },
  );

const report = { text: { format: zodTextFormat(Report, 'report') } };
const parsedOf = (response) => ({ parsed: response.output_parsed, status: response.status });

export const responses = {
  text: async (url, question) => {
    const { response, deltas } = await streamed(url, ask(question));
    return { ...textOf(response), deltas };
  },
  whole: async (url, question) => textOf(await client(url).responses.create(ask(question))),
  logprobs: async (url, question) => {
    const params = ask(question, { include: ['message.output_text.logprobs'], top_logprobs: 2 });
    const { response } = await streamed(url, params);
    const { logprobs } = response.output.at(-1).content[0];
    return {
      text: response.output_text,
      tokens: logprobs.map((t) => t.token),
      bytes: logprobs.map((t) => t.bytes),
      logprobs: logprobs.map((t) => t.logprob),
      tops: logprobs.map((t) => t.top_logprobs.map((top) => [top.token, top.logprob])),
    };
  },
  schema: async (url, question) => parsedOf(await client(url).responses.parse(ask(question, report))),
  schema_streamed: async (url, question) => parsedOf((await streamed(url, ask(question, report))).response),
  reasoning: async (url, question) => {
    const { response, deltas } = await streamed(url, ask(question));
    const thoughts = response.output.filter((item) => item.type === 'reasoning');
    const counted = response.usage.output_tokens_details.reasoning_tokens;
    return {
      ...textOf(response),
      deltas,
      reasoning: thoughts.flatMap((thought) => thought.content.map((part) => part.text)).join(''),
      counted: 0 < counted && counted < response.usage.output_tokens,
    };
  },
  tools: async (url, question) => called((await streamed(url, withTools(question))).response),
  required: async (url, question) => called(await client(url).responses.parse(withTools(question, required))),
  required_streamed: async (url, question) => called((await streamed(url, withTools(question, required))).response),
  named: async (url, question) => called(await client(url).responses.parse(withTools(question, named))),
  loop: async (url, question) => {
    const { response: first } = await streamed(url, withTools(question));
    const input = [{ role: 'user', content: question }, ...first.output.map(sent), ...resultsOf(first)];
    const { response: last } = await streamed(url, withTools(question, { input }));
    return { ...called(first), ...textOf(last), requests: 2 };
  },
  // The second request refers to the first response, and does not repeat it.
  loop_stored: async (url, question) => {
    const { response: first } = await streamed(url, withTools(question));
    const { response: last } = await streamed(
      url,
      withTools(question, { input: resultsOf(first), previous_response_id: first.id }),
    );
    return { ...called(first), ...textOf(last), requests: 2 };
  },
};

// sent is an item of an answer without what the helper has added to it.
function sent({ parsed_arguments, ...item }) {
  return item;
}

const resultsOf = (response) =>
  response.output
    .filter((item) => item.type === 'function_call')
    .map((item) => ({
      type: 'function_call_output',
      call_id: item.call_id,
      output: resultOf(item.name, item.parsed_arguments),
    }));
