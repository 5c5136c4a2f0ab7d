package server

import (
	"log/slog"
	"sync"
)

// maxIgnoredFields bounds the names that are remembered. They come from
// requests, so without a bound a client could fill memory and log.
const maxIgnoredFields = 256

// ignoredFields warns of unknown request fields, once for each name.
type ignoredFields struct {
	mu   sync.Mutex // guards seen
	seen map[string]struct{}
}

func (f *ignoredFields) warn(log *slog.Logger, names []string) {
	for _, name := range names {
		name = printable(name)
		if f.isNew(name) {
			log.Warn("unknown request field is ignored", slog.String("field", name))
		}
	}
}

func (f *ignoredFields) isNew(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.seen[name]; ok || len(f.seen) >= maxIgnoredFields {
		return false
	}
	if f.seen == nil {
		f.seen = make(map[string]struct{})
	}
	f.seen[name] = struct{}{}
	return true
}
