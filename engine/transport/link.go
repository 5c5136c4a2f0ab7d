package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"baton/engine"
)

const (
	// idleTimeout is how long a connection is kept for the next request.
	// uvicorn and cpp-httplib close idle ones after about five seconds; leaving
	// first avoids the race.
	idleTimeout = 2 * time.Second

	// staleWindow is how soon after sending a failure on a kept connection is
	// taken for the worker having closed it before. A connection that dies later
	// died under the request.
	staleWindow = time.Second

	maxIdleConns   = 1024
	maxHeaderBytes = 64 << 10
	maxProbeBytes  = 16 << 20 // vLLM's openapi.json is the largest answer to a probe
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

	// ConnectTimeout bounds making a connection, TLS handshake included; 0 = off.
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
	kept     *http.Transport // keeps connections
	fresh    *http.Transport // a new connection for every request

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
	}
	l := &Link{
		base:     strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"),
		workerID: opts.WorkerID,
		apiKey:   opts.APIKey,
	}
	if l.workerID == "" {
		l.workerID = u.Host
	}
	l.kept = newTransport(opts)
	l.fresh = newTransport(opts)
	l.fresh.DisableKeepAlives = true
	return l, nil
}

// newTransport returns a plain HTTP/1.1 transport. There is no proxy: a worker
// URL names one process, and whatever answers in its place would not be it.
func newTransport(opts Options) *http.Transport {
	return &http.Transport{
		DialContext:            dialer(opts),
		TLSClientConfig:        opts.TLS,
		TLSHandshakeTimeout:    opts.ConnectTimeout,
		DisableCompression:     true,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    maxIdleConns,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

func dialer(opts Options) func(context.Context, string, string) (net.Conn, error) {
	dial := opts.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if opts.ConnectTimeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, opts.ConnectTimeout)
			defer cancel()
		}
		return dial(ctx, network, address)
	}
}

// WorkerID is the worker's name in errors.
func (l *Link) WorkerID() string { return l.workerID }

// URL is the worker's base address.
func (l *Link) URL() string { return l.base }

// Close gives up the connections that are kept. Running answers go on.
func (l *Link) Close() { l.kept.CloseIdleConnections() }

// Post sends a JSON body to path and returns the answer as soon as its headers
// are there, whatever its status. The caller ends it with Finish or Abort.
//
// If a kept connection turns out to be dead before a byte of the answer, the
// request is sent once more on a fresh one. The error is an *engine.Error.
func (l *Link) Post(ctx context.Context, path, requestID string, body []byte) (*Response, error) {
	header := l.header()
	header.Set("Content-Type", "application/json")
	if requestID != "" {
		header.Set("X-Request-Id", requestID)
	}
	sent := time.Now()
	resp, err := l.send(ctx, l.kept, http.MethodPost, path, header, body)
	var lost *lostError
	if err == nil || !errors.As(err, &lost) || !lost.stale || time.Since(sent) > staleWindow {
		return resp, err
	}
	again, err2 := l.send(ctx, l.fresh, http.MethodPost, path, header, body)
	if e := engine.AsError(err2); err2 != nil && (e.Kind == engine.CannotConnect || e.Kind == engine.ConnectionTimeout) {
		// Nobody can tell any more whether the request was running when the
		// first connection died. Saying that it was is the careful answer: a
		// request that kills workers must not look as if it never arrived.
		return nil, l.wrap(engine.Disconnected, errors.Join(lost, e.Err))
	}
	return again, err2
}

// Get returns the body of a small document, such as the answer to a probe. An
// answer other than 200 is an error as StatusError makes it.
func (l *Link) Get(ctx context.Context, path string) ([]byte, error) {
	resp, err := l.send(ctx, l.kept, http.MethodGet, path, l.header(), nil)
	if err != nil {
		return nil, err
	}
	return resp.document("GET " + path)
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

func (l *Link) header() http.Header {
	header := http.Header{"User-Agent": {"baton"}}
	if l.apiKey != nil {
		if key := l.apiKey(); key != "" {
			l.noteKey(key)
			header.Set("Authorization", "Bearer "+key)
		}
	}
	return header
}

// send makes one round trip and classifies its failure.
func (l *Link) send(ctx context.Context, via *http.Transport, method, path string, header http.Header, body []byte) (*Response, error) {
	if err := engine.CauseOf(ctx); err != nil {
		return nil, err
	}
	r := &Response{link: l, caller: ctx}
	reqCtx, cancel := context.WithCancel(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              r.gotConn,
		GotFirstResponseByte: r.gotByte,
	}))
	r.cancel = cancel
	var payload io.Reader // a nil *bytes.Reader would be a body
	if body != nil {
		payload = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(reqCtx, method, l.base+path, payload)
	if err != nil {
		cancel()
		return nil, l.wrap(engine.Internal, err)
	}
	req.Header = header

	resp, err := via.RoundTrip(req) // not http.Client: redirects are not followed, cookies not kept
	if err != nil {
		defer r.Abort()
		if cause := engine.CauseOf(ctx); cause != nil {
			return nil, cause
		}
		return nil, r.roundTripError(fmt.Errorf("%s %s: %w", method, path, err))
	}
	r.Status, r.Header, r.body = resp.StatusCode, resp.Header, resp.Body
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
