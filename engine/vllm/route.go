package vllm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

const (
	completionsPath = "/v1/completions"
	generatePath    = "/inference/v1/generate"
)

// A route is what is known of the server's endpoints.
type route int32

const (
	useCompletions route = iota // the baseline
	useGenerate                 // Probe found it, or could not tell; a refusal ends it
)

// generateSince is the first 0.x release whose generate endpoint streams and
// always sends the finish reason.
const generateSince = 29

// start sends the request and returns the answer once it is a stream.
func (c *Client) start(ctx context.Context, req *engine.Request) (*transport.Response, error) {
	if route(c.route.Load()) == useGenerate {
		resp, err := c.startGenerate(ctx, req)
		if resp != nil || err != nil {
			return resp, err
		}
	}
	body, err := completionsBody(req)
	if err != nil {
		return nil, c.link.Error(engine.Internal, "encode request: %w", err)
	}
	resp, err := c.link.Post(ctx, completionsPath, req.ID, body)
	if err != nil {
		return nil, err
	}
	if resp.Status != http.StatusOK {
		return nil, statusError(resp)
	}
	if isJSON(resp) {
		resp.Abort()
		return nil, c.link.Error(engine.ProtocolError, "%s answered with JSON, not with a stream", completionsPath)
	}
	return resp, nil
}

// startGenerate tries the generate endpoint. It returns neither a response nor
// an error if the server does not have it: that is no failure of the request.
func (c *Client) startGenerate(ctx context.Context, req *engine.Request) (*transport.Response, error) {
	body, err := generateBody(req)
	if err != nil {
		return nil, c.link.Error(engine.Internal, "encode request: %w", err)
	}
	resp, err := c.link.Post(ctx, generatePath, req.ID, body)
	if err != nil {
		return nil, err
	}
	switch resp.Status {
	case http.StatusOK:
		if !isJSON(resp) {
			return resp, nil
		}
		resp.Abort() // too old to stream here
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		refusal, complaint := resp.StatusErrorComplaint()
		if cause := engine.CauseOf(ctx); cause != nil {
			return nil, cause
		}
		if complaint.Type == "NotFoundError" && complaint.Param == "model" {
			return nil, refusal // the route is there, the model is not
		}
	default:
		return nil, statusError(resp)
	}
	c.route.Store(int32(useCompletions))
	return nil, nil
}

// statusError reads a refusal before the stream.
func statusError(resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	if isEngineDeath(complaint) {
		err.Kind, err.Message, err.Param, err.Err = engine.EngineShutdown, "", "", errors.New(complaint.Message)
	}
	return err
}

func isJSON(resp *transport.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// Probe implements engine.Client. It asks for the models, which must succeed,
// then for the version and, when that is new, the list of endpoints; these may not
// be there.
func (c *Client) Probe(ctx context.Context) (engine.Info, error) {
	body, err := c.link.Get(ctx, "/v1/models")
	if err != nil {
		return engine.Info{}, err
	}
	var list struct {
		Data []struct {
			ID          string `json:"id"`
			Root        string `json:"root"`
			Parent      string `json:"parent"`
			MaxModelLen int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return engine.Info{}, c.link.Error(engine.ProtocolError, "GET /v1/models: %w", err)
	}
	if len(list.Data) == 0 {
		return engine.Info{}, c.link.Error(engine.WorkerMisconfigured, "GET /v1/models: the server lists no model")
	}
	info := engine.Info{}
	for _, m := range list.Data {
		info.Models = append(info.Models, engine.ModelInfo{ID: m.ID, Parent: m.Parent, ContextLength: m.MaxModelLen, Path: m.Root})
	}
	if info.Version, err = c.askVersion(ctx); err != nil {
		return engine.Info{}, err
	}
	if known := c.version.Load(); known != nil && *known == info.Version {
		return info, nil // the list of endpoints is large
	}
	found, err := c.findRoute(ctx, info.Version)
	if err != nil {
		return engine.Info{}, err
	}
	c.route.Store(int32(found))
	c.version.Store(&info.Version)
	return info, nil
}

// Health implements engine.Client. It says nothing of the engine process behind
// the HTTP server: stopped, that one leaves /health at 200.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.link.Get(ctx, "/health")
	return err
}

// Tokenize implements engine.Client.
func (c *Client) Tokenize(ctx context.Context, model, text string) (ids []engine.TokenID, ok bool, err error) {
	body, err := c.link.Call(ctx, "/tokenize", map[string]any{"model": model, "prompt": text, "add_special_tokens": false})
	if err != nil {
		return nil, false, fatal(err)
	}
	var answer struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	ok = json.Unmarshal(body, &answer) == nil && len(answer.Tokens) > 0
	return answer.Tokens, ok, nil
}

// askVersion returns "" if the server does not tell. Its error is the loss of the
// server, or of the caller.
func (c *Client) askVersion(ctx context.Context) (string, error) {
	body, err := c.link.Get(ctx, "/version")
	if err != nil {
		return "", fatal(err)
	}
	var answer struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(body, &answer) // not telling is no fault
	return answer.Version, nil
}

// findRoute decides which endpoint to use.
func (c *Client) findRoute(ctx context.Context, version string) (route, error) {
	if !hasReliableGenerate(version) {
		return useCompletions, nil
	}
	body, err := c.link.Get(ctx, "/openapi.json")
	if err != nil {
		return useGenerate, fatal(err) // the list is off; the first request will show
	}
	var spec struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if json.Unmarshal(body, &spec) != nil {
		return useGenerate, nil
	}
	if _, ok := spec.Paths[generatePath]; ok {
		return useGenerate, nil
	}
	return useCompletions, nil
}

// fatal returns err if a probe cannot go on after it: the server was lost, or
// the caller left. An answer with a status is not.
func fatal(err error) error {
	if engine.AsError(err).Status != 0 {
		return nil
	}
	return err
}

// hasReliableGenerate judges a version such as "0.32.0" or "0.30.1.dev4+gabc".
// What cannot be read gets the baseline.
func hasReliableGenerate(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > 0 || minor >= generateSince)
}
