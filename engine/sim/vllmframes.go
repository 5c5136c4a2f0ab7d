package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"baton/engine"
)

// usage counts the tokens of an answer, in vLLM's order.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

func countUsage(prompt int, p *producer) *usage {
	n := p.delivered
	if p.struck(FaultMiscount) {
		n++
	}
	return &usage{prompt, prompt + n, n}
}

// A completionChunk is a chunk of /v1/completions.
type completionChunk struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	Created           int64              `json:"created"`
	Model             string             `json:"model"`
	Choices           []completionChoice `json:"choices"`
	Usage             *usage             `json:"usage,omitempty"`
	SystemFingerprint string             `json:"system_fingerprint,omitempty"`
}

type completionChoice struct {
	Index          int                 `json:"index"`
	Text           string              `json:"text"`
	Logprobs       *completionLogprobs `json:"logprobs"`
	FinishReason   *string             `json:"finish_reason"`
	StopReason     any                 `json:"stop_reason"`
	PromptTokenIDs []engine.TokenID    `json:"prompt_token_ids"`
	TokenIDs       []engine.TokenID    `json:"token_ids"`
}

type completionLogprobs struct {
	TextOffset    []int          `json:"text_offset"`
	TokenLogprobs []float        `json:"token_logprobs"`
	Tokens        []string       `json:"tokens"`
	TopLogprobs   []topByContent `json:"top_logprobs"`
}

// topByContent is an object from token to log-probability, best first.
type topByContent []namedLogprob

type namedLogprob struct {
	name  string
	value float
}

// MarshalJSON implements json.Marshaler.
func (t topByContent) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, e := range t {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := e.value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, encodeJSON(e.name)...), ':'), value...)
	}
	return append(b, '}'), nil
}

// completionsProtocol writes the chunks of /v1/completions.
type completionsProtocol struct {
	s       *Server
	id      string
	prompt  []engine.TokenID
	options vllmStreamOptions
	stop    engine.StopConditions
	ids     bool // return_token_ids
	asIDs   bool // return_tokens_as_token_ids
	text    textStream

	created int64
	begun   bool
	offset  int // of the next logprob's token
	last    engine.TokenID
}

func (c *completionsProtocol) chunk(choices ...completionChoice) *completionChunk {
	if c.created == 0 {
		c.created = time.Now().Unix()
	}
	if choices == nil {
		choices = []completionChoice{}
	}
	return &completionChunk{ID: c.id, Object: "text_completion", Created: c.created, Model: c.s.config.Model, Choices: choices}
}

func (c *completionsProtocol) step(d engine.Delta, p *producer) []byte {
	if !c.begun && len(d.TokenIDs) == 0 {
		return nil // vLLM skips outputs before the first token
	}
	return event(c.delta(d, p))
}

// delta returns the chunk of d.
func (c *completionsProtocol) delta(d engine.Delta, p *producer) *completionChunk {
	choice := completionChoice{Logprobs: c.logprobs(d)}
	for i, id := range d.TokenIDs {
		c.last = id
		if ends := i == len(d.TokenIDs)-1 && p.finish == engine.FinishStop; !ends {
			choice.Text += c.text.add(id)
		}
	}
	if p.stops != nil {
		choice.Text = p.stops.heldBack(p.finish != "")
	}
	if c.ids {
		choice.TokenIDs = append([]engine.TokenID{}, d.TokenIDs...)
		if !c.begun {
			choice.PromptTokenIDs = c.prompt
		}
	}
	c.begun = true
	chunk := c.chunk(choice)
	if d.FinishReason != "" {
		c.finish(chunk, d.FinishReason, p)
	}
	if c.options.ContinuousUsageStats {
		chunk.Usage = countUsage(len(c.prompt), p)
	}
	return chunk
}

// finish sets the finish reason of chunk.
func (c *completionsProtocol) finish(chunk *completionChunk, reason engine.FinishReason, p *producer) {
	s := string(reason)
	chunk.Choices[0].FinishReason = &s
	chunk.Choices[0].StopReason = c.s.stopReason(p, reason, c.last, &c.stop)
	if !c.options.IncludeUsage {
		chunk.SystemFingerprint = systemFingerprint // else the usage chunk has it
	}
}

func (c *completionsProtocol) logprobs(d engine.Delta) *completionLogprobs {
	if len(d.Logprobs) == 0 {
		return nil
	}
	out := &completionLogprobs{}
	for _, lp := range d.Logprobs {
		name := c.token(lp.ID)
		top := topByContent{}
		for _, t := range lp.Top {
			top = append(top, namedLogprob{c.token(t.ID), float(t.Logprob)})
		}
		if len(top) == 0 {
			top = topByContent{{name, float(lp.Logprob)}}
		}
		out.TextOffset = append(out.TextOffset, c.offset)
		out.TokenLogprobs = append(out.TokenLogprobs, float(lp.Logprob))
		out.Tokens = append(out.Tokens, name)
		out.TopLogprobs = append(out.TopLogprobs, top)
		c.offset += len(name)
	}
	return out
}

