package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
)

// memoryShare is the part of the container's memory that the Go runtime may use.
// The rest is for what it does not count: the binary, the kernel's buffers.
const memoryShare = 0.9

// limitMemory makes the garbage collector work harder instead of letting the
// kernel kill the process, where a container has a limit. GOMEMLIMIT goes first.
// (How many processors a container may use, Go finds out by itself.)
func limitMemory(log *slog.Logger) {
	if v := os.Getenv("GOMEMLIMIT"); v != "" {
		log.Info("memory limit", "bytes", v, "from", "GOMEMLIMIT")
		return
	}
	limit, from := containerMemory("/")
	if limit == 0 {
		return
	}
	share := max(int64(math.Floor(float64(limit)*memoryShare)), 1)
	debug.SetMemoryLimit(share)
	log.Info("memory limit", "bytes", share, "from", from, "container_bytes", limit)
}
