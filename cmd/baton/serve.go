package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"baton/admin"
	"baton/backend"
	"baton/config"
	"baton/migration"
	"baton/preprocess"
	"baton/responsestore"
	"baton/router"
	"baton/server"
	"baton/thinking"
	"baton/tracing"
)

// runServe is `baton serve`.
func runServe(args []string, stdout, stderr io.Writer) error {
	cfg, err := config.LoadServe(args, os.LookupEnv)
	switch {
	case errors.Is(err, config.ErrHelp):
		return serveHelp(stdout)
	case err != nil:
		return err
	case cfg.DumpConfig:
		return cfg.Dump(stdout)
	}
	// net/http tells Go's standard logger what a worker sends beyond its answer, word
	// for word: prompts and answers are not logged.
	stdlog.SetOutput(io.Discard)
	ctx, stop := interruptible(context.Background())
	defer stop()
	level := logLevel(cfg)
	return serve(ctx, cfg, newLogger(stderr, cfg, level), level)
}

// serve wires the pipeline and answers until stop ends and the last request is
// done. level is that of log.
func serve(stop context.Context, cfg *config.Serve, log *slog.Logger, level *slog.LevelVar) error {
	access, err := loadSecurity(cfg, log)
	if err != nil {
		return err
	}
	listener, err := listen(cfg)
	if err != nil {
		return err
	}
	defer listener.Close()
	adminListener, err := listenAdmin(cfg, log)
	if err != nil {
		return err
	}
	if adminListener != nil {
		defer adminListener.Close()
	}
	limitMemory(log)
	tracer, err := tracing.New(stop, version, log)
	if err != nil {
		return err
	}
	defer endTraces(tracer, log)
	models, err := newModels(cfg, log)
	if err != nil {
		return err
	}
	source, err := workerSource(cfg, log)
	if err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	found := newAttacher(cfg, models, log)
	found.workerKey = access.workerKey
	workers := router.New(specs(cfg), found.attach, routerConfig(cfg, found), log, reg, cfg.MetricsPrefix, rand.IntN)
	tokens := migration.New(workers, migration.Config{Limit: cfg.MigrationLimit, MaxSeqLen: cfg.MigrationMaxSeqLen}, log, reg, cfg.MetricsPrefix)
	text := backend.New(thinking.New(tokens))
	prepare := preprocess.New(models, preprocess.Options{ContextLength: workers.ContextLength, Served: served(workers)}, log)
	api := server.New(prepare, text, workers, serverConfig(cfg, access, tracer), log, reg, reg)

	// The series of a model exist, at 0, from the moment that it is known.
	found.onModel = func(name string) {
		tokens.AddModel(name)
		api.AddModel(name)
	}
	for _, name := range models.Names() {
		found.onModel(name)
	}
	logStart(cfg, shownAddress(cfg, listener.Addr()), log)
	logSecurity(cfg, log)
	sayAdmin(cfg, adminListener, log)
	operators := admin.New(hintingRouter{workers, found.groups}, api, level, adminHost(cfg), log)
	background := withAdmin(found.checkingStart(together(workers.Run, models.Run, following(source, workers))), operators, adminListener, log)
	return serveUntilStopped(stop, access.behind(patient(listener, log)), api.Handler(), api, background, cfg, log)
}

// served returns what gives the public names of the models that have workers.
func served(workers *router.Router) func() []string {
	return func() []string {
		var names []string
		for _, m := range workers.Models() {
			names = append(names, m.Name)
		}
		return names
	}
}

// shownAddress is the address as it was asked for, with the port that it got. The
// listener's own is [::] for 0.0.0.0 on machines with IPv6.
func shownAddress(cfg *config.Serve, got net.Addr) string {
	_, port, err := net.SplitHostPort(got.String())
	if err != nil {
		return got.String()
	}
	return net.JoinHostPort(cfg.HTTPHost, port)
}

