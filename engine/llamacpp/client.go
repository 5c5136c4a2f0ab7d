package llamacpp

import (
	"context"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"baton/engine"
	"baton/engine/stream"
	"baton/engine/transport"
	"baton/sse"
)

const completionPath = "/completion"

// An event is small, but for the last one, which repeats the prompt as text. A
// stream that goes beyond costs no more memory than this.
const (
	maxEventBytes   = 1 << 20
	eventBytesPerID = 256
)

// maxSilence is how long a stream may be without any byte. The server sends a
// keep-alive after each second without a token (pingInterval in the request).
const maxSilence = 3 * time.Second

// Options are what the client needs to know of the model to reconstruct lost ids.
type Options struct {
	// Piece returns the bytes that an id stands for inside a text, which need not
	// be whole characters; nil for ids without any. A nil Piece makes the loss
	// of an id an error.
	Piece func(engine.TokenID) []byte
	// Size is the number of ids that Piece knows.
	Size int
}

// Client is the engine.Client of one llama.cpp server.
type Client struct {
	link *transport.Link
	lost lostIDs

	quiet  atomic.Bool // the build does not know sse_ping_interval: silence is no sign of anything
	proven atomic.Bool // that it returns ids, where its build does not show it
}

var _ engine.Client = (*Client)(nil)

// New returns the client of the server behind link. It does not connect.
func New(link *transport.Link, opts Options) *Client {
	return &Client{link: link, lost: lostIDs{piece: opts.Piece, size: opts.Size}}
}

// WithModel returns the client of the same server, which has been found out by
// Probe, for one whose model is known now.
func (c *Client) WithModel(opts Options) *Client {
	of := New(c.link, opts)
	of.quiet.Store(c.quiet.Load())
	of.proven.Store(c.proven.Load())
	return of
}

// Kind returns "llamacpp".
func (c *Client) Kind() string { return engine.LlamaCPP }

// Parameters implements engine.Client.
func (c *Client) Parameters() engine.Parameters { return Parameters }

// Unsupported implements engine.Client.
func (c *Client) Unsupported(req *engine.Request) string {
	switch name := Parameters.Unsupported(req); {
	case name != "":
		return name
	case req.Stop.IgnoreEOS && slices.ContainsFunc(req.Stop.TokenIDs, func(id engine.TokenID) bool { return slices.Contains(req.Stop.EOS, id) }):
		return "stop_token_ids" // ignore_eos keeps the engine from ever choosing that id
	case req.Constraint != nil && req.Stop.MinTokens > 0:
		return "min_tokens" // in two halves, of which the second one would begin the grammar anew
	}
	return req.Constraint.Unenforced(unenforced)
}

// Generate implements engine.Engine.
func (c *Client) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	if req.Stop.MinTokens > 0 {
		// llama.cpp has no such parameter. IgnoreEOS keeps it from its own end ids only.
		return stream.WithMinimum(ctx, req, math.Inf(-1), c.generate)
	}
	return c.generate(ctx, req)
}

// generate is Generate without min_tokens.
func (c *Client) generate(ctx context.Context, req *engine.Request) engine.Stream {
	if s, ok := c.lost.find(req.TokenIDs); ok {
		return c.generateAcross(ctx, req, s)
	}
	return c.generateWhole(ctx, req, "")
}

// generateWhole gives a request that does not begin inside a character, in one,
// under a grammar if there is one.
func (c *Client) generateWhole(ctx context.Context, req *engine.Request, grammar string) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		resp, err := c.start(ctx, req, grammar)
		if err != nil {
			yield(engine.Delta{}, err)
			return
		}
		defer resp.Abort() // whatever happens; nothing after Finish
		a := answer{client: c, req: req, resp: resp, events: sse.NewReader(resp)}
		a.events.LimitEvent(maxEventBytes + len(req.TokenIDs)*eventBytesPerID)
		if stream.Deliver(ctx, a.next, yield) == stream.Finished {
			resp.Finish()
		}
	}
}

// start sends the request and returns the answer once it is a stream.
func (c *Client) start(ctx context.Context, req *engine.Request, grammar string) (*transport.Response, error) {
	if req.Stop.MaxTokens < 1 {
		return nil, c.link.Error(engine.Internal, "a budget of %d tokens: the engine would give one", req.Stop.MaxTokens)
	}
	body, err := completionBody(req, true, grammar)
	if err != nil {
		return nil, c.link.Error(engine.Internal, "encode request: %w", err)
	}
	resp, err := stream.Open(ctx, c.link, completionPath, req.ID, body, statusError)
	if err == nil && !c.quiet.Load() {
		resp.LimitSilence(maxSilence)
	}
	return resp, err
}

// An answer is one streamed response that is being read.
type answer struct {
	client    *Client
	req       *engine.Request
	resp      *transport.Response
	events    *sse.Reader
	frame     frame
	predicted int // ids delivered so far, which is what the engine's counter must say

	delivered []engine.TokenID // the same as ids: a lost tail is asked for behind them
	ids       []engine.TokenID // of the current delta
	logprobs  []engine.TokenLogprob
}

