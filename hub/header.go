package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"baton/gguf"
)

// The parts in which a header is asked for. Its length is not known before it was
// read: most have 6 to 20 MB.
const (
	firstPartBytes = 1 << 20
	largePartBytes = 16 << 20
	maxGGUFBytes   = gguf.MaxHeaderBytes + largePartBytes // with what is read beyond its end
)

// fetchHeader keeps the header of a .gguf file. The file that results ends where the
// weights would begin, or a little later.
func (h *Hub) fetchHeader(ctx context.Context, ref Ref, commit, name string) (Found, error) {
	if h.headers.dir == "" {
		return Found{}, h.Missing(ref)
	}
	path := filepath.Join(h.headers.snapshot(ref, commit), filepath.FromSlash(name))
	found := Found{Path: path, Complete: true}
	began := time.Now()
	if !isFile(path) {
		f, err := h.stat(ctx, ref, commit, name)
		if err != nil {
			return Found{}, err
		}
		if err := h.keepHeader(ctx, ref, name, f, path); err != nil {
			return Found{}, err
		}
	}
	if err := h.headers.setRef(ref, commit); err != nil {
		return Found{}, h.cannotKeep(err)
	}
	var size int64
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	h.log.Info("the header of a .gguf file is there", "model", ref.String(), "commit", commit, "file", name, "bytes", size, "took", time.Since(began).Round(time.Millisecond))
	return found, nil
}

func (h *Hub) cannotKeep(err error) error {
	return failed(ErrDisk, "%s cannot be written: %v; give another folder with XDG_CACHE_HOME, or a .gguf file with --model-path", h.headers.dir, err)
}

// keepHeader reads a header and writes what it read to path.
func (h *Hub) keepHeader(ctx context.Context, ref Ref, name string, f *remote, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return h.cannotKeep(err)
	}
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return h.cannotKeep(err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	parts := &partReader{ctx: ctx, hub: h, ref: ref, file: f, progress: newProgress(h.log, ref, 1)}
	defer parts.close()
	parts.progress.file(name, 0, -1)
	if _, err := gguf.Read(io.TeeReader(parts, out)); err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return e
		}
		if disk, ok := errors.AsType[*fs.PathError](err); ok {
			return h.cannotKeep(disk)
		}
		return failed(ErrProtocol, "%s of %s is not a .gguf file that can be read: %v", name, ref.Repo, err)
	}
	if err := errors.Join(out.Chmod(0o644), out.Close(), os.Rename(out.Name(), path)); err != nil {
		return h.cannotKeep(err)
	}
	return nil
}

// A partReader reads a remote file from its beginning, part by part, each twice as
// large as the one before.
type partReader struct {
	ctx      context.Context // of the one call that the reader lives in
	hub      *Hub
	ref      Ref
	file     *remote
	progress *progress

	at    int64 // position of the next byte
	part  int64 // bytes of the part that is being read
	left  int64 // of them
	body  io.ReadCloser
	watch *stallWatch
}

func (r *partReader) Read(p []byte) (int, error) {
	if r.at >= maxGGUFBytes {
		return 0, failed(ErrTooLarge, "the header of %s has more than %d bytes", r.ref, gguf.MaxHeaderBytes)
	}
	if r.body == nil {
		if r.file.size >= 0 && r.at >= r.file.size {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
	r.watch.alive()
	r.progress.add(n)
	r.at += int64(n)
	r.left -= int64(n)
	if r.left == 0 {
		r.close()
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		r.close()
		if r.file.size >= 0 && r.at < r.file.size && n == 0 {
			return 0, r.hub.unreachable(r.ctx, io.ErrUnexpectedEOF)
		}
		if r.file.size < 0 {
			r.file.size = r.at // a part that ends early is the last one
		}
		return n, nil
	}
	if err != nil {
		r.close()
		return n, r.hub.unreachable(r.ctx, err)
	}
	return n, nil
}

// next asks for the next part.
func (r *partReader) next() error {
	r.part = min(max(2*r.part, firstPartBytes), largePartBytes)
	ctx, watch := watchStall(r.ctx)
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", r.at, r.at+r.part-1)}}
	answer, _, err := r.hub.ask(ctx, r.ref, http.MethodGet, r.file.at, header)
	if err != nil {
		watch.stop()
		return err
	}
	r.body, r.watch, r.left = answer.Body, watch, r.part
	switch {
	case answer.StatusCode == http.StatusPartialContent && startsAt(answer, r.at):
	case answer.StatusCode == http.StatusOK && r.at == 0:
		r.left = maxGGUFBytes // parts are unknown there: this is the whole file, which we stop reading
	default:
		r.close()
		return failed(ErrProtocol, "%s does not give parts of files, so that the header of %s cannot be had alone; give the .gguf file with --model-path", r.hub.endpoint.Host, r.ref)
	}
	return nil
}

func (r *partReader) close() {
	if r.body != nil {
		r.body.Close()
		r.watch.stop()
		r.body = nil
	}
}

// maxCachedFiles bounds how many files of a folder are looked at.
const maxCachedFiles = 10_000

// ggufFiles returns the names of the .gguf files of a commit that are here.
func (c cache) ggufFiles(ref Ref, commit string) []string {
	dir := c.snapshot(ref, commit)
	var names []string
	seen := 0
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxCachedFiles {
			return fs.SkipAll
		}
		if rel, err := filepath.Rel(dir, path); err == nil && isGGUF(rel) && isFile(path) {
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

// ggufNames are the names of .gguf files in a list.
func ggufNames(list []string) []string {
	var names []string
	for _, name := range list {
		if validFile(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// maxListedNames bounds a list in a sentence.
const maxListedNames = 8

func listed(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > maxListedNames:
		return strings.Join(names[:maxListedNames], ", ") + fmt.Sprintf(" and %d more", n-maxListedNames)
	}
	return strings.Join(names, ", ")
}
