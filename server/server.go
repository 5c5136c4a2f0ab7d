package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"baton/alarm"
	"baton/backend"
	"baton/openai"
	"baton/preprocess"
	"baton/responsestore"
	"baton/router"
	"baton/tracing"
)

// A Server answers the public API. Its methods may be called from any goroutine.
type Server struct {
	preparer  Preparer
	generator Generator
	fleet     Fleet
	cfg       Config
	log       *slog.Logger
	gatherer  prometheus.Gatherer
	clock     *alarm.Clock // of the keep-alives

	metrics *metrics
	running running

	http  *http.Server // set by Listen
	conns conns
}

// A Preparer makes a checked, tokenized request of a body. It is called on the
// handler's goroutine. Either result is nil.
type Preparer interface {
	Chat(requestID string, body []byte) (*preprocess.Prepared, *openai.Error)
	Completion(requestID string, body []byte) (*preprocess.Prepared, *openai.Error)
	// The id of the response is requestID; recall may be nil.
	Responses(requestID string, body []byte, recall preprocess.Recall) (*preprocess.Prepared, *openai.Error)
}

// A Generator runs one choice. See backend.Stream for what it promises.
type Generator interface {
	Generate(ctx context.Context, req *backend.Request) backend.Stream
}

// A Fleet knows which models have workers, and which workers there are.
type Fleet interface {
	Models() []router.ModelStatus
	Workers() []router.WorkerStatus
}

// Config holds the server's settings. A duration or count of 0 is off, except
// where said.
type Config struct {
	SSEKeepAliveInterval  time.Duration
	WriteTimeout          time.Duration // of a client that takes no byte
	RequestTimeout        time.Duration // of a whole request; X-Request-Timeout can lower it
	MaxBodyBytes          int64         // 0 = defaultMaxBodyBytes
	MaxConcurrentRequests int
	OverloadStatus        int // of a final overload; 0 = 429 or 503, as the workers said
	MetricsNamespace      string
	Version               string
	AccessLog             bool            // one record per request of the generation API
	Tracer                *tracing.Tracer // nil = no traces

	// ReasoningField is the member of messages and deltas that holds reasoning;
	// "" = reasoning_content.
	ReasoningField string

	// KnowsKey reports whether a client's key is good; nil = none is needed. It is
	// called from any goroutine, and takes the same time whatever the key is.
	KnowsKey func(key string) bool

	// ResponseStore keeps responses for those who refer to them; nil = none is kept.
	ResponseStore *responsestore.Store

	// CORSOrigins are the origins whose pages browsers let use the API, in the
	// form of the Origin header; "*" = every one.
	CORSOrigins []string
}

const defaultMaxBodyBytes = 192 << 20

// New returns a Server. Its metrics are registered with reg under
// cfg.MetricsNamespace; /metrics shows what gatherer gathers.
func New(preparer Preparer, generator Generator, fleet Fleet, cfg Config, log *slog.Logger, reg prometheus.Registerer, gatherer prometheus.Gatherer) *Server {
	if cfg.MaxBodyBytes <= 0 {
		cfg.MaxBodyBytes = defaultMaxBodyBytes
	}
	if cfg.ReasoningField == "" {
		cfg.ReasoningField = "reasoning_content"
	}
	return &Server{
		preparer:  preparer,
		generator: generator,
		fleet:     fleet,
		cfg:       cfg,
		log:       log,
		gatherer:  gatherer,
		clock:     alarm.NewClock(),
		metrics:   newMetrics(cfg.MetricsNamespace, reg),
		running:   running{limit: cfg.MaxConcurrentRequests},
	}
}

// AddModel makes the series of a model exist, with value 0, before its first
// request.
func (s *Server) AddModel(name string) { s.metrics.model(name) }

// Handler returns the routes of the API.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(method, pattern string, h http.HandlerFunc) {
		mux.HandleFunc(method+" "+pattern, h)
		mux.HandleFunc(pattern, notAllowed(method))
	}
	route("POST", "/v1/chat/completions", s.generate(&chatCompletions))
	route("POST", "/v1/completions", s.generate(&completions))
	route("POST", "/v1/responses", s.generate(&responses))
	s.routeStored(mux)
	route("GET", "/v1/models", s.listModels)
	route("GET", "/v1/models/{id...}", s.showModel)
	route("GET", "/health", s.health)
	route("GET", "/live", s.live)
	route("GET", "/version", s.version)
	route("GET", "/metrics", promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{}).ServeHTTP)
	mux.HandleFunc("/", s.nothing)
	return s.withRequestID(s.recovering(limitBody(s.withCORS(s.authenticated(mux)))))
}

// nothing answers where there is nothing.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	writeError(w, &openai.Error{
		Status:  http.StatusNotFound,
		Message: nothingAt(r.URL.Path),
		Type:    openai.TypeInvalidRequest,
		Code:    "not_found",
	})
}

// nothingAt says that there is no such path, and what the client may have meant: a base
// URL without /v1 is the usual mistake, and one with /v1 twice the second.
func nothingAt(path string) string {
	there := "There is nothing at " + printable(path)
	if path == "/" || path == "/v1" || path == "/v1/" {
		return there + "; the API is at /v1/chat/completions, /v1/completions, /v1/responses and /v1/models."
	}
	meant := "/v1" + path
	if rest, ok := strings.CutPrefix(path, "/v1/v1/"); ok {
		meant = "/v1/" + rest
	}
	switch meant {
	case "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/models":
		return there + "; the base URL of this API ends in /v1, once: " + meant + "."
	}
	return there + "."
}

// notAllowed answers all methods that a route does not have; it has these. ServeMux
// serves HEAD where it serves GET.
func notAllowed(methods ...string) http.HandlerFunc {
	allow := methods
	if methods[0] == "GET" {
		allow = slices.Insert(slices.Clone(methods), 1, "HEAD")
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		writeError(w, &openai.Error{
			Status:  http.StatusMethodNotAllowed,
			Message: "The method " + printable(r.Method) + " is not allowed here; use " + strings.Join(methods, " or ") + ".",
			Type:    openai.TypeInvalidRequest,
			Code:    "method_not_allowed",
		})
	}
}
