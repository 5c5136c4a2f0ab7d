package credentials

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"baton/smallfile"
)

// A File is a file that a flag names.
type File struct {
	Flag string // with its dashes; for messages
	Path string // "" = there is none
}

// String is how messages name the file.
func (f File) String() string { return f.Flag + " " + f.Path }

const (
	// checkInterval is how often a file is looked at, at most.
	checkInterval = time.Second

	maxFileBytes = 1 << 20
)

// watched is a value that is made of files, and made again when they change.
type watched[T any] struct {
	files []File
	parse func(contents [][]byte) (T, error) // its error names the files
	log   *slog.Logger

	current atomic.Pointer[T]

	mu        sync.Mutex // held while the files are looked at; guards what follows
	checked   time.Time
	stamps    []smallfile.Stamp // of what current was made of
	sum       [sha256.Size]byte
	complaint string // why the files cannot be used now; "" = they can
}

// watch reads the files for the first time.
func watch[T any](log *slog.Logger, parse func(contents [][]byte) (T, error), files ...File) (*watched[T], error) {
	w := &watched[T]{files: files, parse: parse, log: log}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checked = time.Now()
	_, err := w.read()
	return w, err
}

// get returns the value that is in force.
func (w *watched[T]) get() T {
	// Whoever finds another looking takes what is there: no request waits for a
	// slow file system on behalf of others.
	if w.mu.TryLock() {
		if now := time.Now(); now.Sub(w.checked) >= checkInterval {
			w.checked = now
			w.check()
		}
		w.mu.Unlock()
	}
	return *w.current.Load()
}

// check makes the value again if its files have changed. A complaint is looked
// into each time, because a change of access rights changes no time.
func (w *watched[T]) check() {
	if w.complaint == "" && w.unchanged() {
		return
	}
	changed, err := w.read()
	switch {
	case err != nil && err.Error() != w.complaint:
		w.complaint = err.Error()
		w.log.Error("a changed file cannot be used; what it held before stays in force", "err", err)
	case err == nil && (changed || w.complaint != ""):
		w.complaint = ""
		w.log.Info("a changed file is in force", "file", w.files[0].String())
	}
}

func (w *watched[T]) unchanged() bool {
	for i, f := range w.files {
		if !w.stamps[i].Unchanged(f.Path) {
			return false
		}
	}
	return true
}

// read reads all files and puts their value in force. After an error everything
// is as before.
func (w *watched[T]) read() (changed bool, err error) {
	var contents [][]byte
	var stamps []smallfile.Stamp
	hash := sha256.New()
	for _, f := range w.files {
		content, stamp, err := smallfile.Read(f.Path, maxFileBytes)
		if err != nil {
			return false, fmt.Errorf("%v: %w", f, err)
		}
		contents, stamps = append(contents, content), append(stamps, stamp)
		part := sha256.Sum256(content)
		hash.Write(part[:])
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if changed = w.stamps == nil || sum != w.sum; changed {
		value, err := w.parse(contents)
		if err != nil {
			return false, err
		}
		w.current.Store(&value)
	}
	w.stamps, w.sum = stamps, sum
	return changed, nil
}
