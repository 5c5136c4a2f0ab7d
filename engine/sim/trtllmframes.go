package sim

import (
	"net/http"
	"slices"
	"time"

	"baton/engine"
)

// trtProtocol writes the chunks of TensorRT-LLM's /v1/completions.
type trtProtocol struct {
	s            *Server
	req          *trtRequest
	id           string
	promptTokens int
	stop         engine.StopConditions
	text         textStream

	created int64
	last    engine.TokenID
	offset  int // of the next logprob's token
}

// A trtChunk is one chunk.
type trtChunk struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	Model   string      `json:"model"`
	Choices []trtChoice `json:"choices"`
	Usage   *usage      `json:"usage"`
}

type trtChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	TokenIDs     []engine.TokenID    `json:"token_ids"` // null where it detokenizes
	Logprobs     *completionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	StopReason   any                 `json:"stop_reason"`
	Decoded      float               `json:"avg_decoded_tokens_per_iter"`
}

func (t *trtProtocol) chunk(choices ...trtChoice) *trtChunk {
	if t.created == 0 {
		t.created = time.Now().Unix()
	}
	if choices == nil {
		choices = []trtChoice{}
	}
	return &trtChunk{ID: t.id, Object: "text_completion", Created: t.created, Model: *t.req.Model, Choices: choices}
}

func (t *trtProtocol) step(d engine.Delta, p *producer) []byte {
	chunk := t.chunk(t.choice(d, p))
	if t.req.StreamOptions != nil && t.req.StreamOptions.ContinuousUsageStats {
		chunk.Usage = countUsage(t.promptTokens, p)
	}
	return event(chunk)
}

// choice is what d is told as. The id that ends the answer is left out unless it
// is asked for, and by some versions even then.
func (t *trtProtocol) choice(d engine.Delta, p *producer) trtChoice {
	ids, logprobs := d.TokenIDs, d.Logprobs
	if n := len(ids); n > 0 {
		t.last = ids[n-1]
		if p.finish == engine.FinishStop && p.g.ends(t.last) && (!t.req.IncludeStop || t.s.profile.strips) {
			ids, logprobs = ids[:n-1], logprobs[:max(0, len(logprobs)-1)]
		}
	}
	choice := trtChoice{Logprobs: t.logprobs(logprobs), Decoded: 1}
	if orDefault(t.req.Detokenize, true) {
		for _, id := range ids {
			choice.Text += t.text.add(id)
		}
		if p.stops != nil {
			choice.Text = p.stops.heldBack(p.finish != "")
		}
	} else {
		choice.TokenIDs = append([]engine.TokenID{}, ids...)
	}
	if d.FinishReason != "" {
		reason := string(d.FinishReason)
		choice.FinishReason, choice.StopReason = &reason, t.stopReason(p, d.FinishReason)
	}
	return choice
}

// stopReason is null for the tokenizer's end id and for the budget, the id for
// another one, the text for a stop string.
func (t *trtProtocol) stopReason(p *producer, reason engine.FinishReason) any {
	eos := t.s.config.EOS
	switch {
	case reason != engine.FinishStop:
		return nil
	case p.stops != nil && p.stops.hit != "":
		return p.stops.hit
	case !t.stop.IgnoreEOS && len(eos) > 0 && t.last == eos[0], !slices.Contains(t.stop.TokenIDs, t.last):
		return nil
	}
	return t.last
}

// logprobs names tokens by their text.
func (t *trtProtocol) logprobs(list []engine.TokenLogprob) *completionLogprobs {
	if len(list) == 0 {
		return nil
	}
	out := &completionLogprobs{}
	for _, lp := range list {
		name := valid(t.s.words.text(nil, lp.ID))
		top := topByContent{}
		for _, alternative := range lp.Top {
			top = append(top, namedLogprob{valid(t.s.words.text(nil, alternative.ID)), float(alternative.Logprob)})
		}
		out.TextOffset = append(out.TextOffset, t.offset)
		out.TokenLogprobs = append(out.TokenLogprobs, float(lp.Logprob))
		out.Tokens = append(out.Tokens, name)
		out.TopLogprobs = append(out.TopLogprobs, top)
		t.offset += len(name)
	}
	return out
}

func (t *trtProtocol) end(p *producer, alone bool) []byte {
	var out []byte
	if alone {
		out = event(t.chunk(t.choice(engine.Delta{FinishReason: p.finish}, p)))
	}
	return append(append(out, t.usage(p)...), doneFrame...)
}

// usage returns the usage chunk, which comes with any stream options that do not
// refuse it.
func (t *trtProtocol) usage(p *producer) []byte {
	if t.req.StreamOptions == nil || !orDefault(t.req.StreamOptions.IncludeUsage, true) {
		return nil
	}
	chunk := t.chunk()
	chunk.Usage = countUsage(t.promptTokens, p)
	return event(chunk)
}

func (t *trtProtocol) abort(p *producer) []byte {
	choice := t.choice(engine.Delta{}, p)
	reason := "cancelled"
	choice.FinishReason = &reason
	return append(append(event(t.chunk(choice)), t.usage(p)...), doneFrame...)
}

// What TensorRT-LLM says when its engine is gone, and of other failures.
const (
	trtDead   = "LLM is unavailable. Please check the server logs for more details."
	trtFailed = "Generation failed: CUDA error"
)

func (t *trtProtocol) failure(f *Fault) []byte {
	message := trtFailed
	if f.Message != "" {
		message = f.Message
	}
	return t.exception(message)
}

func (t *trtProtocol) shutdown(p *producer) []byte { return t.exception(trtDead) }

// exception is what becomes of one within a stream: an event, and the terminator
// of each of the two generators that it leaves. Older versions let the connection
// end with it.
func (t *trtProtocol) exception(message string) []byte {
	if t.s.profile.silentErrors {
		return nil
	}
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    *int    `json:"code"`
		Param   *string `json:"param"`
	}
	out := event(map[string]object{"error": {Message: message, Type: "server_error"}})
	return append(append(out, doneFrame...), doneFrame...)
}

func (t *trtProtocol) refusal(status int, message string) []byte {
	switch {
	case message != "":
		return trtFlat(status, "BadRequestError", message)
	case status == http.StatusServiceUnavailable:
		return []byte(trtDead) // the text as it is
	case status == http.StatusTooManyRequests, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return encodeJSON(map[string]string{"detail": http.StatusText(status)}) // the server itself has none of them
	case status >= 500:
		return trtFlat(status, "InternalServerError", trtFailed)
	}
	return trtFlat(status, "BadRequestError", "The simulated worker refuses this request")
}

func (t *trtProtocol) half(kind FaultKind, p *producer) []byte {
	choice := t.choice(engine.Delta{}, p)
	choice.Text, choice.TokenIDs = " 世", []engine.TokenID{1234}
	return halfEvent(event(t.chunk(choice)), kind)
}

func (t *trtProtocol) whole(p *producer, deltas []engine.Delta) []byte {
	d := join(deltas)
	d.FinishReason = p.finish
	chunk := t.chunk(t.choice(d, p))
	chunk.Usage = countUsage(t.promptTokens, p)
	return encodeJSON(chunk)
}
