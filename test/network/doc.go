// Package network loses workers in ways for which the kernel is needed: a host
// that is gone without a word (no reset, no FIN, packets swallowed), and a host
// name that no longer resolves.
//
// Each test runs again in a child process with a user, a network and a mount
// namespace of its own, where it may make interfaces and addresses without being
// root outside. Each worker has a network namespace in turn: it is a host with an
// address, joined to the frontend's by a pair of virtual interfaces. Where the
// kernel does not allow that, or its tools are missing, the tests are skipped.
package network
