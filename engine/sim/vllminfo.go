package sim

import (
	"fmt"
	"net/http"
	"time"
)

// A vllmModel is an entry of vLLM's /v1/models.
type vllmModel struct {
	ID          string           `json:"id"`
	Object      string           `json:"object"`
	Created     int64            `json:"created"`
	OwnedBy     string           `json:"owned_by"`
	Root        string           `json:"root"`
	Parent      *string          `json:"parent"`
	MaxModelLen int              `json:"max_model_len"`
	Permission  []vllmPermission `json:"permission"`
}

type vllmPermission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

func (s *Server) vllmModels(w http.ResponseWriter, r *http.Request) {
	now := time.Now().Unix()
	writeValue(w, http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []vllmModel `json:"data"`
	}{"list", []vllmModel{{
		ID: s.config.Model, Object: "model", Created: now, OwnedBy: "vllm",
		Root: s.config.Server.ModelPath, MaxModelLen: s.config.ContextLength,
		Permission: []vllmPermission{{
			ID: "modelperm-0", Object: "model_permission", Created: now,
			AllowSampling: true, AllowLogprobs: true, AllowView: true, Organization: "*",
		}},
	}}})
}

// vllmOpenAPI names the paths and the fields of the requests, which is how a
// frontend finds out what is open and known.
func (s *Server) vllmOpenAPI(w http.ResponseWriter, r *http.Request) {
	paths := []string{vllmCompletions}
	requests := map[string][]string{"CompletionRequest": append([]string{"model", "prompt", "stream", "max_tokens", "logprobs"}, s.profile.fields...)}
	generate := []string{"model", "token_ids", "sampling_params"}
	switch {
	case s.profile.generate == generateGated && s.config.Server.ScaleOut:
		generate = append(generate, "stream", "output_mode")
	case s.profile.generate == generateDrops:
		generate = append(generate, "stream")
	case s.profile.generate != generateWhole:
		generate = nil
	}
	if generate != nil {
		paths, requests["GenerateRequest"] = append(paths, vllmGenerate), generate
	}
	writeValue(w, http.StatusOK, openAPI(paths, requests))
}

func (s *Server) vllmMetrics(w http.ResponseWriter, r *http.Request) {
	stats, waiting := s.load()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	label := fmt.Sprintf("{engine=\"0\",model_name=%q}", s.config.Model)
	for _, m := range []struct {
		name, kind string
		value      int
	}{
		{"vllm:num_requests_running", "gauge", stats.Running},
		{"vllm:num_requests_waiting", "gauge", waiting},
		{"vllm:kv_cache_usage_perc", "gauge", 0},
		{"vllm:num_preemptions_total", "counter", 0},
		{"vllm:generation_tokens_total", "counter", stats.Tokens},
	} {
		fmt.Fprintf(w, "# TYPE %s %s\n%s%s %d.0\n", m.name, m.kind, m.name, label, m.value)
	}
}

// load returns the counters and how many requests wait for a slot.
func (s *Server) load() (Stats, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats, max(0, s.waiting)
}
