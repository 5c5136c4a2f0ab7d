package trtllm

import (
	"errors"
	"net/http"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// statusError reads a refusal before the stream. A 503 without an error object is
// the server's word for an engine that is dead; it has none for a busy one. One
// with an error object comes from something in front of it.
func statusError(resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	if cause := err.Kind; cause == engine.Cancelled || cause == engine.TimedOut {
		return err
	}
	if isEngineDeath(complaint.Message) || err.Status == http.StatusServiceUnavailable && complaint == (transport.Complaint{}) {
		err.Kind, err.Message, err.Param = engine.EngineShutdown, "", ""
		if complaint.Message != "" {
			err.Err = errors.New(complaint.Message)
		}
		return err
	}
	err.Elsewhere = err.Kind == engine.InvalidRequest && maySucceedElsewhere(complaint)
	return err
}

// errorFrame judges an error event, whose code is null. After the first token the
// request was evidently valid, so whatever it says is the engine's failure.
func errorFrame(link *transport.Link, c transport.Complaint, tokens int) *engine.Error {
	if isEngineDeath(c.Message) {
		err := link.Error(engine.EngineShutdown, "error event: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	if tokens == 0 && c.Code < 400 && isOwnLimit(c.Message) {
		c.Code = http.StatusBadRequest
	}
	if tokens > 0 || c.Code < 400 {
		err := link.Error(engine.EngineError, "error event: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	err := link.Refusal(c.Code, c)
	err.Elsewhere = err.Kind == engine.InvalidRequest && maySucceedElsewhere(c)
	return err
}

// isEngineDeath knows the messages of an engine that is gone or going.
func isEngineDeath(message string) bool {
	for _, words := range []string{"LLM is unavailable", "LLM is shutting down", "Executor worker", "executor has been shut down", "CppExecutorError"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// isOwnLimit knows the messages that speak of a limit with which the server was
// started: max_num_tokens, max_seq_len, max_input_len, max_batch_size, or the
// options that one of its features was built with.
func isOwnLimit(message string) bool {
	for _, words := range []string{"max_num_tokens", "max_seq_len", "max_input_len", "maximum", "max_beam_width"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// maySucceedElsewhere tells a 400 that only this worker gives from one that every
// worker would. The server makes a flat error object, with a type, of whatever goes
// wrong on the way of a request into the engine: a limit of its own, an option that
// it was not started with, a bug. What the request's form is checked for has another
// object, without a type; only an unknown field is this version's own matter there.
func maySucceedElsewhere(c transport.Complaint) bool {
	return c.Type != "" || isOwnLimit(c.Message) ||
		strings.Contains(c.Message, "extra_forbidden") || strings.Contains(c.Message, "Extra inputs are not permitted")
}
