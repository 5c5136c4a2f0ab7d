package sim

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"baton/engine"
)

// A protocol writes the frames of one answer.
type protocol interface {
	// step returns the frames of one delta; none where the engine sends none.
	// d.FinishReason is set if the finish reason comes along.
	step(d engine.Delta, p *producer) []byte
	// end returns what follows the last step: the frame with the finish reason,
	// if alone is set or the protocol has it apart, usage, a terminator.
	end(p *producer, alone bool) []byte
	// abort returns the frames of a stream that the worker gives up.
	abort(p *producer) []byte
	shutdown(p *producer) []byte // of the engine, by a fault
	// failure returns the frames of an error within the stream.
	failure(f *Fault) []byte
	// refusal returns the body of a response with this status.
	refusal(status int, message string) []byte
	// half returns the first half of a frame, cut as kind says.
	half(kind FaultKind, p *producer) []byte
	// whole returns the body of an answer that is not streamed.
	whole(p *producer, deltas []engine.Delta) []byte
}

// An attempt is one generation request on its way through a Server.
type attempt struct {
	s        *Server
	w        http.ResponseWriter
	out      *http.ResponseController
	ctx      context.Context
	protocol protocol
	fault    *Fault

	id     string
	stream bool

	constraint *engine.Constraint // nil = none
	early      bool               // headers are sent before the first token
	ping       time.Duration      // between keep-alive comments; 0 = none

	states  states
	aborted chan struct{}  // closed by the abort endpoint
	sent    bool           // headers are
	within  bool           // a frame is written in part: no ping now
	last    time.Time      // of the last write
	kept    []engine.Delta // of an answer that is not streamed
}

// Why an attempt ends without a finish reason.
var (
	errClientGone = errors.New("the client has gone")
	errAborted    = errors.New("aborted by request")
	errDead       = errors.New("the worker is dead")
	errVanished   = errors.New("the worker has vanished")
	errFailed     = errors.New("a fault ended the answer")
)

// serve answers the request: prompt is valid by now.
func (a *attempt) serve(prompt []engine.TokenID, sampling engine.SamplingParams, stop engine.StopConditions, stops []string, output engine.OutputOptions) {
	s := a.s
	if !s.acquire(a.ctx) {
		s.count(&s.stats.Aborted, 1)
		return
	}
	defer s.release()
	s.mu.Lock()
	a.states = s.states
	s.active[a] = true
	s.stats.Running++
	s.mu.Unlock()
	outcome := &s.stats.Failed
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active, a)
		s.stats.Running--
		*outcome++
	}()

	p := &producer{config: &s.config, g: newGeneration(&s.config, prompt, sampling, stop), output: output,
		stops: newStopStrings(s.words, stops), fault: a.fault, wait: a.wait}
	p.g.constrain(a.constraint)
	p.g.deaf = s.config.Kind == KindSGLang && stop.IgnoreEOS
	err := a.generate(p)
	switch {
	case err == nil:
		outcome = &s.stats.Finished
	case errors.Is(err, errAborted):
		outcome = &s.stats.Aborted
		_ = a.write(a.protocol.abort(p))
	case errors.Is(err, errClientGone) || a.ctx.Err() != nil:
		outcome = &s.stats.Aborted
	case errors.Is(err, errVanished):
		a.linger()
	case errors.Is(err, errDead):
		a.cut()
	}
}

