package hub

import (
	"log/slog"
	"time"
)

// progressInterval is the least time between two records on one fetch.
const progressInterval = 3 * time.Second

// A progress tells people how far a fetch is.
type progress struct {
	log    *slog.Logger
	ref    Ref
	files  int // how many there are
	done   int // how many are begun
	began  time.Time
	saidAt time.Time
	bytes  int64 // that came over the network
	name   string
	at     int64 // position in the file
	size   int64 // of the file, -1 = unknown
}

func newProgress(log *slog.Logger, ref Ref, files int) *progress {
	now := time.Now()
	return &progress{log: log, ref: ref, files: files, began: now, saidAt: now}
}

// file notes the beginning of one file at a position in it.
func (p *progress) file(name string, from, size int64) {
	p.name, p.at, p.size = name, from, size
}

// add notes bytes that came.
func (p *progress) add(n int) {
	p.bytes += int64(n)
	p.at += int64(n)
	now := time.Now()
	if now.Sub(p.saidAt) < progressInterval {
		return
	}
	p.saidAt = now
	attrs := []any{"model", p.ref.String(), "file", p.name, "bytes", p.at}
	if p.size >= 0 {
		attrs = append(attrs, "of", p.size)
	}
	p.log.Info("still fetching", append(attrs, "files_done", p.done, "files", p.files)...)
}
