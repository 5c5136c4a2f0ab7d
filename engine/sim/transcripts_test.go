package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine"
)

// The transcripts in testdata are what live engines sent. For the same request
// the simulated worker must send the same frames: the same keys in the same
// order, the same endings; only values differ.

// start serves a worker on loopback and returns its address.
func start(t *testing.T, config Config) (*Server, string) {
	t.Helper()
	s := NewServer(config)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		s.Kill()
		ts.Close()
	})
	return s, ts.URL
}

func post(t *testing.T, url string, body any, header ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(encodeJSON(body)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(data), err)
	}
	return resp.StatusCode, data
}

func transcript(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// frames cuts a stream at its blank lines.
func frames(stream []byte) []string {
	var all []string
	for f := range strings.SplitSeq(string(stream), "\n\n") {
		if f != "" {
			all = append(all, f)
		}
	}
	return all
}

// literal are the keys whose values are compared, not only their types.
var literal = []string{"object", "finish_reason", "stop_type", "output_mode", "type", "code", "owned_by", "index", "stop", "id_slot_",
	"version", "rank", "truncated", "has_new_line", "tokens_predicted"}

// shape is a frame with its values replaced by their types.
func shape(frame string) string {
	data, ok := strings.CutPrefix(frame, "data: ")
	if !ok && !strings.HasPrefix(frame, "{") && !strings.HasPrefix(frame, "[") {
		return frame
	}
	if data == "[DONE]" {
		return data
	}
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	var b strings.Builder
	if err := shapeValue(&b, d, "", false); err != nil {
		return fmt.Sprintf("%v in %s", err, frame)
	}
	return b.String()
}

func shapeValue(b *strings.Builder, d *json.Decoder, key string, exact bool) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	exact = exact || slices.Contains(literal, key) || key == "generation_settings"
	switch v := token.(type) {
	case json.Delim:
		b.WriteRune(rune(v))
		before := ""
		for i := 0; d.More(); i++ {
			var item strings.Builder
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				key = name.(string)
				if strings.HasPrefix(key, "token_id:") {
					key = "token_id:…"
				}
				item.WriteString(key + ":")
			}
			if err := shapeValue(&item, d, key, exact); err != nil {
				return err
			}
			if v == '[' && item.String() == before {
				continue // a list of such
			}
			before = item.String()
			b.WriteString(before + " ")
		}
		end, err := d.Token()
		if err != nil {
			return err
		}
		b.WriteRune(rune(end.(json.Delim)))
	case json.Number:
		switch {
		case exact:
			b.WriteString(v.String())
		case strings.ContainsAny(v.String(), ".e"):
			b.WriteString("float")
		default:
			b.WriteString("int")
		}
	case string:
		if exact {
			fmt.Fprintf(b, "%q", v)
		} else {
			b.WriteString("string")
		}
	default:
		fmt.Fprint(b, v)
	}
	return nil
}

// compare holds what the worker sent against a transcript, frame by frame. With
// tail > 0 only so many frames at the end, and the first, are compared.
func compare(t *testing.T, name string, got []byte, tail int) {
	t.Helper()
	want, have := frames(transcript(t, name)), frames(got)
	if tail > 0 && len(want) > tail+1 && len(have) > tail+1 {
		want = append(want[:1:1], want[len(want)-tail:]...)
		have = append(have[:1:1], have[len(have)-tail:]...)
	}
	if len(want) != len(have) {
		t.Fatalf("%s: %d frames, want %d:\n%s", name, len(have), len(want), got)
	}
	for i := range want {
		if w, h := shape(want[i]), shape(have[i]); w != h {
			t.Errorf("%s: frame %d:\n got %s\nwant %s", name, i, h, w)
		}
	}
}

func ids(n int) []engine.TokenID {
	out := make([]engine.TokenID, n)
	for i := range out {
		out[i] = engine.TokenID(300 + i%1500)
	}
	return out
}

// endingAfter returns a prompt of length n whose answer is exactly so many
// tokens long, the end id included, none of them part of a character.
func endingAfter(t *testing.T, config Config, n, tokens int) []engine.TokenID {
	t.Helper()
	prompt := ids(n)
	for prompt[0] = 300; prompt[0] < 2000; prompt[0]++ {
		if answer, finish := Reference(config, request(prompt, 100)); finish == engine.FinishStop && len(answer) == tokens {
			return prompt
		}
	}
	t.Fatal("no such prompt")
	return nil
}