// generate sends the answer. It returns nil after a finish reason of success.
func (a *attempt) generate(p *producer) error {
	if a.fault.beforeResponse() {
		return a.beforeResponse()
	}
	if a.s.state().draining && a.s.config.Kind != KindSGLang { // which drains and goes on
		return a.turnAway()
	}
	if a.stream && a.early {
		a.header()
	}
	told := false // whether the finish reason went along with the last ids
	for p.finish == "" {
		if over, err := a.strike(p); over {
			return err
		}
		d, err := p.delta()
		if err != nil {
			return err
		}
		a.s.count(&a.s.stats.Tokens, len(d.TokenIDs))
		if !a.s.config.FinishAlone && !p.due() {
			d.FinishReason = p.finish
			told = p.finish != ""
		}
		if !a.stream {
			a.kept = append(a.kept, d)
			continue
		}
		if err := a.frame(a.protocol.step(d, p), p); err != nil {
			return err
		}
	}
	if over, err := a.strike(p); over {
		return err
	}
	if !a.stream {
		a.reply(http.StatusOK, a.protocol.whole(p, a.kept))
		return nil
	}
	return a.write(a.protocol.end(p, !told))
}

// turnAway answers a new request while the worker drains: vLLM with a stream
// that only ends, llama.cpp, which does not drain, as while it loads.
func (a *attempt) turnAway() error {
	if a.s.config.Kind == KindVLLM && a.stream {
		_ = a.write(doneFrame)
	} else {
		a.reply(http.StatusServiceUnavailable, a.protocol.refusal(http.StatusServiceUnavailable, ""))
	}
	return errFailed
}

// frame writes frames, in two pieces if they are to drip.
func (a *attempt) frame(data []byte, p *producer) error {
	if p.struck(FaultDrip) && len(data) > 1 {
		if err := a.write(data[:len(data)/2]); err != nil {
			return err
		}
		a.within = true
		err := a.wait(p.pace())
		a.within = false
		if err != nil {
			return err
		}
		data = data[len(data)/2:]
	}
	return a.write(data)
}

var doneFrame = []byte("data: [DONE]\n\n")

// header sends the headers of a stream.
func (a *attempt) header() {
	if a.sent {
		return
	}
	a.sent, a.last = true, time.Now()
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.w.WriteHeader(http.StatusOK)
	_ = a.out.Flush()
}

// write sends data and does not wait for more.
func (a *attempt) write(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	a.header()
	a.last = time.Now()
	if _, err := a.w.Write(data); err != nil {
		return errClientGone
	}
	if err := a.out.Flush(); err != nil {
		return errClientGone
	}
	return nil
}

// reply sends a response that is one JSON body.
func (a *attempt) reply(status int, body []byte) {
	a.sent = true
	writeJSON(a.w, status, body)
}

// for ever, as a wait.
const forever time.Duration = -1

// wait takes d of time, with pings, or less: the error says what came between.
func (a *attempt) wait(d time.Duration) error {
	var elapsed <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		elapsed = t.C
	}
	for {
		// What ends the answer goes before what lets it go on.
		select {
		case <-a.ctx.Done():
			return errClientGone
		case <-a.states.dead:
			return errDead
		case <-a.states.vanished:
			return errVanished
		case <-a.aborted:
			return errAborted
		case <-a.states.frozen:
			if err := a.frozen(); err != nil {
				return err
			}
			continue
		default:
		}
		if d == 0 {
			return nil
		}
		ping, stop := a.nextPing()
		select {
		case <-elapsed:
			stop()
			return nil
		case <-ping:
			if err := a.write(pingFrame); err != nil {
				return err
			}
		case <-a.ctx.Done():
		case <-a.states.dead:
		case <-a.states.vanished:
		case <-a.aborted:
		case <-a.states.frozen:
		}
		stop()
	}
}

var pingFrame = []byte(":\n\n")

// nextPing is when the next keep-alive comment is due; never before the headers.
func (a *attempt) nextPing() (due <-chan time.Time, stop func()) {
	if a.ping <= 0 || !a.sent || !a.stream || a.within {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(a.last.Add(a.ping)))
	return t.C, func() { t.Stop() }
}

// frozen waits for the thaw.
func (a *attempt) frozen() error {
	select {
	case <-a.states.thawed:
		a.states = a.s.state()
		return nil
	case <-a.states.dead:
		return errDead
	case <-a.ctx.Done():
		return errClientGone
	}
}

