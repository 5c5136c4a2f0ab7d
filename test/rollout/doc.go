// Package rollout tests planned stops of workers from the outside: real processes,
// real signals, clients that forgive nothing.
package rollout
