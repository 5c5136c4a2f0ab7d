// Package arch tests the shape of the project: who may import whom.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the import graph between our own packages, by their first folder
// (and the second below engine). A package that is not here is not known to the
// architecture: add it here and to docs/ARCHITECTURE.md together.
var allowed = map[string][]string{
	"engine":       {},
	"alarm":        {},
	"sse":          {"alarm"},
	"openai":       {},
	"gguf":         {},
	"chattemplate": {"jsonbytes"},
	"config":       {},
	"smallfile":    {},
	"jsonbytes":    {},
	"socket":       {},
	"discovery":    {"smallfile"},
	"credentials":  {"smallfile"},
	"tokenizer":    {"gguf"},
	"hub":          {"gguf"},
	"parser":       {"jsonbytes"},

	"responsestore": {},

	"model": {"tokenizer", "chattemplate", "gguf", "hub", "parser"},

	"migration": {"engine"},
	"thinking":  {"engine"},
	"router":    {"alarm", "engine"},
	"backend":   {"engine", "tokenizer"},
	"tracing":   {"engine"},

	"engine/frame":      {"engine", "jsonbytes"},
	"engine/transport":  {"alarm", "engine", "sse", "socket"},
	"engine/stream":     {"engine", "sse", "engine/transport"},
	"engine/vllm":       {"engine", "engine/frame", "engine/stream", "engine/transport"},
	"engine/llamacpp":   {"engine", "sse", "engine/frame", "engine/stream", "engine/transport"},
	"engine/sglang":     {"engine", "sse", "engine/frame", "engine/stream", "engine/transport"},
	"engine/trtllm":     {"engine", "engine/frame", "engine/stream", "engine/transport"},
	"engine/detect":     {"engine", "engine/transport"},
	"engine/enginetest": {"engine", "sse", "engine/transport"},
	"engine/sim":        {"engine", "tokenizer"},

	"preprocess": {"engine", "backend", "model", "openai", "chattemplate", "tokenizer", "parser", "responsestore", "jsonbytes"},
	"server":     {"alarm", "engine", "backend", "preprocess", "openai", "parser", "sse", "router", "tracing", "responsestore", "jsonbytes", "socket"},
	"admin":      {"engine", "router", "server", "openai"},
	"cmd/baton":  nil, // the only place that knows every package
}

func TestImportGraph(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "baton/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		from := room(pkg.ImportPath)
		if from == "test" {
			continue
		}
		may, known := allowed[from]
		if !known {
			t.Errorf("%s: no such place in the architecture", pkg.ImportPath)
		}
		for _, imported := range pkg.Imports {
			to := room(imported)
			if to == "" || to == from || may == nil && known || slices.Contains(may, to) {
				continue
			}
			t.Errorf("%s must not import %s", pkg.ImportPath, imported)
		}
	}
}

// room returns the place of a package in the architecture, "" if it is not ours.
func room(path string) string {
	rest, ours := strings.CutPrefix(path, "baton/")
	if !ours {
		return ""
	}
	parts := strings.Split(rest, "/")
	if n := len(parts); n > 1 && (parts[0] == "engine" || parts[0] == "cmd") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
