package simulation

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"baton/engine/sim"
)

// Agents ask for tools, thoughts and constrained answers, and their requests are
// killed in the middle of them.
func TestFaultsDoNotShowToAgents(t *testing.T) {
	runWorlds(t, func(seed uint64, c reached) *World {
		w := NewWorld(seed, sim.KindVLLM, sim.KindSGLang, sim.KindTRTLLM, sim.KindLlamaCPP)
		w.agent(seed, c)
		for i := range w.Workers {
			w.Workers[i].Style = sim.StyleWords // the others write no calls
			w.Workers[i].Server.Deterministic = true
		}
		return w
	}, "left", "failed", "whole", "called", "thought", "thought before a constraint", "response", "forced", "constrained",
		"finish stop", "finish length", "finish tool_calls", "finish completed", "finish incomplete")
}

// toolNames are prefixes of each other, of markers, and odd.
var toolNames = []string{"look", "look_up", "look_up.again", "tool_call", "think", "see:1", "a"}

var toolSchemas = []string{
	`{"type":"object","properties":{"at":{"type":"string"},"n":{"type":"integer"}},"required":["at","n"]}`,
	`{"type":"object","properties":{"list":{"type":"array","items":{"$ref":"#/$defs/item"}}},"required":["list"],"$defs":{"item":{"type":"string"}}}`,
	`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["next"],
		"$defs":{"node":{"type":"object","properties":{"v":{"type":"boolean"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v"]}}}`,
	`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/end"}]}},"required":["next"],"definitions":{"end":{"type":"null"}}}`,
	`{"type":"object"}`,
}

// agentStops end answers in the middle of what has a form.
var agentStops = []string{"\":", "}", "e", "</think>", "<tool_call>", "\"name", "{", "</", "an"}

// agent makes of a world's request that of an agent.
func (w *World) agent(seed uint64, c reached) {
	r := rand.New(rand.NewPCG(seed, 3))
	one := func(n int) bool { return r.IntN(n) == 0 }
	b := map[string]any{"model": sim.DefaultModelName, "temperature": 0, "max_tokens": 1 + r.IntN(250), "stream": !one(3)}
	w.Body, w.Path = b, "/v1/chat/completions"
	asked := prose(r)
	thinks := one(2)
	if thinks {
		asked += " /think"
	}
	b["messages"] = []any{map[string]any{"role": "system", "content": prose(r)}, map[string]any{"role": "user", "content": asked}}

	forced := false
	if !one(6) {
		var tools []any
		names := r.Perm(len(toolNames))[:1+r.IntN(3)]
		for _, at := range names {
			name := toolNames[at]
			tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
				"name": name, "parameters": json.RawMessage(toolSchemas[r.IntN(len(toolSchemas))]),
			}})
			if one(2) {
				asked += " " + name
			}
		}
		b["messages"].([]any)[1] = map[string]any{"role": "user", "content": asked}
		b["tools"] = tools
		named := map[string]any{"type": "function", "function": map[string]any{"name": toolNames[names[0]]}}
		b["tool_choice"] = []any{"auto", "auto", "auto", "none", "required", named}[r.IntN(6)]
		forced = b["tool_choice"] == "required" || w.isNamed()
		b["parallel_tool_calls"] = !one(3)
	}
	constrained := forced
	if one(3) {
		constrained = true
		switch {
		case b["tools"] == nil && one(2):
			b["guided_choice"] = []any{"yes", "no", "it may be"}
		case one(2):
			b["response_format"] = map[string]any{"type": "json_object"}
		default:
			b["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "schema": json.RawMessage(toolSchemas[r.IntN(len(toolSchemas))])}}
		}
	}
	if one(4) {
		b["reasoning_effort"] = []any{"high", "none"}[r.IntN(2)]
		thinks = b["reasoning_effort"] == "high"
	}
	if one(5) {
		b["stop"] = []any{agentStops[r.IntN(len(agentStops))], agentStops[r.IntN(len(agentStops))]}
	}
	if one(8) {
		b["include_reasoning"] = false
	}
	for what, is := range map[string]bool{"forced": forced, "constrained": constrained, "thought before a constraint": constrained && thinks} {
		if is {
			c[what]++
		}
	}
	if constrained && b["stream"] == true {
		w.Saved = false // what was shown of it cannot be begun anew
	}
	if one(3) {
		w.toResponse()
		c["response"]++
		return
	}
	b["n"] = 1 + r.IntN(8)/5
	b["return_token_ids"] = one(2)
	if b["stream"] == true && one(2) {
		b["stream_options"] = map[string]any{"include_usage": true}
	}
}

func (w *World) isNamed() bool {
	_, ok := w.Body["tool_choice"].(map[string]any)
	return ok
}

// toResponse asks the same of the Responses API.
func (w *World) toResponse() {
	b := w.Body
	w.Path = responsesPath
	messages := b["messages"].([]any)
	b["instructions"], b["input"], b["max_output_tokens"] = messages[0].(map[string]any)["content"], messages[1:], b["max_tokens"]
	if tools, ok := b["tools"].([]any); ok {
		for i := range tools {
			flat := tools[i].(map[string]any)["function"].(map[string]any)
			flat["type"] = "function"
			tools[i] = flat
		}
	}
	if w.isNamed() {
		b["tool_choice"] = map[string]any{"type": "function", "name": b["tool_choice"].(map[string]any)["function"].(map[string]any)["name"]}
	}
	if effort, ok := b["reasoning_effort"]; ok {
		b["reasoning"] = map[string]any{"effort": effort, "summary": []any{nil, "auto"}[len(w.Workers)%2]}
	}
	if format, ok := b["response_format"].(map[string]any); ok {
		if schema, ok := format["json_schema"].(map[string]any); ok {
			format = map[string]any{"type": "json_schema", "name": schema["name"], "schema": schema["schema"]}
		}
		b["text"] = map[string]any{"format": format}
	}
	for name := range strings.FieldsSeq("messages max_tokens reasoning_effort response_format") {
		delete(b, name)
	}
}
