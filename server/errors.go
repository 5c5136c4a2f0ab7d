package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"baton/engine"
	"baton/openai"
	"baton/responsestore"
)

// Retry-After where no worker gave a hint, in seconds.
const (
	retryAfterDefault  = 1
	retryAfterNoWorker = 5 // a worker that failed is kept out about so long
	maxRetryAfter      = 3600
)

// errShuttingDown is the cause with which running requests are ended when the
// process ends.
var errShuttingDown = errors.New("server is shutting down")

// errClientGone is the cause when nobody takes the answer any more.
var errClientGone = errors.New("client is gone")

const statusClientClosedRequest = 499 // only for logs

// kindInfo is what clients are told of a final error.
type kindInfo struct {
	status  int
	code    string
	message string // a sentence, without its end
	retry   string // whether a retry makes sense
}

const (
	retryMakesSense = "The request can be repeated."
	retryLater      = "The request can be repeated later."
	retryUseless    = "Repeating it unchanged will not help."
)

// kinds is the table of final errors: what each means to a client.
var kinds = [...]kindInfo{
	engine.Internal:            {500, "internal_error", "The server met an internal error", retryMakesSense},
	engine.CannotConnect:       {503, "worker_unreachable", "The worker could not be reached", retryMakesSense},
	engine.ConnectionTimeout:   {504, "worker_connect_timeout", "No connection to the worker was made in time", retryMakesSense},
	engine.Disconnected:        {502, "worker_disconnected", "The connection to the worker was lost before the answer was complete", retryMakesSense},
	engine.Stalled:             {504, "worker_stalled", "The worker was silent for too long before the answer was complete", retryMakesSense},
	engine.EngineShutdown:      {503, "worker_shutdown", "The worker shut down before the answer was complete", retryMakesSense},
	engine.Overloaded:          {503, "overloaded", "All workers are busy", retryLater},
	engine.WorkerMisconfigured: {502, "worker_misconfigured", "The workers refuse this server's requests, which is an error of their configuration", retryUseless},
	engine.InvalidRequest:      {400, "", "The worker finds the request invalid", ""},
	engine.EngineError:         {502, "worker_error", "The worker failed before the answer was complete", retryMakesSense},
	engine.ProtocolError:       {502, "worker_protocol_error", "The worker sent something that cannot be understood before the answer was complete", retryMakesSense},
	engine.NoWorker:            {503, "no_worker_available", "No worker is available for this model", retryLater},
	engine.Cancelled:           {statusClientClosedRequest, "cancelled", "The client left", ""},
	engine.Drained:             {503, "worker_drained", "The worker was taken out of service before the answer was complete", retryMakesSense},
	engine.Poison:              {400, "request_lost_workers", "Twice in a row the worker that ran this request was lost, so the request is not tried again", retryUseless},
	engine.TimedOut:            {504, "request_timeout", "The answer was not complete within the request's time limit", "The request can be repeated with a longer limit or fewer tokens."},
}

// publicError is what the client is told of e, which ended a request after so
// many attempts and was not answered by a move for a reason. It names no worker:
// addresses are for the log.
func publicError(e *engine.Error, attempts int, notMoved engine.NotMoved, overloadStatus int) *openai.Error {
	if errors.Is(e.Err, errShuttingDown) {
		return errStopping("The server is shutting down and ended this request before the answer was complete.")
	}
	kind := e.Kind
	if int(kind) >= len(kinds) {
		kind = engine.Internal
	}
	info := kinds[kind]
	out := &openai.Error{Status: info.status, Type: openai.TypeServer, Code: info.code}
	switch kind {
	case engine.InvalidRequest:
		if e.Status >= 400 && e.Status < 500 && !repeatedBySDKs(e.Status) {
			out.Status = e.Status
		}
		out.Type, out.Param, out.Code, out.Message = openai.TypeInvalidRequest, e.Param, e.Code, e.Message
		if out.Message == "" {
			out.Message = info.message + "."
		}
		return out
	case engine.Overloaded:
		if errors.Is(e.Err, engine.ErrExhausted) {
			info.message = "The server can make no more connections to its workers at the moment"
		}
		if e.Status == http.StatusTooManyRequests {
			out.Status = e.Status
		}
		if overloadStatus != 0 {
			out.Status = overloadStatus
		}
		if out.Status == http.StatusTooManyRequests {
			out.Type = openai.TypeRateLimit
		}
	}
	switch {
	case kind == engine.NoWorker:
		out.RetryAfter = retryAfter(e.RetryAfter, retryAfterNoWorker)
	case out.Status == http.StatusServiceUnavailable || out.Status == http.StatusTooManyRequests:
		out.RetryAfter = retryAfter(e.RetryAfter, retryAfterDefault)
	}
	out.Message = info.message + " (" + attemptsMade(attempts) + whyNotMoved[notMoved] + "). " + info.retry
	return out
}

