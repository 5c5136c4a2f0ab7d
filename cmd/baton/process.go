package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A process is a child of the demo. It never outlives the demo: close kills it,
// and where the demo itself dies without a chance to clean up, the operating
// system (parentDeathSignal) or the child (dieWithParent) sees to it.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer     // closed by the operating system if we die
	ended chan struct{} // closed when the child has ended and was waited for

	mu   sync.Mutex // guards tail
	tail []string   // its last lines, for the message when it fails
}

// parentPipe tells a child of our own that its standard input ends with its parent.
const parentPipe = "BATON_PARENT_PIPE"

// tailLines is how much of a child's output is kept.
const tailLines = 8

// startProcess starts a child. Each line of its error output is given to onLine,
// from a goroutine that ends with the child.
//
// On Linux it must be called from the goroutine that locked the main thread:
// the signal on the parent's death is sent when the thread that started the
// child ends.
func startProcess(name string, onLine func(string), path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Env = append(environment(), parentPipe+"=1")
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.stdin = stdin
	read, write := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // how a killed child ended is no news
		write.Close()
	}()
	go func() {
		defer close(p.ended)
		p.readLines(read, onLine)
	}()
	return p, nil
}

// environment is ours without settings of a frontend: what a person has set for
// theirs must not change the demo's.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DYN_") })
}

func (p *process) readLines(r io.Reader, onLine func(string)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.tail = append(p.tail, lines.Text())
		if len(p.tail) > tailLines {
			p.tail = p.tail[1:]
		}
		p.mu.Unlock()
		if onLine != nil {
			onLine(lines.Text())
		}
	}
	io.Copy(io.Discard, r) // a line beyond the buffer must not block the child
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// kill ends the child as a crash would: SIGKILL, or what the system has for it.
func (p *process) kill() { p.cmd.Process.Kill() }

// close kills the child and waits until it is gone.
func (p *process) close() {
	p.kill()
	p.stdin.Close()
	<-p.ended
}

// lastWords is the end of the child's output, for an error message.
func (p *process) lastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tail) == 0 {
		return "it said nothing"
	}
	for _, line := range slices.Backward(p.tail) {
		if strings.Contains(strings.ToLower(line), "error") {
			return "it said: " + line // what comes after it is tidying up
		}
	}
	return "its last line: " + p.tail[len(p.tail)-1]
}

// waitUntil asks ready, every few milliseconds, until it returns true.
func waitUntil(ctx context.Context, p *process, limit time.Duration, ready func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready(ctx) {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while starting; %s", p.name, p.lastWords())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s was not ready within %v; %s", p.name, limit, p.lastWords())
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// freePort finds a port of the loopback interface that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// dieWithParent ends this process when its standard input does, if the parent
// asked for that. It is the way that works on every system.
func dieWithParent() {
	if os.Getenv(parentPipe) == "" {
		return
	}
	os.Unsetenv(parentPipe)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(exitFailed)
	}()
}