// next returns the next delta that holds ids or a finish reason.
func (a *answer) next(ctx context.Context) (engine.Delta, *engine.Error) {
	link := a.client.link
	for {
		event, err := a.events.Next()
		if cause := engine.CauseOf(ctx); cause != nil {
			return engine.Delta{}, cause
		}
		switch {
		case err == io.EOF:
			return engine.Delta{}, link.Error(engine.Disconnected, "the stream ended without a final event")
		case err != nil:
			return engine.Delta{}, a.resp.ReadError(err)
		case string(event.Name) == "error":
			return engine.Delta{}, errorFrame(link, parseBareComplaint(link, event.Data), a.predicted)
		case string(event.Data) == "[DONE]":
			return engine.Delta{}, link.Error(engine.Disconnected, "the stream ended with [DONE] and no final event")
		case len(event.Data) == 0:
			continue
		}
		if err := a.frame.decode(event.Data, a.req.Output); err != nil {
			return engine.Delta{}, link.Error(engine.ProtocolError, "%w", err)
		}
		if a.frame.failed {
			complaint, _ := link.ParseComplaint(event.Data)
			return engine.Delta{}, errorFrame(link, complaint, a.predicted)
		}
		delta, fault := a.take(ctx)
		if fault != nil || len(delta.TokenIDs) > 0 || delta.FinishReason != "" {
			return delta, fault
		}
	}
}

// take makes a delta of the current frame.
func (a *answer) take(ctx context.Context) (engine.Delta, *engine.Error) {
	link, f := a.client.link, &a.frame
	if !f.counted { // very old servers do not count
		if len(f.ids) == 0 && !f.final && len(f.content) > len(`""`) {
			// Going on would turn an answer into an empty one.
			return engine.Delta{}, link.Error(engine.WorkerMisconfigured, "the server sends text without token ids; a newer llama.cpp is needed")
		}
		f.predicted = a.predicted + len(f.ids)
	}
	if f.predicted == 0 && !f.final {
		return engine.Delta{}, nil // a progress report; its ids are made up
	}
	lost := f.predicted - a.predicted - len(f.ids)
	if lost < 0 || f.predicted < a.predicted {
		return engine.Delta{}, link.Error(engine.ProtocolError, "the engine counts %d tokens, delivered were %d and %d more", f.predicted, a.predicted, len(f.ids))
	}
	a.ids, a.logprobs = a.ids[:0], a.logprobs[:0]
	switch {
	case lost == 0:
	case f.final:
		if len(f.ids) > 0 || lost > maxLost {
			return engine.Delta{}, link.Error(engine.ProtocolError, "%d ids are missing at the end", lost)
		}
	case len(f.ids) == 0 && len(f.content) <= len(`""`):
		return engine.Delta{}, nil // nothing to reconstruct from yet
	default:
		ids, ok := a.client.lost.reconstruct(a.ids, f.text(), lost, f.ids)
		if !ok {
			return engine.Delta{}, link.Error(engine.ProtocolError, "%d ids were lost inside a character and could not be reconstructed", lost)
		}
		a.ids = ids
	}
	a.ids = append(a.ids, f.ids...)
	if a.req.Output.Logprobs {
		for _, id := range a.ids[:len(a.ids)-len(f.ids)] {
			a.logprobs = append(a.logprobs, engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob})
		}
		a.logprobs = append(a.logprobs, f.logprobs...)
	}

	// The engine has no stop ids, and may know fewer end ids than the frontend.
	for i, id := range a.ids {
		if a.req.Stop.Ends(id) {
			return a.deliver(i+1, engine.FinishStop), nil
		}
	}
	if !f.final {
		return a.deliver(len(a.ids), ""), nil
	}
	finish, err := a.finishReason()
	if err != nil {
		return engine.Delta{}, err
	}
	if lost > 0 && finish == engine.FinishLength {
		return a.fetchTail(ctx, lost)
	}
	return a.deliver(len(a.ids), finish), nil
}

// deliver returns the first n ids of the current frame as a delta.
func (a *answer) deliver(n int, finish engine.FinishReason) engine.Delta {
	a.predicted += n
	a.delivered = append(a.delivered, a.ids[:n]...)
	delta := engine.Delta{TokenIDs: a.ids[:n], FinishReason: finish}
	if a.req.Output.Logprobs {
		delta.Logprobs = a.logprobs[:n]
	}
	return delta
}

// finishReason maps the final event's stop_type.
func (a *answer) finishReason() (engine.FinishReason, *engine.Error) {
	switch stop := string(a.frame.stopType); stop {
	case "eos":
		return engine.FinishStop, nil
	case "limit": // of the request or of the context
		return engine.FinishLength, nil
	case "word":
		return "", a.client.link.Error(engine.ProtocolError, "the engine matched a stop string; none was sent")
	default:
		return "", a.client.link.Error(engine.EngineError, "the engine ended the request with stop type %q", stop)
	}
}
