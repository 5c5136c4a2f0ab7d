package trtllm

import (
	"context"
	"sync/atomic"

	"baton/engine"
	"baton/engine/stream"
	"baton/engine/transport"
)

const completionsPath = "/v1/completions"

// maxEventBytes bounds one event. A stream that goes beyond costs no more memory
// than this.
const maxEventBytes = 1 << 20

// Client is the engine.Client of one TensorRT-LLM server.
type Client struct {
	link   *transport.Link
	probed atomic.Pointer[fields] // nil until Probe has seen the server's description
}

var _ engine.Client = (*Client)(nil)

// New returns the client of the server behind link. It does not connect.
func New(link *transport.Link) *Client { return &Client{link: link} }

// Kind returns "trtllm".
func (c *Client) Kind() string { return engine.TRTLLM }

// Parameters implements engine.Client: the package's table, or what the version
// that Probe found makes of it.
func (c *Client) Parameters() engine.Parameters { return c.fields().parameters }

// Unsupported implements engine.Client.
func (c *Client) Unsupported(req *engine.Request) string {
	if req.Output.Logprobs && req.Output.TopLogprobs == 0 {
		plain := *req // the sampled token's own log-probability comes with its id
		plain.Output = engine.OutputOptions{}
		req = &plain
	}
	if req.Constraint != nil && req.Stop.MinTokens > 0 {
		return string(engine.MinTokens) // in two halves, of which the second one would begin the grammar anew
	}
	if name := c.Parameters().Unsupported(req); name != "" {
		return name
	}
	return req.Constraint.Unenforced(engine.UnenforcedByXGrammar)
}

// Generate implements engine.Engine.
func (c *Client) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	if req.Stop.MinTokens > 0 {
		// The engine's own min_tokens spares the tokenizer's end id only, not the other ones
		// that are sent as stop ids, and has been held against prompt and output together.
		return stream.WithMinimum(ctx, req, -maxBias, c.generate)
	}
	return c.generate(ctx, req)
}

// generate is Generate without min_tokens.
func (c *Client) generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		resp, err := c.start(ctx, req)
		if err != nil {
			yield(engine.Delta{}, err)
			return
		}
		defer resp.Abort() // the server looks once a second, and then gives the request up
		a := &answer{link: c.link, output: req.Output, stop: &req.Stop, last: noID}
		a.frame.IDs = a.ids[:0]
		a.Begin(a, c.link, resp, maxEventBytes, req.Output.Logprobs)
		if stream.Deliver(ctx, a.Next, yield) == stream.Finished {
			resp.Finish()
		}
	}
}

// start sends the request and returns the answer once it is a stream.
func (c *Client) start(ctx context.Context, req *engine.Request) (*transport.Response, error) {
	body, err := completionsBody(req, c.fields())
	if err != nil {
		return nil, c.link.Error(engine.Internal, "encode request: %w", err)
	}
	return stream.Open(ctx, c.link, completionsPath, req.ID, body, statusError)
}

// An answer is one streamed response that is being read, with the memory for a
// usual event within it.
type answer struct {
	stream.Answer
	link   *transport.Link
	output engine.OutputOptions
	stop   *engine.StopConditions
	tokens int            // read so far
	last   engine.TokenID // of them; noID = none

	frame frame
	ids   [8]engine.TokenID
}

// Read implements stream.Source.
func (a *answer) Read() (engine.Delta, *engine.Error) {
	data, fault := a.Event()
	if fault != nil || len(data) == 0 {
		return engine.Delta{}, fault
	}
	if err := a.frame.decode(data, a.output.Logprobs); err != nil {
		return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
	}
	if a.frame.Failed {
		complaint, _ := a.link.ParseComplaint(data)
		return engine.Delta{}, errorFrame(a.link, complaint, a.tokens)
	}
	if a.frame.TextOnly {
		// Going on would turn an answer into an empty one.
		return engine.Delta{}, a.link.Error(engine.WorkerMisconfigured, "the server sends text without token ids, although it was told not to detokenize; a newer TensorRT-LLM is needed")
	}
	finish, ok := finishReason(a.frame.Finish)
	if !ok {
		return engine.Delta{}, a.link.Error(engine.EngineError, "the engine ended the request with finish reason %q", a.frame.Finish)
	}
	if n := len(a.frame.IDs); n > 0 {
		a.last = a.frame.IDs[n-1]
	}
	if finish == engine.FinishStop {
		a.restoreEnd()
	}
	a.tokens += len(a.frame.IDs)
	return engine.Delta{TokenIDs: a.frame.IDs, Logprobs: a.frame.logprobs, FinishReason: finish}, nil
}

// finishReason maps the engine's word to a success. "cancelled" and "timeout" are
// failures of the worker: nobody here has asked for either.
func finishReason(word []byte) (engine.FinishReason, bool) {
	switch string(word) {
	case "":
		return "", true
	case "stop":
		return engine.FinishStop, true
	case "length":
		return engine.FinishLength, true
	}
	return "", false
}
