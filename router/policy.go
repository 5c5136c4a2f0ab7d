package router

import "baton/engine"

// A Candidate is what a policy may look at.
type Candidate struct {
	WorkerID string
	InFlight int    // requests running there now
	Turn     uint64 // the number of the router's choice that it last was; 0 = never
}

// A Policy chooses one of the candidates, of which there is at least one, and
// returns its index. It is called with the router's lock held, so that what it
// chooses is counted before the next request looks: it must not block.
type Policy func(req *engine.Request, candidates []Candidate) int

// RoundRobin takes the worker whose turn was longest ago. Unlike a counter this
// stays fair while the set of candidates changes from request to request.
func RoundRobin(_ *engine.Request, candidates []Candidate) int {
	return first(candidates, func(a, b *Candidate) bool { return a.Turn < b.Turn })
}

// LeastLoaded takes the worker with the fewest requests in flight, and of equal
// ones the one whose turn was longest ago.
func LeastLoaded(_ *engine.Request, candidates []Candidate) int {
	return first(candidates, func(a, b *Candidate) bool {
		return a.InFlight < b.InFlight || a.InFlight == b.InFlight && a.Turn < b.Turn
	})
}

// first returns the index of the candidate that goes before all others.
func first(candidates []Candidate, before func(a, b *Candidate) bool) int {
	chosen := 0
	for i := range candidates {
		if before(&candidates[i], &candidates[chosen]) {
			chosen = i
		}
	}
	return chosen
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
