package main

import (
	"context"
	"log/slog"
	"time"

	"baton/tracing"
)

// tracesTimeout bounds the sending of the last spans. It is short because the end
// of the process waits for it, and a collector may be gone before us.
const tracesTimeout = 2 * time.Second

// endTraces sends the spans of the last requests.
func endTraces(t *tracing.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
	defer cancel()
	if err := t.Shutdown(ctx); err != nil {
		log.Warn("the last traces are lost", "err", err)
	}
}
