package sim

import (
	"time"

	"baton/engine"
)

// A producer turns a generation into deltas: it paces them, groups ids, and
// cuts a delta short where a fault is to strike, so that a fault after k tokens
// comes after exactly k. What the fault then does is its caller's business.
type producer struct {
	config *Config
	g      *generation
	output engine.OutputOptions
	stops  *stopStrings // nil = none
	fault  *Fault       // nil once it is over
	wait   func(time.Duration) error

	turn      int // which of config.Deltas is next
	delivered int // ids so far, those of a fault included
	finish    engine.FinishReason
}

// due reports whether the fault strikes now.
func (p *producer) due() bool { return p.fault.due(p.delivered, p.finish) }

// struck reports whether the fault is of this kind and has begun.
func (p *producer) struck(kind FaultKind) bool {
	return p.fault != nil && p.fault.Kind == kind && p.due()
}

// delta makes the next delta. Once p.finish is set there are no more; the
// delta's own FinishReason is left to the caller.
func (p *producer) delta() (d engine.Delta, err error) {
	size := p.config.Deltas[p.turn%len(p.config.Deltas)]
	p.turn++
	for len(d.TokenIDs) < size && p.finish == "" {
		if err := p.wait(p.pace()); err != nil {
			return d, err
		}
		if p.struck(FaultWrongID) {
			p.add(&d, p.fault.wrongID(p.config), p.g.at())
			p.fault = nil
			continue
		}
		at := p.g.at()
		var id engine.TokenID
		id, p.finish = p.g.next()
		p.add(&d, id, at)
		if p.stops != nil && p.finish != engine.FinishStop && p.stops.add(id) && p.delivered > p.g.stop.MinTokens {
			p.finish = engine.FinishStop
		}
		if p.due() {
			break
		}
	}
	return d, nil
}

func (p *producer) add(d *engine.Delta, id engine.TokenID, at position) {
	p.delivered++
	d.TokenIDs = append(d.TokenIDs, id)
	if p.output.Logprobs {
		d.Logprobs = append(d.Logprobs, at.logprob(id, p.output.TopLogprobs, p.config.VocabSize))
	}
}

// pace is how long the next token takes.
func (p *producer) pace() time.Duration {
	switch {
	case p.struck(FaultDrip):
		return time.Duration(p.fault.Delay)
	case p.delivered == 0:
		return p.config.Prefill
	}
	return p.config.Gap
}
