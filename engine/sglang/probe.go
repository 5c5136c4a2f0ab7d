package sglang

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"baton/engine"
	"baton/engine/transport"
)

// settings are what a client must know of how its server was started.
type settings struct {
	contextLength int             // of a request, in tokens; 0 = unknown
	adapters      map[string]bool // the LoRA adapters by name
	noSeeds       bool            // it does not know them
	deterministic bool            // it honours them
	priorities    bool            // it honours priorities,
	lowFirst      bool            // and serves the lower ones earlier
	noTokenizer   bool
	form          form // of the events of its streams

	parameters engine.Parameters
}

func newSettings() *settings {
	s := &settings{}
	s.parameters = parametersOf(s)
	return s
}

// serverInfo is what is looked at in /server_info: how the server was started, and
// what its scheduler has found out since.
type serverInfo struct {
	Version         string `json:"version"`
	ModelPath       string `json:"model_path"`
	TokenizerPath   string `json:"tokenizer_path"`
	Disaggregation  string `json:"disaggregation_mode"`
	SkipTokenizer   bool   `json:"skip_tokenizer_init"`
	Incremental     *bool  `json:"incremental_streaming_output"`
	StreamOutput    *bool  `json:"stream_output"` // the same in older versions
	Deterministic   *bool  `json:"enable_deterministic_inference"`
	Priorities      bool   `json:"enable_priority_scheduling"`
	LowFirst        bool   `json:"schedule_low_priority_values_first"`
	MaxInputLength  int    `json:"max_req_input_len"` // the first that is refused
	Speculative     string `json:"speculative_algorithm"`
	SpeculativeTopK int    `json:"speculative_eagle_topk"`
	DraftSteps      int    `json:"speculative_num_steps"`
	DraftTokens     int    `json:"speculative_num_draft_tokens"`
}

// modelInfo is what is looked at in /model_info.
type modelInfo struct {
	ModelPath      string `json:"model_path"`
	TokenizerPath  string `json:"tokenizer_path"`
	Generates      *bool  `json:"is_generation"`
	Disaggregation string `json:"disaggregation_mode"`
}

// keptBack is how many tokens of a context the server does not use for a request
// where it does not say itself what is left.
const keptBack = 6

// Probe implements engine.Client. The list of models must be there; the documents
// about the server may be hidden, and have two names each.
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	models, err := transport.Models[struct {
		ID          string `json:"id"`
		Root        string `json:"root"`
		Parent      string `json:"parent"`
		MaxModelLen int    `json:"max_model_len"`
	}](ctx, c.link)
	if err != nil {
		return engine.Info{}, err
	}
	var server serverInfo
	var model modelInfo
	if err := c.document(ctx, &server, "/server_info", "/get_server_info"); err != nil {
		return engine.Info{}, err
	}
	if err := c.document(ctx, &model, "/model_info", "/get_model_info"); err != nil {
		return engine.Info{}, err
	}
	if err := c.unfit(&server, &model); err != nil {
		return engine.Info{}, err
	}

	s := settings{noSeeds: server.Deterministic == nil, deterministic: server.Deterministic != nil && *server.Deterministic, priorities: server.Priorities, lowFirst: server.LowFirst, noTokenizer: server.SkipTokenizer, form: server.form()}
	info := engine.Info{Version: server.Version}
	path := firstOf(model.TokenizerPath, server.TokenizerPath, model.ModelPath, server.ModelPath, models[0].Root)
	for _, m := range models {
		entry := engine.ModelInfo{ID: m.ID, Parent: m.Parent, Path: path}
		if m.Parent != "" {
			if s.adapters == nil {
				s.adapters = make(map[string]bool)
			}
			s.adapters[m.ID], entry.Path = true, m.Root
		}
		if entry.ContextLength = usable(m.MaxModelLen, &server); s.contextLength == 0 {
			s.contextLength = entry.ContextLength
		}
		if entry.ContextLength == 0 {
			entry.ContextLength = s.contextLength // an adapter's is its base's
		}
		info.Models = append(info.Models, entry)
	}
	s.parameters = parametersOf(&s)
	if known := c.settings.Load(); !known.equal(&s) { // else who holds the parameters sees them change for nothing
		c.settings.Store(&s)
	}
	return info, nil
}

func (s *settings) equal(other *settings) bool {
	return s.contextLength == other.contextLength && maps.Equal(s.adapters, other.adapters) && s.noSeeds == other.noSeeds && s.deterministic == other.deterministic &&
		s.priorities == other.priorities && s.lowFirst == other.lowFirst && s.noTokenizer == other.noTokenizer && s.form == other.form
}

// form is how the server says that its events hold the ids of an answer.
func (s *serverInfo) form() form {
	for _, set := range []*bool{s.Incremental, s.StreamOutput} {
		switch {
		case set != nil && *set:
			return incremental
		case set != nil:
			return cumulative
		}
	}
	return unknown
}

// document reads the first of the documents that is there, if any. Its error is
// the loss of the server, or of the caller.
func (c *Client) document(ctx context.Context, v any, paths ...string) error {
	for _, path := range paths {
		body, err := c.link.Get(ctx, path)
		if err == nil {
			_ = json.Unmarshal(body, v) // what cannot be read is not known
			return nil
		}
		if err := transport.Lost(err); err != nil {
			return err
		}
	}
	return nil
}

// unfit returns why requests cannot be given to the server at all.
func (c *Client) unfit(server *serverInfo, model *modelInfo) error {
	if model.Generates != nil && !*model.Generates {
		return c.link.Error(engine.WorkerMisconfigured, "the server computes embeddings, it does not generate")
	}
	if mode := firstOf(server.Disaggregation, model.Disaggregation); mode != "" && mode != "null" {
		return c.link.Error(engine.WorkerMisconfigured, "the server is the %s half of a disaggregated pair, which takes requests from its own router only", mode)
	}
	return nil
}

// usable is how many tokens prompt and answer may have together such that the
// server neither refuses the prompt nor ends the answer earlier: it keeps a few of
// the model's context to itself, more when it drafts, and its memory for keys and
// values may be smaller than that context.
func usable(contextLength int, server *serverInfo) int {
	if contextLength == 0 {
		return 0
	}
	n := contextLength - keptBack
	if server.Speculative != "" {
		n -= max(server.SpeculativeTopK*server.DraftSteps, server.DraftTokens)
	}
	if server.MaxInputLength > 0 {
		n = min(n, server.MaxInputLength)
	}
	return max(n, 1)
}

// Health implements engine.Client. It asks /ready, which is a look at flags: no
// while the server loads, drains or is paused. Older servers do not have it, and
// their /health generates a token and takes a second, so they are asked for their
// models, which says that the HTTP side lives and no more.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/ready")
	if err != nil && engine.AsError(err).Status == http.StatusNotFound {
		_, err = c.link.Get(ctx, "/v1/models")
	}
	return err
}

// Tokenize implements engine.Client. The server has one tokenizer.
func (c *Client) Tokenize(ctx context.Context, model, text string) (ids []engine.TokenID, ok bool, err error) {
	return c.link.Tokens(ctx, "/tokenize", map[string]any{"model": model, "prompt": text, "add_special_tokens": false})
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
