package sim

import (
	"net/http"
	"time"

	"baton/engine"
)

// sglangProtocol writes the events of /generate: each repeats the answer so far,
// or with --incremental-streaming-output holds what is new.
type sglangProtocol struct {
	s     *Server
	req   *sglangRequest
	text  textStream
	start time.Time

	begun    bool // an event is sent
	ids      []engine.TokenID
	logprobs []engine.TokenLogprob
	said     string // the text so far
	told     int    // how much of it and of the lists events have had,
	toldIDs  int    // for those that hold what is new
}

// A sglangChunk is an event, and the body of an answer that is not streamed.
type sglangChunk struct {
	Text      string           `json:"text"`
	OutputIDs []engine.TokenID `json:"output_ids"`
	Meta      any              `json:"meta_info"`
}

// sglangMeta is the meta_info, in SGLang's order.
type sglangMeta struct {
	ID             string `json:"id"`
	FinishReason   any    `json:"finish_reason"`
	PromptTokens   int    `json:"prompt_tokens"`
	WeightVersion  string `json:"weight_version"`
	NumRetractions int    `json:"num_retractions"`
	*sglangLogprobs
	ReasoningTokens     int             `json:"reasoning_tokens"`
	CompletionTokens    int             `json:"completion_tokens"`
	CachedTokens        int             `json:"cached_tokens"`
	WeightVersions      []weightVersion `json:"weight_versions,omitempty"`
	CachedTokensDetails any             `json:"cached_tokens_details"`
	DPRank              *int            `json:"dp_rank"`
	E2ELatency          float           `json:"e2e_latency,omitempty"`
	ResponseSent        float           `json:"response_sent_to_client_ts,omitempty"`
}

// sglangLogprobs are lists of [logprob, id, text].
type sglangLogprobs struct {
	Input     [][3]any   `json:"input_token_logprobs"`
	Output    [][3]any   `json:"output_token_logprobs"`
	Length    int        `json:"output_token_logprobs_length"`
	InputTop  *[]any     `json:"input_top_logprobs,omitempty"`
	OutputTop [][][3]any `json:"output_top_logprobs,omitempty"`
}

// The finish reasons.
type (
	sglangStop struct {
		Type    string `json:"type"`
		Matched any    `json:"matched"` // the id, or the stop string
	}
	sglangLength struct {
		Type   string `json:"type"`
		Length int    `json:"length"`
	}
	sglangAbortion struct {
		Type       string  `json:"type"`
		Message    string  `json:"message"`
		StatusCode *int    `json:"status_code"`
		ErrType    *string `json:"err_type"`
	}
)

func (g *sglangProtocol) step(d engine.Delta, p *producer) []byte {
	if len(d.TokenIDs) == 0 && d.FinishReason == "" {
		return nil // it has no empty steps
	}
	g.take(d, p)
	return event(g.chunk(p, d.FinishReason != ""))
}

// take adds a delta to the answer so far.
func (g *sglangProtocol) take(d engine.Delta, p *producer) {
	for i, id := range d.TokenIDs {
		if p.stops != nil {
			break // they keep the text
		}
		if ends := i == len(d.TokenIDs)-1 && p.finish == engine.FinishStop; !ends { // the id that ends it has no text
			g.said += g.text.add(id)
		}
	}
	g.ids, g.logprobs = append(g.ids, d.TokenIDs...), append(g.logprobs, d.Logprobs...)
}

// chunk is the next event of the answer so far.
func (g *sglangProtocol) chunk(p *producer, finished bool) *sglangChunk {
	if finished && g.text.pending() {
		g.said += "\uFFFD"
	}
	if p.stops != nil {
		g.said += p.stops.heldBack(p.finish != "")
	}
	from, fromText := 0, 0
	if g.s.config.Server.Incremental && g.req.Stream {
		from, fromText = g.toldIDs, g.told
	}
	meta := g.meta(g.counted(p))
	if g.req.ReturnLogprob {
		meta.sglangLogprobs = g.lists(from)
	}
	if finished {
		meta.FinishReason = g.finish(p)
		meta.WeightVersions = []weightVersion{{"default", 0, len(g.ids)}}
		meta.E2ELatency = float(max(time.Since(g.start).Seconds(), 1e-6))
	}
	chunk := &sglangChunk{g.said[fromText:], append([]engine.TokenID{}, g.ids[from:]...), meta}
	g.told, g.toldIDs = len(g.said), len(g.ids)
	return chunk
}

// meta is that of the next event, with what is in all of them.
func (g *sglangProtocol) meta(count int) *sglangMeta {
	meta := &sglangMeta{ID: g.req.RID, PromptTokens: len(g.req.InputIDs), WeightVersion: "default", CompletionTokens: count}
	if !g.begun {
		meta.ResponseSent = float(float64(time.Now().UnixMicro()) / 1e6)
	}
	g.begun = true
	return meta
}

