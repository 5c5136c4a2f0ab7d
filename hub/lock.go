package hub

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// lockInterval is the time between two attempts to take a lock.
const lockInterval = 100 * time.Millisecond

// lock waits until no other process makes the same blob, at most until ctx ends, and
// calls waiting once if it has to. Where a file system knows no locks there is none,
// as with huggingface_hub.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for tries := 0; ; tries++ {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o664)
		if err != nil {
			return nil, err
		}
		locked, err := tryLock(f)
		if err != nil {
			f.Close()
			return func() {}, nil
		}
		if locked && isStill(f, path) {
			return func() { f.Close() }, nil
		}
		f.Close()
		if tries == 0 {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// isStill tells whether path is the file that was opened: some versions of filelock
// remove it when they let go.
func isStill(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(opened, now)
}
