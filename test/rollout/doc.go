// Package rollout tests planned stops of workers, and changes of their set, from the
// outside: real processes, real signals, clients that forgive nothing.
package rollout
