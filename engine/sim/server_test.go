package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
)

// workerAddress is where a worker listens in a bubble, as http://worker.
const workerAddress = "worker:80"

// inBubble serves a worker in memory and hands over a client of it.
func inBubble(t *testing.T, config Config, test func(t *testing.T, s *Server, client *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		s, l := NewServer(config), network.Listen(workerAddress)
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		transport := &http.Transport{DialContext: network.DialContext}
		test(t, s, &http.Client{Transport: transport})
		transport.CloseIdleConnections()
		s.Revive() // frozen handlers would never end
		s.Kill()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		synctest.Wait()
		if stats := s.Stats(); stats.Running != 0 {
			t.Errorf("%d requests are still running", stats.Running)
		}
	})
}

// generate asks for an answer of up to n tokens as the clients do.
func generate(ctx context.Context, client *http.Client, kind, url string, prompt []engine.TokenID, n int) (*http.Response, error) {
	path, body := vllmCompletions, jsonObject{"model": "sim", "prompt": prompt, "max_tokens": n, "stream": true, "return_token_ids": true}
	if kind == KindLlamaCPP {
		path, body = "/completion", jsonObject{"prompt": prompt, "n_predict": n, "stream": true, "return_tokens": true, "sse_ping_interval": 1}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(string(encodeJSON(body))))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Request-Id", "a-m00")
	return client.Do(req)
}

// A reading is what a client made of a stream.
type reading struct {
	status int
	ids    []engine.TokenID
	finish string   // finish reason or stop type
	events []string // all of them, comments too
	rest   string   // after the last whole event
	err    error
}

func read(resp *http.Response, err error) (r reading) {
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	r.status = resp.StatusCode
	data, err := io.ReadAll(resp.Body)
	r.err = err
	whole := strings.LastIndex(string(data), "\n\n") + 2
	if whole < 2 {
		whole = 0
	}
	r.rest = string(data[whole:])
	for _, f := range frames(data[:whole]) {
		r.events = append(r.events, f)
		var v struct {
			Tokens  []engine.TokenID
			Stop    bool
			Type    string `json:"stop_type"`
			Choices []struct {
				TokenIDs     []engine.TokenID `json:"token_ids"`
				FinishReason string           `json:"finish_reason"`
			}
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(f, "data: ")), &v) != nil {
			continue
		}
		r.ids = append(r.ids, v.Tokens...)
		if v.Stop {
			r.finish = v.Type
		}
		for _, c := range v.Choices {
			r.ids = append(r.ids, c.TokenIDs...)
			if c.FinishReason != "" {
				r.finish = c.FinishReason
			}
		}
	}
	return r
}

func (r reading) last() string {
	if len(r.events) == 0 {
		return ""
	}
	return r.events[len(r.events)-1]
}

var bothKinds = []string{KindVLLM, KindLlamaCPP}

