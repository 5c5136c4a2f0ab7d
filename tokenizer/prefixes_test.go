package tokenizer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// conversationOf returns messages of rough text between added tokens.
func conversationOf(random *rand.Rand, messages int, added []string) []string {
	all := make([]string, messages)
	for i := range all {
		all[i] = added[random.IntN(len(added))] + roughText(random, 1+random.IntN(1500)) + added[random.IntN(len(added))]
	}
	return all
}

// Whatever a tokenizer has seen before, the ids of a text are its own.
func checkConversations(t *testing.T, tok *Tokenizer, random *rand.Rand, rounds int) (reused int) {
	t.Helper()
	added := []string{"<|end|>", "<tool>", "</s>"} // in rough text, too
	for _, a := range tok.raw.tokens[:min(len(tok.raw.tokens), 20)] {
		added = append(added, a.Content)
	}
	tok.testPartBytes = 300
	defer func() { tok.testPartBytes = 0 }()
	var before [][]string
	for range rounds {
		messages := conversationOf(random, 1+random.IntN(6), added)
		if len(before) > 0 && random.IntN(4) > 0 { // it goes on with an earlier one, or leaves it somewhere
			old := before[random.IntN(len(before))]
			messages = append(slices.Clone(old[:random.IntN(len(old)+1)]), messages...)
		}
		if len(messages) > 30 {
			messages = messages[:30]
		}
		before = append(before, messages)
		text := strings.Join(messages, "")
		if random.IntN(3) == 0 {
			text = text[:random.IntN(len(text)+1)]
		}
		salt := fmt.Sprint(random.IntN(5) / 4)
		if _, known := tok.known.find(tok.known.marksOf(text, tok.stretches(toValidUTF8(text)), salt, nil)); known > 0 {
			reused++
		}
		got, err := tok.EncodeConversation(t.Context(), text, true, salt)
		if want := tok.Encode(text, true); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %d ids, %v, by itself %d", text, len(got), err, len(want))
		}
	}
	return reused
}

func TestConversations(t *testing.T) {
	reused := 0
	for i, c := range smallCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			tok, err := Parse(c.file)
			if err != nil {
				t.Fatal(err)
			}
			reused += checkConversations(t, tok, rand.New(rand.NewPCG(uint64(i), 1)), 60)
		})
	}
	if reused < 200 {
		t.Errorf("a beginning was known %d times only", reused)
	}
}

func TestConversationsOfModels(t *testing.T) {
	eachModel(t, func(t *testing.T, tok *Tokenizer) {
		if reused := checkConversations(t, tok, rand.New(rand.NewPCG(1, 2)), 80); reused < 10 {
			t.Errorf("a beginning was known %d times only", reused)
		}
	})
}

// FuzzConversations lets a text go on after one that begins like it, with another
// end of what is common.
func FuzzConversations(f *testing.F) {
	f.Add("hello <|end|> world <tool>", "<|end|> the", "x", uint8(3))
	f.Add("<|end|>", "|end|>", " \n<|end|>", uint8(7))
	var toks []*Tokenizer
	for _, c := range smallCases(f) {
		tok, err := Parse(c.file)
		if err != nil {
			f.Fatal(err)
		}
		toks = append(toks, tok)
	}
	f.Fuzz(func(t *testing.T, common, one, other string, part uint8) {
		common = strings.Repeat(common, minMarkBytes/(len(common)+1)+1)
		for _, tok := range toks {
			tok.testPartBytes = int(part) + 1
			for _, text := range []string{common + one, common + other, common + one + other} {
				got, err := tok.EncodeConversation(t.Context(), text, true, "")
				if want := tok.Encode(text, true); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%q: %v, %v, by itself %v", text, got, err, want)
				}
			}
			tok.testPartBytes = 0
		}
	})
}

