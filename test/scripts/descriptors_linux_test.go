package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

const (
	fewDescriptors  = 48
	manyConnections = 3 * fewDescriptors
)

// A frontend whose descriptors are used up says so once, goes on with what runs,
// tells new requests to come back, blames no worker, and recovers by itself.
func TestExhaustedDescriptors(t *testing.T) {
	model := t.TempDir()
	if err := sim.WriteModel(model); err != nil {
		t.Fatal(err)
	}
	worker, _ := startSim(t)
	port := harness.FreePort(t)
	started := time.Now()
	front := harness.Start(t, "/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, fewDescriptors),
		harness.Binary(t), "serve", "--http-host", "127.0.0.1", "--http-port", fmt.Sprint(port), "--worker", "http://"+worker, "--model-path", model,
		"--health-interval", "0", "--worker-wait-timeout", "500ms", "--migration-limit", "3", "--lame-duck", "0")
	url := fmt.Sprint("http://127.0.0.1:", port)
	harness.WaitOK(t, url+"/health", patience)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()

	// Clients with a connection each, which they have before the flood. The first
	// one's answer takes the connection to the worker that was there.
	clients := make([]*http.Client, 6)
	for i := range clients {
		clients[i] = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
		defer clients[i].CloseIdleConnections()
		mustGet(t, clients[i], url+"/live")
	}
	var chunks atomic.Int64
	running := endless(t, ctx, clients[0], url, &chunks)

	var flood []net.Conn
	for range manyConnections {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
		flood = append(flood, conn)
	}
	waitFor(t, "a word of the shortage", func() bool { return strings.Contains(front.Output(), "connections cannot be taken and wait") })

	refused := 0
	for _, client := range clients[1:] {
		if status := askUntilRefused(t, ctx, client, url); status == http.StatusServiceUnavailable {
			refused++
			break
		}
	}
	if refused == 0 {
		t.Error("no request was refused although no connection to the worker can be made")
	}
	before := chunks.Load()
	waitFor(t, "more of the answer that runs", func() bool { return chunks.Load() > before+5 })

	for _, conn := range flood {
		conn.Close()
	}
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	waitFor(t, "an answer after the shortage", func() bool {
		resp, err := fresh.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":3}`))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	})
	cancel()
	<-running
	log := front.Output()
	most := 1 + int(time.Since(started)/(10*time.Second))
	if n := strings.Count(log, "connections cannot be taken and wait"); n > most {
		t.Errorf("%d records of the shortage, want at most %d", n, most)
	}
	if !strings.Contains(log, "connections are taken again") {
		t.Error("no word of the recovery")
	}
	for _, bad := range []string{"worker inhibited", "request migrated", "panic"} {
		if strings.Contains(log, bad) {
			t.Errorf("the log says %q", bad)
		}
	}
	select {
	case <-front.Exited():
		t.Error("the frontend has ended")
	default:
	}
}

// endless begins an answer that does not end by itself, and counts its chunks.
func endless(t *testing.T, ctx context.Context, client *http.Client, url string, chunks *atomic.Int64) (done <-chan struct{}) {
	t.Helper()
	resp := postEndless(t, ctx, client, url)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_ = harness.ReadStream(&harness.Answer{}, resp.Body, true, func(n int) { chunks.Store(int64(n)) })
		if ctx.Err() == nil {
			t.Error("the answer that ran ended")
		}
	}()
	return ended
}

func postEndless(t *testing.T, ctx context.Context, client *http.Client, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"sim","messages":[{"role":"user","content":"x"}],"max_tokens":60000,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// askUntilRefused asks for an answer; one that begins goes on until the end of
// the test, so that its connection to the worker is used.
func askUntilRefused(t *testing.T, ctx context.Context, client *http.Client, url string) int {
	t.Helper()
	resp := postEndless(t, ctx, client, url)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode == http.StatusServiceUnavailable {
		var envelope struct{ Error harness.APIError }
		if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil || !strings.Contains(envelope.Error.Message, "no more connections to its workers") {
			t.Errorf("error %+v, %v", envelope.Error, err)
		}
		if resp.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	return resp.StatusCode
}

func mustGet(t *testing.T, client *http.Client, url string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
}

// waitFor polls a real process.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}