func TestServerGivesTheReference(t *testing.T) {
	for _, config := range []Config{
		{Kind: KindVLLM}, {Kind: KindVLLM, Deltas: []int{0, 3, 1}}, {Kind: KindVLLM, FinishAlone: true}, {Kind: KindVLLM, Style: StyleWords},
		{Kind: KindLlamaCPP, Style: StyleWhole}, {Kind: KindLlamaCPP, Style: StyleWords, Deltas: []int{4}}, {Kind: KindLlamaCPP, Style: StyleWhole, FinishAlone: true},
	} {
		config.Gap = time.Minute
		inBubble(t, config, func(t *testing.T, s *Server, client *http.Client) {
			want, finish := s.Reference(request(prompt, 60))
			got := read(generate(t.Context(), client, config.Kind, "http://worker", prompt, 60))
			wantFinish := string(finish)
			if config.Kind == KindLlamaCPP {
				wantFinish = map[engine.FinishReason]string{engine.FinishStop: "eos", engine.FinishLength: "limit"}[finish]
			}
			if got.err != nil || !slices.Equal(got.ids, want) || got.finish != wantFinish || got.rest != "" {
				t.Errorf("%+v: %d ids of %d, finish %q, %v", config, len(got.ids), len(want), got.finish, got.err)
			}
			if stats := s.Stats(); stats.Finished != 1 || stats.Started != 1 || stats.Tokens != len(want) {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

// onLoopback serves a worker on a TCP port: resets exist only there.
func onLoopback(t *testing.T, config Config) (*Server, string) {
	t.Helper()
	s := NewServer(config)
	url, stop, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Thaw()
		stop()
	})
	return s, url
}

// settled returns the counters once nothing is running: a handler ends a moment
// after its client has seen the end.
func settled(t *testing.T, s *Server) Stats {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Settle(ctx); err != nil {
		t.Fatal("requests are still running after ten seconds")
	}
	return s.Stats()
}

func TestWireFaultsThatEndTheStream(t *testing.T) {
	isReset := func(r reading) bool { return errors.Is(r.err, syscall.ECONNRESET) }
	isCut := func(r reading) bool { return errors.Is(r.err, io.ErrUnexpectedEOF) }
	isEnd := func(r reading) bool { return r.err == nil && r.rest == "" }
	tests := []struct {
		fault Fault
		ids   int
		how   func(r reading) bool
	}{
		{Fault{Kind: FaultRefuse}, 0, func(r reading) bool { return r.status == 0 && errors.Is(r.err, io.EOF) }},
		{Fault{Kind: FaultReset, After: 4}, 4, isReset},
		{Fault{Kind: FaultReset}, 0, func(r reading) bool { return errors.Is(r.err, syscall.ECONNRESET) }},
		{Fault{Kind: FaultCut, After: 4}, 4, isCut},
		{Fault{Kind: FaultCut, After: AfterLast}, 12, isCut},
		{Fault{Kind: FaultCut, After: 12}, 12, isCut},
		{Fault{Kind: FaultEnd, After: 4}, 4, isEnd},
		{Fault{Kind: FaultQuiet, After: 4}, 4, isEnd},
		{Fault{Kind: FaultDone, After: 4}, 4, func(r reading) bool { return isEnd(r) && r.last() == "data: [DONE]" }},
		{Fault{Kind: FaultHalfNumber, After: 4}, 4, func(r reading) bool { return isReset(r) && strings.HasSuffix(r.rest, "[12") }},
		{Fault{Kind: FaultHalfString, After: 4}, 4, func(r reading) bool { return isReset(r) && strings.HasSuffix(r.rest, "世"[:2]) }},
		{Fault{Kind: FaultError, After: 4}, 4, func(r reading) bool {
			return isEnd(r) && slices.ContainsFunc(r.events, func(e string) bool {
				return strings.HasPrefix(e, `data: {"error":`) && strings.Contains(strings.ReplaceAll(e, " ", ""), `"code":500`)
			})
		}},
		{Fault{Kind: FaultGarbage, After: 4}, 4, func(r reading) bool { return isEnd(r) && strings.Contains(r.last(), "oops") }},
		{Fault{Kind: FaultKill, After: 4}, 4, func(r reading) bool { return isCut(r) || isReset(r) }},
	}
	for _, kind := range bothKinds {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/%s after %d", kind, tt.fault.Kind, tt.fault.After), func(t *testing.T) {
				s, url := onLoopback(t, Config{Kind: kind, Style: StyleWhole, MeanLength: -1, Faults: []Fault{tt.fault}})
				whole, _ := s.Reference(request(prompt, 12))
				transport := &http.Transport{DisableKeepAlives: true}
				r := read(generate(t.Context(), &http.Client{Transport: transport}, kind, url, prompt, 12))
				if !tt.how(r) || r.finish != "" {
					t.Errorf("finish %q, error %v, rest %q, last event %q", r.finish, r.err, r.rest, r.last())
				}
				if !slices.Equal(r.ids, whole[:tt.ids]) {
					t.Errorf("%d ids, want the first %d", len(r.ids), tt.ids)
				}
				if stats := settled(t, s); stats.Failed+stats.Aborted != 1 || stats.Finished != 0 {
					t.Errorf("stats %+v", stats)
				}
			})
		}
	}
}