// linger is what is left of a stream of a worker that has vanished: silence
// until the client leaves, or where there are pings until one is due; then the
// connection is cut.
func (a *attempt) linger() {
	ping, stop := a.nextPing()
	defer stop()
	select {
	case <-ping:
		_ = a.write(pingFrame)
		a.cut()
	case <-a.ctx.Done():
	case <-a.states.dead:
		a.cut()
	}
}

// beforeResponse acts out the faults that come before any token.
func (a *attempt) beforeResponse() error {
	switch f := a.fault; f.Kind {
	case FaultRefuse:
		a.cut()
	case FaultDialTimeout:
		delay := time.Duration(f.Delay)
		if delay == 0 {
			delay = defaultConnectDelay
		}
		if err := a.wait(delay); err != nil {
			return err
		}
		a.cut()
	case FaultStatus:
		if f.RetryAfter > 0 {
			a.w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		status := f.status(http.StatusServiceUnavailable)
		a.reply(status, a.protocol.refusal(status, f.Message))
	case FaultMute:
		if a.early {
			a.header()
		}
		return a.wait(forever)
	}
	return errFailed
}

// strike acts out the fault if it is due. It returns true when the answer is over.
func (a *attempt) strike(p *producer) (bool, error) {
	if !p.due() {
		return false, nil
	}
	f := p.fault
	switch f.Kind {
	case FaultDrip, FaultMiscount, FaultWrongID:
		return false, nil
	case FaultPause:
		p.fault = nil
		err := a.wait(time.Duration(f.Delay))
		return err != nil, err
	case FaultStall:
		return true, a.wait(forever)
	case FaultFreeze:
		p.fault = nil
		a.s.Freeze()
		if f.Delay > 0 {
			time.AfterFunc(time.Duration(f.Delay), a.s.Thaw)
		}
		err := a.wait(0)
		return err != nil, err
	case FaultVanish:
		a.s.Vanish()
		return true, errVanished
	case FaultKill:
		a.s.Kill()
		return true, errDead
	case FaultReset:
		a.reset()
	case FaultCut:
		a.cut()
	case FaultHalfNumber, FaultHalfString:
		_ = a.write(a.protocol.half(f.Kind, p))
		a.reset()
	case FaultLength:
		return true, a.finishEarly(p)
	default:
		if !a.stream {
			a.reply(http.StatusInternalServerError, a.protocol.refusal(http.StatusInternalServerError, ""))
			return true, errFailed
		}
		a.header()
		_ = a.write(a.lastWords(p))
	}
	return true, errFailed
}

// lastWords are the frames with which a fault ends a stream in good order.
func (a *attempt) lastWords(p *producer) []byte {
	switch p.fault.Kind {
	case FaultDone:
		return doneFrame
	case FaultAbort:
		return a.protocol.abort(p)
	case FaultShutdown:
		return a.protocol.shutdown(p)
	case FaultError:
		return a.protocol.failure(p.fault)
	case FaultGarbage:
		return []byte("data: {\"choices\":[{\"token_ids\":[oops\n\n")
	default: // end, quiet
		return nil
	}
}

// finishEarly ends the answer with "length" as if the context were full.
func (a *attempt) finishEarly(p *producer) error {
	p.finish, p.fault = engine.FinishLength, nil
	if !a.stream {
		a.reply(http.StatusOK, a.protocol.whole(p, a.kept))
		return nil
	}
	return a.write(a.protocol.end(p, true))
}

// cut closes the connection (FIN) without ending the body.
func (a *attempt) cut() { a.closeConn(false) }

// reset closes the connection with RST, so that the client's kernel says
// "connection reset by peer".
func (a *attempt) reset() { a.closeConn(true) }

func (a *attempt) closeConn(reset bool) {
	conn, _, err := a.out.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 or a recorder: the server does what it can
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
