package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// silence is how long a stream may say nothing before it counts as failed.
const silence = 20 * time.Second

// A target is where requests are sent.
type target struct {
	address string // host:port
	header  string // more lines of the request's header, each with its CRLF
}

// A client asks for one answer at a time over one kept connection. It reads the
// socket itself, because net/http would cost more than what is measured, and
// believes nothing: an answer that is not complete is an error.
type client struct {
	target
	prompt string

	// onToken is called for each token with the number that its word carries.
	onToken func(number int, now time.Time)
	// onComment, if not nil, is called with what the frontend tells of the attempts.
	onComment func(comment []byte)
	// inOrder demands the words 0, 1, 2, …, as they come from a worker that does
	// not stamp.
	inOrder bool

	conn  net.Conn
	in    *bufio.Reader
	lines *bufio.Reader
}

// use makes conn the client's connection.
func (c *client) use(conn net.Conn) {
	c.conn, c.in, c.lines = conn, bufio.NewReader(conn), bufio.NewReader(nil)
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask streams one answer of the given number of tokens.
func (c *client) ask(tokens int) error {
	err := c.send(tokens)
	if err == nil {
		err = c.receive(tokens)
	}
	if err != nil {
		c.close()
	}
	return err
}

func (c *client) send(tokens int) error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.address, silence)
		if err != nil {
			return err
		}
		c.use(conn)
	}
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"stream":true,"max_tokens":%d,"temperature":0}`, modelName, c.prompt, tokens)
	c.conn.SetDeadline(time.Now().Add(silence))
	_, err := fmt.Fprintf(c.conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		c.address, len(body), c.header, body)
	return err
}

// receive reads the answer to its last byte.
func (c *client) receive(tokens int) error {
	resp, err := http.ReadResponse(c.in, nil) // the body stays in c.in
	if err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if len(resp.TransferEncoding) == 0 {
		return errors.New("the answer is not chunked")
	}
	if err := c.events(tokens); err != nil {
		return err
	}
	end, err := c.in.ReadString('\n') // the chunked reader leaves the end of the trailer
	if err == nil && end != "\r\n" {
		err = fmt.Errorf("%q after the last chunk", end)
	}
	return err
}

// errTokens is wrapped in the error of an answer that had a wrong token, or too many or too few.
var errTokens = errors.New("tokens lost, doubled or wrong")

var contentField, finishField, errorObject = []byte(`"content":`), []byte(`"finish_reason":`), []byte(`{"error"`)

// events reads the events of the body and checks them.
func (c *client) events(want int) error {
	c.lines.Reset(httputil.NewChunkedReader(c.in))
	got, finishes, done := 0, 0, false
	extended := time.Now()
	for {
		line, err := c.lines.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d of %d tokens: %w", got, want, err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			if comment, ok := bytes.CutPrefix(line, []byte(": baton ")); ok && c.onComment != nil {
				c.onComment(comment)
			}
			continue
		}
		now := time.Now()
		if now.Sub(extended) > time.Second {
			extended = now
			c.conn.SetDeadline(now.Add(silence))
		}
		switch {
		case done:
			return errors.New("an event after [DONE]")
		case bytes.HasPrefix(data, []byte("[DONE]")):
			done = true
			continue
		case bytes.HasPrefix(data, errorObject):
			return fmt.Errorf("after %d of %d tokens: %s", got, want, bytes.TrimSpace(data))
		}
		if got, err = c.count(fieldText(data, contentField), got, now); err != nil {
			return err
		}
		if len(fieldText(data, finishField)) > 0 {
			finishes++
		}
	}
	if got != want {
		return fmt.Errorf("%w: %d of %d", errTokens, got, want)
	}
	if finishes != 1 || !done {
		return fmt.Errorf("%d of %d tokens, %d finish reasons, [DONE]: %v", got, want, finishes, done)
	}
	return nil
}

// count takes the words of one event.
func (c *client) count(text []byte, got int, now time.Time) (int, error) {
	for len(text) > 0 {
		number, ok := wordNumber(text)
		if !ok || c.inOrder && number != got%wordCount {
			return got, fmt.Errorf("%w: token %d has the text of word %d (%v)", errTokens, got, number, ok)
		}
		c.onToken(number, now)
		got++
		text = text[wordBytes:]
	}
	return got, nil
}

// fieldText returns the string that follows field; no word here holds an escape.
func fieldText(data, field []byte) []byte {
	_, after, _ := bytes.Cut(data, field)
	after = bytes.TrimPrefix(after, []byte(" ")) // as Python writes JSON
	if after, ok := bytes.CutPrefix(after, []byte(`"`)); ok {
		text, _, _ := bytes.Cut(after, []byte(`"`))
		return text
	}
	return nil
}
