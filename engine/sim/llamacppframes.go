package sim

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"baton/engine"
)

// llamaProtocol writes the frames of /completion: one per token, except that a
// token which ends inside a character has none; its id is lost to the client.
type llamaProtocol struct {
	s      *Server
	req    *llamaRequest
	prompt []engine.TokenID
	budget int // as asked for; -1 = none
	bias   map[engine.TokenID]float64
	probs  int

	text    textStream
	stops   *stopStrings // nil = none
	last    engine.TokenID
	newLine bool
	sent    int // tokens that the frames so far count
	start   time.Time
	first   time.Time // when the first token came
}

// A llamaFrame is a frame that carries a token.
type llamaFrame struct {
	Index           int                `json:"index"`
	Content         string             `json:"content"`
	Tokens          []engine.TokenID   `json:"tokens"`
	Stop            bool               `json:"stop"`
	SlotID          int                `json:"id_slot"` // -1 in all frames but the last
	TokensPredicted int                `json:"tokens_predicted"`
	TokensEvaluated int                `json:"tokens_evaluated"`
	Probabilities   []llamaProbability `json:"completion_probabilities,omitempty"`
	Timings         *llamaTimings      `json:"timings,omitempty"`
}

type llamaProbability struct {
	llamaCandidate
	Top []llamaCandidate `json:"top_logprobs"`
}

type llamaCandidate struct {
	ID      engine.TokenID `json:"id"`
	Token   string         `json:"token"`
	Bytes   []int          `json:"bytes"`
	Logprob float          `json:"logprob"`
}

func (l *llamaProtocol) step(d engine.Delta, p *producer) []byte {
	var out []byte
	if l.first.IsZero() && len(d.TokenIDs) > 0 {
		l.first = time.Now()
	}
	for i, id := range d.TokenIDs {
		l.sent++
		l.last = id
		content := l.text.add(id)
		l.newLine = l.newLine || strings.Contains(content, "\n")
		if l.text.pending() {
			continue // no frame, and the next one has only its own id
		}
		if l.stops != nil {
			l.stops.add(id)
			content = l.stops.unlessPartial()
		}
		f := l.frame(content, id, p)
		if l.stops != nil && l.stops.hit != "" {
			timings := l.timings(l.sent)
			f.Timings = &timings // it has them only where a stop string ends the answer
		}
		if l.probs > 0 && i < len(d.Logprobs) {
			f.Probabilities = []llamaProbability{l.probability(d.Logprobs[i], content)}
		}
		out = append(out, event(f)...)
	}
	if d.FinishReason != "" {
		out = append(out, event(l.final(p, "", nil))...)
	}
	return out
}

func (l *llamaProtocol) frame(content string, id engine.TokenID, p *producer) *llamaFrame {
	f := &llamaFrame{Content: content, Tokens: []engine.TokenID{}, SlotID: -1, TokensPredicted: l.counted(p), TokensEvaluated: len(l.prompt)}
	if l.req.ReturnTokens {
		f.Tokens = append(f.Tokens, id)
	}
	return f
}

// counted is what a frame says of the number of tokens, its own included.
func (l *llamaProtocol) counted(p *producer) int {
	if f := p.fault; f != nil && f.Kind == FaultMiscount && f.due(l.sent-1, p.finish) {
		return l.sent + 1
	}
	return l.sent
}

// probability is the entry of a token. After lost tokens it holds the last id
// with the bytes of the whole content.
func (l *llamaProtocol) probability(lp engine.TokenLogprob, content string) llamaProbability {
	out := llamaProbability{llamaCandidate: llamaCandidate{lp.ID, content, byteList(content), float(lp.Logprob)}, Top: []llamaCandidate{}}
	for _, t := range lp.Top {
		text := string(l.s.words.text(nil, t.ID))
		out.Top = append(out.Top, llamaCandidate{t.ID, strings.ToValidUTF8(text, "\uFFFD"), byteList(text), float(t.Logprob)})
	}
	return out
}

