package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/engine"
)

// A Server is a simulated worker that speaks HTTP as the engine of its Kind
// does. It is an http.Handler; with Serve it also owns listeners, so that
// faults can close them.
type Server struct {
	config  Config
	words   *vocabulary
	profile profile
	faults  script
	mux     *http.ServeMux
	slots   chan struct{} // nil = no bound

	mu       sync.Mutex // guards what follows
	states   states
	requests []Received
	active   map[*attempt]bool
	servers  map[*http.Server]bool
	stats    Stats
	waiting  int // for a slot
	unnamed  int // requests that brought no id of their own
	told     int // tokens that TensorRT-LLM's /metrics has spoken of
}

// states are the conditions of the whole worker, as channels that are closed
// when they begin.
type states struct {
	dead     chan struct{} // everything is cut and refused
	vanished chan struct{} // streams are silent, connections refused
	frozen   chan struct{} // nothing answers
	thawed   chan struct{}
	draining bool // new requests get an empty answer
	health   int  // the status that /health has; 0 = 200
}

func newStates() states {
	return states{dead: make(chan struct{}), vanished: make(chan struct{}), frozen: make(chan struct{}), thawed: make(chan struct{})}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// healthPaths are where the engines say that they are ready.
var healthPaths = []string{"/health", "/v1/health", "/ping", "/ready", "/health_generate"}

// maxBodyBytes bounds a request's body.
const maxBodyBytes = 64 << 20

// NewServer returns a worker.
func NewServer(config Config) *Server {
	s := &Server{config: config.withDefaults(), words: embedded(), mux: http.NewServeMux(),
		states: newStates(), active: map[*attempt]bool{}, servers: map[*http.Server]bool{}}
	if n := s.config.Server.Slots; n > 0 {
		s.slots = make(chan struct{}, n)
	}
	s.faults.set(config.Faults)
	s.profile = s.config.profile()
	switch s.config.Kind {
	case KindSGLang:
		s.routeSGLang()
	case KindTRTLLM:
		s.routeTRTLLM()
	case KindLlamaCPP:
		s.routeLlamaCPP()
	default:
		s.routeVLLM()
	}
	s.routeControl()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st := s.state()
	if !strings.HasPrefix(r.URL.Path, controlPrefix) {
		if closed(st.frozen) {
			select {
			case <-st.thawed:
			case <-st.dead:
			case <-r.Context().Done():
				return
			}
		}
		if closed(st.dead) || closed(st.vanished) {
			panic(http.ErrAbortHandler) // the connection was open before; it is of no use now
		}
	}
	if st.health != 0 && slices.Contains(healthPaths, r.URL.Path) {
		writeJSON(w, st.health, nil)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	s.mux.ServeHTTP(w, r)
}

func (s *Server) state() states {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states
}

// Serve accepts connections from l until the worker is killed, vanishes or is
// closed; it then returns http.ErrServerClosed.
func (s *Server) Serve(l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	if closed(s.states.dead) || closed(s.states.vanished) {
		s.mu.Unlock()
		_ = l.Close()
		return http.ErrServerClosed
	}
	s.servers[server] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !closed(s.states.vanished) { // its streams are still to be closed
			delete(s.servers, server)
		}
	}()
	return server.Serve(l)
}

// Start listens on a TCP address, such as 127.0.0.1:0, serves there in the
// background, and returns the base URL. stop kills the worker and waits for its
// listener. A worker that was killed can be revived and started again.
func (s *Server) Start(address string) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("sim: listen: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // it ends by Kill or Vanish, and that is no error
	}()
	return "http://" + l.Addr().String(), func() {
		s.Kill()
		<-done
	}, nil
}

// Kill ends the worker as SIGKILL does: listeners are closed, connections cut.
func (s *Server) Kill() {
	s.mu.Lock()
	if !closed(s.states.dead) {
		close(s.states.dead)
	}
	servers := s.servers
	s.servers = map[*http.Server]bool{}
	s.mu.Unlock()
	for server := range servers {
		_ = server.Close()
	}
}

