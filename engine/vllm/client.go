package vllm

import (
	"context"
	"io"
	"strings"
	"sync/atomic"

	"baton/engine"
	"baton/engine/transport"
	"baton/sse"
)

// An event is small, but for the first one, which repeats the ids of the prompt.
// A stream that goes beyond costs no more memory than this.
const (
	maxEventBytes   = 1 << 20
	eventBytesPerID = 16
)

// Client is the engine.Client of one vLLM server.
type Client struct {
	link  *transport.Link
	route atomic.Int32 // a route; written by Probe and by a refused generate

	known       atomic.Pointer[description] // nil until Probe
	maxLogprobs atomic.Int32                // the server's limit, or unknownLimit
	aborts      aborts
}

var _ engine.Client = (*Client)(nil)

// New returns the client of the server behind link. It does not connect.
func New(link *transport.Link) *Client {
	c := &Client{link: link}
	c.maxLogprobs.Store(unknownLimit)
	return c
}

// Kind returns "vllm".
func (c *Client) Kind() string { return engine.VLLM }

// Generate implements engine.Engine.
func (c *Client) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		resp, err := c.start(ctx, req)
		if err != nil {
			if ctx.Err() != nil { // it was left before its first token
				c.abort(req.ID)
			}
			yield(engine.Delta{}, err)
			return
		}
		defer resp.Abort() // whatever happens; nothing after Finish
		a := &answer{link: c.link, resp: resp, output: req.Output}
		a.events.Reset(resp, a.buf[:])
		a.events.LimitEvent(maxEventBytes + len(req.TokenIDs)*eventBytesPerID)
		a.frame.ids = a.ids[:0]
		for {
			delta, err := a.next(ctx)
			if err != nil {
				if cause := engine.CauseOf(ctx); cause != nil {
					err = cause // whatever broke, it broke because the caller went
					defer c.abort(req.ID)
				}
				yield(engine.Delta{}, err)
				return
			}
			finished := delta.FinishReason != ""
			if !yield(delta, nil) && !finished {
				defer c.abort(req.ID)
				return
			}
			if finished {
				resp.Finish()
				return
			}
		}
	}
}

// An answer is one streamed response that is being read, with the memory for a
// usual event within it.
type answer struct {
	link   *transport.Link
	resp   *transport.Response
	output engine.OutputOptions
	tokens int // read so far
	joined []engine.TokenID

	held  bool // delta and err were read behind the delta that was returned last
	delta engine.Delta
	err   *engine.Error

	events sse.Reader
	frame  frame
	ids    [8]engine.TokenID
	buf    [896]byte // events are smaller, but for the first; of many at once see sse.Reader
}

// maxJoined bounds the ids of a delta that is made of several events.
const maxJoined = 64

// next returns the next delta that holds ids or a finish reason. Events that
// have arrived together become one delta, which then costs all stages above, and
// the client, as much as one token: whoever falls behind catches up. Only the
// last event stands for itself, and those with logprobs do.
func (a *answer) next(ctx context.Context) (engine.Delta, *engine.Error) {
	if a.held || a.events.Buffered() { // else it is read from a connection that ends with ctx
		if cause := engine.CauseOf(ctx); cause != nil {
			return engine.Delta{}, cause
		}
	}
	delta, err := a.delta, a.err
	if !a.held {
		delta, err = a.read()
		for err == nil && len(delta.TokenIDs) == 0 && delta.FinishReason == "" {
			delta, err = a.read()
		}
	}
	a.held = false
	if err != nil || delta.FinishReason != "" || a.output.Logprobs || !a.events.Buffered() {
		return delta, err
	}
	a.joined = append(a.joined[:0], delta.TokenIDs...)
	for len(a.joined) < maxJoined && a.events.Buffered() {
		if a.delta, a.err = a.read(); a.err != nil || a.delta.FinishReason != "" {
			a.held = true
			break
		}
		a.joined = append(a.joined, a.delta.TokenIDs...)
	}
	return engine.Delta{TokenIDs: a.joined}, nil
}

// read reads one event, which may say nothing.
func (a *answer) read() (engine.Delta, *engine.Error) {
	event, err := a.events.Next()
	switch {
	case err == io.EOF:
		return engine.Delta{}, a.link.Error(engine.Disconnected, "the stream ended without a finish reason")
	case err != nil:
		return engine.Delta{}, a.resp.ReadError(err)
	case len(event.Data) == 0:
		return engine.Delta{}, nil
	case string(event.Data) == "[DONE]":
		return engine.Delta{}, a.link.Error(engine.Disconnected, "the stream ended with [DONE] and no finish reason")
	}
	if err := a.frame.read(event.Data, a.output); err != nil {
		return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
	}
	if a.frame.failed {
		complaint, _ := a.link.ParseComplaint(event.Data)
		return engine.Delta{}, errorFrame(a.link, complaint, a.tokens)
	}
	if a.frame.textOnly {
		// Going on would turn an answer into an empty one.
		return engine.Delta{}, a.link.Error(engine.WorkerMisconfigured, "the server sends text without token ids; vLLM 0.10.2 or newer is needed")
	}
	finish, ok := finishReason(a.frame.finish)
	if !ok {
		return engine.Delta{}, a.link.Error(engine.EngineError, "the engine ended the request with finish reason %q", a.frame.finish)
	}
	a.tokens += len(a.frame.ids)
	return engine.Delta{TokenIDs: a.frame.ids, Logprobs: a.frame.logprobs, FinishReason: finish}, nil
}

// finishReason maps the engine's word to a success; anything but stop, length
// and repetition (the engine's own stop against loops) is a failure.
func finishReason(word []byte) (engine.FinishReason, bool) {
	switch string(word) {
	case "":
		return "", true
	case "stop", "repetition":
		return engine.FinishStop, true
	case "length":
		return engine.FinishLength, true
	}
	return "", false
}

// errorFrame judges an error object inside a stream. After the first token the
// request was evidently valid, so whatever it says is the engine's failure.
func errorFrame(link *transport.Link, c transport.Complaint, tokens int) *engine.Error {
	if isEngineDeath(c) {
		err := link.Error(engine.EngineShutdown, "error frame: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	if tokens > 0 || c.Code < 400 {
		err := link.Error(engine.EngineError, "error frame: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	err := link.Refusal(c.Code, c)
	err.Elsewhere = err.Kind == engine.InvalidRequest && isOwnLimit(c)
	return err
}

// isEngineDeath knows the message with which the HTTP server reports that its
// engine process is gone, under whatever status: 500, and 400 from old servers.
func isEngineDeath(c transport.Complaint) bool {
	return strings.Contains(c.Message, "EngineCore encountered an issue") || strings.Contains(c.Message, "EngineDeadError")
}
