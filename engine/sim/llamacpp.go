package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"baton/engine"
)

// routeLlamaCPP adds the endpoints of llama.cpp's server that a frontend uses.
func (s *Server) routeLlamaCPP() {
	for _, path := range []string{"/completion", "/completions"} {
		s.mux.HandleFunc("POST "+path, s.llamaCompletion)
	}
	for _, path := range []string{"/health", "/v1/health"} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			writeValue(w, http.StatusOK, map[string]string{"status": "ok"})
		})
	}
	s.mux.HandleFunc("GET /props", s.llamaProps)
	s.mux.HandleFunc("GET /v1/models", s.llamaModels)
	s.mux.HandleFunc("GET /slots", s.llamaSlots)
	s.mux.HandleFunc("GET /metrics", s.llamaMetrics)
	if !s.profile.noReturnTokens {
		s.mux.HandleFunc("GET /lora-adapters", s.llamaAdapters)
	}
	s.mux.HandleFunc("POST /tokenize", s.llamaTokenize)
	s.mux.HandleFunc("POST /detokenize", s.llamaDetokenize)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuseLlama(w, &llamaError{Code: http.StatusNotFound, Message: "File Not Found", Type: "not_found_error"})
	})
}

// A llamaRequest is the body of /completion.
type llamaRequest struct {
	Prompt           json.RawMessage `json:"prompt"`
	Stream           bool            `json:"stream"`
	ReturnTokens     bool            `json:"return_tokens"`
	NPredict         *int            `json:"n_predict"`
	MaxTokens        *int            `json:"max_tokens"`
	MaxCompletion    *int            `json:"max_completion_tokens"`
	Temperature      *float64        `json:"temperature"`
	TopK             *int            `json:"top_k"`
	TopP             *float64        `json:"top_p"`
	MinP             *float64        `json:"min_p"`
	TypicalP         *float64        `json:"typical_p"`
	RepeatLastN      *int            `json:"repeat_last_n"`
	RepeatPenalty    *float64        `json:"repeat_penalty"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
	Seed             *int64          `json:"seed"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	IgnoreEOS        bool            `json:"ignore_eos"`
	Stop             []string        `json:"stop"`
	NProbs           *int            `json:"n_probs"`
	Logprobs         *int            `json:"logprobs"`
	Grammar          string          `json:"grammar"`
	JSONSchema       json.RawMessage `json:"json_schema"`
	SSEPingInterval  *int            `json:"sse_ping_interval"` // seconds; -1 = off
}

// A llamaError is a refusal in llama.cpp's form.
type llamaError struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	Type         string `json:"type"`
	PromptTokens int    `json:"n_prompt_tokens,omitempty"`
	ContextSize  int    `json:"n_ctx,omitempty"`
}

func (e *llamaError) envelope() []byte {
	return encodeJSON(struct {
		Error *llamaError `json:"error"`
	}{e})
}

func refuseLlama(w http.ResponseWriter, e *llamaError) { writeJSON(w, e.Code, e.envelope()) }

func invalidLlama(format string, args ...any) *llamaError {
	return &llamaError{Code: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
}

func (s *Server) llamaCompletion(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.profile.embeddings:
		refuseLlama(w, &llamaError{Code: http.StatusNotImplemented, Type: "not_supported_error",
			Message: "This server does not support completions. Start it without `--embeddings`"})
		return
	case s.profile.router:
		refuseLlama(w, invalidLlama("model name is missing from the request"))
		return
	}
	var req llamaRequest
	body, err := readBody(r)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		refuseLlama(w, invalidLlama("%v", err))
		return
	}
	req.ReturnTokens = req.ReturnTokens && !s.profile.noReturnTokens
	id := s.name(r, "")
	prompt, refused := s.llamaPrompt(req.Prompt)
	s.record(r, id, prompt, body, "prompt")
	if refused == nil {
		refused = s.checkLlama(&req, prompt)
	}
	if refused != nil {
		s.count(&s.stats.Failed, 1)
		refuseLlama(w, refused)
		return
	}
	bias := s.llamaBias(req.LogitBias)
	budget := firstOf(req.NPredict, req.MaxTokens, req.MaxCompletion)
	stop := engine.StopConditions{
		MaxTokens: s.config.ContextLength - len(prompt),
		IgnoreEOS: req.IgnoreEOS,
	}
	if n := orDefault(budget, -1); n >= 0 {
		stop.MaxTokens = min(stop.MaxTokens, max(n, 1)) // a budget of 0 still gives one token
	}
	sampling := engine.SamplingParams{Temperature: orDefault(req.Temperature, 0.8), LogitBias: bias}
	if req.Seed != nil && *req.Seed >= 0 && *req.Seed != randomSeed {
		sampling.Seed = req.Seed
	}
	probs := orDefault(firstOf(req.NProbs, req.Logprobs), 0)

	a := s.attempt(w, r, id, req.Stream)
	a.ping = s.config.Server.PingInterval
	if n := req.SSEPingInterval; n != nil {
		a.ping = time.Duration(*n) * time.Second
	}
	if s.profile.noPings {
		a.ping = 0
	}
	a.protocol = &llamaProtocol{s: s, req: &req, prompt: prompt, budget: orDefault(budget, -1), bias: bias, probs: probs,
		text: textStream{words: s.words}, stops: newStopStrings(s.words, req.Stop), start: time.Now()}
	if req.JSONSchema != nil && req.Grammar == "" { // of a grammar nothing is understood, and it is without effect
		a.constraint = &engine.Constraint{JSONSchema: req.JSONSchema}
	}
	a.serve(prompt, sampling, stop, req.Stop, engine.OutputOptions{Logprobs: probs > 0, TopLogprobs: probs})
}

