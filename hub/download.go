package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxFileBytes bounds each file that is fetched. The largest tokenizer.json in
	// use has some 35 MB.
	MaxFileBytes = 256 << 20
	// MaxFetchBytes bounds what is fetched of one model.
	MaxFetchBytes = 512 << 20
)

// A remote is what the hub says of one file.
type remote struct {
	etag string
	size int64 // -1 = unknown
	at   *url.URL
}

// etagForm is what an etag may be in order to be the name of a file.
var etagForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$`)

// stat asks for a file's etag, length and place.
func (h *Hub) stat(ctx context.Context, ref Ref, commit, name string) (*remote, error) {
	answer, at, err := h.ask(ctx, ref, http.MethodHead, h.fileURL(ref, commit, name), nil)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	if got := answer.Header.Get("X-Repo-Commit"); got != "" && got != commit {
		return nil, failed(ErrProtocol, "%s gives a file of another commit of %s than it was asked for", h.endpoint.Host, ref.Repo)
	}
	f := &remote{etag: cleanETag(answer.Header.Get("X-Linked-Etag")), size: -1, at: at}
	if f.etag == "" {
		f.etag = cleanETag(answer.Header.Get("ETag"))
	}
	if !etagForm.MatchString(f.etag) || strings.HasSuffix(f.etag, ".incomplete") {
		return nil, failed(ErrProtocol, "%s gives no usable etag for %s of %s; see HF_ENDPOINT, or give a folder with --model-path", h.endpoint.Host, name, ref.Repo)
	}
	length := answer.Header.Get("X-Linked-Size")
	if length == "" && answer.StatusCode/100 == 2 {
		length = answer.Header.Get("Content-Length")
	}
	if n, err := strconv.ParseInt(length, 10, 64); err == nil && n >= 0 {
		f.size = n
	}
	return f, nil
}

// cleanETag takes the quotes off an etag, as huggingface_hub does.
func cleanETag(etag string) string {
	return strings.Trim(strings.TrimLeft(etag, "W/"), `"`)
}

// get brings a file of a commit into the cache.
func (h *Hub) get(ctx context.Context, ref Ref, commit, name string, p *progress) error {
	f, err := h.stat(ctx, ref, commit, name)
	if err != nil {
		return err
	}
	if f.size > h.maxFileBytes || p.bytes+f.size > MaxFetchBytes {
		return failed(ErrTooLarge, "%s of %s has %d bytes; the limit for such a file is %d, for all of a model %d", name, ref.Repo, f.size, h.maxFileBytes, MaxFetchBytes)
	}
	if err := os.MkdirAll(filepath.Dir(h.cache.blob(ref, f.etag)), 0o777); err != nil {
		return h.cannotWrite(err)
	}
	unlock, err := lock(ctx, h.cache.lockFile(ref, f.etag), func() {
		h.log.Info("another process fetches the same file, which is waited for", "model", ref.String(), "file", name)
	})
	switch {
	case ctx.Err() != nil:
		return h.unreachable(ctx, ctx.Err())
	case err != nil:
		return h.cannotWrite(err)
	}
	defer unlock()
	if !isFile(h.cache.blob(ref, f.etag)) {
		if err := h.download(ctx, ref, name, f, p); err != nil {
			return err
		}
	}
	if err := h.cache.link(ref, commit, name, f.etag); err != nil {
		return h.cannotWrite(err)
	}
	return nil
}

func (h *Hub) cannotWrite(err error) error {
	return failed(ErrDisk, "the hub cache %s cannot be written: %v; give another one with HF_HUB_CACHE, or a folder with --model-path", h.cache.dir, err)
}

// download makes a blob. What an earlier attempt left is continued if the whole can
// be compared with a hash in the end. The lock of the etag is held.
func (h *Hub) download(ctx context.Context, ref Ref, name string, f *remote, p *progress) (err error) {
	path := h.cache.blob(ref, f.etag) + ".incomplete"
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return h.cannotWrite(err)
	}
	defer func() {
		// What is damaged, and what cannot be checked, is of no use to the next attempt.
		out.Close()
		if e, ok := errors.AsType[*Error](err); ok && (e.Reason != ErrUnavailable || !isHash(f.etag)) {
			os.Remove(path)
		}
	}()
	from := int64(0)
	if isHash(f.etag) {
		if from, err = out.Seek(0, io.SeekEnd); err != nil {
			return h.cannotWrite(err)
		}
	}
	if f.size < 0 || from > f.size {
		from = 0
	}
	if f.size < 0 || from < f.size {
		if err := h.transfer(ctx, ref, name, f, out, from, p); err != nil {
			return err
		}
	}
	if err := verify(out, f.etag); err != nil {
		return failed(ErrDamaged, "%s of %s does not have the content that %s promises (%v); it is fetched again", name, ref.Repo, h.endpoint.Host, err)
	}
	if err := errors.Join(out.Sync(), out.Close(), os.Rename(path, h.cache.blob(ref, f.etag))); err != nil {
		return h.cannotWrite(err)
	}
	return nil
}

