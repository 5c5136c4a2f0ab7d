package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrHelp says that the command line asks for help.
var ErrHelp = errors.New("help")

// A UsageError is one sentence about a command line, a variable or a key of the
// configuration file.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

func usage(format string, args ...any) error {
	return &UsageError{message: fmt.Sprintf(format, args...)}
}

// A setting is one declaration: how a field is named, explained and written.
type setting struct {
	title string // of a section; such an element declares nothing else

	name    string // the flag without its dashes, and the file's key
	operand string // what stands for the value in help texts; "" for a boolean
	meaning string // one sentence without a full stop
	allowed string // completes "must be …"

	set     func(text string) error // called once per element of a list
	get     func() []string         // the value in force, as it would be written
	initial []string                // the default, as it would be written

	isList   bool
	isBool   bool
	isChoice bool // allowed lists all values
	unset    bool // the default is that there is no value
	noFile   bool // not a key of the file
	noEnv    bool // not a variable
	others   []otherName

	source source // where the value in force came from
}

// otherName is a variable of the reference frontend that means the same in
// another unit.
type otherName struct {
	name string
	unit unit
}

// or declares another variable, which counts where the derived one is not set.
func (s *setting) or(name string, u unit) *setting {
	s.others = append(s.others, otherName{name, u})
	return s
}

// env is the name of the setting's variable.
func (s *setting) env() string {
	return "DYN_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// apply puts values in force. Its error names their source.
func (s *setting) apply(src source, values []string) error {
	s.source = src
	for _, v := range values {
		err := s.set(v)
		switch {
		case err == nil:
		case err == errNotAllowed:
			return usage("%s must be %s, not %q", src.of(s), s.allowed, v)
		default:
			return usage("%s: %v", src.of(s), err)
		}
	}
	return nil
}

func section(title string) *setting { return &setting{title: title} }

// commandOnly keeps a setting out of the file and the environment: it makes no
// sense there.
func commandOnly(s *setting) *setting {
	s.noFile, s.noEnv = true, true
	return s
}

func (s *setting) alsoEnv() *setting {
	s.noEnv = false
	return s
}

// optional marks a setting whose zero value means that it is not set.
func optional(s *setting) *setting {
	s.unset, s.initial = true, nil
	get := s.get
	s.get = func() []string {
		if v := get(); v[0] != "0" {
			return v
		}
		return nil
	}
	return s
}

// source is where a value came from.
type source struct {
	kind sourceKind
	name string // of the variable or the file
}

type sourceKind uint8

const (
	fromDefault sourceKind = iota
	fromFile
	fromEnv
	fromFlag
)

// String is the source as --dump-config shows it.
func (src source) String() string {
	switch src.kind {
	case fromFile:
		return "file " + src.name
	case fromEnv:
		return "environment " + src.name
	case fromFlag:
		return "flag"
	}
	return "default"
}

// of names s as the person wrote it who used this source.
func (src source) of(s *setting) string {
	switch src.kind {
	case fromFile:
		return fmt.Sprintf("%s: %s", src.name, s.name)
	case fromEnv:
		return src.name
	}
	return "--" + s.name
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
