package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"baton/engine"
)

// The paths of vLLM that generate.
const (
	vllmCompletions = "/v1/completions"
	vllmGenerate    = "/inference/v1/generate"
)

// routeVLLM adds the endpoints of vLLM 0.32 that a frontend uses.
func (s *Server) routeVLLM() {
	s.mux.HandleFunc("POST "+vllmCompletions, s.vllmCompletions)
	if s.profile.generate != generateMissing {
		s.mux.HandleFunc("POST "+vllmGenerate, s.vllmGenerate)
	}
	if s.profile.generate == generateGated {
		s.mux.HandleFunc("POST /inference/v1/abort_requests", s.vllmAbort)
	}
	s.mux.HandleFunc("GET /v1/models", s.vllmModels)
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /load", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, map[string]int{"server_load": 0}) // what it always says without its flag
	})
	s.mux.HandleFunc("GET /version", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, map[string]string{"version": s.profile.version})
	})
	s.mux.HandleFunc("GET /openapi.json", s.vllmOpenAPI)
	s.mux.HandleFunc("GET /metrics", s.vllmMetrics)
	s.mux.HandleFunc("POST /tokenize", s.vllmTokenize)
	s.mux.HandleFunc("POST /detokenize", s.vllmDetokenize)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	})
}

// vllmSampling are the parameters that both endpoints share, by vLLM's names.
type vllmSampling struct {
	N                 *int               `json:"n"`
	MaxTokens         *int               `json:"max_tokens"`
	MinTokens         *int               `json:"min_tokens"`
	Temperature       *float64           `json:"temperature"`
	TopP              *float64           `json:"top_p"`
	TopK              *int               `json:"top_k"`
	MinP              *float64           `json:"min_p"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	PresencePenalty   *float64           `json:"presence_penalty"`
	FrequencyPenalty  *float64           `json:"frequency_penalty"`
	Seed              *int64             `json:"seed"`
	LogitBias         map[string]float64 `json:"logit_bias"`
	Stop              json.RawMessage    `json:"stop"`
	StopTokenIDs      []engine.TokenID   `json:"stop_token_ids"`
	IgnoreEOS         *bool              `json:"ignore_eos"`
	Logprobs          *int               `json:"logprobs"`
	PromptLogprobs    *int               `json:"prompt_logprobs"`
	StructuredOutputs map[string]any     `json:"structured_outputs"`
}

// vllmStreamOptions say what a stream carries besides the answer.
type vllmStreamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// A vllmRequest is the body of /v1/completions.
type vllmRequest struct {
	vllmSampling
	Model                 *string            `json:"model"`
	Prompt                json.RawMessage    `json:"prompt"`
	Stream                bool               `json:"stream"`
	StreamOptions         *vllmStreamOptions `json:"stream_options"`
	ReturnTokenIDs        *bool              `json:"return_token_ids"`
	ReturnTokensAsTokenID *bool              `json:"return_tokens_as_token_ids"`
	Priority              int                `json:"priority"`
	RequestID             string             `json:"request_id"`
}

// A vllmGenerateRequest is the body of /inference/v1/generate.
type vllmGenerateRequest struct {
	Model          *string            `json:"model"`
	TokenIDs       []engine.TokenID   `json:"token_ids"`
	SamplingParams *vllmSampling      `json:"sampling_params"`
	Stream         bool               `json:"stream"`
	StreamOptions  *vllmStreamOptions `json:"stream_options"`
	RequestID      string             `json:"request_id"`
}

// A vllmError is a refusal in vLLM's form.
type vllmError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

// envelope is the body of an error response.
func (e *vllmError) envelope() []byte {
	return encodeJSON(struct {
		Error *vllmError `json:"error"`
	}{e})
}

// frame is the error within a stream, spaced as Python's json module does.
func (e *vllmError) frame() []byte {
	param := []byte("null")
	if e.Param != nil {
		param = encodeJSON(*e.Param)
	}
	return fmt.Appendf(nil, "data: {\"error\": {\"message\": %s, \"type\": %s, \"param\": %s, \"code\": %d}}\n\n",
		encodeJSON(e.Message), encodeJSON(e.Type), param, e.Code)
}

func badRequest(param, format string, args ...any) *vllmError {
	e := &vllmError{Message: fmt.Sprintf(format, args...), Type: "BadRequestError", Code: http.StatusBadRequest}
	if param != "" {
		e.Param = &param
	}
	return e
}

func badSchema(err error) *vllmError {
	return &vllmError{Message: err.Error(), Type: "Bad Request", Code: http.StatusBadRequest}
}

func (s *Server) vllmCompletions(w http.ResponseWriter, r *http.Request) {
	var req vllmRequest
	body, err := readBody(r)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	var prompt []engine.TokenID
	if err == nil {
		prompt, err = s.vllmPrompt(req.Prompt)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, badSchema(err).envelope())
		return
	}
	base := s.name(r, req.RequestID)
	s.record(r, base, prompt, body, "prompt")
	options := orDefault(req.StreamOptions, vllmStreamOptions{})
	output, refused := s.checkVLLM(&req.vllmSampling, req.Model, prompt)
	if refused == nil && req.Priority != 0 && s.profile.noPriorities {
		refused = badRequest("", "Got priority %d but Priority scheduling is not enabled.", req.Priority)
	}
	if refused == nil && req.StreamOptions != nil && !req.Stream {
		refused = badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	if refused != nil {
		s.count(&s.stats.Failed, 1)
		writeJSON(w, refused.Code, refused.envelope())
		return
	}
	sampling, stop := s.vllmParams(&req.vllmSampling, len(prompt), 16)
	a := s.attempt(w, r, base, req.Stream)
	a.early = true
	a.protocol = &completionsProtocol{
		s: s, id: "cmpl-" + base, prompt: prompt, options: options, stop: stop,
		ids: orDefault(req.ReturnTokenIDs, false) && !s.profile.noTokenIDs, asIDs: orDefault(req.ReturnTokensAsTokenID, false),
		text: textStream{words: s.words},
	}
	if slices.Contains(s.profile.fields, "structured_outputs") { // else it is ignored
		a.constraint = req.constraint()
	}
	a.serve(prompt, sampling, stop, readStops(req.Stop), output)
}

func (s *Server) vllmGenerate(w http.ResponseWriter, r *http.Request) {
	if s.profile.generate == generateGated && !s.config.Server.ScaleOut {
		s.refuseScaleOut(w)
		return
	}
	var req vllmGenerateRequest
	body, err := readBody(r)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	req.Stream = req.Stream && s.profile.generate != generateWhole
	switch {
	case err != nil:
	case req.SamplingParams == nil:
		err = fmt.Errorf("sampling_params: field required")
	case len(req.TokenIDs) == 0:
		err = fmt.Errorf("token_ids: list should have at least 1 item")
	case slices.Min(req.TokenIDs) < 0:
		err = fmt.Errorf("token_ids: input should be greater than or equal to 0")
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, badSchema(err).envelope())
		return
	}
	base := s.name(r, req.RequestID)
	s.record(r, base, req.TokenIDs, body, "token_ids")
	output, refused := s.checkVLLM(req.SamplingParams, req.Model, req.TokenIDs)
	if refused != nil {
		s.count(&s.stats.Failed, 1)
		if refused.Param != nil && *refused.Param == "input_tokens" { // this endpoint's own words
			refused = badRequest("", "The decoder prompt (length %d) is longer than the maximum model length of %d. "+
				"Make sure that `max_model_len` is no smaller than the number of text tokens.", len(req.TokenIDs), s.config.ContextLength)
		}
		if req.Stream && refused.Code == http.StatusBadRequest {
			// The stream has begun before the prompt is looked at.
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = w.Write(append(refused.frame(), doneFrame...))
			return
		}
		writeJSON(w, refused.Code, refused.envelope())
		return
	}
	sampling, stop := s.vllmParams(req.SamplingParams, len(req.TokenIDs), math.MaxInt)
	a := s.attempt(w, r, base, req.Stream)
	a.early = true
	a.protocol = &generateProtocol{
		s: s, id: "generate-tokens-" + base, promptTokens: len(req.TokenIDs), stop: stop,
		options: orDefault(req.StreamOptions, vllmStreamOptions{}),
	}
	a.constraint = req.SamplingParams.constraint()
	a.serve(req.TokenIDs, sampling, stop, readStops(req.SamplingParams.Stop), output)
}

// attempt begins an attempt; its protocol is still to be set.
func (s *Server) attempt(w http.ResponseWriter, r *http.Request, id string, stream bool) *attempt {
	return &attempt{
		s: s, w: w, out: http.NewResponseController(w), ctx: r.Context(), id: id, stream: stream,
		fault: s.faults.take(id), aborted: make(chan struct{}),
	}
}

func (s *Server) refuseScaleOut(w http.ResponseWriter) {
	e := &vllmError{Type: "PermissionDeniedError", Code: http.StatusForbidden,
		Message: "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to use them."}
	writeJSON(w, e.Code, e.envelope())
}

// vllmPrompt reads a prompt: ids, or a text. Several prompts at once are not simulated.
func (s *Server) vllmPrompt(raw json.RawMessage) ([]engine.TokenID, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return s.words.tokenizer.Encode(text, true), nil
	}
	var ids []engine.TokenID
	if err := json.Unmarshal(raw, &ids); err != nil {
		return nil, fmt.Errorf("prompt: want a string or a list of ids: %w", err)
	}
	return ids, nil
}

// checkVLLM validates what both endpoints share, as vLLM does.
func (s *Server) checkVLLM(p *vllmSampling, model *string, prompt []engine.TokenID) (engine.OutputOptions, *vllmError) {
	var output engine.OutputOptions
	if model != nil && *model != s.config.Model {
		name := "model"
		return output, &vllmError{Type: "NotFoundError", Param: &name, Code: http.StatusNotFound,
			Message: fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", *model, s.config.Model)}
	}
	if e := s.checkVLLMPrompt(prompt); e != nil {
		return output, e
	}
	if e := s.checkVLLMSampling(p); e != nil {
		return output, e
	}
	if p.Logprobs != nil {
		output = engine.OutputOptions{Logprobs: true, TopLogprobs: *p.Logprobs}
	}
	return output, nil
}

func (s *Server) checkVLLMPrompt(prompt []engine.TokenID) *vllmError {
	context := s.config.ContextLength
	switch n := len(prompt); {
	case n == 0:
		return badRequest("", "The decoder prompt cannot be empty")
	case n > context:
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input tokens, "+
			"which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "+
			"(parameter=input_tokens, value=%d)", context, n, n)
	case n == context:
		return tooFewTokens(0)
	}
	for _, id := range prompt {
		if id < 0 || int(id) >= s.config.VocabSize {
			return badRequest("", "Token id %d is out of vocabulary", id)
		}
	}
	return nil
}

func tooFewTokens(n int) *vllmError {
	return badRequest("max_tokens", "max_tokens must be at least 1, got %d. (parameter=max_tokens, value=%d)", n, n)
}

// maxLogprobs is vLLM's --max-logprobs.
const maxLogprobs = 20

func (s *Server) checkVLLMSampling(p *vllmSampling) *vllmError {
	outside := func(name string, value *float64, low, high float64) *vllmError {
		if value != nil && (*value < low || *value > high) {
			return badRequest(name, "%s must be in [%v, %v], got %v.", name, low, high, *value)
		}
		return nil
	}
	for _, e := range []*vllmError{
		outside("temperature", p.Temperature, 0, math.MaxFloat64),
		outside("top_p", p.TopP, math.SmallestNonzeroFloat64, 1),
		outside("min_p", p.MinP, 0, 1),
		outside("presence_penalty", p.PresencePenalty, -2, 2),
		outside("frequency_penalty", p.FrequencyPenalty, -2, 2),
		outside("repetition_penalty", p.RepetitionPenalty, math.SmallestNonzeroFloat64, math.MaxFloat64),
	} {
		if e != nil {
			return e
		}
	}
	maxTokens, minTokens := orDefault(p.MaxTokens, math.MaxInt), orDefault(p.MinTokens, 0)
	switch {
	case orDefault(p.N, 1) != 1:
		return badRequest("n", "n must be 1: the simulated worker gives one answer per request")
	case maxTokens < 1:
		return tooFewTokens(maxTokens)
	case minTokens < 0:
		return badRequest("min_tokens", "min_tokens must be greater than or equal to 0, got %d.", minTokens)
	case minTokens > maxTokens:
		return badRequest("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", maxTokens, minTokens)
	case orDefault(p.TopK, 0) < -1:
		return badRequest("top_k", "top_k must be 0 (disable), or at least 1, got %d.", *p.TopK)
	case orDefault(p.Logprobs, 0) < 0 || orDefault(p.Logprobs, 0) > maxLogprobs:
		return badRequest("logprobs", "Requested sample logprobs of %d, which is greater than max allowed: %d", *p.Logprobs, maxLogprobs)
	case countKinds(p.StructuredOutputs) > 1:
		return badRequest("structured_outputs", "You can only use one kind of structured outputs constraint but multiple are specified: %v", p.StructuredOutputs)
	}
	for key := range p.LogitBias {
		if id, err := strconv.Atoi(key); err != nil || id < 0 || id >= s.config.VocabSize {
			return badRequest("logit_bias", "token_id(s) [%s] in logit_bias contain out-of-vocab token ids. Vocabulary size: %d", key, s.config.VocabSize)
		}
	}
	return nil
}

// constraint reads the one kind that is set.
func (p *vllmSampling) constraint() *engine.Constraint {
	if countKinds(p.StructuredOutputs) == 0 {
		return nil
	}
	var kinds struct {
		JSON          json.RawMessage `json:"json"`
		JSONObject    bool            `json:"json_object"`
		Regex         string          `json:"regex"`
		Choice        []string        `json:"choice"`
		Grammar       string          `json:"grammar"`
		StructuralTag json.RawMessage `json:"structural_tag"`
	}
	if json.Unmarshal(encodeJSON(p.StructuredOutputs), &kinds) != nil {
		return nil
	}
	return &engine.Constraint{JSONSchema: kinds.JSON, JSONObject: kinds.JSONObject, Regex: kinds.Regex,
		Choice: kinds.Choice, Grammar: kinds.Grammar, StructuralTag: kinds.StructuralTag}
}

// countKinds counts the constraints that are set.
func countKinds(constraints map[string]any) int {
	n := 0
	for _, kind := range []string{"json", "regex", "choice", "grammar", "json_object", "structural_tag"} {
		if constraints[kind] != nil {
			n++
		}
	}
	return n
}

// vllmParams turns valid parameters into the model's own; max_tokens is clamped
// to the room, which the client is not told.
func (s *Server) vllmParams(p *vllmSampling, prompt, maxTokens int) (engine.SamplingParams, engine.StopConditions) {
	bias := map[engine.TokenID]float64{}
	for key, b := range p.LogitBias {
		if id, err := strconv.Atoi(key); err == nil {
			bias[engine.TokenID(id)] = max(-biasLimit, min(b, biasLimit))
		}
	}
	return engine.SamplingParams{Temperature: orDefault(p.Temperature, 1), Seed: p.Seed, LogitBias: bias},
		engine.StopConditions{
			MaxTokens: min(orDefault(p.MaxTokens, maxTokens), s.config.ContextLength-prompt),
			MinTokens: orDefault(p.MinTokens, 0),
			TokenIDs:  p.StopTokenIDs,
			IgnoreEOS: orDefault(p.IgnoreEOS, false),
		}
}

func (s *Server) vllmAbort(w http.ResponseWriter, r *http.Request) {
	if !s.config.Server.ScaleOut {
		s.refuseScaleOut(w)
		return
	}
	var req struct {
		RequestIDs []string `json:"request_ids"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.RequestIDs == nil {
		writeJSON(w, http.StatusBadRequest, badSchema(fmt.Errorf("request_ids: field required")).envelope())
		return
	}
	s.abortRequests(req.RequestIDs)
}

