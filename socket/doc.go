// Package socket makes TCP connections cheaper than package net does: small pieces
// are read and written without telling Go's scheduler, and of a connection on which
// nobody reads it can be told that the other side has left, without a goroutine
// that waits for it. Both are so on Linux only.
//
// Before each system call the runtime notes that the thread may be away for long,
// and wakes its monitor thread if that sleeps, which it does whenever the process
// has had nothing to do. On a socket that does not block this is for nothing: with
// tokens that come one by one, waking the monitor at each of them was an eighth of
// all CPU time. See docs/decisions/013-sleeping-threads.md.
package socket