func TestOldErrorFrame(t *testing.T) {
	_, url := onLoopback(t, Config{MeanLength: -1, Faults: []Fault{{Kind: FaultShutdown, After: 2, Status: 400}}})
	r := read(generate(t.Context(), http.DefaultClient, KindVLLM, url, prompt, 12))
	if n := len(r.events); n != 4 || !strings.Contains(r.events[2], `"type": "BadRequestError", "param": null, "code": 400`) || r.last() != "data: [DONE]" {
		t.Errorf("%q", r.events)
	}
}

func TestStatusFaults(t *testing.T) {
	for _, kind := range bothKinds {
		for _, status := range []int{400, 401, 403, 404, 429, 500, 503} {
			_, url := onLoopback(t, Config{Kind: kind, Style: StyleWhole, Faults: []Fault{{Kind: FaultStatus, Status: status, RetryAfter: 9, Times: 1}}})
			resp, err := generate(t.Context(), http.DefaultClient, kind, url, prompt, 3)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != status || resp.Header.Get("Retry-After") != "9" || !strings.HasPrefix(string(body), `{"error":`) {
				t.Errorf("%s %d: %d %v %s", kind, status, resp.StatusCode, resp.Header, body)
			}
			if r := read(generate(t.Context(), http.DefaultClient, kind, url, prompt, 3)); r.status != 200 || len(r.ids) != 3 {
				t.Errorf("%s after %d: %+v", kind, status, r)
			}
		}
	}
}

func TestWireFaultsThatGoOn(t *testing.T) {
	for _, kind := range bothKinds {
		config := Config{Kind: kind, Style: StyleWhole, MeanLength: -1}
		inBubble(t, config, func(t *testing.T, s *Server, client *http.Client) {
			whole, _ := s.Reference(request(prompt, 12))
			call := func(f Fault) (reading, time.Duration) {
				s.SetFaults(f)
				begin := time.Now()
				return read(generate(t.Context(), client, kind, "http://worker", prompt, 12)), time.Since(begin)
			}
			minute := Duration(time.Minute)
			for _, f := range []Fault{{Kind: FaultPause, After: 5, Delay: minute}, {Kind: FaultPause, After: AfterLast, Delay: minute}, {Kind: FaultFreeze, After: 5, Delay: minute}} {
				r, took := call(f)
				if r.err != nil || !slices.Equal(r.ids, whole) || r.finish == "" || took != time.Minute {
					t.Errorf("%s %s: %d ids, finish %q, %v in %v", kind, f.Kind, len(r.ids), r.finish, r.err, took)
				}
				pings := strings.Count(strings.Join(r.events, "\n"), ":\n") + strings.Count(r.last(), ":")
				if f.Kind == FaultPause && kind == KindLlamaCPP && pings < 50 {
					t.Errorf("%d pings in a minute of silence", pings)
				}
			}
			if r, took := call(Fault{Kind: FaultDrip, After: 5, Delay: minute}); !slices.Equal(r.ids, whole) || r.finish == "" || took < 7*time.Minute {
				t.Errorf("%s drip: %d ids in %v", kind, len(r.ids), took)
			}
			if r, _ := call(Fault{Kind: FaultWrongID, After: 5}); int(r.ids[5]) != ModelVocabSize() {
				t.Errorf("%s wrong id: %v", kind, r.ids)
			}
			if r, _ := call(Fault{Kind: FaultLength, After: 5}); !slices.Equal(r.ids, whole[:5]) || r.finish == "" {
				t.Errorf("%s length: %d ids, finish %q", kind, len(r.ids), r.finish)
			}
			r, _ := call(Fault{Kind: FaultMiscount, After: 5})
			if kind == KindLlamaCPP && !strings.Contains(r.last(), `"tokens_predicted":13`) || len(r.ids) != 12 {
				t.Errorf("%s miscount: %d ids, %s", kind, len(r.ids), r.last())
			}
		})
	}
}

