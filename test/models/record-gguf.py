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
  for the real files: one hash for each 256 ids, of the text of each

The texts are those of the corpus, then 400 that are put together from the
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


def record(name, base, changes, swept=False, pieces=False, group=1):
    model, vocab = load(os.path.join(vocabularies, f"ggml-vocab-{base}.gguf"), changes)
    texts = corpus["texts"] + corpus["fuzz"] + list(token_texts(vocab)) + (list(sweep()) if swept else [])
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


def wanted(name):
    return not only or name in only


for name in spec["files"]:
    if wanted(name):
        record(name, name, {}, swept=name in spec["sweep"], pieces=True)
for name, v in spec["variants"].items():
    if wanted(name):
        record(name, v["base"], v["set"], swept=name in spec["sweep"])
for pre in spec["pre"]["names"]:
    if wanted("pre-" + pre):
        record("pre-" + pre, spec["pre"]["base"], {"tokenizer.ggml.pre": pre}, group=8)
