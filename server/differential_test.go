package server

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"baton/engine/enginetest"
)

var differentialCases = flag.Int("differential", 4000, "how many conversations TestAsNetHTTP makes")

// Whatever a client sends, in whatever pieces: handlers see what they see behind
// net/http, and clients are told the same.
func TestAsNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(7, uint64(*differentialCases)))
		for _, change := range []func(*Config){
			func(c *Config) { c.MaxBodyBytes = 200 },
			func(c *Config) {
				c.KnowsKey = func(key string) bool { return key == "good" }
				c.CORSOrigins = []string{"https://page.example"}
			},
		} {
			var network enginetest.Network
			ours, theirs := newRig(says("a", "b"), change), newRig(says("a", "b"), change)
			srv, reference := differentialServer(ours), differentialServer(theirs)
			go srv.Serve(ours.Listen(network.Listen("ours:80"), srv))
			go reference.Serve(network.Listen("theirs:80"))
			stop := func() { srv.Close(); reference.Close() }
			defer stop()
			for range *differentialCases / 2 {
				pieces := conversation(rnd)
				got, want := converse(t, &network, "ours:80", pieces), converse(t, &network, "theirs:80", pieces)
				if !slices.Equal(got, want) {
					t.Fatalf("%q:\n%s\nnot\n%s", pieces, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			stop()
			if got, want := counters(t, ours), counters(t, theirs); !maps.Equal(got, want) {
				t.Errorf("metrics: %v, %v", difference(want, got), difference(got, want))
			}
		}
	})
}

// differentialServer tells the client what its handler sees.
func differentialServer(rig *rig) *http.Server {
	handler := rig.Handler()
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Method", r.Method)
			if r.Header.Get("Pragma") != "" {
				r.Header.Del("Cache-Control") // net/http adds one, and nobody here looks
			}
			w.Header().Set("X-Seen", fmt.Sprintf("%q %q %q %q %d %q %v %q %v %q", r.Proto, r.Host, r.RequestURI, r.URL, r.ContentLength, r.TransferEncoding, r.Close, r.Trailer, r.RemoteAddr, r.Header))
			handler.ServeHTTP(w, r)
		}),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	return srv
}

// converse sends pieces, and returns what comes back until the server closes.
func converse(t *testing.T, network *enginetest.Network, address string, pieces []string) (answers []string) {
	conn, err := network.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for _, piece := range pieces {
			if d, err := time.ParseDuration(piece); err == nil {
				time.Sleep(d)
			} else if _, err := io.WriteString(conn, piece); err != nil {
				return
			}
		}
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	for {
		answer, err := readAnswer(in)
		answers = append(answers, answer)
		if err != nil {
			break
		}
	}
	conn.Close()
	<-written
	synctest.Wait()
	return answers
}

var (
	randomWords = regexp.MustCompile(`(chatcmpl-|cmpl-|resp_|req-|msg_)[A-Za-z0-9_]{20,}`)
	times       = regexp.MustCompile(`"(created|created_at|completed_at)":[0-9]+`)
)

// readAnswer returns an answer without what is random and without how its body is
// sent.
func readAnswer(in *bufio.Reader) (string, error) {
	var req http.Request
	head, err := in.Peek(1)
	for n := 1; err == nil && !bytes.Contains(head, []byte("\r\n\r\n")); n = max(n+1, in.Buffered()) {
		head, err = in.Peek(n)
	}
	if err != nil {
		return fmt.Sprintf("%q %v", head, err), err
	}
	if bytes.Contains(head, []byte("\r\nX-Method: HEAD\r\n")) {
		req.Method = "HEAD"
	}
	resp, err := http.ReadResponse(in, &req)
	if err != nil {
		return err.Error(), err
	}
	if resp.StatusCode == http.StatusContinue {
		return resp.Status, nil
	}
	body, err := io.ReadAll(resp.Body)
	ours := resp.Header.Get("X-Seen") != ""
	if _, dated := resp.Header["Date"]; ours != dated {
		err = errors.Join(err, fmt.Errorf("date: %v", dated))
	}
	for _, name := range []string{"Date", "Content-Length"} {
		resp.Header.Del(name)
	}
	if _, isRandom := resp.Header["X-Request-Id"]; isRandom {
		resp.Header["X-Request-Id"][0] = randomWords.ReplaceAllString(resp.Header["X-Request-Id"][0], "$1")
	}
	if strings.Contains(resp.Header.Get("X-Seen"), `"/metrics`) {
		body = body[:0] // has times
	}
	text := times.ReplaceAllString(randomWords.ReplaceAllString(string(body), "$1"), "$1")
	return fmt.Sprintf("%s close=%v %q %q %v", resp.Status, resp.Close, resp.Header, text, err), err
}

