package stream

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"baton/engine/transport"
)

const (
	// AbortTimeout bounds the word to a server that may be stuck.
	AbortTimeout = 2 * time.Second
	// AbortGather is how long ids gather before they are told: requests are mostly
	// left together, and their own connections are to be closed first.
	AbortGather = 10 * time.Millisecond
	// maxAborts is how many requests wait to be named. Of those beyond it the engine
	// learns from their closed connections only.
	maxAborts = 4096
)

// Aborts are the ids of left requests that an engine is still to be told. One
// message is under way at a time: a stuck server loses all its requests at once, and
// takes one connection for them. The zero value is ready; it is safe for concurrent
// use.
type Aborts struct {
	mu      sync.Mutex // guards what follows
	ids     []string
	sending bool
}

// Add has tell called with the id, and the others that have gathered, a moment later
// on another goroutine: the request it is about is being moved meanwhile. tell is the
// same function in every call.
func (a *Aborts) Add(id string, tell func(ids []string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ids) < maxAborts {
		a.ids = append(a.ids, id)
	}
	if !a.sending {
		a.sending = true
		time.AfterFunc(AbortGather, func() {
			for ids := a.take(); len(ids) > 0; ids = a.take() {
				tell(ids)
			}
		})
	}
}

// take returns the ids that have gathered. If there are none, sending is over.
func (a *Aborts) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.ids
	a.ids, a.sending = nil, len(ids) > 0
	return ids
}

// Tell posts one message about left requests, and reports whether the server has
// taken it.
func Tell(link *transport.Link, path, requestID string, message any) bool {
	ctx, cancel := context.WithTimeout(context.Background(), AbortTimeout)
	defer cancel()
	body, err := json.Marshal(message)
	if err != nil {
		return false
	}
	resp, err := link.Post(ctx, path, requestID, body)
	if err != nil {
		return false
	}
	resp.Finish()
	return resp.Status == http.StatusOK
}
