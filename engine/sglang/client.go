package sglang

import (
	"context"
	"slices"
	"sync/atomic"

	"baton/engine"
	jsonframe "baton/engine/frame"
	"baton/engine/stream"
	"baton/engine/transport"
	"baton/sse"
)

const generatePath = "/generate"

// An event repeats the answer so far: its ids, its text, and its logprobs with
// their alternatives. A stream that goes beyond costs no more memory than this.
const (
	maxEventBytes    = 1 << 20
	eventBytesPerID  = 256
	eventBytesPerTop = 64 // for each token and alternative
)

// Client is the engine.Client of one SGLang server.
type Client struct {
	link     *transport.Link
	settings atomic.Pointer[settings] // what Probe found
	aborts   stream.Aborts
}

var _ engine.Client = (*Client)(nil)

// New returns the client of the server behind link. It does not connect. Until
// Probe has succeeded the server is taken for one without any options.
func New(link *transport.Link) *Client {
	c := &Client{link: link}
	c.settings.Store(newSettings())
	return c
}

// Kind returns "sglang".
func (c *Client) Kind() string { return engine.SGLang }

// Parameters implements engine.Client.
func (c *Client) Parameters() engine.Parameters { return c.settings.Load().parameters }

// Unsupported implements engine.Client.
func (c *Client) Unsupported(req *engine.Request) string {
	if req.Sampling.RepetitionPenalty > maxRepetitionPenalty {
		return string(engine.RepetitionPenalty)
	}
	if name := c.Parameters().Unsupported(req); name != "" {
		return name
	}
	return req.Constraint.Unenforced(engine.UnenforcedByXGrammar)
}

// Generate implements engine.Engine.
func (c *Client) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		s := c.settings.Load()
		resp, err := c.start(ctx, req, s)
		if err != nil {
			if ctx.Err() != nil { // it was left before its first token
				c.abort(req.ID)
			}
			yield(engine.Delta{}, err)
			return
		}
		defer resp.Abort() // whatever happens; nothing after Finish
		a := &answer{link: c.link, req: req, tally: tally{expected: s.form}}
		a.frame.ids = a.ids[:0]
		a.Begin(a, c.link, resp, maxEvent(req), req.Output.Logprobs)
		switch end := stream.Deliver(ctx, a.Next, yield); {
		case end == stream.Left, end == stream.Finished && a.cut:
			c.abort(req.ID)
		case end == stream.Finished:
			resp.Finish()
		}
	}
}

// maxEvent is how many bytes an event of the answer may have.
func maxEvent(req *engine.Request) int {
	perID := eventBytesPerID
	if req.Output.Logprobs {
		perID += eventBytesPerTop * req.Output.TopLogprobs
	}
	return maxEventBytes + min(req.Stop.MaxTokens, sse.MaxEventBytes/perID)*perID
}

// start sends the request and returns the answer once it is a stream.
func (c *Client) start(ctx context.Context, req *engine.Request, s *settings) (*transport.Response, error) {
	encoded, err := body(req, s)
	if err != nil {
		return nil, c.link.Error(engine.Internal, "encode request: %w", err)
	}
	return stream.Open(ctx, c.link, generatePath, req.ID, encoded, statusError)
}

// An answer is one streamed response that is being read, with the memory for a
// usual event within it.
type answer struct {
	stream.Answer
	link  *transport.Link
	req   *engine.Request
	tally tally
	cut   bool // it was ended here, and the server does not know

	frame frame
	ids   [8]engine.TokenID
}

// Read implements stream.Source.
func (a *answer) Read() (engine.Delta, *engine.Error) {
	data, fault := a.Event()
	if fault != nil || len(data) == 0 {
		return engine.Delta{}, fault
	}
	f := &a.frame
	if err := f.decode(data, a.req.Output, a.tally.form == incremental); err != nil {
		return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
	}
	if fault = a.judge(data); fault != nil {
		return engine.Delta{}, fault
	}
	if !f.withIDs {
		return engine.Delta{FinishReason: finishReasons[string(f.finish.kind)]}, nil
	}
	ids, err := a.tally.take(f)
	if err == errAgain {
		_ = f.decode(data, a.req.Output, true) // it did before
		ids, err = a.tally.take(f)
	}
	if err != nil {
		return engine.Delta{}, a.link.Error(engine.ProtocolError, "%w", err)
	}
	delta := a.end(engine.Delta{TokenIDs: ids, FinishReason: finishReasons[string(f.finish.kind)]})
	if a.req.Output.Logprobs {
		delta.Logprobs = f.align(ids, a.req.Output.TopLogprobs)[:len(delta.TokenIDs)]
	}
	return delta, nil
}

// finishReasons are the engine's words for a success.
var finishReasons = map[string]engine.FinishReason{"stop": engine.FinishStop, "length": engine.FinishLength}

// brokenLogits is the stop string that the engine says it has found when it has
// computed an id that is none. It has put an end id in its place.
const brokenLogits = `"NaN happened"`

// judge looks for failures that an event tells of.
func (a *answer) judge(data []byte) *engine.Error {
	f := &a.frame
	kind := string(f.finish.kind)
	switch {
	case f.failed:
		return errorEvent(a.link, data, a.tally.read)
	case kind == "abort":
		c := transport.Complaint{Message: string(jsonframe.Unquote(f.finish.message)), Code: f.finish.status}
		return failure(a.link, "aborted", c, a.tally.read)
	case f.finish.kind != nil && finishReasons[kind] == "":
		return a.link.Error(engine.EngineError, "the engine ended the request with finish reason %q", kind)
	case string(f.finish.matched) == brokenLogits:
		return a.link.Error(engine.EngineError, "the engine has computed an id that is none (%s)", brokenLogits)
	case f.text && !f.withIDs:
		// Going on would turn an answer into an empty one.
		return a.link.Error(engine.WorkerMisconfigured, "the server sends text without token ids; a newer SGLang is needed")
	case f.prompt > 0 && f.prompt < len(a.req.TokenIDs):
		return a.link.Error(engine.WorkerMisconfigured, "the server has cut the prompt from %d tokens to %d; it must not be started with --allow-auto-truncate",
			len(a.req.TokenIDs), f.prompt)
	}
	return nil
}

// end ends the answer at a stop id where the engine does not: told to ignore its
// end ids it ignores the client's, too.
func (a *answer) end(d engine.Delta) engine.Delta {
	stop := &a.req.Stop
	if !stop.IgnoreEOS || len(stop.TokenIDs) == 0 {
		return d
	}
	before := a.tally.read - len(d.TokenIDs)
	for i, id := range d.TokenIDs {
		if before+i+1 > stop.MinTokens && slices.Contains(stop.TokenIDs, id) {
			a.cut = d.FinishReason == ""
			return engine.Delta{TokenIDs: d.TokenIDs[:i+1], FinishReason: engine.FinishStop}
		}
	}
	return d
}
