package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
)

// A connection serves what its client likes, whatever it sends early, and each answer
// is that of its request: those of every other client stay with us, the others go
// over to net/http with the first request that is not plain.
func TestConnectionServesOn(t *testing.T) {
	rig := newRig(says("a", "b", "c"))
	ts := rig.serve(t)
	const stream, whole = `{"model":"m","stream":true}`, `{"model":"m"}`
	kinds := []struct{ request, answer string }{
		{"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 27\r\n", "data: [DONE]"},
		{"POST /v1/completions HTTP/1.1\r\nContent-Length: 13\r\n", `"object":"text_completion"`},
		{"GET /v1/models HTTP/1.1\r\n", `"object":"list"`},
		{"GET /nowhere HTTP/1.1\r\n", "not_found"},
		{"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 1\r\n", "no JSON"},
		{"POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "data: [DONE]"},
		{"HEAD /v1/models HTTP/1.1\r\n", ""},
	}
	bodies := []string{stream, whole, "", "", "x", "1b\r\n" + stream + "\r\n0\r\nX: y\r\n\r\n", ""}
	const clients, requests, plainKinds = 8, 300, 5
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(client), 1))
			conn, err := net.Dial("tcp", ts.Listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute))
			sent := make(chan int, rnd.IntN(4)) // so many are sent early
			go func() {
				defer close(sent)
				for i := range requests {
					kind := rnd.IntN(plainKinds)
					if client%2 > 0 {
						kind = rnd.IntN(len(kinds))
					}
					text := fmt.Sprintf("%sHost: x\r\nX-Request-Id: %d-%d\r\n\r\n%s", kinds[kind].request, client, i, bodies[kind])
					if bodies[kind] != "" && rnd.IntN(3) == 0 {
						text += "\r\n" // of old clients
					}
					for text != "" {
						n := min(len(text), 1+rnd.IntN(300))
						if _, err := io.WriteString(conn, text[:n]); err != nil {
							return
						}
						text = text[n:]
					}
					sent <- kind
				}
			}()
			in := bufio.NewReader(conn)
			n := 0
			for kind := range sent {
				resp, err := http.ReadResponse(in, &http.Request{Method: kinds[kind].request[:4]})
				if err != nil {
					t.Errorf("client %d, request %d (%q): %v", client, n, kinds[kind].request, err)
					return
				}
				if resp.StatusCode == http.StatusContinue {
					if resp, err = http.ReadResponse(in, nil); err != nil {
						t.Errorf("client %d, request %d: %v", client, n, err)
						return
					}
				}
				body, err := io.ReadAll(resp.Body)
				if id := resp.Header.Get("X-Request-Id"); err != nil || id != fmt.Sprintf("%d-%d", client, n) || !strings.Contains(string(body), kinds[kind].answer) {
					t.Errorf("client %d, request %d (%q): the answer of %s: %q, %v", client, n, kinds[kind].request, id, body, err)
					return
				}
				n++
			}
			if n != requests {
				t.Errorf("client %d: %d answers", client, n)
			}
		})
	}
	all.Wait()
}

// A line end behind the body does not hide that the client leaves, neither sent
// with the request nor later.
func TestLineEndBehindTheBody(t *testing.T) {
	for _, late := range []bool{false, true} {
		inBubble(t, untilCancelled("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
			conn := dial()
			text := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n" + `{"model":"m","stream":true}`
			if !late {
				text += "\r\n"
			}
			io.WriteString(conn, text)
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				t.Fatal(err)
			}
			if late {
				go io.WriteString(conn, "\r\n")
			}
			synctest.Wait()
			conn.Close()
			synctest.Wait()
			if n := rig.running.count(); n != 0 {
				t.Errorf("late %v: %d requests still run", late, n)
			}
		})
	}
}

// The process does not end between the last event of an answer and the end of its
// body, and the request is over for all others by then.
func TestDrainWaitsForTheLastChunk(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		io.WriteString(conn, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n"+`{"model":"m","stream":true}`)
		for text, b := "", make([]byte, 1); !strings.HasSuffix(text, "data: [DONE]\n\n\r\n"); text += string(b) {
			if _, err := conn.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		drained := make(chan int, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			drained <- rig.Drain(ctx)
		}()
		synctest.Wait()
		if n := rig.running.count(); n != 0 {
			t.Errorf("%d requests run", n)
		}
		select {
		case <-drained:
			t.Error("the server is drained before the answer has ended")
		default:
		}
		rest := make([]byte, len(lastChunk))
		if _, err := io.ReadFull(conn, rest); err != nil || string(rest) != string(lastChunk) {
			t.Errorf("%q, %v", rest, err)
		}
		if n := <-drained; n != 0 {
			t.Errorf("%d requests were ended", n)
		}
	})
}

// A connection that has come back can be closed on one side, as net/http does it
// after an answer to what it has not read.
func TestBegunConnClosesItsWriteSide(t *testing.T) {
	client, conn := tcpPair(t)
	var begun net.Conn = &begunConn{Conn: conn}
	if err := begun.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

// panickingHandler is a log that cannot bear failed requests.
type panickingHandler struct{ slog.Handler }

func (h panickingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "request failed" {
		panic("log")
	}
	return h.Handler.Handle(ctx, r)
}

// A panic before a stream has begun is logged with the place where it happened.
func TestPanicBeforeTheStream(t *testing.T) {
	rig := newRig(fails(&engine.Error{Kind: engine.NoWorker}))
	rig.Server.log = slog.New(panickingHandler{rig.Server.log.Handler()})
	ts := rig.serve(t)
	if resp, err := request(ts, chatPath, `{"model":"m","stream":true}`); err == nil {
		if _, err = io.ReadAll(resp.Body); err == nil {
			t.Errorf("status %d", resp.StatusCode)
		}
		resp.Body.Close()
	}
	if log := rig.log.String(); !strings.Contains(log, "panickingHandler.Handle") || strings.Count(log, "panic in a request") != 1 {
		t.Errorf("log: %s", log)
	}
}
