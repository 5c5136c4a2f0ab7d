package main

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// exhaustionSpacing is the least time between two records about connections that
// cannot be taken.
const exhaustionSpacing = 10 * time.Second

// patient makes a listener survive a machine that is out of descriptors or
// memory, and say so: net/http waits and tries again after a temporary error of
// Accept, but tells nobody above the debug level, and gives the whole server up
// after one that calls itself final. Meanwhile the connections wait in the
// kernel's queue.
func patient(l net.Listener, log *slog.Logger) net.Listener {
	return &patientListener{Listener: l, log: log}
}

type patientListener struct {
	net.Listener
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	saidAt time.Time
	unsaid int  // failures since the last record
	told   bool // of a failure whose end has not been told
}

func (p *patientListener) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err == nil {
		p.recovered()
		return conn, nil
	}
	if isExhaustion(err) {
		p.exhausted(err, time.Now())
		return nil, temporaryError{err}
	}
	return nil, err
}

// isExhaustion tells a machine or process at its limits, which passes, from a
// listener that has ended.
func isExhaustion(err error) bool {
	for _, code := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func (p *patientListener) exhausted(err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.saidAt.IsZero() && now.Sub(p.saidAt) < exhaustionSpacing {
		p.unsaid++
		return
	}
	p.log.Error("connections cannot be taken and wait: the process is out of file descriptors or memory; raise its limits (ulimit -n, LimitNOFILE=)",
		"err", err, "failures_since_last_record", p.unsaid)
	p.saidAt, p.unsaid, p.told = now, 0, true
}

// recovered says that connections are taken again, if the opposite was said: a
// machine at the edge must not fill the log.
func (p *patientListener) recovered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		p.log.Info("connections are taken again")
		p.told = false
	}
}

// A temporaryError makes net/http try again.
type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }
func (temporaryError) Timeout() bool   { return false }
func (temporaryError) Temporary() bool { return true }