func TestSilence(t *testing.T) {
	for _, kind := range bothKinds {
		for _, f := range []FaultKind{FaultStall, FaultMute, FaultVanish, FaultFreeze} {
			inBubble(t, Config{Kind: kind, MeanLength: -1, Style: StyleWhole}, func(t *testing.T, s *Server, client *http.Client) {
				s.SetFaults(Fault{Kind: f, After: 3, Times: 1})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				begin := time.Now()
				r := read(generate(ctx, client, kind, "http://worker", prompt, 12))
				took := time.Since(begin)
				name := kind + " " + string(f)
				switch {
				case f == FaultVanish && kind == KindLlamaCPP: // one more ping, then the end
					if took != time.Second || r.last() != ":" || len(r.ids) != 3 || !errors.Is(r.err, io.ErrUnexpectedEOF) {
						t.Errorf("%s: %d ids, last event %q, %v after %v", name, len(r.ids), r.last(), r.err, took)
					}
				case !errors.Is(r.err, context.DeadlineExceeded) || took != time.Hour:
					t.Errorf("%s: %v after %v", name, r.err, took)
				case f == FaultMute && (r.status == 200) != (kind == KindVLLM):
					t.Errorf("%s: status %d; only vLLM sends headers before the first token", name, r.status)
				case f != FaultMute && len(r.ids) != 3:
					t.Errorf("%s: %d ids", name, len(r.ids))
				case f == FaultStall && kind == KindLlamaCPP && len(r.events) < 3000:
					t.Errorf("%s: %d events: the pings stop", name, len(r.events))
				}
				soon, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				req, _ := http.NewRequestWithContext(soon, http.MethodGet, "http://worker/health", nil)
				resp, err := client.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				switch f {
				case FaultVanish:
					if !errors.Is(err, syscall.ECONNREFUSED) {
						t.Errorf("%s: health says %v", name, err)
					}
				case FaultFreeze:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: health says %v", name, err)
					}
				default:
					if err != nil {
						t.Errorf("%s: health says %v", name, err)
					}
				}
			})
		}
	}
}