// token is how logprobs name a token.
func (c *completionsProtocol) token(id engine.TokenID) string {
	if c.asIDs {
		return fmt.Sprintf("token_id:%d", id)
	}
	return string(c.s.words.text(nil, id))
}

func (c *completionsProtocol) end(p *producer, alone bool) []byte {
	var out []byte
	if alone {
		out = event(c.delta(engine.Delta{FinishReason: p.finish}, p))
	}
	return append(append(out, c.usage(p)...), doneFrame...)
}

// usage returns the usage chunk, if it is asked for.
func (c *completionsProtocol) usage(p *producer) []byte {
	if !c.options.IncludeUsage {
		return nil
	}
	chunk := c.chunk()
	chunk.Usage, chunk.SystemFingerprint = countUsage(len(c.prompt), p), systemFingerprint
	return event(chunk)
}

// abort says so only after the first token: before it, vLLM drops the finish
// reason with the empty output.
func (c *completionsProtocol) abort(p *producer) []byte {
	if !c.begun {
		return append(c.usage(p), doneFrame...)
	}
	chunk := c.delta(engine.Delta{}, p)
	c.finish(chunk, "abort", p)
	return append(append(event(chunk), c.usage(p)...), doneFrame...)
}

func (c *completionsProtocol) failure(f *Fault) []byte { return vllmFailure(f, engineFailed) }

func (c *completionsProtocol) shutdown(p *producer) []byte { return vllmFailure(p.fault, engineDied) }

func (c *completionsProtocol) refusal(status int, message string) []byte {
	return vllmRefusal(status, message)
}

func (c *completionsProtocol) half(kind FaultKind, p *producer) []byte {
	chunk := c.chunk(completionChoice{Text: " 世", TokenIDs: []engine.TokenID{1234}})
	return halfEvent(event(chunk), kind)
}

func (c *completionsProtocol) whole(p *producer, deltas []engine.Delta) []byte {
	chunk := c.delta(join(deltas), p)
	c.finish(chunk, p.finish, p)
	chunk.Usage, chunk.SystemFingerprint = countUsage(len(c.prompt), p), systemFingerprint
	return encodeJSON(chunk)
}

// join makes one delta of several.
func join(deltas []engine.Delta) (all engine.Delta) {
	for _, d := range deltas {
		all.TokenIDs = append(all.TokenIDs, d.TokenIDs...)
		all.Logprobs = append(all.Logprobs, d.Logprobs...)
	}
	return all
}

// halfEvent cuts an event that holds the id 1234 and the character 世: after the
// first digits of the one, or after the first bytes of the other.
func halfEvent(event []byte, kind FaultKind) []byte {
	if kind == FaultHalfString {
		if i := bytes.Index(event, []byte("世")); i >= 0 {
			return event[:i+2]
		}
	}
	return event[:bytes.LastIndex(event, []byte("1234"))+2]
}

// What vLLM says when its engine core is gone, and of other failures.
const (
	engineDied   = "EngineCore encountered an issue. See stack trace (above) for the root cause."
	engineFailed = "Internal server error"
)

// vllmFailure is an error frame and the terminator. Code 400 is what versions
// before 0.19 called the death of the engine core.
func vllmFailure(f *Fault, message string) []byte {
	e := &vllmError{Message: message, Type: "InternalServerError", Code: f.status(http.StatusInternalServerError)}
	if e.Code == http.StatusBadRequest {
		e.Type = "BadRequestError"
	}
	if f.Message != "" {
		e.Message = f.Message
	}
	return append(e.frame(), doneFrame...)
}

// vllmRefusal is the body that goes with a status.
func vllmRefusal(status int, message string) []byte {
	e := &vllmError{Code: status, Message: engineFailed, Type: "InternalServerError"}
	switch status {
	case http.StatusServiceUnavailable:
		e.Type = "Service Unavailable"
		e.Message = "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
	case http.StatusTooManyRequests:
		e.Type, e.Message = "Too Many Requests", "Too many requests."
	case http.StatusUnauthorized:
		return []byte(`{"error":"Unauthorized"}`)
	case http.StatusForbidden:
		e.Type, e.Message = "PermissionDeniedError", "Forbidden."
	case http.StatusNotFound:
		e.Type, e.Message = "NotFoundError", "The model does not exist."
	default:
		if status < 500 {
			e.Type, e.Message = "BadRequestError", "The simulated worker refuses this request."
		}
	}
	if message != "" {
		e.Message = message
	}
	return e.envelope()
}

// A generateChunk is a chunk of /inference/v1/generate.
type generateChunk struct {
	RequestID  string           `json:"request_id"`
	Usage      *usage           `json:"usage"`
	OutputMode string           `json:"output_mode"`
	Choices    []generateChoice `json:"choices"`
}

