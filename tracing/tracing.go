package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// serviceName is what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override.
const serviceName = "baton"

// A Tracer sends spans in batches. Its methods may be called from any goroutine.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer as the environment asks for, or nil if it asks for none:
// a *Tracer that is nil records nothing. The SDK below it begins to work in the
// background, which Shutdown ends.
//
// The SDK has one place for the whole process to complain at; it becomes log.
func New(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	endpoint, on := wanted(os.Getenv, log)
	if !on {
		return nil, nil
	}
	to, err := readDestination(os.Getenv, log)
	if errors.Is(err, errNoEndpoint) {
		log.Warn("traces are off", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", shown(endpoint), err)
	}
	complain := &complaints{log: log}
	otel.SetErrorHandler(complain)
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	// A variable that cannot be read costs its attributes, not the traces.
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", serviceName), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		complain.Handle(err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(newExporter(to, version)), sdk.WithResource(res))
	log.Info("traces are on", "endpoint", shown(endpoint))
	return &Tracer{provider: provider, tracer: provider.Tracer("baton", trace.WithInstrumentationVersion(version))}, nil
}

// Shutdown sends what is left and ends the work in the background.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// complaintSpacing is the least time between two records about a collector that
// does not take the spans.
const complaintSpacing = time.Minute

// complaints takes the errors of the SDK. Traces that are lost harm nobody's
// answer, and a collector that is away fails every few seconds.
type complaints struct {
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	last   time.Time
	unsaid int
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	what := "traces are lost"
	var remark *partialSuccess
	if errors.As(err, &remark) && remark.rejected == 0 {
		what = "traces were taken with a remark"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complaintSpacing {
		c.log.Warn(what, "err", err, "failures_since_last_record", c.unsaid)
		c.last, c.unsaid = now, 0
		return
	}
	c.unsaid++
}
