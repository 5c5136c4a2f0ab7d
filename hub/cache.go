package hub

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A cache is a folder in huggingface_hub's layout.
//
// Source: file_download.py, _snapshot_download.py and _tree_cache.py of
// huggingface_hub 2.4.
type cache struct{ dir string }

func (c cache) repo(ref Ref) string              { return filepath.Join(c.dir, ref.folder()) }
func (c cache) blob(ref Ref, etag string) string { return filepath.Join(c.repo(ref), "blobs", etag) }

func (c cache) snapshot(ref Ref, commit string) string {
	return filepath.Join(c.repo(ref), "snapshots", commit)
}

func (c cache) lockFile(ref Ref, etag string) string {
	return filepath.Join(c.dir, ".locks", ref.folder(), etag+".lock")
}

// commit returns the commit that ref means here, false if nothing of it is here.
func (c cache) commit(ref Ref) (string, bool) {
	commit, ok := c.namedCommit(ref)
	if !ok && ref.Revision == DefaultRevision {
		return c.onlyCommit(ref)
	}
	return commit, ok
}

// namedCommit is commit for a ref that is pinned, or that the cache has a note of.
func (c cache) namedCommit(ref Ref) (string, bool) {
	if c.dir == "" {
		return "", false
	}
	commit := ref.Revision
	if !ref.IsPinned() {
		data, err := readSmall(filepath.Join(c.repo(ref), "refs", filepath.FromSlash(ref.Revision)), maxRefBytes)
		if commit = strings.TrimSpace(string(data)); err != nil || !commitForm.MatchString(commit) {
			return "", false
		}
	}
	return commit, isFolder(c.snapshot(ref, commit))
}

// onlyCommit is the commit of a model that was fetched at one commit only, which
// has no main.
func (c cache) onlyCommit(ref Ref) (string, bool) {
	if c.dir == "" || isFile(filepath.Join(c.repo(ref), "refs", DefaultRevision)) {
		return "", false
	}
	entries, err := os.ReadDir(filepath.Join(c.repo(ref), "snapshots"))
	if err != nil || len(entries) != 1 || !commitForm.MatchString(entries[0].Name()) {
		return "", false
	}
	return entries[0].Name(), true
}

// has tells whether a file of a commit is here, and whether it is known that the
// commit has no such file.
func (c cache) has(ref Ref, commit, name string) (here, absent bool) {
	local := filepath.FromSlash(name)
	if isFile(filepath.Join(c.snapshot(ref, commit), local)) {
		return true, false
	}
	return false, isFile(filepath.Join(c.repo(ref), ".no_exist", commit, local))
}

// mentions tells whether a file of a commit has text in it.
func (c cache) mentions(ref Ref, commit, name, text string) bool {
	data, err := readSmall(filepath.Join(c.snapshot(ref, commit), filepath.FromSlash(name)), maxTreeBytes)
	return err == nil && bytes.Contains(data, []byte(text))
}

const (
	maxRefBytes  = 256
	maxTreeBytes = 32 << 20
)

// tree returns the names of all files of a commit, nil if they are not known.
func (c cache) tree(ref Ref, commit string) map[string]bool {
	data, err := readSmall(filepath.Join(c.repo(ref), "trees", commit+".json"), maxTreeBytes)
	if err != nil {
		return nil
	}
	var tree struct {
		Version int                 `json:"format_version"`
		Files   map[string]struct{} `json:"files"`
	}
	if json.Unmarshal(data, &tree) != nil || tree.Version != 1 || tree.Files == nil {
		return nil
	}
	names := make(map[string]bool, len(tree.Files))
	for name := range tree.Files {
		names[name] = true
	}
	return names
}

// link makes a blob the file name of a commit, by a relative link as huggingface_hub
// does, so that a cache can be moved. Where links cannot be made it is a copy.
func (c cache) link(ref Ref, commit, name, etag string) error {
	pointer := filepath.Join(c.snapshot(ref, commit), filepath.FromSlash(name))
	if isFile(pointer) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(pointer), 0o777); err != nil {
		return err
	}
	blob := c.blob(ref, etag)
	target, err := filepath.Rel(filepath.Dir(pointer), blob)
	if err != nil {
		return err
	}
	temporary := temporaryName(pointer)
	defer os.Remove(temporary)
	if os.Symlink(target, temporary) != nil {
		if err := copyFile(blob, temporary); err != nil {
			return err
		}
	}
	return os.Rename(temporary, pointer) // over a link whose blob is gone, too
}

// setRef notes which commit a revision is.
func (c cache) setRef(ref Ref, commit string) error {
	if ref.Revision == commit {
		return nil
	}
	path := filepath.Join(c.repo(ref), "refs", filepath.FromSlash(ref.Revision))
	if data, err := readSmall(path, maxRefBytes); err == nil && string(data) == commit {
		return nil // perhaps in a cache that is read-only
	}
	return writeWhole(path, []byte(commit))
}

// setAbsent notes that a commit has no such file.
func (c cache) setAbsent(ref Ref, commit, name string) error {
	return writeWhole(filepath.Join(c.repo(ref), ".no_exist", commit, filepath.FromSlash(name)), nil)
}

// tag marks the cache as one, for programs that make backups (bford.info/cachedir).
func (c cache) tag() error {
	path := filepath.Join(c.dir, "CACHEDIR.TAG")
	if isFile(path) {
		return nil
	}
	return writeWhole(path, []byte("Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache of model files. See https://bford.info/cachedir/\n"))
}

// writeWhole makes a small file such that nobody ever sees a part of it.
func writeWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	temporary := temporaryName(path)
	defer os.Remove(temporary)
	if err := os.WriteFile(temporary, data, 0o666); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func temporaryName(path string) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return path + "." + hex.EncodeToString(random[:]) + ".tmp"
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
