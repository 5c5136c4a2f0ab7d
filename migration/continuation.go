package migration

import (
	"fmt"
	"math"
	"slices"

	"baton/engine"
)

// A continuation is what is kept of one request so that another worker can go
// on with it: the ids generated so far (G, over all attempts), what is left of
// its limits, and who has failed it.
type continuation struct {
	generated int              // |G|
	delivered int              // ids of the current attempt
	last      engine.TokenID   // of G; valid if generated > 0
	kept      []engine.TokenID // G; nil once migration is off
	moves     int
	limit     int  // moves allowed over the request's life
	tooLong   bool // the sequence bound switched migration off
	maxSeqLen int  // 0 = no bound

	// What each token is held against, out of the request.
	prompt    int // ids
	minTokens int
	budget    int              // |G| at which the budget is used up
	full      int              // |G| at which the model's context is full
	ends      []engine.TokenID // the ids that end the generation

	req      *engine.Request
	attempts int      // after the first one, for their ids
	avoid    []string // workers that failed the request
	suspects []string // of these, the last ones in a row that were lost without a token between them
	cautious bool     // of these, the last one was lost before a token of it, together with other requests
	drained  string   // the worker that gave the request up because it is drained, without a token since
}

func newContinuation(req *engine.Request, cfg Config) continuation {
	c := continuation{
		limit: cfg.Limit, maxSeqLen: cfg.MaxSeqLen,
		prompt: len(req.TokenIDs), minTokens: req.Stop.MinTokens, budget: req.Stop.MaxTokens,
		full: math.MaxInt, ends: req.Stop.EndIDs(),
		req: req,
	}
	if req.ContextLength > 0 {
		c.full = req.ContextLength - c.prompt
	}
	c.checkLength()
	return c
}

// observe takes in a delta of the current attempt and returns what of it goes
// on to the client. An error means that the worker ended the generation although
// it is not complete; the returned delta is still delivered, without its finish.
func (c *continuation) observe(d engine.Delta) (engine.Delta, *engine.Error) {
	d = c.cutAtEnd(d)
	c.delivered += len(d.TokenIDs)
	c.generated += len(d.TokenIDs)
	if len(d.TokenIDs) > 0 {
		c.last = d.TokenIDs[len(d.TokenIDs)-1]
		if c.carries() {
			c.kept = append(c.kept, d.TokenIDs...)
		}
		if c.carries() || c.restarts() {
			c.checkLength()
		}
	}
	if d.FinishReason == engine.FinishLength && c.endsEarly() {
		d.FinishReason = ""
		return d, &engine.Error{Kind: engine.EngineError, Err: fmt.Errorf(
			"it ended for length after %d of %d tokens, below the model's context of %d: its own context is smaller",
			c.generated, c.budget, c.req.ContextLength)}
	}
	return d, nil
}

// cutAtEnd finishes the generation at its end id, whether or not the worker has
// said so yet: the stages above need not know what an end id is, and the client
// gets its end at once. It drops what a worker delivers beyond the end, so that
// none can make an answer longer than was asked for.
func (c *continuation) cutAtEnd(d engine.Delta) engine.Delta {
	if len(d.TokenIDs) == 0 {
		return d
	}
	if c.generated > 0 && c.usedUp() {
		return engine.Delta{FinishReason: engine.FinishLength}
	}
	room := c.budget - c.generated
	for i, id := range d.TokenIDs[:min(len(d.TokenIDs), room)] {
		if c.generated+i+1 > c.minTokens && slices.Contains(c.ends, id) {
			return cut(d, i+1, engine.FinishStop)
		}
	}
	if len(d.TokenIDs) > room {
		return cut(d, room, engine.FinishLength)
	}
	return d
}

// cut returns the first n ids of d as the end of a generation.
func cut(d engine.Delta, n int, reason engine.FinishReason) engine.Delta {
	d.TokenIDs, d.FinishReason = d.TokenIDs[:n], reason
	if len(d.Logprobs) > n {
		d.Logprobs = d.Logprobs[:n]
	}
	return d
}

// endsEarly reports whether an end for length now would be a truncation. vLLM
// clamps a budget to its own context without a word, so a worker with a smaller
// context than its peers ends answers that another one could go on with.
func (c *continuation) endsEarly() bool {
	return c.req.ContextLength > 0 && !c.usedUp()
}

// usedUp reports whether nothing is left of the budget or of the context.
func (c *continuation) usedUp() bool { return c.generated >= c.budget || c.generated >= c.full }

// fulfilled returns how the request ends if G already is all that was asked
// for, else "". A worker that died between the last token and its finish reason
// needs no successor, and none may be asked for zero tokens.
func (c *continuation) fulfilled() engine.FinishReason {
	switch {
	case c.generated == 0:
		return ""
	case c.generated > c.minTokens && slices.Contains(c.ends, c.last):
		return engine.FinishStop
	case c.usedUp():
		return engine.FinishLength
	}
	return ""
}

// A verdict is what to do after an attempt failed.
type verdict struct {
	finish engine.FinishReason  // set: end the stream well
	move   engine.MigrationType // set: go on with next
	refuse refusal              // why a failure that calls for a move is not moved
}

// A refusal is a reason not to migrate, as the metric's label names it.
type refusal string

const (
	refusedLimit     refusal = refusal(engine.MovesUsedUp)      // the limit is used up, or is 0
	refusedMaxSeqLen refusal = refusal(engine.SequenceTooLong)  // the sequence bound switched migration off
	refusedPoison    refusal = refusal(engine.PoisonousRequest) // the request lost its worker twice in a row, and is the cause
	refusedGuided    refusal = refusal(engine.GuidedDecoding)   // a constrained answer of which something was delivered
)

