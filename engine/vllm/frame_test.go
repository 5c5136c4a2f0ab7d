package vllm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine"
)

func TestLogprobForms(t *testing.T) {
	const missing = engine.MissingLogprob
	want := []engine.TokenLogprob{
		{ID: 282, Logprob: -1.5, Top: []engine.TopLogprob{{ID: 28, Logprob: -0.5}, {ID: 282, Logprob: -1.5}}},
		{ID: 7, Logprob: -3},
	}
	tests := []struct {
		name, choice string
		want         []engine.TokenLogprob
	}{
		{"completions", `"token_ids":[282,7],"logprobs":{"text_offset":[0,12],"token_logprobs":[-1.5,-3],"tokens":["token_id:282","token_id:7"],"top_logprobs":[{"token_id:282":-1.5,"token_id:28":-0.5,"token_id:9":-2},{}]}`, want},
		{"logprobs before ids", `"logprobs":{"top_logprobs":[{"token_id:28":-0.5,"token_id:282":-1.5},null],"tokens":["token_id:282","token_id:7"],"token_logprobs":[-1.5,-3]},"token_ids":[282,7]`, want},
		{"generate", `"token_ids":[282,7],"logprobs":{"content":[{"token_id":282,"logprob":-1.5,"rank":2,"top_logprobs":[{"token_id":282,"logprob":-1.5,"rank":2},{"token_id":28,"logprob":-0.5,"rank":1}]},{"token_id":7,"logprob":-3,"rank":1,"top_logprobs":[]}]}`, want},
		{"older generate", `"token_ids":[282,7],"logprobs":{"content":[{"token":"token_id:282","logprob":-1.5,"bytes":null,"top_logprobs":[{"token":"token_id:28","logprob":-0.5},{"token":"token_id:282","logprob":-1.5}]},{"token":"token_id:7","logprob":-3,"bytes":null,"top_logprobs":null}]}`, want},
		{"tokens as text", `"token_ids":[282],"logprobs":{"token_logprobs":[-1.5],"tokens":[" of"],"top_logprobs":[{" of":-1.5}]}`, []engine.TokenLogprob{{ID: 282, Logprob: -1.5}}},
		{"one", `"token_ids":[1],"logprobs":{"tokens":["token_id:1"],"token_logprobs":[-1]}`, []engine.TokenLogprob{{ID: 1, Logprob: -1}}},
		{"none after one", `"token_ids":[1]`, []engine.TokenLogprob{{ID: 1, Logprob: missing}}},
		{"numbers that are none", `"token_ids":[1,2,3,4,5],"logprobs":{"token_logprobs":[NaN,-Infinity,null,-9999.0,-3.4e38],"tokens":["token_id:1","token_id:2","token_id:3","token_id:4","token_id:5"],"top_logprobs":[{"token_id:1":-Infinity},null,null,null,null]}`,
			[]engine.TokenLogprob{{ID: 1, Logprob: missing, Top: []engine.TopLogprob{{ID: 1, Logprob: missing}}}, {ID: 2, Logprob: missing}, {ID: 3, Logprob: missing}, {ID: 4, Logprob: missing}, {ID: 5, Logprob: missing}}},
		{"none", `"token_ids":[1],"logprobs":null`, []engine.TokenLogprob{{ID: 1, Logprob: missing}}},
		{"one too few", `"token_ids":[1,2],"logprobs":{"tokens":["token_id:1"],"token_logprobs":[-1]}`, []engine.TokenLogprob{{ID: 1, Logprob: missing}, {ID: 2, Logprob: missing}}},
		{"of another id", `"token_ids":[1],"logprobs":{"tokens":["token_id:2"],"token_logprobs":[-1]}`, []engine.TokenLogprob{{ID: 1, Logprob: missing}}},
	}
	var f frame
	for _, test := range tests {
		for range 2 { // the second time in used buffers
			if err := f.decode([]byte(`{"choices":[{"index":0,`+test.choice+`}]}`), engine.OutputOptions{Logprobs: true, TopLogprobs: 2}); err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			if got := fmt.Sprint(f.logprobs); got != fmt.Sprint(test.want) {
				t.Errorf("%s: got %v, want %v", test.name, got, test.want)
			}
		}
	}
}

