package failures

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/llamacpp"
	"baton/engine/sim"
	"baton/engine/transport"
	"baton/engine/vllm"
	"baton/migration"
	"baton/preprocess"
	"baton/router"
	"baton/server"
)

// The addresses in memory. The victim is asked first, always.
const (
	frontAddress = "front:80"
	victim       = "victim:80"
	survivor     = "survivor:80"
	another      = "another:80" // a second survivor, or a second victim
)

// The bounds of time are the defaults of `baton serve`: virtual time costs nothing.
const (
	connectTimeout    = 3 * time.Second
	firstTokenTimeout = 5 * time.Minute
	stallTimeout      = 30 * time.Second
	workerWaitTimeout = 10 * time.Second
	inhibitDuration   = 5 * time.Second
	healthInterval    = 2 * time.Second
	keepAliveInterval = 15 * time.Second
)

// The answer that every request asks for, and its pace.
const (
	answerTokens = 40
	prefill      = 50 * time.Millisecond
	tokenGap     = 20 * time.Millisecond
	struckAfter  = 10 // tokens, for a failure in the middle
)

// A setting is what a failure meets.
type setting struct {
	limit int
	alone bool // the victim is the only worker
}

// A stage is one frontend with its workers, in memory and in virtual time: the
// real server, pipeline, router and engine clients, and simulated workers that
// speak the engines' protocols.
type stage struct {
	t       *testing.T
	engine  string
	setting setting
	unary   bool // the request asks for one JSON object
	network *enginetest.Network
	router  *router.Router
	fleet   map[string]*sim.Server
	metrics *prometheus.Registry
	log     *recorder

	mu    sync.Mutex // guards dials
	dials map[string]dialer

	hostile    *http.Server // of a worker that keeps no protocol
	background sync.WaitGroup
	drainAfter time.Duration
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// perform runs one request on the stage, which is new, while its victim fails.
func perform(t *testing.T, s *stage, f *failure, p phase) (o observation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.t, s.network, s.log = t, &enginetest.Network{}, &recorder{}
		s.fleet, s.dials = map[string]*sim.Server{}, map[string]dialer{}
		s.metrics = prometheus.NewRegistry()
		s.drainAfter = f.drainAfter
		var specs []router.Spec
		for _, id := range s.addresses(f) {
			cfg := sim.Config{
				ID: id, Kind: s.engine, Style: sim.StyleWhole, MeanLength: -1, Prefill: prefill, Gap: tokenGap,
				Faults: f.faults(id, p),
			}
			if f.hostile != nil && id == victim {
				cfg.Prefill, cfg.Gap = 0, 0 // its answer is only the stuff of another one
			}
			w := sim.NewServer(cfg)
			s.fleet[id] = w
			s.serve(id, f)
			specs = append(specs, router.Spec{ID: id, URL: "http://" + id})
		}
		if f.setup != nil {
			f.setup(s)
		}
		links := &links{s: s, made: map[string]*transport.Link{}}
		log := slog.New(s.log)
		s.router = router.New(specs, links.attach, router.Config{
			Policy: victimFirst, ConnectTimeout: connectTimeout, FirstTokenTimeout: firstTokenTimeout, StallTimeout: stallTimeout,
			WorkerWaitTimeout: workerWaitTimeout, InhibitDuration: inhibitDuration, HealthInterval: healthInterval,
			DrainTimeout: s.drainAfter, Dial: s.dial,
		}, log, s.metrics, namespace, func(n int) int { return n / 2 })
		s.background.Go(func() {
			if err := s.router.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		s.log.reset()

		texts := backend.New(migration.New(s.router, migration.Config{Limit: s.setting.limit}, log, s.metrics, namespace))
		pre := preprocess.New(models, preprocess.Options{ContextLength: s.router.ContextLength}, log)
		api := server.New(pre, texts, s.router, server.Config{SSEKeepAliveInterval: keepAliveInterval, WriteTimeout: time.Minute, MetricsNamespace: namespace}, log, s.metrics, s.metrics)
		front := &http.Server{Handler: api.Handler()}
		l := api.Listen(s.network.Listen(frontAddress), front)
		s.background.Go(func() { front.Serve(l) })

		if f.act != nil && p == beforeConnecting {
			f.act(s)
			synctest.Wait()
		}
		var restarts sync.WaitGroup
		if f.backAfter > 0 {
			restarts.Go(func() {
				select {
				case <-time.After(f.backAfter):
					s.restart(f)
				case <-ctx.Done():
				}
			})
		}
		o = s.ask(f, p)
		synctest.Wait()
		o.counted, o.logged = s.counted(), s.log.story()
		if f.after != nil {
			f.after(s)
		}

		front.Close()
		cancel()
		if s.hostile != nil {
			s.hostile.Close()
		}
		restarts.Wait()
		for id, w := range s.fleet {
			w.Kill()
			if err := w.Settle(context.Background()); err != nil {
				t.Error(err)
			}
			if n := w.Stats().Running; n != 0 {
				t.Errorf("%s still runs %d requests", id, n)
			}
		}
		s.checkAsked()
		links.close()
		s.background.Wait()
		time.Sleep(connectTimeout) // net/http finishes dialing for a later request
	})
	return o
}

func (s *stage) addresses(f *failure) []string {
	if s.setting.alone {
		return []string{victim}
	}
	if f.victims > 1 {
		return []string{victim, another, survivor}
	}
	return []string{victim, survivor}
}

// serve lets the worker at an address accept connections.
func (s *stage) serve(id string, f *failure) {
	l := s.network.Listen(id)
	w := s.fleet[id]
	if id != victim || f.hostile == nil {
		s.background.Go(func() { w.Serve(l) })
		return
	}
	h := &http.Server{Handler: f.hostile.handler(s, w)}
	s.background.Go(func() { h.Serve(l) })
	s.hostile = h
}

// restart lets a process listen again where the victim did.
func (s *stage) restart(f *failure) {
	if f.backAs == "" {
		s.fleet[victim].Revive()
		s.serve(victim, f)
		return
	}
	w := sim.NewServer(sim.Config{ID: victim, Kind: s.engine, Model: f.backAs, Style: sim.StyleWhole, MeanLength: -1})
	s.fleet[victim+" as "+f.backAs] = w
	l := s.network.Listen(victim)
	s.background.Go(func() { w.Serve(l) })
}

// dial connects in memory, unless something is wrong with the way to an address.
func (s *stage) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	broken := s.dials[address]
	s.mu.Unlock()
	if broken != nil {
		return broken(ctx, network, address)
	}
	return s.network.DialContext(ctx, network, address)
}

