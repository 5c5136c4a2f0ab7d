package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxEventBytes bounds one line and the joined data of one event. It is that
// large because the first event of vLLM repeats the whole prompt as ids and the
// last one of llama.cpp repeats it as text.
const MaxEventBytes = 64 << 20

// ErrTooLong is the error of a line or an event beyond MaxEventBytes.
var ErrTooLong = errors.New("sse: event too long")

const (
	homeBytes  = 1 << 10  // of a Reader's own buffer: more than a usual event
	lentBytes  = 16 << 10 // of a buffer that is lent to one that fell behind
	keepBytes  = 64 << 10 // buffers grown beyond this are given back after their event
	emptyReads = 100      // reads of nothing in a row before io.ErrNoProgress
)

// buffers are lent to Readers that have more to read than their own holds, until
// they have read it all: of many open streams few have, and most wait.
var buffers = sync.Pool{New: func() any { return new([lentBytes]byte) }}

// An Event is one dispatched server-sent event.
type Event struct {
	// Name is the value of the event's "event:" line, usually empty. It is
	// "error" for the bare "error: {…}" lines of old llama.cpp servers.
	Name []byte
	// Data holds the values of the "data:" lines, joined by newlines.
	Data []byte
}

// A Reader takes server-sent events from a byte stream. How the stream was cut
// into reads does not matter. It is not safe for concurrent use.
type Reader struct {
	src   io.Reader
	limit int

	buf     []byte // buf[pos:end] is read and not consumed yet
	pos     int
	end     int
	scanned int  // buf[pos:pos+scanned] is known to hold no newline
	begun   bool // the first line is behind us
	err     error

	home []byte           // our own buffer
	lent *[lentBytes]byte // what buf is, if it was lent

	name []byte
	data []byte
}

// NewReader returns a Reader of src. It reads ahead of the events that it
// returns, at most the size of its buffer.
func NewReader(src io.Reader) *Reader {
	r := new(Reader)
	r.Reset(src, make([]byte, homeBytes))
	return r
}

// Reset makes r a new Reader of src, with buf as its own buffer, which should
// hold an event or two; for more, one is lent to it. A Reader within a larger
// record, with its buffer behind it, costs no memory of its own: with many streams
// open that is what an event costs.
func (r *Reader) Reset(src io.Reader, buf []byte) {
	*r = Reader{src: src, limit: MaxEventBytes, buf: buf, home: buf}
}

// LimitEvent lowers the bound of one line and of the joined data of one event to
// n bytes, for a stream whose events are known to be small.
func (r *Reader) LimitEvent(n int) { r.limit = min(n, MaxEventBytes) }

// Next returns the next event. Its slices are valid until the following call.
//
// The error is io.EOF if the stream ended between two events, and
// io.ErrUnexpectedEOF if it ended inside one: what there was of that event is
// dropped. An error of the underlying reader is returned as it is, after all
// complete events before it. Every error is final.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	r.release()
	hasData := false
	for {
		line, err := r.line()
		if err != nil {
			if err == io.EOF && (hasData || len(r.name) > 0 || r.pos < r.end) {
				err = io.ErrUnexpectedEOF
			}
			r.err = err
			r.use(nil, nil)
			return Event{}, err
		}
		if len(line) == 0 {
			if hasData {
				return Event{Name: r.name, Data: r.data}, nil
			}
			r.name = r.name[:0] // an event without data is none
			continue
		}
		switch field, value := split(line); string(field) {
		case "data":
			if !hasData && r.blankFollows() {
				// The usual event is one line, and need not be copied: what is
				// buffered stays where it is until the next read.
				return Event{Name: r.name, Data: value}, nil
			}
			if len(r.data)+len(value) >= r.limit {
				r.err = fmt.Errorf("%w: more than %d bytes of data", ErrTooLong, r.limit)
				return Event{}, r.err
			}
			if hasData {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, value...)
			hasData = true
		case "event":
			r.name = append(r.name[:0], value...)
		case "error":
			r.name = append(r.name[:0], "error"...)
			r.data = append(r.data[:0], value...)
			hasData = true
		}
	}
}