// real is the configuration of the live servers, as far as it shows.
func real(kind string) Config {
	config := Config{Kind: kind, Style: StyleWhole, ContextLength: 2048, MeanLength: -1, Model: "smol", Server: ServerConfig{ScaleOut: true, ModelPath: "model"}}
	if kind == KindLlamaCPP {
		config.Model = "SmolLM2-135M-Instruct.Q4_1.gguf"
	}
	return config
}

type jsonObject map[string]any

func TestVLLMCompletionsFollowTheTranscripts(t *testing.T) {
	config := real(KindVLLM)
	s, url := start(t, config)
	url += vllmCompletions
	call := func(more jsonObject) []byte {
		body := jsonObject{"model": "smol", "prompt": ids(2), "max_tokens": 4, "temperature": 0, "stream": true, "return_token_ids": true}
		for k, v := range more {
			body[k] = v
		}
		status, got := post(t, url, body, "X-Request-Id", "gw-7f.1")
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, got)
		}
		return got
	}
	usage := jsonObject{"include_usage": true}
	compare(t, "vllm/completions-limit.sse", call(jsonObject{"stream_options": usage, "prompt": ids(33)}), 0)
	if got := call(nil); !bytes.Contains(got, []byte(`{"id":"cmpl-gw-7f.1","object":"text_completion"`)) {
		t.Errorf("the id is not as vLLM makes it: %s", got)
	}
	compare(t, "vllm/completions-continuous-usage.sse", call(jsonObject{"max_tokens": 2, "stream_options": jsonObject{"include_usage": true, "continuous_usage_stats": true}}), 0)
	compare(t, "vllm/completions-logprobs.sse", call(jsonObject{"max_tokens": 3, "logprobs": 2, "return_tokens_as_token_ids": true}), 0)
	whole, _ := s.Reference(request(ids(2), 10))
	got := call(jsonObject{"stop_token_ids": whole[2:3]})
	compare(t, "vllm/completions-stop-id.sse", got, 0)
	if !bytes.Contains(got, fmt.Appendf(nil, `"text":"","logprobs":null,"finish_reason":"stop","stop_reason":%d,`, whole[2])) {
		t.Errorf("stop_reason is not the id: %s", got)
	}

	// Of three tokens " xx", " yyyyy", " zzzz" the stop string begins within the
	// second and ends within the third.
	text := Detokenize(whole[:3])
	stop := text[len(Detokenize(whole[:1]))+1 : len(text)-1]
	got = call(jsonObject{"stop": []string{stop}, "max_tokens": 9})
	compare(t, "vllm/completions-stop-string.sse", got, 0)
	var told strings.Builder
	for _, f := range frames(got) {
		var chunk completionChunk
		if json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &chunk) == nil {
			told.WriteString(chunk.Choices[0].Text)
		}
	}
	if want := text[:strings.Index(text, stop)]; told.String() != want || !bytes.Contains(got, append([]byte(`"stop_reason":`), encodeJSON(stop)...)) {
		t.Errorf("stop string %q in %q: told %q, want %q", stop, text, told.String(), want)
	}

	s.SetFaults(Fault{Kind: FaultShutdown, After: 12})
	compare(t, "vllm/completions-kill9-engine-core.sse", call(jsonObject{"max_tokens": 99}), 2)
	s.SetFaults(Fault{Kind: FaultAbort, After: 12})
	compare(t, "vllm/completions-abort-endpoint.sse", call(jsonObject{"max_tokens": 99}), 2)
	s.SetFaults(Fault{Kind: FaultAbort})
	if got := call(nil); string(got) != "data: [DONE]\n\n" {
		t.Errorf("an abort before the first token: %s", got)
	}
	s.SetFaults()
	s.Drain()
	compare(t, "vllm/completions-during-drain.sse", call(nil), 0)

	config.MeanLength = 6
	_, url = start(t, config)
	url += vllmCompletions
	compare(t, "vllm/completions-eos.sse", call(jsonObject{"stream_options": usage, "max_tokens": 50, "prompt": endingAfter(t, config, 2, 4)}), 0)
}

