#!/usr/bin/env python3
"""Records what llama.cpp's own tokenizer makes of the corpus, for .gguf files.

  record-gguf.py LIBRARIES VOCABULARIES TESTDATA [NAME...]
  record-gguf.py --show LIBRARIES VOCABULARIES TESTDATA NAME   prints ids instead

LIBRARIES is the folder of libllama.so of the pinned package (see
record-gguf.sh), VOCABULARIES what fetch-gguf.sh filled, TESTDATA the folder
tokenizer/testdata. gguf-variants.json there says which files are opened with
which metadata changed; "pre" in it lists names of splits to try on one file.

Of each result only a hash is kept (32-bit FNV-1a). gguf/NAME.bin holds, as
little-endian 32-bit numbers:

  the vocabulary's size
  one hash for each text: of its ids without BOS and EOS, and with them
  for the real files: one hash for each 256 ids, of the text of each. Not for
    those that the variants call odd: llama.cpp shows "[UNK_BYTE_...]" for some
    tokens of Command-R that a byte-level vocabulary should not have

For the "small" ones, made up here and kept as gguf/small-NAME.gguf, the texts
are 400 out of their tokens and 1,600 of the characters of their tokens.

The texts are otherwise those of the corpus, then 400 that are put together from the
file's own tokens, then, where the variant says "sweep", all code points below
U+30000, 64 to a text. For the names of splits one hash stands for 8 texts.
"""
import ctypes as C
import gzip
import json
import os
import struct
import sys

show = "--show" in sys.argv
libraries, vocabularies, testdata, *only = [a for a in sys.argv[1:] if a != "--show"]

for name in ("ggml-base", "ggml-cpu", "ggml-rpc", "vulkan.so.1", "ggml-vulkan", "ggml", "llama"):
    file = f"lib{name}" if ".so" in name else f"lib{name}.so.0"
    llama = C.CDLL(os.path.join(libraries, file), mode=C.RTLD_GLOBAL)


class Params(C.Structure):
    """llama_model_params of the pinned version, as far as it matters here."""
    _fields_ = [("before", C.c_uint8 * 56), ("overrides", C.c_void_p), ("vocab_only", C.c_bool), ("rest", C.c_uint8 * 191)]


class Value(C.Union):
    _fields_ = [("i", C.c_int64), ("f", C.c_double), ("b", C.c_bool), ("s", C.c_char * 128)]


class Override(C.Structure):
    _fields_ = [("tag", C.c_int), ("key", C.c_char * 128), ("value", Value)]


LOG = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)
silent = LOG(lambda level, text, _: sys.stderr.write(text.decode(errors="replace")) if level == 4 else None)
P = C.c_void_p
llama.llama_log_set(silent, None)
llama.llama_backend_init()
llama.llama_model_default_params.restype = Params
llama.llama_model_load_from_file.argtypes, llama.llama_model_load_from_file.restype = [C.c_char_p, Params], P
llama.llama_model_get_vocab.argtypes, llama.llama_model_get_vocab.restype = [P], P
llama.llama_model_free.argtypes = [P]
llama.llama_vocab_n_tokens.argtypes = [P]
llama.llama_vocab_get_text.argtypes, llama.llama_vocab_get_text.restype = [P, C.c_int32], C.c_char_p
llama.llama_tokenize.argtypes = [P, C.c_char_p, C.c_int32, C.POINTER(C.c_int32), C.c_int32, C.c_bool, C.c_bool]
llama.llama_token_to_piece.argtypes = [P, C.c_int32, C.c_char_p, C.c_int32, C.c_int32, C.c_bool]


def load(path, changes):
    params = llama.llama_model_default_params()
    assert params.overrides is None and not params.vocab_only, "another version of libllama"
    overrides = (Override * (len(changes) + 1))()
    for o, (key, value) in zip(overrides, changes.items()):
        o.key = key.encode()
        if isinstance(value, bool):
            o.tag, o.value.b = 2, value
        elif isinstance(value, int):
            o.tag, o.value.i = 0, value
        else:
            o.tag, o.value.s = 3, value.encode()
    if changes:
        params.overrides = C.cast(overrides, P)
    params.vocab_only = True
    model = llama.llama_model_load_from_file(path.encode(), params)
    if not model:
        raise SystemExit(f"{path} with {changes}: llama.cpp does not load it")
    return model, llama.llama_model_get_vocab(model)


