package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"baton/backend"
	"baton/engine"
	"baton/openai"
	"baton/sse"
)

// An eventEncoder makes the events of one choice, in the grammar of its endpoint. It
// belongs to the choice's goroutine.
type eventEncoder interface {
	// add makes the events of a delta: none if it has nothing to show.
	add(d *backend.Delta)
	// take returns the events that were made, valid until the next call of add.
	take() []byte
	// last appends what ends the stream, behind the events of all choices. The
	// comment, which may be empty, goes before the event that clients read no further
	// than.
	last(dst []byte, usage *tokenUsage, comment []byte) []byte
	// fail appends what ends a stream that is not complete.
	fail(dst []byte, e *openai.Error) []byte
}

// A streamAnswer sends the deltas of all choices as one stream of events.
type streamAnswer struct {
	out  sse.Writer
	call *call

	openings []byte    // the first chunks of several choices
	opening  sync.Once // sends them

	mu    sync.Mutex // guards what follows; held while a finish is sent, so that [DONE] is last
	open  int        // choices that have not finished
	debug debugComment
}

// stream answers with server-sent events. It returns why the answer is not
// complete, or nil.
func (c *call) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) *engine.Error {
	cfg := &c.server.cfg
	a := &streamAnswer{call: c, open: len(c.choices)}
	if c.ep.responses {
		c.choices[0].events = newResponseEncoder(c.choices[0])
	} else {
		a.openings = c.encodeChunks()
	}
	a.out.Init(w, r, sse.WriterConfig{
		KeepAliveInterval: cfg.SSEKeepAliveInterval,
		Clock:             c.server.clock,
		WriteTimeout:      cfg.WriteTimeout,
		Failed:            c.lost,
	})
	defer a.out.Close()
	err := c.run(ctx, a.deliver)
	if err == nil {
		return nil
	}
	failure := finalError(ctx, err)
	if clientLeft(failure) {
		return failure
	}
	public := c.publicError(failure)
	var last []byte
	if c.debug {
		last = c.debugComment(last)
	}
	last = c.choices[0].events.fail(last, public)
	if begun, _ := a.out.End(last); !begun {
		c.setTraceHeaders(w)
		writeError(w, public)
	}
	return failure
}

// deliver sends a delta: nothing, or one write with one flush.
func (a *streamAnswer) deliver(c *choice) error {
	c.events.add(&c.delta)
	if c.delta.FinishReason != "" {
		return a.finish(c)
	}
	if events := c.events.take(); len(events) > 0 {
		return a.send(events)
	}
	return nil
}

// send sends events. Before the first ones of several choices come the openings of
// all choices, in order: openai-python's helper takes no chunk of choice 1 before
// one of choice 0.
func (a *streamAnswer) send(events []byte) error {
	if len(a.openings) > 0 {
		a.opening.Do(func() { _ = a.out.Send(a.openings) }) // its error is also that of the next call
	}
	return a.out.Send(events)
}

// finish sends the last delta of a choice, and with that of the last choice the
// end of the stream, so that the client does not wait for anything behind it.
func (a *streamAnswer) finish(c *choice) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.call.debug {
		a.debug.add(c)
	}
	events := c.events.take()
	if a.open == 0 {
		var comment []byte
		if a.call.debug {
			comment = a.debug.appendTo(nil)
		}
		u := a.call.usage() // all choices have finished, each under this lock
		events = c.events.last(events, &u, comment)
	}
	return a.send(events)
}

// A debugComment is the answer to X-Baton-Debug in a stream: one comment line,
// so that clients which do not know it are not disturbed.
type debugComment struct {
	attempts          []byte // JSON objects
	count, migrations int
}

// add writes down the attempts of a choice. It is called on the choice's
// goroutine, or when all choices have ended.
func (d *debugComment) add(c *choice) {
	d.count += len(c.trace.Attempts)
	d.migrations += c.trace.Migrations()
	for i := range c.trace.Attempts {
		attempt := &c.trace.Attempts[i]
		b := appendComma(d.attempts)
		b = appendString(append(b, `{"id":`...), attempt.ID)
		b = appendString(append(b, `,"worker":`...), attempt.WorkerID)
		b = appendInt(append(b, `,"tokens":`...), attempt.Tokens)
		if attempt.Migration != "" {
			b = appendString(append(b, `,"migration":`...), attempt.Migration)
			b = appendInt(append(b, `,"carried":`...), attempt.Carried)
			b = append(b, `,"gap_ms":`...)
			b = strconv.AppendFloat(b, float64(attempt.Gap)/float64(time.Millisecond), 'f', 3, 64)
		}
		if attempt.Err != nil {
			b = appendString(append(b, `,"error":`...), attempt.Err.Kind.String())
		}
		d.attempts = append(b, '}')
	}
}

func (d *debugComment) appendTo(dst []byte) []byte {
	dst = appendInt(append(dst, `: baton {"attempts":`...), d.count)
	dst = appendInt(append(dst, `,"migrations":`...), d.migrations)
	dst = append(append(dst, `,"trace":[`...), d.attempts...)
	return append(dst, "]}\n"...)
}

func (c *call) debugComment(dst []byte) []byte {
	var d debugComment
	for _, choice := range c.choices {
		d.add(choice)
	}
	return d.appendTo(dst)
}

// setTraceHeaders says how an answer without a stream came about.
func (c *call) setTraceHeaders(w http.ResponseWriter) {
	w.Header().Set(attemptsHeader, strconv.Itoa(c.attempts()))
	w.Header().Set(migrationsHeader, strconv.Itoa(c.migrations()))
}
