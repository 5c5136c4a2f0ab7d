package vllm

import (
	"context"
	"net/http"

	"baton/engine"
	"baton/engine/stream"
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
	return stream.Open(ctx, c.link, completionsPath, req.ID, body, c.refusal)
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
		if !resp.IsJSON() {
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
		return nil, c.refusal(resp)
	}
	c.route.Store(int32(useCompletions))
	return nil, nil
}
