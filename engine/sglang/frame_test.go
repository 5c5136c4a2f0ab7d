package sglang

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

func TestFrameErrors(t *testing.T) {
	for _, data := range []string{
		`{"output_ids":[12`, `{"output_ids":[12]]}`, `{"output_ids":[1.5]}`, `{"output_ids":["1"]}`, `{"output_ids":[2147483648]}`, `{"output_ids":[-1]}`,
		`{"output_ids":[5],"index":1}`, `{"output_ids":{}}`, `{"meta_info":{"completion_tokens":"3"}}`, `{"meta_info":{"finish_reason":"stop"}}`,
		`{"meta_info":{"finish_reason":{"type":1}}}`, `{"meta_info":[]}`, `null`, `[]`, `1`, ``,
	} {
		var f frame
		if err := f.decode([]byte(data), engine.OutputOptions{}, false); err == nil || len(f.ids) > 0 || f.finish.kind != nil || f.withIDs {
			t.Errorf("%s: ids %v, finish %q, error %v; want an error and nothing of the frame", data, f.ids, f.finish.kind, err)
		}
	}
}

func TestLogprobForms(t *testing.T) {
	const missing = engine.MissingLogprob
	want := []engine.TokenLogprob{
		{ID: 282, Logprob: -1.5, Top: []engine.TopLogprob{{ID: 28, Logprob: -0.5}, {ID: 282, Logprob: -1.5}}},
		{ID: 7, Logprob: -3},
	}
	tests := []struct {
		name, meta string
		want       []engine.TokenLogprob
	}{
		{"both", `"output_token_logprobs":[[-1.5,282,null],[-3,7,null]],"output_top_logprobs":[[[-1.5,282,null],[-0.5,28,null],[-2,9,null]],null]`, want},
		{"with text", `"output_token_logprobs":[[-1.5,282," of"],[-3,7,"x"]],"output_top_logprobs":[[[-0.5,28,"a"],[-1.5,282," of"]],[]]`, want},
		{"none asked", `"output_token_logprobs":[[-1.5,282,null],[-3,7,null]]`, []engine.TokenLogprob{{ID: 282, Logprob: -1.5}, {ID: 7, Logprob: -3}}},
		{"none", ``, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
		{"null", `"output_token_logprobs":null,"output_top_logprobs":null`, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
		{"one too few", `"output_token_logprobs":[[-1.5,282,null]]`, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
		{"of another id", `"output_token_logprobs":[[-1.5,282,null],[-3,8,null]]`, []engine.TokenLogprob{{ID: 282, Logprob: -1.5}, {ID: 7, Logprob: missing}}},
		{"numbers that are none", `"output_token_logprobs":[[NaN,282,null],[-Infinity,7,null]]`, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
		{"null and the smallest float", `"output_token_logprobs":[[null,282,null],[-3.4028234663852886e+38,7,null]]`, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
		{"too short", `"output_token_logprobs":[[-1],[]]`, []engine.TokenLogprob{{ID: 282, Logprob: missing}, {ID: 7, Logprob: missing}}},
	}
	var f frame
	for _, test := range tests {
		for range 2 { // the second time in used buffers
			data := `{"output_ids":[282,7],"meta_info":{"completion_tokens":2,` + strings.TrimPrefix(test.meta+",", ",") + `"x":1}}`
			if err := f.decode([]byte(data), engine.OutputOptions{Logprobs: true, TopLogprobs: 2}, true); err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			if got := fmt.Sprint(f.align(f.ids, 2)); got != fmt.Sprint(test.want) {
				t.Errorf("%s: got %v, want %v", test.name, got, test.want)
			}
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
	f.Add([]byte(`{"error":null,"meta_info":null,"output_ids":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Infinity") {
			return
		}
		want, wantErr := decodeSlowly(data)
		if wantErr == errDuplicate {
			return
		}
		var got frame
		err := got.decode(data, engine.OutputOptions{}, false)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v; by encoding/json: %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if !slices.Equal(got.ids, want.ids) || string(got.finish.kind) != string(want.finish.kind) || (got.finish.kind == nil) != (want.finish.kind == nil) ||
			got.finish.status != want.finish.status || got.total != want.total || got.counted != want.counted || got.prompt != want.prompt || got.failed != want.failed || got.withIDs != want.withIDs {
			t.Fatalf("%q: %+v; by encoding/json: %+v", data, got, want)
		}
	})
}

var errDuplicate = fmt.Errorf("a key twice, of which the one or the other may be meant")

// decodeSlowly says what a frame means, with the help of encoding/json's trees.
func decodeSlowly(data []byte) (f frame, err error) {
	if !json.Valid(data) {
		return f, fmt.Errorf("invalid")
	}
	for _, key := range []string{"output_ids", "meta_info", "index", "error", "finish_reason", "completion_tokens", "prompt_tokens", "type", "status_code", `\u`} {
		if strings.Count(string(data), key) > 1 {
			return f, errDuplicate
		}
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var top map[string]any
	if err := d.Decode(&top); err != nil || top == nil {
		return f, fmt.Errorf("no object: %w", err)
	}
	number := func(m map[string]any, key string, max int64) (int, bool) {
		v, ok := m[key]
		if !ok || err != nil {
			return 0, false
		}
		n, isNumber := v.(json.Number)
		i, bad := n.Int64()
		if !isNumber || bad != nil || i > max {
			err = fmt.Errorf("%s: %v", key, v)
		}
		return int(i), true
	}
	const most = 1<<63 - 1
	if i, _ := number(top, "index", most); i != 0 {
		return f, fmt.Errorf("index %d", i)
	}
	f.failed = top["error"] != nil
	list, ok := top["output_ids"].([]any)
	if f.withIDs = ok; !ok && top["output_ids"] != nil {
		return f, fmt.Errorf("output_ids: %T", top["output_ids"])
	}
	for _, e := range list {
		id, _ := number(map[string]any{"": e}, "", 1<<31-1)
		if id < 0 {
			err = fmt.Errorf("id %d", id)
		}
		f.ids = append(f.ids, engine.TokenID(id))
	}
	meta, ok := top["meta_info"].(map[string]any)
	if !ok && top["meta_info"] != nil {
		return f, fmt.Errorf("meta_info: %T", top["meta_info"])
	}
	f.total, f.counted = number(meta, "completion_tokens", most)
	f.prompt, _ = number(meta, "prompt_tokens", most)
	if reason := meta["finish_reason"]; reason != nil {
		object, ok := reason.(map[string]any)
		if !ok {
			return f, fmt.Errorf("finish_reason: %T", reason)
		}
		f.finish.kind = []byte{}
		if kind, has := object["type"]; has {
			text, ok := kind.(string)
			if !ok {
				return f, fmt.Errorf("type: %T", kind)
			}
			f.finish.kind = []byte(text)
		}
		if object["status_code"] != nil {
			f.finish.status, _ = number(object, "status_code", most)
		}
	}
	return f, err
}

func TestFrameDoesNotAllocate(t *testing.T) {
	one := []byte(`{"text":" of","output_ids":[282],"meta_info":{"id":"gw-7f-1","finish_reason":null,"prompt_tokens":2,"weight_version":"default","num_retractions":0,"output_token_logprobs":[[-1.5,282,null]],"output_top_logprobs":[[[-1.5,282,null],[-2,9,null]]],"completion_tokens":1,"cached_tokens_details":null}}`)
	two := []byte(`{"text":" of the","output_ids":[282,260],"meta_info":{"id":"gw-7f-1","finish_reason":{"type":"length","length":2},"prompt_tokens":2,"output_token_logprobs":[[-1.5,282,null],[-1,260,null]],"output_top_logprobs":[[[-1.5,282,null],[-2,9,null]],[[-1,260,null],[-4,9,null]]],"completion_tokens":2}}`)
	output := engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
	var f frame
	if n := testing.AllocsPerRun(100, func() {
		var sum tally
		for i, data := range [][]byte{one, two} {
			if f.decode(data, output, i == 0) != nil || len(f.ids) != 1 || len(f.said.entries) != 1 || len(f.best.entries) != 1 {
				t.Fatalf("%+v", f)
			}
			ids, err := sum.take(&f)
			if lps := f.align(ids, 2); err != nil || len(lps) != 1 || len(lps[0].Top) != 2 {
				t.Fatal(lps, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