var refusals = []refusal{refusedLimit, refusedMaxSeqLen, refusedPoison, refusedGuided}

// judge decides what follows a failure of the current attempt.
func (c *continuation) judge(err *engine.Error) verdict {
	switch err.Kind {
	case engine.Cancelled, engine.TimedOut, engine.Internal:
		return verdict{}
	}
	if finish := c.fulfilled(); finish != "" {
		return verdict{finish: finish}
	}
	switch {
	case !c.callsForMove(err.Kind):
		return verdict{}
	case c.tooLong:
		return verdict{refuse: refusedMaxSeqLen}
	case c.poisonous(err):
		return verdict{refuse: refusedPoison}
	case c.limit == 0 || c.moves >= c.limit && err.Kind != engine.Drained:
		return verdict{refuse: refusedLimit}
	case c.generated > 0 && !c.restarts():
		if c.req.Constraint != nil {
			return verdict{refuse: refusedGuided}
		}
		return verdict{move: engine.OngoingRequest}
	case c.req.Carried > 0: // an earlier part of the answer was delivered
		return verdict{move: engine.OngoingRequest}
	}
	return verdict{move: engine.NewRequest}
}

// callsForMove is the operator's own table of the kinds of failure: those that
// mean "this worker cannot go on". A refusal before the first token is no such
// failure, the router has already asked every other worker.
func (c *continuation) callsForMove(kind engine.Kind) bool {
	switch kind {
	case engine.CannotConnect, engine.ConnectionTimeout, engine.Disconnected, engine.Stalled,
		engine.EngineShutdown, engine.EngineError, engine.ProtocolError, engine.Drained:
		return true
	case engine.Overloaded, engine.WorkerMisconfigured:
		return c.delivered > 0
	}
	return false
}

// poisonous reports whether err is the second death in a row, without a token
// between them, for which no other request can be blamed: a third worker is not
// risked.
func (c *continuation) poisonous(err *engine.Error) bool {
	return len(c.suspects) > 0 && c.delivered == 0 && err.IsLoss() && err.Culprit
}

// suspected reports whether err says that no worker was found on which a request
// could be tried apart from others that lost the same two workers.
func (c *continuation) suspected(err *engine.Error) bool {
	return err.Kind == engine.NoWorker && c.cautious && len(c.suspects) > 1
}

// failed takes note of the worker that failed, before next.
func (c *continuation) failed(err *engine.Error) {
	if !err.IsLoss() || c.delivered > 0 {
		c.suspects = nil
	}
	c.cautious = err.IsLoss() && c.delivered == 0 && err.Shared
	switch {
	case err.Kind == engine.Drained:
		c.drained = err.WorkerID
	case c.delivered > 0:
		c.drained = ""
	}
	if err.WorkerID == "" {
		return
	}
	if err.IsLoss() {
		c.suspects = append(c.suspects, err.WorkerID)
	}
	if !slices.Contains(c.avoid, err.WorkerID) {
		c.avoid = append(c.avoid, err.WorkerID)
	}
}

// first returns the request of the first attempt.
func (c *continuation) first() *engine.Request {
	r := *c.req
	r.ID, r.Movable = c.attemptID(), c.movable
	return &r
}

// next returns the request that goes on with G after err, and uses up one move
// unless the worker was only drained.
func (c *continuation) next(err *engine.Error) *engine.Request {
	c.failed(err)
	if err.Kind != engine.Drained {
		c.moves++
	}
	c.attempts++
	if c.restarts() {
		c.generated = 0
	}
	c.delivered = 0
	r := *c.req
	r.ID, r.Movable = c.attemptID(), c.movable
	r.TokenIDs = slices.Concat(c.req.TokenIDs, c.kept)
	r.Carried = c.req.Carried + c.generated
	r.Stop.MaxTokens -= c.generated
	r.Stop.MinTokens = max(0, r.Stop.MinTokens-c.generated)
	r.Avoid = slices.Concat(c.req.Avoid, c.avoid)
	r.Suspects, r.Cautious = slices.Clone(c.suspects), c.cautious
	r.DrainedFrom = c.drained
	r.Prefer = "" // it is the worker that failed, or was not there
	return &r
}

func (c *continuation) attemptID() string { return engine.SubID(c.req.ID, "-m", c.attempts, 2) }

// carries reports whether G is kept, because some failure, or the draining of a
// worker, could still be answered by a move that takes it along.
func (c *continuation) carries() bool { return !c.tooLong && c.limit > 0 && c.req.Constraint == nil }

// restarts reports whether the answer is held back until it is complete, so that a
// move begins it anew: what an engine generates under a constraint cannot be
// continued by another one, whose grammar would be at its beginning.
func (c *continuation) restarts() bool { return c.req.Constraint != nil && c.req.HoldBack }

// movable reports whether a move would be made if the attempt ended now.
func (c *continuation) movable() bool {
	return c.carries() || !c.tooLong && c.limit > 0 && (c.generated == 0 || c.restarts())
}

// checkLength switches migration off for good once prompt and output together
// are longer than the bound (exactly the bound still migrates), and lets go of
// the tokens.
func (c *continuation) checkLength() {
	if c.maxSeqLen > 0 && c.limit > 0 && c.prompt+c.generated > c.maxSeqLen {
		c.tooLong = true
		c.kept = nil
	}
}
