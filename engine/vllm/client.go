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

// Client is the engine.Client of one vLLM server.
type Client struct {
	link  *transport.Link
	route atomic.Int32 // a route; written by Probe and by a refused generate
}

var _ engine.Client = (*Client)(nil)

// New returns the client of the server behind link. It does not connect.
func New(link *transport.Link) *Client { return &Client{link: link} }

// Kind returns "vllm".
func (c *Client) Kind() string { return "vllm" }

// Unsupported returns "": vLLM has all parameters of a Request.
func (c *Client) Unsupported(*engine.Request) string { return "" }

// Generate implements engine.Engine.
func (c *Client) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		resp, err := c.start(ctx, req)
		if err != nil {
			yield(engine.Delta{}, err)
			return
		}
		defer resp.Abort() // whatever happens; nothing after Finish
		a := answer{link: c.link, resp: resp, events: sse.NewReader(resp), output: req.Output}
		for {
			delta, err := a.next(ctx)
			if err != nil {
				if cause := engine.CauseOf(ctx); cause != nil {
					err = cause // whatever broke, it broke because the caller went
				}
				yield(engine.Delta{}, err)
				return
			}
			finished := delta.FinishReason != ""
			if !yield(delta, nil) && !finished {
				return
			}
			if finished {
				resp.Finish()
				return
			}
		}
	}
}

// An answer is one streamed response that is being read.
type answer struct {
	link   *transport.Link
	resp   *transport.Response
	events *sse.Reader
	output engine.OutputOptions
	frame  frame
	tokens int // delivered so far
}

// next returns the next delta that holds ids or a finish reason.
func (a *answer) next(ctx context.Context) (engine.Delta, *engine.Error) {
	for {
		if a.events.Buffered() { // else it is read from a connection that ends with ctx
			if cause := engine.CauseOf(ctx); cause != nil {
				return engine.Delta{}, cause
			}
		}
		event, err := a.events.Next()
		switch {
		case err == io.EOF:
			return engine.Delta{}, a.link.Error(engine.Disconnected, "the stream ended without a finish reason")
		case err != nil:
			return engine.Delta{}, a.resp.ReadError(err)
		case len(event.Data) == 0:
			continue
		case string(event.Data) == "[DONE]":
			return engine.Delta{}, a.link.Error(engine.Disconnected, "the stream ended with [DONE] and no finish reason")
		}
		if err := a.frame.decode(event.Data, a.output); err != nil {
			return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
		}
		if a.frame.failed {
			complaint, _ := transport.ParseComplaint(event.Data)
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
		if len(a.frame.ids) > 0 || finish != "" {
			a.tokens += len(a.frame.ids)
			return engine.Delta{TokenIDs: a.frame.ids, Logprobs: a.frame.logprobs, FinishReason: finish}, nil
		}
	}
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
// request was evidently valid, so whatever it says is the engine's failure; old
// servers report the death of the engine as code 400.
func errorFrame(link *transport.Link, c transport.Complaint, tokens int) *engine.Error {
	if tokens > 0 || c.Code < 400 || isEngineDeath(c) {
		err := link.Error(engine.EngineError, "error frame: %s: %s", c.Type, c.Message)
		err.Status = c.Code
		return err
	}
	return link.Refusal(c.Code, c)
}

// isEngineDeath knows the message with which the HTTP server reports that its
// engine process is gone, under whatever status.
func isEngineDeath(c transport.Complaint) bool {
	return strings.Contains(c.Message, "EngineCore encountered an issue") || strings.Contains(c.Message, "EngineDeadError")
}
