package config

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// Serve is the configuration of `baton serve`. A duration of 0 is off.
type Serve struct {
	Workers     []Worker
	ModelPaths  []Named // where the files of a model lie; Name "" = of every other model
	ServedNames []Named // Name is the worker's own name ("" = every other), Value the public one

	ToolCallParsers  []Named // how a model writes tool calls: auto, none or a format; Name "" = every other model
	ReasoningParsers []Named // and its reasoning

	Discovery         string // one of Discover…
	DiscoveryFiles    []FileName
	DiscoveryNames    []DiscoveryName
	DiscoveryInterval time.Duration

	HTTPHost string
	HTTPPort int // 0 = a free one

	AdminAddress string // host:port; "" = off

	MigrationLimit     int
	MigrationMaxSeqLen int // in tokens; 0 = no bound
	MigrationSpacing   time.Duration

	ConnectTimeout    time.Duration
	FirstTokenTimeout time.Duration
	StallTimeout      time.Duration
	RequestTimeout    time.Duration
	WorkerWaitTimeout time.Duration
	InhibitDuration   time.Duration
	HealthInterval    time.Duration
	DrainTimeout      time.Duration
	RouterMode        string // one of the RouterModes

	KeepAliveInterval     time.Duration
	WriteTimeout          time.Duration
	LameDuck              time.Duration
	ShutdownTimeout       time.Duration
	MaxBodyBytes          int64
	ResponseStoreBytes    int64
	MaxConcurrentRequests int
	OverloadStatus        int // 0 = what the workers said
	ReasoningField        string

	TLSCertPath      string // "" = no TLS
	TLSKeyPath       string
	TLSClientCAPath  string   // "" = clients need no certificate
	APIKeyFile       string   // "" = clients need no key
	WorkerAPIKeyFile string   // "" = workers get none
	CORSOrigins      []Origin // whose pages browsers let use the API

	MetricsPrefix string
	LogLevel      string // debug, info, warn or error
	LogFormat     string // text or json
	AccessLog     bool   // one record per request

	File       string // the configuration file; "" = none
	DumpConfig bool   // print the configuration instead of serving

	settings []*setting
}

// The values of ReasoningField.
const (
	ReasoningContent = "reasoning_content"
	Reasoning        = "reasoning"
)

// The values of RouterMode.
const (
	LeastLoaded = "least-loaded"
	RoundRobin  = "round-robin"
	PowerOfTwo  = "power-of-two"
	Random      = "random"
)

// LoadServe reads the command line (without the program's and the subcommand's
// name), the environment and the configuration file. Its error is ErrHelp, a
// *UsageError, or what reading the file gave.
func LoadServe(args []string, lookupEnv func(string) (string, bool)) (*Serve, error) {
	c := newServe()
	err := load(c.settings, args, lookupEnv, func() ([]byte, error) {
		if c.File == "" {
			return nil, nil
		}
		return readFile(c.File)
	})
	if err != nil {
		return nil, err
	}
	if err := c.checkDiscovery(); err != nil && !c.DumpConfig {
		return nil, err
	}
	if err := c.checkTLS(); err != nil && !c.DumpConfig {
		return nil, err
	}
	return c, nil
}

// checkTLS returns the *UsageError of TLS files that need others.
func (c *Serve) checkTLS() error {
	certificate, key := c.TLSCertPath != "", c.TLSKeyPath != ""
	switch {
	case !certificate && !key && c.TLSClientCAPath != "":
		return usage("--tls-client-ca-cert-path needs --tls-cert-path and --tls-key-path: clients show their certificates over TLS only")
	case key && !certificate:
		return usage("--tls-key-path needs --tls-cert-path, the certificate of that key")
	case certificate && !key:
		return usage("--tls-cert-path needs --tls-key-path, the private key of that certificate")
	}
	return nil
}

