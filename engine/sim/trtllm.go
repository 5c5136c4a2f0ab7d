package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"baton/engine"
)

// routeTRTLLM adds the endpoints of TensorRT-LLM's server that a frontend uses,
// and the one that it must not.
func (s *Server) routeTRTLLM() {
	s.mux.HandleFunc("POST /v1/completions", s.trtCompletions)
	s.mux.HandleFunc("GET /v1/models", s.trtModels)
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /health_generate", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "Generation health check OK") })
	s.mux.HandleFunc("GET /version", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, map[string]string{"version": s.profile.version})
	})
	s.mux.HandleFunc("GET /server_info", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, map[string]any{"disaggregated_params": nil})
	})
	s.mux.HandleFunc("GET /openapi.json", s.trtOpenAPI)
	s.mux.HandleFunc("GET /metrics", s.trtMetrics)
	if s.profile.tokenize {
		s.mux.HandleFunc("POST /_internal/tokenize", s.trtTokenize)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	})
}

// trtFields are the fields of a request that every version knows. Another one is
// refused.
var trtFields = []string{
	"model", "prompt", "best_of", "echo", "frequency_penalty", "logit_bias", "logprobs", "max_tokens", "n", "presence_penalty", "seed", "stop",
	"stream", "stream_options", "suffix", "temperature", "top_p", "user", "lora_request", "use_beam_search", "top_k", "top_p_min", "min_p",
	"repetition_penalty", "length_penalty", "early_stopping", "stop_token_ids", "include_stop_str_in_output", "ignore_eos", "min_tokens",
	"skip_special_tokens", "spaces_between_special_tokens", "truncate_prompt_tokens", "return_context_logits", "detokenize", "add_special_tokens",
	"response_format", "disaggregated_params",
}

// trtKnown are the fields that this version knows.
func (s *Server) trtKnown() []string { return slices.Concat(trtFields, s.profile.fields) }

// A trtRequest is the body of /v1/completions.
type trtRequest struct {
	Model             *string            `json:"model"`
	Prompt            json.RawMessage    `json:"prompt"`
	Stream            bool               `json:"stream"`
	StreamOptions     *trtStreamOptions  `json:"stream_options"`
	Detokenize        *bool              `json:"detokenize"`
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
	IgnoreLength      *int               `json:"prompt_ignore_length"`
	Seed              *int64             `json:"seed"`
	LogitBias         map[string]float64 `json:"logit_bias"`
	Stop              json.RawMessage    `json:"stop"`
	StopTokenIDs      []engine.TokenID   `json:"stop_token_ids"`
	IncludeStop       bool               `json:"include_stop_str_in_output"`
	IgnoreEOS         bool               `json:"ignore_eos"`
	Logprobs          *int               `json:"logprobs"`
	Priority          *float64           `json:"priority"`
	ResponseFormat    *trtFormat         `json:"response_format"`
}

// A trtFormat is a constraint.
type trtFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
	Regex  string          `json:"regex"`
	EBNF   string          `json:"ebnf"`
}

func (f *trtFormat) constraint() *engine.Constraint {
	switch {
	case f == nil || f.Type == "text":
		return nil
	case f.Type == "json":
		return &engine.Constraint{JSONSchema: f.Schema}
	case f.Type == "regex":
		return &engine.Constraint{Regex: f.Regex}
	case f.Type == "structural_tag":
		return &engine.Constraint{StructuralTag: json.RawMessage("{}")}
	}
	return &engine.Constraint{Grammar: f.EBNF}
}

type trtStreamOptions struct {
	IncludeUsage         *bool `json:"include_usage"`
	ContinuousUsageStats bool  `json:"continuous_usage_stats"`
}

// trtFlat is the error object of whatever goes wrong with a request on its way.
func trtFlat(status int, kind, message string) []byte {
	return encodeJSON(struct {
		Object  string  `json:"object"`
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}{"error", message, kind, nil, status})
}

