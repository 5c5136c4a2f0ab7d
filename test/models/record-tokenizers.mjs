// Records what the reference library makes of the corpus, for each tokenizer.
//
//   node record-tokenizers.mjs ADDON MODELS TESTDATA [NAME...]
//
// ADDON is the folder of the npm package "tokenizers", MODELS what fetch.sh
// filled, TESTDATA the folder tokenizer/testdata. Of each result only a hash is
// kept. reference/NAME.bin holds, as little-endian 32-bit numbers:
//
//   the vocabulary's size, added tokens included
//   four hashes for each of "texts": ids without and with special tokens, the
//     former decoded whole, the latter decoded without special tokens
//   one hash for each of "fuzz": of the four above in a row
//   two hashes for each of 300 random lists of ids: decoded whole, and without
//     special tokens
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { createRequire } from 'node:module';

const [addon, models, testdata, ...only] = process.argv.slice(2);
const { Tokenizer } = createRequire(import.meta.url)(path.resolve(addon));
const corpus = JSON.parse(zlib.gunzipSync(fs.readFileSync(path.join(testdata, 'corpus.json.gz'))));
const variants = JSON.parse(fs.readFileSync(path.join(testdata, 'variants.json')));

// 32-bit FNV-1a of a text's UTF-8 bytes.
function hash(text) {
  let h = 0x811c9dc5;
  for (const b of Buffer.from(text)) h = Math.imul(h ^ b, 0x01000193) >>> 0;
  return h;
}

function variant(spec) {
  const d = JSON.parse(fs.readFileSync(path.join(models, spec.base, 'tokenizer.json')));
  Object.assign(d, spec.set);
  Object.assign(d.model, spec.model ?? {});
  if (spec.flags) {
    d.added_tokens.forEach((t, i) => {
      t.lstrip = i % 4 === 1; t.rstrip = i % 4 === 2; t.normalized = i % 5 === 3; t.single_word = i % 7 === 4;
    });
  }
  return JSON.stringify(d);
}

async function record(name, json) {
  const t = Tokenizer.fromString(json);
  const out = [t.getVocabSize(true)];
  const results = async (text) => {
    const plain = (await t.encode(text, null, { addSpecialTokens: false })).getIds();
    const special = (await t.encode(text, null, { addSpecialTokens: true })).getIds();
    return [plain.join(','), special.join(','), await t.decode(plain, false), await t.decode(special, true)];
  };
  for (const text of corpus.texts) out.push(...(await results(text)).map(hash));
  for (const text of corpus.fuzz) out.push(hash((await results(text)).join('\0')));
  let seed = 12345;
  const random = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor(seed / 0x80000000 * n);
  };
  for (let i = 0; i < 300; i++) {
    const ids = Array.from({ length: 1 + random(40) }, () => random(4) === 0 ? random(600) : random(out[0]));
    out.push(hash(await t.decode(ids, false)), hash(await t.decode(ids, true)));
  }
  const bytes = Buffer.alloc(4 * out.length);
  out.forEach((n, i) => bytes.writeUInt32LE(n, 4 * i));
  fs.writeFileSync(path.join(testdata, 'reference', name + '.bin'), bytes);
  console.log(name, out[0]);
}

const wanted = (name) => only.length === 0 || only.includes(name);
for (const name of fs.readdirSync(models).sort()) {
  const file = path.join(models, name, 'tokenizer.json');
  if (wanted(name) && fs.existsSync(file)) await record(name, fs.readFileSync(file, 'utf8'));
}
for (const [name, spec] of Object.entries(variants)) {
  if (wanted(name)) await record(name, variant(spec));
}