// counted is what an event says of the number of tokens.
func (g *sglangProtocol) counted(p *producer) int {
	if f := p.fault; f != nil && f.Kind == FaultMiscount && f.due(len(g.ids)-1, p.finish) {
		return len(g.ids) + 1
	}
	return len(g.ids)
}

// lists are the logprobs of the tokens behind from.
func (g *sglangProtocol) lists(from int) *sglangLogprobs {
	out := &sglangLogprobs{Input: [][3]any{}, Output: [][3]any{}, Length: len(g.logprobs)}
	entry := func(id engine.TokenID, logprob float64) [3]any {
		e := [3]any{float(logprob), id, nil}
		if g.req.TextInLogprobs {
			e[2] = string(g.s.words.text(nil, id))
		}
		return e
	}
	if g.req.TopLogprobs > 0 {
		out.InputTop = &[]any{}
	}
	for _, lp := range g.logprobs[min(from, len(g.logprobs)):] {
		out.Output = append(out.Output, entry(lp.ID, lp.Logprob))
		if g.req.TopLogprobs > 0 {
			tops := [][3]any{}
			for _, t := range lp.Top {
				tops = append(tops, entry(t.ID, t.Logprob))
			}
			out.OutputTop = append(out.OutputTop, tops)
		}
	}
	return out
}

func (g *sglangProtocol) finish(p *producer) any {
	switch {
	case p.finish == engine.FinishLength:
		return sglangLength{"length", len(g.ids)}
	case p.stops != nil && p.stops.hit != "":
		return sglangStop{"stop", p.stops.hit}
	}
	return sglangStop{"stop", g.ids[len(g.ids)-1]}
}

func (g *sglangProtocol) end(p *producer, alone bool) []byte {
	if !alone {
		return doneFrame
	}
	return append(event(g.chunk(p, true)), doneFrame...)
}

// abort is the end of a request that the abort endpoint named: one that waits in
// the queue has other words and keys than one that runs.
func (g *sglangProtocol) abort(p *producer) []byte {
	if p.delivered > 0 {
		chunk := g.chunk(p, false)
		meta := chunk.Meta.(*sglangMeta)
		meta.FinishReason = sglangAbortion{Type: "abort", Message: "Aborted"}
		meta.WeightVersions = []weightVersion{{"default", 0, len(g.ids)}}
		meta.E2ELatency = float(max(time.Since(g.start).Seconds(), 1e-6))
		return append(event(chunk), doneFrame...)
	}
	return append(event(&sglangChunk{OutputIDs: []engine.TokenID{}, Meta: struct {
		ID               string            `json:"id"`
		FinishReason     map[string]string `json:"finish_reason"`
		WeightVersion    string            `json:"weight_version"`
		E2ELatency       float             `json:"e2e_latency"`
		CompletionTokens int               `json:"completion_tokens"`
	}{g.req.RID, map[string]string{"type": "abort", "message": "Abort in waiting queue"}, "default", float(time.Since(g.start).Seconds()), 0}}), doneFrame...)
}

// aborted is a request that the scheduler gives up, for a reason with a status. It
// has put one token in place of the prompt by then.
func (g *sglangProtocol) aborted(status int, message string) []byte {
	kind := "InternalServerError"
	if status == http.StatusBadRequest {
		kind = "BadRequestError"
	}
	meta := g.meta(len(g.ids))
	meta.WeightVersions = []weightVersion{{"default", 0, len(g.ids)}}
	meta.E2ELatency = float(max(time.Since(g.start).Seconds(), 1e-6))
	meta.PromptTokens = 1
	meta.FinishReason = sglangAbortion{"abort", message, &status, &kind}
	return append(event(&sglangChunk{g.said, append([]engine.TokenID{}, g.ids...), meta}), doneFrame...)
}

// shutdown: SGLang has no words for the death of its processes.
func (g *sglangProtocol) shutdown(p *producer) []byte {
	return g.aborted(p.fault.status(http.StatusInternalServerError), "Scheduler is dead.")
}

// failure: the server's own failures end a request as an abort, what is wrong with
// the request is an error object.
func (g *sglangProtocol) failure(f *Fault) []byte {
	status, message := f.status(http.StatusInternalServerError), f.Message
	if message == "" {
		message = "Out of memory even after retracting all other requests in the decode batch."
	}
	if status >= http.StatusInternalServerError {
		return g.aborted(status, message)
	}
	return (&sglangError{Message: message, Type: "invalid_request_error", Code: status}).event()
}

func (g *sglangProtocol) refusal(status int, message string) []byte {
	return sglangRefusal(status, message)
}

func (g *sglangProtocol) half(kind FaultKind, p *producer) []byte {
	chunk := g.chunk(p, false)
	chunk.Text += " 世"
	chunk.OutputIDs = append(chunk.OutputIDs, 1234)
	return halfEvent(event(chunk), kind)
}

func (g *sglangProtocol) whole(p *producer, deltas []engine.Delta) []byte {
	for _, d := range deltas {
		g.take(d, p)
	}
	return encodeJSON(g.chunk(p, true))
}
