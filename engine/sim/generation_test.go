package sim

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine"
)

func request(prompt []engine.TokenID, maxTokens int) *engine.Request {
	return &engine.Request{
		ID: "r-000-m00-r000", Model: "sim", TokenIDs: prompt, VocabSize: ModelVocabSize(), ContextLength: ModelContextLength,
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: maxTokens, EOS: ModelEOS()},
	}
}

var prompt = []engine.TokenID{300, 12, 900, 44}

func TestWriteModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// The property that everything else rests on: cut anywhere, what another worker
// makes of prompt and tokens so far is what the first would have made.
func TestContinuationIsExactAtEveryCut(t *testing.T) {
	seed := int64(9007199254740993)
	for _, style := range []Style{StyleHash, StyleWords, StyleWhole} {
		for _, kind := range []string{KindVLLM, KindLlamaCPP} {
			for _, sampled := range []bool{false, true} {
				config := Config{Style: style, Kind: kind, MeanLength: 30}
				req := request(prompt, 80)
				req.Stop.MinTokens = 50
				if sampled {
					req.Sampling.Temperature, req.Sampling.Seed = 0.7, &seed
				}
				whole, finish := Reference(config, req)
				for cut := 1; cut < len(whole); cut++ {
					rest := *req
					rest.TokenIDs = slices.Concat(prompt, whole[:cut])
					rest.Carried = cut
					rest.Stop.MaxTokens -= cut
					rest.Stop.MinTokens = max(0, rest.Stop.MinTokens-cut)
					ids, f := Reference(config, &rest)
					if !slices.Equal(ids, whole[cut:]) || f != finish {
						t.Fatalf("%s %s sampled=%v: cut at %d goes on differently", style, kind, sampled, cut)
					}
				}
			}
		}
	}
}

func TestEveryIDMatters(t *testing.T) {
	whole, _ := Reference(Config{MeanLength: -1}, request(prompt, 40))
	damaged := map[string][]engine.TokenID{
		"lost":      slices.Concat(prompt, whole[:9], whole[10:20]),
		"doubled":   slices.Concat(prompt, whole[:10], whole[9:20]),
		"reordered": slices.Concat(prompt, whole[:9], []engine.TokenID{whole[10], whole[9]}, whole[11:20]),
		"replaced":  slices.Concat(prompt, whole[:9], []engine.TokenID{whole[9] + 1}, whole[10:20]),
	}
	for name, ids := range damaged {
		rest, _ := Reference(Config{MeanLength: -1}, request(ids, 20))
		same := 0
		for i, id := range rest {
			if id == whole[20+i] {
				same++
			}
		}
		if same > 2 {
			t.Errorf("%s: %d of %d ids are as if nothing had happened", name, same, len(rest))
		}
	}
}

func TestSeedsCountOnlyWhenSampling(t *testing.T) {
	ids := func(temperature float64, seed int64) []engine.TokenID {
		req := request(prompt, 20)
		req.Sampling.Temperature, req.Sampling.Seed = temperature, &seed
		out, _ := Reference(Config{MeanLength: -1}, req)
		return out
	}
	greedy, _ := Reference(Config{MeanLength: -1}, request(prompt, 20))
	if !slices.Equal(ids(0, 1), greedy) || !slices.Equal(ids(0, 2), greedy) {
		t.Error("a seed changed a greedy answer")
	}
	if slices.Equal(ids(1, 1), ids(1, 2)) || slices.Equal(ids(1, 1), greedy) {
		t.Error("a seed changed nothing")
	}
}

func TestStopConditions(t *testing.T) {
	long, _ := Reference(Config{MeanLength: -1}, request(prompt, 50))

	req := request(prompt, 50)
	req.Stop.TokenIDs = []engine.TokenID{long[20]}
	first := slices.Index(long, long[20])
	req.Stop.IgnoreEOS = true
	if ids, finish := Reference(Config{MeanLength: -1}, req); finish != engine.FinishStop || !slices.Equal(ids, long[:first+1]) {
		t.Errorf("a stop id: %d ids, finish %s", len(ids), finish)
	}

	req.Stop.MinTokens = first + 1
	if ids, _ := Reference(Config{MeanLength: -1}, req); len(ids) <= first+1 || ids[first] == long[first] {
		t.Errorf("min_tokens %d: %d ids, the stop id was not masked", first+1, len(ids))
	}

	if ids, finish := Reference(Config{MeanLength: -1, ContextLength: 14}, request(prompt, 50)); len(ids) != 10 || finish != engine.FinishLength {
		t.Errorf("context of 14: %d ids, finish %s", len(ids), finish)
	}

	if ids, finish := Reference(Config{MeanLength: 5}, request(prompt, 500)); finish != engine.FinishStop || !slices.Contains(ModelEOS(), ids[len(ids)-1]) {
		t.Errorf("end id: finish %s", finish)
	}
	req = request(prompt, 500)
	req.Stop.IgnoreEOS = true
	count := func(kind string) (n int) {
		ids, finish := Reference(Config{MeanLength: 5, Kind: kind}, req)
		if len(ids) != 500 || finish != engine.FinishLength {
			t.Errorf("%s ignore_eos: %d ids, finish %s", kind, len(ids), finish)
		}
		for _, id := range ids {
			if slices.Contains(ModelEOS(), id) {
				n++
			}
		}
		return n
	}
	if n := count(KindVLLM); n < 50 || n > 200 {
		t.Errorf("vllm ignoring end ids made %d of them in 500", n)
	}
	if n := count(KindLlamaCPP); n != 0 {
		t.Errorf("llama.cpp ignoring end ids made %d of them", n)
	}
}

