// Package openai holds the wire types of the public API and its error envelope.
package openai

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
