package failures

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"baton/engine/sim"
)

// A phase is how far a request is when its worker fails.
type phase string

const (
	beforeConnecting phase = "before connecting"
	beforeFirst      phase = "before the first token"
	inTheMiddle      phase = "in the middle"
	beforeFinish     phase = "between the last token and the finish"
)

var (
	anyTime   = []phase{beforeFirst, inTheMiddle, beforeFinish}
	streaming = []phase{inTheMiddle, beforeFinish}
	early     = []phase{beforeFirst}
)

// A class says what a gap consists of.
type class string

const (
	none      class = "none"
	detection class = "detection"
	bound     class = "stall bound"
	itsOwn    class = "the worker's own"
)

// A fate is what becomes of a request that a survivor could go on with.
type fate uint8

const (
	moved    fate = iota // it is moved: counted, logged
	passedOn             // the router asks the next worker: not counted
	unharmed             // nothing is wrong enough
	toldSo               // the client is told, although a survivor is there
)

// A failure is one kind of failure and what the contract demands.
type failure struct {
	name   string
	phases []phase

	fault      sim.Fault     // of the victim; After is set by the phase
	setup      func(*stage)  // acts before anything else
	act        func(*stage)  // acts before the request, or in its middle
	after      func(*stage)  // acts when it is over
	backAfter  time.Duration // the victim is restarted so long after the request began; 0 = never
	backAs     string        // the model that it then serves; "" = the same
	hostile    *hostile      // in place of fault: bytes that no engine sends
	victims    int           // that fail one after the other; 0 = 1
	drainAfter time.Duration // --drain-timeout

	fate fate
	gap  class            // 0 = none
	gaps map[string]class // where an engine's differs
	code string           // of the client's error without migration
	// codes are those of phases or engines that differ.
	codes map[string]string
	// unaided is true if the request succeeds even without migration and
	// without another worker.
	unaided bool
}

func (f *failure) class(engine string, p phase) class {
	switch {
	case p != beforeFinish:
	case f.gap == bound:
		return detection // nothing but the finish reason is missing, which is not waited for as long as a token
	case f.gap != detection:
		return none
	}
	if c := f.gaps[engine+", "+string(p)]; c != "" {
		return c
	}
	if c := f.gaps[engine]; c != "" {
		return c
	}
	if f.gap == "" {
		return none
	}
	return f.gap
}

func (f *failure) errorCode(engine string, p phase) string {
	for _, key := range []string{engine + ", " + string(p), engine, string(p)} {
		if c := f.codes[key]; c != "" {
			return c
		}
	}
	return f.code
}

// faults is the script of a worker.
func (f *failure) faults(id string, p phase) []sim.Fault {
	if f.fault.Kind == "" || id == survivor || id == another && f.victims < 2 {
		return nil
	}
	fault := f.fault
	fault.Request = "-m0" // probes are spared
	switch p {
	case inTheMiddle:
		fault.After = struckAfter
	case beforeFinish:
		fault.After = sim.AfterLast
	}
	if id == another {
		fault.After = 0 // the second death comes before a new token
	}
	return []sim.Fault{fault}
}

// vLLM and llama are the keys of what differs with an engine in a phase.
func vLLM(p phase) string  { return sim.KindVLLM + ", " + string(p) }
func llama(p phase) string { return sim.KindLlamaCPP + ", " + string(p) }

func status(code int) sim.Fault { return sim.Fault{Kind: sim.FaultStatus, Status: code} }

