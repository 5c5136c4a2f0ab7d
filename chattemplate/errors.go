package chattemplate

import (
	"fmt"
	"runtime"
)

// A SyntaxError says where a template is none.
type SyntaxError struct {
	Line    int // counted from 1
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("chat template: line %d: %s", e.Line, e.Message)
}

// A RaisedError is the template's own refusal (raise_exception). Its message was
// written by the model's makers for whoever sent the conversation.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return e.Message }

// An InputError says that template and conversation do not fit: a value of the
// wrong type, a name that is not defined, JSON that is none. Kind is the name
// that Python gives to such an error ("TypeError", "UndefinedError").
type InputError struct {
	Kind    string
	Message string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("chat template: %s: %s", e.Kind, e.Message)
}

// A LimitError says that a template or a rendering went over one of the
// package's limits, and over which.
type LimitError struct {
	Limit string // what is limited, such as "bytes of output"
	Max   int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("chat template: over the limit of %d %s", e.Max, e.Limit)
}

// An InternalError is a fault of this package. It is an error and not a panic,
// because one odd conversation must not end the process that serves the others.
type InternalError struct {
	Cause any
	Stack string
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("chat template: internal fault: %v", e.Cause)
}

// failure carries an error up to Parse or Render. A template is a tree of
// closures, each of which may fail: panicking with this one type, recovered in
// one place, keeps them readable and the common path free of checks.
type failure struct{ err error }

// rescue is deferred by Parse and Render and turns a failure into their error.
func rescue(err *error) {
	switch x := recover().(type) {
	case nil:
	case failure:
		*err = x.err
	default:
		stack := make([]byte, 8<<10)
		*err = &InternalError{Cause: x, Stack: string(stack[:runtime.Stack(stack, false)])}
	}
}

// fail ends the rendering with an error of Python's kind. It returns a value
// only so that callers can write "return fail(...)".
func fail(kind, format string, args ...any) value {
	panic(failure{&InputError{Kind: kind, Message: fmt.Sprintf(format, args...)}})
}

func typeError(format string, args ...any) value { return fail("TypeError", format, args...) }

func overLimit(limit string, most int) {
	panic(failure{&LimitError{Limit: limit, Max: most}})
}
