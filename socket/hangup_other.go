//go:build !linux

package socket

import (
	"errors"
	"net"
)

// A Watcher is not made here.
type Watcher struct{}

// NewWatcher returns a Watcher that watches nothing.
func NewWatcher() *Watcher { return &Watcher{} }

// Close does nothing.
func (*Watcher) Close() {}

// Wrap is like the function Wrap.
func (*Watcher) Wrap(c net.Conn) net.Conn { return Wrap(c) }

// OnHangup returns errors.ErrUnsupported.
func (c *Conn) OnHangup(func()) error { return errors.ErrUnsupported }

// Forget does nothing.
func (c *Conn) Forget() {}
