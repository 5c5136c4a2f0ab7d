// Records what the reference library makes of small tokenizers that are made up
// here, one for each thing that can be asked of a pipeline, and how its regex
// engine splits some texts: what the tests need no download for.
//
//   node record-small.mjs ADDON TESTDATA
//
// writes TESTDATA/small.json and TESTDATA/../pattern/testdata/splits.json.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const [addon, testdata] = process.argv.slice(2);
const { Tokenizer } = createRequire(import.meta.url)(path.resolve(addon));

// The byte alphabet of GPT-2.
const letters = [];
for (let b = 0, next = 256; b < 256; b++) {
  const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  letters.push(String.fromCodePoint(printable ? b : next++));
}

function vocabulary(first, merges) {
  const vocab = {};
  for (const token of [...first, ...merges.map(([a, b]) => a + b)]) if (!(token in vocab)) vocab[token] = Object.keys(vocab).length;
  return vocab;
}

const added = (id, content, flags = {}) => ({
  id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...flags,
});
const empty = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null };
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };

const byteMerges = ['h e', 'l l', 'he ll', 'hell o', 'Ġ w', 'o r', 'Ġw or', 'l d', 'Ġwor ld', 'Ġ hello', 't h', 'th e', 'Ġ the', 'i n', 'in g', 'e r', 'Ã ©', 'ä ½', 'ä½ ł', 'Ġ Ġ', 'ĠĠ ĠĠ', '1 2', 'a a', 'aa aa', 'aa a', 'b c', 'a b', 'ab c'].map((m) => m.split(' '));
const byteVocab = vocabulary(letters, byteMerges);
const n = Object.keys(byteVocab).length;
const bytes = {
  ...empty,
  added_tokens: [added(n, '<|end|>'), added(n + 1, '<|start|>'), added(n + 2, '<tool>', { special: false })],
  pre_tokenizer: byteLevel, decoder: byteLevel,
  model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab: byteVocab, merges: byteMerges },
};