// blankFollows consumes the line that is buffered next if it is complete and
// blank.
func (r *Reader) blankFollows() bool {
	switch rest := r.buf[r.pos:r.end]; {
	case len(rest) > 0 && rest[0] == '\n':
		r.pos++
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
		r.pos += 2
	default:
		return false
	}
	return true
}

// Buffered reports whether Next would return an event without reading from the
// stream. A writer that asks it before each flush joins the events that arrived
// together and never holds one back. A complete line would be no sufficient
// sign: after it the blank line that ends the event may still be missing.
func (r *Reader) Buffered() bool {
	if r.err != nil {
		return false
	}
	rest, hasData := r.buf[r.pos:r.end], false
	if !r.begun {
		rest = bytes.TrimPrefix(rest, byteOrderMark)
	}
	for {
		line, after, ok := bytes.Cut(rest, newline)
		if !ok {
			return false
		}
		rest = after
		if line = bytes.TrimSuffix(line, carriageReturn); len(line) == 0 {
			if hasData {
				return true
			}
			continue
		}
		switch field, _ := split(line); string(field) {
		case "data", "error":
			hasData = true
		}
	}
}

var (
	newline        = []byte{'\n'}
	carriageReturn = []byte{'\r'}
	byteOrderMark  = []byte("\ufeff")
)

// split cuts a line into the name and the value of its field. A comment has an
// empty name. One space after the colon does not belong to the value.
func split(line []byte) (field, value []byte) {
	field, value, _ = bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return field, value
}

// line returns the next line without its end (LF or CRLF), valid until the next
// call. A last line without an end is none: it stays in the buffer.
func (r *Reader) line() ([]byte, error) {
	for {
		rest := r.buf[r.pos:r.end]
		if i := bytes.IndexByte(rest[r.scanned:], '\n'); i >= 0 {
			i += r.scanned
			if i > r.limit {
				return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLong, r.limit)
			}
			r.pos += i + 1
			r.scanned = 0
			line := bytes.TrimSuffix(rest[:i], carriageReturn)
			if !r.begun {
				r.begun = true
				line = bytes.TrimPrefix(line, byteOrderMark)
			}
			return line, nil
		}
		if len(rest) > r.limit {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLong, r.limit)
		}
		r.scanned = len(rest)
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once more, behind what is buffered.
func (r *Reader) fill() error {
	switch full := r.end == len(r.buf); {
	case full:
		r.makeRoom()
	case r.pos == r.end:
		r.use(r.home, nil) // nothing more had arrived: it is ours that waits
	}
	for range emptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			// An error that came with bytes comes again with the next read,
			// as the contract of io.Reader has it; the bytes go first.
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom is for a buffer that the last read filled, so that there may be more:
// it moves the unread bytes to the front of one that is lent, and doubles that if
// they fill more than half of it.
func (r *Reader) makeRoom() {
	switch unread := r.end - r.pos; {
	case unread*2 < lentBytes && len(r.buf) < lentBytes:
		lent := buffers.Get().(*[lentBytes]byte)
		r.use(lent[:], lent)
	case unread*2 < len(r.buf):
		r.use(r.buf, r.lent)
	default:
		r.use(make([]byte, max(lentBytes, 2*len(r.buf))), nil)
	}
}

// use makes buf the buffer, with the unread bytes at its front.
func (r *Reader) use(buf []byte, lent *[lentBytes]byte) {
	r.end = copy(buf, r.buf[r.pos:r.end])
	r.buf, r.pos = buf, 0
	if r.lent != nil && r.lent != lent {
		buffers.Put(r.lent)
	}
	r.lent = lent
}

// release forgets the event returned before. A buffer that one large event blew
// up is not kept for the life of the stream.
func (r *Reader) release() {
	r.name = r.name[:0]
	r.data = r.data[:0]
	if cap(r.data) > keepBytes {
		r.data = nil
	}
	if unread := r.end - r.pos; len(r.buf) > keepBytes && unread <= lentBytes/2 {
		lent := buffers.Get().(*[lentBytes]byte)
		r.use(lent[:], lent)
	}
}
