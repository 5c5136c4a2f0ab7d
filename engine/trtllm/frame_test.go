package trtllm

import (
	"testing"

	"baton/engine"
)

func TestLogprobs(t *testing.T) {
	const missing = engine.MissingLogprob
	for _, test := range []struct {
		name, choice string
		want         []float64
	}{
		{"as it comes", `"token_ids":[282,7],"logprobs":{"text_offset":[0,3],"token_logprobs":[-1.5,-3],"tokens":[" of"," the"],"top_logprobs":[{" of":-1.5," in":-2},{" the":-3}]}`, []float64{-1.5, -3}},
		{"before the ids", `"logprobs":{"token_logprobs":[-1.5]},"token_ids":[282]`, []float64{-1.5}},
		{"none", `"token_ids":[1],"logprobs":null`, []float64{missing}},
		{"one too few", `"token_ids":[1,2],"logprobs":{"token_logprobs":[-1]}`, []float64{missing, missing}},
		{"numbers that are none", `"token_ids":[1,2,3],"logprobs":{"token_logprobs":[NaN,null,-9999.0]}`, []float64{missing, missing, missing}},
	} {
		var f frame
		for range 2 { // the second time in used buffers
			if err := f.decode([]byte(`{"choices":[{"index":0,`+test.choice+`}]}`), true); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			for i, lp := range f.logprobs {
				if len(f.logprobs) != len(test.want) || lp.Logprob != test.want[i] || lp.ID != f.IDs[i] || lp.Top != nil {
					t.Errorf("%s: %v, want %v", test.name, f.logprobs, test.want)
				}
			}
		}
	}
}

func TestFrameErrors(t *testing.T) {
	for _, data := range []string{
		`{"choices":[{"index":0,"token_ids":[12`, `{"choices":[{"token_ids":[1.5]}]}`, `{"choices":[{"token_ids":[-1]}]}`,
		`{"choices":[{"index":1,"token_ids":[5]}]}`, `{"choices":[{"index":0},{"index":0}]}`, `{"choices":{}}`, `{"choices":[{"finish_reason":1}]}`,
		`{"choices":[{"stop_reason":2147483648}]}`, `{"choices":[{"stop_reason":99999999999999999999}]}`, `{"choices":[{"stop_reason":1.5}]}`,
		`null`, `[]`, ``,
	} {
		var f frame
		if err := f.decode([]byte(data), false); err == nil || len(f.IDs) > 0 || f.Finish != nil || f.stopID != noID {
			t.Errorf("%s: ids %v, finish %q, stop %d, error %v; want an error and nothing of the frame", data, f.IDs, f.Finish, f.stopID, err)
		}
	}
}

func TestStopReasons(t *testing.T) {
	for text, want := range map[string]engine.TokenID{`null`: noID, `"7"`: noID, `"stop here"`: noID, `0`: 0, `7`: 7, `2147483647`: 2147483647, `{"a":1}`: noID} {
		var f frame
		if err := f.decode([]byte(`{"choices":[{"token_ids":[1],"stop_reason":`+text+`}]}`), false); err != nil || f.stopID != want {
			t.Errorf("%s: %d, %v; want %d", text, f.stopID, err, want)
		}
	}
}

func TestFrameDoesNotAllocate(t *testing.T) {
	data := []byte(event([]int{282}, "", nil))
	var f frame
	if n := testing.AllocsPerRun(100, func() {
		if f.decode(data, false) != nil || len(f.IDs) != 1 {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// Whatever bytes come, a frame is an error as a whole or has sensible ids.
func FuzzFrame(f *testing.F) {
	f.Add([]byte(event([]int{1, 2}, "stop", 7)))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte(`{"choices":[{"index":0,"token_ids":[5],"logprobs":{"token_logprobs":[-1.5]},"stop_reason":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got frame
		if err := got.decode(data, true); err != nil {
			if len(got.IDs) > 0 || got.Finish != nil || got.stopID != noID {
				t.Fatalf("%q: something of a broken frame was taken", data)
			}
			return
		}
		if len(got.logprobs) != len(got.IDs) || got.stopID < noID {
			t.Fatalf("%q: %d logprobs for %d ids, stop %d", data, len(got.logprobs), len(got.IDs), got.stopID)
		}
		for _, id := range got.IDs {
			if id < 0 {
				t.Fatalf("%q: id %d", data, id)
			}
		}
	})
}
