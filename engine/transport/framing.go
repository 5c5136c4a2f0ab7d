package transport

import (
	"errors"
	"fmt"
)

// The forms of a body.
const (
	counted = iota
	chunked
	untilClosed
)

// Where a chunked body is.
const (
	inSize         = iota // of a chunk, in hexadecimal digits
	inExtension           // behind it
	afterSize             // its CR was there
	inData                //
	afterData             // the CR is due
	afterDataCR           // the LF is due
	atTrailer             // at the beginning of a line of the trailer
	inTrailer             // in the name of one
	inTrailerValue        // behind it
	afterTrailer          // its CR was there
	afterTrailers         // the last LF is due
)

const (
	maxChunkLineBytes = 4 << 10  // of the size and its extensions, and of the trailer
	maxExcessBytes    = 16 << 10 // of framing beyond what chunks of a sensible size take
)

var errChunk = errors.New("malformed chunked encoding")

// A framing knows where in a body we are. It takes the marks of chunks out of what
// was read where it lies, so that a body needs no buffer of its own.
type framing struct {
	form  uint8
	state uint8
	line  uint16 // bytes of the current line of framing, or of the whole trailer
	left  uint64 // of the body or chunk
	// excess counts bytes of framing, less what is fair for the data. A worker
	// that sends chunks of one byte with long extensions would make us read for ever.
	excess int
}

// complete reports whether a body of a known length is.
func (f *framing) complete() bool { return f.form == counted && f.left == 0 }

// decode takes the framing out of b, which is the next piece of the body. It
// returns how many bytes of the body b then begins with, how many of b lie beyond
// the body's end, and whether that was reached.
func (f *framing) decode(b []byte) (n, beyond int, done bool, err error) {
	switch f.form {
	case untilClosed:
		return len(b), 0, false, nil
	case counted:
		n = int(min(uint64(len(b)), f.left))
		f.left -= uint64(n)
		return n, len(b) - n, f.left == 0, nil
	}
	for i := 0; i < len(b); {
		if f.state == inData {
			size := int(min(uint64(len(b)-i), f.left))
			if n != i {
				copy(b[n:], b[i:i+size])
			}
			n, i, f.left = n+size, i+size, f.left-uint64(size)
			if f.left == 0 {
				f.state = afterData
			}
			continue
		}
		if done, err = f.mark(b[i]); err != nil {
			return n, 0, false, err
		}
		if i++; done {
			return n, len(b) - i, true, nil
		}
	}
	return n, 0, false, nil
}

// mark takes one byte that is not data.
func (f *framing) mark(c byte) (done bool, err error) {
	if f.line++; f.line > maxChunkLineBytes {
		return false, fmt.Errorf("%w: a line of more than %d bytes", errChunk, maxChunkLineBytes)
	}
	switch f.state {
	case inSize:
		digit, ok := hexDigit(c)
		switch {
		case ok && f.left>>60 == 0:
			f.left = f.left<<4 | digit
		case c == '\r' && f.line > 1:
			f.state = afterSize
		case (c == ';' || c == ' ' || c == '\t') && f.line > 1:
			f.state = inExtension
		default:
			return false, fmt.Errorf("%w: invalid size", errChunk)
		}
	case inExtension:
		switch c {
		case '\r':
			f.state = afterSize
		case '\n':
			return false, errChunk
		}
	case afterSize:
		if c != '\n' {
			return false, errChunk
		}
		return false, f.begin()
	case afterData:
		if c != '\r' {
			return false, errChunk
		}
		f.state = afterDataCR
	case afterDataCR:
		if c != '\n' {
			return false, errChunk
		}
		f.state, f.line = inSize, 0
	case atTrailer, inTrailer:
		switch first := f.state == atTrailer; {
		case inToken(c):
			f.state = inTrailer
		case c == ':' && !first:
			f.state = inTrailerValue
		case c == '\r' && first:
			f.state = afterTrailers
		default:
			return false, fmt.Errorf("%w: invalid trailer", errChunk)
		}
	case inTrailerValue:
		switch c {
		case '\r':
			f.state = afterTrailer
		case '\n':
			return false, fmt.Errorf("%w: invalid trailer", errChunk)
		}
	case afterTrailer:
		if c != '\n' {
			return false, fmt.Errorf("%w: invalid trailer", errChunk)
		}
		f.state = atTrailer
	case afterTrailers:
		if c != '\n' {
			return false, errChunk
		}
		return true, nil
	}
	return false, nil
}

// begin is at the end of a line with a size.
func (f *framing) begin() error {
	const fair = 16 // bytes of framing for a chunk, and as many as it has data
	f.excess = max(f.excess+int(f.line)+2-fair-int(min(f.left, maxExcessBytes)), 0)
	if f.excess > maxExcessBytes {
		return fmt.Errorf("%w: too much framing for the data", errChunk)
	}
	if f.state, f.line = inData, 0; f.left == 0 {
		f.state = atTrailer
	}
	return nil
}

func hexDigit(c byte) (uint64, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint64(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}
