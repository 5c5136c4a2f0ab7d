package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine"
	"baton/tokenizer"
)

// The ids of both test vocabularies are numbered by tokens.
var (
	byteLevel = testTokenizer(byteLevelTokens(), nil, `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`)
	llama2    = testTokenizer(llamaTokens(), []string{"<s>", "</s>"}, `{"type":"Sequence","decoders":[
		{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},
		{"type":"Strip","content":" ","start":1,"stop":0}]}`)
)

// byteLevelTokens are the printable ASCII characters, the bytes of some others
// as a byte-level vocabulary spells them, and a few words.
func byteLevelTokens() []string {
	tokens := []string{"<|end|>", "<|user|>"}
	for c := '!'; c <= '~'; c++ {
		tokens = append(tokens, string(c))
	}
	// Ġ is a blank, Ċ a line feed, Ã the byte c3, © the byte a9, and ð Ł ĺ Ģ is 😀.
	return append(tokens, "Ġ", "Ċ", "Ã", "©", "ð", "Ł", "ĺ", "Ģ", "Ġhello", "Ġworld", "abc", "bcd", "STOP", "xÃ", "ðŁĺĢ")
}

func llamaTokens() []string {
	tokens := []string{"<unk>", "<s>", "</s>"}
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
	}
	return append(tokens, "▁", "▁Hello", "▁world", "lo", "▁and", "[", "]", "▁[", "/INST")
}

func testTokenizer(tokens, special []string, decoder string) *tokenizer.Tokenizer {
	vocab := make(map[string]int)
	type added struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	var addedTokens []added
	for i, token := range tokens {
		vocab[token] = i
		if strings.HasPrefix(token, "<|") || slices.Contains(special, token) {
			addedTokens = append(addedTokens, added{i, token, true})
		}
	}
	model := map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}}
	if strings.Contains(decoder, "ByteFallback") {
		model["byte_fallback"], model["unk_token"] = true, "<unk>"
	}
	file, err := json.Marshal(map[string]any{"version": "1.0", "added_tokens": addedTokens, "normalizer": nil,
		"pre_tokenizer": nil, "post_processor": nil, "decoder": json.RawMessage(decoder), "model": model})
	if err != nil {
		panic(err)
	}
	t, err := tokenizer.Parse(file)
	if err != nil {
		panic(err)
	}
	return t
}

// idsOf returns the ids of tokens as the vocabulary spells them.
func idsOf(t testing.TB, tok *tokenizer.Tokenizer, tokens ...string) []engine.TokenID {
	t.Helper()
	var ids []engine.TokenID
	for _, token := range tokens {
		id, ok := tok.ID(token)
		if !ok {
			t.Fatalf("no token %q", token)
		}
		ids = append(ids, id)
	}
	return ids
}

// letters returns one id for each character of s.
func letters(t testing.TB, s string) []engine.TokenID {
	t.Helper()
	return idsOf(t, byteLevel, strings.Split(s, "")...)
}

// A worker yields deltas, then an error if there is one. It reuses its slices.
type worker struct {
	deltas    []engine.Delta
	err       error
	yielded   int
	cancelled bool
}

func (w *worker) Generate(_ context.Context, _ *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		var ids []engine.TokenID
		for _, d := range w.deltas {
			w.yielded++
			ids = append(ids[:0], d.TokenIDs...)
			lp := slices.Clone(d.Logprobs)
			ok := yield(engine.Delta{TokenIDs: ids, Logprobs: lp, FinishReason: d.FinishReason}, nil)
			for i := range ids {
				ids[i] = -7 // whoever kept the slice sees it
			}
			clear(lp)
			if !ok {
				w.cancelled = true
				return
			}
		}
		if w.err != nil {
			yield(engine.Delta{}, w.err)
		}
	}
}

