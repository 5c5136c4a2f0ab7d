package vllm

import (
	"context"
	"encoding/json"
	"time"
)

const (
	abortPath = "/inference/v1/abort_requests"
	// abortTimeout bounds the word to a server that may be stuck.
	abortTimeout = 2 * time.Second
	// generatePrefix stands before the request id in the engine's own id.
	generatePrefix = "generate-tokens-"
)

// abort tells the engine that nobody waits for the request any more. The closed
// connection says the same, but only to an API server that still looks at its
// connections; the endpoint reaches the engine's queue. It goes its own way,
// because the request it is about is being moved meanwhile. Servers that have
// the generate endpoint have this one.
func (c *Client) abort(requestID string) {
	if route(c.route.Load()) != useGenerate {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
		defer cancel()
		body, err := json.Marshal(map[string][]string{"request_ids": {generatePrefix + requestID}})
		if err != nil {
			return
		}
		if resp, err := c.link.Post(ctx, abortPath, requestID, body); err == nil {
			resp.Finish()
		}
	}()
}
