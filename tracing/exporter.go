package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/proto"
)

const (
	// maxExport bounds the sending of one batch with all its attempts. The SDK's own
	// bound (OTEL_BSP_EXPORT_TIMEOUT, 30 s) is usually shorter.
	maxExport = time.Minute
	// firstPause and maxPause bound the wait before a batch is sent again. It doubles,
	// and a random half of it keeps a fleet from returning in step.
	firstPause = 500 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxReplyBytes is what is read of a collector's reply: a few numbers and a sentence.
	maxReplyBytes = 64 << 10
	// maxQuotedBytes is what of a collector's words comes into an error.
	maxQuotedBytes = 256

	contentType = "application/x-protobuf"
)

// errEnded is the error of an export after Shutdown.
var errEnded = errors.New("the exporter has ended")

// An exporter posts batches of spans to a collector: OTLP over HTTP, as protobuf.
// A batch that meets a busy or absent collector is sent again, as the protocol
// asks, until its context or maxExport ends.
// https://opentelemetry.io/docs/specs/otlp/#otlphttp
//
// As the SDK's contract has it, ExportSpans is not called concurrently, and the
// spans that it gets are of one Tracer: one resource and one scope.
type exporter struct {
	to     *destination
	agent  string // the header User-Agent
	client *http.Client
	ended  atomic.Bool
}

var _ sdk.SpanExporter = (*exporter)(nil)

// newExporter returns an exporter that sends to a destination. It opens no
// connection yet.
func newExporter(to *destination, version string) *exporter {
	transport := http.DefaultTransport.(*http.Transport).Clone() // proxies of the environment, HTTP/2
	transport.TLSClientConfig = to.tls
	transport.MaxIdleConns = 1 // there is one batch at a time
	return &exporter{to: to, agent: "baton/" + version, client: &http.Client{
		Transport: transport,
		Timeout:   to.timeout,
		// Headers may hold a key that is for this collector only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ExportSpans implements sdk/trace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if e.ended.Load() {
		return errEnded
	}
	if len(spans) == 0 {
		return nil
	}
	body, err := e.encode(spans)
	if err != nil {
		return fmt.Errorf("%d spans cannot be written as OTLP: %w", len(spans), err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxExport)
	defer cancel()
	for try := 0; ; try++ {
		err := e.post(ctx, body)
		var again *retryable
		if !errors.As(err, &again) {
			return err
		}
		if !wait(ctx, max(pause(try), again.after)) {
			return fmt.Errorf("%d spans given up after %d attempts: %w", len(spans), try+1, err)
		}
	}
}

// Shutdown implements sdk/trace.SpanExporter. The SDK calls it when the last
// export has returned.
func (e *exporter) Shutdown(context.Context) error {
	e.ended.Store(true)
	e.client.CloseIdleConnections()
	return nil
}

// encode returns the body of a request, compressed if that is wanted.
func (e *exporter) encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	body, err := proto.Marshal(batch(spans))
	if err != nil || !e.to.gzip {
		return body, err
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return small.Bytes(), nil
}

// post sends a body once. An error that another attempt may cure is a *retryable.
func (e *exporter) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("posting to %s: %w", shown(e.to.url), err)
	}
	req.Header.Set("User-Agent", e.agent)
	for _, h := range e.to.headers {
		req.Header.Set(h.name, h.value)
	}
	req.Header.Set("Content-Type", contentType)
	if e.to.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return e.transportError(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReplyBytes))
	if resp.StatusCode/100 == 2 {
		// The spans have arrived. A reply that breaks off is no reason to send them twice.
		if err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), contentType) {
			return nil
		}
		return rejection(reply)
	}
	failure := fmt.Errorf("posting to %s: %s, %q", shown(e.to.url), resp.Status, quoted(reply))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &retryable{err: failure, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	}
	return failure
}

// transportError is the error of a request without a reply. Only a certificate
// that is not trusted will not be trusted in a second either.
func (e *exporter) transportError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // its text begins with the whole address, queries included
	}
	err = fmt.Errorf("posting to %s: %w", shown(e.to.url), err)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return err
	}
	return &retryable{err: err}
}

// A retryable error may be gone when the same batch is sent again.
type retryable struct {
	err   error
	after time.Duration // the collector wants no request before; 0 = it did not say
}

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }

// pause is the wait after the try-th attempt (from 0) has failed.
func pause(try int) time.Duration {
	p := maxPause
	if try < 8 { // far above maxPause, and no shift overflows
		p = min(firstPause<<try, maxPause)
	}
	return p/2 + rand.N(p/2)
}

// wait waits, and reports false if the context ends first. What cannot end well
// is not begun.
func wait(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryAfter reads the header Retry-After: seconds or a date. What cannot be read
// is 0; maxExport stands for anything longer.
// https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxExport/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxExport)
	}
	return 0
}