// repeatedBySDKs says which 4xx the official SDKs repeat by themselves, as they do
// everything from 500 on. What must not be repeated has another 4xx.
func repeatedBySDKs(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests
}

func attemptsMade(n int) string {
	switch n {
	case 0:
		return "no attempt was made"
	case 1:
		return "1 attempt was made"
	}
	return fmt.Sprintf("%d attempts were made", n)
}

// whyNotMoved goes on after the number of attempts. That of a poisonous request
// is its kind.
var whyNotMoved = map[engine.NotMoved]string{
	engine.MigrationOff:    "; migration is off",
	engine.MovesUsedUp:     "; its limit of moves is used up",
	engine.SequenceTooLong: "; it is too long to be moved",
	engine.GuidedDecoding:  "; its answer is constrained (structured output), and a part of it had been delivered, so that no other worker could go on with it",
	engine.PoisonSuspected: "; its workers were lost twice in a row, together with other requests, any of which may be the cause",
}

// retryAfter is hint in whole seconds, at least 1, or fallback without a hint.
func retryAfter(hint time.Duration, fallback int) int {
	if hint <= 0 {
		return fallback
	}
	return int(min(math.Ceil(hint.Seconds()), maxRetryAfter))
}

func errInternal() *openai.Error {
	return &openai.Error{
		Status:  http.StatusInternalServerError,
		Message: "The server met an internal error. " + retryMakesSense,
		Type:    openai.TypeServer,
		Code:    kinds[engine.Internal].code,
	}
}

// errNotStored answers whoever asks for a response that was given before, wants it
// deleted or cancelled.
func errNotStored() *openai.Error {
	return &openai.Error{
		Status:  http.StatusNotFound,
		Message: "Responses are not stored here: each is given once, to the request that asked for it.",
		Type:    openai.TypeInvalidRequest,
		Code:    "not_found",
	}
}

// errNoResponse answers whoever asks for a response that is not kept, or is another
// client's.
func errNoResponse(id string) *openai.Error {
	return &openai.Error{
		Status:  http.StatusNotFound,
		Message: "Response with id '" + printable(id) + "' not found: " + responsestore.WhileKept + ".",
		Type:    openai.TypeInvalidRequest,
		Code:    "not_found",
	}
}

func errStopping(message string) *openai.Error {
	return &openai.Error{
		Status:     http.StatusServiceUnavailable,
		Message:    message + " " + retryMakesSense,
		Type:       openai.TypeServer,
		Code:       "server_shutting_down",
		RetryAfter: retryAfterDefault,
	}
}

// writeError answers with e as status and envelope. Nothing may have been
// written before.
func writeError(w http.ResponseWriter, e *openai.Error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	status := e.Status
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError // net/http panics at nonsense
	}
	w.WriteHeader(status)
	_, _ = w.Write(appendEnvelope(nil, e)) // nobody is left to be told of a failure
}

// appendEnvelope appends the API's error object, as a body and as an event have it.
func appendEnvelope(dst []byte, e *openai.Error) []byte {
	dst = appendString(append(dst, `{"error":{"message":`...), e.Message)
	dst = appendString(append(dst, `,"type":`...), e.Type)
	dst = appendStringOrNull(append(dst, `,"param":`...), e.Param)
	dst = appendStringOrNull(append(dst, `,"code":`...), e.Code)
	return append(dst, "}}"...)
}

func appendStringOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}
