package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A decoding is how the tokens of one model become text. Every decoder in a
// file comes down to one of three ways.
type decoding struct {
	kind decodingKind

	// The pieces kind: what each token becomes by itself, then what the joined
	// text loses at its start.
	perToken     []func(token string, first bool) string
	fallback     bool // tokens <0xNN> are bytes
	strip        rune // taken off the start of the text ...
	stripMost    int  // ... so often at most
	firstIsOther bool // the first token becomes something else than the others
}

type decodingKind uint8

const (
	byBytes  decodingKind = iota // byte level: tokens are bytes, the whole is text
	byPieces                     // tokens are text, but for the byte tokens
	bySpaces                     // no decoder: tokens with a blank between them
)

type decoderSpec struct {
	Type           string            `json:"type"`
	Decoders       []json.RawMessage `json:"decoders"`
	Pattern        patternSpec       `json:"pattern"`
	Content        string            `json:"content"`
	Start          int               `json:"start"`
	Stop           int               `json:"stop"`
	Replacement    string            `json:"replacement"`
	PrependScheme  string            `json:"prepend_scheme"`
	AddPrefixSpace *bool             `json:"add_prefix_space"`
}

// A decoderChain reads the decoder of a file: components in order, which must
// be (per token)* ByteFallback? Fuse? Strip?, or ByteLevel alone.
type decoderChain struct {
	decoding
	components int
	growth     replacementGrowth
	fused      bool // what comes now sees the joined text
}

func newDecoding(raw json.RawMessage) (decoding, error) {
	if isNull(raw) {
		return decoding{kind: bySpaces}, nil
	}
	c := decoderChain{decoding: decoding{kind: byPieces}}
	err := c.add(raw, 0)
	if err == nil && c.kind == byBytes && c.components > 1 {
		err = fmt.Errorf("decoder ByteLevel beside others is %w", ErrUnsupported)
	}
	return c.decoding, err
}

func (c *decoderChain) add(raw json.RawMessage, depth int) error {
	var spec decoderSpec
	if err := unmarshal(raw, &spec, "decoder"); err != nil {
		return err
	}
	if c.components++; depth > maxDepth || c.components > MaxComponents {
		return fmt.Errorf("decoder: more than %d parts, or nested deeper than %d", MaxComponents, maxDepth)
	}
	misplaced := func() error {
		return fmt.Errorf("decoder %s at this place of the sequence is %w", spec.Type, ErrUnsupported)
	}
	switch spec.Type {
	case "Sequence":
		c.components--
		for _, sub := range spec.Decoders {
			if err := c.add(sub, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		c.kind = byBytes
		return nil
	case "Fuse":
		c.fused = true
		return nil
	case "ByteFallback":
		if c.fused || c.fallback {
			return misplaced()
		}
		c.fallback = true
		return nil
	case "Strip":
		return c.addStrip(&spec, misplaced)
	case "Replace":
		if c.fused || c.fallback {
			return misplaced()
		}
		replace, err := newReplacer(spec.Pattern, spec.Content, &c.growth)
		if err != nil {
			return fmt.Errorf("decoder Replace: %w", err)
		}
		c.perToken = append(c.perToken, func(token string, _ bool) string { return replace(token) })
		return nil
	case "Metaspace":
		if c.fused || c.fallback {
			return misplaced()
		}
		return c.addMetaspace(&spec)
	}
	return unsupported("decoder", spec.Type)
}

func (c *decoderChain) addStrip(spec *decoderSpec, misplaced func() error) error {
	content, size := utf8.DecodeRuneInString(spec.Content)
	if size == 0 || size != len(spec.Content) || spec.Start < 0 || spec.Stop < 0 {
		return fmt.Errorf("decoder Strip: content %q, start %d and stop %d make no sense", spec.Content, spec.Start, spec.Stop)
	}
	if c.fused {
		if spec.Stop > 0 || c.stripMost > 0 {
			return misplaced()
		}
		c.strip, c.stripMost = content, spec.Start
		return nil
	}
	if c.fallback {
		return misplaced()
	}
	c.perToken = append(c.perToken, func(token string, _ bool) string {
		for range spec.Start {
			rest, ok := strings.CutPrefix(token, spec.Content)
			if !ok {
				break
			}
			token = rest
		}
		for range spec.Stop {
			rest, ok := strings.CutSuffix(token, spec.Content)
			if !ok {
				break
			}
			token = rest
		}
		return token
	})
	return nil
}

func (c *decoderChain) addMetaspace(spec *decoderSpec) error {
	blank := spec.Replacement
	if utf8.RuneCountInString(blank) != 1 {
		return fmt.Errorf("decoder Metaspace: replacement %q is not one character", clip([]byte(blank)))
	}
	scheme, err := (&preTokenizerSpec{PrependScheme: spec.PrependScheme, AddPrefixSpace: spec.AddPrefixSpace}).scheme()
	if err != nil {
		return fmt.Errorf("decoder Metaspace: %w", err)
	}
	c.firstIsOther = c.firstIsOther || scheme != "never"
	c.perToken = append(c.perToken, func(token string, first bool) string {
		if first && scheme != "never" {
			return strings.ReplaceAll(token, blank, "")
		}
		return strings.ReplaceAll(token, blank, " ")
	})
	return nil
}

// A piece is what one token becomes.
type piece struct {
	text    []byte // nil for an id that no token has
	isByte  bool   // a byte token: text is the one byte
	whole   bool   // text is valid UTF-8 by itself
	special bool
}

// pieceOf works out what the token spelled so becomes: a piece, still without its text,
// and that.
func (d *decoding) pieceOf(spelling string) (p piece, text string) {
	switch d.kind {
	case byBytes:
		text, _ := appendSpelled(nil, []byte(spelling))
		return piece{whole: utf8.Valid(text)}, string(text)
	case bySpaces:
		return piece{whole: true}, toValidUTF8(spelling)
	}
	text = d.perTokenText(spelling, false)
	if b, ok := byteToken(text); d.fallback && ok {
		return piece{isByte: true}, string([]byte{b})
	}
	return piece{whole: true}, toValidUTF8(text)
}

func (d *decoding) perTokenText(token string, first bool) string {
	for _, f := range d.perToken {
		token = f(token, first)
	}
	return token
}

// byteToken reads a token <0xNN>.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	// The reference's number parser takes a sign, too.
	n, err := strconv.ParseUint(strings.TrimPrefix(token[3:5], "+"), 16, 8)
	return byte(n), err == nil
}
