package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/backend"
	"baton/engine"
	"baton/openai"
)

// What a client is told of every kind, before the first byte.
func TestPublicErrors(t *testing.T) {
	for _, test := range []struct {
		err            engine.Error
		overloadStatus int
		status         int
		kind, code     string
		retryAfter     int
	}{
		{engine.Error{Kind: engine.Internal}, 0, 500, openai.TypeServer, "internal_error", 0},
		{engine.Error{Kind: engine.CannotConnect}, 0, 503, openai.TypeServer, "worker_unreachable", 1},
		{engine.Error{Kind: engine.ConnectionTimeout}, 0, 504, openai.TypeServer, "worker_connect_timeout", 0},
		{engine.Error{Kind: engine.Disconnected, Status: 200}, 0, 502, openai.TypeServer, "worker_disconnected", 0},
		{engine.Error{Kind: engine.Stalled}, 0, 504, openai.TypeServer, "worker_stalled", 0},
		{engine.Error{Kind: engine.EngineShutdown}, 0, 503, openai.TypeServer, "worker_shutdown", 1},
		{engine.Error{Kind: engine.Overloaded, Status: 429}, 0, 429, openai.TypeRateLimit, "overloaded", 1},
		{engine.Error{Kind: engine.Overloaded, Status: 503, RetryAfter: 2500 * time.Millisecond}, 0, 503, openai.TypeServer, "overloaded", 3},
		{engine.Error{Kind: engine.Overloaded, Status: 429}, 503, 503, openai.TypeServer, "overloaded", 1},
		{engine.Error{Kind: engine.Overloaded, Status: 503, RetryAfter: 1e6 * time.Hour}, 429, 429, openai.TypeRateLimit, "overloaded", 3600},
		{engine.Error{Kind: engine.WorkerMisconfigured, Status: 401}, 0, 502, openai.TypeServer, "worker_misconfigured", 0},
		{engine.Error{Kind: engine.InvalidRequest, Status: 422, Message: "no", Param: "top_k"}, 0, 422, openai.TypeInvalidRequest, "", 0},
		{engine.Error{Kind: engine.InvalidRequest, Status: 400, Message: "no", Param: "priority", Code: "unsupported_parameter"}, 0, 400, openai.TypeInvalidRequest, "unsupported_parameter", 0},
		{engine.Error{Kind: engine.InvalidRequest, Status: 409, Message: "no"}, 0, 400, openai.TypeInvalidRequest, "", 0},
		{engine.Error{Kind: engine.InvalidRequest, Status: 500}, 0, 400, openai.TypeInvalidRequest, "", 0},
		{engine.Error{Kind: engine.EngineError, Status: 500}, 0, 502, openai.TypeServer, "worker_error", 0},
		{engine.Error{Kind: engine.ProtocolError}, 0, 502, openai.TypeServer, "worker_protocol_error", 0},
		{engine.Error{Kind: engine.NoWorker}, 0, 503, openai.TypeServer, "no_worker_available", 5},
		{engine.Error{Kind: engine.TimedOut}, 0, 504, openai.TypeServer, "request_timeout", 0},
		{engine.Error{Kind: engine.Kind(200)}, 0, 500, openai.TypeServer, "internal_error", 0},
		{engine.Error{Kind: engine.Cancelled, Err: errShuttingDown}, 0, 503, openai.TypeServer, "server_shutting_down", 1},
	} {
		got := publicError(&test.err, 3, "", test.overloadStatus)
		if got.Status != test.status || got.Type != test.kind || got.Code != test.code || got.RetryAfter != test.retryAfter {
			t.Errorf("%v: %+v", &test.err, got)
		}
		switch test.err.Kind {
		case engine.InvalidRequest:
			if test.err.Message != "" && got.Message != test.err.Message || got.Param != test.err.Param || got.Message == "" {
				t.Errorf("%v: %+v", &test.err, got)
			}
		case engine.Cancelled:
		default:
			if !strings.Contains(got.Message, "3 attempts were made") || !strings.Contains(strings.ToLower(got.Message), "repeat") {
				t.Errorf("%v: message %q", &test.err, got.Message)
			}
		}
	}
	for kind := engine.Internal; kind <= engine.TimedOut; kind++ {
		if kinds[kind].status == 0 {
			t.Errorf("kind %v has no entry", kind)
		}
	}
}

// Every failing kind, as a status and as an event.
func TestEveryKindOverTheWire(t *testing.T) {
	for kind := engine.Internal; kind <= engine.TimedOut; kind++ {
		if kind == engine.Cancelled {
			continue
		}
		e := &engine.Error{Kind: kind, Message: "the engine's words", Err: errors.New("cause")}
		ts := newRig(fails(e)).serve(t)
		for _, stream := range []bool{true, false} {
			resp, raw := post(t, ts, chatPath, `{"model":"m","stream":`+strconv.FormatBool(stream)+`}`)
			wantError(t, resp, raw, kinds[kind].status, kinds[kind].code)
		}
		_, raw := post(t, newRig(fails(e, "x")).serve(t), chatPath, `{"model":"m","stream":true}`)
		if s := readStrict(t, raw, "chat.completion.chunk"); s.err == nil || s.text(0) != "x" {
			t.Errorf("%v: stream %s", kind, raw)
		}
	}
}

