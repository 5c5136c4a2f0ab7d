package llamacpp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/engine"
	"baton/engine/enginetest"
)

func TestFindSeam(t *testing.T) {
	pieces := map[engine.TokenID]string{1: "a", 2: " \xf0\x9f", 3: "\x98", 4: "\x82", 5: "\x82 \xe6", 6: "日本", 7: "\xf0", 8: "\x9f\x98", 9: "\x82\x82\x82\x82"}
	lost := lostIDs{piece: func(id engine.TokenID) []byte { return []byte(pieces[id]) }, size: 10}
	ids := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	tests := []struct {
		name string
		ids  []engine.TokenID
		want *seam // nil = none
	}{
		{"whole characters", ids(1, 6), nil},
		{"nothing", nil, nil},
		{"a whole character of several ids", ids(1, 2, 3, 4), nil},
		{"one id into it", ids(1, 2), &seam{1, []byte(" "), []byte("\xf0\x9f")}},
		{"two ids into it", ids(1, 2, 3), &seam{2, []byte(" "), []byte("\xf0\x9f\x98")}},
		{"without text before", ids(1, 7, 8), &seam{2, nil, []byte("\xf0\x9f\x98")}},
		{"an id that ends one and begins another", ids(1, 2, 3, 5), &seam{3, []byte(" 😂 "), []byte("\xe6")}},
		{"a control token before", ids(0, 7), &seam{1, nil, []byte("\xf0")}},
		{"stray middles", ids(9, 9), nil},
		{"one more byte than a character", ids(1, 2, 3, 4, 4), nil},
	}
	for _, test := range tests {
		got, ok := lost.find(test.ids)
		if ok != (test.want != nil) || ok && (got.ids != test.want.ids || string(got.text) != string(test.want.text) || string(got.open) != string(test.want.open)) {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, ok, test.want)
		}
	}
	if _, ok := (&lostIDs{}).find(ids(2)); ok {
		t.Error("a seam was found without a vocabulary")
	}
	if got, want := (seam{1, []byte(" \""), []byte("\xf0\x9f")}).grammar(), `root ::= "\U00000020\U00000022" [\U0001F000-\U0001FFFF]`; got != want {
		t.Errorf("grammar %s, want %s", got, want)
	}
}

// The range of a beginning holds exactly the characters that begin so.
func TestCharactersOfSeam(t *testing.T) {
	ranges := map[string][2]rune{} // lowest and highest character of every beginning
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := string(r)
		for n := 1; n < len(text); n++ {
			if span, ok := ranges[text[:n]]; ok {
				ranges[text[:n]] = [2]rune{span[0], r}
			} else {
				ranges[text[:n]] = [2]rune{r, r}
			}
		}
	}
	for open, want := range ranges {
		lowest, highest := seam{open: []byte(open)}.characters()
		if lowest != want[0] || highest != want[1] {
			t.Errorf("%x: %x to %x, want %x to %x", open, lowest, highest, want[0], want[1])
		}
	}
}