// split makes deltas of the given sizes; the last one has the finish reason.
func split(ids []engine.TokenID, reason engine.FinishReason, sizes ...int) []engine.Delta {
	var deltas []engine.Delta
	for _, n := range sizes {
		n = min(n, len(ids))
		deltas = append(deltas, engine.Delta{TokenIDs: ids[:n]})
		ids = ids[n:]
	}
	for _, id := range ids {
		deltas = append(deltas, engine.Delta{TokenIDs: []engine.TokenID{id}})
	}
	if len(deltas) == 0 {
		deltas = append(deltas, engine.Delta{})
	}
	deltas[len(deltas)-1].FinishReason = reason
	for i := range deltas {
		for j, id := range deltas[i].TokenIDs {
			deltas[i].Logprobs = append(deltas[i].Logprobs, engine.TokenLogprob{ID: id, Logprob: -float64(j),
				Top: []engine.TopLogprob{{ID: id, Logprob: -1}, {ID: 5, Logprob: -2}}})
		}
	}
	return deltas
}

// A result is a whole choice.
type result struct {
	text     string
	pieces   []string
	ids      []engine.TokenID
	logprobs string // the tokens' bytes, joined by |
	last     Delta
	err      error
}

func run(t testing.TB, req *Request, w *worker) result {
	t.Helper()
	var r result
	ended := false
	for d, err := range New(w).Generate(t.Context(), req) {
		if ended {
			t.Error("the stream goes on after its end")
		}
		if err != nil {
			r.err, ended = err, true
			continue
		}
		if !utf8.Valid(d.Text) {
			t.Errorf("piece %q is not UTF-8", d.Text)
		}
		r.text += string(d.Text)
		r.pieces = append(r.pieces, string(d.Text))
		r.ids = append(r.ids, d.TokenIDs...)
		for _, l := range d.Logprobs {
			r.logprobs += string(l.Token) + "|"
			if len(l.Top) != 2 || string(l.Top[0].Token) != string(l.Token) {
				t.Errorf("alternatives of %q: %v", l.Token, l.Top)
			}
		}
		if d.CompletionTokens != len(r.ids) {
			t.Errorf("%d completion tokens after %d ids", d.CompletionTokens, len(r.ids))
		}
		ended = d.FinishReason != ""
		r.last = d
	}
	if !ended {
		t.Error("the stream has no end")
	}
	return r
}

func request(tok *tokenizer.Tokenizer, stops ...string) *Request {
	return &Request{Tokenizer: tok, SkipSpecial: true, Stop: stops,
		Tokens: &engine.Request{TokenIDs: []engine.TokenID{1}, Output: engine.OutputOptions{Logprobs: true, TopLogprobs: 2}}}
}

func TestText(t *testing.T) {
	ids := idsOf(t, byteLevel, "Ġhello", "Ġworld")
	r := run(t, request(byteLevel), &worker{deltas: split(ids, engine.FinishLength)})
	if r.text != " hello world" || !slices.Equal(r.ids, ids) || r.last.FinishReason != engine.FinishLength ||
		r.last.Stop != "" || r.last.StopID != -1 || r.logprobs != " hello| world|" {
		t.Errorf("%+v", r)
	}
}

