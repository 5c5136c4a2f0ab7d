//go:build !unix

package socket

import "net"

// A Conn is not made here.
type Conn struct{ net.Conn }

// Wrap returns c.
func Wrap(c net.Conn) net.Conn { return c }

// Unwrap is not called here.
func (c *Conn) Unwrap() net.Conn { return c.Conn }

// Silent is not called here.
func (c *Conn) Silent() bool { return true }
