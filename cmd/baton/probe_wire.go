package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxWireBytes bounds what is kept of each direction of a connection. What comes
// beyond is not shown.
const maxWireBytes = 32 << 20

// A wire notes what goes over the connections to one worker, so that it can be
// shown what the very client of serve asks and gets. TLS is made here and not by
// the client, which would leave nothing to read: the client is given the address
// that plain returns.
type wire struct {
	worker url.URL

	mu   sync.Mutex // guards taps
	taps []*tap
}

// newWire returns the wire of the worker at address, a URL that config has checked.
func newWire(address string) (*wire, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &wire{worker: *u}, nil
}

// plain is the worker's address without TLS.
func (w *wire) plain() string { return "http://" + w.worker.Host }

// real is text about the worker with its real address again.
func (w *wire) real(text string) string {
	return strings.ReplaceAll(text, w.plain(), w.worker.Scheme+"://"+w.worker.Host)
}

// dial is transport.Options.DialContext.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	var err error
	if w.worker.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: &tls.Config{ServerName: w.worker.Hostname()}}).DialContext(ctx, network, address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	t := &tap{Conn: conn}
	w.mu.Lock()
	w.taps = append(w.taps, t)
	w.mu.Unlock()
	return t, nil
}

// A tap is a connection that remembers its bytes.
type tap struct {
	net.Conn

	mu      sync.Mutex // guards what follows
	out, in record
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.mu.Lock()
	t.in.add(p[:n])
	t.mu.Unlock()
	return n, err
}

func (t *tap) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.out.add(p) // before it is sent: the time is that of the asking
	t.mu.Unlock()
	return t.Conn.Write(p)
}

// A record is bytes, and when they went by.
type record struct {
	bytes []byte
	marks []mark
}

type mark struct {
	end int // of the bytes that went by at that time
	at  time.Time
}

func (r *record) add(p []byte) {
	if p = p[:min(len(p), maxWireBytes-len(r.bytes))]; len(p) > 0 {
		r.bytes = append(r.bytes, p...)
		r.marks = append(r.marks, mark{len(r.bytes), time.Now()})
	}
}

// at returns when the byte at offset went by.
func (r *record) at(offset int) time.Time {
	i, _ := slices.BinarySearchFunc(r.marks, offset+1, func(m mark, end int) int { return cmp.Compare(m.end, end) })
	if i == len(r.marks) {
		return time.Time{}
	}
	return r.marks[i].at
}

// An exchange is one request and how it was answered.
type exchange struct {
	method, path string
	header       http.Header
	body         []byte
	sent         time.Time
	status       int // 0 = no answer
	streamed     bool
	took         time.Duration // to the last byte of the answer
}

// exchanges are all requests that were sent, in the order of their time.
func (w *wire) exchanges() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []exchange
	for _, t := range w.taps {
		all = append(all, t.exchanges()...)
	}
	slices.SortStableFunc(all, func(a, b exchange) int { return a.sent.Compare(b.sent) })
	return all
}

// exchanges reads what went over one connection, where one request follows the
// answer to the one before. An answer that ends early is what there is of it.
func (t *tap) exchanges() []exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	out, in := newReplay(t.out.bytes), newReplay(t.in.bytes)
	var all []exchange
	for {
		begin := out.offset()
		req, err := http.ReadRequest(out.Reader)
		if err != nil {
			return all
		}
		e := exchange{method: req.Method, path: req.URL.RequestURI(), header: req.Header, sent: t.out.at(begin)}
		e.body, _ = io.ReadAll(req.Body) // as much as was sent
		resp, err := http.ReadResponse(in.Reader, req)
		for err == nil && resp.StatusCode/100 == 1 {
			resp, err = http.ReadResponse(in.Reader, req)
		}
		if err == nil {
			e.status, e.streamed = resp.StatusCode, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
			_, _ = io.Copy(io.Discard, resp.Body)
			e.took = t.in.at(in.offset() - 1).Sub(e.sent)
		}
		all = append(all, e)
	}
}

// A replay reads bytes, and knows how far it has come.
type replay struct {
	*bufio.Reader
	left *bytes.Reader
}

func newReplay(b []byte) replay {
	left := bytes.NewReader(b)
	return replay{bufio.NewReader(left), left}
}

func (r replay) offset() int { return int(r.left.Size()) - r.left.Len() - r.Buffered() }

// curl is the exchange's request as a command line. The worker's key is in $KEY.
func (e *exchange) curl(base string) string {
	words := []string{"curl", "-sS"}
	if e.streamed {
		words[1] = "-sSN"
	}
	words = append(words, quoted(base+e.path))
	for _, name := range []string{"Content-Type", "X-Request-Id"} {
		if v := e.header.Get(name); v != "" {
			words = append(words, "-H", quoted(name+": "+v))
		}
	}
	if e.header.Get("Authorization") != "" {
		words = append(words, "-H", `"Authorization: Bearer $KEY"`)
	}
	if len(e.body) > 0 {
		words = append(words, "-d", quoted(string(e.body)))
	} else if e.method != http.MethodGet {
		words = append(words, "-X", e.method)
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:%@,+", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
