package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"baton/tokenizer/pattern"
	"baton/tokenizer/ucd"
)

// A normalizer changes a text before it is cut into words.
type normalizer func(text string) string

type normalizerSpec struct {
	Type        string            `json:"type"`
	Normalizers []json.RawMessage `json:"normalizers"`
	Prepend     string            `json:"prepend"`
	Pattern     patternSpec       `json:"pattern"`
	Content     string            `json:"content"`
	StripLeft   *bool             `json:"strip_left"`
	StripRight  *bool             `json:"strip_right"`
}

// appendNormalizers appends the functions of one component, and of those inside it.
func appendNormalizers(dst []normalizer, raw json.RawMessage, depth int) ([]normalizer, error) {
	if isNull(raw) {
		return dst, nil
	}
	var spec normalizerSpec
	if err := unmarshal(raw, &spec, "normalizer"); err != nil {
		return nil, err
	}
	if depth > maxDepth || len(dst) >= MaxComponents {
		return nil, fmt.Errorf("normalizer: more than %d parts, or nested deeper than %d", MaxComponents, maxDepth)
	}
	if len(spec.Prepend) > maxReplacementBytes || len(spec.Content) > maxReplacementBytes {
		return nil, fmt.Errorf("normalizer %s: a text above the limit of %d bytes", spec.Type, maxReplacementBytes)
	}
	switch spec.Type {
	case "Sequence":
		for _, sub := range spec.Normalizers {
			var err error
			if dst, err = appendNormalizers(dst, sub, depth+1); err != nil {
				return nil, err
			}
		}
		return dst, nil
	case "NFC", "NFD", "NFKC", "NFKD":
		return append(dst, unicodeForms[spec.Type].normalize), nil
	case "Lowercase":
		return append(dst, lowercase), nil
	case "Prepend":
		return append(dst, func(text string) string {
			if text == "" {
				return text
			}
			return spec.Prepend + text
		}), nil
	case "Strip":
		return append(dst, func(text string) string {
			if orTrue(spec.StripLeft) {
				text = strings.TrimLeftFunc(text, isSpace)
			}
			if orTrue(spec.StripRight) {
				text = strings.TrimRightFunc(text, isSpace)
			}
			return text
		}), nil
	case "Replace":
		f, err := newReplacer(&spec)
		return append(dst, f), err
	}
	return nil, unsupported("normalizer", spec.Type)
}

func newReplacer(spec *normalizerSpec) (normalizer, error) {
	switch {
	case spec.Pattern.String != nil:
		from := *spec.Pattern.String
		if from == "" {
			return func(text string) string { return text }, nil
		}
		return func(text string) string { return strings.ReplaceAll(text, from, spec.Content) }, nil
	case spec.Pattern.Regex != nil:
		p, err := pattern.Compile(*spec.Pattern.Regex)
		if err != nil {
			return nil, fmt.Errorf("normalizer Replace: %w: %w", ErrUnsupported, err)
		}
		return func(text string) string { return replaceMatches(p, text, spec.Content) }, nil
	}
	return nil, fmt.Errorf("normalizer Replace: no pattern")
}

func replaceMatches(p *pattern.Pattern, text, content string) string {
	var m pattern.Matcher
	in := []byte(text)
	var out []byte
	prev := 0
	m.Reset(p, in)
	for {
		start, end, ok := m.Next()
		if !ok {
			break
		}
		out = append(out, in[prev:start]...)
		out = append(out, content...)
		prev = end
	}
	if out == nil {
		return text
	}
	return string(append(out, in[prev:]...))
}

// lowercase lowers character by character: a final sigma is not another one here.
func lowercase(text string) string {
	out := make([]byte, 0, len(text))
	var low [2]rune
	for _, r := range text {
		for _, c := range ucd.ToLower(low[:0], r) {
			out = utf8.AppendRune(out, c)
		}
	}
	return string(out)
}
