package router

import (
	"sync"

	"baton/engine"
)

// A Candidate is what a policy may look at.
type Candidate struct {
	WorkerID string
	InFlight int // requests running there now
}

// A Policy chooses one of the candidates, of which there is at least one, and
// returns its index. It is called with the router's lock held, so that what it
// chooses is counted before the next request looks: it must not block.
type Policy func(req *engine.Request, candidates []Candidate) int

// RoundRobin takes the worker whose turn was longest ago. Unlike a counter this
// stays fair while the set of candidates changes from request to request.
func RoundRobin() Policy {
	var t turns
	return func(_ *engine.Request, candidates []Candidate) int {
		return t.take(candidates, func(Candidate) bool { return true })
	}
}

// LeastLoaded takes the worker with the fewest requests in flight, and of equal
// ones the one whose turn was longest ago.
func LeastLoaded() Policy {
	var t turns
	return func(_ *engine.Request, candidates []Candidate) int {
		least := candidates[0].InFlight
		for _, c := range candidates[1:] {
			least = min(least, c.InFlight)
		}
		return t.take(candidates, func(c Candidate) bool { return c.InFlight == least })
	}
}

// Random takes any worker. rnd returns a number in [0, n).
func Random(rnd func(n int) int) Policy {
	return func(_ *engine.Request, candidates []Candidate) int { return rnd(len(candidates)) }
}

// PowerOfTwo draws two different workers and takes the less loaded one: nearly
// as even as LeastLoaded, without the herd when several frontends decide on the
// same stale picture. Of equal ones it takes the first drawn, which is a random one.
func PowerOfTwo(rnd func(n int) int) Policy {
	return func(_ *engine.Request, candidates []Candidate) int {
		first := rnd(len(candidates))
		if len(candidates) == 1 {
			return first
		}
		second := rnd(len(candidates) - 1)
		if second >= first {
			second++
		}
		if candidates[second].InFlight < candidates[first].InFlight {
			return second
		}
		return first
	}
}

// maxTurns bounds what turns remembers of workers that have long gone.
const maxTurns = 4096

// turns remembers when each worker was last chosen.
type turns struct {
	mu   sync.Mutex // guards the rest: one policy may serve several routers
	turn uint64
	last map[string]uint64
}

// take returns the index of the eligible candidate whose turn was longest ago.
// At least one must be eligible.
func (t *turns) take(candidates []Candidate, eligible func(Candidate) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	chosen := -1
	for i, c := range candidates {
		if eligible(c) && (chosen < 0 || t.last[c.WorkerID] < t.last[candidates[chosen].WorkerID]) {
			chosen = i
		}
	}
	if t.last == nil || len(t.last) >= maxTurns {
		t.last = make(map[string]uint64)
	}
	t.turn++
	t.last[candidates[chosen].WorkerID] = t.turn
	return chosen
}
