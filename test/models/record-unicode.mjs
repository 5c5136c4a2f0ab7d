// Records what the reference library "tokenizers" knows about Unicode: which
// code points each class of its regex engine holds, which ones its splitters
// call a digit, a blank or punctuation, which ones its normalizers know, and
// how it lowers the case of a letter.
//
//   node record-unicode.mjs FOLDER_OF_THE_ADDON > tokenizer/ucd/unicode.txt
//
// The reference is several libraries in one and each has its own Unicode
// version: 16 in the regex engine, 9 in the normalizers, that of the Rust
// compiler for digits and case. So nothing is derived here, all is probed.
// Output: one line a set, "name lo-hi lo-hi ..." in hexadecimal, and one line
// "lower code=code,code ..." a letter whose lower case needs more than one rule.
import { createRequire } from 'node:module';
const { Tokenizer } = createRequire(import.meta.url)(process.argv[2]);

const parts = (o) => Tokenizer.fromString(JSON.stringify({
  version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null,
  post_processor: null, decoder: null, model: { type: 'WordLevel', vocab: { u: 0 }, unk_token: 'u' }, ...o,
}));
const all = [];
for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) all.push(c);

function write(name, has) {
  const ranges = [];
  for (const c of all) {
    if (!has(c)) continue;
    const last = ranges.at(-1);
    if (last && (last[1] === c - 1 || (last[1] === 0xd7ff && c === 0xe000))) last[1] = c;
    else ranges.push([c, c]);
  }
  const hex = ranges.map(([a, b]) => a === b ? a.toString(16) : `${a.toString(16)}-${b.toString(16)}`);
  console.log([name, ...hex].join(' '));
}

// The code points that a pre-tokenizer which removes what it finds does not give back.
function removedBy(preTokenizer) {
  const p = parts({ pre_tokenizer: preTokenizer }).getPreTokenizer();
  const kept = new Set();
  for (let i = 0; i < all.length; i += 4096) {
    const text = String.fromCodePoint(...all.slice(i, i + 4096));
    for (const [piece] of p.preTokenizeString(text)) for (const ch of piece) kept.add(ch.codePointAt(0));
  }
  return (c) => !kept.has(c);
}
const matchedBy = (regex) => removedBy({ type: 'Split', pattern: { Regex: regex }, behavior: 'Removed', invert: false });

const categories = ['Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'Mn', 'Mc', 'Me', 'Nd', 'Nl', 'No', 'Pc', 'Pd', 'Ps', 'Pe', 'Pi', 'Pf', 'Po',
  'Sm', 'Sc', 'Sk', 'So', 'Zs', 'Zl', 'Zp', 'Cc', 'Cf', 'Co'];
const scripts = ['Arabic', 'Armenian', 'Bengali', 'Bopomofo', 'Cyrillic', 'Devanagari', 'Ethiopic', 'Georgian', 'Greek', 'Gujarati',
  'Gurmukhi', 'Han', 'Hangul', 'Hebrew', 'Hiragana', 'Kannada', 'Katakana', 'Khmer', 'Lao', 'Latin', 'Malayalam', 'Myanmar',
  'Sinhala', 'Tamil', 'Telugu', 'Thai', 'Tibetan'];
for (const n of [...categories, ...scripts]) write(n, matchedBy(`\\p{${n}}`));
write('regex.word', matchedBy('\\w'));
write('regex.space', matchedBy('\\s'));
write('regex.digit', matchedBy('\\d'));

// Each of these isolates or removes what it finds; the letter x is found by none of them.
const alone = (preTokenizer) => {
  const p = parts({ pre_tokenizer: preTokenizer }).getPreTokenizer();
  return (c) => c !== 0x78 && p.preTokenizeString('x' + String.fromCodePoint(c) + 'x').length === 3;
};
write('numeric', alone({ type: 'Digits', individual_digits: true }));
write('punctuation', alone({ type: 'Punctuation', behavior: 'Isolated' }));
write('whitespace', removedBy({ type: 'WhitespaceSplit' }));
const words = parts({ pre_tokenizer: { type: 'Whitespace' } }).getPreTokenizer();
write('word', (c) => words.preTokenizeString('x' + String.fromCodePoint(c) + 'x').length === 1);

const stripper = parts({ normalizer: { type: 'Strip', strip_left: true, strip_right: false } }).getNormalizer();
write('strip', (c) => stripper.normalizeString(String.fromCodePoint(c) + 'x') === 'x');

// A single_word token is not recognised beside a word character.
const single = parts({ added_tokens: [{ id: 1, content: '!X!', single_word: true, lstrip: false, rstrip: false, normalized: false, special: false }] });
const beside = [];
for (const c of all) {
  const ids = (await single.encode(String.fromCodePoint(c) + '!X!', null, { addSpecialTokens: false })).getIds();
  if (!ids.includes(1)) beside.push(c);
}
const besideSet = new Set(beside);
write('singleword', (c) => besideSet.has(c));

// The normalizers know a code point if it has a decomposition or is reordered as a mark.
const normalizers = Object.fromEntries(['NFD', 'NFKD', 'NFC', 'Lowercase'].map((type) => [type, parts({ normalizer: { type } }).getNormalizer()]));
const nfd = (s) => normalizers.NFD.normalizeString(s);
write('normalizes', (c) => {
  const s = String.fromCodePoint(c);
  return normalizers.NFKD.normalizeString(s) !== s || nfd('\u0345' + s) !== '\u0345' + nfd(s) || nfd(s + '\u0334') !== nfd(s) + '\u0334';
});
for (const c of all) {
  const s = String.fromCodePoint(c), low = normalizers.Lowercase.normalizeString(s);
  if (low !== s) console.log(`lower ${c.toString(16)}=${[...low].map((x) => x.codePointAt(0).toString(16)).join(',')}`);
}
