package router

import (
	"testing"
	"time"

	"baton/engine"
)

// A worker that died and comes back with a smaller context is another one: what
// does not fit into it is not sent there.
func TestAnotherContextAtTheSameAddress(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenFails(1, engine.Disconnected))
		r.mustFail(t, request(), engine.Disconnected)
		f.do(func() {
			f.models, f.play = []Model{{Name: "m", Own: "own-w1", ContextLength: 4}}, tokens(1, 0)
		})
		time.Sleep(10 * testConfig.HealthInterval)
		r.mustBe(t, "w1", stateReady)
		before := f.asked()
		long := request()
		long.TokenIDs = make([]engine.TokenID, 5)
		for range 4 {
			r.mustAnswer(t, long, "w2")
		}
		if n := f.asked() - before; n != 0 {
			t.Errorf("it was asked %d times for more than it can hold", n)
		}
		short := request()
		short.TokenIDs = []engine.TokenID{1, 2}
		served := false
		for range 4 {
			req := *short
			req.Trace = &engine.Trace{}
			r.mustAnswer(t, &req, "")
			served = served || req.Trace.Attempts[0].WorkerID == "w1"
		}
		if !served {
			t.Error("it serves nothing")
		}
	})
}