// abortRequests ends the attempts that the engine knows by these names.
func (s *Server) abortRequests(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.active {
		for _, prefix := range []string{"cmpl-", "generate-tokens-"} {
			name := prefix + a.id
			if (slices.Contains(names, name) || slices.Contains(names, name+"-0")) && !closed(a.aborted) {
				close(a.aborted)
			}
		}
	}
}

// isEOS reports whether id is one of the worker's own end ids.
func (s *Server) isEOS(id engine.TokenID) bool { return slices.Contains(s.config.EOS, id) }

// stopReason is what vLLM says of the end: null for an end id or the budget,
// the id for a stop id, the string for a stop string.
func (s *Server) stopReason(p *producer, finish engine.FinishReason, last engine.TokenID, stop *engine.StopConditions) any {
	if finish == engine.FinishStop && p.stops != nil && p.stops.hit != "" {
		return p.stops.hit
	}
	if finish != engine.FinishStop || s.isEOS(last) && !stop.IgnoreEOS || !slices.Contains(stop.TokenIDs, last) {
		return nil
	}
	return last
}

func (s *Server) vllmTokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Prompt string `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeJSON(w, http.StatusBadRequest, badSchema(err).envelope())
		return
	}
	ids := s.words.tokenizer.Encode(req.Prompt, true)
	writeValue(w, http.StatusOK, struct {
		Count       int              `json:"count"`
		MaxModelLen int              `json:"max_model_len"`
		Tokens      []engine.TokenID `json:"tokens"`
		TokenStrs   any              `json:"token_strs"`
	}{len(ids), s.config.ContextLength, ids, nil})
}

func (s *Server) vllmDetokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeJSON(w, http.StatusBadRequest, badSchema(err).envelope())
		return
	}
	writeValue(w, http.StatusOK, map[string]string{"prompt": strings.ToValidUTF8(s.words.all(req.Tokens), "\uFFFD")})
}
