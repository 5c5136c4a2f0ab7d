package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Find looks for a ref on this machine. It asks nobody.
func (h *Hub) Find(ref Ref) (Found, bool) {
	if found, ok := h.findCached(ref); ok {
		return found, true
	}
	commit, ok := h.headers.commit(ref)
	if !ok {
		return Found{}, false
	}
	return h.headers.findGGUF(ref, commit)
}

// findCached looks in the cache of huggingface_hub.
func (h *Hub) findCached(ref Ref) (Found, bool) {
	commit, ok := h.cache.commit(ref)
	if !ok {
		return Found{}, false
	}
	if ref.File != "" || ref.Quant != "" {
		return h.cache.findGGUF(ref, commit)
	}
	folder := Found{Path: h.cache.snapshot(ref, commit), Complete: h.isComplete(ref, commit)}
	if here, _ := h.cache.has(ref, commit, tokenizerFile); here {
		return folder, true
	}
	if file, ok := h.cache.findGGUF(ref, commit); ok { // llama.cpp keeps its files there too
		return file, true
	}
	if _, ok := h.headers.commit(ref); ok {
		return Found{}, false
	}
	return folder, true
}

// findGGUF returns the .gguf file of a commit that ref means.
func (c cache) findGGUF(ref Ref, commit string) (Found, bool) {
	name := chooseGGUF(c.ggufFiles(ref, commit), ref)
	if name == "" {
		return Found{}, false
	}
	return Found{Path: filepath.Join(c.snapshot(ref, commit), filepath.FromSlash(name)), Complete: true}, true
}

// isComplete tells whether everything that matters of a commit is here.
func (h *Hub) isComplete(ref Ref, commit string) bool {
	var unknown []string
	for _, name := range decisive {
		if here, absent := h.cache.has(ref, commit, name); !here && !absent {
			unknown = append(unknown, name)
		}
	}
	// Most models have their template in one place or in the other.
	if len(unknown) == 1 && unknown[0] == templateFile && h.cache.mentions(ref, commit, tokenizerConfigFile, `"chat_template"`) {
		return true
	}
	if len(unknown) == 0 {
		return true
	}
	tree := h.cache.tree(ref, commit)
	return tree != nil && !slices.ContainsFunc(unknown, func(name string) bool { return tree[name] })
}

// Missing is one sentence that says what is to be done about a ref that is not on
// this machine, where nothing is fetched.
func (h *Hub) Missing(ref Ref) error {
	missing := fmt.Sprintf("%s is no file or folder here, and not in the hub cache %s", ref, h.cache.dir)
	if h.offline != "" {
		return failed(ErrOffline, "%s, and %s forbids to fetch it; unset that, or give a folder or a .gguf file with --model-path", missing, h.offline)
	}
	return failed(ErrNotFound, "%s; fetch it with \"hf download %s\", or give a folder or a .gguf file with --model-path", missing, ref.Repo)
}

// IsOffline tells whether nothing can be fetched.
func (h *Hub) IsOffline() bool { return h.offline != "" || h.endpoint == nil }

// Fetch brings the small files of a model into the cache, or the header of a .gguf
// file into our own. It makes one attempt; a second one continues where the first
// was broken off. The error is an [Error].
//
// What is in the cache stays the commit that it is, and only what is missing there
// is fetched: a newer commit's tokenizer beside the weights of an older one would
// be a trap for every engine that uses the cache without a network.
func (h *Hub) Fetch(ctx context.Context, ref Ref) (Found, error) {
	if h.IsOffline() {
		return Found{}, h.Missing(ref)
	}
	asked := ref
	if commit, ok := h.cache.namedCommit(ref); ok && ref.File == "" && ref.Quant == "" {
		asked.Revision = commit
	}
	began := time.Now()
	h.log.Info("asking the hub for a model's files", "model", ref.String(), "hub", h.endpoint.Host)
	list, err := h.list(ctx, asked)
	if err != nil {
		return Found{}, err
	}
	files, absent := chooseFiles(list.files)
	if gguf := chooseGGUF(list.files, ref); gguf != "" && !hasTokenizer(files) {
		return h.fetchHeader(ctx, ref, list.commit, gguf)
	}
	if ref.File != "" || ref.Quant != "" {
		return Found{}, failed(ErrNotFound, "%s has no .gguf file that is %s; of such files it has %s", ref.Repo, ref, listed(ggufNames(list.files)))
	}
	if !hasTokenizer(files) {
		return Found{}, failed(ErrNotFound, "%s has no tokenizer on %s: neither a %s nor a .gguf file; give the folder of the model's tokenizer with --model-path", ref.Repo, h.endpoint.Host, tokenizerFile)
	}
	p := newProgress(h.log, ref, len(files))
	for _, name := range files {
		if here, _ := h.cache.has(ref, list.commit, name); !here {
			if err := h.get(ctx, ref, list.commit, name, p); err != nil {
				return Found{}, err
			}
		}
		p.done++
	}
	if err := h.note(ref, asked, list.commit, absent); err != nil {
		return Found{}, h.cannotWrite(err)
	}
	h.log.Info("a model's files are there", "model", ref.String(), "commit", list.commit, "files", len(files), "bytes", p.bytes, "took", time.Since(began).Round(time.Millisecond))
	return Found{Path: h.cache.snapshot(ref, list.commit), Complete: true}, nil
}

// note writes down, when all files of a commit are there, what is known of it.
func (h *Hub) note(ref, asked Ref, commit string, absent []string) error {
	for _, name := range absent {
		if _, known := h.cache.has(ref, commit, name); known {
			continue
		}
		if err := h.cache.setAbsent(ref, commit, name); err != nil {
			return err
		}
	}
	if asked.Revision != ref.Revision { // the cache had it already
		return nil
	}
	return errors.Join(h.cache.tag(), h.cache.setRef(ref, commit))
}

// hasTokenizer tells whether a tokenizer can be had of these files: a LoRA adapter
// has none, but names the model that has.
func hasTokenizer(files []string) bool {
	for _, name := range files {
		switch name {
		case tokenizerFile, adapterFile, otherTokenizers[0], otherTokenizers[1]:
			return true
		}
	}
	return false
}
