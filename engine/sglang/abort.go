package sglang

import "baton/engine/stream"

const abortPath = "/abort_request"

// abort tells the engine that nobody waits for the request any more. The closed
// connection says the same, but the server acts on that two seconds later.
//
// The server takes the id for the beginning of ids. Ours all have the same length
// after the same beginning, so it means one request only.
func (c *Client) abort(requestID string) {
	if requestID == "" {
		return // it would be the beginning of all
	}
	c.aborts.Add(requestID, c.tellAborts)
}

// tellAborts names one request a message. A server that does not listen to one is
// not sent the others: it has lost all its requests at once, and their connections
// with them.
func (c *Client) tellAborts(ids []string) {
	for _, id := range ids {
		if !stream.Tell(c.link, abortPath, id, map[string]string{"rid": id}) {
			return
		}
	}
}
