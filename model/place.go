package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"baton/hub"
)

// A finder finds the folder or .gguf file that a path means: a path on this machine,
// or a model of the hub.
type finder struct {
	hub     *hub.Hub
	fetches *fetches // nil: nothing is fetched
}

// localFinder fetches nothing.
func localFinder() finder { return finder{hub: hub.Local(os.Getenv)} }

// place returns the folder or file that a path means, which a user gave. The error is
// ErrFetching in its chain while it is being fetched.
func (f finder) place(path string) (string, error) {
	place, err := f.placeOf(path)
	if err != nil {
		return "", err
	}
	return f.withTokenizer(place)
}

// placeHinted is place for a word of a worker, in which a relative path means
// nothing: it is one of that machine.
func (f finder) placeHinted(hint string) (place string, err error) {
	if place, err = f.placeOfHint(hint); err != nil {
		return "", err
	}
	return f.withTokenizer(place)
}

func (f finder) placeOfHint(hint string) (string, error) {
	if ref, ok := refOfHint(hint); ok && !(filepath.IsAbs(hint) && exists(hint)) {
		return f.placeOfRef(ref)
	}
	return f.placeOf(hint)
}

// withTokenizer is place itself, or that of the base model if place is the folder of
// a LoRA adapter: adapters have the tokenizer of their base.
func (f finder) withTokenizer(place string) (string, error) {
	base, err := adapterBase(place)
	if base == "" || err != nil {
		return place, err
	}
	ofBase, err := f.placeOfHint(base)
	if err != nil {
		return "", fmt.Errorf("%s is an adapter of %s: %w", place, base, err)
	}
	return ofBase, nil
}

func (f finder) placeOf(path string) (string, error) {
	path = expandHome(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && (info.IsDir() || isGGUFName(path)):
		return filepath.Clean(path), nil
	case err == nil && filepath.Base(path) == tokenizerFile:
		return "", fmt.Errorf("%s is one file of a model; give the folder it lies in", path)
	case err == nil:
		return "", fmt.Errorf("%s is neither a model folder nor a .gguf file", path)
	}
	if ref, ok := hub.ParseRef(path); ok {
		return f.placeOfRef(ref)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w; give a model folder or a .gguf file that can be read", err)
	}
	return "", fmt.Errorf("%s is not there; give a model folder, a .gguf file, or the hub id of a model", path)
}

// placeOfRef looks for a model of the hub on this machine, and has it fetched if it
// is not there, or not whole.
func (f finder) placeOfRef(ref hub.Ref) (string, error) {
	found, ok := f.hub.Find(ref)
	switch {
	case ok && found.Complete, ok && f.fetches == nil && isUsable(found.Path):
		return found.Path, nil
	case f.fetches == nil:
		return "", f.hub.Missing(ref)
	}
	fetched, err := f.fetches.want(ref)
	switch {
	case err == nil:
		return fetched.Path, nil
	case !ok, !isUsable(found.Path), errors.Is(err, ErrFetching) && !f.fetches.isOverdue(ref):
		return "", err
	}
	// What is here may be all that there is, and a worker waits for it.
	f.fetches.doWithout(ref, found.Path, err)
	return found.Path, nil
}

// isLocal tells whether a hint of a worker is on this machine.
func (f finder) isLocal(hint string) bool {
	if filepath.IsAbs(hint) {
		if info, err := os.Stat(hint); err == nil && (info.IsDir() || isGGUFName(hint)) {
			return true
		}
	}
	ref, ok := refOfHint(hint)
	if !ok {
		return false
	}
	found, ok := f.hub.Find(ref)
	return ok && (found.Complete || isUsable(found.Path))
}

// refOfHint is the hub's model that a worker names, by its id or by its path in
// that machine's cache.
func refOfHint(hint string) (hub.Ref, bool) {
	if ref, ok := hub.RefOfCachePath(hint); ok {
		return ref, true
	}
	return hub.ParseRef(hint)
}

// isUsable tells whether a model can be read of what is at place.
func isUsable(place string) bool {
	if isGGUFName(place) || isFile(filepath.Join(place, tokenizerFile)) {
		return true
	}
	base, err := adapterBase(place)
	return base != "" && err == nil
}

// adapterBase returns the model that the folder of a LoRA adapter belongs to, ""
// if it is none, or has a tokenizer of its own.
func adapterBase(dir string) (string, error) {
	if isFile(filepath.Join(dir, tokenizerFile)) {
		return "", nil
	}
	path := filepath.Join(dir, adapterFile)
	data, err := readFile(path)
	if data == nil || err != nil {
		return "", nil // no adapter, or no folder
	}
	var config struct {
		Base string `json:"base_model_name_or_path"`
	}
	if err := json.Unmarshal(data, &config); err != nil || config.Base == "" {
		return "", fmt.Errorf("%s does not say which model it adapts; give that model's folder with --model-path", path)
	}
	if _, isRef := hub.ParseRef(config.Base); !isRef && !filepath.IsAbs(config.Base) {
		return "", fmt.Errorf("%s adapts %q, which is a path on the machine it was made on; give the base model's folder with --model-path", path, config.Base)
	}
	return config.Base, nil
}

func isGGUFName(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".gguf") }

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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
