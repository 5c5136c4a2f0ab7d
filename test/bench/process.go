package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc/PID/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// startTimeout bounds the start of a process up to its first good /health.
const startTimeout = 30 * time.Second

// A process is a started program that answers on a port of its own.
type process struct {
	name    string
	address string // host:port
	cmd     *exec.Cmd
	output  bytes.Buffer
	exited  chan struct{}
}

// start runs a program; "{address}" and "{port}" in its arguments are replaced
// by a free one. It returns when the program is ready.
func start(ctx context.Context, name, program string, args ...string) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &process{name: name, address: l.Addr().String(), exited: make(chan struct{})}
	l.Close()
	_, port, _ := net.SplitHostPort(p.address)
	for i, arg := range args {
		args[i] = strings.NewReplacer("{address}", p.address, "{port}", port).Replace(arg)
	}
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { p.cmd.Wait(); close(p.exited) }()
	if err := p.waitReady(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("start %s: %w; it said:\n%s", name, err, p.output.String())
	}
	return p, nil
}

func (p *process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if _, err := p.request(ctx, http.MethodGet, "/health", ""); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.exited:
			return errors.New("it ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// request sends a small request of the runner's own.
func (p *process) request(ctx context.Context, method, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.address+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", p.name, path, resp.Status)
	}
	return string(text), err
}

// stop kills the process and waits for its end.
func (p *process) stop() {
	p.cmd.Process.Kill()
	<-p.exited
}

// A usage is what a process and its children have used so far.
type usage struct {
	cpu    time.Duration // user and system
	memory int64         // resident now, in bytes
}

// usage reads /proc, which only Linux has.
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
	u := usage{
		cpu:    time.Duration(number(14)+number(15)+number(16)+number(17)) * tick,
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
