package chattemplate

import "fmt"

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
	Limit string // the thing that is limited, such as "output bytes"
	Max   int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("chat template: over the limit of %d %s", e.Max, e.Limit)
}
