package sglang

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	abortPath = "/abort_request"
	// abortTimeout bounds the word to a server that may be stuck.
	abortTimeout = 2 * time.Second
	// abortGather is how long ids gather before they are told: requests are mostly
	// left together, and their own connections are to be closed first.
	abortGather = 10 * time.Millisecond
	// maxAborts is how many requests wait to be named. Of those beyond it the engine
	// learns from their closed connections only.
	maxAborts = 4096
)

// abort tells the engine that nobody waits for the request any more. The closed
// connection says the same, but the server acts on that two seconds later. It goes
// its own way, because the request it is about is being moved meanwhile.
//
// The server takes the id for the beginning of ids. Ours all have the same length
// after the same beginning, so it means one request only.
func (c *Client) abort(requestID string) {
	if requestID == "" {
		return // it would be the beginning of all
	}
	c.aborts.mu.Lock()
	defer c.aborts.mu.Unlock()
	if len(c.aborts.ids) < maxAborts {
		c.aborts.ids = append(c.aborts.ids, requestID)
	}
	if !c.aborts.sending {
		c.aborts.sending = true
		time.AfterFunc(abortGather, c.sendAborts)
	}
}

// aborts are the ids that the engine is still to be told. A message names one of
// them, and one is under way at a time.
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

// sendAborts runs until nothing is left to say. A server that does not listen to
// one message is not sent the others: it has lost all its requests at once, and
// their connections with them.
func (c *Client) sendAborts() {
	for ids := c.aborts.take(); len(ids) > 0; ids = c.aborts.take() {
		for _, id := range ids {
			if !c.sendAbort(id) {
				break
			}
		}
	}
}

// sendAbort reports whether the server has taken the message.
func (c *Client) sendAbort(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"rid": id})
	if err != nil {
		return false
	}
	resp, err := c.link.Post(ctx, abortPath, id, body)
	if err != nil {
		return false
	}
	resp.Finish()
	return resp.Status == http.StatusOK
}
