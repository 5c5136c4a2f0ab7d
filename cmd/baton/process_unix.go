//go:build unix && !linux

package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches the demo only, which then cleans up.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
