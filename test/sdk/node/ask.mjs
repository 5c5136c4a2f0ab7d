// Asks the frontend at $BASE_URL with openai-node, streamed and not, and prints
// what the SDK made of it as one JSON object.
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.BASE_URL + '/v1', apiKey: 'none', maxRetries: 0, timeout: 60_000 });
const ask = {
  model: process.env.MODEL,
  messages: [{ role: 'user', content: process.env.QUESTION }],
  temperature: 0,
  max_completion_tokens: 400,
};

// The helper that rebuilds a whole message from the chunks is the strictest reader of this SDK.
const stream = client.chat.completions.stream({ ...ask, stream: true, stream_options: { include_usage: true } });
const streamed = await stream.finalChatCompletion();
const usage = await stream.totalUsage();

const whole = await client.chat.completions.create(ask);
console.log(
  JSON.stringify({
    streamed: streamed.choices[0].message.content,
    streamed_finish: streamed.choices[0].finish_reason,
    streamed_tokens: usage.completion_tokens,
    role: streamed.choices[0].message.role,
    whole: whole.choices[0].message.content,
    whole_finish: whole.choices[0].finish_reason,
    whole_tokens: whole.usage.completion_tokens,
  }),
);