// Vanish makes the worker do what live vLLM and llama.cpp do on SIGTERM: the
// port refuses, open streams stay open and silent.
func (s *Server) Vanish() {
	s.mu.Lock()
	if !closed(s.states.vanished) {
		close(s.states.vanished)
	}
	s.mu.Unlock()
	s.closeListeners()
}

// closeListeners closes the listeners and the idle connections.
func (s *Server) closeListeners() {
	now, cancel := context.WithCancel(context.Background())
	cancel() // Shutdown with an ended context closes and does not wait
	s.mu.Lock()
	servers := maps.Clone(s.servers)
	s.mu.Unlock()
	for server := range servers {
		_ = server.Shutdown(now)
	}
}

// Freeze stops the whole worker as SIGSTOP does, until Thaw.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(s.states.frozen) {
		close(s.states.frozen)
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed(s.states.frozen) && !closed(s.states.thawed) {
		close(s.states.thawed)
		s.states.frozen, s.states.thawed = make(chan struct{}), make(chan struct{})
	}
}

// Drain makes new requests get what a draining vLLM gives: 200 and [DONE], no
// more. Running ones go on.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states.draining = true
}

// SetHealth sets the status that /health answers with, whatever the worker does
// otherwise; 0 = 200.
func (s *Server) SetHealth(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states.health = status
}

// Revive undoes Kill, Vanish, Freeze, Drain and SetHealth. The listeners that those closed
// stay closed; call Serve with a new one.
func (s *Server) Revive() {
	s.Thaw()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = newStates()
}

// settlePoll is how often Settle looks.
const settlePoll = 10 * time.Millisecond

// Settle waits until no request is running. Its error is that of ctx.
func (s *Server) Settle(ctx context.Context) error {
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for s.Stats().Running > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// SetFaults replaces the faults; their counts begin anew.
func (s *Server) SetFaults(faults ...Fault) { s.faults.set(faults) }

// Stats returns the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Reference is the package's Reference for the configuration of this worker.
func (s *Server) Reference(req *engine.Request) ([]engine.TokenID, engine.FinishReason) {
	return Reference(s.config, req)
}

// A Received is one generation request that the worker got.
type Received struct {
	ID       string           `json:"id"` // as the worker's endpoints call it
	Path     string           `json:"path"`
	TokenIDs []engine.TokenID `json:"token_ids"`
	// Params is the body without the ids.
	Params map[string]json.RawMessage `json:"params"`
	Header http.Header                `json:"header"`
}

// Requests returns the newest generation requests, oldest first.
func (s *Server) Requests() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// record writes down a request that is well-formed JSON, valid or not.
func (s *Server) record(r *http.Request, id string, ids []engine.TokenID, body []byte, without string) {
	params := map[string]json.RawMessage{}
	_ = json.Unmarshal(body, &params) // it was decoded before
	delete(params, without)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Started++
	s.requests = append(s.requests, Received{ID: id, Path: r.URL.Path, TokenIDs: ids, Params: params, Header: r.Header.Clone()})
	if len(s.requests) > maxRecorded {
		s.requests = slices.Delete(s.requests, 0, len(s.requests)-maxRecorded)
	}
}

// name returns the id that the request brings, or a new one.
func (s *Server) name(r *http.Request, inBody string) string {
	if id := r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	if inBody != "" {
		return inBody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unnamed++
	return fmt.Sprintf("%016x", mix(uint64(s.unnamed)))
}

// count adds to one of the counters.
func (s *Server) count(counter *int, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*counter += n
}

// acquire waits for a slot. It returns false when the client left before.
func (s *Server) acquire(ctx context.Context) bool {
	if s.slots == nil {
		return true
	}
	s.count(&s.waiting, 1)
	defer s.count(&s.waiting, -1)
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) release() {
	if s.slots != nil {
		<-s.slots
	}
}

// readBody returns the body, or the error as a sentence for the client.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if !json.Valid(body) {
		return nil, errors.New("the body is no JSON")
	}
	return body, nil
}