func TestMeanLength(t *testing.T) {
	for _, style := range []Style{StyleHash, StyleWords, StyleWhole} {
		total := 0
		const answers = 400
		for i := range answers {
			ids, _ := Reference(Config{Style: style, MeanLength: 60}, request([]engine.TokenID{engine.TokenID(i)}, 5000))
			total += len(ids)
		}
		if mean := total / answers; mean < 30 || mean > 120 {
			t.Errorf("%s: answers are %d tokens on average, want about 60", style, mean)
		}
	}
}

func TestLogitBias(t *testing.T) {
	req := request(prompt, 30)
	free, _ := Reference(Config{}, req)
	req.Sampling.LogitBias = map[engine.TokenID]float64{free[3]: -100, free[4]: 5}
	ids, _ := Reference(Config{}, req)
	if slices.Contains(ids, free[3]) || !slices.Equal(ids[:3], free[:3]) {
		t.Error("a ban does not ban, or changes what came before")
	}
	req.Sampling.LogitBias = map[engine.TokenID]float64{777: 100}
	ids, _ = Reference(Config{}, req)
	if slices.ContainsFunc(ids, func(id engine.TokenID) bool { return id != 777 }) {
		t.Error("a forced id is not forced")
	}
}

func TestHashStyleIsSharp(t *testing.T) {
	ids, _ := Reference(Config{MeanLength: -1, ContextLength: 1 << 20}, request(prompt, 20_000))
	v := embedded()
	kinds := map[string]int{}
	var text []byte
	for _, id := range ids {
		text = v.text(text, id)
		switch piece := v.pieces[id]; {
		case v.special[id]:
			kinds["special"]++
		case !utf8.ValidString(piece):
			kinds["part of a character"]++
		case len(piece) > 1 && piece[0] >= utf8.RuneSelf:
			kinds["multi-byte"]++
		case strings.HasPrefix(piece, " "):
			kinds["word"]++
		}
	}
	for _, c := range splitCharacters {
		if strings.ContainsRune(string(text), c) {
			kinds["split character"]++
		}
	}
	if bad := strings.Count(strings.ToValidUTF8(string(text), "\x00"), "\x00"); bad > 0 {
		kinds["not UTF-8"] = bad
	}
	for _, k := range []string{"special", "part of a character", "multi-byte", "word", "split character", "not UTF-8"} {
		if kinds[k] == 0 {
			t.Errorf("20,000 tokens without a single %s (%v)", k, kinds)
		}
	}
}

func TestWordsStyleWritesSentences(t *testing.T) {
	v := embedded()
	var assistant []engine.TokenID
	for _, p := range []string{"<|im_start|>", "assistant", "\n"} {
		assistant = append(assistant, v.ids[p])
	}
	ids, _ := Reference(Config{Style: StyleWords, MeanLength: -1}, request(assistant, 1500))
	text := v.all(ids)
	if c := text[0]; c < 'A' || c > 'Z' {
		t.Errorf("the text begins %q", text[:20])
	}
	longest := 0
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for sentence := range strings.SplitSeq(paragraph, ".") {
			sentence = strings.TrimSpace(sentence)
			longest = max(longest, len(strings.Fields(sentence)))
			if sentence != "" && (sentence[0] < 'A' || sentence[0] > 'Z') {
				t.Errorf("a sentence begins %q", sentence)
			}
		}
	}
	if longest > 80 {
		t.Errorf("a sentence has %d words", longest)
	}
	for _, wrong := range []string{" a old", " a apple", " an bell", " a idea", " an useful", " a honest", " ,", " .", "..", " the the"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the text holds %q", wrong)
		}
	}
	if n := strings.Count(text, "\n\n"); n < 5 {
		t.Errorf("%d paragraphs in 1500 tokens", n)
	}
}

func TestLogprobsAreFinite(t *testing.T) {
	g := newGeneration(&Config{VocabSize: 50}, prompt, engine.SamplingParams{}, engine.StopConditions{})
	for id := range engine.TokenID(50) {
		g.push(id)
		lp := g.at().logprob(id, 20, 50)
		if lp.ID != id || len(lp.Top) != 20 || lp.Top[0] != (engine.TopLogprob{ID: id, Logprob: lp.Logprob}) {
			t.Fatalf("logprob of %d: %+v", id, lp)
		}
		for i, top := range lp.Top {
			if math.IsInf(top.Logprob, 0) || math.IsNaN(top.Logprob) || top.Logprob > 0 || i > 0 && top.Logprob >= lp.Top[i-1].Logprob {
				t.Fatalf("logprobs of %d are not falling: %+v", id, lp.Top)
			}
		}
	}
}

// What a worker is told to say is said on wherever the answer was cut, also behind
// a prompt that ends as the text begins.
func TestSay(t *testing.T) {
	const say = "<think>a a a b</think>\na a <tool_call>{\"x\": \"ü😂\"}</tool_call>"
	for _, before := range [][]engine.TokenID{prompt, slices.Concat(prompt, Tokenize("<thi"))} {
		config := Config{Say: say}
		req := request(before, 200)
		whole, finish := Reference(config, req)
		if got := Detokenize(whole); finish != engine.FinishStop || !strings.HasSuffix(say+"<|im_end|>", got) || len(got) < len(say)-len("<thi") {
			t.Fatalf("%q, %s", got, finish)
		}
		for cut := 1; cut < len(whole); cut++ {
			rest := *req
			rest.TokenIDs = slices.Concat(before, whole[:cut])
			rest.Carried = cut
			if ids, f := Reference(config, &rest); !slices.Equal(ids, whole[cut:]) || f != finish {
				t.Fatalf("cut at %d goes on with %q", cut, Detokenize(ids))
			}
		}
	}
}