// Every split of the ids into deltas gives the same text, ids and logprobs.
func TestEverySplitGivesTheSame(t *testing.T) {
	for _, c := range []struct {
		ids      []engine.TokenID
		stops    []string
		text     string
		count    int
		logprobs string
	}{
		{idsOf(t, byteLevel, "a", "Ã", "©", "ð", "Ł", "ĺ", "Ģ", "b"), nil, "aé😀b", 8, "a|\xc3|\xa9|\xf0|\x9f|\x98|\x80|b|"},
		{idsOf(t, byteLevel, "a", "xÃ", "©", "ð", "Ł", "a"), nil, "axé\ufffda", 6, "a|x\xc3|\xa9|\xf0|\x9f|a|"},
		{idsOf(t, byteLevel, "a", "abc", "b", "S", "T", "O", "P", "!"), []string{"STOP"}, "aabcb", 7, "a|abc|b|"},
		{idsOf(t, byteLevel, "a", "abc", "b", "STOP", "!"), []string{"bST"}, "aabc", 4, "a|abc|"},
		{idsOf(t, byteLevel, "a", "ð", "Ł", "ĺ", "Ģ", "b"), []string{"😀"}, "a", 5, "a|"},
		{idsOf(t, byteLevel, "S", "T", "S", "T", "O"), []string{"STOP", "Tx"}, "STSTO", 5, "S|T|S|T|O|"},
		{idsOf(t, byteLevel, "a", "bcd", "!"), []string{"bc", "abcd"}, "", 2, ""},
		{idsOf(t, byteLevel, "abc", "bcd", "!"), []string{"cb"}, "ab", 2, "abc|"}, // within a token
		{idsOf(t, byteLevel, "a", "ð", "Ł"), nil, "a\ufffd", 3, "a|\xf0|\x9f|"},
	} {
		n := len(c.ids)
		for mask := range 1 << (n - 1) {
			var sizes []int
			size := 1
			for i := range n - 1 {
				if mask>>i&1 == 1 {
					sizes = append(sizes, size)
					size = 0
				}
				size++
			}
			r := run(t, request(byteLevel, c.stops...), &worker{deltas: split(c.ids, engine.FinishLength, append(sizes, size)...)})
			if r.text != c.text || len(r.ids) != c.count || !slices.Equal(r.ids, c.ids[:c.count]) || r.logprobs != c.logprobs {
				t.Fatalf("split %v with stops %q: text %q of %d ids, logprobs %q, want %q of %d, %q", sizes, c.stops, r.text, len(r.ids), r.logprobs, c.text, c.count, c.logprobs)
			}
		}
	}
}

// Special tokens that somebody waits for have their text and its logprobs, the
// others still have none, wherever the answer is cut into deltas.
func TestKeptSpecialTokens(t *testing.T) {
	ids := idsOf(t, byteLevel, "<|user|>", "a", "Ã", "<|end|>", "©", "<|user|>", "b", "<|end|>")
	for n := 1; n <= len(ids); n++ {
		req := request(byteLevel)
		req.KeepSpecial = idsOf(t, byteLevel, "<|user|>")
		req.Tokens.Stop.EOS = idsOf(t, byteLevel, "<|end|>")
		got := run(t, req, &worker{deltas: split(ids, engine.FinishStop, n)})
		if got.text != "<|user|>aé<|user|>b" || got.logprobs != "<|user|>|a|\xc3|<|end|>|\xa9|<|user|>|b|" {
			t.Errorf("%d at once: %q, %q", n, got.text, got.logprobs)
		}
	}
	req := request(byteLevel)
	if got := run(t, req, &worker{deltas: split(ids, engine.FinishLength)}); got.text != "aéb" {
		t.Errorf("%q", got.text)
	}
}

func TestStopString(t *testing.T) {
	for _, include := range []bool{false, true} {
		req := request(byteLevel, "never", "bc")
		req.IncludeStop = include
		w := &worker{deltas: split(letters(t, "abcdef"), engine.FinishLength)}
		r := run(t, req, w)
		want := map[bool]string{false: "a", true: "abc"}[include]
		if r.text != want || r.last.FinishReason != engine.FinishStop || r.last.Stop != "bc" || r.last.StopID != -1 || len(r.ids) != 3 {
			t.Errorf("include %v: %+v", include, r)
		}
		if w.yielded != 3 || !w.cancelled {
			t.Errorf("the worker went on to %d tokens (cancelled: %v)", w.yielded, w.cancelled)
		}
	}
}

// Only what may be the beginning of a stop string is held back, and only as
// long as it may be.
func TestHoldBackIsMinimal(t *testing.T) {
	r := run(t, request(byteLevel, "abac"), &worker{deltas: split(letters(t, "xababax"), engine.FinishLength)})
	if want := []string{"x", "", "", "", "ab", "", "abax"}; !slices.Equal(r.pieces, want) {
		t.Errorf("pieces %q, want %q", r.pieces, want)
	}
	r = run(t, request(byteLevel, "abac"), &worker{deltas: split(letters(t, "aba"), engine.FinishLength)})
	if want := []string{"", "", "aba"}; !slices.Equal(r.pieces, want) {
		t.Errorf("pieces %q, want %q", r.pieces, want)
	}
}

