package config

import (
	"fmt"
	"io"
	"strings"
)

// ServeHelp writes the flags of `baton serve` for a terminal.
func ServeHelp(w io.Writer) error { return writeHelp(w, newServe().settings) }

// DemoHelp writes the flags of `baton demo` for a terminal.
func DemoHelp(w io.Writer) error { return writeHelp(w, newDemo().settings) }

// AdminHelp writes the flags of a command that talks to a running baton.
func AdminHelp(w io.Writer, command string) error { return writeHelp(w, newAdmin(command).settings) }

// ProbeHelp writes the flags of `baton probe` for a terminal.
func ProbeHelp(w io.Writer) error { return writeHelp(w, newProbe().settings) }

func writeHelp(w io.Writer, settings []*setting) error {
	var b strings.Builder
	for _, s := range settings {
		if s.title != "" {
			fmt.Fprintf(&b, "\n%s\n", s.title)
			continue
		}
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace("--"+s.name+" "+s.operand))
		note := s.meaning
		if s.isChoice {
			note += ": " + s.allowed
		}
		switch {
		case s.isList:
			note += " (repeatable)"
		case len(s.initial) > 0 && !s.isBool:
			note += " (default " + orOff(s) + ")"
		}
		for _, l := range wrap(note, 74) {
			fmt.Fprintf(&b, "      %s\n", l)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// orOff is the default of a setting, as a person says it.
func orOff(s *setting) string {
	if s.initial[0] == "0" && s.operand == "DURATION" {
		return "0, off"
	}
	return s.initial[0]
}

// wrap breaks a text at spaces into lines of at most width letters.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		if current != "" && len(current)+1+len(word) > width {
			lines = append(lines, current)
			current = ""
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(lines, current)
}