// The record of a failure says why there was no move, and the client is told in
// two words.
func TestWhyThereWasNoMove(t *testing.T) {
	for why, said := range map[engine.NotMoved]string{
		"":                      "(1 attempt was made). ",
		engine.MigrationOff:     "(1 attempt was made; migration is off). ",
		engine.MovesUsedUp:      "(1 attempt was made; its limit of moves is used up). ",
		engine.SequenceTooLong:  "(1 attempt was made; it is too long to be moved). ",
		engine.PoisonousRequest: "(1 attempt was made). ",
		engine.GuidedDecoding:   "its answer is constrained (structured output), and a part of it had been delivered",
		engine.PoisonSuspected:  "any of which may be the cause). The request can be repeated.",
	} {
		rig := newRig(fakeText(func(_ context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
			req.Tokens.Trace.Begin(req.Tokens.ID, "w1:8000")
			req.Tokens.Trace.NotMoved = why
			yield(backend.Delta{}, &engine.Error{Kind: engine.Disconnected})
		}))
		_, raw := post(t, rig.serve(t), chatPath, `{"model":"m"}`)
		if !strings.Contains(string(raw), said) {
			t.Errorf("%q: %s", why, raw)
		}
		log := rig.log.String()
		if strings.Contains(log, "not_moved") != (why != "") || !strings.Contains(log, "not_moved="+string(why)) && why != "" {
			t.Errorf("%q: log %s", why, log)
		}
		// The worker that was asked last is named even where the error names none.
		if !strings.Contains(log, "worker=w1:8000") {
			t.Errorf("%q: no worker in %s", why, log)
		}
	}
}

// What is wrong with a request is for its client; the log has it at DEBUG, in the
// router's words, which quote nothing.
func TestInvalidRequestOfNoWorkerIsExplained(t *testing.T) {
	rig := newRig(fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		yield(backend.Delta{}, &engine.Error{Kind: engine.InvalidRequest, Status: 400, Message: "no worker can do that"})
	}))
	post(t, rig.serve(t), chatPath, `{"model":"m"}`)
	log := rig.log.String()
	if strings.Contains(log, "WARN") || !strings.Contains(log, `err="no worker can do that"`) || strings.Contains(log, "worker=") {
		t.Errorf("log %s", log)
	}
}

// What an engine says of an invalid request may quote the prompt.
func TestInvalidRequestIsNotLogged(t *testing.T) {
	rig := newRig(fails(&engine.Error{Kind: engine.InvalidRequest, Status: 400, Message: "SECRET is no word", Err: errors.New("SECRET")}))
	resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m"}`)
	if wantError(t, resp, raw, 400, ""); !strings.Contains(string(raw), "SECRET") {
		t.Errorf("the client is not told: %s", raw)
	}
	if log := rig.log.String(); strings.Contains(log, "SECRET") || !strings.Contains(log, "kind=invalid_request") {
		t.Errorf("log %s", log)
	}
}

func TestForeignErrorsAreInternal(t *testing.T) {
	for name, text := range map[string]fakeText{
		"foreign error": func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
			yield(backend.Delta{}, errors.New("boom"))
		},
		"cancelled by nobody": func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
			yield(backend.Delta{}, &engine.Error{Kind: engine.Cancelled})
		},
		"quiet end": func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {},
	} {
		resp, raw := post(t, newRig(text).serve(t), chatPath, `{"model":"m","stream":true}`)
		t.Log(name)
		wantError(t, resp, raw, 500, "internal_error")
	}
}

func TestRequestTimeoutHeader(t *testing.T) {
	for _, test := range []struct {
		value string
		flag  time.Duration
		want  time.Duration
	}{
		{"", 0, 0}, {"", time.Minute, time.Minute},
		{"30", time.Minute, 30 * time.Second}, {"1.5", 0, 1500 * time.Millisecond},
		{"500ms", time.Minute, 500 * time.Millisecond}, {"2m", time.Minute, time.Minute},
		{"1e300", time.Minute, time.Minute}, {"2562047h", 0, 2562047 * time.Hour},
	} {
		if got, e := requestTimeout(test.value, test.flag); e != nil || got != test.want {
			t.Errorf("%q with flag %v: %v, %v; want %v", test.value, test.flag, got, e, test.want)
		}
	}
	for _, value := range []string{"0", "-1", "-5s", "0s", "NaN", "Inf", "-Inf", "soon", "1e-300", " ", "99999999999999h"} {
		got, e := requestTimeout(value, time.Minute)
		if e == nil || e.Status != http.StatusBadRequest || e.Param != timeoutHeader {
			t.Errorf("%q: %v, %+v", value, got, e)
		}
	}
	rig := newRig(says("x"))
	resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m"}`, timeoutHeader, "soon")
	if e := wantError(t, resp, raw, 400, "invalid_value"); *e.Error.Param != timeoutHeader || rig.preparer.calls.Load() != 0 {
		t.Errorf("error %s", raw)
	}
}

// TestPartsAreNoTries: what made an earlier part of an answer explains no failure of it.
func TestPartsAreNoTries(t *testing.T) {
	parts := fakeText(func(_ context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		lost := &engine.Error{Kind: engine.Disconnected}
		for i, err := range []*engine.Error{lost, nil, nil, lost} {
			req.Tokens.Trace.Begin(strconv.Itoa(i), "w1:8000").Err = err
		}
		yield(backend.Delta{}, lost)
	})
	ts := newRig(parts).serve(t)
	if _, raw := post(t, ts, chatPath, `{"model":"m"}`); !strings.Contains(string(raw), "2 attempts were made") {
		t.Errorf("%s", raw)
	}
}
