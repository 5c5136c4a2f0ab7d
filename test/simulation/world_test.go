// Package simulation checks the one property above all others: what a client
// receives with faults equals what it receives without them.
//
// A seed makes a world: a fleet of simulated workers with scripted faults, and a
// request of the public API. The request runs once through a faultless fleet and
// once through the world, with the real preprocessor, backend, migration operator
// and router, in virtual time. world.go makes worlds, text_test.go runs them at
// the level of text; wire_test.go runs them through the real engine clients and
// the real server over in-memory connections.
//
//	go test ./test/simulation -args -seeds 5000       many worlds
//	go test ./test/simulation -v -args -seed 17       one of them, with its story
package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"baton/engine/sim"
)

// A World is all that a seed decides.
type World struct {
	Seed    uint64
	Path    string // of the API
	Body    map[string]any
	Limit   int
	MaxLen  int // the sequence bound of migration, 0 = none
	Workers []sim.Config
	Leave   int // the client leaves after so many pieces of text; 0 = it stays

	// Saved is true if the fleet can save every request: one worker never
	// fails, the limit is not below the number of faults and nothing forbids a
	// move.
	Saved bool
}

// movable are faults that a move answers. The others (refusals, mere delays)
// are in tame.
var (
	movable = []sim.FaultKind{
		sim.FaultRefuse, sim.FaultDialTimeout, sim.FaultMute, sim.FaultReset, sim.FaultCut, sim.FaultEnd, sim.FaultDone,
		sim.FaultHalfNumber, sim.FaultHalfString, sim.FaultAbort, sim.FaultError, sim.FaultStall, sim.FaultGarbage,
		sim.FaultWrongID, sim.FaultLength, sim.FaultKill, sim.FaultVanish, sim.FaultShutdown,
	}
	tame = []sim.FaultKind{sim.FaultStatus, sim.FaultPause, sim.FaultDrip}
)

// NewWorld makes the world of a seed. kinds are the engines that its workers
// play; all of one world play the same.
func NewWorld(seed uint64, kinds ...string) *World {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	w := &World{Seed: seed, Limit: 30}
	kind := kinds[r.IntN(len(kinds))]
	w.request(r, kind)
	w.fleet(r, kind)
	if r.IntN(8) == 0 {
		w.Limit = r.IntN(3)
		w.Saved = false
	}
	if r.IntN(10) == 0 {
		w.MaxLen = 20 + r.IntN(60)
		w.Saved = false
	}
	if r.IntN(12) == 0 {
		w.Leave = 1 + r.IntN(8)
	}
	return w
}

func (w *World) fleet(r *rand.Rand, kind string) {
	common := sim.Config{
		Kind:       kind,
		MeanLength: 8 + r.IntN(60),
		Prefill:    time.Duration(r.IntN(80)) * time.Millisecond,
		Gap:        time.Duration(1+r.IntN(30)) * time.Millisecond,
	}
	n := 2 + r.IntN(3)
	immortal := -1
	if r.IntN(4) > 0 {
		immortal = r.IntN(n)
	}
	for i := range n {
		c := common
		c.ID = fmt.Sprintf("w%d:80", i)
		c.FinishAlone = r.IntN(2) == 0
		c.Server.ScaleOut = r.IntN(2) == 0
		for range r.IntN(4) {
			c.Deltas = append(c.Deltas, r.IntN(5))
		}
		if i != immortal {
			for range 1 + r.IntN(3) {
				c.Faults = append(c.Faults, fault(r))
			}
		}
		w.Workers = append(w.Workers, c)
	}
	w.Saved = immortal >= 0
}

func fault(r *rand.Rand) sim.Fault {
	f := sim.Fault{Times: 1 + r.IntN(3), Nth: 1 + r.IntN(4)/3, After: r.IntN(25), Delay: sim.Duration(time.Duration(1+r.IntN(800)) * time.Millisecond)}
	if r.IntN(6) == 0 {
		f.After = sim.AfterLast
	}
	f.Kind = movable[r.IntN(len(movable))]
	if r.IntN(5) == 0 {
		f.Kind = tame[r.IntN(len(tame))]
		f.Status = []int{429, 503, 503, 500, 401, 404}[r.IntN(6)]
	}
	if f.Kind == sim.FaultError {
		f.Status = []int{500, 503, 400}[r.IntN(3)]
		f.After = max(f.After, 1) // a code 400 before any token blames the request
	}
	return f
}

var words = strings.Fields("the sea is wide and 海 never sleeps naïve 😂 waves carry ships 12345 home <|im_end|> again")

