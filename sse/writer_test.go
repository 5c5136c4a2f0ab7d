package sse

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/alarm"
)

// A recorder is a response writer that remembers when what happened. Tests read
// it only when the Writer is closed or the bubble is quiet.
type recorder struct {
	mu        sync.Mutex
	header    http.Header
	status    int
	writes    []string
	at        []time.Duration // of each write, since start
	flushes   int
	deadlines []time.Duration // as set, since start; -1 = cleared
	start     time.Time
	block     chan struct{} // if not nil, writes wait for it, or for the deadline
	fail      error
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, start: time.Now()} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return 0, r.fail
	}
	r.writes = append(r.writes, string(p))
	r.at = append(r.at, time.Since(r.start))
	return len(p), nil
}

func (r *recorder) FlushError() error { r.flushes++; return nil }

func (r *recorder) SetWriteDeadline(t time.Time) error {
	d := time.Duration(-1)
	if !t.IsZero() {
		d = t.Sub(r.start)
	}
	r.deadlines = append(r.deadlines, d)
	return nil
}

func httpRequest(major int) *http.Request {
	r := httptest.NewRequest("POST", "/", nil)
	r.ProtoMajor = major
	return r
}

func TestWriterSendsHeadersWithTheFirstEvent(t *testing.T) {
	rec := newRecorder()
	w := NewWriter(rec, httpRequest(1), WriterConfig{})
	if rec.status != 0 || len(rec.header) != 0 {
		t.Fatal("headers before any event")
	}
	for range 2 {
		if err := w.Send([]byte("data: x\n\n")); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	w.Close()
	if err := w.Send([]byte("data: y\n\n")); err != ErrClosed {
		t.Errorf("Send after Close: %v", err)
	}
	if rec.status != 200 || rec.header.Get("Content-Type") != "text/event-stream" || rec.flushes != 2 || len(rec.writes) != 2 {
		t.Errorf("%+v", rec)
	}
}

func TestWriterEnd(t *testing.T) {
	rec := newRecorder()
	w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Hour})
	if begun, err := w.End([]byte("data: e\n\n")); begun || err != nil || rec.status != 0 {
		t.Errorf("End before the first event: %v, %v, %+v", begun, err, rec)
	}
	w = NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Hour})
	_ = w.Send([]byte("data: x\n\n"))
	if begun, err := w.End([]byte("data: e\n\n")); !begun || err != nil {
		t.Errorf("End after an event: %v, %v", begun, err)
	}
	if got := strings.Join(rec.writes, ""); got != "data: x\n\ndata: e\n\n" {
		t.Errorf("sent %q", got)
	}
}

func TestWriterKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newRecorder()
		w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: 15 * time.Second})
		time.Sleep(31 * time.Second) // two beats, of which the first sends the headers
		_ = w.Send([]byte("data: x\n\n"))
		time.Sleep(10 * time.Second)
		_ = w.Send([]byte("data: y\n\n")) // at 41 s: the next beat is at 56 s
		time.Sleep(16 * time.Second)
		w.Close()
		time.Sleep(time.Minute)
		want := []string{": keep-alive\n", ": keep-alive\n", "data: x\n\n", "data: y\n\n", ": keep-alive\n"}
		at := []time.Duration{15 * time.Second, 30 * time.Second, 31 * time.Second, 41 * time.Second, 56 * time.Second}
		if !reflect.DeepEqual(rec.writes, want) || !reflect.DeepEqual(rec.at, at) {
			t.Errorf("sent %q at %v", rec.writes, rec.at)
		}
		if rec.flushes != len(want) || rec.status != 200 {
			t.Errorf("%d flushes, status %d", rec.flushes, rec.status)
		}
	})
}

// A keep-alive that cannot be written is reported, once, because nobody else
// would notice while there is nothing to send.
func TestWriterReportsFailedKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newRecorder()
		rec.fail = errors.New("broken pipe")
		var failed atomic.Int64
		w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Second, Failed: func(error) { failed.Add(1) }})
		time.Sleep(10 * time.Second)
		if err := w.Send(nil); err != rec.fail {
			t.Errorf("Send after a failed write: %v", err)
		}
		w.Close()
		if failed.Load() != 1 || len(rec.writes) != 0 {
			t.Errorf("reported %d times, sent %q", failed.Load(), rec.writes)
		}
	})
}

// While a write waits for a slow client, the keep-alive neither waits nor adds.
func TestWriterDoesNotBeatIntoAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := newRecorder()
		rec.block = make(chan struct{})
		w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Second})
		go func() {
			time.Sleep(10 * time.Second)
			close(rec.block)
		}()
		time.Sleep(time.Second / 2)
		if err := w.Send([]byte("data: x\n\n")); err != nil {
			t.Fatal(err)
		}
		w.Close()
		time.Sleep(10 * time.Second)
		if got := strings.Join(rec.writes, ""); got != "data: x\n\n" {
			t.Errorf("sent %q", got)
		}
	})
}

