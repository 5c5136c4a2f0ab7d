package hub

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A Config says where the hub and its cache are.
type Config struct {
	Endpoint  string        // the hub, as https://huggingface.co
	CacheDir  string        // the cache that is shared with huggingface_hub
	HeaderDir string        // where headers of .gguf files are kept; "" = none is fetched
	Token     func() string // what the hub is shown, read anew for each fetch; nil or "" = nothing
	Offline   string        // the environment variable that forbids the network; "" = none does
	Log       *slog.Logger  // nil = silent
}

const defaultEndpoint = "https://huggingface.co"

// FromEnvironment is the configuration that huggingface_hub would find with the
// same environment. getenv is os.Getenv, or a test's.
//
// Source: constants.py and utils/_auth.py of huggingface_hub 2.4.
func FromEnvironment(getenv func(string) string) Config {
	e := environment{getenv}
	home := e.path("HF_HOME", filepath.Join(e.path("XDG_CACHE_HOME", e.inHome(".cache")), "huggingface"))
	c := Config{
		Endpoint:  strings.TrimRight(e.value("HF_ENDPOINT", defaultEndpoint), "/"),
		CacheDir:  e.path("HF_HUB_CACHE", e.path("HUGGINGFACE_HUB_CACHE", filepath.Join(home, "hub"))),
		HeaderDir: filepath.Join(e.path("XDG_CACHE_HOME", e.inHome(".cache")), "baton", "gguf-headers"),
	}
	tokenPath := e.path("HF_TOKEN_PATH", filepath.Join(home, "token"))
	if !e.isTrue("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		c.Token = func() string { return e.token(tokenPath) }
	}
	for _, name := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		if getenv(name) != "" {
			if e.isTrue(name) {
				c.Offline = name
			}
			break // the second counts where the first is not set
		}
	}
	return c
}

// environment reads variables by huggingface_hub's rules.
type environment struct{ getenv func(string) string }

func (e environment) value(name, otherwise string) string {
	if v := e.getenv(name); v != "" {
		return v
	}
	return otherwise
}

// path expands ~ and variables in the value.
func (e environment) path(name, otherwise string) string {
	v := e.getenv(name)
	if v == "" {
		return otherwise
	}
	if rest, ok := strings.CutPrefix(v, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		v = e.inHome(rest)
	}
	return os.Expand(v, func(name string) string { return e.value(name, "$"+name) })
}

// inHome joins name to the home folder. Without one the path is relative, and most
// likely not there.
func (e environment) inHome(name string) string {
	home := e.getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(home, name)
}

func (e environment) isTrue(name string) bool {
	switch strings.ToUpper(e.getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// maxTokenBytes bounds a token, of which real ones take some 40 bytes.
const maxTokenBytes = 4096

// token is that of the environment, or else of the file that `hf auth login` writes.
func (e environment) token(path string) string {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if t := cleanToken(e.getenv(name)); t != "" {
			return t
		}
	}
	data, err := readSmall(path, maxTokenBytes)
	if err != nil {
		return "" // to be logged in is no duty
	}
	return cleanToken(string(data))
}

// cleanToken leaves out line ends, and everything if it could not be a header.
func cleanToken(t string) string {
	t = strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(t))
	for _, c := range []byte(t) {
		if c <= ' ' || c > '~' {
			return ""
		}
	}
	return t
}

// Local is the hub cache that the environment names, without a hub behind it.
func Local(getenv func(string) string) *Hub {
	c := FromEnvironment(getenv)
	return &Hub{offline: c.Offline, cache: cache{c.CacheDir}, headers: cache{c.HeaderDir}}
}

// New makes a hub. The error is one about Config.Endpoint.
func New(c Config) (*Hub, error) {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.User != nil || endpoint.RawQuery != "" {
		return nil, fmt.Errorf("HF_ENDPOINT is not the address of a hub: it must look like %s, without a user and without a query", defaultEndpoint)
	}
	if c.Token == nil {
		c.Token = func() string { return "" }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		offline:  c.Offline,
		log:      c.Log,
		endpoint: endpoint,
		token:    c.Token,
		cache:    cache{c.CacheDir},
		headers:  cache{c.HeaderDir},
		client:   newHTTPClient(),

		maxFileBytes: MaxFileBytes,
	}, nil
}
