package vllm

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// proofTimeout bounds the generation with which a server that does not describe
// its requests shows that it returns ids. One that is too busy is given the
// benefit of the doubt.
const proofTimeout = 5 * time.Second

// tooOld is what is said of a server that returns no ids.
const tooOld = "this vLLM is too old: it does not return token ids (0.10.2 is the first that does)"

// A description is what Probe found out of a server. It does not change.
type description struct {
	version    string
	parameters engine.Parameters
}

// Probe implements engine.Client. It asks for the models, which must be there, then
// for the version and, when that is new, for the server's own description of its
// endpoints and requests. That one decides what is sent, and not the version, which
// says nothing of how the server was started or built; where the description is
// switched off, the version is a guess that the first refusal corrects.
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	info, err := c.askModels(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	if info.Version, err = c.link.Version(ctx); err != nil {
		return engine.Info{}, err
	}
	if known := c.known.Load(); known != nil && known.version == info.Version {
		return info, nil // the description is large
	}
	spec, err := c.askSpec(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	if err := c.checkIDs(ctx, spec, info.Models[0].ID); err != nil {
		return engine.Info{}, err
	}
	c.route.Store(int32(spec.route(info.Version)))
	c.maxLogprobs.Store(unknownLimit)
	c.known.Store(&description{version: info.Version, parameters: spec.parameters(info.Version)})
	return info, nil
}

// askModels lists the models. A LoRA adapter is a model of its own, with its base
// as its parent, whose context it has.
func (c *Client) askModels(ctx context.Context) (engine.Info, error) {
	models, err := transport.Models[struct {
		ID          string `json:"id"`
		Root        string `json:"root"`
		Parent      string `json:"parent"`
		MaxModelLen int    `json:"max_model_len"` // null for an adapter
	}](ctx, c.link)
	if err != nil {
		return engine.Info{}, err
	}
	info := engine.Info{}
	contexts := make(map[string]int)
	for _, m := range models {
		contexts[m.ID] = m.MaxModelLen
	}
	for _, m := range models {
		if m.MaxModelLen == 0 && m.Parent != "" {
			m.MaxModelLen = contexts[m.Parent]
		}
		info.Models = append(info.Models, engine.ModelInfo{ID: m.ID, Parent: m.Parent, ContextLength: m.MaxModelLen, Path: m.Root})
	}
	return info, nil
}

// A spec is what a server's OpenAPI document says, as far as it matters. The zero
// spec says nothing.
type spec struct {
	Paths      map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas struct {
			Completion request `json:"CompletionRequest"`
			Generate   request `json:"GenerateRequest"`
		} `json:"schemas"`
	} `json:"components"`
}

// A request is the description of one, by its fields.
type request struct {
	Fields map[string]json.RawMessage `json:"properties"`
}

func (r request) described() bool { return len(r.Fields) > 0 }

func (r request) has(field string) bool {
	_, ok := r.Fields[field]
	return ok
}

// askSpec returns the zero spec of a server whose document is switched off.
func (c *Client) askSpec(ctx context.Context) (spec, error) {
	body, err := c.link.Get(ctx, "/openapi.json")
	if err != nil {
		return spec{}, transport.Lost(err)
	}
	var s spec
	if json.Unmarshal(body, &s) != nil {
		return spec{}, nil
	}
	return s, nil
}

// generateSince is the first 0.x release whose generate endpoint streams and
// always sends the finish reason.
const generateSince = 29

// route decides which endpoint to use. The generate endpoint is trusted if its
// requests have an output mode: servers without that one do not stream there, or
// may end a stream without saying why.
func (s *spec) route(version string) route {
	_, there := s.Paths[generatePath]
	switch generate := s.Components.Schemas.Generate; {
	case s.Paths != nil && !there:
		return useCompletions
	case generate.described():
		if generate.has("output_mode") {
			return useGenerate
		}
	case hasReliableGenerate(version):
		return useGenerate // if it is not there, the first request will show
	}
	return useCompletions
}

// parameters is the table of a server with this description.
func (s *spec) parameters(version string) engine.Parameters {
	completion := s.Components.Schemas.Completion
	of := Parameters
	if !completion.described() {
		if minor, ok := minorVersion(version); ok && minor < structuredSince {
			of = withoutConstraints(of)
		}
		return of
	}
	if !completion.has("cache_salt") {
		of = without(of, engine.CacheSalt) // it would be ignored without a word, and isolate nothing
	}
	if !completion.has("priority") {
		of = without(of, engine.Priority)
	}
	if !completion.has("structured_outputs") {
		of = withoutConstraints(of)
	}
	return of
}

// structuredSince is the first 0.x release that knows structured_outputs. Those
// before it would ignore a constraint without a word.
const structuredSince = 11

func withoutConstraints(p engine.Parameters) engine.Parameters {
	for _, name := range engine.Constraints {
		p = without(p, name)
	}
	return p
}

// checkIDs makes sure that the server returns ids: by its description, or by a
// generation of one token where it has none.
func (c *Client) checkIDs(ctx context.Context, s spec, model string) error {
	if completion := s.Components.Schemas.Completion; completion.described() {
		if !completion.has("return_token_ids") {
			return c.link.Error(engine.WorkerMisconfigured, tooOld)
		}
		return nil
	}
	proofCtx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	body, err := c.link.Call(proofCtx, completionsPath, map[string]any{
		"model": model, "prompt": []int{0}, "max_tokens": 1, "temperature": 0, "return_token_ids": true,
	})
	if cause := engine.CauseOf(ctx); cause != nil {
		return cause
	}
	var answer struct {
		Choices []struct {
			Text     string           `json:"text"`
			TokenIDs []engine.TokenID `json:"token_ids"`
		} `json:"choices"`
	}
	if err == nil && json.Unmarshal(body, &answer) == nil && len(answer.Choices) == 1 && answer.Choices[0].TokenIDs == nil {
		return c.link.Error(engine.WorkerMisconfigured, tooOld)
	}
	return nil // a refusal, or no answer in time, says nothing of ids
}

// hasReliableGenerate judges a version. What cannot be read gets the baseline.
func hasReliableGenerate(version string) bool {
	minor, ok := minorVersion(version)
	return ok && minor >= generateSince
}

// minorVersion reads a version such as "0.32.0" or "0.30.1.dev4+gabc". Of one that
// is no 0.x any more it is larger than all of them.
func minorVersion(version string) (minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return 0, false
	}
	if major > 0 {
		return math.MaxInt, true
	}
	return minor, true
}

// Health implements engine.Client. It says nothing of the engine process behind
// the HTTP server: stopped, that one leaves /health at 200.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/health")
	return err
}

// Tokenize implements engine.Client.
func (c *Client) Tokenize(ctx context.Context, model, text string) (ids []engine.TokenID, ok bool, err error) {
	return c.link.Tokens(ctx, "/tokenize", map[string]any{"model": model, "prompt": text, "add_special_tokens": false})
}