// A conversation that goes on is kept once, and found up to its last turn.
func TestConversationGoesOn(t *testing.T) {
	tok := small(t, "byte level")
	turn := strings.Repeat("hello the world 123 ", 100) + "<|end|>"
	text := strings.Repeat(turn, 40)
	for range 20 {
		text += turn
		if _, err := tok.EncodeConversation(t.Context(), text, true, ""); err != nil {
			t.Fatal(err)
		}
		if n := tok.known.texts.Len(); n != 1 {
			t.Fatalf("%d texts are kept of one conversation", n)
		}
		marks := tok.known.marksOf(text, tok.stretches(text), "", nil)
		if ids, known := tok.known.find(marks); known != len(marks) || !slices.Equal(ids, tok.Encode(text, false)[:len(ids)]) {
			t.Fatalf("%d of %d marks are known", known, len(marks))
		}
		if _, known := tok.known.find(tok.known.marksOf(text, tok.stretches(text), "salt", nil)); known != 0 {
			t.Fatal("another salt finds it")
		}
	}
	// Others with the same beginning do not drive it out.
	other := strings.Repeat(turn, 3) + strings.Repeat("another<|end|>", 5000)
	for _, text := range []string{other, text, other, text} {
		if _, err := tok.EncodeConversation(t.Context(), text, true, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := tok.known.texts.Len(); n != 2 {
		t.Errorf("%d texts are kept of two conversations", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tok.EncodeConversation(ctx, strings.Repeat("left<|end|>", 10_000), true, ""); err == nil {
		t.Error("no error after the end")
	}
	if n := tok.known.texts.Len(); n != 2 {
		t.Error("what was not encoded to its end is kept")
	}
}

// The memory is bounded, and what is not used is forgotten, by the clock alone.
func TestConversationsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k prefixes
		count := func() (texts, marks, bytes int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			for at := k.texts.Front(); at != nil; at = at.Next() {
				kept := at.Value.(*keptText)
				texts, marks, bytes = texts+1, marks+len(kept.marks), bytes+kept.size()
			}
			if bytes != k.bytes || marks != len(k.marks) {
				t.Errorf("%d bytes are kept, %d counted; %d marks, %d in the table", bytes, k.bytes, marks, len(k.marks))
			}
			return texts, marks, bytes
		}
		ids := make([]int32, 100_000)
		for i := range byte(200) {
			k.keep(ids, []mark{{hash: prefixHash{i, 1}, ids: 50_000}, {hash: prefixHash{i, 2}, ids: len(ids)}}, 0)
			if _, _, bytes := count(); bytes > maxPrefixBytes {
				t.Fatalf("%d bytes are kept", bytes)
			}
		}
		if texts, _, bytes := count(); bytes < maxPrefixBytes*9/10 {
			t.Errorf("%d texts of %d bytes are kept", texts, bytes)
		}
		k.keep(make([]int32, maxPrefixBytes), []mark{{hash: prefixHash{1, 3}, ids: maxPrefixBytes}}, 0)
		if _, known := k.find([]mark{{hash: prefixHash{199, 1}}, {hash: prefixHash{199, 2}}}); known != 2 {
			t.Error("the newest is not known, or was driven out by one that is too large")
		}
		time.Sleep(maxPrefixAge - time.Second)
		if _, known := k.find([]mark{{hash: prefixHash{199, 1}}}); known != 1 {
			t.Error("it was forgotten too soon")
		}
		time.Sleep(maxPrefixAge - time.Second)
		if texts, _, _ := count(); texts != 1 {
			t.Errorf("%d texts are kept, one was used", texts)
		}
		time.Sleep(2 * maxPrefixAge)
		synctest.Wait()
		if texts, marks, _ := count(); texts != 0 || marks != 0 || k.timer != nil {
			t.Errorf("%d texts and %d marks are kept for ever", texts, marks)
		}
	})
}

func TestConversationsAtOnce(t *testing.T) {
	tok := small(t, "byte level")
	turn := strings.Repeat("hello the world 123 ", 60) + "<|end|>"
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			text := strings.Repeat(turn, 30)
			for k := range 6 {
				text += fmt.Sprint(i%2, k) + turn
				got, err := tok.EncodeConversation(t.Context(), text, true, "")
				if want := tok.Encode(text, true); err != nil || !slices.Equal(got, want) {
					t.Errorf("%d ids, %v, by itself %d", len(got), err, len(want))
				}
			}
		})
	}
	group.Wait()
}
