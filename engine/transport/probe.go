package transport

import (
	"context"
	"encoding/json"

	"baton/engine"
)

// Models returns what GET /v1/models lists, which must be something.
func Models[T any](ctx context.Context, l *Link) ([]T, error) {
	body, err := l.Get(ctx, "/v1/models")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []T `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, l.Error(engine.ProtocolError, "GET /v1/models: %w", err)
	}
	if len(list.Data) == 0 {
		return nil, l.Error(engine.WorkerMisconfigured, "GET /v1/models: the server lists no model")
	}
	return list.Data, nil
}

// Version returns what GET /version says; "" if the server does not tell.
func (l *Link) Version(ctx context.Context) (string, error) {
	body, err := l.Get(ctx, "/version")
	if err != nil {
		return "", Lost(err)
	}
	var answer struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(body, &answer) // not telling is no fault
	return answer.Version, nil
}

// Tokens returns the ids with which path answers to question; ok is false if the
// server does not answer with ids.
func (l *Link) Tokens(ctx context.Context, path string, question any) (ids []engine.TokenID, ok bool, err error) {
	body, err := l.Call(ctx, path, question)
	if err != nil {
		return nil, false, Lost(err)
	}
	var answer struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	ok = json.Unmarshal(body, &answer) == nil && len(answer.Tokens) > 0
	return answer.Tokens, ok, nil
}

// Lost returns err if the server was lost, or the caller left: then a probe cannot
// go on. An answer with a status only means that a document is not there.
func Lost(err error) error {
	if engine.AsError(err).Status != 0 {
		return nil
	}
	return err
}
