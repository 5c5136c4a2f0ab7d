package llamacpp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// proofTimeout bounds the generation with which a build that does not say its
// version shows that it returns ids. One that is too busy is given the benefit of
// the doubt.
const proofTimeout = 5 * time.Second

// Probe implements engine.Client. The list of models must be there, /props may be
// hidden. What a build can do is read from what it shows of itself: build_info is no
// version that could be compared ("b1-7e4c0a9", "b0-unknown").
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	model, err := c.askModel(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	p, err := c.askProps(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	if p.Role == "router" {
		return engine.Info{}, c.link.Error(engine.WorkerMisconfigured, "this llama-server is a router of several models, which it loads and unloads as they are asked for; give the address of a server that was started with one model (-m)")
	}
	if p.BuildInfo == "" && !c.proven.Load() {
		if err := c.proveIDs(ctx); err != nil {
			return engine.Info{}, err
		}
		c.proven.Store(true)
	}
	c.quiet.Store(p.CORSProxy == nil)
	model.Path, model.ChatTemplate = p.ModelPath, p.ChatTemplate
	if p.Defaults.NCtx > 0 {
		model.ContextLength = p.Defaults.NCtx // of one slot, which is what a request has
	}
	info := engine.Info{Version: p.BuildInfo, Models: []engine.ModelInfo{model}}
	adapters, err := c.askAdapters(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	if adapters != "" {
		info.Version = strings.TrimSpace(info.Version + " with " + adapters)
	}
	return info, nil
}

// askModel returns the server's one model.
func (c *Client) askModel(ctx context.Context) (engine.ModelInfo, error) {
	models, err := transport.Models[struct {
		ID   string `json:"id"`
		Meta struct {
			NVocab int `json:"n_vocab"`
			NCtx   int `json:"n_ctx"` // per slot; not in older builds
		} `json:"meta"`
	}](ctx, c.link)
	if err != nil {
		return engine.ModelInfo{}, err
	}
	first := models[0]
	return engine.ModelInfo{ID: first.ID, VocabSize: first.Meta.NVocab, ContextLength: first.Meta.NCtx}, nil
}

// props is what /props says, as far as it matters.
type props struct {
	Role     string `json:"role"` // "router" of a server of several models
	Defaults struct {
		NCtx int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	ModelPath    string `json:"model_path"`
	BuildInfo    string `json:"build_info"` // not before 2025, as return_tokens
	ChatTemplate string `json:"chat_template"`

	// CORSProxy is not looked at, but that it is there: it is younger than
	// sse_ping_interval, so that a build which shows it pings as it is asked to.
	CORSProxy *bool `json:"cors_proxy_enabled"`
}

// askProps returns nothing of a server that hides it. One that wants a key lists
// its model to everybody, and everything else to those who have it.
func (c *Client) askProps(ctx context.Context) (props, error) {
	var p props
	body, err := c.link.Get(ctx, "/props")
	if err != nil {
		if status := engine.AsError(err).Status; status == 0 || status == http.StatusUnauthorized || status == http.StatusForbidden {
			return p, err
		}
		return p, nil
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, c.link.Error(engine.ProtocolError, "GET /props: %w", err)
	}
	return p, nil
}

// askAdapters names the LoRA adapters of the server, with their scales. They are
// no models of their own here: a server applies all of them to every request. So
// they belong to what the worker is, and one that comes back with others is
// another one.
func (c *Client) askAdapters(ctx context.Context) (string, error) {
	body, err := c.link.Get(ctx, "/lora-adapters")
	if err != nil {
		return "", transport.Lost(err) // nil: a build without
	}
	var list []struct {
		Path  string  `json:"path"`
		Scale float64 `json:"scale"`
	}
	if json.Unmarshal(body, &list) != nil {
		return "", nil
	}
	var names []string
	for _, a := range list[:min(len(list), maxAdapters)] {
		if a.Scale != 0 {
			names = append(names, fmt.Sprintf("LoRA %s (%v)", a.Path[strings.LastIndexAny(a.Path, `/\`)+1:], a.Scale))
		}
	}
	return strings.Join(names, ", "), nil
}

// maxAdapters bounds how many adapters are named.
const maxAdapters = 16

// proveIDs makes sure that a build which does not say its version returns ids.
func (c *Client) proveIDs(ctx context.Context) error {
	proofCtx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	body, err := c.link.Call(proofCtx, completionPath, map[string]any{"prompt": []int{0}, "n_predict": 1, "return_tokens": true, "temperature": 0})
	if cause := engine.CauseOf(ctx); cause != nil {
		return cause
	}
	if e := engine.AsError(err); err != nil && e.Status == http.StatusNotImplemented {
		return c.link.Error(engine.WorkerMisconfigured, "%s: it was started for embeddings", noCompletions)
	}
	var answer struct {
		Stop   *bool            `json:"stop"` // every completion has it
		Tokens []engine.TokenID `json:"tokens"`
	}
	if err == nil && json.Unmarshal(body, &answer) == nil && answer.Stop != nil && len(answer.Tokens) == 0 {
		return c.link.Error(engine.WorkerMisconfigured, "this llama.cpp is too old: it does not return token ids (a build of 2025 does)")
	}
	return nil // a refusal, or no answer in time, says nothing of ids
}

// Health implements engine.Client. While the server loads its model the error is
// of kind Overloaded.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/health")
	return err
}

// Tokenize implements engine.Client. The server has one model.
func (c *Client) Tokenize(ctx context.Context, _, text string) (ids []engine.TokenID, ok bool, err error) {
	return c.link.Tokens(ctx, "/tokenize", map[string]any{"content": text, "add_special": false})
}
