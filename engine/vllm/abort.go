package vllm

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

const (
	abortPath = "/inference/v1/abort_requests"
	// abortTimeout bounds the word to a server that may be stuck.
	abortTimeout = 2 * time.Second
	// abortGather is how long ids gather before they are told: requests are mostly
	// left together, and their own connections are to be closed first.
	abortGather = 10 * time.Millisecond
	// maxAborts is how many requests wait to be named. Of those beyond it the engine
	// learns from their closed connections only.
	maxAborts = 4096
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
	c.aborts.mu.Lock()
	defer c.aborts.mu.Unlock()
	if len(c.aborts.ids) < maxAborts {
		c.aborts.ids = append(c.aborts.ids, generatePrefix+requestID)
	}
	if !c.aborts.sending {
		c.aborts.sending = true
		time.AfterFunc(abortGather, c.sendAborts)
	}
}

// aborts are the ids that the engine is still to be told. One message is under
// way at a time, with all that have gathered: a stuck server loses all its
// requests at once, and takes one connection for them.
type aborts struct {
	mu      sync.Mutex
	ids     []string
	sending bool
}

// take returns the ids that have gathered. If there are none, sending is over.
func (a *aborts) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.ids
	a.ids, a.sending = nil, len(ids) > 0
	return ids
}

// sendAborts runs until nothing is left to say.
func (c *Client) sendAborts() {
	for ids := c.aborts.take(); len(ids) > 0; ids = c.aborts.take() {
		c.sendAbort(ids)
	}
}

func (c *Client) sendAbort(ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	body, err := json.Marshal(map[string][]string{"request_ids": ids})
	if err != nil {
		return
	}
	if resp, err := c.link.Post(ctx, abortPath, ids[0], body); err == nil {
		resp.Finish()
	}
}
