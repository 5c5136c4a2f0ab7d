package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

func (s *Server) llamaProps(w http.ResponseWriter, r *http.Request) {
	type defaults struct {
		Params llamaSettings `json:"params"`
		NCtx   int           `json:"n_ctx"`
	}
	type modalities struct {
		Vision bool `json:"vision"`
		Video  bool `json:"video"`
		Audio  bool `json:"audio"`
	}
	type caps struct {
		ObjectArguments   bool `json:"supports_object_arguments"`
		ParallelToolCalls bool `json:"supports_parallel_tool_calls"`
		PreserveReasoning bool `json:"supports_preserve_reasoning"`
		ReasoningEffort   bool `json:"supports_reasoning_effort"`
		StringContent     bool `json:"supports_string_content"`
		SystemRole        bool `json:"supports_system_role"`
		ToolCalls         bool `json:"supports_tool_calls"`
		Tools             bool `json:"supports_tools"`
		TypedContent      bool `json:"supports_typed_content"`
	}
	if s.profile.router {
		writeValue(w, http.StatusOK, map[string]any{"role": "router", "max_instances": 4, "models_autoload": true, "model_path": "none",
			"default_generation_settings": map[string]any{"params": nil, "n_ctx": 0}, "build_info": s.profile.version, "cors_proxy_enabled": false})
		return
	}
	var corsProxy *bool
	if !s.profile.noPings {
		corsProxy = new(bool)
	}
	writeValue(w, http.StatusOK, struct {
		Defaults      defaults   `json:"default_generation_settings"`
		TotalSlots    int        `json:"total_slots"`
		ModelAlias    string     `json:"model_alias"`
		ModelFtype    string     `json:"model_ftype"`
		ModelPath     string     `json:"model_path"`
		Modalities    modalities `json:"modalities"`
		MediaMarker   string     `json:"media_marker"`
		EndpointSlots bool       `json:"endpoint_slots"`
		EndpointProps bool       `json:"endpoint_props"`
		Metrics       bool       `json:"endpoint_metrics"`
		UI            bool       `json:"ui"`
		UISettings    struct{}   `json:"ui_settings"`
		ChatTemplate  string     `json:"chat_template"`
		Caps          caps       `json:"chat_template_caps"`
		BOSToken      string     `json:"bos_token"`
		EOSToken      string     `json:"eos_token"`
		BuildInfo     string     `json:"build_info,omitempty"` // younger than the oldest profile
		IsSleeping    bool       `json:"is_sleeping"`
		CORSProxy     *bool      `json:"cors_proxy_enabled,omitempty"`
	}{
		Defaults: defaults{defaultSettings(), s.config.ContextLength}, TotalSlots: s.slotCount(),
		ModelAlias: s.config.Model, ModelFtype: "F32", ModelPath: s.config.Server.ModelPath,
		MediaMarker: "<__media__>", EndpointSlots: true, Metrics: true, UI: true,
		ChatTemplate: chatTemplate(), Caps: caps{StringContent: true, SystemRole: true, Tools: true},
		BOSToken: "<|im_start|>", EOSToken: "<|im_end|>", BuildInfo: s.profile.version, CORSProxy: corsProxy,
	})
}

// llamaAdapters are those that the server was started with.
func (s *Server) llamaAdapters(w http.ResponseWriter, r *http.Request) {
	list := []any{}
	for i, path := range s.profile.adapters {
		list = append(list, map[string]any{"id": i, "path": path, "scale": 1.0})
	}
	writeValue(w, http.StatusOK, list)
}

// chatTemplate is the template of the embedded model.
func chatTemplate() string {
	var file struct {
		ChatTemplate string `json:"chat_template"`
	}
	data, err := modelFiles.ReadFile("model/tokenizer_config.json")
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		panic("sim: the embedded model's tokenizer_config.json: " + err.Error())
	}
	return file.ChatTemplate
}

func (s *Server) slotCount() int {
	if n := s.config.Server.Slots; n > 0 {
		return n
	}
	return defaultSlots
}