// failures are all kinds, in the order of the document.
var failures = []*failure{
	{name: "refused connection", phases: []phase{beforeConnecting}, code: "worker_unreachable",
		act: func(s *stage) { s.fleet[victim].Kill() }},
	{name: "name not found", phases: []phase{beforeConnecting}, code: "worker_unreachable",
		act: func(s *stage) { s.loseWay(errors.New("no such host")) }},
	{name: "TLS failure", phases: []phase{beforeConnecting}, code: "worker_unreachable",
		act: func(s *stage) { s.loseWay(errors.New("tls: certificate has expired")) }},
	{name: "connect black hole", phases: []phase{beforeConnecting}, gap: detection, code: "worker_connect_timeout",
		act: func(s *stage) {
			s.fleet[victim].Kill()
			s.breakWay(victim, blackHole)
		}},

	{name: "status 500", phases: early, fault: status(500), code: "worker_error"},
	{name: "status 502", phases: early, fault: status(502), code: "worker_error"},
	{name: "status 504", phases: early, fault: status(504), code: "worker_error"},
	{name: "status 408", phases: early, fault: status(408), code: "worker_error"},
	{name: "status 503", phases: early, fault: status(503), fate: passedOn, code: "overloaded"},
	{name: "status 429", phases: early, fault: status(429), fate: passedOn, code: "overloaded"},
	{name: "status 401", phases: early, fault: status(401), fate: passedOn, code: "worker_misconfigured"},
	{name: "status 403", phases: early, fault: status(403), fate: passedOn, code: "worker_misconfigured"},
	{name: "status 404", phases: early, fault: status(404), fate: passedOn, code: "worker_misconfigured"},
	{name: "status 400", phases: early, fault: status(400), fate: toldSo},

	{name: "silence before the headers", phases: early, fault: sim.Fault{Kind: sim.FaultDialTimeout, Delay: sim.Duration(time.Hour)}, gap: bound, code: "worker_stalled"},
	{name: "headers, then silence", phases: early, fault: sim.Fault{Kind: sim.FaultMute}, gap: bound, code: "worker_stalled"},
	{name: "silence", phases: streaming, fault: sim.Fault{Kind: sim.FaultStall}, gap: bound, code: "worker_stalled"},
	{name: "silence, and the port is closed (an engine's SIGTERM)", phases: anyTime, fault: sim.Fault{Kind: sim.FaultVanish}, gap: detection, code: "worker_disconnected"},
	{name: "frozen (SIGSTOP), and thawed 10 min later", phases: anyTime, gap: bound, code: "worker_stalled",
		fault: sim.Fault{Kind: sim.FaultFreeze, Delay: sim.Duration(10 * time.Minute)},
		gaps:  map[string]class{llama(inTheMiddle): detection, llama(beforeFinish): detection}, // its pings stop
		codes: map[string]string{llama(inTheMiddle): "worker_disconnected"},
		after: (*stage).thawed},
	{name: "silence, and connecting gets no answer (the host is gone)", phases: streaming[:1], fault: sim.Fault{Kind: sim.FaultFreeze}, gap: detection, code: "worker_disconnected",
		act: func(s *stage) { s.breakWay(victim, blackHole) }},
	{name: "killed for good (SIGKILL)", phases: anyTime, fault: sim.Fault{Kind: sim.FaultKill}, code: "worker_disconnected"},
	{name: "killed, and back after 3 s", phases: anyTime, fault: sim.Fault{Kind: sim.FaultKill, Times: 1}, backAfter: 3 * time.Second, code: "worker_disconnected"},
	{name: "killed, and another model is at its address after 3 s", phases: anyTime, fault: sim.Fault{Kind: sim.FaultKill, Times: 1}, backAfter: 3 * time.Second, backAs: "another", code: "worker_disconnected"},
	{name: "RST", phases: anyTime, fault: sim.Fault{Kind: sim.FaultReset}, code: "worker_disconnected",
		setup: func(s *stage) { s.breakWay(victim, s.resetting) }},
	{name: "FIN between two events", phases: anyTime, fault: sim.Fault{Kind: sim.FaultCut}, code: "worker_disconnected"},
	{name: "FIN within an event, in a number", phases: anyTime, fault: sim.Fault{Kind: sim.FaultHalfNumber}, code: "worker_disconnected"},
	{name: "FIN within an event, in a string", phases: anyTime, fault: sim.Fault{Kind: sim.FaultHalfString}, code: "worker_disconnected"},
	{name: "orderly end without a finish reason", phases: anyTime, fault: sim.Fault{Kind: sim.FaultEnd}, code: "worker_disconnected"},
	{name: "[DONE] without a finish reason", phases: anyTime, fault: sim.Fault{Kind: sim.FaultDone}, code: "worker_disconnected"},
	{name: "finish reason \"abort\"", phases: anyTime, fault: sim.Fault{Kind: sim.FaultAbort}, code: "worker_error",
		codes: map[string]string{vLLM(beforeFirst): "worker_disconnected"}}, // which then is an empty stream
	{name: "error frame", phases: anyTime, fault: sim.Fault{Kind: sim.FaultError}, code: "worker_error"},
	{name: "error frame with code 503", phases: early, fault: sim.Fault{Kind: sim.FaultError, Status: 503}, fate: passedOn, code: "overloaded"},
	{name: "error frame with code 400", phases: early, fault: sim.Fault{Kind: sim.FaultError, Status: 400}, fate: toldSo},
	{name: "error frame of a dead engine", phases: anyTime, fault: sim.Fault{Kind: sim.FaultShutdown}, code: "worker_shutdown",
		codes: map[string]string{sim.KindLlamaCPP: "worker_error"}},
	{name: "garbage in place of JSON", phases: anyTime, fault: sim.Fault{Kind: sim.FaultGarbage}, code: "worker_protocol_error"},
	{name: "ids outside the vocabulary", phases: []phase{beforeFirst, inTheMiddle}, fault: sim.Fault{Kind: sim.FaultWrongID}, code: "worker_protocol_error"},
	{name: "early \"length\" of a smaller worker", phases: []phase{beforeFirst, inTheMiddle}, fault: sim.Fault{Kind: sim.FaultLength}, code: "worker_error"},

	{name: "slow drip, 2 s a token", phases: streaming[:1], fault: sim.Fault{Kind: sim.FaultDrip, Delay: sim.Duration(2 * time.Second)}, gap: itsOwn, fate: unharmed, unaided: true},
	{name: "pause of 20 s", phases: anyTime[:2], fault: sim.Fault{Kind: sim.FaultPause, Delay: sim.Duration(20 * time.Second)}, gap: itsOwn, fate: unharmed, unaided: true},
	{name: "drained", phases: []phase{beforeConnecting, inTheMiddle}, drainAfter: 100 * time.Millisecond, code: "no_worker_available",
		act: func(s *stage) { s.router.Drain(victim) }},
	{name: "drained while the prompt is read", phases: early, fault: sim.Fault{Kind: sim.FaultPause, Delay: sim.Duration(20 * time.Second)},
		drainAfter: 100 * time.Millisecond, gap: detection, unaided: true,
		act: func(s *stage) { s.router.Drain(victim) }},
	{name: "poison: two workers die of it", phases: anyTime[:2], fault: sim.Fault{Kind: sim.FaultKill}, victims: 2, fate: toldSo, code: "worker_disconnected"},
}

func blackHole(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// loseWay makes connecting to the victim fail. What is connected is cut, because
// nothing would be noticed otherwise.
func (s *stage) loseWay(err error) {
	s.breakWay(victim, func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: err}
	})
	s.fleet[victim].Kill()
}

// resetting connects to the victim in such a way that the end of the connection
// looks as a RST does.
func (s *stage) resetting(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := s.network.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return resetConn{conn}, nil
}

type resetConn struct{ net.Conn }

func (c resetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		err = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

// thawed checks that nothing is left of the request on a worker that ran again
// after it was given up.
func (s *stage) thawed() {
	time.Sleep(10 * time.Minute)
	if n := s.fleet[victim].Stats().Running; n != 0 {
		s.t.Errorf("%d requests go on after the thaw", n)
	}
	time.Sleep(time.Minute)
	for _, w := range s.router.Workers() {
		if w.State != "ready" {
			s.t.Errorf("%s is %s a minute after the thaw", w.ID, w.State)
		}
	}
}
