package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/engine"
)

// routeSGLang adds the endpoints of SGLang 0.5 that a frontend uses.
func (s *Server) routeSGLang() {
	for _, method := range []string{"POST ", "PUT "} {
		s.mux.HandleFunc(method+"/generate", s.sglangGenerate)
	}
	s.mux.HandleFunc("POST /abort_request", s.sglangAbort)
	for _, path := range []string{"/health", "/health_generate"} {
		s.mux.HandleFunc("GET "+path, s.sglangHealth)
	}
	for _, path := range []string{"/ready", "/ping"} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(s.sglangReady()) })
	}
	s.mux.HandleFunc("GET /v1/models", s.sglangModels)
	for _, prefix := range []string{"/", "/get_"} {
		s.mux.HandleFunc("GET "+prefix+"model_info", s.sglangModelInfo)
		s.mux.HandleFunc("GET "+prefix+"server_info", s.sglangServerInfo)
	}
	s.mux.HandleFunc("GET /v1/loads", s.sglangLoads)
	s.mux.HandleFunc("POST /tokenize", s.sglangTokenize)
	s.mux.HandleFunc("POST /detokenize", s.sglangDetokenize)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
	})
}

// What SGLang keeps of a context to itself: an answer ends two tokens before it
// is full, and a prompt may have so many less than it.
const (
	sglangKeptOfAnswer = 2
	sglangKeptOfPrompt = 6
)

