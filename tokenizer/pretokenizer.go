package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"baton/tokenizer/pattern"
	"baton/tokenizer/ucd"
)

// A step of the pre-tokenizer either rewrites a piece of text or splits it.
// The pieces that come out of the last step are the words that the model sees.
type step struct {
	// rewrite returns another text in place of piece; first says that the piece
	// begins the input. It must not change piece.
	rewrite func(piece []byte, first bool) []byte

	// A split step finds separators and treats them as behavior says.
	find     finder
	behavior behavior
	invert   bool // what lies between the matches is the separator
}

// A behavior says what becomes of a separator.
type behavior uint8

const (
	isolated           behavior = iota // a piece of its own
	removed                            // dropped
	contiguous                         // one piece with the separators beside it
	mergedWithPrevious                 // the end of the piece before it
	mergedWithNext                     // the beginning of the piece after it
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

// A finder finds the separators of a split step; exactly one field is set.
type finder struct {
	pattern *pattern.Pattern
	literal []byte
	char    *ucd.Table // each character of the table is a match
	words   bool       // runs of word characters, and runs of what is neither word nor white space
}

// gpt2Expression is the split that the ByteLevel pre-tokenizer makes by itself.
const gpt2Expression = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// A preTokenizer is the list of steps of one tokenizer.
type preTokenizer struct {
	steps     []step
	byteLevel bool // the model sees bytes
	respelled bool // the last steps saw, and give out, letters that spell bytes
}

type preTokenizerSpec struct {
	Type             string            `json:"type"`
	Pretokenizers    []json.RawMessage `json:"pretokenizers"`
	Pattern          patternSpec       `json:"pattern"`
	Behavior         string            `json:"behavior"`
	Invert           bool              `json:"invert"`
	AddPrefixSpace   *bool             `json:"add_prefix_space"`
	UseRegex         *bool             `json:"use_regex"`
	IndividualDigits bool              `json:"individual_digits"`
	Replacement      string            `json:"replacement"`
	PrependScheme    string            `json:"prepend_scheme"`
	Split            *bool             `json:"split"`
	Delimiter        string            `json:"delimiter"`
}

type patternSpec struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func orTrue(b *bool) bool { return b == nil || *b }

// add appends the steps of one component, and of those inside it.
func (p *preTokenizer) add(raw json.RawMessage, depth int) error {
	if isNull(raw) {
		return nil
	}
	var spec preTokenizerSpec
	if err := unmarshal(raw, &spec, "pre_tokenizer"); err != nil {
		return err
	}
	if depth > maxDepth || len(p.steps) >= MaxComponents {
		return fmt.Errorf("pre_tokenizer: more than %d parts, or nested deeper than %d", MaxComponents, maxDepth)
	}
	if p.byteLevel && !p.respelled && spec.Type != "Sequence" {
		// What follows a ByteLevel step sees its letters, not the text's bytes.
		p.respelled = true
		p.steps = append(p.steps, step{rewrite: func(piece []byte, _ bool) []byte { return []byte(spell(piece)) }})
	}
	switch spec.Type {
	case "Sequence":
		for _, sub := range spec.Pretokenizers {
			if err := p.add(sub, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		return p.addByteLevel(&spec)
	case "Split":
		return p.addSplit(&spec)
	case "Metaspace":
		return p.addMetaspace(&spec)
	case "Digits":
		s := step{find: charFinder(ucd.MustNamed(ucd.Numeric)), behavior: contiguous}
		if spec.IndividualDigits {
			s.behavior = isolated
		}
		p.steps = append(p.steps, s)
		return nil
	case "Punctuation":
		b, err := parseBehavior(spec.Behavior, "Isolated")
		p.steps = append(p.steps, step{find: charFinder(ucd.MustNamed(ucd.Punctuation)), behavior: b})
		return err
	case "Whitespace":
		p.steps = append(p.steps, step{find: finder{words: true}, behavior: removed, invert: true})
		return nil
	case "WhitespaceSplit":
		p.steps = append(p.steps, step{find: charFinder(ucd.MustNamed(ucd.Whitespace)), behavior: removed})
		return nil
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(spec.Delimiter) != 1 {
			return fmt.Errorf("pre_tokenizer CharDelimiterSplit: delimiter %q is not one character", clip([]byte(spec.Delimiter)))
		}
		p.steps = append(p.steps, step{find: finder{literal: []byte(spec.Delimiter)}, behavior: removed})
		return nil
	}
	return unsupported("pre_tokenizer", spec.Type)
}

func charFinder(s ucd.Set) finder { return finder{char: s.Table()} }

func parseBehavior(name, absent string) (behavior, error) {
	if name == "" {
		name = absent
	}
	b, ok := behaviors[name]
	if !ok {
		return 0, fmt.Errorf("pre_tokenizer: unknown behavior %q", clip([]byte(name)))
	}
	return b, nil
}

func (p *preTokenizer) addSplit(spec *preTokenizerSpec) error {
	b, err := parseBehavior(spec.Behavior, "")
	if err != nil {
		return err
	}
	s := step{behavior: b, invert: spec.Invert}
	switch {
	case spec.Pattern.String != nil && *spec.Pattern.String != "":
		s.find.literal = []byte(*spec.Pattern.String)
	case spec.Pattern.String != nil: // nothing stands between all characters
		if s.find.pattern, err = pattern.Compile(""); err != nil {
			return err
		}
	case spec.Pattern.Regex != nil:
		if s.find.pattern, err = pattern.Compile(*spec.Pattern.Regex); err != nil {
			return fmt.Errorf("pre_tokenizer Split: %w: %w", ErrUnsupported, err)
		}
	default:
		return fmt.Errorf("pre_tokenizer Split: no pattern")
	}
	p.steps = append(p.steps, s)
	return nil
}

func (p *preTokenizer) addByteLevel(spec *preTokenizerSpec) error {
	if p.byteLevel {
		return fmt.Errorf("pre_tokenizer: a second ByteLevel is %w", ErrUnsupported)
	}
	p.byteLevel = true
	if orTrue(spec.AddPrefixSpace) {
		p.steps = append(p.steps, step{rewrite: func(piece []byte, _ bool) []byte {
			if piece[0] == ' ' {
				return piece
			}
			return append([]byte{' '}, piece...)
		}})
	}
	if orTrue(spec.UseRegex) {
		gpt2, err := pattern.Compile(gpt2Expression)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, step{find: finder{pattern: gpt2}})
	}
	return nil
}

func (p *preTokenizer) addMetaspace(spec *preTokenizerSpec) error {
	if utf8.RuneCountInString(spec.Replacement) != 1 {
		return fmt.Errorf("pre_tokenizer Metaspace: replacement %q is not one character", clip([]byte(spec.Replacement)))
	}
	scheme, err := spec.scheme()
	if err != nil {
		return fmt.Errorf("pre_tokenizer Metaspace: %w", err)
	}
	blank := []byte(spec.Replacement)
	p.steps = append(p.steps, step{rewrite: func(piece []byte, first bool) []byte {
		piece = bytes.ReplaceAll(piece, []byte{' '}, blank)
		if (scheme == "always" || scheme == "first" && first) && !bytes.HasPrefix(piece, blank) {
			piece = append(bytes.Clone(blank), piece...)
		}
		return piece
	}})
	if orTrue(spec.Split) {
		p.steps = append(p.steps, step{find: finder{literal: blank}, behavior: mergedWithNext})
	}
	return nil
}

// scheme reads prepend_scheme, or the older flag in its place.
func (spec *preTokenizerSpec) scheme() (string, error) {
	switch spec.PrependScheme {
	case "":
		if orTrue(spec.AddPrefixSpace) {
			return "always", nil
		}
		return "never", nil
	case "always", "first", "never":
		if !orTrue(spec.AddPrefixSpace) && spec.PrependScheme != "never" {
			return "", errors.New("add_prefix_space does not match prepend_scheme")
		}
		return spec.PrependScheme, nil
	}
	return "", fmt.Errorf("unknown prepend_scheme %q", clip([]byte(spec.PrependScheme)))
}