func (s *Server) llamaModels(w http.ResponseWriter, r *http.Request) {
	name := s.config.Model
	type details struct {
		ParentModel       string   `json:"parent_model"`
		Format            string   `json:"format"`
		Family            string   `json:"family"`
		Families          []string `json:"families"`
		ParameterSize     string   `json:"parameter_size"`
		QuantizationLevel string   `json:"quantization_level"`
	}
	type legacy struct {
		Name         string   `json:"name"`
		Model        string   `json:"model"`
		ModifiedAt   string   `json:"modified_at"`
		Size         string   `json:"size"`
		Digest       string   `json:"digest"`
		Type         string   `json:"type"`
		Description  string   `json:"description"`
		Tags         []string `json:"tags"`
		Capabilities []string `json:"capabilities"`
		Parameters   string   `json:"parameters"`
		Details      details  `json:"details"`
	}
	type meta struct {
		VocabType int    `json:"vocab_type"`
		NVocab    int    `json:"n_vocab"`
		NCtx      int    `json:"n_ctx"`
		NCtxTrain int    `json:"n_ctx_train"`
		NEmbd     int    `json:"n_embd"`
		NParams   int64  `json:"n_params"`
		Size      int64  `json:"size"`
		Ftype     string `json:"ftype"`
	}
	type architecture struct {
		Input  []string `json:"input_modalities"`
		Output []string `json:"output_modalities"`
	}
	type model struct {
		ID           string       `json:"id"`
		Aliases      []string     `json:"aliases"`
		Tags         []string     `json:"tags"`
		Object       string       `json:"object"`
		Architecture architecture `json:"architecture"`
		Created      int64        `json:"created"`
		OwnedBy      string       `json:"owned_by"`
		Meta         meta         `json:"meta"`
	}
	writeValue(w, http.StatusOK, struct {
		Models []legacy `json:"models"`
		Object string   `json:"object"`
		Data   []model  `json:"data"`
	}{
		[]legacy{{Name: name, Model: name, Type: "model", Tags: []string{""}, Capabilities: []string{"completion"},
			Details: details{Format: "gguf", Families: []string{""}}}},
		"list",
		[]model{{ID: name, Aliases: []string{name}, Tags: []string{}, Object: "model",
			Architecture: architecture{[]string{"text"}, []string{"text"}}, Created: time.Now().Unix(), OwnedBy: "llamacpp",
			Meta: meta{VocabType: 2, NVocab: s.config.VocabSize, NCtx: s.config.ContextLength, NCtxTrain: ModelContextLength, NEmbd: 64, Ftype: "F32"},
		}},
	})
}

// llamaSlots shows which slots are busy; their settings are not simulated.
func (s *Server) llamaSlots(w http.ResponseWriter, r *http.Request) {
	type slot struct {
		ID           int  `json:"id"`
		NCtx         int  `json:"n_ctx"`
		Speculative  bool `json:"speculative"`
		IsProcessing bool `json:"is_processing"`
	}
	stats, _ := s.load()
	n := s.slotCount()
	if r.URL.Query().Has("fail_on_no_slot") && stats.Running >= n {
		refuseLlama(w, &llamaError{Code: http.StatusServiceUnavailable, Message: "no slot available", Type: "unavailable_error"})
		return
	}
	slots := make([]slot, n)
	for i := range slots {
		slots[i] = slot{ID: i, NCtx: s.config.ContextLength, IsProcessing: i < stats.Running}
	}
	writeValue(w, http.StatusOK, slots)
}

func (s *Server) llamaMetrics(w http.ResponseWriter, r *http.Request) {
	stats, waiting := s.load()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, help, kind string
		value            int
	}{
		{"tokens_predicted_total", "Number of generation tokens processed", "counter", stats.Tokens},
		{"requests_processing", "Number of requests processing", "gauge", stats.Running},
		{"requests_deferred", "Number of requests deferred", "gauge", waiting},
	} {
		fmt.Fprintf(w, "# HELP llamacpp:%s %s\n# TYPE llamacpp:%s %s\nllamacpp:%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}
