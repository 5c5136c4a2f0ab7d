package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	readTimeout    = 10 * time.Second // of a request's header, and of its body
	writeTimeout   = 30 * time.Second // of a reply; profiles add their own time
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
)

// Serve answers on l until ctx ends. It closes l.
func (a *Admin) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler:           a.Handler(),
		ReadHeaderTimeout: readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the admin address: %w", err)
	}
	return nil
}

// timely bounds the reading of bodies. It is no setting of http.Server, because
// its end would cut off a profile, whose request has long been read.
func timely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout)) // not every writer has deadlines
		}
		next.ServeHTTP(w, r)
	})
}
