package tokenizer

import "baton/tokenizer/pattern"

// A ggufSplit is what a name in tokenizer.ggml.pre stands for.
type ggufSplit struct {
	expressions  []string // one split after the other
	ignoreMerges bool
	addBOS       bool // unless the file says otherwise
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
	qwen2 := ggufSplit{expressions: []string{splitQwen2}}
	gpt4o := ggufSplit{expressions: []string{splitGPT4o}}
	deepSeek3 := ggufSplit{expressions: []string{`\p{N}{1,3}`, splitCJK, splitDeepSeek}}
	bailing := ggufSplit{expressions: []string{splitBailing}}
	standard := ggufSplit{expressions: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Expression, `\p{N}+`, `[0-9][0-9][0-9]`}}
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
		"minicpm5":       {expressions: []string{`\p{N}{1,3}`, contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanksBehind}, ignoreMerges: true},
	}
	for split, names := range map[*ggufSplit][]string{
		&llama3:                             {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
		&gpt4:                               {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"},
		&gpt2:                               {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4"},
		&digits:                             {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
		&qwen2:                              {"qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2", "kormo"},
		&gpt4o:                              {"gpt-4o", "llama4", "kanana2", "minimax-m2"},
		&deepSeek3:                          {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
		&bailing:                            {"bailingmoe", "bailingmoe2", "llada-moe"},
		{expressions: []string{splitBloom}}: {"poro-chat", "bloom", "gpt3-finnish"},
	} {
		for _, name := range names {
			table[name] = *split
		}
	}
	return table
}()
