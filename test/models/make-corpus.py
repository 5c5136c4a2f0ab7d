#!/usr/bin/env python3
"""Writes the corpus of hard strings for tokenizers: JSON {"texts": [...], "fuzz": [...], "bench": {...}}.

    make-corpus.py | gzip -9n > tokenizer/testdata/corpus.json.gz

The output depends on nothing but this file and Python's Unicode tables (3.11
was used), so the committed corpus stays as it is; run this only to extend it.
"texts" is chosen: code, many scripts, emoji with joiners, combining marks in
and out of order, runs of blanks and digits, the special tokens of many models
whole, cut and doubled, control characters, unassigned code points, long texts.
"fuzz" is 2,000 random mixtures.
"""
import json, random, sys, unicodedata

R = random.Random(20251129)
out = []


def add(kind, *texts):
    for t in texts:
        t.encode("utf-8")  # fails on half a surrogate pair
        out.append(t)


add("ascii", "", " ", "a", "Hello", "Hello world", "Hello, world!", " Hello", "  Hello", "Hello ", "Hello  ",
    "The quick brown fox jumps over the lazy dog.", "I'm you're he'll we'd they've it's DON'T CAN'T I'M",
    "'s 't 're 've 'm 'll 'd 'S 'T 'RE", "don\u2019t it\u2019s", "ſ's ſ 'ſ K's", "A.B.C. U.S.A.", "e.g., i.e., etc.",
    "1+1=2", "100,000.00", "$1,234.56", "3.14159265358979", "1e-10", "0x1F", "v1.2.3-rc.4+build5",
    "foo_bar_baz", "fooBarBaz", "FOOBAR", "HTTPServerError", "camelCaseXMLHttpRequest2", "snake_case__dunder__",
    "a-b-c", "a/b/c", "C:\\Users\\me", "user@example.com", "https://example.com/a?b=c&d=%20#frag",
    "!!!", "???", "...", "…", "----", "====", "#####", "***", "~~~", "((()))", "[[[]]]", "{{}}", "<<>>", "\"'\"'", "`code`",
    "word" * 50, "ab" * 200, "!" * 300, "a" * 1000, "-" * 500, "=" * 257, "." * 129)
for n in list(range(1, 20)) + [31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 300]:
    add("spaces", " " * n, "x" + " " * n + "y")
for n in [1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 100]:
    add("newlines", "\n" * n, "x" + "\n" * n + "y", "\r\n" * n, " \n" * n, "\t" * n, "a" + "\t" * n + "b", "\n " * n + "z", "\n\n\t " * n)
for n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 20, 50, 100, 257]:
    add("digits", "1234567890123456789012345678901234567890"[:min(n, 40)] if n <= 40 else "".join(str(R.randrange(10)) for _ in range(n)), "x" + "7" * n + "y", " " + "0" * n)
