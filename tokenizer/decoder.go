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
		replace, err := newReplacer(&normalizerSpec{Pattern: spec.Pattern, Content: spec.Content})
		c.perToken = append(c.perToken, func(token string, _ bool) string { return replace(token) })
		return err
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

// pieceOf works out what the token spelled so becomes.
func (d *decoding) pieceOf(spelling string) piece {
	switch d.kind {
	case byBytes:
		text, _ := appendSpelled(nil, []byte(spelling))
		return piece{text: text, whole: utf8.Valid(text)}
	case bySpaces:
		return piece{text: append([]byte(nil), spelling...), whole: true}
	}
	text := d.perTokenText(spelling, false)
	if b, ok := byteToken(text); d.fallback && ok {
		return piece{text: []byte{b}, isByte: true}
	}
	return piece{text: []byte(text), whole: true}
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

// A Decoder turns ids into text as they come. It belongs to one goroutine.
//
// It holds back what the next id may still change: an unfinished character; in
// models with byte fallback a run of byte tokens, as the run is text only if
// all of it is valid. Everything else comes out at once.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	started     bool   // an id has given text
	held        []byte // undecided bytes
	stripLeft   int    // how many characters may still be taken off the start
}

// NewDecoder returns a decoder for one sequence of ids.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial, stripLeft: t.decoding.stripMost}
}

// Append appends to dst the text that id decides, which may be none, and more
// than the token's own: what was held back before it. Unknown ids give none.
func (d *Decoder) Append(dst []byte, id int32) []byte {
	if id < 0 || int(id) >= len(d.t.pieces) {
		return dst
	}
	p := &d.t.pieces[id]
	if p.text == nil || p.special && d.skipSpecial {
		return dst
	}
	first := !d.started
	d.started = true
	switch d.t.decoding.kind {
	case byBytes:
		return d.appendBytes(dst, p)
	case bySpaces:
		if !first {
			dst = append(dst, ' ')
		}
		return append(dst, p.text...)
	}
	if p.isByte {
		d.held = append(d.held, p.text...)
		return dst
	}
	start := len(dst)
	dst = d.appendRun(dst)
	if first && d.t.firstPieces != nil {
		dst = append(dst, d.t.firstPieces[id]...)
	} else {
		dst = append(dst, p.text...)
	}
	return d.cutStart(dst, start)
}

// Flush appends what is still held back at the end of the sequence and makes
// the decoder ready for another one.
func (d *Decoder) Flush(dst []byte) []byte {
	if d.t.decoding.kind == byBytes {
		dst, _ = appendDecided(dst, d.held, true)
		d.held = d.held[:0]
	} else {
		start := len(dst)
		dst = d.cutStart(d.appendRun(dst), start)
	}
	d.started, d.stripLeft = false, d.t.decoding.stripMost
	return dst
}

// appendBytes appends what is decided of the held bytes and p's.
func (d *Decoder) appendBytes(dst []byte, p *piece) []byte {
	if len(d.held) == 0 {
		if p.whole {
			return append(dst, p.text...)
		}
		dst, rest := appendDecided(dst, p.text, false)
		d.held = append(d.held, rest...)
		return dst
	}
	d.held = append(d.held, p.text...)
	dst, rest := appendDecided(dst, d.held, false)
	d.held = append(d.held[:0], rest...)
	return dst
}

// appendRun ends a run of byte tokens: text if all of it is valid, else one U+FFFD a byte.
func (d *Decoder) appendRun(dst []byte) []byte {
	if utf8.Valid(d.held) {
		dst = append(dst, d.held...)
	} else {
		for range d.held {
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	d.held = d.held[:0]
	return dst
}

// cutStart takes the stripped character off the start of the text, of which
// dst[start:] is the newest part.
func (d *Decoder) cutStart(dst []byte, start int) []byte {
	for d.stripLeft > 0 && len(dst) > start {
		r, size := utf8.DecodeRune(dst[start:])
		if r != d.t.decoding.strip {
			d.stripLeft = 0
			break
		}
		dst = append(dst[:start], dst[start+size:]...)
		d.stripLeft--
	}
	return dst
}

// Decode returns the text of ids. With skipSpecial special tokens give no text.
// Ids outside the vocabulary give none either. Bytes that are not UTF-8 become
// U+FFFD, one for each maximal invalid part, so the result is always valid.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	d := Decoder{t: t, skipSpecial: skipSpecial, stripLeft: t.decoding.stripMost}
	text := make([]byte, 0, 4*len(ids)+8)
	for _, id := range ids {
		text = d.Append(text, id)
	}
	return string(d.Flush(text))
}

// appendDecided appends b as valid UTF-8, with U+FFFD for each maximal part that
// is not. Unless b is at its end, an unfinished character there is returned as rest.
func appendDecided(dst, b []byte, atEnd bool) (out, rest []byte) {
	for i := 0; i < len(b); {
		size, need := characterAt(b[i:])
		switch {
		case size == need:
			dst = append(dst, b[i:i+size]...)
		case i+size == len(b) && need > 0 && !atEnd:
			return dst, b[i:]
		default:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
		i += size
	}
	return dst, nil
}

// characterAt returns how many bytes at the start of b, at least one, form the
// beginning of one character, and how many that character has: 0 if no
// character begins so. The ranges are those of the Unicode standard's table 3-7.
func characterAt(b []byte) (size, need int) {
	low, high := byte(0x80), byte(0xBF)
	switch c := b[0]; {
	case c < 0x80:
		return 1, 1
	case c < 0xC2 || c > 0xF4:
		return 1, 0
	case c < 0xE0:
		need = 2
	case c < 0xF0:
		need = 3
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	default:
		need = 4
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	size = 1
	for size < need && size < len(b) && b[size] >= low && b[size] <= high {
		low, high = 0x80, 0xBF
		size++
	}
	return size, need
}

// toValidUTF8 returns text with U+FFFD for each maximal part that is not UTF-8.
func toValidUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	out, _ := appendDecided(nil, []byte(text), true)
	return string(out)
}
