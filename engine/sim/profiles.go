package sim

import (
	"fmt"
	"slices"
	"strings"
)

// A profile is what tells one version of an engine, or one way to start it, from
// another, as far as a frontend sees it.
type profile struct {
	kind    string
	version string // what it says of itself

	// Of vLLM and TensorRT-LLM: fields of a request beyond those that all versions
	// have.
	fields []string

	// Of vLLM.
	noTokenIDs   bool   // before 0.10.2: text only
	generate     string // what /inference/v1/generate is; see the constants
	noPriorities bool   // another priority than 0 is refused

	// Of TensorRT-LLM.
	strips       bool // the end id is left out even if it is asked for
	silentErrors bool // the stream just ends
	tokenize     bool // it has /_internal/tokenize

	// Of llama.cpp.
	noReturnTokens bool // a build of 2024: no ids, and a /props without its version
	noPings        bool // sse_ping_interval is not known
	embeddings     bool // no completions at all
	router         bool // several models, loaded on demand
	adapters       []string
}

// What /inference/v1/generate of a vLLM is.
const (
	generateGated   = "gated"   // 403 unless it was opened
	generateMissing = "missing" // 404
	generateWhole   = "whole"   // there, and does not stream
	generateDrops   = "drops"   // streams, and says nothing of an end without tokens
)

// profiles are those that ServerConfig.Profile names.
var profiles = map[string]profile{
	"vllm-0.32": {kind: KindVLLM, version: "0.32.0", generate: generateGated, fields: []string{"priority", "cache_salt", "return_token_ids", "structured_outputs"}},
	"vllm-0.24": {kind: KindVLLM, version: "0.24.0", generate: generateDrops, fields: []string{"priority", "cache_salt", "return_token_ids", "structured_outputs"}},
	"vllm-0.15": {kind: KindVLLM, version: "0.15.1", generate: generateWhole, fields: []string{"priority", "cache_salt", "return_token_ids", "structured_outputs"}, noPriorities: true},
	"vllm-0.10": {kind: KindVLLM, version: "0.10.2", generate: generateMissing, fields: []string{"priority", "return_token_ids"}, noPriorities: true},
	"vllm-0.9":  {kind: KindVLLM, version: "0.9.2", generate: generateMissing, fields: []string{"priority"}, noPriorities: true, noTokenIDs: true},

	"trtllm-1.4": {kind: KindTRTLLM, version: "1.4.0rc1", fields: []string{"prompt_ignore_length", "thinking_token_budget", "priority", "conversation_params"}, tokenize: true},
	"trtllm-1.2": {kind: KindTRTLLM, version: "1.2.0", fields: []string{"prompt_ignore_length"}},
	"trtllm-1.0": {kind: KindTRTLLM, version: "1.0.0", strips: true, silentErrors: true},

	"llamacpp-b11434":     {kind: KindLlamaCPP, version: "b11434-simulated"},
	"llamacpp-b5000":      {kind: KindLlamaCPP, version: "b5000-simulated", noPings: true},
	"llamacpp-b4000":      {kind: KindLlamaCPP, noReturnTokens: true, noPings: true},
	"llamacpp-embeddings": {kind: KindLlamaCPP, version: "b5000-simulated", embeddings: true},
	"llamacpp-router":     {kind: KindLlamaCPP, version: "b11434-simulated", router: true},
	"llamacpp-lora":       {kind: KindLlamaCPP, version: "b11434-simulated", adapters: []string{"style.gguf"}},
}

// defaultProfile is the profile of a kind for which none is named. SGLang has one
// only.
var defaultProfile = map[string]string{KindVLLM: "vllm-0.32", KindTRTLLM: "trtllm-1.4", KindLlamaCPP: "llamacpp-b11434"}

// profile is the one that c names.
func (c *Config) profile() profile {
	if c.Server.Profile != "" {
		return profiles[c.Server.Profile]
	}
	return profiles[defaultProfile[c.Kind]]
}

// profileNames lists the profiles of a kind, "" being all.
func profileNames(kind string) []string {
	var names []string
	for name, p := range profiles {
		if kind == "" || p.kind == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkProfile says what is wrong with the profile of c.
func (c *Config) checkProfile() error {
	p, ok := profiles[c.Server.Profile]
	switch {
	case c.Server.Profile == "" || ok && p.kind == c.Kind:
		return nil
	case len(profileNames(c.Kind)) == 0:
		return fmt.Errorf("sim: --profile %q: %s has none", c.Server.Profile, c.Kind)
	}
	return fmt.Errorf("sim: --profile %q: %s has %s", c.Server.Profile, c.Kind, strings.Join(profileNames(c.Kind), ", "))
}
