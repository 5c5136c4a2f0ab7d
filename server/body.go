package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"baton/openai"
)

const (
	bodyIdleTimeout  = 60 * time.Second // without a byte of the body
	bodyTotalTimeout = 10 * time.Minute
	// initialBodyBytes bounds what is allocated on the word of a Content-Length.
	initialBodyBytes = 64 << 10
)

// readBody returns the body of r, or what is wrong with it; status 499 says that
// the client left in the middle.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *openai.Error) {
	if e := checkContentType(r); e != nil {
		return nil, e
	}
	limit := s.cfg.MaxBodyBytes
	if whole, ok := r.Body.(*wholeBody); ok && r.ContentLength <= limit {
		return whole.data, nil
	}
	rc := http.NewResponseController(w)
	in := &patientReader{r: r.Body, rc: rc, end: time.Now().Add(bodyTotalTimeout)}
	if r.ContentLength > limit {
		if r.Header.Get("Expect") == "" {
			// Many clients read the answer only when all is sent, and closing
			// early would reset the connection under them. Nothing is kept.
			_, _ = io.CopyN(io.Discard, in, limit+1)
		}
		return nil, openai.RequestTooLarge(limit)
	}
	var buf bytes.Buffer
	buf.Grow(int(min(max(r.ContentLength, 0), initialBodyBytes)) + bytes.MinRead)
	_, err := buf.ReadFrom(http.MaxBytesReader(w, in, limit))
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{}) // the answer may take longer
		return buf.Bytes(), nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, openai.RequestTooLarge(limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &openai.Error{
			Status:  http.StatusRequestTimeout,
			Message: "The request's body did not arrive in time.",
			Type:    openai.TypeInvalidRequest,
			Code:    "body_timeout",
		}
	}
	if malformed(r, err) {
		return nil, &openai.Error{
			Status:  http.StatusBadRequest,
			Message: "The request's body is not sent in well-formed chunks.",
			Type:    openai.TypeInvalidRequest,
			Code:    "malformed_body",
		}
	}
	return nil, &openai.Error{Status: statusClientClosedRequest, Message: "client left", Type: openai.TypeInvalidRequest, Code: "cancelled"}
}

// malformed tells a client that breaks the rules of chunks, and is there to hear
// of it, from one that left in the middle. net/http has no type for such errors.
func malformed(r *http.Request, err error) bool {
	_, network := errors.AsType[net.Error](err)
	return len(r.TransferEncoding) > 0 && !network && !errors.Is(err, io.ErrUnexpectedEOF) && r.Context().Err() == nil
}

// checkContentType accepts JSON, and a request that does not say what it is.
func checkContentType(r *http.Request) *openai.Error {
	unsupported := func(what, value string) *openai.Error {
		return &openai.Error{
			Status:  http.StatusUnsupportedMediaType,
			Message: what + " " + printable(value) + " is not supported; send application/json, not compressed.",
			Type:    openai.TypeInvalidRequest,
			Code:    "unsupported_media_type",
		}
	}
	if v := r.Header.Get("Content-Encoding"); v != "" && !strings.EqualFold(v, "identity") {
		return unsupported("Content-Encoding", v)
	}
	v := r.Header.Get("Content-Type")
	if v == "" || v == "application/json" {
		return nil
	}
	media, _, err := mime.ParseMediaType(v)
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return unsupported("Content-Type", v)
	}
	return nil
}

// limitBody gives the body of a request that nobody may want to read a deadline:
// net/http reads on for a while before it sends the response to such a request,
// and would wait for a client that has stopped sending. readBody moves it.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, whole := r.Body.(*wholeBody); r.ContentLength != 0 && !whole {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyIdleTimeout))
		}
		next.ServeHTTP(w, r)
	})
}

// A wholeBody is a body all of which has been read.
type wholeBody struct {
	bytes.Reader
	data []byte
}

func newWholeBody(data []byte) *wholeBody {
	b := &wholeBody{data: data}
	b.Reset(data)
	return b
}

// Close does nothing.
func (*wholeBody) Close() error { return nil }

// A patientReader reads from a client as long as it sends something now and
// then, and not for ever.
type patientReader struct {
	r   io.ReadCloser
	rc  *http.ResponseController
	end time.Time
}

func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(bodyIdleTimeout)
	if deadline.After(p.end) {
		deadline = p.end
	}
	_ = p.rc.SetReadDeadline(deadline) // not every writer has deadlines
	return p.r.Read(b)
}

func (p *patientReader) Close() error { return p.r.Close() }
