package server

import "iter"

// A goroutine begins with a stack of 2 kB, which doubles each time that it is too
// small: then all frames on it are copied and adjusted, the more the deeper it is.
// Asking for the room at the beginning costs one copy of nothing.

// streamStack is for the goroutine of a stream, which stays as long as that: just
// enough for 8 kB.
//
//go:noinline
func streamStack(i uint8) byte {
	var room [4 << 10]byte
	return room[i]
}

// handlerStack is for a handler, which reads JSON and renders templates: 16 kB.
//
//go:noinline
func handlerStack(i uint8) byte {
	var room [9 << 10]byte
	return room[i]
}

// apart calls f on a stack of its own, which is given back when f returns. It is a
// coroutine, of which the scheduler knows nothing: to start a goroutine would wake a
// thread for it, which takes longer than what f does.
func apart(f func()) {
	next, stop := iter.Pull(func(func(struct{}) bool) {
		handlerStack(0)
		f()
	})
	defer stop()
	next()
}
