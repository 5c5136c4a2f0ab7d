package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"baton/engine"
	"baton/openai"
	"baton/preprocess"
	"baton/responsestore"
)

// An endpoint is one of the three shapes of the generation API.
type endpoint struct {
	label   string // in metrics, as Dynamo names it
	prepare func(p Preparer, c *call, body []byte) (*preprocess.Prepared, *openai.Error)

	responses bool // a response of items, see responses.go; else chat or text completions, of which are:

	replyObject  string
	streamObject string
	chat         bool
}

var (
	chatCompletions = endpoint{
		label: "chat_completions",
		prepare: func(p Preparer, c *call, body []byte) (*preprocess.Prepared, *openai.Error) {
			return p.Chat(c.ids.own, body)
		},
		replyObject:  "chat.completion",
		streamObject: "chat.completion.chunk",
		chat:         true,
	}
	completions = endpoint{
		label: "completions",
		prepare: func(p Preparer, c *call, body []byte) (*preprocess.Prepared, *openai.Error) {
			return p.Completion(c.ids.own, body)
		},
		replyObject:  "text_completion",
		streamObject: "text_completion",
	}
	responses = endpoint{
		label:     "responses",
		prepare:   prepareResponse,
		responses: true,
	}
)

func prepareResponse(p Preparer, c *call, body []byte) (*preprocess.Prepared, *openai.Error) {
	if c.kept == nil {
		return p.Responses(c.ids.own, body, nil)
	}
	return p.Responses(c.ids.own, body, c.kept)
}

const (
	debugHeader      = "X-Baton-Debug"
	attemptsHeader   = "X-Baton-Attempts"
	migrationsHeader = "X-Baton-Migrations"
)

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// maxLoggedErrorBytes bounds what a worker's words can add to the log.
const maxLoggedErrorBytes = 512

// A call is one request of the generation API, from its arrival to its end.
type call struct {
	server *Server
	ep     *endpoint
	ids    requestIDs
	start  time.Time
	from   origin
	debug  bool // the client wants to know how its answer came about
	cancel context.CancelCauseFunc
	stop   context.CancelFunc    // of the time limit; nil = there is none
	kept   *responsestore.Client // what the client sees of earlier responses; nil = nothing is kept, or this is none

	// Known once the request is prepared.
	prepared   *preprocess.Prepared
	choices    []*choice
	model      *modelMetrics
	isPrepared atomic.Bool // for Server.Requests

	guessedStream bool // of a request that was refused
	admitted      bool // it counts against the limit of concurrent requests
	stranger      bool // it has no good key, and leaves no trace

	firstToken   sync.Once // of any choice
	toFirstToken time.Duration
}

// An origin is what the records of a request's end tell of the HTTP request. It is
// kept in place of the request, which holds on to much more.
type origin struct {
	remote, method, route string // the routes of the generation API are plain
	header                http.Header
}

// originOf returns what cfg's records need.
func (s *Server) originOf(r *http.Request) origin {
	o := origin{remote: r.RemoteAddr}
	if s.cfg.Tracer != nil {
		o.method, o.route, o.header = r.Method, r.URL.Path, r.Header
	}
	return o
}

// generate answers a request of the generation API.
func (s *Server) generate(ep *endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, ctx, refusal := s.begin(ep, w, r)
		if refusal == nil {
			refusal = c.receive(w, r)
		}
		if refusal != nil {
			defer c.end()
			c.refuse(w, refusal)
			return
		}
		if d, ok := w.(*direct); ok {
			d.detach(func() { c.answerDetached(ctx, d, r) })
			return
		}
		defer c.end()
		c.answer(ctx, w, r)
	}
}

// begin makes the call of a request, which is not the worse for a refusal, and its
// context.
func (s *Server) begin(ep *endpoint, w http.ResponseWriter, r *http.Request) (c *call, ctx context.Context, refusal *openai.Error) {
	ctx, cancel := r.Context(), context.CancelCauseFunc(nil)
	if d, ok := w.(*direct); ok {
		cancel = d.cancel
	} else {
		ctx, cancel = context.WithCancelCause(ctx)
	}
	c = &call{
		server: s,
		ep:     ep,
		ids:    requestIDsOf(r.Context()),
		start:  time.Now(),
		from:   s.originOf(r),
		debug:  r.Header.Get(debugHeader) == "1",
		cancel: cancel,
	}
	if ep.responses {
		c.kept = s.clientOf(r)
	}
	if refusal := s.running.add(c); refusal != nil {
		return c, ctx, refusal
	}
	limit, refusal := requestTimeout(r.Header.Get(timeoutHeader), s.cfg.RequestTimeout)
	if refusal == nil && limit > 0 {
		ctx, c.stop = context.WithDeadlineCause(ctx, c.start.Add(limit), errTimedOut(limit))
	}
	return c, ctx, refusal
}