// end returns the final frame unless step has sent it with the last token: the
// finish reason always comes in a frame of its own here.
func (l *llamaProtocol) end(p *producer, alone bool) []byte {
	if !alone {
		return nil
	}
	return event(l.final(p, "", nil))
}

// abort: llama.cpp has no such finish reason; it gives up with an error.
func (l *llamaProtocol) abort(p *producer) []byte {
	return event(l.errorOf(http.StatusInternalServerError, "Compute error."))
}

func (l *llamaProtocol) shutdown(p *producer) []byte { return l.abort(p) }

func (l *llamaProtocol) failure(f *Fault) []byte {
	message := f.Message
	if message == "" {
		message = "Compute error."
	}
	return event(l.errorOf(f.status(http.StatusInternalServerError), message))
}

func (l *llamaProtocol) errorOf(status int, message string) any {
	return struct {
		Error *llamaError `json:"error"`
	}{llamaStatus(status, message)}
}

func (l *llamaProtocol) refusal(status int, message string) []byte {
	if status == http.StatusServiceUnavailable && message == "" {
		// While it loads, llama.cpp answers with this order of keys.
		return []byte(`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
	}
	return llamaStatus(status, message).envelope()
}

// llamaStatus is the error that goes with a status.
func llamaStatus(status int, message string) *llamaError {
	e := &llamaError{Code: status, Message: "Compute error.", Type: "server_error"}
	switch status {
	case http.StatusServiceUnavailable:
		e.Message, e.Type = "Loading model", "unavailable_error"
	case http.StatusUnauthorized:
		e.Message, e.Type = "Invalid API Key", "authentication_error"
	case http.StatusForbidden:
		e.Message, e.Type = "Forbidden", "permission_error"
	case http.StatusNotFound:
		e.Message, e.Type = "File Not Found", "not_found_error"
	case http.StatusNotImplemented:
		e.Message, e.Type = "Not supported", "not_supported_error"
	default:
		if status < 500 {
			e.Message, e.Type = "The simulated worker refuses this request", "invalid_request_error"
		}
	}
	if message != "" {
		e.Message = message
	}
	return e
}

func (l *llamaProtocol) half(kind FaultKind, p *producer) []byte {
	f := l.frame(" 世", 1234, p)
	f.Tokens = []engine.TokenID{1234}
	return halfEvent(event(f), kind)
}

func (l *llamaProtocol) whole(p *producer, deltas []engine.Delta) []byte {
	var content strings.Builder
	all := join(deltas)
	for _, id := range all.TokenIDs {
		l.last = id
		content.WriteString(l.text.add(id))
	}
	if l.text.pending() {
		content.WriteString("\uFFFD")
	}
	text := content.String()
	if p.stops != nil && p.stops.hit != "" {
		text = p.stops.text[:p.stops.at]
	}
	l.sent, l.newLine = p.delivered, strings.Contains(text, "\n")
	ids := []engine.TokenID{}
	if l.req.ReturnTokens {
		ids = append(ids, all.TokenIDs...)
	}
	return encodeJSON(l.final(p, text, ids))
}

// A llamaFinal is the last frame, and the whole body where there is no stream.
type llamaFinal struct {
	Index              int              `json:"index"`
	Content            string           `json:"content"`
	Tokens             []engine.TokenID `json:"tokens"`
	SlotID             int              `json:"id_slot"`
	Stop               bool             `json:"stop"`
	Model              string           `json:"model"`
	TokensPredicted    int              `json:"tokens_predicted"`
	TokensEvaluated    int              `json:"tokens_evaluated"`
	GenerationSettings llamaSettings    `json:"generation_settings"`
	Prompt             string           `json:"prompt"`
	HasNewLine         bool             `json:"has_new_line"`
	Truncated          bool             `json:"truncated"`
	StopType           string           `json:"stop_type"`
	StoppingWord       string           `json:"stopping_word"`
	TokensCached       int              `json:"tokens_cached"`
	Timings            llamaTimings     `json:"timings"`
}

type llamaTimings struct {
	CacheN              int   `json:"cache_n"`
	PromptN             int   `json:"prompt_n"`
	PromptMS            float `json:"prompt_ms"`
	PromptPerTokenMS    float `json:"prompt_per_token_ms"`
	PromptPerSecond     float `json:"prompt_per_second"`
	PredictedN          int   `json:"predicted_n"`
	PredictedMS         float `json:"predicted_ms"`
	PredictedPerTokenMS float `json:"predicted_per_token_ms"`
	PredictedPerSecond  float `json:"predicted_per_second"`
}

func (l *llamaProtocol) final(p *producer, content string, ids []engine.TokenID) *llamaFinal {
	stopType, stoppingWord := "limit", ""
	if p.finish == engine.FinishStop {
		stopType = "eos"
	}
	if p.stops != nil && p.stops.hit != "" {
		stopType, stoppingWord = "word", p.stops.hit
	}
	if ids == nil {
		ids = []engine.TokenID{}
	}
	return &llamaFinal{
		Content: content, Tokens: ids, Stop: true, Model: l.s.config.Model,
		TokensPredicted: l.counted(p), TokensEvaluated: len(l.prompt),
		GenerationSettings: l.settings(), Prompt: strings.ToValidUTF8(l.s.words.all(l.prompt), "\uFFFD"),
		HasNewLine: l.newLine, StopType: stopType, StoppingWord: stoppingWord,
		Truncated:    p.finish == engine.FinishLength && len(l.prompt)+p.delivered >= l.s.config.ContextLength,
		TokensCached: len(l.prompt) + p.delivered - 1,
		Timings:      l.timings(p.delivered),
	}
}

func (l *llamaProtocol) timings(made int) llamaTimings {
	first := l.first
	if first.IsZero() {
		first = time.Now()
	}
	per := func(a, b float64) float {
		if b == 0 {
			return 0
		}
		return float(a / b)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	prompt, predicted := ms(first.Sub(l.start)), ms(time.Since(first))
	n, k := float64(len(l.prompt)), float64(made)
	return llamaTimings{
		PromptN: len(l.prompt), PromptMS: float(prompt), PromptPerTokenMS: per(prompt, n), PromptPerSecond: per(1000*n, prompt),
		PredictedN: made, PredictedMS: float(predicted), PredictedPerTokenMS: per(predicted, k), PredictedPerSecond: per(1000*k, predicted),
	}
}

// llamaSettings are the settings that the last frame echoes, in its order.
type llamaSettings struct {
	Seed             int64       `json:"seed"`
	Temperature      float       `json:"temperature"`
	DynatempRange    float       `json:"dynatemp_range"`
	DynatempExponent float       `json:"dynatemp_exponent"`
	TopK             int         `json:"top_k"`
	TopP             float       `json:"top_p"`
	MinP             float       `json:"min_p"`
	TopNSigma        float       `json:"top_n_sigma"`
	XTCProbability   float       `json:"xtc_probability"`
	XTCThreshold     float       `json:"xtc_threshold"`
	TypicalP         float       `json:"typical_p"`
	RepeatLastN      int         `json:"repeat_last_n"`
	RepeatPenalty    float       `json:"repeat_penalty"`
	PresencePenalty  float       `json:"presence_penalty"`
	FrequencyPenalty float       `json:"frequency_penalty"`
	DryMultiplier    float       `json:"dry_multiplier"`
	DryBase          float       `json:"dry_base"`
	DryAllowedLength int         `json:"dry_allowed_length"`
	DryPenaltyLastN  int         `json:"dry_penalty_last_n"`
	DryBreakers      []string    `json:"dry_sequence_breakers,omitempty"`
	Mirostat         int         `json:"mirostat"`
	MirostatTau      float       `json:"mirostat_tau"`
	MirostatEta      float       `json:"mirostat_eta"`
	AdaptiveTarget   float       `json:"adaptive_target"`
	AdaptiveDecay    float       `json:"adaptive_decay"`
	Stop             *[]string   `json:"stop,omitempty"`
	MaxTokens        int         `json:"max_tokens"`
	NPredict         int         `json:"n_predict"`
	NKeep            int         `json:"n_keep"`
	NDiscard         int         `json:"n_discard"`
	IgnoreEOS        bool        `json:"ignore_eos"`
	Stream           bool        `json:"stream"`
	LogitBias        *[]biasItem `json:"logit_bias,omitempty"`
	NProbs           int         `json:"n_probs"`
	MinKeep          int         `json:"min_keep"`
	*llamaGrammarSettings
	ChatFormat         string   `json:"chat_format"`
	ReasoningFormat    string   `json:"reasoning_format"`
	ReasoningInContent bool     `json:"reasoning_in_content"`
	GenerationPrompt   string   `json:"generation_prompt"`
	Samplers           []string `json:"samplers"`
	SpeculativeTypes   string   `json:"speculative.types"`
	TimingsPerToken    bool     `json:"timings_per_token"`
	PostSamplingProbs  bool     `json:"post_sampling_probs"`
	BackendSampling    bool     `json:"backend_sampling"`
	Lora               []string `json:"lora"`
}

// llamaGrammarSettings are missing where /props and /slots show settings.
type llamaGrammarSettings struct {
	Grammar         string   `json:"grammar"`
	GrammarLazy     bool     `json:"grammar_lazy"`
	GrammarTriggers []string `json:"grammar_triggers"`
	PreservedTokens []string `json:"preserved_tokens"`
}

type biasItem struct {
	Bias  float          `json:"bias"`
	Token engine.TokenID `json:"token"`
}

// randomSeed is the seed that asks for a random one, and how llama.cpp reports
// that none was given.
const randomSeed = 4294967295

// defaultSettings are llama.cpp's own defaults, as /props shows them.
func defaultSettings() llamaSettings {
	return llamaSettings{
		Seed: randomSeed, Temperature: single(0.8), DynatempExponent: 1, TopK: 40, TopP: single(0.95), MinP: single(0.05),
		TopNSigma: -1, XTCThreshold: single(0.1), TypicalP: 1, RepeatLastN: 64, RepeatPenalty: 1,
		DryBase: 1.75, DryAllowedLength: 2, DryPenaltyLastN: 64, MirostatTau: 5, MirostatEta: single(0.1),
		AdaptiveTarget: -1, AdaptiveDecay: single(0.9), MaxTokens: -1, NPredict: -1,
		ChatFormat: "Content-only", ReasoningFormat: "none",
		Samplers:         []string{"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"},
		SpeculativeTypes: "none", Lora: []string{},
	}
}

// settings are those of this request.
func (l *llamaProtocol) settings() llamaSettings {
	r, s := l.req, defaultSettings()
	set := func(to *float, from *float64) {
		if from != nil {
			*to = single(*from)
		}
	}
	set(&s.Temperature, r.Temperature)
	set(&s.TopP, r.TopP)
	set(&s.MinP, r.MinP)
	set(&s.TypicalP, r.TypicalP)
	set(&s.RepeatPenalty, r.RepeatPenalty)
	set(&s.PresencePenalty, r.PresencePenalty)
	set(&s.FrequencyPenalty, r.FrequencyPenalty)
	s.TopK, s.RepeatLastN = orDefault(r.TopK, s.TopK), orDefault(r.RepeatLastN, s.RepeatLastN)
	if r.Seed != nil && *r.Seed >= 0 {
		s.Seed = *r.Seed
	}
	stop := append([]string{}, r.Stop...)
	bias := []biasItem{}
	for id, b := range l.bias {
		bias = append(bias, biasItem{float(max(b, -1e9)), id})
	}
	slices.SortFunc(bias, func(a, b biasItem) int { return int(a.Token - b.Token) })
	s.DryBreakers = []string{"\n", ":", "\"", "*"}
	s.Stop, s.LogitBias = &stop, &bias
	s.MaxTokens, s.NPredict, s.IgnoreEOS, s.Stream, s.NProbs = l.budget, l.budget, r.IgnoreEOS, r.Stream, l.probs
	s.ReasoningFormat = "deepseek"
	s.llamaGrammarSettings = &llamaGrammarSettings{Grammar: r.Grammar, GrammarTriggers: []string{}, PreservedTokens: []string{}}
	return s
}
