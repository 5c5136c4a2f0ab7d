package tokenizer

import (
	"encoding/json"
	"errors"
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

// A normalizerChain collects the normalizers of a file.
type normalizerChain struct {
	all    []normalizer
	growth replacementGrowth
}

// add appends the functions of one component, and of those inside it.
func (c *normalizerChain) add(raw json.RawMessage, depth int) error {
	if isNull(raw) {
		return nil
	}
	var spec normalizerSpec
	if err := unmarshal(raw, &spec, "normalizer"); err != nil {
		return err
	}
	if depth > maxDepth || len(c.all) >= MaxComponents {
		return fmt.Errorf("normalizer: more than %d parts, or nested deeper than %d", MaxComponents, maxDepth)
	}
	if len(spec.Prepend) > maxReplacementBytes || len(spec.Content) > maxReplacementBytes {
		return fmt.Errorf("normalizer %s: a text above the limit of %d bytes", spec.Type, maxReplacementBytes)
	}
	switch spec.Type {
	case "Sequence":
		for _, sub := range spec.Normalizers {
			if err := c.add(sub, depth+1); err != nil {
				return err
			}
		}
	case "NFC", "NFD", "NFKC", "NFKD":
		c.all = append(c.all, unicodeForms[spec.Type].normalize)
	case "Lowercase":
		c.all = append(c.all, lowercase)
	case "Prepend":
		c.all = append(c.all, func(text string) string {
			if text == "" {
				return text
			}
			return spec.Prepend + text
		})
	case "Strip":
		c.all = append(c.all, func(text string) string {
			if orTrue(spec.StripLeft) {
				text = strings.TrimLeftFunc(text, isSpace)
			}
			if orTrue(spec.StripRight) {
				text = strings.TrimRightFunc(text, isSpace)
			}
			return text
		})
	case "Replace":
		f, err := newReplacer(spec.Pattern, spec.Content, &c.growth)
		if err != nil {
			return fmt.Errorf("normalizer Replace: %w", err)
		}
		c.all = append(c.all, f)
	default:
		return unsupported("normalizer", spec.Type)
	}
	return nil
}

// replacementGrowth is how many times longer the replacements so far can make
// a text, less one.
type replacementGrowth int

// add takes one more into account, which puts in content for at least size bytes.
func (g *replacementGrowth) add(content string, size int) error {
	factor := 1
	if size == 0 {
		factor += len(content) // between all bytes
	} else if len(content) > size {
		factor = (len(content) + size - 1) / size
	}
	total := (int(*g) + 1) * factor
	if total > maxGrowth {
		return fmt.Errorf("replacements that can make a text more than %d times longer", maxGrowth)
	}
	*g = replacementGrowth(total - 1)
	return nil
}

func newReplacer(from patternSpec, content string, growth *replacementGrowth) (normalizer, error) {
	if len(content) > maxReplacementBytes {
		return nil, fmt.Errorf("a text above the limit of %d bytes", maxReplacementBytes)
	}
	switch {
	case from.String != nil:
		old := *from.String
		if old == "" {
			return func(text string) string { return text }, nil
		}
		return func(text string) string { return strings.ReplaceAll(text, old, content) }, growth.add(content, len(old))
	case from.Regex != nil:
		p, err := pattern.Compile(*from.Regex)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return func(text string) string { return replaceMatches(p, text, content) }, growth.add(content, 0)
	}
	return nil, errors.New("no pattern")
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
