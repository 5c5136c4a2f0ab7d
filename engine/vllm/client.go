package vllm

import (
	"context"
	"strings"
	"sync/atomic"

	"baton/engine"
	"baton/engine/stream"
	"baton/engine/transport"
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
	aborts      stream.Aborts
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
		a := &answer{link: c.link, output: req.Output}
		a.frame.IDs = a.ids[:0]
		a.Begin(a, c.link, resp, maxEventBytes+len(req.TokenIDs)*eventBytesPerID, req.Output.Logprobs)
		switch stream.Deliver(ctx, a.Next, yield) {
		case stream.Finished:
			resp.Finish()
		case stream.Left:
			c.abort(req.ID)
		}
	}
}

// An answer is one streamed response that is being read, with the memory for a
// usual event within it.
type answer struct {
	stream.Answer
	link   *transport.Link
	output engine.OutputOptions
	tokens int // read so far

	frame frame
	ids   [8]engine.TokenID
}

// Read implements stream.Source.
func (a *answer) Read() (engine.Delta, *engine.Error) {
	data, fault := a.Event()
	if fault != nil || len(data) == 0 {
		return engine.Delta{}, fault
	}
	if err := a.frame.read(data, a.output); err != nil {
		return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
	}
	if a.frame.Failed {
		complaint, _ := a.link.ParseComplaint(data)
		return engine.Delta{}, errorFrame(a.link, complaint, a.tokens)
	}
	if a.frame.TextOnly {
		// Going on would turn an answer into an empty one.
		return engine.Delta{}, a.link.Error(engine.WorkerMisconfigured, "the server sends text without token ids; vLLM 0.10.2 or newer is needed")
	}
	finish, ok := finishReason(a.frame.Finish)
	if !ok {
		return engine.Delta{}, a.link.Error(engine.EngineError, "the engine ended the request with finish reason %q", a.frame.Finish)
	}
	a.tokens += len(a.frame.IDs)
	return engine.Delta{TokenIDs: a.frame.IDs, Logprobs: a.frame.logprobs, FinishReason: finish}, nil
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
