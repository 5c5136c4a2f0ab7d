package openai

import (
	"fmt"
	"net/http"
	"strings"
)

// An Error is the API's error object with its HTTP status. It is sent as
// {"error":{"message":…,"type":…,"param":…,"code":…}}.
type Error struct {
	Status  int    // HTTP status; 0 once the stream has begun
	Message string // one sentence for a person
	Type    string // invalid_request_error, server_error, rate_limit_error, …
	Param   string // the parameter at fault; "" = null
	Code    string // machine-readable, e.g. context_length_exceeded; "" = null

	RetryAfter int // seconds; 0 = no Retry-After header
}

func (e *Error) Error() string { return e.Message }

// ResponsePrefix begins the ids of responses.
const ResponsePrefix = "resp_"

// Types of errors, in OpenAI's words.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeRateLimit      = "rate_limit_error"
	TypeServer         = "server_error"
)

// Codes of the errors that a request can have.
const (
	CodeContextLengthExceeded = "context_length_exceeded"
	CodeInvalidAPIKey         = "invalid_api_key"
	CodeInvalidJSON           = "invalid_json"
	CodeInvalidType           = "invalid_type"
	CodeInvalidValue          = "invalid_value"
	CodeMissingParameter      = "missing_required_parameter"
	CodeModelNotFound         = "model_not_found"
	CodeModelNotReady         = "model_not_ready"
	CodePreviousNotFound      = "previous_response_not_found"
	CodeRequestTooLarge       = "request_too_large"
	CodeUnsupportedParameter  = "unsupported_parameter"
)

// InvalidRequest says that the value of param is not allowed. An empty param
// means that the request as a whole is at fault.
func InvalidRequest(param, format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf(format, args...),
		Type:    TypeInvalidRequest,
		Param:   param,
		Code:    CodeInvalidValue,
	}
}

// InvalidType says that param must be of another JSON type; want is a noun with
// its article, such as "an integer".
func InvalidType(param, want, got string) *Error {
	e := InvalidRequest(param, "Invalid type for '%s': expected %s, but got %s.", param, want, got)
	e.Code = CodeInvalidType
	return e
}

// InvalidJSON says that the body is no JSON object that can be read. param is
// the top-level field in which reading failed, "" if in none.
func InvalidJSON(param, format string, args ...any) *Error {
	e := InvalidRequest(param, format, args...)
	e.Code = CodeInvalidJSON
	return e
}

// Missing says that a required parameter is absent.
func Missing(param string) *Error {
	e := InvalidRequest(param, "Missing required parameter: '%s'.", param)
	e.Code = CodeMissingParameter
	return e
}

// Unsupported says that param is known and cannot be honoured. why completes
// the sentence "'param' is not supported: …".
func Unsupported(param, why string) *Error {
	e := InvalidRequest(param, "'%s' is not supported: %s.", param, why)
	e.Code = CodeUnsupportedParameter
	return e
}

// ModelNotFound says that no model has this public name, and which there are. The
// name is the client's own word, so it is cut where no real name would be so long.
func ModelNotFound(name string, existing []string) *Error {
	return &Error{
		Status:  http.StatusNotFound,
		Message: fmt.Sprintf("The model '%s' does not exist; %s.", cut(name, maxQuotedNameBytes), thereIs(existing)),
		Type:    TypeInvalidRequest,
		Param:   "model",
		Code:    CodeModelNotFound,
	}
}

const (
	// maxQuotedNameBytes bounds how much of a client's word an error repeats.
	maxQuotedNameBytes = 256
	// maxListedBytes bounds a list of names in an error.
	maxListedBytes = 100
)

// thereIs lists as many names as there is room for, each as a whole.
func thereIs(names []string) string {
	if len(names) == 0 {
		return "there is none at the moment"
	}
	n, room := 0, maxListedBytes
	for n < len(names) && len(names[n]) <= room {
		room -= len(names[n]) + len(", ")
		n++
	}
	switch n {
	case 0:
		return "GET /v1/models lists those that do"
	case len(names):
		return "there is: " + strings.Join(names, ", ")
	}
	return "there is: " + strings.Join(names[:n], ", ") + ", …; GET /v1/models lists all"
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// ModelNotReady says that the model is configured, but that no worker has shown
// it yet.
func ModelNotReady(name string, retryAfterSeconds int) *Error {
	return &Error{
		Status:     http.StatusServiceUnavailable,
		Message:    fmt.Sprintf("The model '%s' is not ready yet: no worker that serves it has been seen. Please retry later.", name),
		Type:       TypeServer,
		Param:      "model",
		Code:       CodeModelNotReady,
		RetryAfter: retryAfterSeconds,
	}
}

// PreviousResponseNotFound says that a response, of which kept tells how long it is
// kept, cannot be gone on from. It is a 400, as OpenAI's is.
func PreviousResponseNotFound(id, kept string) *Error {
	e := InvalidRequest("previous_response_id", "Previous response with id '%s' not found: %s. Send the whole conversation as 'input'.", id, kept)
	e.Code = CodePreviousNotFound
	return e
}

// ItemNotFound says the same of an item that an input refers to. It is a 404, and has
// no code, as OpenAI's.
func ItemNotFound(param, id, kept string) *Error {
	e := InvalidRequest(param, "Item with id '%s' not found: %s, and not if 'store' was false. Send the item itself.", id, kept)
	e.Status, e.Code = http.StatusNotFound, ""
	return e
}

// ContextLengthExceeded says that a prompt leaves no room for an answer. param
// is where the prompt came from: messages or prompt. All figures are tokens.
func ContextLengthExceeded(param string, promptTokens, contextLength int) *Error {
	return &Error{
		Status: http.StatusBadRequest,
		Message: fmt.Sprintf("This model's maximum context length is %d tokens. However, your %s resulted in %d tokens, "+
			"which leaves no room for an answer. Please reduce the length of the %s.", contextLength, param, promptTokens, param),
		Type:  TypeInvalidRequest,
		Param: param,
		Code:  CodeContextLengthExceeded,
	}
}

// RequestTooLarge says that the body is longer than the limit, in bytes.
func RequestTooLarge(limitBytes int64) *Error {
	return &Error{
		Status:  http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("The request body is larger than the limit of %d bytes.", limitBytes),
		Type:    TypeInvalidRequest,
		Code:    CodeRequestTooLarge,
	}
}
