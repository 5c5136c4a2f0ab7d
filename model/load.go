package model

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"baton/chattemplate"
)

// Load reads the model with this public name from path: a model folder, a .gguf
// file, or a hub id that is in the local hub cache. Nothing is fetched.
//
// The error is one sentence that names the file at fault and the way out.
func Load(name, path string) (*Model, error) {
	m, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	m.Name = name
	return m, nil
}

// load is Load before the model has a public name.
func load(path string) (*Model, error) {
	place, err := locate(path)
	if err != nil {
		return nil, err
	}
	var m *Model
	if isFolder(place) {
		m, err = loadFolder(place)
	} else {
		m, err = loadGGUF(place)
	}
	if err != nil {
		return nil, err
	}
	m.Path = place
	m.Shape = shapeOf(m)
	m.digest = sync.OnceValue(func() Digest { return digestOf(m.Tokenizer) })
	return m, nil
}

// locate returns the file or folder that path means.
func locate(path string) (string, error) {
	path = expandHome(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && (info.IsDir() || strings.HasSuffix(strings.ToLower(path), ".gguf")):
		return filepath.Clean(path), nil
	case err == nil && filepath.Base(path) == "tokenizer.json":
		return "", fmt.Errorf("%s is one file of a model; give the folder it lies in", path)
	case err == nil:
		return "", fmt.Errorf("%s is neither a model folder nor a .gguf file", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w; give a model folder or a .gguf file that can be read", err)
	case isHubID(path):
		return locateInHubCache(path)
	}
	return "", fmt.Errorf("%s is not there; give a model folder, a .gguf file, or the hub id of a model in the local hub cache", path)
}

// expandHome replaces a leading ~/, which a shell leaves alone behind an equals
// sign and which nothing replaces in a file or the environment.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxFileBytes bounds each file that is read whole. The largest tokenizer.json
// in use has some 35 MB.
const maxFileBytes = 256 << 20

// readFile returns the content of a file, nil if it is not there.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes, which no such file is", path, maxFileBytes)
	}
	return data, nil
}

// parseTemplate compiles one template; where names the place it stands in.
func parseTemplate(source, where string) (*chattemplate.Template, error) {
	t, err := chattemplate.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; repair it, or put a working chat_template.jinja into a model folder and give that with --model-path", where, err)
	}
	return t, nil
}
