package vllm

import "baton/engine/stream"

const (
	abortPath = "/inference/v1/abort_requests"
	// generatePrefix stands before the request id in the engine's own id.
	generatePrefix = "generate-tokens-"
)

// abort tells the engine that nobody waits for the request any more. The closed
// connection says the same, but only to an API server that still looks at its
// connections; the endpoint reaches the engine's queue. Servers that have the
// generate endpoint have this one. A message names all requests that have gathered.
func (c *Client) abort(requestID string) {
	if route(c.route.Load()) != useGenerate {
		return
	}
	c.aborts.Add(generatePrefix+requestID, func(ids []string) {
		stream.Tell(c.link, abortPath, ids[0], map[string][]string{"request_ids": ids})
	})
}
