package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
)

// followsSGLang compares with a transcript, but for what the live server had in its
// prefix cache.
func followsSGLang(t *testing.T, name string, got []byte, tail int) {
	t.Helper()
	want, have := frames(bytes.ReplaceAll(transcript(t, "sglang/"+name), []byte(`{"device":1,"host":0}`), []byte("null"))), frames(got)
	if tail > 0 && len(want) > tail && len(have) > tail {
		want, have = want[len(want)-tail:], have[len(have)-tail:]
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

func TestSGLangFollowsTheTranscripts(t *testing.T) {
	config := real(KindSGLang)
	s, url := start(t, config)
	call := func(prompt []engine.TokenID, params, more jsonObject) []byte {
		params["temperature"] = 0
		body := jsonObject{"input_ids": prompt, "stream": true, "rid": "gw-7f-1", "sampling_params": params}
		for k, v := range more {
			body[k] = v
		}
		status, got := post(t, url+"/generate", body)
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, got)
		}
		return got
	}
	followsSGLang(t, "generate-cumulative-limit.sse", call(ids(2), jsonObject{"max_new_tokens": 4}, nil), 0)
	followsSGLang(t, "generate-min-tokens.sse", call(ids(2), jsonObject{"max_new_tokens": 6, "min_new_tokens": 6}, nil), 0)
	followsSGLang(t, "generate-max-0.sse", call(ids(2), jsonObject{"max_new_tokens": 0}, nil), 0)
	followsSGLang(t, "generate-logprobs.sse", call(ids(2), jsonObject{"max_new_tokens": 2}, jsonObject{"return_logprob": true, "top_logprobs_num": 2}), 0)
	whole, _ := s.Reference(request(ids(2), 10))
	got := call(ids(2), jsonObject{"max_new_tokens": 9, "stop_token_ids": whole[2:3]}, nil)
	followsSGLang(t, "generate-stop-id.sse", bytes.ReplaceAll(got, encodeJSON(whole[2]), []byte("1774")), 0)
	if f := frames(got); !strings.Contains(f[2], string(encodeJSON(Detokenize(whole[:2])))) {
		t.Errorf("the stop id has a text: %s", f[2])
	}
	s.SetFaults(Fault{Kind: FaultAbort, After: 28})
	followsSGLang(t, "generate-abort-endpoint.sse", call(ids(2), jsonObject{"max_new_tokens": 99}, nil), 2)
	s.SetFaults()

	config.MeanLength = 6
	_, url = start(t, config)
	got = call(endingAfter(t, config, 2, 4), jsonObject{"max_new_tokens": 50}, nil)
	for _, end := range ModelEOS() {
		got = bytes.ReplaceAll(got, append([]byte(`"matched":`), encodeJSON(end)...), []byte(`"matched":2`))
	}
	followsSGLang(t, "generate-eos.sse", got, 0)

	config.Server.Incremental = true
	endless := real(KindSGLang)
	endless.Server.Incremental = true
	_, url = start(t, endless)
	followsSGLang(t, "generate-incremental-stop-id.sse", bytes.ReplaceAll(call(ids(2), jsonObject{"max_new_tokens": 9, "stop_token_ids": whole[2:3]}, nil), encodeJSON(whole[2]), []byte("1774")), 0)
	followsSGLang(t, "generate-incremental-limit.sse", call(ids(2), jsonObject{"max_new_tokens": 4}, nil), 0)
	endless.Deltas = []int{2, 1} // as the live server joined them, because its client was slow
	_, url = start(t, endless)
	followsSGLang(t, "generate-incremental-logprobs.sse", call(ids(2), jsonObject{"max_new_tokens": 3}, jsonObject{"return_logprob": true, "top_logprobs_num": 2}), 0)
	followsSGLang(t, "generate-incremental-own-limit.sse", call(ids(2042), jsonObject{"max_new_tokens": 2}, nil), 0)
	_, url = start(t, config)
	for i, f := range frames(call(endingAfter(t, config, 2, 4), jsonObject{"max_new_tokens": 50}, jsonObject{"return_logprob": true})) {
		var chunk struct {
			OutputIDs []engine.TokenID `json:"output_ids"`
			Meta      struct {
				Count    int      `json:"completion_tokens"`
				Logprobs [][3]any `json:"output_token_logprobs"`
			} `json:"meta_info"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &chunk); i < 4 && (err != nil || len(chunk.OutputIDs) != 1 || chunk.Meta.Count != i+1 || len(chunk.Meta.Logprobs) != 1) {
			t.Errorf("incremental: %s", f)
		}
	}
}

func TestSGLangRefusesAsTheTranscriptsShow(t *testing.T) {
	s, url := start(t, real(KindSGLang))
	exact := func(name string, status int, body jsonObject) {
		t.Helper()
		gotStatus, got := post(t, url+"/generate", body)
		if want := bytes.TrimSpace(transcript(t, "sglang/"+name)); gotStatus != status || !bytes.Equal(bytes.TrimSpace(got), want) {
			t.Errorf("%s: status %d\n got %s\nwant %s", name, gotStatus, got, want)
		}
	}
	params := func(more jsonObject) jsonObject {
		return jsonObject{"input_ids": ids(2), "stream": true, "sampling_params": more}
	}
	exact("generate-over-long.json", 400, jsonObject{"input_ids": ids(3000), "sampling_params": jsonObject{"max_new_tokens": 4}})
	exact("generate-over-long.sse", 200, jsonObject{"input_ids": ids(3000), "stream": true, "sampling_params": jsonObject{"max_new_tokens": 4}})
	exact("generate-prompt-plus-max-too-long.sse", 200, jsonObject{"input_ids": ids(2000), "stream": true, "sampling_params": jsonObject{"max_new_tokens": 100}})
	exact("generate-empty.sse", 200, jsonObject{"input_ids": []int{}, "stream": true})
	exact("generate-bad-temperature.sse", 200, params(jsonObject{"temperature": -1}))
	exact("generate-two-grammars.sse", 200, params(jsonObject{"regex": "a", "ebnf": "root ::= \"a\""}))
	for name, body := range map[string]jsonObject{
		"top_p":                params(jsonObject{"top_p": 0}),
		"repetition_penalty":   params(jsonObject{"repetition_penalty": 2.5}),
		"min above max":        params(jsonObject{"max_new_tokens": 3, "min_new_tokens": 4}),
		"a foreign bias":       params(jsonObject{"logit_bias": jsonObject{"999999": 1}}),
		"an adapter":           {"input_ids": ids(2), "stream": true, "lora_path": "x"},
		"an unknown parameter": params(jsonObject{"max_tokens": 3}),
		"beyond what it keeps": {"input_ids": ids(2042), "stream": true, "sampling_params": jsonObject{"max_new_tokens": 2}},
	} {
		if status, got := post(t, url+"/generate", body); (status != http.StatusOK || !bytes.Contains(got, []byte(`400`))) && name != "an unknown parameter" || bytes.Contains(got, []byte(`"output_ids":[1`)) {
			t.Errorf("%s: status %d, %s", name, status, got)
		}
	}
	if got, want := s.Stats().Finished, 0; got != want {
		t.Errorf("%d requests were answered", got)
	}
	// It uses no more of its context than that, and cuts what is asked for.
	_, got := post(t, url+"/generate", jsonObject{"input_ids": ids(2041), "sampling_params": jsonObject{"max_new_tokens": 7, "ignore_eos": true}})
	if !bytes.Contains(got, []byte(`{"type":"length","length":5}`)) {
		t.Errorf("a prompt of 2041: %s", got)
	}
}

// What the live server dies of the simulated one dies of.
func TestSGLangDies(t *testing.T) {
	for name, body := range map[string]jsonObject{
		"a foreign id": {"input_ids": []int{1, 999999}, "stream": true},
	} {
		s, url := start(t, real(KindSGLang))
		resp, err := http.Post(url+"/generate", "application/json", bytes.NewReader(encodeJSON(body)))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil || !closed(s.state().dead) {
			t.Errorf("%s: %v, dead: %v", name, err, closed(s.state().dead))
		}
	}
}

func TestSGLangTellsOfItself(t *testing.T) {
	s, url := start(t, real(KindSGLang))
	get := func(path string) (int, []byte) {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, bytes.TrimSpace(data)
	}
	_, models := get("/v1/models")
	if got, want := shape(string(models)), shape(string(bytes.TrimSpace(transcript(t, "sglang/v1-models.json")))); got != want {
		t.Errorf("models:\n got %s\nwant %s", got, want)
	}
	_, info := get("/model_info")
	before, _, _ := strings.Cut(shape(string(transcript(t, "sglang/model-info.json"))), "embedding:")
	if got := strings.TrimSuffix(shape(string(info)), "}"); got != before {
		t.Errorf("model_info:\n got %s\nwant %s", got, before)
	}
	for _, names := range [][2]string{{"/model_info", "/get_model_info"}, {"/server_info", "/get_server_info"}} {
		status, now := get(names[0])
		_, old := get(names[1])
		if status != http.StatusOK || !bytes.Equal(now, old) {
			t.Errorf("%s: %d %s, by its older name %s", names[0], status, now, old)
		}
	}
	if _, loads := get("/v1/loads?include=core"); !bytes.Contains(loads, []byte(`"num_running_reqs":0`)) {
		t.Errorf("loads: %s", loads)
	}
	text := "<|im_start|>user\nThe old sailor\r\n\t12 times: Grüße, 世界 🌍😂!"
	_, got := post(t, url+"/tokenize", jsonObject{"prompt": text})
	var tokens struct{ Tokens []engine.TokenID }
	if err := json.Unmarshal(got, &tokens); err != nil || Detokenize(tokens.Tokens) != text {
		t.Errorf("tokenize: %s %v", got, err)
	}
	if _, got := post(t, url+"/detokenize", jsonObject{"tokens": tokens.Tokens}); !bytes.Equal(got, encodeJSON(map[string]string{"text": text})) {
		t.Errorf("detokenize: %s", got)
	}
	for path, want := range map[string]int{"/ready": 200, "/ping": 200, "/version": 404} {
		if status, _ := get(path); status != want {
			t.Errorf("%s: %d", path, status)
		}
	}
	s.Drain() // it says so, and still answers
	for _, path := range []string{"/ready", "/ping", "/health", "/health_generate"} {
		if status, _ := get(path); status != http.StatusServiceUnavailable {
			t.Errorf("%s while it drains: %d", path, status)
		}
	}
	if _, got := post(t, url+"/generate", jsonObject{"input_ids": ids(2), "stream": true, "sampling_params": jsonObject{"max_new_tokens": 1}}); !bytes.Contains(got, []byte(`"type":"length"`)) {
		t.Errorf("a new request while it drains: %s", got)
	}
}

// The health takes a token and a second.
func TestSGLangHealthTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		s := NewServer(real(KindSGLang))
		defer network.Serve("w:80", s)()
		tr := &http.Transport{DialContext: network.DialContext}
		defer tr.CloseIdleConnections()
		begin := time.Now()
		resp, err := (&http.Client{Transport: tr}).Get("http://w/health")
		if err != nil || resp.StatusCode != http.StatusOK || time.Since(begin) != sglangHealthTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		resp.Body.Close()
	})
}

// An abort means all requests whose ids begin with the one that is named, if that
// is at work itself.
func TestSGLangAbortsByPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		config := real(KindSGLang)
		config.Gap = time.Second
		s := NewServer(config)
		defer network.Serve("w:80", s)()
		tr := &http.Transport{DialContext: network.DialContext}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		send := func(path string, body any) string {
			resp, err := client.Post("http://w"+path, "application/json", bytes.NewReader(encodeJSON(body)))
			if err != nil {
				t.Error(err)
				return ""
			}
			defer resp.Body.Close()
			data, _ := io.ReadAll(resp.Body)
			return string(data)
		}
		answers := map[string]chan string{}
		for _, id := range []string{"r-1", "r-12", "r-2"} {
			answer := make(chan string, 1)
			answers[id] = answer
			go func() {
				answer <- send("/generate", jsonObject{"rid": id, "input_ids": ids(3), "stream": true, "sampling_params": jsonObject{"max_new_tokens": 9}})
			}()
		}
		time.Sleep(3500 * time.Millisecond)
		if got := send("/generate", jsonObject{"rid": "r-2", "input_ids": ids(3), "stream": true}); !strings.Contains(got, "Duplicate request ID detected: r-2") {
			t.Errorf("an id twice: %s", got)
		}
		send("/abort_request", jsonObject{"rid": ""})
		send("/abort_request", jsonObject{"rid": "r"})
		send("/abort_request", jsonObject{"rid": "r-1"})
		got := map[string]bool{}
		for id, answer := range answers {
			text := <-answer
			got[id] = strings.Contains(text, `"finish_reason":{"type":"abort","message":"Aborted","status_code":null`)
			if !strings.Contains(text, `"output_ids":[`) || got[id] == strings.Contains(text, `"type":"length"`) {
				t.Errorf("%s: %s", id, text)
			}
		}
		if !got["r-1"] || !got["r-12"] || got["r-2"] {
			t.Errorf("aborted: %v", got)
		}
	})
}

// Told to ignore end ids it ignores the client's as well, as the live one does.
func TestSGLangIgnoresStopIDsToo(t *testing.T) {
	s, url := start(t, real(KindSGLang))
	whole, _ := s.Reference(request(ids(2), 6))
	_, got := post(t, url+"/generate", jsonObject{"input_ids": ids(2), "sampling_params": jsonObject{"max_new_tokens": 6, "temperature": 0, "ignore_eos": true, "stop_token_ids": whole[1:2]}})
	var answer struct {
		OutputIDs []engine.TokenID `json:"output_ids"`
	}
	if err := json.Unmarshal(got, &answer); err != nil || !slices.Equal(answer.OutputIDs, whole) {
		t.Errorf("%s, %v; want %v", got, err, whole)
	}
}

// A process ends as the live server does: it finishes what runs.
func TestSGLangDrainsAtSigterm(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--kind", "sglang"}, onSigtermDrain},
		{[]string{"--kind", "sglang", "--on-sigterm", "silent"}, onSigtermSilent},
		{[]string{"--kind", "vllm"}, onSigtermSilent},
	} {
		if o, err := parseOptions(test.args, io.Discard); err != nil || o.onSigterm != test.want {
			t.Errorf("%v: %+v, %v; want %s", test.args, o, err, test.want)
		}
	}
}