func TestVLLMGenerateFollowsTheTranscripts(t *testing.T) {
	config := real(KindVLLM)
	s, url := start(t, config)
	call := func(prompt []engine.TokenID, sampling, more jsonObject) []byte {
		sampling["temperature"] = 0
		body := jsonObject{"token_ids": prompt, "stream": true, "sampling_params": sampling}
		for k, v := range more {
			body[k] = v
		}
		status, got := post(t, url+vllmGenerate, body, "X-Request-Id", "gw-7f.1")
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, got)
		}
		return got
	}
	usage := jsonObject{"stream_options": jsonObject{"include_usage": true}}
	compare(t, "vllm/generate-limit.sse", call(ids(33), jsonObject{"max_tokens": 4}, usage), 0)
	compare(t, "vllm/generate-logprobs.sse", call(ids(2), jsonObject{"max_tokens": 3, "logprobs": 2}, nil), 0)
	whole, _ := s.Reference(request(ids(2), 10))
	compare(t, "vllm/generate-stop-id.sse", call(ids(2), jsonObject{"max_tokens": 9, "stop_token_ids": whole[2:3]}, nil), 0)
	s.SetFaults(Fault{Kind: FaultShutdown, After: 12})
	compare(t, "vllm/generate-kill9-engine-core.sse", call(ids(2), jsonObject{"max_tokens": 99}, nil), 2)
	s.SetFaults(Fault{Kind: FaultAbort, After: 53})
	compare(t, "vllm/generate-abort-endpoint.sse", call(ids(2), jsonObject{"max_tokens": 99}, nil), 2)
	s.SetFaults()
	for name, got := range map[string][]byte{
		"vllm/generate-over-long.sse":            call(ids(3000), jsonObject{"max_tokens": 4}, nil),
		"vllm/generate-id-out-of-vocabulary.sse": call([]engine.TokenID{1, 999999}, jsonObject{"max_tokens": 4}, nil),
	} {
		if want := transcript(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	config.MeanLength = 6
	_, url = start(t, config)
	compare(t, "vllm/generate-eos.sse", call(endingAfter(t, config, 2, 4), jsonObject{"max_tokens": 50}, nil), 0)
}

func TestVLLMRefusesAsTheTranscriptsShow(t *testing.T) {
	s, url := start(t, real(KindVLLM))
	body := func(prompt []engine.TokenID, more jsonObject) jsonObject {
		b := jsonObject{"model": "smol", "prompt": prompt, "max_tokens": 100, "stream": true}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	exact := func(name string, status int, b jsonObject) {
		t.Helper()
		gotStatus, got := post(t, url+vllmCompletions, b)
		if want := bytes.TrimSpace(transcript(t, name)); gotStatus != status || !bytes.Equal(got, want) {
			t.Errorf("%s: status %d\n got %s\nwant %s", name, gotStatus, got, want)
		}
	}
	exact("vllm/completions-over-long.json", 400, body(ids(3000), nil))
	exact("vllm/completions-prompt-fills-context.json", 400, body(ids(2048), nil))
	exact("vllm/completions-unknown-model.json", 404, body(ids(2), jsonObject{"model": "nope"}))
	s.SetFaults(Fault{Kind: FaultStatus})
	exact("vllm/completions-queue-full.json", 503, body(ids(2), nil))
	s.SetFaults()

	for name, b := range map[string]jsonObject{
		"max_tokens 0":               body(ids(2), jsonObject{"max_tokens": 0}),
		"a foreign id":               body([]engine.TokenID{999999}, nil),
		"a negative id":              body([]engine.TokenID{-1}, nil),
		"no prompt":                  {"model": "smol"},
		"an empty prompt":            body([]engine.TokenID{}, nil),
		"temperature":                body(ids(2), jsonObject{"temperature": -1}),
		"top_p":                      body(ids(2), jsonObject{"top_p": 0}),
		"presence_penalty":           body(ids(2), jsonObject{"presence_penalty": 3}),
		"min_tokens over max_tokens": body(ids(2), jsonObject{"min_tokens": 101}),
		"logprobs":                   body(ids(2), jsonObject{"logprobs": 21}),
		"a foreign bias":             body(ids(2), jsonObject{"logit_bias": jsonObject{"999999": 1}}),
		"two constraints":            body(ids(2), jsonObject{"structured_outputs": jsonObject{"regex": "a", "json": jsonObject{}}}),
		"a wrong type":               body(ids(2), jsonObject{"max_tokens": "many"}),
		"stream options, no stream":  body(ids(2), jsonObject{"stream": false, "stream_options": jsonObject{"include_usage": true}}),
	} {
		if status, got := post(t, url+vllmCompletions, b); status != http.StatusBadRequest || !bytes.Contains(got, []byte(`"code":400`)) {
			t.Errorf("%s: status %d, %s", name, status, got)
		}
	}
	for name, b := range map[string]jsonObject{
		"top_k 0":  body(ids(2), jsonObject{"top_k": 0, "max_tokens": 1}),
		"top_k -1": body(ids(2), jsonObject{"top_k": -1, "max_tokens": 1}),
		"priority": body(ids(2), jsonObject{"priority": 3, "max_tokens": 1}),
	} {
		if status, got := post(t, url+vllmCompletions, b); status != http.StatusOK {
			t.Errorf("%s: status %d, %s", name, status, got)
		}
	}

	closed := real(KindVLLM)
	closed.Server.ScaleOut = false
	_, url = start(t, closed)
	status, got := post(t, url+vllmGenerate, jsonObject{"token_ids": ids(2), "sampling_params": jsonObject{}})
	if status != http.StatusForbidden || !bytes.Contains(got, []byte("PermissionDeniedError")) || !bytes.Contains(got, []byte("Scale-out endpoints are disabled")) {
		t.Errorf("generate without scale-out: %d %s", status, got)
	}
}

func TestLlamaCPPFollowsTheTranscripts(t *testing.T) {
	config := real(KindLlamaCPP)
	s, url := start(t, config)
	call := func(prompt []engine.TokenID, more jsonObject) []byte {
		body := jsonObject{"prompt": prompt, "stream": true, "return_tokens": true, "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0}
		for k, v := range more {
			body[k] = v
		}
		status, got := post(t, url+"/completion", body)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, got)
		}
		return got
	}
	compare(t, "llamacpp/limit.sse", call(ids(33), jsonObject{"n_predict": 3}), 0)
	compare(t, "llamacpp/n-predict-0.sse", call(ids(33), jsonObject{"n_predict": 0}), 0)
	compare(t, "llamacpp/logprobs.sse", call(ids(33), jsonObject{"n_predict": 3, "n_probs": 2}), 0)
	if got := frames(call(ids(33), jsonObject{"n_predict": 2, "max_tokens": 9})); len(got) != 3 {
		t.Errorf("n_predict beside max_tokens: %d frames", len(got))
	}

	whole, _ := s.Reference(request(ids(33), 12))
	stop := strings.TrimPrefix(Detokenize(whole[10:12]), " ")
	got := call(ids(33), jsonObject{"n_predict": 200, "stop": []string{stop}})
	compare(t, "llamacpp/stop-word.sse", bytes.ReplaceAll(got, []byte(stop), []byte("kind of")), 0)
	if f := frames(got); !strings.Contains(f[len(f)-1], string(encodeJSON(stop))) || !strings.HasPrefix(f[10], `data: {"index":0,"content":"","tokens":[`) {
		t.Errorf("stop word %q: %s", stop, got)
	}

	config.MeanLength = 30
	s, url = start(t, config)
	got = call(endingAfter(t, config, 33, 25), jsonObject{"n_predict": 200})
	compare(t, "llamacpp/eos.sse", got, 0)
	if f := frames(got); !strings.HasPrefix(f[24], fmt.Sprintf(`data: {"index":0,"content":"","tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":25,`, s.config.EOS[0])) &&
		!strings.HasPrefix(f[24], fmt.Sprintf(`data: {"index":0,"content":"","tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":25,`, s.config.EOS[1])) {
		t.Errorf("the end id's frame: %s", f[24])
	}

	_, url = start(t, Config{Kind: KindLlamaCPP, ContextLength: 20})
	got = call(ids(19), jsonObject{"n_predict": 5})
	if f := frames(got); len(f) != 2 || !strings.Contains(f[1], `"truncated":true,"stop_type":"limit"`) {
		t.Errorf("a prompt one short of the context: %s", got)
	}
}

func TestLlamaCPPLosesIDs(t *testing.T) {
	config := Config{Kind: KindLlamaCPP, MeanLength: -1}
	s, url := start(t, config)
	req := request(ids(5), 300)
	want, _ := s.Reference(req)
	body := jsonObject{"prompt": ids(5), "stream": true, "return_tokens": true, "n_predict": 300}
	_, stream := post(t, url+"/completion", body)
	lost, before := 0, 0
	for _, f := range frames(stream) {
		var frame llamaFrame
		if err := json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Stop {
			break
		}
		gap := frame.TokensPredicted - before - 1
		lost, before = lost+gap, frame.TokensPredicted
		if frame.Tokens[0] != want[before-1] {
			t.Fatalf("frame with count %d has id %d, want %d", before, frame.Tokens[0], want[before-1])
		}
	}
	if lost < 20 {
		t.Errorf("only %d ids are lost in 300 tokens of all sorts", lost)
	}
	body["stream"] = false
	_, whole := post(t, url+"/completion", body)
	var final struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	if err := json.Unmarshal(whole, &final); err != nil || !slices.Equal(final.Tokens, want) {
		t.Errorf("unstreamed: %d ids, %v; want all %d", len(final.Tokens), err, len(want))
	}
}

func TestLlamaCPPRefusesAsTheTranscriptsShow(t *testing.T) {
	s, url := start(t, real(KindLlamaCPP))
	exact := func(name string, status int, b jsonObject) {
		t.Helper()
		gotStatus, got := post(t, url+"/completion", b)
		if want := bytes.TrimSpace(transcript(t, name)); gotStatus != status || !bytes.Equal(got, want) {
			t.Errorf("%s: status %d\n got %s\nwant %s", name, gotStatus, got, want)
		}
	}
	exact("llamacpp/over-long.json", 400, jsonObject{"prompt": ids(3000)})
	exact("llamacpp/bad-token-id.json", 400, jsonObject{"prompt": []int{1, 999999}})
	exact("llamacpp/bad-token-id.json", 400, jsonObject{"prompt": []int{-1}})
	exact("llamacpp/bad-grammar.json", 400, jsonObject{"prompt": ids(3), "grammar": "nonsense"})
	s.SetFaults(Fault{Kind: FaultStatus, Status: 503})
	exact("llamacpp/loading.json", 503, jsonObject{"prompt": ids(3)})
	s.SetFaults()
	for name, b := range map[string]jsonObject{"empty": {"prompt": []int{}}, "none": {}, "wrong type": {"prompt": ids(2), "n_predict": "x"}} {
		if status, got := post(t, url+"/completion", b); status != http.StatusBadRequest || !bytes.Contains(got, []byte("invalid_request_error")) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for _, ignored := range []any{[][]any{{999999, 5}}, jsonObject{"5": false}} {
		if status, got := post(t, url+"/completion", jsonObject{"prompt": ids(2), "n_predict": 1, "logit_bias": ignored, "min_tokens": 3}); status != http.StatusOK {
			t.Errorf("%v: %d %s", ignored, status, got)
		}
	}
}

func TestDiscoveryFollowsTheTranscripts(t *testing.T) {
	get := func(url string) []byte {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", url, resp.StatusCode, err)
		}
		return bytes.TrimSpace(data)
	}
	_, vllm := start(t, real(KindVLLM))
	_, llama := start(t, real(KindLlamaCPP))
	for name, url := range map[string]string{
		"vllm/v1-models.json": vllm + "/v1/models", "vllm/version.json": vllm + "/version",
		"llamacpp/health.json": llama + "/health", "llamacpp/v1-models.json": llama + "/v1/models", "llamacpp/props.json": llama + "/props",
	} {
		got := strings.Replace(shape(string(get(url))), "supports_tools:true", "supports_tools:false", 1) // our template knows tools
		if want := shape(string(bytes.TrimSpace(transcript(t, name)))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if got := get(vllm + "/health"); len(got) != 0 {
		t.Errorf("vLLM's health has a body: %s", got)
	}
	if got := get(vllm + "/metrics"); !bytes.Contains(got, []byte("vllm:num_requests_running{")) {
		t.Errorf("metrics: %s", got)
	}
	if got := get(llama + "/metrics"); !bytes.Contains(got, []byte("llamacpp:requests_processing 0")) {
		t.Errorf("metrics: %s", got)
	}
	if got := get(llama + "/slots"); !bytes.Contains(got, []byte(`"is_processing":false`)) {
		t.Errorf("slots: %s", got)
	}
}

func TestTokenize(t *testing.T) {
	v := embedded()
	_, vllm := start(t, Config{})
	_, llama := start(t, Config{Kind: KindLlamaCPP})
	text := "<|im_start|>user\nThe old sailor\r\n\t12 times: Grüße, 世界 🌍😂!<|im_end|>\n  it's"
	var fromVLLM, fromLlama struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	_, got := post(t, vllm+"/tokenize", jsonObject{"model": "sim", "prompt": text})
	if err := json.Unmarshal(got, &fromVLLM); err != nil || v.all(fromVLLM.Tokens) != text || fromVLLM.Tokens[0] != v.ids["<|im_start|>"] {
		t.Errorf("%s: %v", got, err)
	}
	_, got = post(t, llama+"/tokenize", jsonObject{"content": text})
	if err := json.Unmarshal(got, &fromLlama); err != nil || !slices.Equal(fromLlama.Tokens, fromVLLM.Tokens) {
		t.Errorf("%s: %v", got, err)
	}
	_, got = post(t, llama+"/tokenize", jsonObject{"content": "😂", "with_pieces": true})
	if !bytes.Contains(got, []byte(`"piece":[240,159,152]`)) {
		t.Errorf("pieces: %s", got)
	}
	_, got = post(t, llama+"/detokenize", jsonObject{"tokens": fromLlama.Tokens})
	var back struct{ Content string }
	if err := json.Unmarshal(got, &back); err != nil || back.Content != text {
		t.Errorf("detokenize: %s %v", got, err)
	}
}
