package tokenizer

import "baton/tokenizer/pattern"

// A ggufSplit is what a name in tokenizer.ggml.pre stands for.
type ggufSplit struct {
	expressions  []string // one split after the other
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
	noBOS        bool // none is known without the file

	// For models that merge characters, not bytes, and spell blanks.
	characters bool
	wholeLines bool // a run of line breaks that is a token is that token
	forceBOS   bool // whatever the file says
}

func (s ggufSplit) steps() ([]step, error) {
	steps := make([]step, len(s.expressions))
	for i, e := range s.expressions {
		p, err := pattern.Compile(e)
		if err != nil {
			return nil, err
		}
		steps[i].find.pattern = p
	}
	return steps, nil
}

// Split expressions that several models share, in the words of their
// tokenizer.json files. (llama.cpp itself has to approximate some of them.)
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	blanksBehind = `|\s*[\r\n]+|\s+(?!\S)|\s+`

	splitDigits   = `\p{N}`
	splitGPT4     = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind
	splitQwen2    = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind
	splitQwen35   = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blanksBehind
	splitSeed     = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+` + blanksBehind
	splitBailing  = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	splitExaone   = contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+`
	splitUpper    = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	splitLower    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	splitTekken   = `[^\r\n\p{L}\p{N}]?` + splitUpper + `*` + splitLower + `+|[^\r\n\p{L}\p{N}]?` + splitUpper + `+` + splitLower + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanksBehind
	splitGPT4o    = `[^\r\n\p{L}\p{N}]?` + splitUpper + `*` + splitLower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + splitUpper + `+` + splitLower + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanksBehind
	splitBloom    = ` ?[^(\s|[.,!?…。，、।۔،])]+`
	splitCJK      = `[一-龥぀-ゟ゠-ヿ]+`
	splitDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + blanksBehind
	splitCased    = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
	splitUfak     = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind
	splitAsian    = `[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+`
	splitYoutu    = `[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+`
	splitYoutuTwo = `[^\r\n\p{L}\p{N}]?` + splitUpper + `*` + splitLower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + splitUpper + `+` + splitLower + `*` + contractions + `?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanksBehind
	splitSpark    = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" + `|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`
	splitJais     = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`
	splitLines    = `[^\n]+|\n+`
	splitHan      = `[\p{Han}]+`
	kimiUpper     = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiLower     = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	splitKimi     = splitHan + `|[^\r\n\p{L}\p{N}]?` + kimiUpper + `*` + kimiLower + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + kimiUpper + `+` + kimiLower + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind
)

// ggufSplits is the table, by the names that llama.cpp gives. A file without a
// name gets what "default" stands for.
var ggufSplits = func() map[string]ggufSplit {
	gpt2 := ggufSplit{expressions: []string{gpt2Expression}}
	digits := ggufSplit{expressions: []string{splitDigits, gpt2Expression}}
	llama3 := ggufSplit{expressions: []string{splitGPT4}, ignoreMerges: true, addBOS: true}
	gpt4 := ggufSplit{expressions: []string{splitGPT4}}
	glm4 := ggufSplit{expressions: []string{splitGPT4}, noBOS: true}
	qwen2 := ggufSplit{expressions: []string{splitQwen2}}
	gpt4o := ggufSplit{expressions: []string{splitGPT4o}}
	deepSeek3 := ggufSplit{expressions: []string{`\p{N}{1,3}`, splitCJK, splitDeepSeek}}
	bailing := ggufSplit{expressions: []string{splitBailing}}
	standard := ggufSplit{expressions: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Expression, `\p{N}+`, `[0-9][0-9][0-9]`}}
	ofLines := ggufSplit{expressions: []string{splitLines}, characters: true, wholeLines: true, forceBOS: true}
	table := map[string]ggufSplit{
		"": standard, "default": standard,
		"deepseek-coder": {expressions: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥ࠀ-一가-퟿]+`, splitDigits}},
		"falcon":         {expressions: []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Expression, `[0-9][0-9][0-9]`}},
		"tekken":         {expressions: []string{splitTekken}, ignoreMerges: true, addBOS: true},
		"qwen35":         {expressions: []string{splitQwen35}},
		"seed-coder":     {expressions: []string{splitSeed}},
		"exaone-moe":     {expressions: []string{splitExaone}},
		"kimi-k2":        {expressions: []string{splitKimi}},
		"superbpe":       {expressions: []string{`\p{N}+`, `(?=(\d{3})+(?!\d))`}},
		"tiny_aya":       {expressions: []string{`\d{1,3}(?=(?:\d{3})*\b)`, splitGPT4o}},
		"cohere2moe":     {expressions: []string{`\d{1,3}(?=(?:\d{3})*\b)`, splitGPT4o}},
		"viking":         {expressions: []string{splitBloom, splitDigits}},
		"deepseek-llm":   {expressions: []string{`[\r\n]`, splitCased, `\s?[!-/:-~！-／：-～‘-‟　-。]+`, `\s+$`, `[一-龥ࠀ-一가-퟿]+`, `\p{N}+`}},
		"jais-2":         {expressions: []string{splitJais}},
		"youtu":          {expressions: []string{splitYoutu, splitYoutuTwo}, ignoreMerges: true},
		"spark2_5":       {expressions: []string{`\p{N}{1,3}`, splitCJK, splitSpark, splitDigits}},
		"ufakzeka":       {expressions: []string{splitUfak}},
		"laguna":         {expressions: []string{splitLines, splitQwen2}},
		"afmoe":          {expressions: []string{`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`, splitAsian, splitDeepSeek}},
		"chameleon":      {expressions: []string{`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`, splitDigits, "[\\p{P}!-/:-@\\[-`{-~]", gpt2Expression}, addBOS: true},
		"sarvam-moe":     {expressions: []string{splitLines}, characters: true},

		"granite-embed-multi-97m": {expressions: []string{splitGPT4o}, ignoreMerges: true},
		"minicpm5":                {expressions: []string{`\p{N}{1,3}`, contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind}, ignoreMerges: true},
	}
	for split, names := range map[*ggufSplit][]string{
		&llama3:  {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
		&glm4:    {"glm4", "chatglm-bpe"},
		&ofLines: {"gemma4", "granite-embed-multi-311m"},
		&gpt4:    {"dbrx", "smaug-bpe"},
		&gpt2: {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4",
			"jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"},
		&digits:                             {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
		&qwen2:                              {"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2", "kormo", "f2llmv2"},
		&gpt4o:                              {"gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"},
		&deepSeek3:                          {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
		&bailing:                            {"bailingmoe", "bailingmoe2", "llada-moe"},
		{expressions: []string{splitBloom}}: {"poro-chat", "bloom", "gpt3-finnish"},
	} {
		for _, name := range names {
			table[name] = *split
		}
	}
	return table
}()