// sglangParams are the sampling parameters, by SGLang's names.
type sglangParams struct {
	MaxNewTokens      *int               `json:"max_new_tokens"`
	MinNewTokens      *int               `json:"min_new_tokens"`
	Temperature       *float64           `json:"temperature"`
	TopP              *float64           `json:"top_p"`
	TopK              *int               `json:"top_k"`
	MinP              *float64           `json:"min_p"`
	FrequencyPenalty  *float64           `json:"frequency_penalty"`
	PresencePenalty   *float64           `json:"presence_penalty"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	LogitBias         map[string]float64 `json:"logit_bias"`
	Seed              *int64             `json:"sampling_seed"`
	Stop              json.RawMessage    `json:"stop"`
	StopTokenIDs      []engine.TokenID   `json:"stop_token_ids"`
	IgnoreEOS         *bool              `json:"ignore_eos"`
	N                 *int               `json:"n"`
	JSONSchema        *string            `json:"json_schema"`
	Regex             *string            `json:"regex"`
	EBNF              *string            `json:"ebnf"`
	StructuralTag     *string            `json:"structural_tag"`
}

// sglangKnown are all parameters that SGLang 0.5 knows. It refuses others.
var sglangKnown = []string{
	"max_new_tokens", "min_new_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty",
	"logit_bias", "sampling_seed", "stop", "stop_token_ids", "stop_regex", "ignore_eos", "n", "json_schema", "regex", "ebnf", "structural_tag",
	"skip_special_tokens", "spaces_between_special_tokens", "no_stop_trim", "stream_interval", "custom_params", "beam_width", "watermark",
}

// A sglangRequest is the body of /generate.
type sglangRequest struct {
	RID            string           `json:"rid"`
	Text           *string          `json:"text"`
	InputIDs       []engine.TokenID `json:"input_ids"`
	Stream         bool             `json:"stream"`
	Params         json.RawMessage  `json:"sampling_params"`
	ReturnLogprob  bool             `json:"return_logprob"`
	TopLogprobs    int              `json:"top_logprobs_num"`
	TextInLogprobs bool             `json:"return_text_in_logprobs"`
	LoRA           *string          `json:"lora_path"`
}

// A sglangError is what is wrong with a request. Unstreamed it is a status and the
// message, streamed an event after the headers of a success.
type sglangError struct {
	Message   string `json:"message"`
	Type      string `json:"type"`
	Code      int    `json:"code"`
	Retryable bool   `json:"retryable"`
}

func sglangFault(format string, args ...any) *sglangError {
	return &sglangError{Message: fmt.Sprintf(format, args...), Type: "invalid_request_error", Code: http.StatusBadRequest}
}

func (e *sglangError) event() []byte {
	return append(event(map[string]*sglangError{"error": e}), doneFrame...)
}

func (s *Server) sglangGenerate(w http.ResponseWriter, r *http.Request) {
	var req sglangRequest
	body, err := readBody(r)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, sglangRefusal(http.StatusBadRequest, err.Error()))
		return
	}
	if req.Text != nil && req.InputIDs == nil {
		req.InputIDs = s.words.tokenizer.Encode(*req.Text, true)
	}
	if req.RID == "" {
		req.RID = s.name(r, "")
	}
	s.record(r, req.RID, req.InputIDs, body, "input_ids")
	var params sglangParams
	if err := readParams(req.Params, &params); err != nil {
		s.count(&s.stats.Failed, 1)
		writeValue(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	if refused := s.checkSGLang(&req, &params); refused != nil {
		s.count(&s.stats.Failed, 1)
		if !req.Stream {
			writeJSON(w, refused.Code, sglangRefusal(refused.Code, refused.Message))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = w.Write(refused.event())
		return
	}
	if slices.ContainsFunc(req.InputIDs, func(id engine.TokenID) bool { return id < 0 || int(id) >= s.config.VocabSize }) {
		s.count(&s.stats.Failed, 1)
		s.Kill() // the scheduler fails, and the whole server with it
		panic(http.ErrAbortHandler)
	}
	sampling, stop := s.sglangParams(&params, len(req.InputIDs))
	a := s.attempt(w, r, req.RID, req.Stream)
	a.early = true
	protocol := &sglangProtocol{s: s, req: &req, text: textStream{words: s.words}, start: time.Now()}
	a.protocol = protocol
	if limit := s.config.ContextLength - sglangKeptOfPrompt; len(req.InputIDs) >= limit {
		s.count(&s.stats.Failed, 1)
		protocol.ids, protocol.said = []engine.TokenID{0}, "!" // it has run all the same, with something in place of the prompt
		_ = a.write(protocol.aborted(http.StatusBadRequest, fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). "+
			"Use a shorter input or enable --allow-auto-truncate.", len(req.InputIDs), limit)))
		return
	}
	if stop.MaxTokens == 0 {
		s.count(&s.stats.Finished, 1)
		none := &producer{finish: engine.FinishLength}
		if !req.Stream {
			a.reply(http.StatusOK, protocol.whole(none, nil))
			return
		}
		_ = a.write(protocol.end(none, true))
		return
	}
	a.constraint = params.constraint()
	a.serve(req.InputIDs, sampling, stop, readStops(params.Stop), engine.OutputOptions{Logprobs: req.ReturnLogprob, TopLogprobs: req.TopLogprobs})
}

// readParams reads sampling parameters, which must all be known.
func readParams(raw json.RawMessage, params *sglangParams) error {
	if len(raw) == 0 {
		return nil
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(raw, &names); err != nil {
		return err
	}
	for name := range names {
		if !slices.Contains(sglangKnown, name) {
			return fmt.Errorf("unknown field `%s`, expected one of `%s`", name, strings.Join(sglangKnown, "`, `"))
		}
	}
	return json.Unmarshal(raw, params)
}

// checkSGLang validates a request in SGLang's order and words.
func (s *Server) checkSGLang(req *sglangRequest, p *sglangParams) *sglangError {
	n, context := len(req.InputIDs), s.config.ContextLength
	maxNew, minNew := orDefault(p.MaxNewTokens, sglangDefaultMax), orDefault(p.MinNewTokens, 0)
	switch {
	case n == 0:
		return sglangFault("input_ids cannot be empty.")
	case s.serving(req.RID):
		return sglangFault("Duplicate request ID detected: %s", req.RID)
	case req.LoRA != nil && *req.LoRA != "":
		return sglangFault("LoRA adapter %s was requested, but LoRA is not enabled. Please launch the server with --enable-lora flag "+
			"and preload adapters using --lora-paths or /load_lora_adapter endpoint.", *req.LoRA)
	case n >= context:
		return sglangFault("The input (%d tokens) is longer than the model's context length (%d tokens).", n, context)
	case n+maxNew > context:
		return sglangFault("Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens: "+
			"%d tokens from the input messages and %d tokens for the completion. Please reduce the number of tokens in the input messages "+
			"or the completion to fit within the limit.", context, n+maxNew, n, maxNew)
	case orDefault(p.N, 1) != 1:
		return sglangFault("n must be 1: the simulated worker gives one answer per request")
	case maxNew < 0:
		return sglangFault("max_new_tokens must be at least 0, got %d.", maxNew)
	case minNew < 0 || minNew > maxNew:
		return sglangFault("min_new_tokens must be in [0, max_new_tokens(%d)], got %d.", maxNew, minNew)
	case orDefault(p.TopK, -1) < -1:
		return sglangFault("top_k must be -1 (disable) or at least 1, got %d.", *p.TopK)
	case countSet(p.JSONSchema, p.Regex, p.EBNF, p.StructuralTag) > 1:
		return sglangFault("Only one of json_schema, regex, ebnf, or structural_tag can be set.")
	}
	for _, v := range []struct {
		value *float64
		ok    func(float64) bool
		words string
	}{
		{p.Temperature, func(v float64) bool { return v >= 0 }, "temperature must be a non-negative finite number, got %v."},
		{p.TopP, func(v float64) bool { return v > 0 && v <= 1 }, "top_p must be in (0, 1], got %v."},
		{p.MinP, func(v float64) bool { return v >= 0 && v <= 1 }, "min_p must be in [0, 1], got %v."},
		{p.FrequencyPenalty, func(v float64) bool { return math.Abs(v) <= 2 }, "frequency_penalty must be in [-2, 2], got %v."},
		{p.PresencePenalty, func(v float64) bool { return math.Abs(v) <= 2 }, "presence_penalty must be in [-2, 2], got %v."},
		{p.RepetitionPenalty, func(v float64) bool { return v > 0 && v <= 2 }, "repetition_penalty must be in (0, 2] (1.0 = no penalty), got %v."},
	} {
		if v.value != nil && !v.ok(*v.value) {
			return sglangFault(v.words, *v.value)
		}
	}
	for key := range p.LogitBias {
		if id, err := strconv.Atoi(key); err != nil || id < 0 || id >= s.config.VocabSize {
			return sglangFault("logit_bias must has keys in [0, %d], got %s.", s.config.VocabSize-1, key)
		}
	}
	return nil
}

// constraint reads the one kind that is set.
func (p *sglangParams) constraint() *engine.Constraint {
	if countSet(p.JSONSchema, p.Regex, p.EBNF, p.StructuralTag) == 0 {
		return nil
	}
	c := &engine.Constraint{Regex: orDefault(p.Regex, ""), Grammar: orDefault(p.EBNF, "")}
	if p.JSONSchema != nil {
		c.JSONSchema = json.RawMessage(*p.JSONSchema)
	}
	if p.StructuralTag != nil {
		c.StructuralTag = json.RawMessage(*p.StructuralTag)
	}
	return c
}

// sglangDefaultMax is the budget of a request that names none.
const sglangDefaultMax = 128

func countSet(values ...*string) int {
	n := 0
	for _, v := range values {
		if v != nil && *v != "" {
			n++
		}
	}
	return n
}

// serving reports whether a request with this id is at work.
func (s *Server) serving(rid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.active {
		if a.id == rid {
			return true
		}
	}
	return false
}

// sglangParams turns valid parameters into the model's own.
func (s *Server) sglangParams(p *sglangParams, prompt int) (engine.SamplingParams, engine.StopConditions) {
	bias := map[engine.TokenID]float64{}
	for key, b := range p.LogitBias {
		if id, err := strconv.Atoi(key); err == nil {
			bias[engine.TokenID(id)] = b
		}
	}
	sampling := engine.SamplingParams{Temperature: orDefault(p.Temperature, 1), LogitBias: bias}
	if s.config.Server.Deterministic {
		sampling.Seed = p.Seed
	}
	return sampling, engine.StopConditions{
		MaxTokens: min(orDefault(p.MaxNewTokens, sglangDefaultMax), s.config.ContextLength-prompt-sglangKeptOfAnswer),
		MinTokens: orDefault(p.MinNewTokens, 0),
		TokenIDs:  p.StopTokenIDs,
		IgnoreEOS: orDefault(p.IgnoreEOS, false),
	}
}

// sglangAbort ends the requests whose ids begin with the one that is named, which
// must be at work itself.
func (s *Server) sglangAbort(w http.ResponseWriter, r *http.Request) {
	var req struct {
		RID string `json:"rid"`
		All bool   `json:"abort_all"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil && err != io.EOF {
		writeJSON(w, http.StatusBadRequest, sglangRefusal(http.StatusBadRequest, err.Error()))
		return
	}
	if !req.All && (req.RID == "" || !s.serving(req.RID)) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.active {
		if (req.All || strings.HasPrefix(a.id, req.RID)) && !closed(a.aborted) {
			close(a.aborted)
		}
	}
}

// sglangRefusal is the body that goes with a status.
func sglangRefusal(status int, message string) []byte {
	if message == "" {
		message = http.StatusText(status)
		if status == http.StatusServiceUnavailable {
			message = "The request queue is full."
		}
	}
	if status == http.StatusBadRequest {
		return encodeJSON(map[string]map[string]string{"error": {"message": message}})
	}
	return encodeJSON(struct {
		Object  string  `json:"object"`
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}{"error", message, strconv.Itoa(status), nil, status})
}
