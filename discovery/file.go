package discovery

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"baton/smallfile"
)

const (
	// lookInterval is how often a file is looked at.
	lookInterval = time.Second

	// secondReading is when a changed file is read again: content that is still being
	// written is different then.
	secondReading = 250 * time.Millisecond

	maxFileBytes = 4 << 20
)

// A File is a Source that reads a file in the shape of Prometheus' file_sd, and
// reads it again when it changes. Make it with NewFile.
type File struct {
	path  string
	kinds []string
	log   *slog.Logger

	targets []Target
	inForce sum // of the content that targets are from

	last      sum             // of the content that was read last
	broken    sum             // of the last content that could not be used
	stamp     smallfile.Stamp // of the last content, if that need not be read again
	complaint string          // why the file cannot be used now; "" = it can
}

type sum = [sha256.Size]byte

// NewFile reads the file at path for the first time. kinds are what its labels may
// state. Its error is a sentence that names the path: at the start there is no last
// good content.
func NewFile(path string, kinds []string, log *slog.Logger) (*File, error) {
	f := &File{path: path, kinds: slices.Clone(kinds), log: log}
	content, _, err := smallfile.Read(path, maxFileBytes)
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
	if f.stamp.Unchanged(f.path) {
		return false, lookInterval
	}
	content, stamp, err := smallfile.Read(f.path, maxFileBytes)
	if err != nil {
		f.stamp, f.last, f.broken = smallfile.Stamp{}, sum{}, sum{}
		f.complain(err)
		return false, lookInterval
	}
	f.stamp = stamp
	before := f.last
	f.last = sha256.Sum256(content)
	switch {
	case f.last == f.inForce:
		f.usable()
		return false, lookInterval
	case f.last == f.broken:
		return false, lookInterval
	case f.last != before: // it is new, and may be unfinished
		f.stamp = smallfile.Stamp{}
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