func TestFrameErrors(t *testing.T) {
	for _, data := range []string{
		`{"choices":[{"index":0,"token_ids":[12`, `{"choices":[{"index":0,"token_ids":[12]}]`, `{"choices":[{"token_ids":[1.5]}]}`,
		`{"choices":[{"token_ids":["1"]}]}`, `{"choices":[{"token_ids":[2147483648]}]}`, `{"choices":[{"token_ids":[-1]}]}`,
		`{"choices":[{"index":1,"token_ids":[5]}]}`, `{"choices":[{"index":0},{"index":0}]}`, `{"choices":{}}`, `{"choices":[{"finish_reason":1}]}`, `null`, `[]`, `1`, ``,
	} {
		var f frame
		if err := f.decode([]byte(data), engine.OutputOptions{}); err == nil || len(f.IDs) > 0 || f.Finish != nil {
			t.Errorf("%s: ids %v, finish %q, error %v; want an error and nothing of the frame", data, f.IDs, f.Finish, err)
		}
	}
}

// FuzzFrame compares the hand-written decoder with encoding/json.
func FuzzFrame(f *testing.F) {
	files, _ := filepath.Glob("testdata/transcripts/*.sse")
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, event := range strings.Split(string(body), "\n\n") {
			if data, ok := strings.CutPrefix(event, "data: "); ok && i < 5 {
				f.Add([]byte(data))
			}
		}
	}
	f.Add([]byte(`{"error":null,"choices":null}`))
	f.Add([]byte(`{"choices":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Infinity") {
			return
		}
		var got frame
		err := got.decode(data, engine.OutputOptions{})
		ids, finish, failed, wantErr := decodeSlowly(data)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v; by encoding/json: %v", data, err, wantErr)
		}
		if err == nil && (!slices.Equal(got.IDs, ids) || string(got.Finish) != finish || got.Failed != failed) {
			t.Fatalf("%q: %v %q %v; by encoding/json: %v %q %v", data, got.IDs, got.Finish, got.Failed, ids, finish, failed)
		}
	})
}

// decodeSlowly says what a frame means, with the help of encoding/json's trees.
func decodeSlowly(data []byte) (ids []engine.TokenID, finish string, failed bool, err error) {
	var top map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if !json.Valid(data) {
		return nil, "", false, fmt.Errorf("invalid")
	}
	if err := d.Decode(&top); err != nil || top == nil {
		return nil, "", false, fmt.Errorf("no object: %w", err)
	}
	failed = top["error"] != nil
	choices, ok := top["choices"].([]any)
	if !ok && top["choices"] != nil || len(choices) > 1 {
		return nil, "", false, fmt.Errorf("choices: %T, %d", top["choices"], len(choices))
	}
	if len(choices) == 0 || choices[0] == nil {
		return nil, "", failed, nil
	}
	choice, ok := choices[0].(map[string]any)
	if !ok {
		return nil, "", false, fmt.Errorf("choice: %T", choices[0])
	}
	if index, ok := choice["index"]; ok && index != json.Number("0") && index != json.Number("-0") {
		return nil, "", false, fmt.Errorf("index %v", index)
	}
	if reason := choice["finish_reason"]; reason != nil {
		if finish, ok = reason.(string); !ok {
			return nil, "", false, fmt.Errorf("finish_reason: %T", reason)
		}
	}
	list, ok := choice["token_ids"].([]any)
	if !ok && choice["token_ids"] != nil {
		return nil, "", false, fmt.Errorf("token_ids: %T", choice["token_ids"])
	}
	for _, e := range list {
		n, ok := e.(json.Number)
		id, err := n.Int64()
		if !ok || err != nil || id < 0 || id > 1<<31-1 {
			return nil, "", false, fmt.Errorf("id %v", e)
		}
		ids = append(ids, engine.TokenID(id))
	}
	return ids, finish, failed, nil
}

func TestFrameDoesNotAllocate(t *testing.T) {
	data := []byte(`{"id":"cmpl-gw-7f.1","object":"text_completion","created":1795991133,"model":"smol","choices":[{"index":0,"text":" of","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":[19556,905],"token_ids":[282]}]}`)
	var f frame
	if n := testing.AllocsPerRun(100, func() {
		if f.decode(data, engine.OutputOptions{}) != nil || len(f.IDs) != 1 {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func BenchmarkFrame(b *testing.B) {
	data := []byte(`{"id":"cmpl-gw-7f.1","object":"text_completion","created":1795991133,"model":"smol","choices":[{"index":0,"text":" of","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":[282]}]}`)
	var f frame
	b.ReportAllocs()
	for b.Loop() {
		if err := f.decode(data, engine.OutputOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
