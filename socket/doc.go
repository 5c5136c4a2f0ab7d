// Package socket reads and writes small pieces on TCP connections without telling
// Go's scheduler.
//
// Before each system call the runtime notes that the thread may be away for long,
// and wakes its monitor thread if that sleeps, which it does whenever the process
// has had nothing to do. On a socket that does not block this is for nothing: with
// tokens that come one by one, waking the monitor at each of them was an eighth of
// all CPU time. See docs/decisions/013-small-pieces-on-sockets.md.
package socket