// counters are the counted things of a rig's metrics, but no times.
func counters(t *testing.T, rig *rig) map[string]float64 {
	families, err := rig.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			name := fmt.Sprint(f.GetName(), m.Label)
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				counts[name] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				counts[name] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				counts[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return counts
}

// difference is what has changed between two states of counters.
func difference(before, after map[string]float64) map[string]float64 {
	changed := make(map[string]float64)
	for name, n := range after {
		if n != before[name] {
			changed[name] = n - before[name]
		}
	}
	return changed
}

// What conversations are made of.
var (
	methods  = []string{"POST", "POST", "POST", "POST", "GET", "GET", "HEAD", "OPTIONS", "PUT", "CONNECT", "post", "P\x00ST", "", "PRI"}
	targets  = []string{chatPath, chatPath, chatPath, chatPath, textPath, responsesPath, "/v1/models", "/v1/models/m", "/health", "/live", "/version", "/metrics", "/", "/nothing", "/v1/models/", "/v1/responses/x", "/health?x=y", "/health#x", "/v1/models/org%2Fm", "//health", "/../health", "*", "http://x" + chatPath, "x:443", "/" + strings.Repeat("long", 1200), "/é", "/a b", ""}
	versions = []string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.2", "HTTP/1.1 ", "http/1.1", "HTTP/1", ""}
	bodies   = []string{`{"model":"m"}`, `{"model":"m","stream":true}`, `{"model":"m","n":2}`, "", "x", "{}", `{"model":"m","panic":true}`, `{"model":"m"}` + strings.Repeat(" ", 190), `{"model":"m"}` + strings.Repeat(" ", 5000)}
	lines    = []string{
		"Host: x", "Host: y", "Host: [::1]:80", "Host:", "Host: a b", "Host: x/y", "Host : x", "HOST: x", "Host: xn--e1a.example:65536", "Host: é",
		"Content-Length: 0", "Content-Length: 1", "Content-Length: 5", "Content-Length: +13", "Content-Length: -1", "Content-Length: 13, 13", "Content-Length: 0x10",
		"Content-Length: 13 ", "Content-Length:\t13", "Content-Length: 1 3", "Content-Length: 99999999999999999999", "Content-Length: 9223372036854775807", "Content-Length: 2147483648",
		"Content-Length:", "Content-Length: 013", "Content-Length: 1_3", "content-length: 13", "Content-length : 13", "Content_Length: 5",
		"Transfer-Encoding: chunked", "transfer-encoding: Chunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: ",
		"Transfer-Encoding:\x0bchunked", "Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "X: y\r\n Transfer-Encoding: chunked", "Transfer_Encoding: chunked",
		"Trailer: X", "TE: trailers", "Expect: 100-continue", "expect: 100-Continue", "Expect: other", "Upgrade: websocket", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ", "Connection: Upgrade, HTTP2-Settings",
		"Connection: close", "Connection: Close", "Connection: keep-alive", "Connection: keep-alive, close", "Connection: close, keep-alive", "Connection: ", "Connection: x", "Connection:\tclose\t", "Keep-Alive: timeout=5", "Proxy-Connection: close",
		"X-Request-Id: me", "X-Request-Id: a b", "X-Request-Id: " + strings.Repeat("r", 129), "X-Request-Timeout: 5", "X-Request-Timeout: x", "X-Baton-Debug: 1", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4",
		"Content-Type: application/json", "Content-Type: text/plain", "Content-Type: a/b/c", "Content-Encoding: gzip", "Content-Encoding: identity", "Accept-Encoding: gzip", "Accept: */*", "Pragma: no-cache", "Cache-Control: no-store",
		"Authorization: Bearer good", "Authorization: Bearer bad", "Authorization: bearer  good ", "Authorization: Bearer good\r\nAuthorization: Bearer bad",
		"Origin: https://page.example", "Origin: https://other.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: a,b",
		"X: \x00", "X: \x7f", "X: \x80", "X: a\rb", "X: a\nb", "X\x00: a", "X\t: a", " X: a", "\tX: a", ": a", "X", "X:", "=: a", "X!#$%&'*+-.^_`|~: a", "é: a", "X: a\r\n\tfolded", "X: " + strings.Repeat("v", 5000), "X: " + strings.Repeat("v", 40000),
		"cookie: a=b\r\ncookie: c=d", "X-A: 1\r\nx-a: 2\r\nX-B: 1\r\nX-A: 3", "", "\r\n",
	}
	oddBytes = []string{"\r", "\n", "\r\n", "\x00", " ", "\t", ":", "0", "1", "a", "\xff", "\r\n\r\n", ",", ";", "/", "G"}
	chunks   = []string{"0\r\n\r\n", "0\r\nX: y\r\n\r\n", "00\r\n\r\n", "0 \r\n\r\n", "0;x=y\r\n\r\n", "0\n\n", "-1\r\n\r\n", "g\r\n\r\n", "fffffffffffffffff\r\n\r\n", "0x0\r\n\r\n", "0\r\nbad trailer\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n", "\r\n", ""}
)

func one[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

// A conversation is a few requests, right or wrong, then one that ends it. A piece
// that is a duration is a pause.
func conversation(rnd *rand.Rand) (pieces []string) {
	var text strings.Builder
	for range 1 + rnd.IntN(3) {
		r := randomRequest(rnd)
		for range max(0, rnd.IntN(6)-4) {
			at := rnd.IntN(len(r) + 1)
			cut := min(len(r), at+rnd.IntN(3))
			r = r[:at] + one(rnd, oddBytes) + r[cut:]
		}
		text.WriteString(r)
		if rnd.IntN(8) == 0 {
			text.WriteString("\r\n")
		}
	}
	text.WriteString("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	rest := text.String()
	size := one(rnd, []int{1 << 20, 1 << 20, 2000, 200, 20})
	for pauses := 0; rest != ""; {
		n := min(len(rest), 1+rnd.IntN(size))
		pieces = append(pieces, rest[:n])
		rest = rest[n:]
		if pauses < 3 && rnd.IntN(20) == 0 { // within the time-outs of both
			pauses++
			pieces = append(pieces, one(rnd, []string{"1ms", "900ms", "3s"}))
		}
	}
	return pieces
}

// randomRequest is a usual request but for a few parts.
func randomRequest(rnd *rand.Rand) string {
	usually := func(usual string, list []string) string {
		if rnd.IntN(6) > 0 {
			return usual
		}
		return one(rnd, list)
	}
	method := usually("POST", methods)
	path := chatPath
	if method != "POST" {
		path = "/v1/models"
	}
	body := usually(bodies[0], bodies)
	head := []string{usually("Host: x", lines)}
	switch {
	case rnd.IntN(4) == 0:
		head = append(head, "Transfer-Encoding: chunked")
		if body != "" {
			body = fmt.Sprintf("%x%s\r\n%s\r\n", len(body), usually("", []string{";x", ";x=\"y\"", " ", "\t", "\r", "g", ";" + strings.Repeat("x", 5000)}), body)
		}
		body += usually(chunks[0], chunks)
	case method != "POST" && rnd.IntN(3) > 0:
		body = ""
	default:
		head = append(head, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	if rnd.IntN(2) == 0 {
		head = append(head, "Authorization: Bearer good")
	}
	for range max(0, rnd.IntN(5)-1) {
		head = append(head, one(rnd, lines))
	}
	rnd.Shuffle(len(head), func(i, j int) { head[i], head[j] = head[j], head[i] })
	return method + usually(" ", []string{"  ", "\t", ""}) + usually(path, targets) + usually(" ", []string{"  ", ""}) + usually("HTTP/1.1", versions) +
		usually("\r\n", []string{"\n", "\r", ""}) + strings.Join(head, usually("\r\n", []string{"\n"})) + "\r\n\r\n" + body
}

// However a client leaves, it is noticed when net/http notices it, and counted as
// the same, or before.
func TestLeavingAsNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(11, uint64(*differentialCases)))
		change := func(c *Config) { c.WriteTimeout, c.SSEKeepAliveInterval = 8*time.Second, 3*time.Second }
		text := waits(time.Second, 5*time.Second, time.Second)
		var network enginetest.Network
		ours, theirs := newRig(text, change), newRig(text, change)
		srv, reference := differentialServer(ours), differentialServer(theirs)
		defer func() { srv.Close(); reference.Close() }()
		go srv.Serve(ours.Listen(network.Listen("ours:80"), srv))
		go reference.Serve(network.Listen("theirs:80"))
		for range *differentialCases / 20 {
			visit := randomVisit(rnd)
			got, ourCounts := visit.make(t, &network, "ours:80", ours)
			want, theirCounts := visit.make(t, &network, "theirs:80", theirs)
			if got > want || got == want && !maps.Equal(ourCounts, theirCounts) {
				t.Fatalf("%+v: noticed after %v with %v, not %v with %v", *visit, got, ourCounts, want, theirCounts)
			}
		}
	})
}

// A visit is a client that sends something and leaves after a while.
type visit struct {
	pieces []string
	reads  bool
	stays  time.Duration
}

func randomVisit(rnd *rand.Rand) *visit {
	text := plainPost(one(rnd, []string{`{"model":"m"}`, `{"model":"m","stream":true}`, "no JSON"}), one(rnd, []string{"", "", "Connection: close\r\n", "Expect: 100-continue\r\n"}))
	switch rnd.IntN(8) {
	case 0:
		text = text[:rnd.IntN(len(text))]
	case 1:
		text = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
	}
	v := &visit{pieces: []string{text}, reads: rnd.IntN(3) > 0, stays: one(rnd, []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 6500 * time.Millisecond, 20 * time.Second})}
	switch next := one(rnd, []string{"", "", "", "\r\n", "\r\n\r\n\r\n", "G", "GET /version HTTP/1.1\r\nHost: x\r\n\r\n", text}); rnd.IntN(3) {
	case 0:
		v.pieces[0] += next
	case 1:
		v.pieces = append(v.pieces, next)
	}
	return v
}

