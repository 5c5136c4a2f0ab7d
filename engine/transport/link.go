package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"baton/alarm"
	"baton/engine"
)

const (
	// staleWindow is how soon after sending a failure on a kept connection is
	// taken for the worker having closed it before. A connection that dies later
	// died under the request.
	staleWindow = time.Second

	maxProbeBytes = 16 << 20 // vLLM's openapi.json is the largest answer to a probe
)

// Options describe the way to one worker.
type Options struct {
	// URL is the worker's base address, http or https, with an optional path
	// prefix.
	URL string

	// WorkerID goes into every error; empty = host:port of URL.
	WorkerID string

	// APIKey returns the key that is sent as Bearer, or "". It is asked for every
	// request, so that a key file can change. nil = no key.
	APIKey func() string

	// ConnectTimeout bounds each of the two steps of making a connection, of which
	// the second is the TLS handshake; 0 = off. Waiting for a turn does not count.
	ConnectTimeout time.Duration

	// TLS is used for https URLs; nil = the system's roots.
	TLS *tls.Config

	// DialContext makes connections; nil = a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Link is the way to one worker. It is safe for concurrent use.
type Link struct {
	base     string // without a trailing slash
	workerID string
	apiKey   func() string

	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	connectTimeout time.Duration
	address        string      // to dial
	host           string      // as the worker is told
	prefix         string      // of every path
	tls            *tls.Config // nil = plain
	idle           idleConns
	turns          turns
	clock          *alarm.Clock // of the bounds on silence, and of turns

	keysMu   sync.Mutex // guards sentKeys
	sentKeys []string
}

// New returns a Link. It does not connect.
func New(opts Options) (*Link, error) {
	u, err := url.Parse(opts.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("worker address: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("worker address %q: want http://host:port", opts.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("worker address http://%s: user, query and fragment have no meaning here", u.Host)
	case !isASCII(u.Host):
		return nil, fmt.Errorf("worker address %q: write the host's name in its ASCII form, xn--", opts.URL)
	}
	l := &Link{
		base:           strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"),
		workerID:       cmp.Or(opts.WorkerID, u.Host),
		apiKey:         opts.APIKey,
		dial:           opts.DialContext,
		connectTimeout: opts.ConnectTimeout,
		clock:          alarm.NewClock(),
		address:        net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])),
		host:           withoutZone(u.Host),
		prefix:         strings.TrimRight(u.EscapedPath(), "/"),
	}
	l.turns.init(l.clock)
	if l.dial == nil {
		l.dial = (&net.Dialer{}).DialContext
	}
	if u.Scheme == "https" {
		l.tls = opts.TLS.Clone()
		if l.tls == nil {
			l.tls = &tls.Config{}
		}
		l.tls.NextProtos = nil                       // HTTP/1.1 is what is spoken here
		name, _, _ := strings.Cut(u.Hostname(), "%") // no certificate knows a zone
		l.tls.ServerName = cmp.Or(l.tls.ServerName, name)
	}
	return l, nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

// withoutZone takes the zone, which means something on this machine only, out of
// an IPv6 address in brackets.
func withoutZone(host string) string {
	zone, end := strings.LastIndexByte(host, '%'), strings.LastIndexByte(host, ']')
	if strings.HasPrefix(host, "[") && 0 < zone && zone < end {
		return host[:zone] + host[end:]
	}
	return host
}

// WorkerID is the worker's name in errors.
func (l *Link) WorkerID() string { return l.workerID }

// URL is the worker's base address.
func (l *Link) URL() string { return l.base }

// Close gives up the connections that are kept. Running answers go on.
func (l *Link) Close() { l.idle.closeAll() }

// Post sends a JSON body to path and returns the answer as soon as its headers
// are there, whatever its status. The caller ends it with Finish or Abort, and
// leaves body alone until then: an answer may come before all of it is sent.
//
// If a kept connection turns out to be dead before a byte of the answer, or says 408, the
// request is sent once more on a fresh one. The error is an *engine.Error.
func (l *Link) Post(ctx context.Context, path, requestID string, body []byte) (*Response, error) {
	return l.ask(ctx, http.MethodPost, path, body, "Content-Type", "application/json", "X-Request-Id", requestID)
}

// Get returns the body of a small document, such as the answer to a probe. An
// answer other than 200 is an error as StatusError makes it. A dead kept connection
// is no more to it than to Post.
func (l *Link) Get(ctx context.Context, path string) ([]byte, error) {
	resp, err := l.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return resp.document("GET " + path)
}

