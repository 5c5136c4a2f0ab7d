package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"baton/config"
)

// Bounds of the HTTP server that no flag changes. There is no bound on writing a
// response: streams run for as long as their answers do, and the server package
// watches over clients that do not read.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// closeTimeout is how long connections have to close once nothing runs.
	closeTimeout = 2 * time.Second
)

// A stopper is what the end of the process needs of the API server.
type stopper interface {
	// Listen returns what the http.Server is to serve in place of the port.
	Listen(net.Listener, *http.Server) net.Listener
	Running() int                  // requests that are being answered
	BeginShutdown()                // /health says 503
	Drain(ctx context.Context) int // new requests get 503; waits, then ends what runs
}

// listen opens the API's port. Its error is a sentence that names the flags.
func listen(cfg *config.Serve) (net.Listener, error) {
	l, err := net.Listen("tcp", cfg.Address())
	if err == nil {
		return l, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process; choose another port with --http-port", cfg.Address())
	}
	return nil, fmt.Errorf("cannot listen on %s: %w; see --http-host and --http-port", cfg.Address(), reason(err))
}

// reason is what is left of a network error for a sentence that has already said
// what was tried.
func reason(err error) error {
	why := err
	if op, ok := errors.AsType[*net.OpError](err); ok {
		why = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](why); ok {
		why = sys.Err
	}
	return why
}

// serveUntilStopped answers on l and runs background until stop ends; then it
// goes through the steps of a stop. It returns when nothing runs any more.
func serveUntilStopped(stop context.Context, l net.Listener, handler http.Handler, api stopper, background func(context.Context) error, cfg *config.Serve, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// The write deadline of a stream cannot end what waits for its connection.
		HTTP2:    &http.HTTP2Config{WriteByteTimeout: cfg.WriteTimeout},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients' TLS and HTTP mistakes
	}
	l = api.Listen(l, server)
	// The background outlives the signal: requests are served, and moved, until
	// the last of them has ended.
	running, cancel := context.WithCancel(context.WithoutCancel(stop))
	defer cancel()
	group, ctx := errgroup.WithContext(running)
	group.Go(func() error {
		if err := background(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the API: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		defer cancel()
		select {
		case <-stop.Done():
			stopInSteps(ctx, context.Cause(stop), api, cfg, log)
		case <-ctx.Done():
		}
		return closeServer(server)
	})
	return group.Wait()
}

// stopInSteps lets load balancers look elsewhere while requests are still
// served, then refuses new ones and waits for those that run. Whoever presses
// Ctrl-C while nothing runs has no load balancer and does not wait.
func stopInSteps(ctx context.Context, why error, api stopper, cfg *config.Serve, log *slog.Logger) {
	lameDuck := cfg.LameDuck
	if why == errInterrupted && api.Running() == 0 {
		lameDuck = 0
	}
	message := "stopping; a second signal ends the process at once"
	if lameDuck > 0 {
		message = fmt.Sprintf("stopping in %v (lame duck); a second signal ends the process at once", lameDuck)
	}
	log.Info(message, "shutdown_timeout", cfg.ShutdownTimeout)
	api.BeginShutdown()
	wait(ctx, lameDuck)

	ctx, cancel := context.WithTimeout(ctx, cfg.ShutdownTimeout)
	defer cancel()
	if ended := api.Drain(ctx); ended > 0 {
		log.Warn("requests were ended by the stop", "requests", ended, "after", cfg.ShutdownTimeout)
	}
}

// wait sleeps for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// closeServer closes what is still open: connections that are idle, or whose
// client has not read the end of its answer.
func closeServer(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		server.Close()
	}
	return nil
}
