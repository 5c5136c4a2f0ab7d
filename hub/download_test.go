package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/hub/hubtest"
)

// cutAfter makes the store end its answer after n bytes, once.
func cutAfter(fake *hubtest.Hub, n int) {
	done := false
	data := fake.Models["org/tiny"].Files["tokenizer.json"]
	store := "/" + fake.Models["org/tiny"].ETag("tokenizer.json")
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if done || r.URL.Path != store {
			return false
		}
		done = true
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (f *fetched) tokenizerIsWhole(t *testing.T) {
	t.Helper()
	found, err := f.h.Fetch(t.Context(), refOf(t, "org/tiny"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(found.Path, "tokenizer.json"))
	if err != nil || !bytes.Equal(data, f.want) {
		t.Errorf("%d bytes, %v; want %d", len(data), err, len(f.want))
	}
	if left, _ := filepath.Glob(filepath.Join(f.h.cache.dir, "models--org--tiny", "blobs", "*.incomplete")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// fetched is a fetch that is interrupted.
type fetched struct {
	h          *Hub
	fake       *hubtest.Hub
	want       []byte
	incomplete string
}

func interrupted(t *testing.T) *fetched {
	t.Helper()
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	m := fake.Models["org/tiny"]
	return &fetched{h, fake, m.Files["tokenizer.json"], h.cache.blob(refOf(t, "org/tiny"), m.ETag("tokenizer.json")) + ".incomplete"}
}

func (f *fetched) ranges() (all []string) {
	for _, r := range f.fake.Requests() {
		if r.Store {
			all = append(all, r.Range)
		}
	}
	return all
}

// A broken transfer is continued by the next attempt, and not begun again.
func TestResume(t *testing.T) {
	f := interrupted(t)
	cutAfter(f.fake, 50_000)
	_, err := f.h.Fetch(t.Context(), refOf(t, "org/tiny"))
	if !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	if found, ok := f.h.Find(refOf(t, "org/tiny")); ok && found.Complete {
		t.Error("half a model is taken for a whole one")
	}
	info, err := os.Stat(f.incomplete)
	if err != nil || info.Size() == 0 || info.Size() > 50_000 {
		t.Fatal(info, err)
	}
	f.tokenizerIsWhole(t)
	if found, ok := f.h.Find(refOf(t, "org/tiny")); !ok || !found.Complete {
		t.Errorf("%+v, %v", found, ok)
	}
	if commit, ok := f.h.cache.namedCommit(refOf(t, "org/tiny")); !ok || commit != f.fake.Models["org/tiny"].Commit() {
		t.Errorf("main is %s", commit)
	}
	if got := f.ranges(); len(got) != 2 || got[0] != "" || got[1] != fmt.Sprintf("bytes=%d-", info.Size()) {
		t.Errorf("ranges %q", got)
	}
}

// What lies there is not trusted: it is compared with the hash in the end.
func TestResumeOfOtherContent(t *testing.T) {
	f := interrupted(t)
	write(t, f.incomplete, strings.Repeat("x", 1000))
	if _, err := f.h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	f.tokenizerIsWhole(t)

	f = interrupted(t)
	write(t, f.incomplete, strings.Repeat("x", len(f.want)+1)) // longer than the file
	f.tokenizerIsWhole(t)

	f = interrupted(t)
	write(t, f.incomplete, string(f.want)) // whole, only not yet moved
	f.tokenizerIsWhole(t)
	if got := f.ranges(); len(got) != 0 {
		t.Errorf("ranges %q", got)
	}
}

// A hub that knows no ranges sends the whole; one that sends another part is not
// believed.
func TestResumeWithoutRanges(t *testing.T) {
	f := interrupted(t)
	write(t, f.incomplete, string(f.want[:1000]))
	f.fake.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		return false
	}
	f.tokenizerIsWhole(t)

	f = interrupted(t)
	write(t, f.incomplete, string(f.want[:1000]))
	once := false
	f.fake.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" && !once {
			r.Header.Set("Range", "bytes=5-")
			once = true
		}
		return false
	}
	if _, err := f.h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	f.tokenizerIsWhole(t)
}

// A file whose etag is a hash is what was promised, or it is not used.
func TestDamagedContent(t *testing.T) {
	f := interrupted(t)
	f.fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, f.fake.Models["org/tiny"].ETag("tokenizer.json")) {
			return false
		}
		w.Write(bytes.Repeat([]byte("x"), len(f.want)))
		return true
	}
	if _, err := f.h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	f.fake.Before = nil
	f.tokenizerIsWhole(t)
}

// The lock of another process is waited for, not longer than the caller wants.
func TestLockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("waits for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	waits, got := make(chan struct{}), make(chan error)
	go func() {
		second, err := lock(t.Context(), path, func() { close(waits) })
		if err == nil {
			second()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("taken twice (%v)", err)
	case <-waits:
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}

	unlock, err = lock(t.Context(), path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); err == nil {
		t.Error("taken twice")
	}
}

// Some versions of filelock remove the file when they let go: a lock on what has no
// name any more, or on another file than the name means now, keeps nobody away.
func TestRemovedLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.lock")
	write(t, path, "")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !isStill(f, path) {
		t.Error("the file itself is taken for another")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isStill(f, path) {
		t.Error("a file that was removed is taken for the lock")
	}
	write(t, path, "")
	if isStill(f, path) {
		t.Error("another file is taken for the lock")
	}
}

func TestStallWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := watchStall(t.Context())
		time.Sleep(answerTimeout + stallTimeout/2)
		for range 10 {
			w.alive()
			time.Sleep(stallTimeout - time.Nanosecond)
			if ctx.Err() != nil {
				t.Fatal("ended while bytes came")
			}
		}
		time.Sleep(2 * time.Nanosecond)
		if ctx.Err() == nil {
			t.Error("goes on without bytes")
		}
		w.stop()
	})
}

// There is a line every few seconds, and not more.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newProgress(slog.New(slog.NewTextHandler(&log, nil)), Ref{Repo: "o/m", Revision: "main"}, 3)
		p.file("tokenizer.json", 100, 1000)
		for range 100 {
			p.add(1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := strings.Count(log.String(), "still fetching"); n != 3 {
			t.Errorf("%d lines in ten seconds:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "model=o/m file=tokenizer.json bytes=131 of=1000") {
			t.Error(log.String())
		}
	})
}
