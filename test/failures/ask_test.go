package failures

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

// ask sends the request and reads the answer as a strict client.
func (s *stage) ask(f *failure, p phase) observation {
	tr := &http.Transport{DialContext: s.network.DialContext}
	defer tr.CloseIdleConnections()
	streamed := `,"stream":true,"stream_options":{"include_usage":true}`
	if s.unary {
		streamed = ""
	}
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"the sea"}],"max_tokens":%d,"temperature":0%s}`,
		sim.DefaultModelName, answerTokens, streamed)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+frontAddress+"/v1/chat/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	o := observation{start: time.Now()}
	last := o.start
	if f.act != nil && p == beforeFirst {
		defer time.AfterFunc(prefill/2, func() { f.act(s) }).Stop()
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		o.broken = err
		return o
	}
	defer resp.Body.Close()
	o.answer = &harness.Answer{Status: resp.StatusCode}
	switch {
	case resp.StatusCode != http.StatusOK:
		o.broken = readError(o.answer, resp.Body)
	case s.unary:
		o.broken = readWhole(o.answer, resp.Body)
	default:
		o.broken = harness.ReadStream(o.answer, resp.Body, true, func(n int) {
			o.gap, last = max(o.gap, time.Since(last)), time.Now()
			if n == struckAfter && f.act != nil && p == inTheMiddle {
				f.act(s)
			}
		})
	}
	o.end = time.Since(last)
	o.took = time.Since(o.start)
	return o
}

// checkAsked checks that every attempt was asked for what was left of the answer:
// the budget is less by what the prompt is longer, and never nothing.
func (s *stage) checkAsked() {
	s.t.Helper()
	budget := map[string]string{sim.KindVLLM: "max_tokens", sim.KindLlamaCPP: "n_predict"}[s.engine]
	sums, asked := map[int]bool{}, map[string]string{}
	for worker, w := range s.fleet {
		for _, r := range w.Requests() {
			if !strings.Contains(r.ID, "-m") {
				continue // a probe
			}
			n, err := strconv.Atoi(string(r.Params[budget]))
			if err != nil || n < 1 {
				s.t.Errorf("attempt %s for %s %s", r.ID, budget, r.Params[budget])
			}
			// On the same worker it may come twice: over a kept connection that seemed
			// to be dead, and over a fresh one.
			if before := asked[r.ID]; before != "" && before != worker {
				s.t.Errorf("attempt %s on %s and on %s", r.ID, before, worker)
			}
			asked[r.ID], sums[len(r.TokenIDs)+n] = worker, true
		}
	}
	if len(sums) > 1 {
		s.t.Errorf("prompt and budget of the attempts have different sums: %v", sums)
	}
}