// firstOf returns the first that is given: llama.cpp's own names win over aliases.
func firstOf[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// llamaPrompt reads a prompt: ids, or a text, which llama.cpp tokenizes.
func (s *Server) llamaPrompt(raw json.RawMessage) ([]engine.TokenID, *llamaError) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return s.words.tokenizer.Encode(text, true), nil
	}
	var ids []engine.TokenID
	if len(raw) == 0 || json.Unmarshal(raw, &ids) != nil {
		return nil, invalidLlama(`"prompt" must be a string, a list of tokens, a list of mixed strings & tokens, or a list of prompts`)
	}
	return ids, nil
}

func (s *Server) checkLlama(req *llamaRequest, prompt []engine.TokenID) *llamaError {
	n := len(prompt)
	switch {
	case n == 0:
		return invalidLlama("Input prompt cannot be empty")
	case slices.ContainsFunc(prompt, func(id engine.TokenID) bool { return id < 0 || int(id) >= s.config.VocabSize }):
		return invalidLlama("Prompt contains invalid tokens")
	case n >= s.config.ContextLength:
		return &llamaError{Code: http.StatusBadRequest, Type: "exceed_context_size_error", PromptTokens: n, ContextSize: s.config.ContextLength,
			Message: fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", n, s.config.ContextLength)}
	case req.Grammar != "" && !strings.Contains(req.Grammar, "::="):
		return invalidLlama("Failed to initialize samplers: failed to parse grammar")
	}
	return nil
}

// llamaBias reads logit_bias: pairs of an id and a number, or false for never,
// or an object. Foreign ids are ignored, as llama.cpp does.
func (s *Server) llamaBias(raw json.RawMessage) map[engine.TokenID]float64 {
	bias := map[engine.TokenID]float64{}
	add := func(id int, value any) {
		if id < 0 || id >= s.config.VocabSize {
			return
		}
		switch v := value.(type) {
		case float64:
			bias[engine.TokenID(id)] = v
		case bool:
			if !v {
				bias[engine.TokenID(id)] = math.Inf(-1)
			}
		}
	}
	var pairs [][2]any
	var object map[string]any
	if json.Unmarshal(raw, &pairs) == nil {
		for _, p := range pairs {
			if id, ok := p[0].(float64); ok {
				add(int(id), p[1])
			}
		}
	} else if json.Unmarshal(raw, &object) == nil {
		for key, value := range object {
			if id, err := strconv.Atoi(key); err == nil {
				add(id, value)
			}
		}
	}
	return bias
}

func (s *Server) llamaTokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Content      string `json:"content"`
		ParseSpecial *bool  `json:"parse_special"`
		WithPieces   bool   `json:"with_pieces"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuseLlama(w, invalidLlama("%v", err))
		return
	}
	ids := s.words.tokenizer.Encode(req.Content, orDefault(req.ParseSpecial, true))
	if !req.WithPieces {
		writeValue(w, http.StatusOK, map[string]any{"tokens": append([]engine.TokenID{}, ids...)})
		return
	}
	type piece struct {
		ID    engine.TokenID `json:"id"`
		Piece any            `json:"piece"` // a list of bytes where they are no text
	}
	pieces := []piece{}
	for _, id := range ids {
		p := piece{ID: id, Piece: s.words.pieces[id]}
		if text := s.words.pieces[id]; !utf8.ValidString(text) {
			p.Piece = byteList(text)
		}
		pieces = append(pieces, p)
	}
	writeValue(w, http.StatusOK, map[string]any{"tokens": pieces})
}

// byteList returns bytes as numbers: encoding/json would write base64.
func byteList(text string) []int {
	list := make([]int, len(text))
	for i, b := range []byte(text) {
		list[i] = int(b)
	}
	return list
}

func (s *Server) llamaDetokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuseLlama(w, invalidLlama("%v", err))
		return
	}
	writeValue(w, http.StatusOK, map[string]string{"content": strings.ToValidUTF8(s.words.all(req.Tokens), "\uFFFD")})
}