// refuseTRT is the answer to what an exception was raised for.
func (s *Server) refuseTRT(w http.ResponseWriter, format string, args ...any) {
	s.count(&s.stats.Failed, 1)
	writeJSON(w, http.StatusBadRequest, trtFlat(http.StatusBadRequest, "BadRequestError", fmt.Sprintf(format, args...)))
}

func (s *Server) trtCompletions(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		writeValue(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	var req trtRequest
	if fault := s.trtForm(body, &req); fault != "" {
		s.count(&s.stats.Failed, 1)
		writeValue(w, http.StatusBadRequest, map[string]string{"error": fault})
		return
	}
	prompt, err := s.vllmPrompt(req.Prompt)
	if err != nil {
		s.refuseTRT(w, "%v", err)
		return
	}
	id := s.name(r, "")
	s.record(r, id, prompt, body, "prompt")
	if message := s.checkTRT(&req, prompt); message != "" {
		s.refuseTRT(w, "%s", message)
		return
	}
	bias := map[engine.TokenID]float64{}
	for key, b := range req.LogitBias {
		if id, err := strconv.Atoi(key); err == nil {
			bias[engine.TokenID(id)] = b
		}
	}
	var output engine.OutputOptions
	if n := orDefault(req.Logprobs, 0); n > 0 {
		output = engine.OutputOptions{Logprobs: true, TopLogprobs: n}
	}
	stop := engine.StopConditions{
		MaxTokens: min(orDefault(req.MaxTokens, s.config.ContextLength), s.config.ContextLength-len(prompt)),
		TokenIDs:  req.StopTokenIDs, IgnoreEOS: req.IgnoreEOS,
	}
	stop.MinTokens = max(0, orDefault(req.MinTokens, 0)-len(prompt)) // it is held against prompt and output
	temperature := orDefault(req.Temperature, 1)
	if orDefault(req.TopK, 0) == 1 {
		temperature = 0
	}
	a := s.attempt(w, r, id, req.Stream)
	a.early = true
	a.protocol = &trtProtocol{s: s, req: &req, id: "cmpl-" + id, promptTokens: len(prompt), stop: stop, text: textStream{words: s.words}}
	a.constraint = req.ResponseFormat.constraint()
	a.serve(prompt, engine.SamplingParams{Temperature: temperature, Seed: req.Seed, LogitBias: bias}, stop, readStops(req.Stop), output)
}

// trtForm decodes a request and says what is wrong with its form, as the server's
// checks of it do.
func (s *Server) trtForm(body []byte, req *trtRequest) string {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return err.Error()
	}
	known := s.trtKnown()
	for name, value := range all {
		if !slices.Contains(known, name) {
			return fmt.Sprintf("[{'type': 'extra_forbidden', 'loc': ('body', '%s'), 'msg': 'Extra inputs are not permitted', 'input': %s}]", name, value)
		}
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(req); err != nil {
		return fmt.Sprintf("[{'type': 'type_error', 'loc': ('body',), 'msg': '%v'}]", err)
	}
	switch {
	case req.Model == nil:
		return "[{'type': 'missing', 'loc': ('body', 'model'), 'msg': 'Field required'}]"
	case len(req.Prompt) == 0:
		return "[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}]"
	case req.StreamOptions != nil && !req.Stream:
		return "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, Stream options can only be defined when stream is true.'}]"
	case req.Priority != nil && (*req.Priority < 0 || *req.Priority > 1):
		return "[{'type': 'less_than_equal', 'loc': ('body', 'priority'), 'msg': 'Input should be less than or equal to 1'}]"
	}
	return ""
}

// checkTRT says what the engine makes an exception of.
func (s *Server) checkTRT(req *trtRequest, prompt []engine.TokenID) string {
	context := s.config.ContextLength
	switch n := len(prompt); {
	case n == 0:
		return "prompt is empty"
	case n >= context:
		return fmt.Sprintf("The sum of prompt length (%d.0), query length (0) should not exceed max_num_tokens (%d)", n, context-1)
	case slices.ContainsFunc(prompt, func(id engine.TokenID) bool { return id < 0 || int(id) >= s.config.VocabSize }):
		return "Token ID out of range"
	case orDefault(req.N, 1) != 1:
		return "n must be 1: the simulated worker gives one answer per request"
	case orDefault(req.MaxTokens, 1) < 1:
		return fmt.Sprintf("max_tokens must be at least 1, got %d", *req.MaxTokens)
	case orDefault(req.TopK, 0) < 0:
		return fmt.Sprintf("require top_k >= 0, got top_k=%d", *req.TopK)
	case orDefault(req.TopP, 1) < 0 || orDefault(req.TopP, 1) > 1:
		return fmt.Sprintf("require 0 <= top_p <= 1, got top_p=%v", *req.TopP)
	case orDefault(req.Temperature, 1) < 0:
		return fmt.Sprintf("require temperature >= 0, got temperature=%v", *req.Temperature)
	case orDefault(req.RepetitionPenalty, 1) <= 0:
		return fmt.Sprintf("require repetition_penalty > 0, got %v", *req.RepetitionPenalty)
	case req.Seed != nil && *req.Seed < 0:
		return fmt.Sprintf("require seed >= 0, got seed=%d", *req.Seed)
	}
	for key, b := range req.LogitBias {
		id, err := strconv.Atoi(key)
		switch {
		case err != nil:
			return fmt.Sprintf("Invalid logit_bias key '%s': must be a valid integer token ID", key)
		case id < 0 || id >= s.config.VocabSize:
			return fmt.Sprintf("Token ID %d out of vocabulary range [0, %d)", id, s.config.VocabSize)
		case b < -biasLimit || b > biasLimit:
			return fmt.Sprintf("logit_bias value for token ID %d must be in [-100, 100]", id)
		}
	}
	return ""
}

func (s *Server) trtModels(w http.ResponseWriter, r *http.Request) {
	writeValue(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": s.config.Model, "object": "model", "created": 1790000000, "owned_by": "tensorrt_llm"},
	}})
}