func TestMinTokens(t *testing.T) {
	for _, c := range []struct {
		minTokens int
		text      string
	}{
		{0, ""}, {2, ""},
		{3, "abxy"},    // the first "ab" completes with token 2; the second counts
		{6, "abxy"},    // it completes with token 6
		{7, "abxyabz"}, // none is left
	} {
		req := request(byteLevel, "ab")
		req.Tokens.Stop.MinTokens = c.minTokens
		if r := run(t, req, &worker{deltas: split(letters(t, "abxyabz"), engine.FinishLength)}); r.text != c.text {
			t.Errorf("min_tokens %d: %q, want %q", c.minTokens, r.text, c.text)
		}
	}
	// A match may begin before min_tokens.
	req := request(byteLevel, "aba")
	req.Tokens.Stop.MinTokens = 3
	if r := run(t, req, &worker{deltas: split(letters(t, "abax"), engine.FinishLength)}); r.text != "" {
		t.Errorf("got %q", r.text)
	}
}

func TestEndID(t *testing.T) {
	end, x := idsOf(t, byteLevel, "<|end|>")[0], idsOf(t, byteLevel, "X")[0]
	for _, c := range []struct {
		name       string
		eos, stops []engine.TokenID
		ignoreEOS  bool
		include    bool
		special    bool // shown
		ids        string
		last       engine.TokenID
		text       string
		stopID     engine.TokenID
		logprobs   string
	}{
		{name: "EOS", eos: []engine.TokenID{end}, last: end, text: "ab", stopID: -1, logprobs: "a|b|"},
		{name: "EOS with include", eos: []engine.TokenID{end}, last: end, include: true, text: "ab", stopID: -1, logprobs: "a|b|<|end|>|"},
		{name: "EOS with include, shown", eos: []engine.TokenID{end}, last: end, include: true, special: true, text: "ab<|end|>", stopID: -1, logprobs: "a|b|<|end|>|"},
		{name: "EOS, special shown", eos: []engine.TokenID{end}, last: end, special: true, text: "ab", stopID: -1, logprobs: "a|b|"},
		{name: "stop id", stops: []engine.TokenID{x}, last: x, text: "ab", stopID: x, logprobs: "a|b|"},
		{name: "stop id with include", stops: []engine.TokenID{x}, last: x, include: true, text: "abX", stopID: x, logprobs: "a|b|X|"},
		{name: "stop id that is an ignored EOS", eos: []engine.TokenID{x}, stops: []engine.TokenID{x}, ignoreEOS: true, last: x, text: "ab", stopID: x, logprobs: "a|b|"},
		{name: "an end id that only the engine knows", last: x, text: "abX", stopID: -1, logprobs: "a|b|X|"},
	} {
		for _, ownDelta := range []bool{false, true} { // the finish reason comes with the id, or after it
			t.Run(fmt.Sprint(c.name, ownDelta), func(t *testing.T) {
				req := request(byteLevel)
				req.Tokens.Stop = engine.StopConditions{EOS: c.eos, TokenIDs: c.stops, IgnoreEOS: c.ignoreEOS}
				req.IncludeStop, req.SkipSpecial = c.include, !c.special
				deltas := split(append(letters(t, "ab"), c.last), engine.FinishStop)
				if ownDelta {
					deltas[2].FinishReason = ""
					deltas = append(deltas, engine.Delta{FinishReason: engine.FinishStop})
				}
				r := run(t, req, &worker{deltas: deltas})
				if r.text != c.text || r.last.StopID != c.stopID || r.last.Stop != "" || len(r.ids) != 3 || r.logprobs != c.logprobs {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

// An end id that does not end the generation is text like any other.
func TestEndIDThatDoesNotEnd(t *testing.T) {
	req := request(byteLevel)
	req.Tokens.Stop.TokenIDs = letters(t, "X")
	r := run(t, req, &worker{deltas: split(letters(t, "aXbX"), engine.FinishLength)})
	if r.text != "aXbX" || r.logprobs != "a|X|b|X|" || r.last.StopID != -1 {
		t.Errorf("%+v", r)
	}
}

func TestUpstreamError(t *testing.T) {
	failure := &engine.Error{Kind: engine.Disconnected}
	r := run(t, request(byteLevel, "bcd"), &worker{deltas: split(letters(t, "abc"), ""), err: failure})
	if r.err != error(failure) || r.text != "a" {
		t.Errorf("%+v", r)
	}
	r = run(t, request(byteLevel), &worker{})
	var e *engine.Error
	if !errors.As(r.err, &e) || e.Kind != engine.Internal {
		t.Errorf("a stream without an end gave %v", r.err)
	}
}

func TestLeavingConsumerCancelsUpstream(t *testing.T) {
	w := &worker{deltas: split(letters(t, "abc"), engine.FinishLength)}
	for range New(w).Generate(t.Context(), request(byteLevel)) {
		break
	}
	if !w.cancelled || w.yielded != 1 {
		t.Errorf("cancelled %v after %d", w.cancelled, w.yielded)
	}
}

// What an answer adds to its prompt: decode(prompt ++ ids) without decode(prompt).
func TestTextGoesOnFromThePrompt(t *testing.T) {
	smile := []string{"<0xF0>", "<0x9F>", "<0x98>", "<0x80>"}
	for _, c := range []struct {
		name        string
		tok         *tokenizer.Tokenizer
		prompt, ids []string
		text        string
	}{
		{"chat", llama2, []string{"<s>", "▁[", "/INST", "]"}, []string{"▁Hello", "▁world"}, " Hello world"},
		{"completion within a word", llama2, []string{"<s>", "▁Hello"}, []string{"lo", "▁world"}, "lo world"},
		{"empty prompt", llama2, []string{"<s>"}, []string{"▁Hello", "▁world"}, "Hello world"},
		{"prompt without text but far back", llama2, append([]string{"▁Hello"}, slices.Repeat([]string{"</s>"}, 100)...), []string{"▁Hello"}, " Hello"},
		{"prompt that ends in byte tokens", llama2, append([]string{"<s>", "▁Hello"}, smile...), []string{"▁and", "▁Hello"}, " and Hello"},
		{"byte tokens on both sides", llama2, append([]string{"<s>", "▁Hello"}, smile...), append(slices.Clone(smile), "▁and"), "😀 and"},
		{"prompt within a character", llama2, append([]string{"▁"}, smile[:3]...), append(slices.Clone(smile[3:]), "▁and"), "😀 and"},
		{"characters and a beginning", llama2, append(append([]string{"▁"}, smile...), smile[:2]...), append(slices.Clone(smile[2:]), "▁and"), "😀 and"},
		{"byte-level prompt within a character", byteLevel, []string{"a", "ð", "Ł"}, []string{"ĺ", "Ģ", "b"}, "😀b"},
		{"byte-level", byteLevel, []string{"<|user|>"}, []string{"Ġhello"}, " hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(c.tok)
			req.Tokens.TokenIDs = idsOf(t, c.tok, c.prompt...)
			r := run(t, req, &worker{deltas: split(idsOf(t, c.tok, c.ids...), engine.FinishLength)})
			if r.text != c.text {
				t.Errorf("got %q, want %q", r.text, c.text)
			}
		})
	}
}

// With byte fallback a run of bytes becomes text at its end, which may be the
// end of the stream: a stop string in it counts all the same.
func TestStopStringInFlushedText(t *testing.T) {
	req := request(llama2, "😀")
	r := run(t, req, &worker{deltas: split(idsOf(t, llama2, "▁Hello", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"), engine.FinishLength)})
	if r.text != "Hello" || r.last.FinishReason != engine.FinishStop || r.last.Stop != "😀" {
		t.Errorf("%+v", r)
	}
}

// FuzzSplit checks that deltas, stop strings and hold-back give what a search in
// the whole text gives.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("abSTOPcd"), "STOP", "b", uint8(3), uint8(0))
	f.Add([]byte{97, 98, 99, 100, 101, 102, 103, 104, 97}, "é", "😀", uint8(2), uint8(4))
	f.Fuzz(func(t *testing.T, raw []byte, stopA, stopB string, size, minTokens uint8) {
		if len(raw) == 0 || len(raw) > 64 || !utf8.ValidString(stopA) || !utf8.ValidString(stopB) {
			return
		}
		var ids []engine.TokenID
		for _, b := range raw {
			ids = append(ids, 2+engine.TokenID(int(b)%(byteLevel.Size()-2)))
		}
		req := request(byteLevel, stopA, stopB)
		req.Tokens.Stop.MinTokens = int(minTokens)
		want, n := wholeText(req, ids)
		sizes := slices.Repeat([]int{int(size%5) + 1}, len(ids))
		r := run(t, req, &worker{deltas: trimEmpty(split(ids, engine.FinishLength, sizes...))})
		if r.text != want || len(r.ids) != n {
			t.Errorf("stops %q: got %q of %d ids, want %q of %d", req.Stop, r.text, len(r.ids), want, n)
		}
	})
}

// wholeText decodes id by id and searches the whole text each time.
func wholeText(req *Request, ids []engine.TokenID) (text string, n int) {
	d := byteLevel.NewDecoder(true)
	search := &naive{stops: req.Stop}
	for i, id := range ids {
		piece := d.Append(nil, id)
		if i == len(ids)-1 {
			// The flush is one more piece of the last token's step.
			if m, ok := search.feed(string(piece)); ok && i+1 >= req.Tokens.Stop.MinTokens {
				return search.text[:len(search.text)-len(piece)+m.end-len(req.Stop[m.stop])], i + 1
			}
			piece = d.Flush(nil)
		}
		if m, ok := search.feed(string(piece)); ok && i+1 >= req.Tokens.Stop.MinTokens {
			return search.text[:len(search.text)-len(piece)+m.end-len(req.Stop[m.stop])], i + 1
		}
	}
	return search.text, len(ids)
}

// trimEmpty drops deltas without ids and keeps the finish reason at the end.
func trimEmpty(deltas []engine.Delta) []engine.Delta {
	reason := deltas[len(deltas)-1].FinishReason
	deltas = slices.DeleteFunc(deltas, func(d engine.Delta) bool { return len(d.TokenIDs) == 0 })
	deltas[len(deltas)-1].FinishReason = reason
	return deltas
}

// endless yields one-token deltas and finishes after n of them.
type endless struct {
	n   int
	ids []engine.TokenID
}

func (e *endless) Generate(context.Context, *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		for i := range e.n {
			at := i % len(e.ids)
			if !yield(engine.Delta{TokenIDs: e.ids[at : at+1]}, nil) {
				return
			}
		}
		yield(engine.Delta{FinishReason: engine.FinishLength}, nil)
	}
}

func streamOf(t testing.TB, n int) int {
	req := request(byteLevel, "STOP", "worldly", "\n\n\n")
	bytes := 0
	w := &endless{n: n, ids: idsOf(t, byteLevel, "Ġhello", "Ġworld", "S", "T", "Ã", "©", "!")}
	for d, err := range New(w).Generate(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(d.Text)
	}
	return bytes
}

func TestNoAllocationPerToken(t *testing.T) {
	const n = 5000
	if allocs := testing.AllocsPerRun(10, func() { streamOf(t, n) }); allocs > n/20 {
		t.Errorf("%v allocations for %d tokens", allocs, n)
	}
}

// BenchmarkPerToken is what the backend adds to each token, with three stop strings.
func BenchmarkPerToken(b *testing.B) {
	b.ReportAllocs()
	streamOf(b, b.N)
}
