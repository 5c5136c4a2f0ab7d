package vllm

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	"baton/engine"
	"baton/engine/transport"
)

// unknownLimit stands for a --max-logprobs of which nothing is known.
const unknownLimit = -1

// Parameters implements engine.Client: all that there are, but for what this
// server does not have, or has refused.
func (c *Client) Parameters() engine.Parameters {
	if known := c.known.Load(); known != nil {
		return known.parameters
	}
	return Parameters
}

// Unsupported implements engine.Client.
func (c *Client) Unsupported(req *engine.Request) string {
	if limit := c.maxLogprobs.Load(); limit != unknownLimit && req.Output.Logprobs && req.Output.TopLogprobs > int(limit) {
		return string(engine.Logprobs)
	}
	if name := c.Parameters().Unsupported(req); name != "" {
		return name
	}
	return req.Constraint.Unenforced(unenforced)
}

// without returns p without one parameter.
func without(p engine.Parameters, name engine.Parameter) engine.Parameters {
	of := maps.Clone(p)
	of[name] = engine.Support{Fidelity: engine.Unsupported}
	return of
}

// refusal reads a refusal before the stream, and learns from it what this server
// was not started for, so that it is not asked again for the same.
func (c *Client) refusal(resp *transport.Response) *engine.Error {
	err, complaint := resp.StatusErrorComplaint()
	if isEngineDeath(complaint) {
		err.Kind, err.Message, err.Param, err.Err = engine.EngineShutdown, "", "", errors.New(complaint.Message)
		return err
	}
	if err.Kind != engine.InvalidRequest {
		return err
	}
	err.Elsewhere = isOwnLimit(complaint)
	if limit, ok := maxLogprobs(complaint.Message); ok {
		c.maxLogprobs.Store(int32(limit))
	}
	if isWithoutPriorities(complaint.Message) {
		c.lacks(engine.Priority)
	}
	return err
}

// lacks notes that this server does not have a parameter, until Probe finds
// another version.
func (c *Client) lacks(name engine.Parameter) {
	for known := c.known.Load(); known != nil; known = c.known.Load() {
		next := &description{version: known.version, parameters: without(known.parameters, name)}
		if c.known.CompareAndSwap(known, next) {
			return
		}
	}
}

// isOwnLimit tells a 400 that this worker gives because of how it was started from
// one that every worker would give. It knows the request's length, which is held
// against --max-model-len; the number of log-probabilities (--max-logprobs); and
// priorities, which older versions refuse without --scheduling-policy priority.
func isOwnLimit(c transport.Complaint) bool {
	_, logprobs := maxLogprobs(c.Message)
	return c.Param == "input_tokens" || c.Param == "max_tokens" && strings.Contains(c.Message, "at least 1, got 0") ||
		strings.Contains(c.Message, "maximum context length") || strings.Contains(c.Message, "maximum model length") ||
		logprobs || isWithoutPriorities(c.Message)
}

// maxLogprobs reads the limit in "Requested sample logprobs of 20, which is greater
// than max allowed: 5".
func maxLogprobs(message string) (limit int, ok bool) {
	if !strings.Contains(message, "logprobs") {
		return 0, false
	}
	_, after, ok := strings.Cut(message, "greater than max allowed: ")
	if !ok {
		return 0, false
	}
	digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789"))]
	limit, err := strconv.Atoi(digits)
	return limit, err == nil && limit < 1<<31
}

// isWithoutPriorities knows the words of a server without the scheduling policy.
func isWithoutPriorities(message string) bool {
	return strings.Contains(message, "riority scheduling is not enabled") || strings.Contains(message, "does not support priority")
}
