package main

import (
	"strings"
	"testing"

	"baton/admin"
)

func TestPrintGroup(t *testing.T) {
	for _, test := range []struct {
		group admin.Group
		want  string
	}{
		{admin.Group{Model: "m", Workers: []admin.Member{{ID: "a:1", Kind: "vllm", Name: "m"}}},
			"\nm: on a:1 (vllm) only, so its answers cannot move\n"},
		{admin.Group{Model: "m", SmallestContext: 2048, LargestContext: 4096, DifferentParameters: []string{"seed", "ignore_eos"}, PartialParameters: []string{"cache_salt"},
			Workers: []admin.Member{{ID: "a:1", Kind: "vllm", Name: "m", ContextLength: 4096}, {ID: "b:1", Kind: "llamacpp", Name: "m.gguf", ContextLength: 2048}}},
			"\nm: answers move between 2 workers\n" +
				"  a:1 (vllm, 4096 tokens)\n" +
				"  b:1 (llamacpp, 2048 tokens, calls it m.gguf)\n" +
				"  contexts differ: an answer beyond 2048 tokens moves to workers with more only\n" +
				"  understood differently, so that answers with them move, but not exactly: seed, ignore_eos\n" +
				"  not everywhere, so that answers with them move between some of the workers only: cache_salt\n"},
		{admin.Group{Model: "tuned", Base: "m", Workers: []admin.Member{{ID: "a:1", Kind: "vllm", Name: "tuned"}, {ID: "b:1", Kind: "vllm", Name: "tuned"}}},
			"\ntuned, a LoRA adapter of m: answers move between 2 workers\n  a:1 (vllm)\n  b:1 (vllm)\n"},
	} {
		var b strings.Builder
		printGroup(&b, test.group)
		if b.String() != test.want {
			t.Errorf("got\n%swant\n%s", b.String(), test.want)
		}
	}
}
