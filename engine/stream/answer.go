package stream

import (
	"context"
	"io"
	"net/http"

	"baton/engine"
	"baton/engine/transport"
	"baton/sse"
)

// MaxJoined bounds the ids of a delta that is made of several events.
const MaxJoined = 64

// usualEventBytes is the memory that an answer has for its events. They are smaller,
// but for the first; of many at once see sse.Reader.
const usualEventBytes = 896

// Open posts the body of a request and returns the answer once it is a stream. refusal
// judges one of another status than 200.
func Open(ctx context.Context, link *transport.Link, path, requestID string, body []byte, refusal func(*transport.Response) *engine.Error) (*transport.Response, error) {
	resp, err := link.Post(ctx, path, requestID, body)
	if err != nil {
		return nil, err
	}
	if resp.Status != http.StatusOK {
		return nil, refusal(resp)
	}
	if resp.IsJSON() {
		resp.Abort()
		return nil, link.Error(engine.ProtocolError, "%s answered with JSON, not with a stream", path)
	}
	return resp, nil
}

// A Source reads the next event of an answer. It may say nothing: then the delta
// holds neither ids nor a finish reason. The delta's slices may be reused by the
// next Read.
type Source interface {
	Read() (engine.Delta, *engine.Error)
}

// An Answer is one streamed response that is being read, with the memory for a
// usual event within it. A client's record of an answer embeds it, so that what a
// token touches lies together, and is its Source.
type Answer struct {
	source Source
	link   *transport.Link
	resp   *transport.Response
	apart  bool
	joined []engine.TokenID

	held  bool // delta and err were read behind the delta that was returned last
	delta engine.Delta
	err   *engine.Error

	events sse.Reader
	buf    [usualEventBytes]byte
}

// Begin prepares a to read resp, whose events may have maxEventBytes. apart makes
// each event a delta of its own, as logprobs want it.
func (a *Answer) Begin(source Source, link *transport.Link, resp *transport.Response, maxEventBytes int, apart bool) {
	a.source, a.link, a.resp, a.apart = source, link, resp, apart
	a.events.Reset(resp, a.buf[:])
	a.events.LimitEvent(maxEventBytes)
}

// Event returns the data of the next event, valid until the next call; it is empty
// if the event has none. The end of the stream is an error, because whoever reads on
// has seen no finish reason.
func (a *Answer) Event() ([]byte, *engine.Error) {
	event, err := a.events.Next()
	switch {
	case err == io.EOF:
		return nil, a.link.Error(engine.Disconnected, "the stream ended without a finish reason")
	case err != nil:
		return nil, a.resp.ReadError(err)
	case string(event.Data) == "[DONE]":
		return nil, a.link.Error(engine.Disconnected, "the stream ended with [DONE] and no finish reason")
	}
	return event.Data, nil
}

// Next returns the next delta that holds ids or a finish reason. Events that have
// arrived together become one delta, which then costs all stages above, and the
// client, as much as one token: whoever falls behind catches up. Only the last
// event stands for itself.
func (a *Answer) Next(ctx context.Context) (engine.Delta, *engine.Error) {
	if a.held || a.events.Buffered() { // else it is read from a connection that ends with ctx
		if cause := engine.CauseOf(ctx); cause != nil {
			return engine.Delta{}, cause
		}
	}
	delta, err := a.delta, a.err
	if !a.held {
		delta, err = a.source.Read()
		for err == nil && len(delta.TokenIDs) == 0 && delta.FinishReason == "" {
			delta, err = a.source.Read()
		}
	}
	a.held = false
	if err != nil || delta.FinishReason != "" || a.apart || !a.events.Buffered() {
		return delta, err
	}
	a.joined = append(a.joined[:0], delta.TokenIDs...)
	for len(a.joined) < MaxJoined && a.events.Buffered() {
		if a.delta, a.err = a.source.Read(); a.err != nil || a.delta.FinishReason != "" {
			a.held = true
			break
		}
		a.joined = append(a.joined, a.delta.TokenIDs...)
	}
	return engine.Delta{TokenIDs: a.joined}, nil
}

// An End says how the delivery of an answer ended.
type End uint8

const (
	Finished End = iota // with a finish reason
	Failed              // with an error of the worker's
	Left                // by the consumer, or by the end of its context
)

// Deliver yields what next returns until the answer is over, and the error with
// which it fails.
func Deliver(ctx context.Context, next func(context.Context) (engine.Delta, *engine.Error), yield func(engine.Delta, error) bool) End {
	for {
		delta, err := next(ctx)
		if err != nil {
			end := Failed
			if cause := engine.CauseOf(ctx); cause != nil {
				err, end = cause, Left // whatever broke, it broke because the caller went
			}
			yield(engine.Delta{}, err)
			return end
		}
		switch more := yield(delta, nil); {
		case delta.FinishReason != "":
			return Finished
		case !more:
			return Left
		}
	}
}