// end is the last step of every call.
func (c *call) end() {
	if c.stop != nil {
		c.stop()
	}
	c.cancel(nil)
	c.server.running.remove(c)
}

// receive reads the body and makes choices of it.
func (c *call) receive(w http.ResponseWriter, r *http.Request) *openai.Error {
	body, refusal := c.server.readBody(w, r)
	if refusal == nil {
		refusal = c.server.running.admit(c)
	}
	if refusal == nil {
		refusal = c.prepare(body)
	}
	return refusal
}

// answerDetached answers on a stack that is as small as an answer allows: the
// handler's has grown, and would stay so for as long as it takes.
func (c *call) answerDetached(ctx context.Context, d *direct, r *http.Request) {
	streamStack(0)
	defer func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			v = c.server.recovered(c.ids, d, v)
		}
		c.end() // before the client can know that the answer is over
		d.finish(v == nil)
	}()
	c.answer(ctx, d, r)
}

// prepare makes choices of the body. A panic is refused here, so that it is
// counted like every other end.
func (c *call) prepare(body []byte) (refusal *openai.Error) {
	defer func() {
		if v := recover(); v != nil {
			c.server.logPanic(c.ids, v)
			refusal = errInternal()
		}
	}()
	p, refusal := c.ep.prepare(c.server.preparer, c, body)
	if refusal != nil {
		c.guess(body)
		return refusal
	}
	c.prepared = p
	c.model = c.server.metrics.model(p.Model)
	c.choices = make([]*choice, len(p.Choices))
	for i := range p.Choices {
		c.choices[i] = newChoice(c, i)
	}
	c.isPrepared.Store(true)
	return nil
}

// maxGuessBytes bounds what is read of a body only to label its refusal.
const maxGuessBytes = 1 << 20

// guess looks for model and shape of a request that was refused, so that it is
// counted with its model. A name that we do not know makes no label.
func (c *call) guess(body []byte) {
	if len(body) > maxGuessBytes {
		return
	}
	var b struct {
		Model  string
		Stream bool
	}
	// Fields of other types leave the rest readable, and so does an error.
	_ = json.Unmarshal(body, &b)
	c.guessedStream = b.Stream
	c.model = c.server.metrics.known(b.Model)
}

// answer runs the choices and sends what comes of them.
func (c *call) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	c.model.inflight.Inc()
	c.model.queued.Inc()
	defer func() {
		c.firstToken.Do(c.model.queued.Dec) // if there never was one
		c.model.inflight.Dec()
		c.measure()
	}()
	var failure *engine.Error
	if c.prepared.Stream {
		failure = c.stream(ctx, w, r)
	} else {
		failure = c.reply(ctx, w)
	}
	c.conclude(failure)
	if failure != nil && clientLeft(failure) {
		// Whoever still listens must not take what there is for an answer.
		panic(http.ErrAbortHandler)
	}
}

// finalError is why the choices failed. The end of ctx goes before everything
// else: a leaving client makes errors that look like a dying worker.
func finalError(ctx context.Context, err error) *engine.Error {
	if e := engine.CauseOf(ctx); e != nil {
		return e
	}
	e := engine.AsError(err)
	if e.Kind == engine.Cancelled {
		// Nobody cancelled it. The client is there and must hear of it.
		return &engine.Error{Kind: engine.Internal, WorkerID: e.WorkerID, Err: e}
	}
	return e
}

// clientLeft reports whether there is nobody to be told of e. The shutdown of
// the server cancels requests too, but their clients are there.
func clientLeft(e *engine.Error) bool {
	return e.Kind == engine.Cancelled && !isShutdown(e)
}

// lost ends the request because its client takes nothing any more.
func (c *call) lost(err error) {
	c.cancel(fmt.Errorf("%w: %v", errClientGone, err))
}

// attempts and migrations sum over all choices. They are called when all
// choices have ended.
func (c *call) attempts() int {
	n := 0
	for _, choice := range c.choices {
		n += len(choice.trace.Attempts)
	}
	return n
}

// tries are the attempts but for those that made an earlier part of their answer: a
// failure is explained by the others.
func (c *call) tries() int {
	n := 0
	for _, choice := range c.choices {
		attempts := choice.trace.Attempts
		for i := range attempts {
			if i == len(attempts)-1 || attempts[i].Err != nil {
				n++
			}
		}
	}
	return n
}

func (c *call) migrations() int {
	n := 0
	for _, choice := range c.choices {
		n += choice.trace.Migrations()
	}
	return n
}

// notMoved is why the failure that ended the request was not answered by a move.
func (c *call) notMoved() engine.NotMoved {
	for _, choice := range c.choices {
		if choice.trace.NotMoved != "" {
			return choice.trace.NotMoved
		}
	}
	return ""
}

