package sglang

import (
	"errors"
	"net/http"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// What the server says with status 400 that another worker need not say: of a
// limit of its own, of what it was not started with, of its version.
var ownLimits = []string{
	"exceeds the maximum allowed length", // of its memory for keys and values
	"exceeds the KV memory budget",
	"maximum context length",
	"the model's context length",
	"LoRA adapter", // it was there at the last probe
	"--enable-lora",
	"--grammar-backend",
	"Grammar preprocessing timed out",
	"unknown field",
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

// refusal judges what the server says before the first token, with the code of an
// error event or of an abort.
func refusal(link *transport.Link, c transport.Complaint) *engine.Error {
	return judge(link.Refusal(c.Code, c), c)
}

// sentTwice is what the server says of an id that it knows. Ids are not used twice, but
// a request whose connection was lost before a byte of the answer is sent again.
const sentTwice = "Duplicate request ID detected"

// judge looks at what the server says with a refusal.
func judge(err *engine.Error, c transport.Complaint) *engine.Error {
	if err.Kind != engine.InvalidRequest {
		return err
	}
	if strings.Contains(c.Message, sentTwice) {
		return &engine.Error{Kind: engine.Disconnected, WorkerID: err.WorkerID, Status: err.Status,
			Err: errors.New("the connection was lost, and the server is still at the request: " + sentTwice)}
	}
	err.Elsewhere = says(c, ownLimits)
	return err
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
func statusError(resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	return judge(err, complaint)
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