// make returns how long the server was busy when the client had left, and what it
// has counted.
func (v *visit) make(t *testing.T, network *enginetest.Network, address string, rig *rig) (time.Duration, map[string]float64) {
	before := counters(t, rig)
	conn, err := network.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if v.reads {
		go io.Copy(io.Discard, conn)
	}
	go func() {
		for _, piece := range v.pieces {
			io.WriteString(conn, piece)
		}
	}()
	time.Sleep(v.stays)
	synctest.Wait()
	conn.Close()
	left := time.Now()
	for synctest.Wait(); rig.running.count() > 0 && time.Since(left) < time.Hour; synctest.Wait() {
		time.Sleep(100 * time.Millisecond)
	}
	gone := time.Since(left)
	time.Sleep(2 * time.Second)
	return gone, difference(before, counters(t, rig))
}

// Whatever a handler writes, in whatever pieces, it gets to the client as it does
// through net/http, and the connection goes on.
func TestAnswersAsNetHTTP(t *testing.T) {
	rig := newRig(says("x"))
	handler := func(w http.ResponseWriter, r *http.Request) {
		var seed uint64
		fmt.Sscan(r.Header.Get("X-Seed"), &seed)
		rnd := rand.New(rand.NewPCG(13, seed))
		w.Header().Set("Content-Type", "text/plain")
		w.Header()["X-Many"] = []string{"a", "", " b\tc "}
		if rnd.IntN(3) > 0 {
			w.WriteHeader(one(rnd, []int{200, 201, 400, 404, 500, 503}))
		}
		for range rnd.IntN(5) {
			if rnd.IntN(3) == 0 {
				http.NewResponseController(w).Flush()
			}
			piece := bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, rnd.IntN(one(rnd, []int{2, 100, 5000, 3 * maxChunkBuffer})))
			if n, err := w.Write(piece); n != len(piece) || err != nil {
				panic(fmt.Sprintf("seed %d: %d of %d, %v", seed, n, len(piece), err))
			}
		}
		if rnd.IntN(8) == 0 {
			panic(http.ErrAbortHandler)
		}
	}
	ours, theirs := httptest.NewUnstartedServer(http.HandlerFunc(handler)), httptest.NewServer(http.HandlerFunc(handler))
	ours.Listener = rig.Listen(ours.Listener, ours.Config)
	ours.Start()
	defer ours.Close()
	defer theirs.Close()
	for seed := range *differentialCases / 8 {
		answers := [2]string{"aborted", "aborted"} // of which more or less has been sent
		for i, ts := range []*httptest.Server{ours, theirs} {
			req, _ := http.NewRequest("GET", ts.URL, nil)
			req.Header.Set("X-Seed", fmt.Sprint(seed))
			resp, err := ts.Client().Do(req)
			if err != nil {
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Header.Del("Date")
			resp.Header.Del("Content-Length")
			if err == nil {
				answers[i] = fmt.Sprintf("%s %v %q %q", resp.Status, resp.Close, resp.Header, body)
			}
		}
		if answers[0] != answers[1] {
			t.Fatalf("seed %d: %.500s\nnot %.500s", seed, answers[0], answers[1])
		}
	}
}
