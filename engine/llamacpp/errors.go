package llamacpp

import (
	"net/http"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// statusOf is the HTTP status of each error type, for events that lack a code.
var statusOf = map[string]int{
	"invalid_request_error":     http.StatusBadRequest,
	"exceed_context_size_error": http.StatusBadRequest,
	"authentication_error":      http.StatusUnauthorized,
	"permission_error":          http.StatusForbidden,
	"not_found_error":           http.StatusNotFound,
	"server_error":              http.StatusInternalServerError,
	"not_supported_error":       http.StatusNotImplemented,
	"unavailable_error":         http.StatusServiceUnavailable,
}

// statusError reads a refusal before the stream.
func statusError(resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	blame(err, complaint)
	return err
}

// errorFrame judges an error event. After the first token the request was
// evidently valid, so whatever it says is the engine's failure.
func errorFrame(link *transport.Link, c transport.Complaint, tokens int) *engine.Error {
	if c.Code == 0 {
		c.Code = statusOf[c.Type]
	}
	if tokens > 0 || c.Code < 400 {
		err := link.Error(engine.EngineError, "error event: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	err := link.Refusal(c.Code, c)
	blame(err, c)
	return err
}

// noCompletions is what an older build says that was started with --embeddings.
const noCompletions = "This server does not support completions"

// blame corrects the one status that means something else here: 501 says that the
// request wants what this server cannot do, which another one may. A context that is
// too small is this server's own, too: it is its memory, divided by its slots.
func blame(err *engine.Error, c transport.Complaint) {
	err.Elsewhere = err.Kind == engine.InvalidRequest && c.Type == "exceed_context_size_error"
	switch {
	case err.Kind != engine.EngineError || err.Status != http.StatusNotImplemented:
	case strings.HasPrefix(c.Message, noCompletions):
		err.Kind = engine.WorkerMisconfigured
	default:
		err.Kind, err.Message, err.Err, err.Elsewhere = engine.InvalidRequest, c.Message, nil, true
		if err.Message == "" {
			err.Message = "the worker does not support the request"
		}
	}
}

// parseBareComplaint reads the "error: {…}" lines of old servers, which hold the
// error object with or without an object around it.
func parseBareComplaint(link *transport.Link, data []byte) transport.Complaint {
	if c, ok := link.ParseComplaint(data); ok {
		return c
	}
	c, _ := link.ParseComplaint([]byte(`{"error":` + string(data) + `}`))
	return c
}
