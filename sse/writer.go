package sse

import (
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"baton/alarm"
)

// A Writer sends server-sent events to one HTTP client. It sends the response
// headers with the first event, keeps a silent stream alive with comment lines,
// and ends a stream whose client takes nothing.
//
// Send, End and Close may be called from any goroutine. The keep-alive is an alarm,
// so an open stream costs neither a goroutine nor a timer of its own.
type Writer struct {
	mu          sync.Mutex // guards what follows and every write to w
	begun       bool       // the headers are out
	closed      bool
	http2       bool
	w           http.ResponseWriter
	err         error         // the first write error; nothing is written after it
	start       time.Time     // of cfg.Clock, which is cheaper than the wall's
	lastWrite   time.Duration // or when the writer was made
	deadlineEnd time.Duration // when the write deadline has to be set anew

	cfg       WriterConfig
	rc        http.ResponseController // by value: one place less to look at
	keepAlive alarm.Alarm
}

// WriterConfig holds the bounds of a Writer. A duration of 0 is off.
type WriterConfig struct {
	// KeepAliveInterval is the silence after which a comment line is sent. The
	// first one also sends the headers, so that proxies see a living response.
	KeepAliveInterval time.Duration

	// Clock has the alarms of the keep-alive, which may ring together with others'
	// and so up to an eighth of a second late; nil = one of the writer's own.
	Clock *alarm.Clock

	// WriteTimeout is how long a write may wait for a client that takes no
	// byte. A client is given up after WriteTimeout to 9/8 of it.
	WriteTimeout time.Duration

	// Failed, if not nil, is called once when a keep-alive could not be written,
	// on a goroutine of its own and without locks: whoever makes the events may be
	// waiting for the next one and would not notice that the client is gone.
	Failed func(error)
}

// ErrClosed is returned by Send after Close or End.
var ErrClosed = errors.New("sse: stream is closed")

// keepAliveLine is a comment without a blank line of its own: old readers take
// a blank line for the end of an event and then parse nothing as JSON.
const keepAliveLine = ": keep-alive\n"

// keepAliveSlack is how long a keep-alive may be put off, and no longer than 1/64 of
// its interval, so that those of many streams are looked after together.
const keepAliveSlack = alarm.Grid

// NewWriter returns a Writer that answers r through w. The clock of the first
// keep-alive starts here. Close must be called before the handler returns.
func NewWriter(w http.ResponseWriter, r *http.Request, cfg WriterConfig) *Writer {
	out := new(Writer)
	out.Init(w, r, cfg)
	return out
}

// Init makes w, which is part of a larger record, what NewWriter returns.
func (w *Writer) Init(rw http.ResponseWriter, r *http.Request, cfg WriterConfig) {
	w.w, w.rc, w.cfg = rw, *http.NewResponseController(rw), cfg
	w.http2 = r.ProtoMajor >= 2
	if w.cfg.Clock == nil {
		w.cfg.Clock = alarm.NewClock()
	}
	w.start, w.lastWrite = w.cfg.Clock.Start(), w.cfg.Clock.Now()
	if cfg.KeepAliveInterval > 0 {
		w.keepAlive.Ring = w.beat
		w.beatAfter(w.lastWrite)
	}
}

// Send writes events, each with its closing blank line, and flushes once. After
// an error every further call returns that error.
func (w *Writer) Send(events []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(events)
}

// End closes the stream, with events as its last ones if it has begun. If it
// has not, End writes nothing and returns false: the http.ResponseWriter is the
// caller's again, who can still answer with a status.
func (w *Writer) End(events []byte) (begun bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		err = w.write(events)
	}
	w.close()
	return w.begun, err
}

// Close stops the keep-alive. When it has returned the Writer does not touch
// the http.ResponseWriter any more. It is safe to call Close twice.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close()
}

func (w *Writer) close() {
	w.closed = true
	w.cfg.Clock.Stop(&w.keepAlive)
}

// beatAfter sets the alarm for a silence that began at the time since.
func (w *Writer) beatAfter(since time.Duration) {
	due := since + w.cfg.KeepAliveInterval
	w.cfg.Clock.Set(&w.keepAlive, due, due+min(keepAliveSlack, w.cfg.KeepAliveInterval/64))
}

// beat runs on the goroutine of the clock, and so waits for nobody. The alarm is not
// set by each event, which would cost more than the event; it looks how long ago the
// last one was.
func (w *Writer) beat(time.Duration) {
	now := w.cfg.Clock.Now()
	if !w.mu.TryLock() {
		// Somebody is writing, perhaps waiting for a slow client: no silence.
		w.beatAfter(now)
		return
	}
	switch {
	case w.closed || w.err != nil:
		w.mu.Unlock()
	case now < w.lastWrite+w.cfg.KeepAliveInterval:
		w.beatAfter(w.lastWrite)
		w.mu.Unlock()
	default:
		go w.breakSilence() // which gets the lock
	}
}

// breakSilence writes a keep-alive, for which it may have to wait, and unlocks w.mu,
// which is held.
func (w *Writer) breakSilence() {
	err := w.write([]byte(keepAliveLine))
	if err == nil {
		w.beatAfter(w.lastWrite)
	}
	w.mu.Unlock()
	if err != nil && w.cfg.Failed != nil {
		w.cfg.Failed(err)
	}
}

func (w *Writer) write(p []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	}
	if !w.begun {
		w.begun = true
		h := w.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // nginx would collect events otherwise
		w.w.WriteHeader(http.StatusOK)
	}
	w.lastWrite = time.Since(w.start)
	w.extendDeadline()
	_, err := w.w.Write(p)
	if err == nil {
		err = w.rc.Flush()
	}
	if w.http2 && w.cfg.WriteTimeout > 0 {
		// An HTTP/2 stream is reset when its write deadline passes, even if
		// nobody is writing then. An HTTP/1 connection is not.
		_ = w.rc.SetWriteDeadline(time.Time{})
	}
	w.err = err
	return err
}

// extendDeadline moves the write deadline forward, but not with each event: on
// HTTP/1 it may be up to an eighth of the time-out old.
func (w *Writer) extendDeadline() {
	if !w.http2 && w.lastWrite < w.deadlineEnd {
		return
	}
	timeout := w.cfg.WriteTimeout
	if timeout <= 0 {
		w.deadlineEnd = math.MaxInt64
		return
	}
	slack := timeout / 8
	w.deadlineEnd = w.lastWrite + slack
	// A writer without deadlines, as in a test, has no slow client either.
	_ = w.rc.SetWriteDeadline(time.Now().Add(timeout + slack))
}