// logStart is the start of the log.
func logStart(cfg *config.Serve, address string, log *slog.Logger) {
	log.Info("baton serves", "address", address, "version", version, "workers", len(cfg.Workers), "discovery", cfg.Discovery, "router_mode", cfg.RouterMode)
	log.Info("time bounds", "connect", bound(cfg.ConnectTimeout), "first_token", bound(cfg.FirstTokenTimeout),
		"stall", bound(cfg.StallTimeout), "request", bound(cfg.RequestTimeout), "worker_wait", bound(cfg.WorkerWaitTimeout))
	if cfg.MigrationLimit == 0 {
		log.Info("migration is off: an answer is lost with its worker; --migration-limit 3 turns it on")
		return
	}
	attrs := []any{"limit", cfg.MigrationLimit}
	if cfg.MigrationMaxSeqLen > 0 {
		attrs = append(attrs, "max_seq_len", cfg.MigrationMaxSeqLen)
	}
	log.Info("migration is on", attrs...)
	if len(cfg.Workers) == 1 && cfg.Discovery == config.DiscoverStatic {
		log.Warn("there is one worker only, so no answer can move to another; add one with --worker")
	}
}

func bound(d time.Duration) string {
	if d == 0 {
		return "off"
	}
	return d.String()
}

func byName(list []config.Named) map[string]string {
	values := make(map[string]string)
	for _, n := range list {
		values[n.Name] = n.Value
	}
	return values
}

func specs(cfg *config.Serve) []router.Spec {
	var specs []router.Spec
	for _, w := range cfg.Workers {
		specs = append(specs, router.Spec{ID: w.ID, URL: w.URL, Kind: w.Kind})
	}
	return specs
}

func routerConfig(cfg *config.Serve, found *attacher) router.Config {
	return router.Config{
		Policy:            policy(cfg.RouterMode),
		ConnectTimeout:    cfg.ConnectTimeout,
		FirstTokenTimeout: cfg.FirstTokenTimeout,
		StallTimeout:      cfg.StallTimeout,
		WorkerWaitTimeout: cfg.WorkerWaitTimeout,
		InhibitDuration:   cfg.InhibitDuration,
		HealthInterval:    cfg.HealthInterval,
		DrainTimeout:      cfg.DrainTimeout,
		MoveSpacing:       cfg.MigrationSpacing,
		Forget:            found.forget,
	}
}

func policy(mode string) router.Policy {
	switch mode {
	case config.RoundRobin:
		return router.RoundRobin
	case config.Random:
		return router.Random(rand.IntN)
	case config.PowerOfTwo:
		return router.PowerOfTwo(rand.IntN)
	case config.LeastLoaded:
		return router.LeastLoaded
	}
	panic(fmt.Sprintf("router mode %q", mode)) // config lets no other through
}

// responseStore returns where responses are kept; nil = nowhere.
func responseStore(cfg *config.Serve) *responsestore.Store {
	if cfg.ResponseStoreBytes == 0 {
		return nil
	}
	return responsestore.New(cfg.ResponseStoreBytes)
}

func serverConfig(cfg *config.Serve, access *security, tracer *tracing.Tracer) server.Config {
	return server.Config{
		SSEKeepAliveInterval:  cfg.KeepAliveInterval,
		WriteTimeout:          cfg.WriteTimeout,
		RequestTimeout:        cfg.RequestTimeout,
		MaxBodyBytes:          cfg.MaxBodyBytes,
		ResponseStore:         responseStore(cfg),
		MaxConcurrentRequests: cfg.MaxConcurrentRequests,
		OverloadStatus:        cfg.OverloadStatus,
		MetricsNamespace:      cfg.MetricsPrefix,
		Version:               version,
		AccessLog:             cfg.AccessLog,
		Tracer:                tracer,
		KnowsKey:              access.knowsKey,
		CORSOrigins:           origins(cfg),
		ReasoningField:        cfg.ReasoningField,
	}
}