// A client that takes no keep-alive holds up those of no other stream, and Close
// waits until the http.ResponseWriter is left alone.
func TestWriterSlowKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := alarm.NewClock()
		cfg := WriterConfig{KeepAliveInterval: time.Second, Clock: clock}
		slow, other := newRecorder(), newRecorder()
		slow.block = make(chan struct{})
		a, b := NewWriter(slow, httpRequest(1), cfg), NewWriter(other, httpRequest(1), cfg)
		time.Sleep(4500 * time.Millisecond)
		b.Close()
		if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}; !reflect.DeepEqual(other.at, want) {
			t.Errorf("the other stream's at %v", other.at)
		}
		go close(slow.block)
		a.Close()
		if len(slow.writes) != 1 || slow.flushes != 1 {
			t.Errorf("at the end of Close, sent %q, %d flushes", slow.writes, slow.flushes)
		}
		time.Sleep(time.Hour)
		if len(slow.writes) != 1 || len(other.writes) != 4 {
			t.Errorf("sent %q and %q", slow.writes, other.writes)
		}
	})
}

// Keep-alives of many streams ring together, and none too early.
func TestWriterKeepAlivesFallTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := alarm.NewClock()
		at := map[time.Duration]int{}
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			rec := newRecorder()
			w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: 15 * time.Second, Clock: clock})
			defer func() {
				w.Close()
				if len(rec.at) != 2 || rec.at[0] < 15*time.Second || rec.at[0] > 15*time.Second+keepAliveSlack {
					t.Errorf("stream %d: %v", i, rec.at)
					return
				}
				at[rec.start.Sub(clock.Start())+rec.at[0]]++
				if i == 0 && len(at) > 5 {
					t.Errorf("50 streams at %d moments", len(at))
				}
			}()
		}
		time.Sleep(40 * time.Second)
	})
}

// A beat that was on its way when the stream was closed does and reports nothing.
func TestWriterBeatAfterClose(t *testing.T) {
	rec := newRecorder()
	w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Hour, Failed: func(err error) { t.Errorf("reported %v", err) }})
	w.Close()
	w.lastWrite = -2 * time.Hour
	w.beat(0)
	if len(rec.writes) != 0 || rec.status != 0 {
		t.Errorf("sent %q", rec.writes)
	}
}

func TestWriterDeadlines(t *testing.T) {
	for _, test := range []struct {
		major int
		want  []time.Duration
	}{
		{1, []time.Duration{9 * time.Second, 10 * time.Second}}, // the second event still has the deadline of the first
		{2, []time.Duration{9 * time.Second, -1, 9*time.Second + time.Second/2, -1, 10 * time.Second, -1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			rec := newRecorder()
			w := NewWriter(rec, httpRequest(test.major), WriterConfig{WriteTimeout: 8 * time.Second})
			for range 3 {
				_ = w.Send([]byte("data: x\n\n"))
				time.Sleep(time.Second / 2)
			}
			w.Close()
			if !reflect.DeepEqual(rec.deadlines, test.want) {
				t.Errorf("HTTP/%d: deadlines %v, want %v", test.major, rec.deadlines, test.want)
			}
		})
	}
}

// Many goroutines send while the keep-alive beats: every event stays whole.
func TestWriterConcurrentSend(t *testing.T) {
	rec := newRecorder()
	w := NewWriter(rec, httpRequest(1), WriterConfig{KeepAliveInterval: time.Microsecond})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_ = w.Send([]byte("data: x\n\n"))
			}
		})
	}
	wg.Wait()
	w.Close()
	events := 0
	for _, s := range rec.writes {
		switch s {
		case "data: x\n\n":
			events++
		case keepAliveLine:
		default:
			t.Fatalf("sent %q", s)
		}
	}
	if events != 400 {
		t.Errorf("%d events", events)
	}
}

func BenchmarkWriterSend(b *testing.B) {
	w := NewWriter(nullWriter{}, httpRequest(1), WriterConfig{KeepAliveInterval: time.Hour, WriteTimeout: time.Minute})
	defer w.Close()
	event := []byte("data: {\"x\":1}\n\n")
	b.ReportAllocs()
	for b.Loop() {
		_ = w.Send(event)
	}
}

type nullWriter struct{}

func (nullWriter) Header() http.Header              { return http.Header{} }
func (nullWriter) WriteHeader(int)                  {}
func (nullWriter) Write(p []byte) (int, error)      { return len(p), nil }
func (nullWriter) FlushError() error                { return nil }
func (nullWriter) SetWriteDeadline(time.Time) error { return nil }
