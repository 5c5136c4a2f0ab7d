//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package hub

import "os"

// tryLock does without a lock: it saves a second download, no more, because what
// was loaded is compared with its hash and moved to its place whole.
func tryLock(*os.File) (bool, error) { return true, nil }
