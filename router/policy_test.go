package router

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func candidates(inFlight ...int) []Candidate {
	all := make([]Candidate, len(inFlight))
	for i, n := range inFlight {
		all[i] = Candidate{WorkerID: fmt.Sprint("w", i), InFlight: n}
	}
	return all
}

// counts runs the policy n times over the same picture, apart from whose turn it is.
func counts(p Policy, n int, all []Candidate) []int {
	chosen := make([]int, len(all))
	for turn := range n {
		i := p(nil, all)
		all[i].Turn = uint64(turn + 1)
		chosen[i]++
	}
	return chosen
}

func TestPoliciesAreFairAmongEquals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)).IntN
	for name, p := range map[string]Policy{
		"round-robin": RoundRobin, "least-loaded": LeastLoaded, "random": Random(rnd), "power-of-two": PowerOfTwo(rnd),
	} {
		for i, n := range counts(p, 4000, candidates(3, 3, 3, 3)) {
			if n < 850 || n > 1150 {
				t.Errorf("%s: worker %d was chosen %d times of 4000", name, i, n)
			}
		}
		if got := counts(p, 3, candidates(9)); got[0] != 3 {
			t.Errorf("%s: a lone candidate was chosen %d times of 3", name, got[0])
		}
	}
}

func TestRoundRobinStaysFairWhileCandidatesChange(t *testing.T) {
	all := candidates(0, 0, 0, 0)
	chosen := make(map[string]int)
	for i := range 4000 {
		set := all
		if i%2 == 0 { // a counter modulo the length would favour some
			set = all[:3]
		}
		next := &set[RoundRobin(nil, set)]
		next.Turn = uint64(i + 1)
		chosen[next.WorkerID]++
	}
	for id, n := range chosen {
		if n < 950 || n > 1050 {
			t.Errorf("%s was chosen %d times of 4000", id, n)
		}
	}
}

func TestLeastLoaded(t *testing.T) {
	got := counts(LeastLoaded, 100, candidates(2, 1, 5, 1))
	if got[0] != 0 || got[1] != 50 || got[2] != 0 || got[3] != 50 {
		t.Errorf("chosen %v", got)
	}
}

func TestPowerOfTwoNeverTakesTheFullest(t *testing.T) {
	got := counts(PowerOfTwo(rand.New(rand.NewPCG(1, 2)).IntN), 3000, candidates(1, 0, 2))
	if got[2] != 0 || got[0] < 850 || got[1] < 1850 {
		t.Errorf("chosen %v, want about 1000, 2000, 0", got)
	}
	if got := counts(PowerOfTwo(rand.New(rand.NewPCG(1, 2)).IntN), 100, candidates(1, 0)); got[0] != 0 {
		t.Errorf("of two the fuller one was chosen %d times of 100", got[0])
	}
}

// The router tells the policy whose turn it is.
func TestIdleWorkersTakeTurns(t *testing.T) {
	for name, p := range map[string]Policy{"round-robin": RoundRobin, "least-loaded": LeastLoaded} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig
			cfg.Policy = p
			newRig(t, 3, cfg, func(t *testing.T, r *rig) {
				for i := range 6 {
					r.mustAnswer(t, request(), fmt.Sprintf("w%d", i%3+1))
				}
			})
		})
	}
}
