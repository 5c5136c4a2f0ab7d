package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"baton/engine"
)

const sglangVersion = "0.5.23"

// sglangReady is the status of a server that takes requests, or that drains, which
// it says although it still takes them.
func (s *Server) sglangReady() int {
	if s.state().draining {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// sglangHealthTime is how long /health takes: it generates a token and looks after
// a second whether one has come.
const sglangHealthTime = time.Second

func (s *Server) sglangHealth(w http.ResponseWriter, r *http.Request) {
	if status := s.sglangReady(); status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	t := time.NewTimer(sglangHealthTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

func (s *Server) sglangModels(w http.ResponseWriter, _ *http.Request) {
	type card struct {
		ID          string  `json:"id"`
		Object      string  `json:"object"`
		Created     int64   `json:"created"`
		OwnedBy     string  `json:"owned_by"`
		Root        string  `json:"root"`
		Parent      *string `json:"parent"`
		MaxModelLen int     `json:"max_model_len"`
	}
	writeValue(w, http.StatusOK, struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}{"list", []card{{
		ID: s.config.Model, Object: "model", Created: time.Now().Unix(), OwnedBy: "sglang", Root: s.config.Model, MaxModelLen: s.config.ContextLength,
	}}})
}

func (s *Server) sglangModelInfo(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, http.StatusOK, struct {
		ModelPath         string   `json:"model_path"`
		ServedModelName   string   `json:"served_model_name"`
		TokenizerPath     string   `json:"tokenizer_path"`
		IsGeneration      bool     `json:"is_generation"`
		PreferredSampling any      `json:"preferred_sampling_params"`
		WeightVersion     string   `json:"weight_version"`
		LoadFormat        string   `json:"load_format"`
		ReasoningParser   any      `json:"reasoning_parser"`
		ToolCallParser    any      `json:"tool_call_parser"`
		Disaggregation    string   `json:"disaggregation_mode"`
		Images            bool     `json:"has_image_understanding"`
		Audio             bool     `json:"has_audio_understanding"`
		ModelType         string   `json:"model_type"`
		Architectures     []string `json:"architectures"`
	}{
		ModelPath: s.config.Server.ModelPath, ServedModelName: s.config.Model, TokenizerPath: s.config.Server.ModelPath, IsGeneration: true,
		WeightVersion: "default", LoadFormat: "auto", Disaggregation: "null", ModelType: "llama", Architectures: []string{"LlamaForCausalLM"},
	})
}

// sglangServerInfo holds of the server's settings those that matter to a frontend.
func (s *Server) sglangServerInfo(w http.ResponseWriter, _ *http.Request) {
	c := &s.config
	writeValue(w, http.StatusOK, struct {
		ModelPath       string `json:"model_path"`
		TokenizerPath   string `json:"tokenizer_path"`
		SkipTokenizer   bool   `json:"skip_tokenizer_init"`
		ServedModelName string `json:"served_model_name"`
		ContextLength   int    `json:"context_length"`
		Priorities      bool   `json:"enable_priority_scheduling"`
		LowFirst        bool   `json:"schedule_low_priority_values_first"`
		StreamInterval  int    `json:"stream_interval"`
		Incremental     bool   `json:"incremental_streaming_output"`
		Speculative     any    `json:"speculative_algorithm"`
		Disaggregation  string `json:"disaggregation_mode"`
		Deterministic   bool   `json:"enable_deterministic_inference"`
		Status          string `json:"status"`
		MaxTotalTokens  int    `json:"max_total_num_tokens"`
		MaxInputLength  int    `json:"max_req_input_len"`
		Version         string `json:"version"`
	}{
		ModelPath: c.Server.ModelPath, TokenizerPath: c.Server.ModelPath, ServedModelName: c.Model, ContextLength: c.ContextLength,
		Priorities: c.Server.Priorities, StreamInterval: 1, Incremental: c.Server.Incremental, Disaggregation: "null",
		Deterministic: c.Server.Deterministic, Status: "ready", MaxTotalTokens: 4 * c.ContextLength, MaxInputLength: c.ContextLength - sglangKeptOfPrompt,
		Version: sglangVersion,
	})
}

func (s *Server) sglangLoads(w http.ResponseWriter, _ *http.Request) {
	stats, waiting := s.load()
	type load struct {
		Timestamp float `json:"timestamp"`
		DPRank    int   `json:"dp_rank"`
		Running   int   `json:"num_running_reqs"`
		Waiting   int   `json:"num_waiting_reqs"`
		MaxTokens int   `json:"max_total_num_tokens"`
	}
	now := time.Now()
	writeValue(w, http.StatusOK, struct {
		Timestamp string `json:"timestamp"`
		Version   string `json:"version"`
		Loads     []load `json:"loads"`
	}{now.UTC().Format(time.RFC3339Nano), sglangVersion, []load{{float(float64(now.UnixMicro()) / 1e6), 0, stats.Running, waiting, 4 * s.config.ContextLength}}})
}

func (s *Server) sglangTokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Prompt string `json:"prompt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeJSON(w, http.StatusBadRequest, sglangRefusal(http.StatusBadRequest, err.Error()))
		return
	}
	ids := append([]engine.TokenID{}, s.words.tokenizer.Encode(req.Prompt, true)...)
	writeValue(w, http.StatusOK, struct {
		Tokens      []engine.TokenID `json:"tokens"`
		Count       int              `json:"count"`
		MaxModelLen int              `json:"max_model_len"`
	}{ids, len(ids), s.config.ContextLength})
}

func (s *Server) sglangDetokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeJSON(w, http.StatusBadRequest, sglangRefusal(http.StatusBadRequest, err.Error()))
		return
	}
	writeValue(w, http.StatusOK, map[string]string{"text": strings.ToValidUTF8(s.words.all(req.Tokens), "\uFFFD")})
}
