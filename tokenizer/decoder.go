package tokenizer

import "unicode/utf8"

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