const hex = (b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`;
const pieceMerges = ['▁ h', '▁h e', 'l l', 'll o', '▁he llo', '▁ w', 'o r', '▁w or', 'l d', '▁wor ld', '▁ ▁', '▁▁ ▁▁', 'e r', '> ▁', 'é é'].map((m) => m.split(' '));
const pieceVocab = vocabulary(['<unk>', '<s>', '</s>', ...Array.from({ length: 256 }, (_, b) => hex(b)), '▁', ...'abcdefghijklmnopqrstuvwxyz>.,é'], pieceMerges);
const pieces = {
  ...empty,
  added_tokens: [added(0, '<unk>'), added(1, '<s>'), added(2, '</s>')],
  normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }] },
  post_processor: { type: 'TemplateProcessing', single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }], pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }], special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } } },
  decoder: { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }] },
  model: { type: 'BPE', dropout: null, unk_token: '<unk>', continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: true, byte_fallback: true, ignore_merges: false, vocab: pieceVocab, merges: pieceMerges.map((m) => m.join(' ')) },
};
const bases = { bytes, pieces };

const split = (pattern, behavior = 'Isolated', invert = false) => ({ type: 'Split', pattern, behavior, invert });
const before = (...p) => ({ pre_tokenizer: { type: 'Sequence', pretokenizers: [...p, { ...byteLevel, use_regex: false }] } });
const decoders = (...d) => ({ decoder: { type: 'Sequence', decoders: d } });
const replace = { type: 'Replace', pattern: { String: '▁' }, content: ' ' };
const meta = (scheme, s) => ({ type: 'Metaspace', replacement: '▁', prepend_scheme: scheme, split: s });
const texts = ['', ' ', 'hello world', 'hello  world   the\n\nthing ', 'Hello the 123 12 abc bc aaaaaaa', '<|start|>hello<|end|> world <tool> the<|end|>', 'héllo é e\u0301 ', '你好 你', '😀😀🏽', 'a.b,c; d-e_f!? $5', '<s>hello</s> world<unk>', '> > x >', '\u00a0x\u3000y\u200b\u0085', '①½²३x9', 'Straße İSTANBUL ΣΑΣ', 'ﬁ ½ Å', '\u0301\u0327a\u0327\u0301', 'éé éé', '▁hello ▁▁ ▁', '<0x41><0x0A>', 'a\u0000b\u001f', "I'm they'll 'S", 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'];

const cases = [
  ['byte level', 'bytes', {}],
  ['byte level with a prefix', 'bytes', { pre_tokenizer: { ...byteLevel, add_prefix_space: true } }],
  ['byte level without split', 'bytes', { pre_tokenizer: { ...byteLevel, use_regex: false } }],
  ['ignore merges', 'bytes', {}, { ignore_merges: true }],
  ['bytes that are no token', 'bytes', {}, { vocab: Object.fromEntries(Object.entries(byteVocab).filter(([t]) => t !== 'ĉ' && t !== '½' && t !== 'đ')) }],
  ['an unknown token for bytes', 'bytes', {}, { unk_token: 'the', vocab: Object.fromEntries(Object.entries(byteVocab).filter(([t]) => t !== 'ð' && t !== 'Å' && t !== '½')), fuse_unk: true }],
  ['NFC', 'bytes', { normalizer: { type: 'NFC' } }], ['NFD', 'bytes', { normalizer: { type: 'NFD' } }],
  ['NFKC', 'bytes', { normalizer: { type: 'NFKC' } }], ['NFKD', 'bytes', { normalizer: { type: 'NFKD' } }],
  ['lower case', 'bytes', { normalizer: { type: 'Lowercase' } }],
  ['strip', 'bytes', { normalizer: { type: 'Strip', strip_left: true, strip_right: true } }],
  ['strip right', 'bytes', { normalizer: { type: 'Strip', strip_left: false, strip_right: true } }],
  ['prepend', 'bytes', { normalizer: { type: 'Prepend', prepend: 'the' } }],
  ['replace', 'bytes', { normalizer: { type: 'Replace', pattern: { Regex: '\\s+|l' }, content: '_' } }],
  ...['Isolated', 'Removed', 'Contiguous', 'MergedWithPrevious', 'MergedWithNext'].flatMap((b) => [
    [`split ${b}`, 'bytes', before(split({ Regex: '[\\sl]' }, b))],
    [`split ${b} inverted`, 'bytes', before(split({ Regex: '\\p{L}+' }, b, true))],
    [`split ${b} by text`, 'bytes', before(split({ String: 'll' }, b))],
    [`punctuation ${b}`, 'bytes', before({ type: 'Punctuation', behavior: b })],
  ]),
  ['split by nothing', 'bytes', before(split({ String: '' }))],
  ['split by empty matches', 'bytes', before(split({ Regex: 'x*' }))],
  ['split by empty matches, removed', 'bytes', before(split({ Regex: 'l*' }, 'Removed'))],
  ['digits', 'bytes', before({ type: 'Digits', individual_digits: false })],
  ['single digits', 'bytes', before({ type: 'Digits', individual_digits: true })],
  ['words', 'bytes', before({ type: 'Whitespace' })],
  ['white space', 'bytes', before({ type: 'WhitespaceSplit' })],
  ['delimiter', 'bytes', before({ type: 'CharDelimiterSplit', delimiter: 'é' })],
  ['steps behind the byte level', 'bytes', { pre_tokenizer: { type: 'Sequence', pretokenizers: [byteLevel, { type: 'Digits', individual_digits: true }, split({ Regex: 'Ġ|\\p{Lu}' })] } }],
  ['flags', 'bytes', { added_tokens: [added(n, '<|end|>', { lstrip: true, rstrip: true }), added(n + 1, '<|start|>', { rstrip: true }), added(n + 2, '<tool>', { lstrip: true, special: false }), added(n + 3, 'o', { single_word: true }), added(n + 4, 'é', { normalized: true, single_word: true }), added(n + 5, ' ', { special: false }), added(n + 6, 'Hello', { normalized: true })], normalizer: { type: 'Sequence', normalizers: [{ type: 'NFC' }, { type: 'Lowercase' }] } }],
  ['tokens that begin alike', 'bytes', { added_tokens: [added(n, 'he'), added(n + 1, 'hell'), added(n + 2, 'll'), added(n + 3, 'lo w', { special: false }), added(n + 4, 'hello worl!')] }],
  ['ids with a gap', 'bytes', { added_tokens: [added(n + 7, '<|end|>'), added(n + 3, '<|start|>')] }],
  ['an added token of the vocabulary', 'bytes', { added_tokens: [added(byteVocab.the, 'the', { special: true }), added(byteVocab['Ã©'], 'Ã©', { special: false })] }],
  ['normalized special tokens', 'pieces', { added_tokens: [added(0, '<unk>'), added(1, '<s>', { normalized: true }), added(2, '</s>'), added(n, 'll', { normalized: true }), added(n, 'o w', { normalized: true, special: false })] }],
  ['added twice', 'bytes', { added_tokens: [added(n, 'the', { special: false }), added(n, 'lo', { special: true }), added(n, 'lo', { special: false, lstrip: true }), added(n, 'wo', { special: true }), added(n, 'he', { special: true, normalized: true })] }],
  ['pieces', 'pieces', {}], ['pieces, no fallback', 'pieces', {}, { byte_fallback: false }],
  ['pieces, unknown ones apart', 'pieces', {}, { byte_fallback: false, fuse_unk: false }],
  ['pieces, no unknown token', 'pieces', {}, { byte_fallback: false, unk_token: null }],
  ['metaspace always', 'pieces', { normalizer: null, pre_tokenizer: meta('always', true), ...decoders(meta('always', true)) }],
  ['metaspace first', 'pieces', { normalizer: null, pre_tokenizer: meta('first', false), decoder: meta('first', false) }],
  ['metaspace never', 'pieces', { normalizer: null, pre_tokenizer: meta('never', true), ...decoders(meta('never', true), { type: 'ByteFallback' }) }],
  ['metaspace, whole pieces', 'pieces', { normalizer: null, pre_tokenizer: meta('first', true) }, { ignore_merges: true }],
  ['no decoder', 'pieces', { decoder: null }],
  ['fuse only', 'pieces', { decoder: { type: 'Fuse' } }],
  ['fallback only', 'pieces', { decoder: { type: 'ByteFallback' } }],
  ['replace only', 'pieces', { decoder: replace }],
  ['replace by expression', 'pieces', decoders({ type: 'Replace', pattern: { Regex: '▁+|l' }, content: '-' }, { type: 'Fuse' })],
  ['strip each token', 'pieces', decoders(replace, { type: 'Strip', content: ' ', start: 2, stop: 0 }, { type: 'Fuse' })],
  ['strip three', 'pieces', decoders(replace, { type: 'ByteFallback' }, { type: 'Fuse' }, { type: 'Strip', content: ' ', start: 3, stop: 0 })],
  ['byte level decoder over pieces', 'pieces', { decoder: byteLevel }],
  ['bytes, no decoder', 'bytes', { decoder: null }],
];

let seed = 1;
const random = (m) => { seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff; return (seed >> 8) % m; };
const out = [];
for (const [name, base, set, model] of cases) {
  const file = { ...bases[base], ...set, model: { ...bases[base].model, ...model } };
  if (model?.vocab) { // without the merges that need what is gone
    const ok = (t) => t in model.vocab;
    file.model.merges = byteMerges.filter(([a, b]) => ok(a) && ok(b) && ok(a + b));
    model.merges = file.model.merges;
  }
  const t = Tokenizer.fromString(JSON.stringify(file));
  const encoded = [], decoded = [];
  for (const text of texts) {
    const ids = async (addSpecialTokens) => (await t.encode(text, null, { addSpecialTokens })).getIds();
    encoded.push({ text, ids: await ids(false), special: await ids(true) });
  }
  const size = Math.max(...Object.values(t.getVocab(true))) + 1;
  const lists = encoded.map((e) => e.special);
  for (let i = 0; i < 12; i++) lists.push(Array.from({ length: 1 + random(9) }, () => random(3) ? random(size + 2) : base === 'pieces' ? 3 + random(256) : random(256)));
  for (const ids of lists) decoded.push({ ids, text: await t.decode(ids, false), skipped: await t.decode(ids, true) });
  out.push({ name, base, set, model, encoded, decoded });
}
const line = (list) => '[\n' + list.map((x) => JSON.stringify(x)).join(',\n') + '\n]';
fs.writeFileSync(path.join(testdata, 'small.json'), `{"bases": ${JSON.stringify(bases)},\n"cases": ${line(out)}}\n`);

const expressions = ['a', 'a*', 'a+?b', '(?:a|b)*c', 'a{2}', 'a{2,3}', 'a{2,}', 'a{,2}', 'a{2,3}+', 'a{1,2}?b', 'a{x}', 'a++a|b', 'a*+b', 'a?+', '(?>a|ab)c', '(?=ab)a', 'a(?!b)', '(?<=a)b', '(?<!a)b', '^a', 'a$', '\\Aa', 'b\\z', 'b\\Z', '\\bab', 'a\\B', '.', '[^\\S\\n]', '[a-c&&[^b]]', '[a-c&&b-d&&c-z]', '[^a-c&&b-d]', '[]a]', '[a\\]b-]', '[\\d\\-x]', '(?i:tra|ǆ|k|s)', '(?i:[a-c])x?', '(?i:a(?-i:b))', '\\p{Lu}\\p{Ll}*', '\\P{L}+', '\\p{^L}', '\\h+', '\\x41|\\x{62}|\\u0063', '(a|b)(c|d)?', '(?:aa|a)(?:ab|b)', '(?:a{1,2}){2}', '(?:ab?)+b', '(?:a+b?)+c', '\\w+', '\\W+', '\\d+', '\\s+(?!\\S)|\\s+', '\\r?\\n', '[一-龥ぁ-ヿ]+', 'x*', '(?=(\\d{3})+(?!\\d))', '\\d{1,3}(?=(?:\\d{3})*\\b)', '|a', 'a|', '(?:)', '[\\p{L}&&\\p{Latin}]+', '[\\n\\r\\t\\v\\f\\a\\e]', '[.,|(){}*+?^$]+', '\\.|\\$'];
const samples = ['', 'a', 'aaaab', 'abab abcc', 'AbC aBc abc', 'a\nb\r\nb\n', 'ab12345 6789x', 'Straße STRASSE ſK ǅǆ', '  \n  x \t', 'éé ÀÉ', '中文あいカ text', 'a1_b-c.d$e', ']a-b^', 'aabaabc aac', '１２３٤٥½', '\u0301a\u0301', 'a{x}b', '\u000b\u000c\u0007\u001b'];
const splits = [];
for (const Regex of expressions) {
  let p;
  try { p = Tokenizer.fromString(JSON.stringify({ ...bytes, pre_tokenizer: split({ Regex }, 'Isolated') })).getPreTokenizer(); } catch { splits.push({ expression: Regex, invalid: true }); continue; }
  splits.push({ expression: Regex, splits: samples.map((text) => [text, ...p.preTokenizeString(text).map(([s]) => s)]) });
}
fs.mkdirSync(path.join(testdata, '../pattern/testdata'), { recursive: true });
fs.writeFileSync(path.join(testdata, '../pattern/testdata/splits.json'), line(splits) + '\n');
