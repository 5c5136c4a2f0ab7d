package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"golang.org/x/sync/errgroup"

	"baton/admin"
	"baton/config"
	"baton/router"
)

// A hintingRouter is the router with what was found out about its workers, as operators see
// both.
type hintingRouter struct {
	*router.Router
	groups *groups
}

// Hints implements admin.Workers.
func (r hintingRouter) Hints() []admin.Hint { return r.groups.hints() }

// listenAdmin opens the admin address; nil = there is none. That the default one
// is taken, probably by another baton on this machine, is no reason not to serve:
// nobody asked for it.
func listenAdmin(cfg *config.Serve, log *slog.Logger) (net.Listener, error) {
	if cfg.AdminAddress == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", cfg.AdminAddress)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE) && cfg.AdminAddressIsDefault():
		log.Warn("there is no admin address: the default one is in use by another process; choose another with --admin-address", "at", cfg.AdminAddress)
		return nil, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process; choose another address with --admin-address, or turn it off with --admin-address off", cfg.AdminAddress)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w; see --admin-address", cfg.AdminAddress, reason(err))
}

// sayAdmin is the part of the log's start about the admin address.
func sayAdmin(cfg *config.Serve, l net.Listener, log *slog.Logger) {
	if l == nil {
		return
	}
	log.Info("operators are answered", "at", l.Addr().String())
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		log.Warn("the admin address can be reached from other machines and asks for no password: whoever connects may drain workers", "at", cfg.AdminAddress)
	}
}

// withAdmin is background and, beside it, the answering of operators on l. An
// end of that is no reason to stop serving.
func withAdmin(background func(context.Context) error, a *admin.Admin, l net.Listener, log *slog.Logger) func(context.Context) error {
	if l == nil {
		return background
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return background(ctx) })
		group.Go(func() error {
			if err := a.Serve(ctx, l); err != nil {
				log.Error("operators are no longer answered", "err", err)
			}
			return nil
		})
		return group.Wait()
	}
}

// adminHost is the name by which operators reach the admin address, if it has one.
func adminHost(cfg *config.Serve) string {
	host, _, err := net.SplitHostPort(cfg.AdminAddress)
	if err != nil {
		return ""
	}
	return host
}
