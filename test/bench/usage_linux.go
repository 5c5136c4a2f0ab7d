package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc/PID/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// A usage is what a process and its children have used so far.
type usage struct {
	cpu    time.Duration // user and system
	memory int64         // resident now, in bytes
}

// usage reads what only Linux tells.
func (p *process) usage() (usage, error) { return usageOf(p.cmd.Process.Pid) }

// usageOf sums over pid and the processes below it.
func usageOf(pid int) (usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return usage{}, err
	}
	// The name in parentheses may hold anything; behind it are the fields from the third on.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return usage{}, fmt.Errorf("%s/stat has too few fields", dir)
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		return n
	}
	own, err := cpuTime(pid)
	if err != nil {
		return usage{}, err
	}
	u := usage{
		cpu:    own + time.Duration(number(16)+number(17))*tick, // of children that have ended
		memory: number(24) * int64(os.Getpagesize()),
	}
	lists, _ := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range bytes.Fields(children) {
			if n, err := strconv.Atoi(string(child)); err == nil {
				below, _ := usageOf(n) // it may have ended: then its times are its parent's
				u.cpu += below.cpu
				u.memory += below.memory
			}
		}
	}
	return u, nil
}

// cpuTime is what all threads of a process have used, to the nanosecond: the
// ticks of /proc are too coarse for short windows. The clock's number is made
// as clock_getcpuclockid(3) makes it.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|scheduled, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// segmentsOf is how many TCP segments with data have come on a connection: over the
// loopback interface, as many as the other side has made writes.
func segmentsOf(conn net.Conn) int64 {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0
	}
	segments := int64(0)
	raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			segments = int64(info.Data_segs_in)
		}
	})
	return segments
}

// ownGroup gives a command a process group, which is killed with it, so that
// what it starts does not stay, and lets it die with us whatever ends us.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// freeze lets the process stand still until it is killed.
func (p *process) freeze() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP) }

// raiseFiles raises the number of files that we, and what we start, may have
// open, and returns it. Beyond the hard limit only privileged processes get.
func raiseFiles(want uint64) uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	for _, hard := range []uint64{max(want, limit.Max), limit.Max} {
		limit = syscall.Rlimit{Cur: min(want, hard), Max: hard}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
			return limit.Cur
		}
	}
	return limit.Cur
}