// breakWay makes every new connection to an address go through d.
func (s *stage) breakWay(address string, d dialer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials[address] = d
}

// victimFirst takes the first of the candidates, which are in the order of their
// specs, so that it is known whom a failure meets.
func victimFirst(*engine.Request, []router.Candidate) int { return 0 }

// links makes the engine clients.
type links struct {
	s    *stage
	mu   sync.Mutex // guards made
	made map[string]*transport.Link
}

func (l *links) attach(ctx context.Context, spec router.Spec) (*router.Worker, error) {
	l.mu.Lock()
	link := l.made[spec.ID]
	if link == nil {
		link, _ = transport.New(transport.Options{URL: spec.URL, WorkerID: spec.ID, ConnectTimeout: connectTimeout, DialContext: l.s.dial})
		l.made[spec.ID] = link
	}
	l.mu.Unlock()
	var client engine.Client = vllm.New(link)
	m, _ := models.Get(sim.DefaultModelName)
	if l.s.engine == sim.KindLlamaCPP {
		client = llamacpp.New(link, llamacpp.Options{Piece: m.Tokenizer.Bytes, Size: m.Tokenizer.Size()})
	}
	info, err := client.Probe(ctx)
	if err != nil {
		return nil, err
	}
	own := info.Models[0]
	return &router.Worker{Client: client, Info: info, Models: []router.Model{{Name: own.ID, Own: own.ID, ContextLength: own.ContextLength}}}, nil
}

func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, link := range l.made {
		link.Close()
	}
}
