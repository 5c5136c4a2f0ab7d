package llamacpp

import (
	"context"
	"encoding/json"

	"baton/engine"
)

// Probe implements engine.Client. The list of models must be there, /props may be
// hidden.
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	body, err := c.link.Get(ctx, "/v1/models")
	if err != nil {
		return engine.Info{}, err
	}
	var list struct {
		Data []struct {
			ID   string `json:"id"`
			Meta struct {
				NVocab int `json:"n_vocab"`
				NCtx   int `json:"n_ctx"` // per slot; not in older builds
			} `json:"meta"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return engine.Info{}, c.link.Error(engine.ProtocolError, "GET /v1/models: %w", err)
	}
	if len(list.Data) == 0 {
		return engine.Info{}, c.link.Error(engine.WorkerMisconfigured, "GET /v1/models: the server lists no model")
	}
	first := list.Data[0]
	model := engine.ModelInfo{ID: first.ID, VocabSize: first.Meta.NVocab, ContextLength: first.Meta.NCtx}

	body, err = c.link.Get(ctx, "/props")
	if err != nil {
		if engine.AsError(err).Status == 0 {
			return engine.Info{}, err
		}
		return engine.Info{Models: []engine.ModelInfo{model}}, nil
	}
	var props struct {
		Defaults struct {
			NCtx int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		ModelPath    string `json:"model_path"`
		BuildInfo    string `json:"build_info"`
		ChatTemplate string `json:"chat_template"`
	}
	if err := json.Unmarshal(body, &props); err != nil {
		return engine.Info{}, c.link.Error(engine.ProtocolError, "GET /props: %w", err)
	}
	model.Path, model.ChatTemplate = props.ModelPath, props.ChatTemplate
	if props.Defaults.NCtx > 0 {
		model.ContextLength = props.Defaults.NCtx // of one slot, which is what a request has
	}
	return engine.Info{Version: props.BuildInfo, Models: []engine.ModelInfo{model}}, nil
}

// Health implements engine.Client. While the server loads its model the error is
// of kind Overloaded.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/health")
	return err
}

// Tokenize implements engine.Client. The server has one model.
func (c *Client) Tokenize(ctx context.Context, _, text string) (ids []engine.TokenID, ok bool, err error) {
	body, err := c.link.Call(ctx, "/tokenize", map[string]any{"content": text, "add_special": false})
	if err != nil {
		if engine.AsError(err).Status != 0 {
			return nil, false, nil
		}
		return nil, false, err
	}
	var answer struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	ok = json.Unmarshal(body, &answer) == nil && len(answer.Tokens) > 0
	return answer.Tokens, ok, nil
}
