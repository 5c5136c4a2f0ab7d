package server

import "sync/atomic"

// An atomicMax is a number that remembers its largest value.
type atomicMax struct{ n atomic.Int64 }

func (a *atomicMax) add(d int64) int64 { return a.n.Add(d) }
func (a *atomicMax) load() int64       { return a.n.Load() }

func (a *atomicMax) see(v int64) {
	for old := a.n.Load(); v > old && !a.n.CompareAndSwap(old, v); old = a.n.Load() {
	}
}