def ids(vocab, text, special):
    data = text.encode()
    out = (C.c_int32 * (4 * len(data) + 16))()
    n = llama.llama_tokenize(vocab, data, len(data), out, len(out), special, True)
    assert n >= 0, text
    return ",".join(map(str, out[:n]))


def piece(vocab, token):
    out = C.create_string_buffer(1 << 16)
    n = llama.llama_token_to_piece(vocab, token, out, len(out), 0, True)
    assert n >= 0, token
    return out.raw[:n]


def fnv(data):
    h = 0x811C9DC5
    for b in data:
        h = (h ^ b) * 0x01000193 & 0xFFFFFFFF
    return h


def token_texts(vocab):
    """Texts out of the file's own tokens; every other one is a special-looking one."""
    size = llama.llama_vocab_n_tokens(vocab)
    texts = [llama.llama_vocab_get_text(vocab, i).decode(errors="replace") for i in range(size)]
    odd = [t for t in texts if len(t) > 2 and t[0] in "<[" and t[-1] in ">]"] or texts
    seed = 54321

    def random(n):
        nonlocal seed
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        return int(seed / 0x80000000 * n)

    for _ in range(400):
        text = ""
        for _ in range(1 + random(12)):
            text += odd[random(len(odd))] if random(2) else texts[random(size)]
            text += ("", "", " ", "\n", "  ")[random(5)]
        yield text.replace("\u2581", " ").replace("\u0120", " ").replace("\u010a", "\n")


def sweep():
    points = [c for c in range(1, 0x30000) if not 0xD800 <= c <= 0xDFFF]
    for i in range(0, len(points), 64):
        yield "a".join(map(chr, points[i:i + 64]))


with gzip.open(os.path.join(testdata, "corpus.json.gz")) as f:
    corpus = json.load(f)
with open(os.path.join(testdata, "gguf-variants.json")) as f:
    spec = json.load(f)


def letter_texts(vocab):
    """Texts out of the characters of the file's tokens."""
    size = llama.llama_vocab_n_tokens(vocab)
    letters = sorted(set("".join(llama.llama_vocab_get_text(vocab, i).decode(errors="replace") for i in range(size)) + " \u00e9"))
    seed = 777

    def random(n):
        nonlocal seed
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        return int(seed / 0x80000000 * n)

    for _ in range(1600):
        yield "".join(letters[random(len(letters))] for _ in range(1 + random(14))).replace("\u2581", " ")


def record(name, base, changes, swept=False, pieces=False, group=1, path=None):
    model, vocab = load(path or os.path.join(vocabularies, f"ggml-vocab-{base}.gguf"), changes)
    texts = list(token_texts(vocab)) + list(letter_texts(vocab)) if path else corpus["texts"] + corpus["fuzz"] + list(token_texts(vocab)) + (list(sweep()) if swept else [])
    results = [ids(vocab, t, False) + ";" + ids(vocab, t, True) for t in texts]
    if show:
        for t, r in zip(texts, results):
            print(json.dumps([t, r]))
        return
    size = llama.llama_vocab_n_tokens(vocab)
    out = [size] + [fnv("|".join(results[i:i + group]).encode()) for i in range(0, len(results), group)]
    if pieces:
        for first in range(0, size, 256):
            out.append(fnv(b"\xff".join(piece(vocab, i) for i in range(first, min(first + 256, size)))))
    with open(os.path.join(testdata, "gguf", name + ".bin"), "wb") as f:
        f.write(struct.pack(f"<{len(out)}I", *out))
    llama.llama_model_free(model)
    print(name, size)