func TestClientLeaves(t *testing.T) {
	for _, kind := range bothKinds {
		inBubble(t, Config{Kind: kind, MeanLength: -1, Style: StyleWhole, Gap: time.Second}, func(t *testing.T, s *Server, client *http.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := generate(ctx, client, kind, "http://worker", prompt, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if n := s.Stats().Running; n != 1 {
				t.Errorf("%d requests running", n)
			}
			cancel()
			resp.Body.Close()
			synctest.Wait()
			if stats := s.Stats(); stats.Running != 0 || stats.Aborted != 1 {
				t.Errorf("%s: %+v", kind, stats)
			}
		})
	}
}

func TestAbortEndpoint(t *testing.T) {
	config := Config{MeanLength: -1, Gap: time.Second, Server: ServerConfig{ScaleOut: true}}
	inBubble(t, config, func(t *testing.T, s *Server, client *http.Client) {
		done := make(chan reading)
		go func() { done <- read(generate(t.Context(), client, KindVLLM, "http://worker", prompt, 100)) }()
		time.Sleep(5500 * time.Millisecond)
		resp, err := client.Post("http://worker/inference/v1/abort_requests", "application/json", strings.NewReader(`{"request_ids":["cmpl-a-m00","cmpl-unknown"]}`))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if r := <-done; r.finish != "abort" || len(r.ids) != 6 || r.last() != "data: [DONE]" {
			t.Errorf("finish %q after %d ids", r.finish, len(r.ids))
		}
		if stats := s.Stats(); stats.Aborted != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestSlotsBoundWhatRuns(t *testing.T) {
	config := Config{Kind: KindLlamaCPP, MeanLength: -1, Style: StyleWhole, Gap: time.Second, Server: ServerConfig{Slots: 1}}
	inBubble(t, config, func(t *testing.T, s *Server, client *http.Client) {
		begin := time.Now()
		done := make(chan reading)
		for range 3 {
			go func() { done <- read(generate(t.Context(), client, config.Kind, "http://worker", prompt, 11)) }()
		}
		for range 3 {
			if r := <-done; r.err != nil || len(r.ids) != 11 {
				t.Errorf("%d ids, %v", len(r.ids), r.err)
			}
		}
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("three answers of ten seconds took %v in one slot", took)
		}
	})
}

func TestControl(t *testing.T) {
	s, url := onLoopback(t, Config{MeanLength: -1})
	if status, got := post(t, url+"/sim/faults", []jsonObject{{"kind": "cut", "after": 2, "nth": 2, "times": 1, "request": "m00"}}); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	for i, want := range []int{5, 2, 5} {
		if r := read(generate(t.Context(), http.DefaultClient, KindVLLM, url, prompt, 5)); len(r.ids) != want {
			t.Errorf("request %d: %d ids, want %d", i, len(r.ids), want)
		}
	}
	if status, _ := post(t, url+"/sim/faults", []jsonObject{{"kind": "nonsense"}}); status != http.StatusBadRequest {
		t.Errorf("an unknown fault: status %d", status)
	}
	resp, err := http.Get(url + "/sim/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var received []Received
	if err := json.NewDecoder(resp.Body).Decode(&received); err != nil || len(received) != 3 {
		t.Fatalf("%d requests, %v", len(received), err)
	}
	if r := received[1]; r.ID != "a-m00" || !slices.Equal(r.TokenIDs, prompt) || r.Path != vllmCompletions || string(r.Params["max_tokens"]) != "5" || r.Params["prompt"] != nil {
		t.Errorf("received %+v", r)
	}
	if stats := settled(t, s); stats.Started != 3 || stats.Finished != 2 || stats.Failed != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestKillClosesEverything(t *testing.T) {
	s, url := onLoopback(t, Config{MeanLength: -1, Gap: time.Hour})
	resp, err := generate(t.Context(), http.DefaultClient, KindVLLM, url, prompt, 5)
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if r := read(resp, nil); r.err == nil {
		t.Error("the stream of a killed worker ended in good order")
	}
	if _, err := http.Get(url + "/health"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed worker says %v", err)
	}
}

func TestKillReviveAndStartAgain(t *testing.T) {
	s := NewServer(Config{MeanLength: -1})
	url, stop, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := http.Get(url + "/health"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the kill: %v", err)
	}
	s.Revive()
	again, stop, err := s.Start(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if again != url {
		t.Errorf("started again at %s, was %s", again, url)
	}
	if r := read(generate(t.Context(), http.DefaultClient, KindVLLM, url, prompt, 3)); len(r.ids) != 3 || r.err != nil {
		t.Errorf("after the revival: %+v", r)
	}
}

func TestHealthApartFromTheRest(t *testing.T) {
	s, url := onLoopback(t, Config{MeanLength: -1})
	if status, got := post(t, url+"/sim/health", jsonObject{"status": 503}); status != http.StatusOK {
		t.Fatalf("%d %s", status, got)
	}
	resp, err := http.Get(url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if r := read(generate(t.Context(), http.DefaultClient, KindVLLM, url, prompt, 3)); resp.StatusCode != 503 || len(r.ids) != 3 {
		t.Errorf("health %d, %d ids", resp.StatusCode, len(r.ids))
	}
	s.SetHealth(0)
	if resp, err := http.Get(url + "/health"); err != nil || resp.StatusCode != 200 {
		t.Errorf("health %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}
