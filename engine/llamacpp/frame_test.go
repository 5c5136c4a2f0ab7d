package llamacpp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine"
)

func TestLogprobs(t *testing.T) {
	const missing = engine.MissingLogprob
	tests := []struct {
		name, frame string
		want        []engine.TokenLogprob
	}{
		{"as they are", `{"tokens":[5],"completion_probabilities":[{"id":5,"token":"x","bytes":[120],"logprob":-1.5,"top_logprobs":[{"id":5,"logprob":-1.5},{"id":6,"logprob":-0.5},{"id":7,"logprob":-9}]}]}`,
			[]engine.TokenLogprob{{ID: 5, Logprob: -1.5, Top: []engine.TopLogprob{{ID: 6, Logprob: -0.5}, {ID: 5, Logprob: -1.5}}}}},
		{"none after some", `{"tokens":[5]}`, []engine.TokenLogprob{{ID: 5, Logprob: missing}}},
		{"before the ids", `{"completion_probabilities":[{"id":5,"logprob":-1,"top_logprobs":null}],"tokens":[5]}`, []engine.TokenLogprob{{ID: 5, Logprob: -1}}},
		{"zero probability", `{"tokens":[5],"completion_probabilities":[{"id":5,"logprob":-3.4028234663852886e+38,"top_logprobs":[{"id":5,"logprob":null}]}]}`,
			[]engine.TokenLogprob{{ID: 5, Logprob: missing, Top: []engine.TopLogprob{{ID: 5, Logprob: missing}}}}},
		{"of another id", `{"tokens":[5],"completion_probabilities":[{"id":6,"logprob":-1}]}`, []engine.TokenLogprob{{ID: 5, Logprob: missing}}},
		{"older form", `{"tokens":[5],"completion_probabilities":[{"content":"x","probs":[{"tok_str":"x","prob":0.5}]}]}`, []engine.TokenLogprob{{ID: 5, Logprob: missing}}},
	}
	var f frame
	for _, test := range tests {
		if err := f.decode([]byte(test.frame), engine.OutputOptions{Logprobs: true, TopLogprobs: 2}); err != nil || fmt.Sprint(f.logprobs) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, %v; want %v", test.name, f.logprobs, err, test.want)
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
		events := strings.Split(strings.TrimSpace(string(body)), "\n\n")
		for _, event := range []string{events[0], events[len(events)-1]} {
			if data, ok := strings.CutPrefix(event, "data: "); ok {
				f.Add([]byte(data))
			}
		}
	}
	f.Add([]byte(`{"stopped_eos":true,"stopped_limit":false,"stop":true,"tokens":null,"error":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Infinity") {
			return
		}
		var got frame
		err := got.decode(data, engine.OutputOptions{})
		want, wantErr := decodeSlowly(data)
		if wantErr == errAmbiguous {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v; by encoding/json: %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		if !slices.Equal(got.ids, want.ids) || string(got.text()) != string(want.content) || got.predicted != want.predicted || got.counted != want.counted ||
			got.final != want.final || string(got.stopType) != string(want.stopType) || got.failed != want.failed {
			t.Fatalf("%q: %+v; by encoding/json: %+v", data, got, want)
		}
	})
}

// errAmbiguous is the error of two stop types at once: the order decides, which a
// map does not keep.
var errAmbiguous = errors.New("two stop types")

// decodeSlowly says what a frame means, with the help of encoding/json's trees.
// Its content is not quoted.
func decodeSlowly(data []byte) (f frame, err error) {
	var top map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if !json.Valid(data) {
		return f, fmt.Errorf("invalid")
	}
	if err := d.Decode(&top); err != nil || top == nil {
		return f, fmt.Errorf("no object: %w", err)
	}
	integer := func(v any, limit int64) int64 {
		n, ok := v.(json.Number)
		i, err2 := n.Int64()
		if !ok || err2 != nil || i < 0 || i > limit {
			err = fmt.Errorf("want an integer: %v", v)
		}
		return i
	}
	if list, ok := top["tokens"].([]any); ok {
		for _, e := range list {
			f.ids = append(f.ids, engine.TokenID(integer(e, math.MaxInt32)))
		}
	} else if top["tokens"] != nil {
		err = fmt.Errorf("tokens: %T", top["tokens"])
	}
	for key, field := range map[string]*[]byte{"content": &f.content, "stop_type": &f.stopType} {
		if text, ok := top[key].(string); ok {
			*field = []byte(text)
		} else if top[key] != nil {
			err = fmt.Errorf("%s: %T", key, top[key])
		}
	}
	if n, ok := top["tokens_predicted"]; ok {
		f.predicted, f.counted = int(integer(n, math.MaxInt32)), true
	}
	for key, kind := range map[string]string{"stop": "", "stopped_eos": "eos", "stopped_limit": "limit", "stopped_word": "word"} {
		v, there := top[key]
		set, ok := v.(bool)
		if there && !ok {
			err = fmt.Errorf("%s: %T", key, v)
		}
		if kind == "" {
			f.final = set
		} else if set {
			if f.stopType != nil {
				return f, errAmbiguous
			}
			f.stopType = []byte(kind)
		}
	}
	f.failed = top["error"] != nil
	return f, err
}

func TestFrameDoesNotAllocate(t *testing.T) {
	data := []byte(`{"index":0,"content":" of","tokens":[282],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":2}`)
	var f frame
	if n := testing.AllocsPerRun(100, func() {
		if f.decode(data, engine.OutputOptions{}) != nil || len(f.ids) != 1 {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func BenchmarkFrame(b *testing.B) {
	data := []byte(`{"index":0,"content":" of","tokens":[282],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":2}`)
	var f frame
	b.ReportAllocs()
	for b.Loop() {
		if err := f.decode(data, engine.OutputOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