type generateChoice struct {
	Index          int               `json:"index"`
	FinishReason   *string           `json:"finish_reason"`
	StopReason     any               `json:"stop_reason"`
	TokenIDs       []engine.TokenID  `json:"token_ids"`
	RoutedExperts  any               `json:"routed_experts"`
	SamplingMask   any               `json:"sampling_mask"`
	WeightVersions []weightVersion   `json:"weight_versions"`
	Logprobs       *generateLogprobs `json:"logprobs"`
}

type weightVersion struct {
	Version string `json:"version"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
}

type generateLogprobs struct {
	Content []rankedToken `json:"content"`
}

type rankedToken struct {
	rankedLogprob
	TopLogprobs []rankedLogprob `json:"top_logprobs"`
}

type rankedLogprob struct {
	TokenID engine.TokenID `json:"token_id"`
	Logprob float          `json:"logprob"`
	Rank    int            `json:"rank"`
}

// generateProtocol writes the chunks of /inference/v1/generate.
type generateProtocol struct {
	s            *Server
	id           string
	promptTokens int
	stop         engine.StopConditions
	options      vllmStreamOptions
	last         engine.TokenID
}

func (g *generateProtocol) step(d engine.Delta, p *producer) []byte { return event(g.delta(d, p)) }

func (g *generateProtocol) delta(d engine.Delta, p *producer) *generateChunk {
	choice := generateChoice{TokenIDs: append([]engine.TokenID{}, d.TokenIDs...)}
	for _, id := range d.TokenIDs {
		g.last = id
	}
	if len(d.Logprobs) > 0 {
		choice.Logprobs = &generateLogprobs{}
	}
	for _, lp := range d.Logprobs {
		ranked := rankedToken{rankedLogprob: rankedLogprob{lp.ID, float(lp.Logprob), 1}, TopLogprobs: []rankedLogprob{}}
		for i, t := range lp.Top {
			ranked.TopLogprobs = append(ranked.TopLogprobs, rankedLogprob{t.ID, float(t.Logprob), i + 1})
		}
		choice.Logprobs.Content = append(choice.Logprobs.Content, ranked)
	}
	if d.FinishReason != "" {
		s := string(d.FinishReason)
		choice.FinishReason, choice.StopReason = &s, g.s.stopReason(p, d.FinishReason, g.last, &g.stop)
		choice.WeightVersions = []weightVersion{{"default", 0, p.delivered}}
	}
	chunk := &generateChunk{RequestID: g.id, OutputMode: "tokens", Choices: []generateChoice{choice}}
	if g.options.ContinuousUsageStats {
		chunk.Usage = countUsage(g.promptTokens, p)
	}
	return chunk
}

func (g *generateProtocol) end(p *producer, alone bool) []byte {
	var out []byte
	if alone && g.s.profile.generate != generateDrops {
		out = event(g.delta(engine.Delta{FinishReason: p.finish}, p))
	}
	return append(append(out, g.usage(p)...), doneFrame...)
}

func (g *generateProtocol) usage(p *producer) []byte {
	if !g.options.IncludeUsage {
		return nil
	}
	return event(&generateChunk{RequestID: g.id, Usage: countUsage(g.promptTokens, p), OutputMode: "tokens", Choices: []generateChoice{}})
}

func (g *generateProtocol) abort(p *producer) []byte {
	var out []byte
	if g.s.profile.generate != generateDrops {
		out = event(g.delta(engine.Delta{FinishReason: "abort"}, p))
	}
	return append(append(out, g.usage(p)...), doneFrame...)
}

func (g *generateProtocol) failure(f *Fault) []byte { return vllmFailure(f, engineFailed) }

func (g *generateProtocol) shutdown(p *producer) []byte { return vllmFailure(p.fault, engineDied) }

func (g *generateProtocol) refusal(status int, message string) []byte {
	return vllmRefusal(status, message)
}

func (g *generateProtocol) half(kind FaultKind, p *producer) []byte {
	// There is no text in these chunks: a string is cut in the id instead.
	chunk := g.delta(engine.Delta{TokenIDs: []engine.TokenID{1234}}, p)
	if kind == FaultHalfString {
		chunk.RequestID = "世1234"
	}
	return halfEvent(event(chunk), kind)
}

func (g *generateProtocol) whole(p *producer, deltas []engine.Delta) []byte {
	d := join(deltas)
	d.FinishReason = p.finish
	chunk := g.delta(d, p)
	return encodeJSON(struct {
		RequestID string           `json:"request_id"`
		Model     string           `json:"model"`
		Created   int64            `json:"created"`
		Choices   []generateChoice `json:"choices"`
		Usage     *usage           `json:"usage"`
	}{g.id, g.s.config.Model, time.Now().Unix(), chunk.Choices, countUsage(g.promptTokens, p)})
}
