package preprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine"
	"baton/model"
	"baton/openai"
)

// The folder of the simulated worker's model: byte-level BPE, 2,335 ids, a
// context of 8,192 tokens, <|im_start|>role\n…<|im_end|>\n as template.
const (
	simFolder  = "../engine/sim/model"
	simSize    = 2337
	simContext = 8192
)

// newTestPreprocessor serves the simulated worker's model as "m", with files of
// its folder replaced, or removed where the content is "".
func newTestPreprocessor(t testing.TB, files map[string]string) (*Preprocessor, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json"} {
		data, err := os.ReadFile(filepath.Join(simFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if content, ok := files[name]; ok {
			data = []byte(content)
		}
		if len(data) > 0 {
			writeFile(t, filepath.Join(dir, name), data)
		}
	}
	if template, ok := files["chat_template.jinja"]; ok {
		writeFile(t, filepath.Join(dir, "chat_template.jinja"), []byte(template))
	}
	set, err := model.NewSet(model.Options{Paths: map[string]string{"m": dir}, ServedNames: map[string]string{"own": "later"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
	return New(set, Options{Now: now}, slog.New(slog.NewTextHandler(&log, nil))), &log
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// chatBody returns a good chat body with these members added (or replaced).
func chatBody(members string) []byte {
	body := `{"model":"m","messages":[{"role":"user","content":"Hi"}]`
	if members != "" {
		body += "," + members
	}
	return []byte(body + "}")
}

func completionBody(members string) []byte {
	body := `{"model":"m","prompt":"Hi"`
	if members != "" {
		body += "," + members
	}
	return []byte(body + "}")
}

func mustChat(t testing.TB, p *Preprocessor, members string) *Prepared {
	t.Helper()
	prepared, err := p.Chat("r", chatBody(members))
	if err != nil {
		t.Fatalf("%s: %v (%s)", members, err, err.Param)
	}
	return prepared
}

func mustComplete(t testing.TB, p *Preprocessor, members string) *Prepared {
	t.Helper()
	prepared, err := p.Completion("r", completionBody(members))
	if err != nil {
		t.Fatalf("%s: %v (%s)", members, err, err.Param)
	}
	return prepared
}

// text is what the model sees.
func text(p *Prepared, choice int) string {
	r := p.Choices[choice].Request
	return r.Tokenizer.Decode(r.Tokens.TokenIDs, false)
}

func TestChatDefaults(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	prepared := mustChat(t, p, "")
	if prepared.Model != "m" || len(prepared.Choices) != 1 || prepared.Stream || prepared.Choices[0].Request.Tokens.Output.Logprobs || prepared.IncludeUsage {
		t.Errorf("%+v", prepared)
	}
	const want = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
	if got := text(prepared, 0); got != want {
		t.Errorf("prompt %q, want %q", got, want)
	}
	r := prepared.Choices[0].Request
	q := r.Tokens
	if q.ID != "r-000" || q.Model != "m" || q.VocabSize != simSize || q.ContextLength != simContext || q.Carried != 0 {
		t.Errorf("%+v", q)
	}
	if prepared.PromptTokens != len(q.TokenIDs) || q.Stop.MaxTokens != simContext-len(q.TokenIDs) {
		t.Errorf("prompt tokens %d of %d, budget %d", prepared.PromptTokens, len(q.TokenIDs), q.Stop.MaxTokens)
	}
	s := q.Sampling
	if s.Temperature != 1 || s.TopP != 1 || s.TopK != 0 || s.MinP != 0 || s.RepetitionPenalty != 1 || s.PresencePenalty != 0 ||
		s.FrequencyPenalty != 0 || s.Seed != nil || s.LogitBias != nil {
		t.Errorf("sampling %+v", s)
	}
	if len(q.Stop.EOS) != 2 || q.Stop.EOS[0] != 2334 || q.Stop.EOS[1] != 2332 || q.Stop.IgnoreEOS || q.Stop.TokenIDs != nil || q.Stop.MinTokens != 0 {
		t.Errorf("stop %+v", q.Stop)
	}
	if !r.SkipSpecial || r.IncludeStop || r.Stop != nil || r.Tokenizer == nil {
		t.Errorf("%+v", r)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

func TestModelDefaultsThenRequest(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{
		"generation_config.json": `{"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":0.1,"repetition_penalty":1.05}`,
	})
	s := mustChat(t, p, "").Choices[0].Request.Tokens.Sampling
	if s.Temperature != 0.6 || s.TopP != 0.95 || s.TopK != 20 || s.MinP != 0.1 || s.RepetitionPenalty != 1.05 {
		t.Errorf("model's defaults: %+v", s)
	}
	s = mustChat(t, p, `"temperature":0,"top_p":1,"top_k":-1,"min_p":0,"repetition_penalty":1`).Choices[0].Request.Tokens.Sampling
	if s.Temperature != 0 || s.TopP != 1 || s.TopK != 0 || s.MinP != 0 || s.RepetitionPenalty != 1 {
		t.Errorf("request's values: %+v", s)
	}
	s = mustChat(t, p, `"temperature":null,"top_k":null`).Choices[0].Request.Tokens.Sampling
	if s.Temperature != 0.6 || s.TopK != 20 {
		t.Errorf("null is absent: %+v", s)
	}
}

func TestEveryParameterArrives(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	prepared := mustChat(t, p, `
		"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"repetition_penalty":1.5,
		"presence_penalty":-2,"frequency_penalty":2,"seed":9007199254740993,
		"logit_bias":{"0":-100,"2334":100.0,"17":0.5},
		"max_tokens":100,"max_completion_tokens":40,"min_tokens":5,
		"stop":["a","\u00e9"],"stop_token_ids":[3,2334],"ignore_eos":true,
		"include_stop_str_in_output":true,"skip_special_tokens":false,
		"priority":-3,"cache_salt":"tenant","return_token_ids":true,
		"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true,"include_obfuscation":false},
		"logprobs":true,"top_logprobs":4,
		"user":"u","store":true,"metadata":{"a":"b"},"service_tier":"auto","parallel_tool_calls":true,
		"response_format":{"type":"text"},"modalities":["text"],"tools":null,"functions":null`)
	if log.Len() > 0 {
		t.Errorf("unknown: %s", log)
	}
	if !prepared.Stream || !prepared.IncludeUsage || !prepared.ContinuousUsage || !prepared.ReturnTokenIDs {
		t.Errorf("%+v", prepared)
	}
	r := prepared.Choices[0].Request
	q := r.Tokens
	s := q.Sampling
	if s.Temperature != 0.5 || s.TopP != 0.25 || s.TopK != 7 || s.MinP != 0.125 || s.RepetitionPenalty != 1.5 ||
		s.PresencePenalty != -2 || s.FrequencyPenalty != 2 || s.Seed == nil || *s.Seed != 9007199254740993 {
		t.Errorf("sampling %+v", s)
	}
	if want := map[engine.TokenID]float64{0: -100, 2334: 100, 17: 0.5}; !maps.Equal(s.LogitBias, want) {
		t.Errorf("logit bias %v", s.LogitBias)
	}
	if q.Stop.MaxTokens != 40 || q.Stop.MinTokens != 5 || !q.Stop.IgnoreEOS || len(q.Stop.TokenIDs) != 2 || q.Stop.TokenIDs[1] != 2334 {
		t.Errorf("stop %+v", q.Stop)
	}
	if q.Priority != -3 || q.CacheSalt != "tenant" || !q.Output.Logprobs || q.Output.TopLogprobs != 4 {
		t.Errorf("%+v", q)
	}
	if len(r.Stop) != 2 || r.Stop[1] != "é" || !r.IncludeStop || r.SkipSpecial {
		t.Errorf("%+v", r)
	}
}

func TestIntegersAreExact(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for text, want := range map[string]int64{
		"9007199254740993":     9007199254740993,
		"9223372036854775807":  9223372036854775807,
		"-9223372036854775808": -9223372036854775808,
		"0":                    0, "-0": 0, "5.0": 5, "1e3": 1000,
	} {
		if seed := mustChat(t, p, `"seed":`+text).Choices[0].Request.Tokens.Sampling.Seed; *seed != want {
			t.Errorf("%s became %d", text, *seed)
		}
	}
}

func TestBudget(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	promptTokens := mustChat(t, p, "").PromptTokens
	room := simContext - promptTokens
	for members, want := range map[string]int{
		`"max_tokens":null`:                                 room,
		`"max_tokens":7`:                                    7,
		`"max_completion_tokens":7`:                         7,
		`"max_tokens":9,"max_completion_tokens":7`:          7,
		`"max_tokens":7,"max_completion_tokens":9`:          7,
		`"max_tokens":9999999999999`:                        room,
		`"max_tokens":8192`:                                 room,
		`"max_tokens":9007199254740993,"min_tokens":900000`: room,
	} {
		q := mustChat(t, p, members).Choices[0].Request.Tokens
		if q.Stop.MaxTokens != want || q.Stop.MinTokens > want {
			t.Errorf("%s: %d, want %d (min %d)", members, q.Stop.MaxTokens, want, q.Stop.MinTokens)
		}
	}
	if got := mustComplete(t, p, "").Choices[0].Request.Tokens.Stop.MaxTokens; got != 16 {
		t.Errorf("completions: %d, want 16", got)
	}
}

func TestContextOfTheWorkersCounts(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	length := 10
	p.options.ContextLength = func(name string) int {
		if name != "m" {
			t.Errorf("asked for %s", name)
		}
		return length
	}
	ids := func(n int) []byte {
		return completionBody(`"max_tokens":5,"prompt":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]`)
	}
	prepared, err := p.Completion("r", ids(9))
	if err != nil {
		t.Fatal(err)
	}
	if q := prepared.Choices[0].Request.Tokens; q.ContextLength != 10 || q.Stop.MaxTokens != 1 {
		t.Errorf("context %d, budget %d; one token has room", q.ContextLength, q.Stop.MaxTokens)
	}
	_, err = p.Completion("r", ids(10))
	if err == nil || err.Status != 400 || err.Code != openai.CodeContextLengthExceeded || err.Param != "prompt" ||
		!strings.Contains(err.Message, "10 tokens") {
		t.Errorf("prompt as long as the context: %+v", err)
	}
	_, err = p.Chat("r", chatBody(`"messages":[{"role":"user","content":"one two three four five six seven eight nine ten"}]`))
	if err == nil || err.Code != openai.CodeContextLengthExceeded || err.Param != "messages" {
		t.Errorf("%+v", err)
	}

	length = 0
	if q := mustChat(t, p, "").Choices[0].Request.Tokens; q.ContextLength != simContext {
		t.Errorf("context %d: where no worker says, the model's files do", q.ContextLength)
	}
}

func TestContextUnknown(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"config.json": ""})
	q := mustChat(t, p, "").Choices[0].Request.Tokens
	if q.ContextLength != 0 || q.Stop.MaxTokens < 1<<20 {
		t.Errorf("context %d, budget %d", q.ContextLength, q.Stop.MaxTokens)
	}
}

func TestChoices(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	prepared, err := p.Completion("base", completionBody(`"prompt":["Hi","you"],"n":2,"seed":40`))
	if err != nil {
		t.Fatal(err)
	}
	if len(prepared.Choices) != 4 {
		t.Fatalf("%d choices", len(prepared.Choices))
	}
	for i, want := range []struct {
		id, text string
		seed     int64
	}{{"base-000", "Hi", 40}, {"base-001", "Hi", 41}, {"base-002", "you", 40}, {"base-003", "you", 41}} {
		q := prepared.Choices[i].Request.Tokens
		if q.ID != want.id || text(prepared, i) != want.text || *q.Sampling.Seed != want.seed {
			t.Errorf("choice %d: %s %q %d", i, q.ID, text(prepared, i), *q.Sampling.Seed)
		}
	}
	a, b := prepared.Choices[0].Request.Tokens.TokenIDs, prepared.Choices[2].Request.Tokens.TokenIDs
	if prepared.PromptTokens != len(a)+len(b) {
		t.Errorf("prompt tokens %d: each prompt counts once", prepared.PromptTokens)
	}
	// Choices share the prompt; one that grows it must not write into the other's.
	if cap(a) != len(a) {
		t.Error("the shared ids have room to append")
	}
	if seed := mustChat(t, p, `"n":3`).Choices[2].Request.Tokens.Sampling.Seed; seed != nil {
		t.Error("a seed was made up")
	}
	if n := len(mustChat(t, p, `"n":128`).Choices); n != 128 {
		t.Errorf("%d choices", n)
	}
}

func TestPromptForms(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for prompt, want := range map[string][]string{
		`"Hi"`:             {"Hi"},
		`["Hi"]`:           {"Hi"},
		`["Hi","you"]`:     {"Hi", "you"},
		`[ 2334, 2332 ]`:   {"<|im_end|><|endoftext|>"},
		`[[2334],[2332 ]]`: {"<|im_end|>", "<|endoftext|>"},
	} {
		prepared, err := p.Completion("r", completionBody(`"prompt":`+prompt))
		if err != nil {
			t.Errorf("%s: %v", prompt, err)
			continue
		}
		if len(prepared.Choices) != len(want) {
			t.Errorf("%s: %d choices", prompt, len(prepared.Choices))
			continue
		}
		for i := range want {
			if got := text(prepared, i); got != want[i] {
				t.Errorf("%s: %q", prompt, got)
			}
		}
	}
}

func TestEcho(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for members, want := range map[string]string{
		`"echo":true`:                 "Hi",
		`"echo":false`:                "",
		`"echo":true,"prompt":[2334]`: "",
		`"echo":true,"prompt":[2334],"skip_special_tokens":false`: "<|im_end|>",
		`"echo":true,"prompt":"x<|im_end|>"`:                      "x<|im_end|>",
	} {
		if got := mustComplete(t, p, members).Choices[0].Echo; got != want {
			t.Errorf("%s: %q", members, got)
		}
	}
}

// bosProcessor makes the simulated worker's tokenizer one that puts <|im_start|>
// before each text.
const bosProcessor = `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|im_start|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],` +
	`"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],` +
	`"special_tokens":{"<|im_start|>":{"id":"<|im_start|>","ids":[2333],"tokens":["<|im_start|>"]}}}`

func TestSpecialTokensAroundAPrompt(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(simFolder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	file["post_processor"] = json.RawMessage(bosProcessor)
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	p, _ := newTestPreprocessor(t, map[string]string{"tokenizer.json": string(data)})

	if got := text(mustComplete(t, p, ""), 0); got != "<|im_start|>Hi" {
		t.Errorf("completion: %q, want the beginning of a text", got)
	}
	if got := text(mustComplete(t, p, `"add_special_tokens":false`), 0); got != "Hi" {
		t.Errorf("completion without: %q", got)
	}
	if got := text(mustComplete(t, p, `"prompt":[2334]`), 0); got != "<|im_end|>" {
		t.Errorf("ids are used unchanged: %q", got)
	}
	if got := text(mustComplete(t, p, `"prompt":""`), 0); got != "<|im_start|>" {
		t.Errorf("empty text: %q", got)
	}
	if got := text(mustChat(t, p, ""), 0); !strings.HasPrefix(got, "<|im_start|>user\n") {
		t.Errorf("chat: %q, want nothing before the rendered text", got)
	}
}

func TestUnknownFields(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	prepared := mustChat(t, p, `"zeta":{"deep":[1,{"secret text":null}]},"temperature":0.5,"nvext":{"annotations":[]},"zeta":2`)
	if prepared.Choices[0].Request.Tokens.Sampling.Temperature != 0.5 {
		t.Error("an unknown field changed something")
	}
	mustChat(t, p, `"zeta":1`)
	for _, name := range []string{"zeta", "nvext"} {
		if n := strings.Count(log.String(), "field="+name); n != 1 {
			t.Errorf("%s logged %d times: %s", name, n, log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("logged too much: %s", log)
	}
}

func TestUnknownFieldNamesAreBounded(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	for i := range 20 {
		var members []string
		for j := range 40 {
			members = append(members, fmt.Sprintf(`"f%d_%d%s":0`, i, j, strings.Repeat(`\n`, j)))
		}
		mustChat(t, p, strings.Join(members, ","))
		if n := strings.Count(log.String(), "\n"); i == 0 && n != maxReportedUnknown {
			t.Fatalf("%d records of one request", n)
		}
	}
	if n := strings.Count(log.String(), "\n"); n > maxUnknownNames {
		t.Errorf("%d records", n)
	}
	if max := maxUnknownNames * 300; log.Len() > max {
		t.Errorf("log of %d bytes", log.Len())
	}
}

func TestDuplicateKeys(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	prepared := mustChat(t, p, `"temperature":"wrong","temperature":0.25,"messages":[{"role":"user","role":"system","content":[{"type":"image_url"}],"content":"last"}]`)
	if got := prepared.Choices[0].Request.Tokens.Sampling.Temperature; got != 0.25 {
		t.Errorf("temperature %v", got)
	}
	if got := text(prepared, 0); !strings.Contains(got, "<|im_start|>system\nlast<|im_end|>") {
		t.Errorf("%q", got)
	}
	if got := mustChat(t, p, `"temperat\u0075re":0.75`).Choices[0].Request.Tokens.Sampling.Temperature; got != 0.75 {
		t.Errorf("an escaped name is a name: %v", got)
	}
}

func TestBodyMayBeReused(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	body := chatBody(`"stop":["halt"],"cache_salt":"salt"`)
	prepared, err := p.Chat("r", body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 'x'
	}
	if r := prepared.Choices[0].Request; r.Stop[0] != "halt" || r.Tokens.CacheSalt != "salt" {
		t.Error("the result points into the body")
	}
}

func TestConcurrentUse(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	want := mustChat(t, p, "").PromptTokens
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				prepared, err := p.Chat("r", chatBody(fmt.Sprintf(`"field%d":%d`, j, i)))
				if err != nil || prepared.PromptTokens != want {
					t.Errorf("%v, %v", prepared, err)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(log.String(), "\n"); n != 20 {
		t.Errorf("%d records for 20 names", n)
	}
}