// ask sends a request, and once more if a kept connection was dead.
func (l *Link) ask(ctx context.Context, method, path string, body []byte, fields ...string) (*Response, error) {
	sent := time.Now()
	resp, err := l.send(ctx, false, method, path, body, fields)
	lost := lostWhileKept(resp, err)
	if lost == nil || time.Since(sent) > staleWindow {
		return resp, err
	}
	if resp != nil {
		resp.Abort()
	}
	again, err2 := l.send(ctx, true, method, path, body, fields)
	if e := engine.AsError(err2); err2 != nil && (e.Kind == engine.CannotConnect || e.Kind == engine.ConnectionTimeout) {
		// Nobody can tell any more whether the request was running when the
		// first connection died. Saying that it was is the careful answer: a
		// request that kills workers must not look as if it never arrived.
		return nil, l.wrap(engine.Disconnected, errors.Join(lost, e.Err))
	}
	return again, err2
}

// lostWhileKept is how a kept connection was found dead, or nil. Some servers and
// proxies say 408 before they close an idle one, which nobody asked for: it may
// arrive just when the next request is sent, and does not answer that.
func lostWhileKept(resp *Response, err error) error {
	var lost *lostError
	switch {
	case err == nil && resp.kept && resp.Status == http.StatusRequestTimeout:
		return errors.New("status 408 on a kept connection")
	case errors.As(err, &lost) && lost.stale:
		return lost
	}
	return nil
}

// Call posts v as JSON and returns the body of a small document, as Get does.
func (l *Link) Call(ctx context.Context, path string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, l.Error(engine.Internal, "POST %s: %w", path, err)
	}
	resp, err := l.Post(ctx, path, "", body)
	if err != nil {
		return nil, err
	}
	return resp.document("POST " + path)
}

// document reads a whole answer, which must be a success.
func (r *Response) document(what string) ([]byte, error) {
	defer r.Abort()
	if r.Status != http.StatusOK {
		return nil, r.StatusError()
	}
	body, err := io.ReadAll(io.LimitReader(r, maxProbeBytes+1))
	if err != nil {
		return nil, r.ReadError(err)
	}
	if len(body) > maxProbeBytes {
		return nil, r.link.Error(engine.ProtocolError, "%s: more than %d bytes", what, maxProbeBytes)
	}
	r.Finish()
	return body, nil
}

// bearer is the value of Authorization; "" = none.
func (l *Link) bearer() string {
	if l.apiKey != nil {
		if key := l.apiKey(); key != "" {
			l.noteKey(key)
			return "Bearer " + key
		}
	}
	return ""
}

// send makes one round trip, on a fresh connection if that is asked for, and
// classifies its failure.
func (l *Link) send(ctx context.Context, fresh bool, method, path string, body []byte, fields []string) (*Response, error) {
	if err := engine.CauseOf(ctx); err != nil {
		return nil, err
	}
	conn, err := l.connect(ctx, fresh)
	if err != nil {
		if cause := engine.CauseOf(ctx); cause != nil {
			return nil, cause
		}
		return nil, l.connectError(fmt.Errorf("%s %s: %w", method, path, err))
	}
	r := &Response{link: l, caller: ctx, conn: conn, kept: conn.reused}
	r.stop = context.AfterFunc(ctx, conn.close)
	if err := r.request(method, path, body, append(fields, "Authorization", l.bearer())); err != nil {
		r.Abort()
		return nil, l.wrap(engine.Internal, fmt.Errorf("%s %s: %w", method, path, err))
	}
	if err := r.readHead(); err != nil {
		defer r.Abort()
		if cause := engine.CauseOf(ctx); cause != nil {
			return nil, cause
		}
		return nil, r.headError(fmt.Errorf("%s %s: %w", method, path, err))
	}
	if r.framing.complete() {
		r.end(len(r.early) == 0)
	}
	return r, nil
}

// wrap makes an Error of this worker.
func (l *Link) wrap(kind engine.Kind, err error) *engine.Error {
	return &engine.Error{Kind: kind, WorkerID: l.workerID, Err: l.blotError(err)}
}

// Error makes an Error of this worker.
func (l *Link) Error(kind engine.Kind, format string, args ...any) *engine.Error {
	return l.wrap(kind, fmt.Errorf(format, args...))
}
