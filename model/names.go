package model

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// names is what the flags --model-path and --served-model-name say.
type names struct {
	paths       map[string]string // by public name
	defaultPath string            // of every model without a path of its own; "" = none

	served      map[string]string // public name by the worker's own
	defaultName string            // public name of every other model; "" = the worker's own
}

// maxNameBytes bounds a public name.
const maxNameBytes = 256

// parseNames reads the values of both flags. Its errors name the flag.
func parseNames(paths, served []string) (*names, error) {
	n := &names{paths: make(map[string]string), served: make(map[string]string)}
	for _, value := range paths {
		name, path := splitPath(value)
		switch old, again := n.paths[name]; {
		case path == "" || len(name) > maxNameBytes:
			return nil, fmt.Errorf("--model-path %s: must be a folder, a .gguf file or a hub id, or NAME= and one of these", value)
		case name == "" && n.defaultPath != "":
			return nil, fmt.Errorf("--model-path %s: there is already one without a NAME (%s); write NAME=PATH for all but one", value, n.defaultPath)
		case again && old != path:
			return nil, fmt.Errorf("--model-path %s: the model %q has already the path %s", value, name, old)
		case name == "":
			n.defaultPath = path
		default:
			n.paths[name] = path
		}
	}
	for _, value := range served {
		own, public, both := strings.Cut(value, "=")
		if !both {
			own, public = "", value
		}
		switch old, again := n.served[own]; {
		case public == "" || both && own == "" || len(public) > maxNameBytes:
			return nil, fmt.Errorf("--served-model-name %s: must be NAME, or WORKERNAME=NAME", value)
		case !both && n.defaultName != "" && n.defaultName != public:
			return nil, fmt.Errorf("--served-model-name %s: there is already one without a WORKERNAME (%s); write WORKERNAME=NAME for all but one", value, n.defaultName)
		case again && old != public:
			return nil, fmt.Errorf("--served-model-name %s: the worker's model %q has already the name %q", value, own, old)
		case !both:
			n.defaultName = public
		default:
			n.served[own] = public
		}
	}
	return n, nil
}

// splitPath splits [NAME=]PATH. A path may have an equals sign itself, so a
// value that exists as it stands, or that begins like a path, has no name.
func splitPath(value string) (name, path string) {
	name, path, found := strings.Cut(value, "=")
	if !found || name == "" {
		return "", value
	}
	if name[0] == '/' || name[0] == '.' || name[0] == '~' {
		return "", value
	}
	if _, err := os.Stat(value); err == nil {
		return "", value
	}
	return name, path
}

// public returns the public name of what a worker calls own.
func (n *names) public(own string) string {
	if name, ok := n.served[own]; ok {
		return name
	}
	if n.defaultName != "" {
		return n.defaultName
	}
	return own
}

// path returns the configured path of a public name, "" if there is none.
func (n *names) path(public string) string {
	if path, ok := n.paths[public]; ok {
		return path
	}
	return n.defaultPath
}

// configured returns every public name that the flags mention, sorted.
func (n *names) configured() []string {
	var all []string
	for name := range n.paths {
		all = append(all, name)
	}
	for _, name := range n.served {
		all = append(all, name)
	}
	if n.defaultName != "" {
		all = append(all, n.defaultName)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
