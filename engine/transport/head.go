package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxHeaderBytes bounds all that precedes a body: the status line, the headers,
	// and the informational answers (100, 103) before them.
	maxHeaderBytes = 64 << 10

	headBufferBytes = 4 << 10 // more than a usual head, with the first event behind it
)

// httpVersion is what an answer begins with.
const httpVersion = "HTTP/1."

var errHeaderTooLong = fmt.Errorf("headers of more than %d bytes", maxHeaderBytes)

// headBuffers are lent for the time from a request to the first read of its body.
var headBuffers = sync.Pool{New: func() any { return new([headBufferBytes]byte) }}

// readHead reads the answer up to its body. What came behind is in r.early.
func (r *Response) readHead() error {
	lent := headBuffers.Get().(*[headBufferBytes]byte)
	r.lent = lent
	err := r.readHeadInto(lent[:])
	if err != nil {
		r.giveBack()
	}
	return r.shown(err)
}

func (r *Response) readHeadInto(buf []byte) error {
	for end, used := 0, 0; ; {
		if begun := min(end-used, len(httpVersion)); string(buf[used:used+begun]) != httpVersion[:begun] {
			return &malformed{"HTTP response", string(buf[used:end])} // whatever speaks there may wait for us now
		}
		size := headSize(buf[used:end])
		if used+size > maxHeaderBytes || size == 0 && end > maxHeaderBytes {
			return errHeaderTooLong
		}
		if size > 0 {
			h, err := parseHead(string(buf[used : used+size]))
			used += size
			if err != nil {
				return err
			}
			if h.informational() {
				continue // of which there may be several
			}
			if r.early = buf[used:end]; len(buf) > headBufferBytes {
				r.early = bytes.Clone(r.early) // for what is most often little
			}
			if len(r.early) == 0 || len(buf) > headBufferBytes {
				headBuffers.Put(r.lent)
				r.lent = nil
			}
			return r.take(h)
		}
		if end == len(buf) {
			buf = append(make([]byte, 0, maxHeaderBytes+headBufferBytes), buf...)
			buf = buf[:cap(buf)]
		}
		n, err := r.conn.Read(buf[end:])
		end += n
		r.answered = r.answered || n > 0
		if err != nil && n == 0 {
			if err == io.EOF && end > used {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// headSize returns the length of the head that b begins with, its blank line
// included; 0 = there is no whole one yet.
func headSize(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return 0
		}
		at += i + 1
		if rest := b[at:]; len(rest) > 0 && rest[0] == '\n' {
			return at + 1
		} else if len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
			return at + 2
		}
	}
}

// A head is what precedes a body.
type head struct {
	status int
	minor  int // of HTTP/1
	header http.Header
}

func (h *head) informational() bool {
	return h.status >= 100 && h.status < 200 && h.status != http.StatusSwitchingProtocols
}

// parseHead reads a head, by RFC 9112 sections 4 and 5.
func parseHead(text string) (*head, error) {
	line, rest := cutLine(text)
	version, status, _ := strings.Cut(line, " ")
	status, _, _ = strings.Cut(strings.TrimLeft(status, " "), " ")
	h := &head{header: make(http.Header, 8)}
	code, err := strconv.ParseUint(status, 10, 16)
	if !strings.HasPrefix(version, httpVersion) || len(version) != len(httpVersion)+1 || len(status) != 3 || err != nil || code < 100 {
		return nil, &malformed{"HTTP status line", line}
	}
	h.status, h.minor = int(code), int(version[len(version)-1]-'0')
	if h.minor > 9 {
		return nil, &malformed{"HTTP version", version}
	}
	values := make([]string, strings.Count(rest, "\n")) // one memory for all lists of one
	last := ""
	for line, rest = cutLine(rest); line != ""; line, rest = cutLine(rest) {
		if line[0] == ' ' || line[0] == '\t' { // a line that goes on with the one before
			list := h.header[last]
			if len(list) == 0 || strings.ContainsAny(line, "\r\x00") {
				return nil, &malformed{"header line", line}
			}
			list[len(list)-1] += " " + trim(line)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || strings.ContainsAny(value, "\r\x00") {
			return nil, &malformed{"header line", line}
		}
		last = textproto.CanonicalMIMEHeaderKey(name)
		if list := h.header[last]; list != nil {
			h.header[last] = append(list, trim(value))
			continue
		}
		values[0] = trim(value)
		h.header[last], values = values[:1:1], values[1:]
	}
	return h, nil
}

// cutLine returns the first line, without its end, and what follows.
func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

func trim(value string) string { return strings.Trim(value, " \t") }

// A malformed error is a part of a head that makes no sense.
type malformed struct{ what, text string }

func (e *malformed) Error() string { return fmt.Sprintf("malformed %s %q", e.what, e.text) }

// maxShownBytes bounds what an error repeats of a worker's nonsense.
const maxShownBytes = 128

// shown makes an error fit to be shown: keys go before anything is cut, because
// half a key is one too.
func (r *Response) shown(err error) error {
	if m, ok := err.(*malformed); ok {
		text := r.link.blot(m.text)
		return &malformed{m.what, text[:min(len(text), maxShownBytes)]}
	}
	return err
}

// isToken reports whether s can be the name of a header, by RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !inToken(s[i]) {
			return false
		}
	}
	return s != ""
}

func inToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// take prepares r for the body that h announces, by RFC 9112 section 6.3.
func (r *Response) take(h *head) error {
	r.Status, r.Header = h.status, h.header
	r.keep = h.minor >= 1 && !hasToken(h.header["Connection"], "close")
	length, err := contentLength(h.header["Content-Length"])
	coding := h.header["Transfer-Encoding"]
	switch {
	case err != nil:
		return err
	case h.status == http.StatusSwitchingProtocols:
		return errors.New("the worker wants to switch protocols")
	case len(coding) > 0 && h.minor >= 1 && (len(coding) != 1 || !strings.EqualFold(coding[0], "chunked")):
		return &malformed{"Transfer-Encoding", strings.Join(coding, ", ")}
	case h.status == http.StatusNoContent || h.status == http.StatusNotModified:
		r.framing = framing{form: counted}
		r.keep = r.keep && len(coding) == 0 // whoever announces a body may send one
	case len(coding) > 0 && h.minor >= 1:
		r.framing = framing{form: chunked}
		r.keep = r.keep && length < 0 // of two lengths one is a lie
	case length >= 0:
		r.framing = framing{form: counted, left: uint64(length)}
	default:
		r.framing, r.keep = framing{form: untilClosed}, false
	}
	return nil
}

// contentLength reads the values of Content-Length, which must agree; -1 = none.
func contentLength(values []string) (int64, error) {
	if len(values) == 0 {
		return -1, nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return 0, &malformed{"Content-Length", strings.Join(values, ", ")}
		}
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return 0, &malformed{"Content-Length", values[0]}
	}
	return int64(n), nil
}

// hasToken looks for a word in lists that commas separate.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for word := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(trim(word), token) {
				return true
			}
		}
	}
	return false
}