// trtOpenAPI describes the requests, which is how a frontend finds out what this
// version knows.
func (s *Server) trtOpenAPI(w http.ResponseWriter, r *http.Request) {
	writeValue(w, http.StatusOK, openAPI([]string{"/v1/completions", "/v1/models", "/health"}, map[string][]string{"CompletionRequest": s.trtKnown()}))
}

// openAPI is the part of FastAPI's description of a server that names its paths
// and the fields of its requests.
func openAPI(paths []string, requests map[string][]string) any {
	described, schemas := map[string]any{}, map[string]any{}
	for _, path := range paths {
		described[path] = map[string]any{"post": map[string]any{}}
	}
	for name, fields := range requests {
		properties := map[string]any{}
		for _, field := range fields {
			properties[field] = map[string]any{}
		}
		schemas[name] = map[string]any{"type": "object", "properties": properties}
	}
	return map[string]any{"openapi": "3.1.0", "paths": described, "components": map[string]any{"schemas": schemas}}
}

// trtMetrics gives what has happened since it was asked the last time.
func (s *Server) trtMetrics(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	tokens := s.stats.Tokens - s.told
	s.told = s.stats.Tokens
	running := s.stats.Running
	s.mu.Unlock()
	stats := []any{}
	if tokens > 0 {
		stats = append(stats, map[string]any{"iter": 1, "numActiveRequests": running, "numNewTokens": tokens})
	}
	writeValue(w, http.StatusOK, stats)
}

func (s *Server) trtTokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Prompt string `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeValue(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	ids := append([]engine.TokenID{}, s.words.tokenizer.Encode(req.Prompt, true)...)
	writeValue(w, http.StatusOK, map[string]any{"count": len(ids), "tokens": ids})
}

// valid makes text of bytes that may be none.
func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
