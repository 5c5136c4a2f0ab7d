package llamacpp

import (
	"net/http"

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
	blameRequest(err, complaint)
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
	blameRequest(err, c)
	return err
}

// blameRequest corrects the one status that means something else here: 501 says
// that the request wants what this build cannot do.
func blameRequest(err *engine.Error, c transport.Complaint) {
	if err.Kind == engine.EngineError && err.Status == http.StatusNotImplemented {
		err.Kind, err.Message, err.Err = engine.InvalidRequest, c.Message, nil
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
