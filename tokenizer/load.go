package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// ErrUnsupported is wrapped by every error that says: this file is sound, but
// asks for something that this package does not do.
var ErrUnsupported = errors.New("not supported")

func unsupported(part, kind string) error {
	if kind == "" {
		return fmt.Errorf("%s: it has no type", part)
	}
	return fmt.Errorf("%s %q is %w", part, clip([]byte(kind)), ErrUnsupported)
}

// Load reads a tokenizer from path: a tokenizer.json file, or a folder that
// holds one.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("tokenizer %s: %d bytes are above the limit of %d", path, info.Size(), MaxFileBytes)
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(file, MaxFileBytes+1)); err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	t, err := Parse(data.Bytes())
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Parse reads a tokenizer from the content of a tokenizer.json file. What the
// file asks for and this package cannot do is an error that wraps
// [ErrUnsupported] and names the component.
//
// The file's "truncation" and "padding" are ignored: they are for training.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%d bytes are above the limit of %d", len(data), MaxFileBytes)
	}
	root, model, cuts, err := fileParts(data)
	if err != nil {
		return nil, err
	}
	for name, raw := range root {
		if name != "added_tokens" && len(raw) > maxComponentBytes {
			return nil, fmt.Errorf("%s: %d bytes are above the limit of %d", name, len(raw), maxComponentBytes)
		}
	}
	t := &Tokenizer{}
	var normalizers normalizerChain
	if err := normalizers.add(root["normalizer"], 0); err != nil {
		return nil, err
	}
	t.normalizers = normalizers.all
	if err := t.pre.add(root["pre_tokenizer"], 0); err != nil {
		return nil, err
	}
	if t.decoding, err = newDecoding(root["decoder"]); err != nil {
		return nil, err
	}
	if err := t.post.add(root["post_processor"], 0); err != nil {
		return nil, err
	}
	if model == nil {
		return nil, errors.New("no model in it: this is not a tokenizer.json")
	}
	if err := t.model.parse(model, cuts, t.pre.byteLevel); err != nil {
		return nil, err
	}
	added, err := parseAddedTokens(root["added_tokens"])
	if err != nil {
		return nil, err
	}
	if err := t.finish(t.placeAdded(added)); err != nil {
		return nil, err
	}
	return t, nil
}

// fileParts returns the members of a file that are read here, and those of its
// model, nil if it has none, with the places where the list of merges can be cut.
// One walk finds all, because the model is nearly all of the file.
func fileParts(data []byte) (root, model map[string]json.RawMessage, cuts []int, err error) {
	s := scanner{data: data}
	root = map[string]json.RawMessage{}
	ofModel := func(key []byte) error {
		isMerges := string(key) == "merges"
		err := s.keep(model, key, modelMembers)
		if isMerges {
			cuts = slices.Clone(s.cuts)
		}
		return err
	}
	err = s.object(func(key []byte) error {
		switch {
		case string(key) != "model":
			return s.keep(root, key, rootMembers)
		case s.next() == 'n':
			model = nil
			_, err := s.skip()
			return err
		}
		model, cuts = map[string]json.RawMessage{}, nil
		if err := s.object(ofModel); err != nil {
			return fmt.Errorf("model: %w", err)
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	return root, model, cuts, err
}

var rootMembers = []string{"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"}
