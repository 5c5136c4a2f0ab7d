package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

func TestShutdown(t *testing.T) {
	inBubble(t, waits(time.Second, time.Hour), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		ends := make(chan []byte, 2)
		for _, body := range []string{`{"model":"m","stream":true}`, `{"model":"m","n":2}`} {
			go func() {
				conn := dial()
				defer conn.Close()
				resp := send(conn, chatPath, body)
				raw, _ := io.ReadAll(resp.Body)
				if resp.StatusCode == 503 {
					wantError(t, resp, raw, 503, "server_shutting_down")
					if resp.Header.Get("Retry-After") == "" {
						t.Error("no Retry-After")
					}
				} else if s := readStrict(t, raw, "chat.completion.chunk"); s.err == nil || *s.err.Error.Code != "server_shutting_down" || s.text(0) != "x" {
					t.Errorf("stream %s", raw)
				}
				ends <- raw
			}()
		}
		time.Sleep(2 * time.Second)

		conn := dial()
		defer conn.Close()
		rig.BeginShutdown()
		if n := rig.running.count(); n != 2 {
			t.Errorf("%d requests run", n)
		}
		// Requests are still served, but load balancers are told to go.
		resp := send(conn, chatPath, `{"model":"none"}`)
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != 404 {
			t.Errorf("status %d while the listeners are open", resp.StatusCode)
		}
		rig.running.stop(true)
		rig.BeginShutdown() // takes nothing back
		resp = send(conn, chatPath, `{"model":"m"}`)
		raw, _ := io.ReadAll(resp.Body)
		wantError(t, resp, raw, 503, "server_shutting_down")

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if n := rig.Drain(ctx); n != 2 {
			t.Errorf("Drain ended %d requests", n)
		}
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("Drain took %v", d)
		}
		<-ends
		<-ends
		rig.wantEnd(t, "overload", 2+1) // and the refused one
	})
}

func TestHealthWhileStopping(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	rig.BeginShutdown()
	if resp, raw := get(t, ts, "/health"); resp.StatusCode != 503 || string(raw[:20]) != `{"status":"stopping"` {
		t.Errorf("%d %s", resp.StatusCode, raw)
	}
	if resp, _ := get(t, ts, "/live"); resp.StatusCode != 200 {
		t.Errorf("/live %d", resp.StatusCode)
	}
	if resp, _ := post(t, ts, chatPath, `{"model":"m"}`); resp.StatusCode != 200 {
		t.Errorf("a request within the lame-duck time: %d", resp.StatusCode)
	}
}

// Drain returns as soon as the last request has ended by itself.
func TestDrainWaitsForRunning(t *testing.T) {
	inBubble(t, waits(10*time.Second), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		go func() {
			conn := dial()
			defer conn.Close()
			if s := send(conn, chatPath, `{"model":"m","stream":true}`); s.StatusCode != 200 {
				t.Errorf("status %d", s.StatusCode)
			} else if raw, _ := io.ReadAll(s.Body); !readStrict(t, raw, "chat.completion.chunk").done {
				t.Errorf("stream %s", raw)
			}
		}()
		time.Sleep(time.Second)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n := rig.Drain(ctx); n != 0 || time.Since(start) != 9*time.Second {
			t.Errorf("Drain ended %d requests after %v", n, time.Since(start))
		}
		if n := rig.Drain(ctx); n != 0 {
			t.Errorf("a second Drain ended %d", n)
		}
	})
}

// After Drain no connection waits for a request that nobody would answer.
func TestDrainClosesIdleConnections(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		unused, used := dial(), dial()
		exchange(t, used, bufio.NewReader(used), plainPost(`{"model":"m"}`))
		if n := rig.Drain(t.Context()); n != 0 {
			t.Errorf("%d requests were ended", n)
		}
		for _, conn := range []net.Conn{unused, used} {
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("a connection is not closed: %v", err)
			}
		}
	})
}
