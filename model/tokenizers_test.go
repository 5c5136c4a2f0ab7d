package model

import "testing"

// Models with one tokenizer.json have one tokenizer, whatever else differs.
func TestTokenizersAreShared(t *testing.T) {
	s := newSet(t, Options{Paths: map[string]string{
		"a": folderWith(t, nil),
		"b": folderWith(t, map[string]string{"config.json": `{"max_position_embeddings":77}`}),
		"c": otherTokenizer(t),
	}})
	model := func(name string) *Model {
		m, ok := s.Get(name)
		if !ok {
			t.Fatalf("no model %s", name)
		}
		return m
	}
	a, b, c := model("a"), model("b"), model("c")
	if a.Tokenizer != b.Tokenizer || a.ContextLength == b.ContextLength {
		t.Error("two models with one tokenizer.json do not share what it says, or share more")
	}
	if a.Tokenizer == c.Tokenizer {
		t.Error("two files are one tokenizer")
	}
}