func prose(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(20) {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

// stops are strings that the simulated answers do contain now and then.
var stops = []string{"e", " s", "an", "the", ".", "th", " a", "ing", "😂", "o", "xyzzy"}

func (w *World) request(r *rand.Rand, kind string) {
	b := map[string]any{"model": sim.DefaultModelName, "stream": r.IntN(4) > 0}
	if r.IntN(3) > 0 {
		w.Path = "/v1/chat/completions"
		b["messages"] = []any{map[string]any{"role": "system", "content": prose(r)}, map[string]any{"role": "user", "content": prose(r)}}
	} else {
		w.Path = "/v1/completions"
		switch r.IntN(3) {
		case 0:
			b["prompt"] = []any{prose(r), prose(r)}
		case 1:
			ids := []any{1 + r.IntN(250), 1 + r.IntN(250), 1 + r.IntN(250)}
			if kind == sim.KindLlamaCPP {
				// llama.cpp's client asks for the rest of a character under a
				// grammar, which the simulated worker does not know.
				ids[2] = int(' ')
			}
			b["prompt"] = ids
		default:
			b["prompt"] = prose(r)
		}
		if r.IntN(4) == 0 {
			b["echo"] = true
		}
	}
	b["max_tokens"] = 1 + r.IntN(60)
	b["temperature"] = []any{0, 0.7}[r.IntN(2)]
	if b["temperature"] != 0 && (kind == sim.KindVLLM || kind == sim.KindSGLang) {
		b["seed"] = r.IntN(1000) // the others draw anew after a move: nothing to compare
	}
	if r.IntN(4) == 0 {
		b["n"] = 1 + r.IntN(3)
	}
	if r.IntN(4) == 0 && (kind == sim.KindVLLM || kind == sim.KindSGLang) {
		b["min_tokens"] = 1 + r.IntN(b["max_tokens"].(int))
	}
	if r.IntN(4) == 0 {
		b["ignore_eos"] = true
	}
	if r.IntN(3) == 0 {
		var list []any
		for range 1 + r.IntN(3) {
			list = append(list, stops[r.IntN(len(stops))])
		}
		b["stop"] = list
		b["include_stop_str_in_output"] = r.IntN(2) == 0
	}
	if r.IntN(5) == 0 {
		b["stop_token_ids"] = []any{r.IntN(250), r.IntN(250)}
	}
	if r.IntN(5) == 0 {
		b["skip_special_tokens"] = false
	}
	if b["stream"] == true && r.IntN(2) == 0 {
		b["stream_options"] = map[string]any{"include_usage": true}
	}
	w.Body = b
}

// mix makes the workers of a world play different engines, as far as they
// understand the request alike: llama.cpp takes no part where it does not.
func (w *World) mix(seed uint64, kinds ...string) {
	r := rand.New(rand.NewPCG(seed, 1))
	delete(w.Body, "seed") // each has its own generator
	if w.Body["ignore_eos"] != nil {
		delete(w.Body, "min_tokens") // they differ in whether the minimum bars end ids that are ignored
	}
	_, minimum := w.Body["min_tokens"]
	if w.Body["ignore_eos"] != nil || minimum {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == sim.KindLlamaCPP })
	}
	if ids, ok := w.Body["prompt"].([]any); ok && len(ids) == 3 {
		ids[2] = int(' ') // as request does for llama.cpp
	}
	for i := range w.Workers {
		w.Workers[i].Kind = kinds[r.IntN(len(kinds))]
	}
}

const responsesPath = "/v1/responses"

// respond makes of a world's chat a request of the Responses API, and reports whether
// it is one. Some have tools and think.
func (w *World) respond(seed uint64) bool {
	if !strings.Contains(w.Path, "chat") {
		return false
	}
	r := rand.New(rand.NewPCG(seed, 2))
	w.Path = responsesPath
	messages := w.Body["messages"].([]any)
	w.Body["instructions"] = messages[0].(map[string]any)["content"]
	w.Body["input"] = messages[1:]
	w.Body["max_output_tokens"] = w.Body["max_tokens"]
	for _, name := range []string{"messages", "max_tokens", "n", "stream_options"} {
		delete(w.Body, name)
	}
	if r.IntN(3) > 0 {
		w.Body["max_output_tokens"] = 40 + r.IntN(200)
		w.Body["tools"] = []any{map[string]any{"type": "function", "name": "look", "parameters": map[string]any{
			"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}}, "required": []any{"at", "n"},
		}}}
		if r.IntN(2) == 0 {
			w.Body["reasoning"] = map[string]any{"effort": "high", "summary": []any{nil, "auto"}[r.IntN(2)]}
		}
		delete(w.Body, "stop") // it would end nearly every call
		delete(w.Body, "stop_token_ids")
		for i := range w.Workers {
			w.Workers[i].Style = sim.StyleWords // the others write no calls
		}
	}
	return true
}

// adapt makes the workers of a world comparable on the wire, and returns their
// kinds.
func (w *World) adapt() (kinds []string) {
	for _, c := range w.Workers {
		kinds = append(kinds, c.Kind)
	}
	for i := range w.Workers {
		c := &w.Workers[i]
		if slices.Contains(kinds, sim.KindLlamaCPP) {
			// The ids that llama.cpp's protocol loses inside characters can be
			// reconstructed as other ids of the same text, which the hash would
			// notice.
			c.Style = sim.StyleWhole
		}
		if c.Kind == sim.KindSGLang {
			c.Server.Deterministic, c.Server.Incremental = true, len(c.Deltas)%2 == 1
		}
		if c.Kind == sim.KindTRTLLM && len(c.Deltas)%2 == 1 {
			c.Server.Profile = "trtllm-1.0"
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// JSON is the request's body.
func (w *World) JSON() []byte {
	data, err := json.Marshal(w.Body)
	if err != nil {
		panic(err)
	}
	return data
}

func (w *World) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: POST %s %s\nlimit %d, bound %d, leaves after %d, saved %v\n", w.Seed, w.Path, w.JSON(), w.Limit, w.MaxLen, w.Leave, w.Saved)
	for _, c := range w.Workers {
		faults, _ := json.Marshal(c.Faults)
		fmt.Fprintf(&b, "  %s %s prefill %v gap %v deltas %v alone %v mean %d faults %s\n", c.ID, c.Kind, c.Prefill, c.Gap, c.Deltas, c.FinishAlone, c.MeanLength, faults)
	}
	return b.String()
}

// faultless is a fleet of one worker that never fails.
func (w *World) faultless() *World {
	calm := *w
	c := w.Workers[0]
	c.ID, c.Faults, c.Deltas, c.FinishAlone = "calm:80", nil, nil, false
	calm.Workers = []sim.Config{c}
	calm.Limit, calm.MaxLen, calm.Leave, calm.Saved = 0, 0, 0, true
	return &calm
}
