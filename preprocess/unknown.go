package preprocess

import (
	"log/slog"
	"sync"
)

// maxUnknownNames bounds how many names of unknown fields are remembered, and
// so how many warnings clients can cause.
const maxUnknownNames = 256

// unknownFields warns once for each name.
type unknownFields struct {
	log *slog.Logger

	mu   sync.Mutex // guards seen
	seen map[string]struct{}
}

func newUnknownFields(log *slog.Logger) *unknownFields {
	return &unknownFields{log: log, seen: make(map[string]struct{})}
}

func (u *unknownFields) report(names []string) {
	for _, name := range names {
		switch u.remember(name) {
		case newName:
			u.log.Warn("unknown request field is ignored", "field", name)
		case lastName:
			u.log.Warn("unknown request field is ignored; no further names will be logged", "field", name, "names", maxUnknownNames)
		}
	}
}

type novelty int

const (
	oldName novelty = iota
	newName
	lastName
)

func (u *unknownFields) remember(name string) novelty {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, seen := u.seen[name]; seen || len(u.seen) == maxUnknownNames {
		return oldName
	}
	u.seen[name] = struct{}{}
	if len(u.seen) == maxUnknownNames {
		return lastName
	}
	return newName
}
