package sim

import (
	"slices"
	"unicode/utf8"

	"baton/engine"
)

// A generation is one answer of the model in the making: a hash chain over the
// whole sequence, from which each next id is drawn. One id lost, doubled or
// reordered before or within the answer changes all that follow.
type generation struct {
	config *Config
	words  *vocabulary

	sampling engine.SamplingParams
	stop     engine.StopConditions
	forced   []engine.TokenID // logit_bias 100 or more
	banned   []engine.TokenID // logit_bias -100 or less

	chain    uint64 // over all ids so far
	position int    // how many ids there are
	made     int    // how many of them this generation made

	deaf    bool   // nothing but the budget ends it: what SGLang makes of ignore_eos
	begun   []byte // the bytes of an unfinished character at the end
	grammar grammar
	script  []engine.TokenID // what is to be said yet, an end id last; nil = the hash decides
}

// biasLimit is the logit_bias that bans or forces an id; smaller ones are
// accepted and do nothing, as the model has no logits.
const biasLimit = 100

func newGeneration(config *Config, prompt []engine.TokenID, sampling engine.SamplingParams, stop engine.StopConditions) *generation {
	g := &generation{config: config, words: embedded(), sampling: sampling, stop: stop}
	for id, bias := range sampling.LogitBias {
		switch {
		case bias >= biasLimit:
			g.forced = append(g.forced, id)
		case bias <= -biasLimit:
			g.banned = append(g.banned, id)
		}
	}
	slices.Sort(g.forced) // a map's order is random, the model must not be
	for _, id := range prompt {
		g.push(id)
	}
	switch {
	case config.Say != "":
		g.script = restOf(scriptOf(config), prompt)
	case config.Style == StyleWords && config.VocabSize == len(g.words.pieces):
		g.script = g.opening(prompt)
	}
	return g
}

// next makes the next id. The finish reason is set with the last one.
func (g *generation) next() (engine.TokenID, engine.FinishReason) {
	id := g.choose()
	g.push(id)
	g.made++
	switch {
	case g.ends(id):
		return id, engine.FinishStop
	case g.made >= g.stop.MaxTokens, g.position >= g.config.ContextLength:
		return id, engine.FinishLength
	}
	return id, ""
}

// scriptOf is what Config.Say makes the model generate.
func scriptOf(config *Config) []engine.TokenID {
	script := Tokenize(config.Say)
	if len(config.EOS) > 0 {
		script = append(script, config.EOS[0])
	}
	return script
}

// restOf returns what of script is left behind a prompt that may end with its
// beginning: the longest such beginning counts.
func restOf(script, prompt []engine.TokenID) []engine.TokenID {
	for n := min(len(script), len(prompt)); n > 0; n-- {
		if slices.Equal(prompt[len(prompt)-n:], script[:n]) {
			return script[n:]
		}
	}
	return script
}

// ends reports whether id, the last one, ends the generation: the worker's own
// end ids count besides those that the request names.
func (g *generation) ends(id engine.TokenID) bool {
	return !g.deaf && (g.stop.Ends(id) || !g.stop.IgnoreEOS && slices.Contains(g.config.EOS, id))
}

func (g *generation) push(id engine.TokenID) {
	g.chain = link(g.chain, id)
	g.position++
	g.grammar = g.grammar.after(g.words.words, id)
	text := g.words.text(g.begun, id)
	g.begun = append(text[:0], tail(text)...)
}

// link is the chain with one id more.
func link(chain uint64, id engine.TokenID) uint64 {
	return mix(chain*0x9E3779B97F4A7C15 + uint64(uint32(id)) + 1)
}

// A draw is a source of numbers that all follow from one.
type draw uint64

func (d *draw) below(n int) int {
	*d += 0x9E3779B97F4A7C15
	return int(mix(uint64(*d)) % uint64(n))
}

// one reports whether an event of one in n happens.
func (d *draw) one(n int) bool { return d.below(n) == 0 }

// mix scatters the bits of x over all of the result (SplitMix64's last step).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

