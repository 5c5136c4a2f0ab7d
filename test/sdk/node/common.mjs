// What the programs of this folder share: they read what to ask from $JOB and
// print what their SDK made of it.
import { z } from 'zod';

const job = JSON.parse(process.env.JOB);
export const MODEL = job.model;

// What the structured cases ask for.
export const Report = z.strictObject({
  title: z.string(),
  weather: z.enum(['calm', 'storm']),
  depths: z.array(z.number().int()),
});

// The tools, by name: the schemas of their arguments.
export const TOOLS = {
  get_weather: z.strictObject({ city: z.string(), days: z.number().int() }),
  get_time: z.strictObject({ zones: z.array(z.string()) }),
};

// resultOf is what the tools answer: all that the model asked, so that its next
// answer follows from it. The arguments must be as the schema has them.
export const resultOf = (name, args) => JSON.stringify([name, TOOLS[name].parse(args)]);

// callsOf is the answer of a case with calls, given as { id, name, arguments }.
export const callsOf = (calls, more) => ({
  calls: calls.map((c) => ({ name: c.name, arguments: c.arguments })),
  ids: new Set(calls.map((c) => c.id).filter(Boolean)).size,
  ...more,
});

// ask is the request of every case, for SDKs that take the API's own parameters.
export const ask = (question, more) => ({
  model: MODEL,
  messages: [{ role: 'user', content: question }],
  temperature: 0,
  max_completion_tokens: 400,
  ...more,
});

// run prints a list with an object for each target of the job: what each of its
// cases returned, or its error. A case takes the URL of the API and the question.
export async function run(cases) {
  const out = [];
  for (const target of job.targets) {
    const answers = {};
    for (const [name, { ask, question }] of Object.entries(target.cases)) {
      try {
        answers[name] = await cases[ask](target.url + '/v1', question);
      } catch (e) {
        answers[name] = { error: [e.stack, e.cause?.stack, e.responseBody].filter(Boolean).join('\n') };
      }
    }
    out.push(answers);
  }
  process.stdout.write(JSON.stringify(out) + '\n');
}

// variants are cases under the names by which the test knows them to be other ways to
// ask the same.
export const variants = (suffix, cases) =>
  Object.fromEntries(Object.entries(cases).map(([name, ask]) => [`${name}.${suffix}`, ask]));
