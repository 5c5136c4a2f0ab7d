package model

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"baton/hub"
)

// Options say where models' files lie and what models are called, as flags
// have it. The name "" stands for every model that is not named.
type Options struct {
	Paths       map[string]string // --model-path, by public name
	ServedNames map[string]string // --served-model-name: the public name by the worker's own
	// --tool-call-parser and --reasoning-parser, by public name: auto, none, or a
	// format's name. Where nothing is said it is auto.
	ToolCallParsers, ReasoningParsers map[string]string
	// Hub is where missing files are fetched from; nil = nothing is fetched, and the
	// local cache is the one that the environment names.
	Hub *hub.Hub
	Log *slog.Logger // nil = silent
}

// public returns the public name of what a worker calls own.
func (o *Options) public(own string) string {
	if name, ok := o.ServedNames[own]; ok {
		return name
	}
	if name, ok := o.ServedNames[""]; ok {
		return name
	}
	return own
}

// path returns the configured path of a public name, "" if there is none.
func (o *Options) path(public string) string {
	if path, ok := o.Paths[public]; ok {
		return path
	}
	return o.Paths[""]
}

// configured returns every public name that the flags mention, sorted.
func (o *Options) configured() []string {
	var all []string
	for name := range o.Paths {
		if name != "" {
			all = append(all, name)
		}
	}
	for _, name := range o.ServedNames {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// PathFlag is the flag that says where the files of the model public are. A name
// that is itself a path, as llama.cpp has it by default, or that holds a "="
// cannot stand before one.
func PathFlag(public string) string {
	if strings.Contains(public, "=") || filepath.IsAbs(public) || strings.HasPrefix(public, ".") || strings.HasPrefix(public, "~") {
		return "--model-path PATH"
	}
	return "--model-path " + public + "=PATH"
}