// draw is the randomness of the present position. A seed counts only when
// sampling, and is keyed by the absolute position, so that a continuation on
// another worker draws the same.
func (g *generation) draw() draw {
	h := g.chain
	if g.sampling.Temperature > 0 && g.sampling.Seed != nil {
		h ^= mix(mix(uint64(*g.sampling.Seed)) + uint64(g.position))
	}
	return draw(mix(h))
}

// maxRedraws bounds how often a masked id is drawn again before the first
// allowed one is taken.
const maxRedraws = 64

// choose draws the next id, masked ones excepted.
func (g *generation) choose() engine.TokenID {
	if len(g.script) > 0 {
		id := g.script[0]
		g.script = g.script[1:]
		return id
	}
	d := g.draw()
	if len(g.forced) > 0 {
		return g.forced[d.below(len(g.forced))]
	}
	for range maxRedraws {
		if id := g.pick(&d); !g.masked(id) {
			return id
		}
	}
	start := d.below(g.config.VocabSize)
	for i := range g.config.VocabSize {
		if id := engine.TokenID((start + i) % g.config.VocabSize); !g.masked(id) {
			return id
		}
	}
	return engine.TokenID(start) // everything is banned: anything will do
}

// masked reports whether id must not come now.
func (g *generation) masked(id engine.TokenID) bool {
	if slices.Contains(g.banned, id) {
		return true
	}
	end := slices.Contains(g.config.EOS, id) || slices.Contains(g.stop.EOS, id)
	if end && g.stop.IgnoreEOS && g.config.Kind == KindLlamaCPP {
		return true
	}
	return g.made < g.stop.MinTokens && (end || slices.Contains(g.stop.TokenIDs, id))
}

// pick draws an id in the style of the worker.
func (g *generation) pick(d *draw) engine.TokenID {
	if g.config.Style == StyleWords {
		if id, ok := g.grammar.next(g.words.words, d, g.config); ok {
			return id
		}
	}
	if len(g.config.EOS) > 0 && g.config.MeanLength > 0 && d.one(g.config.MeanLength) {
		return g.config.EOS[d.below(len(g.config.EOS))]
	}
	if g.config.VocabSize == len(g.words.pieces) && g.config.Style == StyleHash {
		// Pure chance would hardly ever spell a character of several tokens.
		if next := g.words.continuations[string(g.begun)]; len(next) > 0 && !d.one(8) {
			return next[d.below(len(next))]
		}
		if d.one(8) {
			return g.words.beginnings[d.below(len(g.words.beginnings))]
		}
	}
	for {
		id := engine.TokenID(d.below(g.config.VocabSize))
		if g.config.Style == StyleWhole && !utf8.ValidString(g.words.pieces[id]) {
			continue
		}
		if !slices.Contains(g.config.EOS, id) || len(g.config.EOS) >= g.config.VocabSize {
			return id
		}
	}
}

// logprob invents the log-probability of id, which was drawn at the position
// that p describes, and of its alternatives. All are finite and at most 0; the
// chosen id is the most likely one.
func (p position) logprob(id engine.TokenID, top, vocabSize int) engine.TokenLogprob {
	d := draw(p)
	const step = 1.0 / 1024 // exact in binary, so that a decimal round trip is exact too
	value := -float64(d.below(2048)) * step
	lp := engine.TokenLogprob{ID: id, Logprob: value}
	seen := []engine.TokenID{id}
	for i := range min(top, vocabSize) {
		if i == 0 {
			lp.Top = append(lp.Top, engine.TopLogprob{ID: id, Logprob: value})
			continue
		}
		alternative := engine.TokenID(d.below(vocabSize))
		for slices.Contains(seen, alternative) {
			alternative = (alternative + 1) % engine.TokenID(vocabSize)
		}
		seen = append(seen, alternative)
		value -= float64(1+d.below(512)) * step
		lp.Top = append(lp.Top, engine.TopLogprob{ID: alternative, Logprob: value})
	}
	return lp
}

// A position is the state of the chain before an id was drawn.
type position uint64

func (g *generation) at() position { return position(mix(g.chain + 1)) }