add("digits", "١٢٣٤٥٦٧٨٩٠", "१२३४५६७८९०", "①②③④⑤", "½ ¼ ¾ ⅓", "Ⅷ ⅸ Ⅻ", "²³¹⁰ₐ₁₂", "一二三四五六七八九十百千", "𝟘𝟙𝟚𝟛𝟜𝟝", "12三45", "3rd 2nd 1st", "２０２５年１１月２９日", "1'234'567", "1_000_000", "1 000 000")
add("whitespace", "\u00a0", "a\u00a0b", "\u00a0\u00a0x", "\u2003em\u2002en", "\u3000全角空白\u3000", "\u200bzero\u200bwidth", "\ufeffBOM", "a\ufeffb", "\u2028line\u2029para", "\u0085nel", "x\u0085y", "\u000bvt\u000cff", "a\x0bb\x0cc", " \u00a0 \u2009 ", "\u1680ogham", "\u180emongolian", "\u202f\u205f", "\t \t \n \r \r\n \n\r", "a \n b", "a\n b", "a \n\n  b", "end   ", "end \n", "\n start", "  \n  ", " \t\n\r ", "a  b   c    d     e", "tab\tsep\tcols\n1\t2\t3\n", "\u001c\u001d\u001e\u001f", "a\u001cb")
add("cjk", "你好，世界！", "中文分词测试：今天天气很好。", "繁體中文測試", "日本語のトークナイザー", "カタカナ ひらがな 漢字", "ｶﾀｶﾅ ﾊﾝｶｸ", "안녕하세요 세계", "한국어 토크나이저", "中English混合123text", "㍿㍻㋿", "𠮷野家", "𪚥𪚥", "々〆ヶ", "「引用」『二重』【括弧】", "。、！？；：", "人之初，性本善。性相近，習相遠。" * 5, "ㄅㄆㄇㄈ", "한글" , unicodedata.normalize("NFD", "한국어"), unicodedata.normalize("NFD", "がぎぐげご"), "가각간", "豈更車賈", "\U0002f800\U0002f801", "漢字\u3099か\u3099", "你好 世界", "你 好", " 你好", "你好\n\n世界", "ー〜～", "１２３ＡＢＣａｂｃ！？")
add("emoji", "😀", "😀😀😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🏴‍☠️", "🇺🇸🇩🇪🇯🇵", "🇺", "❤️", "❤", "1️⃣2️⃣", "👩🏿‍🚀", "🧑‍💻", "🤷🏻‍♂️", "text 😀 text", "😀text", " 😀", "😀 ", "☃☀☂", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👁️‍🗨️", "🫠🫡🫢", "🪿🫎🩷", "a👍b👎c", "👨\u200d", "\u200d\u200d", "\ufe0f", "🏽", "⌚️⏰", "🅰️🆎", "🀄🃏", "🐍🦀🐹" * 30)
add("arabic_hebrew", "مرحبا بالعالم", "السَّلَامُ عَلَيْكُمْ", "لا إله", "ﷺ ﷲ", "שלום עולם", "שָׁלוֹם", "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ", "abc مرحبا 123", "\u202bRTL\u202c", "\u2066iso\u2069", "فارسی می‌خواهم", "اردو زبان ۱۲۳", "ـــكشيدة")
add("other_scripts", "Привет, мир!", "ПРИВЕТ МИР", "Ёлка ёжик", "Γειά σου Κόσμε", "ΣΊΣΥΦΟΣ σίσυφος ς", "नमस्ते दुनिया", "क्षत्रिय", "สวัสดีชาวโลก", "ภาษาไทยไม่มีช่องว่าง", "வணக்கம்", "ਸਤ ਸ੍ਰੀ ਅਕਾਲ", "ကမ္ဘာ", "សួស្តី", "ሰላም", "გამარჯობა", "Բարեւ", "ᏣᎳᎩ", "ᚠᚢᚦ", "Tiếng Việt có dấu", "İstanbul ıIiİ", "Straße ẞ GROSSE", "ǅ ǈ ǋ ǲ", "ꟲ ʰ ʷ ˠ", "ªº", "ŉ ǰ ΐ", "ﬁ ﬂ ﬀ ﬃ", "Œuvre œuf æther", "ﬅ ſt", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒯𝑒𝓍𝓉", "ＡＢＣ", "ⓐⓑⓒ", "🅐🅑", "Ꭰꭰ", "ⴀⴁ Ⴀ")
add("combining", "é", "e\u0301", "é vs e\u0301", "ñ n\u0303", "Å A\u030a \u212b", "Ω Ω", "ṩ s\u0323\u0307 s\u0307\u0323", "q\u0307\u0323", "a\u0300\u0301\u0302\u0303\u0304", "Z̸̢͖a̷̡l̶̨g̵̛o̸", "\u0301", "\u0301abc", " \u0301", "x\u0338y", "=\u0338", "≠", "\u0344 \u0340 \u0341", "\u0374 \u037e \u0387", "\u2126 \u212a \u212b", "\u0958 \u0915\u093c", "\u09cb \u09c7\u09be", "\u1e9b\u0323", "\u0f73 \u0f71\u0f72", "\ufb1d \u05d9\u05b4", "\ufb2c", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u115f\u1160", "e\u0301\u0301", "e\u0327\u0301", "e\u0301\u0327", "\U0001d15e \U0001d157\U0001d165", "\u0cca\u0cd5", "\u1b06 \u1b05\u1b35", "ệ", "e\u0302\u0323", "e\u0323\u0302", "Tie\u0302\u0301ng Vie\u0323\u0302t", "ä́", "a\u0308\u0301",
    unicodedata.normalize("NFD", "Thé Café Zoë naïve façade Ångström Dvořák"), unicodedata.normalize("NFC", "Thé Café Zoë naïve façade Ångström Dvořák"), unicodedata.normalize("NFKD", "ﬁ½①Ａ㎏"), "\u2000 \u2001 \u2329 \u232a", "\u1fef \u1ffd", "\uf900\uf901 \uf9ff", "豈 類")
add("control", "\x00", "a\x00b", "\x01\x02\x03", "\x07bell", "\x08bs", "\x1b[31mred\x1b[0m", "\x7f", "a\x7fb", "\x80\x81\x9f", "\u0099", "\ufffd", "\ufffd\ufffd", "a\ufffdb", "\ufffe", "\uffff", "\U0010ffff", "\U0001fffe", "\ue000\uf8ff", "\U000f0000", "\ufdd0", "\u0378", "\U000e0001", "\u2060\u2061", "\u00ad soft\u00adhyphen", "\u034f", "\ufff9\ufffa\ufffb", "\u2fff", "\U00010ffff"[:1], "Ã©Ã¨ â€™ Â£", "\u00c2\u00a0", "ï»¿", "Ġword Ċ ĉ č", "ĠĠĠ", "▁word ▁▁ ▁", "▁", "a▁b", "<0x0A>", "<0x41><0x42>", "<unk>", "<0xE4><0xBD><0xA0>", "##ing", "</w>", "Ċ", "À Á ö ÿ Ā ā Ă")
specials = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<s>", "</s>", "<unk>", "<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<unused0>", "<unused99>", "<mask>", "<table>", "<h1>", "</code>", "<strong>",
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜fim▁hole｜>", "<|EOT|>", "<｜▁pad▁｜>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>", "<|constrain|>", "<|startoftext|>", "<|endofprompt|>", "<|reserved_200000|>", "<|reserved_special_token_0|>", "<|reserved_special_token_247|>", "<|fim_prefix|>", "<|vision_start|>", "<|box_start|>", "<|repo_name|>"]
for s in specials:
    add("special", s, "a" + s + "b", " " + s + " ", s + s, "x\n" + s + "\n\ny", "  " + s + "  x", s[:-1], s.upper())
add("special", "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "<s>[INST] <<SYS>>\nBe nice\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] bye [/INST]", "<｜begin▁of▁sentence｜>sys<｜User｜>hi<｜Assistant｜><think>\n\n</think>", "<|start|>assistant<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>ok<|return|>", "<|im_start|<|im_end|>|>", "<<s>>", "<s", "s>", "< s >", "</s></s></s>", "<s> <s>  <s>", "<|im_start|>\u0301x", "e<|im_start|>\u0301", "<table><tr>", "\n\n<h1>T</h1>\n\n\n", "<think>\nabc\n</think>\n\nfoo", "<|eot_id|>" * 20, "<｜User｜ >", "＜｜User｜＞", "\n" * 30 + "<bos>" + " " * 30 + "<eos>")
code = {
 "go": "package main\n\nimport (\n\t\"fmt\"\n)\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Printf(\"%d\\n\", i)\n\t}\n}\n",
 "py": "def f(x: int) -> int:\n    \"\"\"Doc.\"\"\"\n    if x > 1:\n        return f(x - 1) * x\n    return 1\n\n\nclass A(object):\n    __slots__ = ('a', 'b')\n\n    def __init__(self, *args, **kwargs):\n        super().__init__()\n        self.a = lambda y: y ** 2\n",
 "c": "#include <stdio.h>\n#define MAX(a,b) ((a)>(b)?(a):(b))\nint main(int argc, char **argv) {\n  int *p = &argc; /* c */\n  return p->x ? 0 : ~1;\n}\n",
 "json": "{\"a\": [1, 2.5, -3e10, null, true], \"b\": {\"c\": \"\\u00e9\\n\"}, \"d\":{}}",
 "html": "<!DOCTYPE html>\n<html><head><title>T</title></head>\n<body class=\"x\"><p>Hi &amp; bye</p><br/><script>if(a<b&&c>d){}</script></body></html>",
 "sql": "SELECT a.*, COUNT(*) AS n FROM t1 a LEFT JOIN t2 b ON a.id=b.id WHERE x LIKE '%foo%' GROUP BY 1 HAVING n>=2;",
 "sh": "#!/bin/bash\nset -euo pipefail\nfor f in \"$@\"; do\n  echo \"${f%%.*}\" | sed 's/a/b/g' >> /dev/null 2>&1\ndone\n",
 "tex": "\\begin{equation}\n  \\int_{0}^{\\infty} e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2} \\label{eq:1}\n\\end{equation}",
 "rust": "fn main() -> Result<(), Box<dyn Error>> {\n    let v: Vec<u8> = (0..10).map(|x| x * 2).collect();\n    println!(\"{:?}\", v);\n    Ok(())\n}",
 "yaml": "a:\n  - b: 1\n    c: \"x\"\n  - |\n    multi\n      line\n",
 "diff": "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n-old\n+new\n context\n",
 "md": "# Title\n\n* item **bold** _it_ `code`\n1. one\n2. two\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
 "regex": "^(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[a-z0-9]+)*)$",
 "b64": "TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVyIGFkaXBpc2NpbmcgZWxpdA==",
 "hex": "deadbeefcafebabe0123456789abcdef" * 4, "uuid": "550e8400-e29b-41d4-a716-446655440000",
 "minjs": "!function(e,t){\"object\"==typeof exports?module.exports=t():e.X=t()}(this,(()=>{var e={};return e}));",
 "crlf": "line1\r\nline2\r\n\r\nline4\r\r\n\n", "indent": "".join("    " * i + "x%d\n" % i for i in range(20)), "tabs": "".join("\t" * i + "y\n" for i in range(15)),
}
for k, v in code.items():
    add("code", v, " " + v, v.rstrip("\n"))
# random mixes
pools = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " \t\n\r", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "éèüñçßøåæœ", "你好世界中文字符測試", "あいうえおカキクケコ", "😀👍🏽❤️\u200d🇺🇸", "مرحبا", "Привет", "\u0301\u0308\u0327\u0323", "\u00a0\u2003\u200b\ufeff", "▁Ġ", "ก็ไม่"]
for i in range(160):
    k = R.randrange(1, 5); ps = [R.choice(pools) for _ in range(k)]
    add("random", "".join(R.choice(R.choice(ps)) for _ in range(R.randrange(1, 80))))
for i in range(60):  # random assigned code points from the whole of Unicode
    s = []
    while len(s) < 24:
        cp = R.choice([R.randrange(0x20, 0x3000), R.randrange(0x20, 0xFFFF), R.randrange(0x10000, 0x1FFFF)])
        if 0xD800 <= cp <= 0xDFFF: continue
        if unicodedata.category(chr(cp)) in ("Cn",): continue
        s.append(chr(cp))
    add("random_unicode", "".join(s))
for i in range(30):  # random incl. unassigned
    s = []
    while len(s) < 16:
        cp = R.randrange(0, 0x110000)
        if 0xD800 <= cp <= 0xDFFF: continue
        s.append(chr(cp))
    add("random_any", "".join(s))
for i in range(40):
    parts = []
    for _ in range(R.randrange(2, 7)):
        parts.append(R.choice([R.choice(specials), R.choice([" ", "\n", "  ", "\t", ""]), R.choice(["hello", "你好", "é", "e\u0301", "123", "😀", "foo bar"])]))
    add("special_mix", "".join(parts))
words = "the of and to in a is that for it as was with be by on not he I this are or his from at which but have an had they you were their one all we can her has there been if more when will would who so no model token language inference server request latency throughput attention transformer embedding batch cache prefill decode router schedule worker frontend kubernetes".split()
def prose(n, seed):
    r = random.Random(seed); s = []
    ln = 0
    while ln < n:
        k = r.randrange(5, 18); w = [r.choice(words) for _ in range(k)]; w[0] = w[0].capitalize()
        if r.random() < .2: w[r.randrange(k)] += ","
        if r.random() < .15: w.append(str(r.randrange(100000)))
        t = " ".join(w) + r.choice([". ", ". ", "? ", "! ", ".\n\n"]); s.append(t); ln += len(t)
    return "".join(s)[:n]
def mixed(n, seed):
    r = random.Random(seed); s = []; ln = 0
    vals = list(code.values()) + ["你好，世界！今天天气很好。", "日本語のトークナイザー。", "Привет, мир! ", "مرحبا بالعالم ", "😀👍🏽❤️ ", "   \n\n  ", "1234567890 ", "e\u0301a\u0308 "]
    while ln < n:
        t = r.choice(vals) if r.random() < .5 else prose(200, r.random()); s.append(t); ln += len(t.encode())
    return "".join(s)
add("long", prose(1000, 1), prose(10000, 2), prose(100000, 3), mixed(10000, 4), mixed(100000, 5), code["py"] * 30, "人工智能" * 500, "\n".join("%d,%d,%f" % (i, i * i, i / 7) for i in range(800)), " ".join(str(R.randrange(10 ** 9)) for _ in range(600)), "a" * 20000, "ab1 " * 3000, " " * 5000, "\n" * 3000, "😀" * 2000, "x\u0301" * 1500, "Aa" * 3000)


# Marks newer than the reference's normalizer, alone and among older ones.
add("late marks", "\u08d3\u0301", "a\u1ab0\u1abf\u0323", "\u0e81\u0eba\u0eb1", "e\u1df6\u0301", "e\u0301\u1df6\u0323", "\U00011935\U00011930", "\U0001e4ec\u0323a\u0301",
    "\u0301" * 40, "a" + "\u0323\u0301" * 40, "가" + "\u0301" * 40 + "각", "\u1100\u1161" + "\u0301" * 35)

fuzz = []
F = random.Random(20251130)
sp = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>", "<s>", "</s>", "<bos>", "<eos>", "<unused7>", "<start_of_turn>", "<table>", "<｜User｜>", "<｜end▁of▁sentence｜>", "<think>", "</think>", "<tool_call>", "<|start|>", "<|channel|>", "<mask>", "\n\n\n", "▁▁"]
pools = ["etaoinshrdlu", "ETAOIN", "0123456789", " ", " \t\n\r", "\n", "'", "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~", "éèüñçßøåæœĳŉſ", "你好世界中文字符測試的是不", "あいうえおカキクケコー", "😀👍🏽❤️\u200d🇺🇸☃", "مرحباابتث", "ПриветМир", "\u0301\u0308\u0327\u0323\u0345", "\u00a0\u2003\u200b\ufeff\u2028\u0085", "▁ĠĊ", "กขคงไม่ได้", "नमस्ते", "①②½ⅷ²", "﷽ﬁﬂ", "\U0001d400\U0001f1e6\U00020000", "\ufffd\ue000"]
words = "the of and I'm don't We'll THEY'RE it's hello World fooBar HTTPServer x1 v2.0 https://a.b/c?d=e C++ 100,000 3.14 e\u0301t\u00e9 na\u00efve 日本 Straße func main() { return } </div> \"a\": 1, /* c */ # \\n".split(" ")
for i in range(2000):
    k = F.random(); s = []
    for _ in range(F.randrange(1, 30)):
        r = F.random()
        if r < .35: s.append(F.choice(words)); s.append(F.choice(["", " ", "  ", "\n", "\t"]))
        elif r < .45: s.append(F.choice(sp))
        elif r < .9: p = F.choice(pools); s.append("".join(F.choice(p) for _ in range(F.randrange(1, 8))))
        else:
            c = F.randrange(0x20, 0x2ffff)
            if not 0xd800 <= c <= 0xdfff: s.append(chr(c))
    fuzz.append("".join(s))

json.dump({"texts": out, "fuzz": fuzz, "bench": {
    "prose 1 kB": prose(1024, 11), "prose 100 kB": prose(102400, 12), "mixed 1 kB": mixed(1024, 13)[:1000], "mixed 100 kB": mixed(102400, 14)}}, sys.stdout)
