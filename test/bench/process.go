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
	"strings"
	"time"
)

// startTimeout bounds the start of a process up to its first good answer.
const startTimeout = 60 * time.Second

// A command is a program to be started. In its arguments, environment, files and
// headers {port}, {port2} and {address} are replaced by free ones, and {scratch}
// by an empty folder of its own.
type command struct {
	name  string
	args  []string
	env   []string          // on top of ours
	files map[string]string // written to {scratch} before the start
	// header is of the requests that clients send to it, each line with its CRLF.
	header string
}

// A process is a started program that answers on a port of its own.
type process struct {
	target
	name    string
	started time.Duration // from its start to its first complete answer
	cmd     *exec.Cmd
	scratch string
	output  bytes.Buffer
	exited  chan struct{}
}

// start runs a program and returns when it has answered a chat request of one token.
func start(ctx context.Context, c command) (_ *process, err error) {
	p := &process{name: c.name, exited: make(chan struct{})}
	if p.scratch, err = os.MkdirTemp("", "baton-bench-"); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(2)
	if err != nil {
		os.RemoveAll(p.scratch)
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addresses[0])
	_, port2, _ := net.SplitHostPort(addresses[1])
	places := strings.NewReplacer("{address}", addresses[0], "{port}", port, "{port2}", port2, "{scratch}", p.scratch)
	p.target = target{address: addresses[0], header: places.Replace(c.header)}
	if err := p.launch(ctx, c, places); err != nil {
		os.RemoveAll(p.scratch)
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	if err := p.waitReady(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("start %s: %w; it said: %s", c.name, err, p.said())
	}
	return p, nil
}

func (p *process) launch(ctx context.Context, c command, places *strings.Replacer) error {
	for name, text := range c.files {
		if err := os.WriteFile(filepath.Join(p.scratch, name), []byte(places.Replace(text)), 0o644); err != nil {
			return err
		}
	}
	var args []string
	for _, arg := range c.args {
		args = append(args, places.Replace(arg))
	}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Env = os.Environ()
	for _, e := range c.env {
		p.cmd.Env = append(p.cmd.Env, places.Replace(e))
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	ownGroup(p.cmd)
	// A child of its own that outlives it would hold the pipe of its output.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() { p.cmd.Wait(); close(p.exited) }()
	return nil
}

func (p *process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	begin := time.Now()
	c := p.client()
	defer c.close()
	for {
		err := c.ask(1)
		if p.started = time.Since(begin); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; its last answer: %w", ctx.Err(), err)
		case <-p.exited:
			return errors.New("it ended")
		case <-time.After(max(time.Millisecond, p.started/50)): // so that the time is right to a few percent
		}
	}
}

// client makes a client of the process, with the usual prompt.
func (p *process) client() *client {
	return &client{target: p.target, prompt: prompt(promptWords), onToken: func(int, time.Time) {}}
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

// stop kills the process and what it has started, and waits for its end.
func (p *process) stop() {
	p.cmd.Cancel()
	<-p.exited
	os.RemoveAll(p.scratch)
}

// said is the last line that the process, which has ended, wrote.
func (p *process) said() string {
	const most = 400
	text := strings.TrimSpace(p.output.String())
	line := text[strings.LastIndexByte(text, '\n')+1:]
	return line[max(0, len(line)-most):]
}

// freeAddresses finds ports of the loopback interface that are free now.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, or two would be the same
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