// newServe declares the settings and puts the defaults in force.
func newServe() *Serve {
	c := &Serve{}
	c.settings = slices.Concat([]*setting{
		section("Workers and models"),
		list(&c.Workers, parseWorker, "worker", "[KIND=]URL",
			"a worker's address; KIND, which is "+orList(kinds)+", is needed only for a worker that does not say what it is",
			"[KIND=]http://host:port or [KIND=]https://host:port, where KIND is "+orList(kinds)+"; without a port it is 80 or 443"),
	}, c.discoverySettings(), []*setting{
		list(&c.ModelPaths, parseModelPath, "model-path", "[NAME=]PATH",
			"the folder, .gguf file or hub id (ORG/NAME, ORG/NAME@REVISION, ORG/NAME:Q4_K_M) with the tokenizer and the chat template of the model with public name NAME; without NAME, of every model that has no path of its own",
			"[NAME=]PATH"),
		list(&c.ServedNames, parseServedName, "served-model-name", "[WORKERNAME=]NAME",
			"the public name of the model that workers call WORKERNAME; without WORKERNAME, of every model that has none; workers with different names become one model by the same NAME, for which their tokenizers must be equal, else the start fails",
			"[WORKERNAME=]NAME"),
		list(&c.ToolCallParsers, parseParser, "tool-call-parser", "[NAME=]PARSER",
			"how the model with public name NAME writes tool calls: auto (the default) = as its chat template teaches it, none = calls stay in the text, or a name of docs/parsers.md",
			"[NAME=]PARSER, where PARSER is auto, none or a parser's name"),
		list(&c.ReasoningParsers, parseParser, "reasoning-parser", "[NAME=]PARSER",
			"how the model with public name NAME writes its reasoning: auto (the default), none = it stays in the text, or a name of docs/parsers.md",
			"[NAME=]PARSER, where PARSER is auto, none or a parser's name"),

		section("Migration"),
		integer(&c.MigrationLimit, 0, 0, maxMigrationLimit, "migration-limit",
			"how often one request may move to another worker after a failure; 0 = never"),
		optional(integer(&c.MigrationMaxSeqLen, 0, 1, maxTokens, "migration-max-seq-len",
			"a request whose prompt and output together exceed so many tokens is no longer moved")),
		duration(&c.MigrationSpacing, 5*time.Millisecond, "migration-spacing",
			"time between two starts of moved requests on one worker, so that it is not hit by all at once; a lone one starts at once, and none waits longer than 2s; 0 = all start at once"),

		section("Routing and time"),
		choice(&c.RouterMode, LeastLoaded, []string{LeastLoaded, RoundRobin, PowerOfTwo, Random}, "router-mode",
			"how a worker is chosen among those that can serve a request", refusedRouterModes),
		duration(&c.ConnectTimeout, 3*time.Second, "connect-timeout",
			"how long connecting to a worker may take"),
		duration(&c.FirstTokenTimeout, 5*time.Minute, "first-token-timeout",
			"how long a worker may take until its first token").or("DYN_HTTP_BACKEND_TTFT_STREAM_TIMEOUT_SECS", seconds),
		duration(&c.StallTimeout, 30*time.Second, "stall-timeout",
			"how long a worker may be silent between tokens").or("DYN_HTTP_BACKEND_STREAM_TIMEOUT_SECS", seconds),
		duration(&c.RequestTimeout, 0, "request-timeout",
			"how long a request may take, all attempts together; the header X-Request-Timeout can lower it"),
		duration(&c.WorkerWaitTimeout, 10*time.Second, "worker-wait-timeout",
			"how long a request waits while no worker is available; 0 = it does not wait"),
		duration(&c.InhibitDuration, 5*time.Second, "inhibit-duration",
			"how long a failed worker is kept out, doubled per repeated failure up to one minute and ended early by a good probe").or("DYN_RUNTIME_INHIBITED_DURATION_SECS", seconds),
		duration(&c.HealthInterval, 2*time.Second, "health-interval",
			"time between two probes of a worker; 0 = workers are judged by their answers only"),
		duration(&c.DrainTimeout, 20*time.Second, "drain-timeout",
			"how long requests on a drained worker may run on there before they move to others, one by one; 0 = they move at once"),

		section("HTTP"),
		text(&c.HTTPHost, "0.0.0.0", parseHost, "http-host", "HOST", "the address to listen on", "a host name or an IP address"),
		integer(&c.HTTPPort, 8000, 0, 65535, "http-port", "the port of the API and of /metrics; 0 = a free one"),
		address(&c.AdminAddress, defaultAdminAddress, "admin-address",
			"where operators drain workers and look at requests, the log level and profiles, without a password; empty or off = nowhere"),
		duration(&c.KeepAliveInterval, 15*time.Second, "sse-keep-alive-interval",
			"a comment line is sent after so much silence in a stream").or("DYN_HTTP_SSE_KEEP_ALIVE_INTERVAL_MS", milliseconds),
		duration(&c.WriteTimeout, time.Minute, "write-timeout",
			"a client that takes no byte for so long is gone"),
		size(&c.MaxBodyBytes, 192<<20, 1, "max-body-bytes",
			"a longer request body is refused with 413").or("DYN_HTTP_BODY_LIMIT_MB", mebibytes),
		size(&c.ResponseStoreBytes, 64<<20, 0, "response-store-bytes",
			"memory for responses of /v1/responses, so that later requests can refer to them; those not used for longest go first; 0 = none is kept"),
		integer(&c.MaxConcurrentRequests, 0, 0, maxConcurrency, "max-concurrent-requests",
			"further requests are refused with 429; 0 = off"),
		optional(integer(&c.OverloadStatus, 0, 400, 599, "http-overload-status-code",
			"the HTTP status when every worker is overloaded; unset = 429 if every worker said so, else 503")),
		duration(&c.LameDuck, 5*time.Second, "lame-duck",
			"after SIGTERM, or Ctrl-C while a request runs, /health says 503 at once but requests are still served for so long, because load balancers need a moment; a second signal ends the process at once"),
		duration(&c.ShutdownTimeout, 30*time.Second, "shutdown-timeout",
			"then new requests get 503 and running ones have so long to finish; 0 = they are ended at once").or("DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", seconds),

		choice(&c.ReasoningField, ReasoningContent, []string{ReasoningContent, Reasoning}, "reasoning-field",
			"the field of chat messages and deltas that holds reasoning", nil),

		section("Security"),
		file(&c.TLSCertPath, "tls-cert-path",
			"the certificate of the API's port, with its chain, as PEM; it makes the port speak TLS; read again on change"),
		file(&c.TLSKeyPath, "tls-key-path",
			"the private key of that certificate, as PEM; read again on change"),
		file(&c.TLSClientCAPath, "tls-client-ca-cert-path",
			"clients must show a certificate that one of the authorities in this PEM file has signed, on every route; read again on change"),
		file(&c.APIKeyFile, "api-key-file",
			"clients must present one of the keys in this file as Bearer, except at /health, /live, /metrics and /version; one a line, # begins a comment; read again on change"),
		file(&c.WorkerAPIKeyFile, "worker-api-key-file",
			"workers get the key in this file as Bearer; read again on change"),
		list(&c.CORSOrigins, parseOrigin, "cors-origin", "ORIGIN",
			"browsers let pages of this origin use the API; * = pages of every origin",
			"* or an origin as browsers name it, scheme://host or scheme://host:port"),

		section("Observation"),
		text(&c.MetricsPrefix, "dynamo_frontend", parseMetricsPrefix, "metrics-prefix", "PREFIX",
			"the first part of the metrics' names", "letters, digits and _, not beginning with a digit"),
		choice(&c.LogLevel, "info", []string{"debug", "info", "warn", "error"}, "log-level", "what is logged", nil),
		choice(&c.LogFormat, "text", []string{"text", "json"}, "log-format", "how it is logged", nil),
		boolean(&c.AccessLog, "access-log",
			"one record (info) for each request of the generation API: ids, model, status, tokens, attempts and times, nothing of prompts or answers"),

		section("Configuration"),
		commandOnly(text(&c.File, "", parseFileName, "config", "FILE",
			"a YAML file with the same names as keys", "the path of a file")).alsoEnv(),
		commandOnly(boolean(&c.DumpConfig, "dump-config",
			"print what is in force and where each value comes from, then exit")),
	})
	return c
}

const (
	maxMigrationLimit = 1_000_000
	maxTokens         = 1 << 31
	maxConcurrency    = 1 << 20
	maxFileBytes      = 1 << 20
)

// file declares the path of a file.
func file(p *string, name, meaning string) *setting {
	return text(p, "", parseFileName, name, "FILE", meaning, "the path of a file")
}

// refusedRouterModes are those of Dynamo that baton does not have.
var refusedRouterModes = map[string]string{
	"kv":                    "kv routing needs an index of the workers' caches, which baton does not keep",
	"direct":                "direct routing leaves the choice of the worker to the client, which baton does not do",
	"device-aware-weighted": "baton does not know the workers' devices",
}

// Address is where the API listens, as host:port.
func (c *Serve) Address() string { return joinHostPort(c.HTTPHost, c.HTTPPort) }

// AdminAddressIsDefault reports whether nobody has set AdminAddress.
func (c *Serve) AdminAddressIsDefault() bool { return isDefault(c.settings, "admin-address") }

// readFile reads a configuration file, of which it takes maxFileBytes at most.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	return readAtMost(f, path, maxFileBytes)
}
