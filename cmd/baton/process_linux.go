package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches the demo only, which then cleans up; and has the kernel kill it when
// the thread that started it dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