// lastWorker is where the request was last; "" = no worker was asked.
func (c *call) lastWorker() string {
	var last *engine.Attempt
	for _, choice := range c.choices {
		if a := choice.trace.Last(); a != nil && (last == nil || a.Start.After(last.Start)) {
			last = a
		}
	}
	if last == nil {
		return ""
	}
	return last.WorkerID
}

func (c *call) publicError(failure *engine.Error) *openai.Error {
	return publicError(failure, c.tries(), c.notMoved(), c.server.cfg.OverloadStatus)
}

func (c *call) requestType() string {
	if c.guessedStream || c.prepared != nil && c.prepared.Stream {
		return "stream"
	}
	return "unary"
}

// refuse ends a request that never reached the pipeline.
func (c *call) refuse(w http.ResponseWriter, e *openai.Error) {
	if c.model == nil {
		c.model = c.server.metrics.unknown()
	}
	c.model.count(c.ep.label, c.requestType(), errorType(e.Status))
	c.record(e.Status, refusalCode(e))
	c.server.log.Debug("request refused", c.logArgs(slog.Int("status", e.Status), slog.String("code", e.Code))...)
	if e.Status == statusClientClosedRequest {
		c.server.metrics.disconnected.Inc()
		panic(http.ErrAbortHandler)
	}
	writeError(w, e)
}

// conclude counts and logs the end of a request; failure is nil after a success.
func (c *call) conclude(failure *engine.Error) {
	if failure == nil {
		c.model.count(c.ep.label, c.requestType(), "")
		c.record(http.StatusOK, "ok")
		if c.server.log.Enabled(context.Background(), slog.LevelDebug) {
			c.server.log.Debug("request finished", c.logArgs(slog.Int("status", http.StatusOK))...)
		}
		return
	}
	status := c.publicError(failure).Status
	if clientLeft(failure) {
		status = statusClientClosedRequest
		c.server.metrics.disconnected.Inc()
		c.model.cancelled(c.ep.label, c.requestType())
	}
	kind := errorType(status)
	if failure.Kind == engine.Poison {
		kind = errorInternal // the status only keeps SDKs from repeating it
	}
	c.model.count(c.ep.label, c.requestType(), kind)
	c.record(status, failure.Kind.String())
	args := c.logArgs(slog.Int("status", status), slog.String("kind", failure.Kind.String()))
	if worker := cmp.Or(failure.WorkerID, c.lastWorker()); worker != "" {
		args = append(args, slog.String("worker", worker))
	}
	if clientLeft(failure) {
		c.server.log.Debug("client left", args...)
		return
	}
	if why := c.notMoved(); why != "" {
		args = append(args, slog.String("not_moved", string(why)))
	}
	if why := c.loggable(failure); why != "" {
		args = append(args, slog.String("err", bounded(why, maxLoggedErrorBytes)))
	}
	level := slog.LevelWarn
	if failure.Kind == engine.InvalidRequest && c.migrations() == 0 {
		level = slog.LevelDebug // the client's mistake, and nothing was lost
	}
	if list := c.attemptRecords(); len(list) > 0 {
		args = append(args, slog.Any("trace", list))
	}
	c.server.log.Log(context.Background(), level, "request failed", args...)
}

// loggable is what may be logged of why the request failed. A worker that finds a
// request invalid may quote it; what the router says of one does not.
func (c *call) loggable(failure *engine.Error) string {
	switch {
	case failure.Kind == engine.InvalidRequest && c.lastWorker() != "":
		return ""
	case failure.Kind == engine.InvalidRequest && failure.Message != "":
		return failure.Message
	case failure.Err != nil:
		return failure.Err.Error()
	}
	return ""
}

// logArgs are the facts of every record about a request: names and numbers,
// nothing of prompts or answers.
func (c *call) logArgs(more ...any) []any {
	args := []any{slog.String("request_id", c.ids.own)}
	if c.ids.shown != c.ids.own {
		args = append(args, slog.String("client_request_id", c.ids.shown))
	}
	args = append(args, slog.String("endpoint", c.ep.label), slog.Float64("duration_ms", milliseconds(time.Since(c.start))))
	if c.prepared != nil {
		args = append(args,
			slog.String("model", c.prepared.Model),
			slog.Int("attempts", c.attempts()), slog.Int("migrations", c.migrations()),
			slog.Int("prompt_tokens", c.prepared.PromptTokens), slog.Int("completion_tokens", c.completionTokens()))
	}
	return append(args, more...)
}

func (c *call) completionTokens() int {
	n := 0
	for _, choice := range c.choices {
		n += int(choice.completionTokens.Load())
	}
	return n
}
