package discovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"
)

const (
	// lookInterval is how often a file is looked at.
	lookInterval = time.Second

	// secondReading is when a changed file is read again: content that is still being
	// written is different then.
	secondReading = 250 * time.Millisecond

	// settleTime is how old a file's modification time must be before it is trusted
	// to tell the next change: clocks of file systems tick in steps of up to two
	// seconds, and two changes within a step look like one.
	settleTime = 2 * time.Second

	maxFileBytes = 4 << 20
)

var errTooLong = fmt.Errorf("the file is longer than %d MiB", maxFileBytes>>20)

// A File is a Source that reads a file in the shape of Prometheus' file_sd, and
// reads it again when it changes. Make it with NewFile.
type File struct {
	path  string
	kinds []string
	log   *slog.Logger

	targets []Target
	inForce sum // of the content that targets are from

	last      sum         // of the content that was read last
	broken    sum         // of the last content that could not be used
	stat      fs.FileInfo // of the last content; nil = it could not be read
	settled   bool        // stat will tell the next change
	complaint string      // why the file cannot be used now; "" = it can
}

type sum = [sha256.Size]byte

// NewFile reads the file at path for the first time. kinds are what its labels may
// state. Its error is a sentence that names the path: at the start there is no last
// good content.
func NewFile(path string, kinds []string, log *slog.Logger) (*File, error) {
	f := &File{path: path, kinds: slices.Clone(kinds), log: log}
	content, _, err := readFile(path)
	if err == nil {
		f.targets, err = parseFile(content, f.kinds)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.inForce = sha256.Sum256(content)
	return f, nil
}

// Run implements Source.
func (f *File) Run(ctx context.Context, report func([]Target)) error {
	report(slices.Clone(f.targets))
	timer := time.NewTimer(lookInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		changed, next := f.look()
		if changed {
			report(slices.Clone(f.targets))
		}
		timer.Reset(next)
	}
}

// look brings targets up to date. It returns whether they may have changed, and when
// to look again.
func (f *File) look() (changed bool, next time.Duration) {
	if f.stat != nil && f.settled && f.unchanged() {
		return false, lookInterval
	}
	content, stat, err := readFile(f.path)
	if err != nil {
		f.stat, f.last, f.broken = nil, sum{}, sum{}
		f.complain(err)
		return false, lookInterval
	}
	f.stat, f.settled = stat, time.Since(stat.ModTime()) > settleTime
	before := f.last
	f.last = sha256.Sum256(content)
	switch {
	case f.last == f.inForce:
		f.usable()
		return false, lookInterval
	case f.last == f.broken:
		return false, lookInterval
	case f.last != before: // it is new, and may be unfinished
		f.settled = false
		return false, secondReading
	}
	targets, err := parseFile(content, f.kinds)
	if err != nil {
		f.broken = f.last
		f.complain(err)
		return false, lookInterval
	}
	f.targets, f.inForce = targets, f.last
	f.usable()
	return true, lookInterval
}

func (f *File) unchanged() bool {
	now, err := os.Stat(f.path)
	return err == nil && os.SameFile(now, f.stat) && now.Size() == f.stat.Size() && now.ModTime().Equal(f.stat.ModTime())
}

// complain says why the file cannot be used, unless it said so the last time.
func (f *File) complain(err error) {
	if err.Error() == f.complaint {
		return
	}
	f.complaint = err.Error()
	f.log.Error("the file of workers cannot be used; those that it named before stay", "file", f.path, "workers", len(f.targets), "err", err)
}

// usable says that the file can be used, if it could not.
func (f *File) usable() {
	f.broken = sum{}
	if f.complaint != "" {
		f.complaint = ""
		f.log.Info("the file of workers can be used again", "file", f.path, "workers", len(f.targets))
	}
}

// readFile reads a regular file of at most maxFileBytes. Its errors do not name
// the path.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	// A look before the opening: opening a pipe would wait for its writer.
	if stat, err := os.Stat(path); err != nil {
		return nil, nil, withoutPath(err)
	} else if stat.IsDir() {
		return nil, nil, errors.New("this is a folder, not a file")
	} else if !stat.Mode().IsRegular() {
		return nil, nil, errors.New("this is not a regular file, so it cannot be read again")
	} else if stat.Size() > maxFileBytes {
		return nil, nil, errTooLong
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, nil, withoutPath(err)
	case len(content) > maxFileBytes:
		return nil, nil, errTooLong
	}
	return content, stat, nil
}

func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