def write_gguf(path, model, tokens, more=()):
    """Writes a header; tokens are (text, type, score)."""
    def text(s):
        b = s.encode()
        return struct.pack("<Q", len(b)) + b

    def array(kind, n, data):
        return struct.pack("<IIQ", 9, kind, n) + data

    n = len(tokens)
    entries = {
        "general.architecture": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.model": struct.pack("<I", 8) + text(model),
        "tokenizer.ggml.tokens": array(8, n, b"".join(text(t) for t, _, _ in tokens)),
        "tokenizer.ggml.token_type": array(5, n, struct.pack(f"<{n}i", *(k for _, k, _ in tokens))),
        "tokenizer.ggml.scores": array(6, n, struct.pack(f"<{n}f", *(s for _, _, s in tokens))),
        **dict(more),
    }
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)))
        for key, value in entries.items():
            f.write(text(key) + value)


NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
HEX = [(f"<0x{c:02X}>", BYTE, 0.0) for c in range(256)]
# Special tokens that overlap each other in all ways.
OVERLAPPING = [("<s", CONTROL, 0.0), ("<s>", CONTROL, 0.0), ("s>ab", USER, 0.0), (">a", USER, 0.0), ("ab<s>", CONTROL, 0.0), ("aaa", USER, 0.0), ("b<", CONTROL, 0.0)]
YES = struct.pack("<I?", 7, True)
small = {
    # Characters (x, y, the blank) that are tokens only together with others.
    "lone": ("llama", [("<unk>", UNKNOWN, 0.0), ("<bos>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)] + HEX + OVERLAPPING
             + [(t, NORMAL, -float(i // 2)) for i, t in enumerate(["\u2581a", "xy", "a", "b", "bx", "xyb", "ab", "by", "yb", "\u2581ab", "byx", "\u2581\u2581", "<", ">", "s", "\u00e9x"])], ()),
    "rwkv": ("rwkv", [("<s>", CONTROL, 0.0)] + [(chr(c) if 33 <= c < 127 and c != 92 else f"\\x{c:02x}", NORMAL, 0.0) for c in range(256)]
             + [(t, NORMAL, 0.0) for t in ["ab", "abc", "bcd", "abcde", "\\n\\n", "\\t ", "\\\\n", "\\x20a", "\u00e9a", "\\xc3\\xa9b"]], ()),
    # Blanks within tokens, equal sums, user-defined tokens that begin like other characters.
    "t5": ("t5", [("<pad>", CONTROL, 0.0), ("</s>", CONTROL, 0.0), ("<unk>", UNKNOWN, 0.0)]
           + [("\u00e9\u00e9a", USER, 0.0), ("ab\u2581c", NORMAL, -4.5), ("\u2581", NORMAL, -2.0), ("a", NORMAL, -1.25), ("b", NORMAL, -1.5), ("ab", NORMAL, -2.75), ("abc", NORMAL, -4.0),
              ("c", NORMAL, -1.25), ("bc", NORMAL, -2.75), ("\u2581a", NORMAL, -3.25), ("cc", UNUSED, -2.5), ("<0x41>", BYTE, 0.0)], (("tokenizer.ggml.add_space_prefix", YES),)),
    "t5-words": ("t5", [("<pad>", CONTROL, 0.0), ("</s>", CONTROL, 0.0), ("<unk>", UNKNOWN, 0.0)]
                 + [("\u2581ab", NORMAL, -0.1), ("a", NORMAL, -0.7), ("b", NORMAL, -0.3), ("ba", NORMAL, -1.0), ("\u2581a", NORMAL, -1.7)],
                 (("tokenizer.ggml.add_space_prefix", YES), ("tokenizer.ggml.remove_extra_whitespaces", YES))),
}


def wanted(name):
    return not only or name in only


for name, (model, tokens, more) in small.items():
    if wanted("small-" + name):
        path = os.path.join(testdata, "gguf", f"small-{name}.gguf")
        if not show:
            write_gguf(path, model, tokens, more)
        record("small-" + name, None, {}, pieces=True, path=path)
for name in spec["files"]:
    if wanted(name):
        record(name, name, {}, swept=name in spec["sweep"], pieces=name not in spec["oddPieces"])
for name, v in spec["variants"].items():
    if wanted(name):
        record(name, v["base"], v["set"], swept=name in spec["sweep"])
for pre in spec["pre"]["names"]:
    if wanted("pre-" + pre):
        record("pre-" + pre, spec["pre"]["base"], {"tokenizer.ggml.pre": pre}, group=8)