func TestSeam(t *testing.T) {
	ids := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	reply := func(data ...string) enginetest.Reply { return enginetest.Reply{Pieces: []string{events(data...)}} }
	// 15107 244 218 are the bytes of " 🚀"; 218 is what remains of it.
	rocket := reply(partialEvent(" 🚀", ids(218), 3), partialEvent("", ids(0), 4), finalEvent("eos", 4))
	rest := reply(partialEvent("x", ids(7), 1), partialEvent("", ids(2), 2), finalEvent("eos", 2))
	tests := []struct {
		name    string
		replies []enginetest.Reply
		change  func(*engine.Request)
		ids     []engine.TokenID
		finish  engine.FinishReason
		kind    engine.Kind
	}{
		{"the same ids again", []enginetest.Reply{rocket, rest}, nil, ids(218, 7, 2), engine.FinishStop, 0},
		{"with logprobs", []enginetest.Reply{rocket, rest}, func(r *engine.Request) { r.Output.Logprobs = true }, ids(218, 7, 2), engine.FinishStop, 0},
		// 216 10813 is " " and F0 9F: the same text, split in another way.
		{"other ids", []enginetest.Reply{reply(partialEvent(" ", ids(216), 1), partialEvent("🚀", ids(218), 4), finalEvent("eos", 4)), rest}, nil, ids(218, 7, 2), engine.FinishStop, 0},
		{"the budget ends with the character", []enginetest.Reply{rocket}, func(r *engine.Request) { r.Stop.MaxTokens = 1 }, ids(218), engine.FinishLength, 0},
		{"a stop id", []enginetest.Reply{rocket}, func(r *engine.Request) { r.Stop.TokenIDs = ids(218) }, ids(218), engine.FinishStop, 0},
		{"min_tokens", []enginetest.Reply{rocket, reply(partialEvent("x", ids(7), 1), finalEvent("limit", 1)), rest}, func(r *engine.Request) { r.Stop.MinTokens = 2 }, ids(218, 7, 7, 2), engine.FinishStop, 0},
		{"another character", []enginetest.Reply{reply(partialEvent(" x", ids(7), 1), finalEvent("eos", 1))}, nil, nil, "", engine.ProtocolError},
		{"the bytes are the client's own", []enginetest.Reply{reply(partialEvent(" x", ids(7), 1), finalEvent("eos", 1))}, func(r *engine.Request) { r.Carried = 0 }, nil, "", engine.InvalidRequest},
		{"our grammar is refused", []enginetest.Reply{{Status: 400, Pieces: []string{errorObject(400, "failed to parse grammar")}}}, nil, nil, "", engine.ProtocolError},
		{"the prompt is too long", []enginetest.Reply{{Status: 400, Pieces: []string{errorObject(400, "too long")}}}, nil, nil, "", engine.InvalidRequest},
		{"dies in the character", []enginetest.Reply{{End: enginetest.Cut}}, nil, nil, "", engine.Disconnected},
		{"dies after it", []enginetest.Reply{rocket, {End: enginetest.Cut}}, nil, ids(218), "", engine.Disconnected},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var bodies []string
			play(t, func(n int, body string) enginetest.Reply {
				bodies = append(bodies, body)
				return test.replies[n]
			}, func(t *testing.T, client engine.Client) {
				known := client.(*Client).lost.piece
				client.(*Client).lost.piece = func(id engine.TokenID) []byte {
					if id == 216 {
						return []byte(" ")
					}
					return known(id)
				}
				req := enginetest.NewRequest()
				req.TokenIDs, req.Carried = ids(1, 5, 15107, 244), 3
				req.Sampling.LogitBias = map[engine.TokenID]float64{0: -100}
				if test.change != nil {
					test.change(req)
				}
				got, finish, err := collect(t, client, req)
				if !slices.Equal(got, test.ids) || finish != test.finish || (err != nil) != (test.finish == "") || err != nil && err.Kind != test.kind {
					t.Errorf("got %v, %q, %v; want %v, %q, %v", got, finish, err, test.ids, test.finish, test.kind)
				}
			})
			if len(bodies) != len(test.replies) {
				t.Fatalf("%d requests, want %d", len(bodies), len(test.replies))
			}
			for i, body := range bodies {
				var b struct {
					Prompt  []engine.TokenID
					Grammar string
					Bias    []any `json:"logit_bias"`
				}
				if err := json.Unmarshal([]byte(body), &b); err != nil {
					t.Fatal(err)
				}
				switch {
				case (len(b.Bias) == 0) != (i == 0):
					t.Errorf("request %d has the bias %v", i, b.Bias)
				case i == 0 && (!slices.Equal(b.Prompt, ids(1, 5)) || !strings.Contains(b.Grammar, `[\U0001F680-\U0001F6BF]`)):
					t.Errorf("the character was asked for with %s", body)
				case i > 0 && (!slices.Equal(b.Prompt[:5], ids(1, 5, 15107, 244, 218)) || b.Grammar != ""):
					t.Errorf("the rest was asked for with %s", body)
				}
			}
		})
	}
}
