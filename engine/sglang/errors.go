package sglang

import (
	"net/http"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// What the server says with status 400 although another worker may well take the
// request: it is this one's memory that is too small, or a request of another
// frontend has the same id.
var ownLimits = []string{
	"exceeds the maximum allowed length", // of the memory for keys and values; too long for the model has other words
	"exceeds the KV memory budget",
	"Duplicate request ID detected",
}

// What the server says with status 400 when it was not set up for the request.
var ownSetup = []string{
	"Got LoRA adapter that has never been loaded", // it was there at the last probe
	"--enable-lora",
	"Using priority is disabled", // with status 503
}

// What older servers say in an error event that has no code, where the request is
// at fault. Anything else without a code is the server's failure.
var requestFaults = []string{
	"is longer than the model's context length",
	"Requested token count exceeds the model's maximum context length",
	"input_ids contains values greater than the vocab size",
	"input_ids cannot be empty",
	" must be ", // "temperature must be non-negative", "top_p must be in (0, 1]", …
	" must has keys in ",
	"can be set",
}

// refusal judges what the server says before the first token, with a status, with
// the code of an error event, or with that of an abort.
func refusal(link *transport.Link, c transport.Complaint) *engine.Error {
	err := link.Refusal(c.Code, c)
	reclassify(link, err, c)
	return err
}

// reclassify corrects an Error whose status means something else here.
func reclassify(link *transport.Link, err *engine.Error, c transport.Complaint) {
	kind := err.Kind
	switch {
	case says(c, ownSetup):
		kind = engine.WorkerMisconfigured
	case err.Kind == engine.InvalidRequest && says(c, ownLimits):
		kind = engine.Overloaded // for this request
	}
	if kind == err.Kind {
		return
	}
	err.Kind, err.Message, err.Param = kind, "", ""
	err.Err = link.Error(kind, "%s", c.Message).Err
}

func says(c transport.Complaint, any []string) bool {
	for _, words := range any {
		if strings.Contains(c.Message, words) {
			return true
		}
	}
	return false
}

// statusError reads a refusal before the stream.
func statusError(link *transport.Link, resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	reclassify(link, err, complaint)
	return err
}

// failure judges an error event, or the abort of a request that nobody here asked
// for. After the first token the request was evidently valid, so whatever is said
// is the engine's failure.
func failure(link *transport.Link, what string, c transport.Complaint, tokens int) *engine.Error {
	if tokens == 0 && c.Code >= http.StatusBadRequest {
		return refusal(link, c)
	}
	err := link.Error(engine.EngineError, "%s: %s", what, c.Message)
	err.Status = c.Code
	return err
}

// errorEvent judges the error object of an event.
func errorEvent(link *transport.Link, data []byte, tokens int) *engine.Error {
	c, _ := link.ParseComplaint(data)
	if c.Code == 0 && says(c, requestFaults) {
		c.Code = http.StatusBadRequest
	}
	return failure(link, "error event", c, tokens)
}
