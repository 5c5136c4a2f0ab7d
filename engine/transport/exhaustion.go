package transport

import (
	"errors"
	"net"
	"strings"
	"syscall"
)

var exhaustions = [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, syscall.ENOMEM}

// isExhaustion tells a failed dial that says nothing about the worker: see
// engine.ErrExhausted.
func isExhaustion(err error) bool {
	for _, code := range exhaustions {
		if errors.Is(err, code) {
			return true
		}
	}
	// A look-up needs a socket too, and its error keeps only the words.
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		for _, code := range exhaustions {
			if strings.Contains(e.Err, code.Error()) {
				return true
			}
		}
	}
	return false
}
