package llamacpp

import (
	"context"
	"io"
	"net/http"
	"slices"

	"baton/engine"
)

// maxTailBytes bounds the answer to a request for a tail: it repeats the prompt
// as text.
const maxTailBytes = 64 << 20

// fetchTail asks the server once more for the last lost ids of an answer that
// ended by its budget. There is no text to reconstruct them from, and without
// them the answer would look cut short. The answer to an unstreamed request holds
// all ids; its prompt is still in the server's cache.
func (a *answer) fetchTail(ctx context.Context, lost int) (engine.Delta, *engine.Error) {
	link := a.client.link
	req := *a.req
	req.TokenIDs = slices.Concat(a.req.TokenIDs, a.delivered)
	req.Carried += len(a.delivered)
	req.Stop.MaxTokens = lost
	body, err := completionBody(&req, false, "")
	if err != nil {
		return engine.Delta{}, link.Error(engine.Internal, "encode request: %w", err)
	}
	resp, err := link.Post(ctx, completionPath, "", body) // no id: it is the same attempt
	if err != nil {
		return engine.Delta{}, engine.AsError(err)
	}
	defer resp.Abort()
	if resp.Status != http.StatusOK {
		return engine.Delta{}, statusError(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp, maxTailBytes))
	if err != nil {
		return engine.Delta{}, resp.ReadError(err)
	}
	f := &a.frame
	if err := f.decode(data, a.req.Output); err != nil {
		return engine.Delta{}, link.Error(engine.ProtocolError, "tail: %w", err)
	}
	finish, fault := a.finishReason()
	if fault != nil {
		return engine.Delta{}, fault
	}
	if len(f.ids) == 0 || len(f.ids) > lost {
		return engine.Delta{}, link.Error(engine.ProtocolError, "tail: %d ids, asked for were %d", len(f.ids), lost)
	}
	resp.Finish()
	a.ids, a.logprobs = append(a.ids[:0], f.ids...), append(a.logprobs[:0], f.logprobs...)
	for i, id := range a.ids {
		if a.req.Stop.Ends(id) {
			return a.deliver(i+1, engine.FinishStop), nil
		}
	}
	return a.deliver(len(a.ids), finish), nil
}
