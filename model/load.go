package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"baton/chattemplate"
)

// Load reads the model with this public name from path: a model folder, a .gguf
// file, or a hub id that is in the local hub cache. Nothing is fetched.
//
// The error is one sentence that names the file at fault and the way out.
func Load(name, path string) (*Model, error) {
	place, err := localFinder().place(path)
	var m *Model
	if err == nil {
		m, err = load(place, new(tokenizers))
	}
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return m.named(name, &Options{}), nil
}

// load reads the folder or file at place. The model has no public name yet, and its
// tokenizer may be that of another with the same file.
func load(place string, shared *tokenizers) (m *Model, err error) {
	if isFolder(place) {
		m, err = loadFolder(place, shared)
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
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer // of the right size at once: a tokenizer.json has tens of MB
	content.Grow(int(min(info.Size(), maxFileBytes)) + bytes.MinRead)
	_, err = content.ReadFrom(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	data := content.Bytes()
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
