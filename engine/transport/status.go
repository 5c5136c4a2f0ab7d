package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"baton/engine"
)

const (
	maxErrorBytes   = 64 << 10
	maxMessageBytes = 2 << 10 // of an engine's message that is passed on
	maxRetryAfter   = 10 * time.Minute
)

// A Complaint is what an engine says in an error object. The forms of all
// engines are read: {"error":{…}}, {"error":"…"}, a flat {"object":"error",…},
// and FastAPI's {"detail":…}.
type Complaint struct {
	Message string
	Type    string
	Param   string
	Code    int // 0 = none, or not a number
}

// ParseComplaint reads an error object of the worker. It reports false if data is
// none.
func (l *Link) ParseComplaint(data []byte) (Complaint, bool) {
	var outer struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		Object string          `json:"object"`
		wireComplaint
	}
	if json.Unmarshal(data, &outer) != nil {
		return Complaint{}, false
	}
	var text string
	switch {
	case len(outer.Error) > 0 && string(outer.Error) != "null":
		var inner wireComplaint
		if json.Unmarshal(outer.Error, &text) == nil {
			return Complaint{Message: shorten(l.blot(text))}, true
		}
		_ = json.Unmarshal(outer.Error, &inner) // an error of a strange form is one all the same
		return inner.complaint(l), true
	case outer.Object == "error":
		return outer.complaint(l), true
	case len(outer.Detail) > 0:
		return Complaint{Message: shorten(l.blot(detailText(outer.Detail)))}, true
	}
	return Complaint{}, false
}

// detailText reads FastAPI's detail: a text, or a list of what is wrong where.
// The list also repeats what was sent; that is left out.
func detailText(detail json.RawMessage) string {
	var text string
	if json.Unmarshal(detail, &text) == nil {
		return text
	}
	var list []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(detail, &list) // of another form: no message
	var parts []string
	for _, d := range list {
		parts = append(parts, strings.Trim(fmt.Sprint(d.Loc), "[]")+": "+d.Msg)
	}
	return strings.Join(parts, "; ")
}

type wireComplaint struct {
	Message any `json:"message"`
	Type    any `json:"type"`
	Param   any `json:"param"`
	Code    any `json:"code"`
}

func (w wireComplaint) complaint(l *Link) Complaint {
	message, _ := w.Message.(string)
	kind, _ := w.Type.(string)
	param, _ := w.Param.(string)
	c := Complaint{Message: shorten(l.blot(message)), Type: l.blot(kind), Param: l.blot(param)}
	switch code := w.Code.(type) {
	case float64:
		c.Code = int(min(max(code, 0), 999))
	case string:
		c.Code, _ = strconv.Atoi(code)
	}
	return c
}

// shorten bounds a message, and cuts off what an engine repeats of the request:
// a validation error in Python's notation shows the whole input, prompt included.
func shorten(s string) string {
	if before, _, found := strings.Cut(s, "'input':"); found {
		s = before + "…"
	}
	if len(s) > maxMessageBytes {
		s = s[:maxMessageBytes]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// StatusError reads the bounded body of an answer that is no success and makes
// its Error, by the table of KindOfStatus. It ends the Response.
func (r *Response) StatusError() *engine.Error {
	err, _ := r.StatusErrorComplaint()
	return err
}

// StatusErrorComplaint is StatusError for clients that have to look at the
// complaint too, for instance at its type.
func (r *Response) StatusErrorComplaint() (*engine.Error, Complaint) {
	r.hurry(errorBodyWait)
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBytes)) // half a body is better than none
	r.Finish()
	if cause := engine.CauseOf(r.caller); cause != nil {
		return cause, Complaint{}
	}
	complaint, _ := r.link.ParseComplaint(body)
	err := r.link.Refusal(r.Status, complaint)
	err.RetryAfter = retryAfter(r.Header.Get("Retry-After"))
	return err, complaint
}

// Refusal makes the Error of a worker that said no before the first token, with
// an HTTP status or with an error event whose code is one. The engine's message
// is passed on to the client only where the request is at fault.
func (l *Link) Refusal(status int, c Complaint) *engine.Error {
	err := l.Error(KindOfStatus(status), "%s", describe(c))
	err.Status = status
	if err.Kind == engine.InvalidRequest {
		err.Message, err.Param = c.Message, c.Param
		if err.Message == "" {
			err.Message = "the worker refused the request: " + http.StatusText(status)
		}
		err.Err = nil // Message says it
	}
	return err
}

func describe(c Complaint) string {
	switch {
	case c.Message != "" && c.Type != "":
		return c.Type + ": " + c.Message
	case c.Message != "":
		return c.Message
	case c.Type != "":
		return c.Type
	}
	return "no reason given"
}

// KindOfStatus is the table of HTTP statuses before the first token, the same
// for all engines.
func KindOfStatus(status int) engine.Kind {
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return engine.Overloaded
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusNotFound || status == http.StatusMethodNotAllowed ||
		status == http.StatusProxyAuthRequired:
		return engine.WorkerMisconfigured
	case status == http.StatusRequestTimeout:
		return engine.EngineError
	case status >= 500:
		return engine.EngineError
	case status >= 400:
		return engine.InvalidRequest
	case status >= 300:
		return engine.WorkerMisconfigured // redirects are not followed
	}
	return engine.ProtocolError
}

// retryAfter reads a Retry-After header, seconds or a date; 0 = none.
func retryAfter(value string) time.Duration {
	if value == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		return min(max(time.Duration(seconds), 0), maxRetryAfter/time.Second) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(date), 0), maxRetryAfter)
	}
	return 0
}
