package hub

import (
	"errors"
	"fmt"
	"time"
)

// Errors of a hub; each is in the chain of an [Error].
var (
	ErrOffline     = errors.New("the network is switched off")
	ErrNotFound    = errors.New("not found")             // no such model, revision or file, or a private one
	ErrDenied      = errors.New("not allowed")           // a token is missing, wrong or without this right
	ErrTooLarge    = errors.New("too large")             // a named limit is exceeded
	ErrProtocol    = errors.New("not a hub's answer")    // an answer that no hub gives
	ErrDamaged     = errors.New("damaged on its way")    // not the content that its etag promises
	ErrUnavailable = errors.New("the hub is not usable") // no connection, silence, 429, 5xx
	ErrDisk        = errors.New("cannot write")          // the cache is full or read-only
)

// An Error is one sentence for people; Reason says which sort it is.
type Error struct {
	Reason     error // one of the above
	Text       string
	RetryAfter time.Duration // what the hub asked for; 0 = nothing
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// IsFinal tells whether trying again soon is pointless: a person must act.
func (e *Error) IsFinal() bool {
	switch e.Reason {
	case ErrUnavailable, ErrDamaged:
		return false
	}
	return true
}

func failed(reason error, format string, args ...any) *Error {
	return &Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
}
