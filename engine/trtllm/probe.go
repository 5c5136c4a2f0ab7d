package trtllm

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// Probe implements engine.Client. The server must be well: it goes on listing its
// model when its engine is dead, and there is a bug by which it never ends then
// (issue 18663). The version and the description of its requests may be missing.
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	if err := c.Health(ctx); err != nil {
		return engine.Info{}, err
	}
	models, err := transport.Models[struct {
		ID string `json:"id"`
	}](ctx, c.link)
	if err != nil {
		return engine.Info{}, err
	}
	info := engine.Info{}
	for _, m := range models {
		model := engine.ModelInfo{ID: m.ID}
		if strings.Contains(m.ID, "/") { // a hub id; of a folder the server says only the last name
			model.Path = m.ID
		}
		info.Models = append(info.Models, model)
	}
	if info.Version, err = c.link.Version(ctx); err != nil {
		return engine.Info{}, err
	}
	return info, c.askFields(ctx)
}

// askFields finds out which fields the server knows, once.
func (c *Client) askFields(ctx context.Context) error {
	if c.probed.Load() != nil {
		return nil // the document is large, and a worker that was restarted gets another client
	}
	body, err := c.link.Get(ctx, "/openapi.json")
	if err != nil {
		return transport.Lost(err)
	}
	if f := fieldsOf(body); f != nil {
		c.probed.Store(f)
	}
	return nil
}

// Health implements engine.Client. It looks at the executor's state and generates
// nothing; /health_generate, which does, is not asked, because a generation through
// this client proves more.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/health")
	if e := engine.AsError(err); err != nil && e.Status == http.StatusServiceUnavailable {
		dead := *e
		dead.Kind = engine.EngineShutdown
		return &dead
	}
	return err
}

// Tokenize implements engine.Client. The endpoint, which only the newest versions
// have, adds what the tokenizer puts before every text; that is found out with an
// empty text, and taken off.
func (c *Client) Tokenize(ctx context.Context, _, text string) (ids []engine.TokenID, ok bool, err error) {
	added, ok, err := c.tokenize(ctx, "")
	if err != nil || !ok {
		return nil, false, err
	}
	ids, ok, err = c.tokenize(ctx, text)
	if err != nil || !ok || len(ids) <= len(added) || !slices.Equal(ids[:len(added)], added) {
		return nil, false, err
	}
	return ids[len(added):], true, nil
}

func (c *Client) tokenize(ctx context.Context, text string) (ids []engine.TokenID, ok bool, err error) {
	body, err := c.link.Call(ctx, "/_internal/tokenize", map[string]string{"prompt": text})
	if err != nil {
		return nil, false, transport.Lost(err)
	}
	var answer struct {
		Tokens []engine.TokenID `json:"tokens"`
		Count  *int             `json:"count"`
	}
	ok = json.Unmarshal(body, &answer) == nil && answer.Count != nil && *answer.Count == len(answer.Tokens)
	return answer.Tokens, ok, nil
}