// transfer reads a file from position from to its end.
func (h *Hub) transfer(ctx context.Context, ref Ref, name string, f *remote, out *os.File, from int64, p *progress) error {
	ctx, watch := watchStall(ctx)
	defer watch.stop()
	header := make(http.Header)
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	answer, _, err := h.ask(ctx, ref, http.MethodGet, f.at, header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusPartialContent || !startsAt(answer, from) {
		if answer.StatusCode != http.StatusOK && from == 0 {
			return failed(ErrProtocol, "%s answers with status %d for %s of %s", h.endpoint.Host, answer.StatusCode, name, ref.Repo)
		}
		if answer.StatusCode != http.StatusOK { // what we have cannot be continued
			return failed(ErrDamaged, "%s does not continue %s of %s where it was broken off; it is fetched again", h.endpoint.Host, name, ref.Repo)
		}
		from = 0
	}
	if answer.Header.Get("Content-Encoding") != "" && answer.Header.Get("Content-Encoding") != "identity" {
		return failed(ErrProtocol, "%s sends %s of %s compressed, which it was asked not to do", h.endpoint.Host, name, ref.Repo)
	}
	if err := errors.Join(out.Truncate(from), seek(out, from)); err != nil {
		return h.cannotWrite(err)
	}
	p.file(name, from, f.size)
	limit := min(h.maxFileBytes, MaxFetchBytes-p.bytes)
	if f.size >= 0 {
		limit = f.size
	}
	n, err := copyBounded(out, answer.Body, limit-from, func(n int) {
		watch.alive()
		p.add(n)
	})
	disk, isDisk := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, ErrTooLarge) && f.size >= 0:
		return failed(ErrProtocol, "%s sends more of %s of %s than the %d bytes that it announced", h.endpoint.Host, name, ref.Repo, f.size)
	case errors.Is(err, ErrTooLarge):
		return failed(ErrTooLarge, "%s of %s has more than %d bytes, the limit for such a file", name, ref.Repo, limit)
	case isDisk:
		return h.cannotWrite(disk)
	case err != nil:
		return h.unreachable(ctx, err)
	case f.size >= 0 && from+n < f.size:
		return h.unreachable(ctx, fmt.Errorf("%s ended after %d of %d bytes", name, from+n, f.size))
	}
	return nil
}

// startsAt tells whether a part of a file begins where it was asked for.
func startsAt(answer *http.Response, from int64) bool {
	rest, ok := strings.CutPrefix(answer.Header.Get("Content-Range"), "bytes ")
	first, _, _ := strings.Cut(rest, "-")
	at, err := strconv.ParseInt(first, 10, 64)
	return ok && err == nil && at == from
}

func seek(f *os.File, to int64) error {
	_, err := f.Seek(to, io.SeekStart)
	return err
}

// copyBounded copies at most limit bytes and fails with ErrTooLarge if there are
// more.
func copyBounded(out io.Writer, in io.Reader, limit int64, each func(n int)) (int64, error) {
	buf := make([]byte, 64<<10)
	var total int64
	for {
		n, err := in.Read(buf)
		if n > 0 {
			each(n)
			if total+int64(n) > limit {
				return total, ErrTooLarge
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// hashForm is the form of an etag that is a hash of the content: SHA-256 of large
// files, git's or the plain SHA-1 of others.
var hashForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

func isHash(etag string) bool { return hashForm.MatchString(etag) }

// verify compares a file with its etag, if that is a hash.
func verify(f *os.File, etag string) error {
	if !isHash(etag) {
		return nil
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var hashes []hash.Hash
	if len(etag) == 2*sha256.Size {
		hashes = []hash.Hash{sha256.New()}
	} else {
		git := sha1.New()
		fmt.Fprintf(git, "blob %d\x00", size)
		hashes = []hash.Hash{git, sha1.New()} // the second is what some mirrors name their copies by
	}
	all := make([]io.Writer, len(hashes))
	for i, h := range hashes {
		all[i] = h
	}
	if err := seek(f, 0); err != nil {
		return err
	}
	if _, err := io.Copy(io.MultiWriter(all...), f); err != nil {
		return err
	}
	for _, h := range hashes {
		if hex.EncodeToString(h.Sum(nil)) == etag {
			return nil
		}
	}
	return errors.New("its hash differs")
}

// A stallWatch ends a context when nothing came for stallTimeout.
type stallWatch struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func watchStall(ctx context.Context) (context.Context, *stallWatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &stallWatch{cancel: cancel}
	w.timer = time.AfterFunc(stallTimeout+answerTimeout, func() { cancel(fmt.Errorf("nothing came for %v", stallTimeout)) })
	return ctx, w
}

func (w *stallWatch) alive() { w.timer.Reset(stallTimeout) }

func (w *stallWatch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
