package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// env makes a lookup function of a map.
func env(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

const aWorker = "--worker=http://a:1"

func TestDefaults(t *testing.T) {
	c, err := LoadServe([]string{aWorker}, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	c.settings = nil
	want := &Serve{
		Workers:   []Worker{{ID: "a:1", URL: "http://a:1"}},
		Discovery: DiscoverStatic, DiscoveryInterval: 5 * time.Second,
		HTTPHost: "0.0.0.0", HTTPPort: 8000, AdminAddress: "127.0.0.1:8001",
		MigrationSpacing: 5 * time.Millisecond, DrainTimeout: 20 * time.Second,
		ConnectTimeout: 3 * time.Second, FirstTokenTimeout: 5 * time.Minute, StallTimeout: 30 * time.Second,
		WorkerWaitTimeout: 10 * time.Second, InhibitDuration: 5 * time.Second, HealthInterval: 2 * time.Second,
		RouterMode: LeastLoaded, KeepAliveInterval: 15 * time.Second, WriteTimeout: time.Minute,
		LameDuck: 5 * time.Second, ShutdownTimeout: 30 * time.Second, MaxBodyBytes: 192 << 20, ResponseStoreBytes: 64 << 20,
		ReasoningField: ReasoningContent, MetricsPrefix: "dynamo_frontend", LogLevel: "info", LogFormat: "text",
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestStrongestSourceWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baton.yaml")
	body := "migration-limit: 1\nstall-timeout: 1s\nrequest-timeout: 4s\nworker: [http://file:1, 'http://file:2']\n"
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{
		"DYN_CONFIG":                           file,
		"DYN_MIGRATION_LIMIT":                  "2",
		"DYN_STALL_TIMEOUT":                    "2s",
		"DYN_HTTP_BACKEND_STREAM_TIMEOUT_SECS": "99",
		"DYN_WORKER":                           "http://env:1, http://env:2,",
		"DYN_ROUTER_MODE":                      "", // counts as not set
	}
	c, err := LoadServe([]string{"--migration-limit", "3", "-http-port=9"}, env(vars))
	if err != nil {
		t.Fatal(err)
	}
	if c.MigrationLimit != 3 || c.StallTimeout != 2*time.Second || c.RequestTimeout != 4*time.Second || c.HTTPPort != 9 || c.RouterMode != LeastLoaded {
		t.Errorf("got %+v", c)
	}
	if len(c.Workers) != 2 || c.Workers[1].URL != "http://env:2" {
		t.Errorf("workers %v", c.Workers)
	}
	var b bytes.Buffer
	if err := c.Dump(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"migration-limit: 3                       # flag\n",
		"stall-timeout: 2s                        # environment DYN_STALL_TIMEOUT\n",
		"request-timeout: 4s                      # file " + file + "\n",
		"worker:                                  # environment DYN_WORKER\n  - http://env:1\n",
		"max-body-bytes: 192MiB                   # default\n",
		"# migration-max-seq-len:                 # not set\n",
		"# --config " + file + " (environment DYN_CONFIG)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("dump lacks %q:\n%s", want, b.String())
		}
	}

	// A dump is a configuration file that says the same.
	again := filepath.Join(t.TempDir(), "dump.yaml")
	if err := os.WriteFile(again, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := LoadServe([]string{"--config", again}, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	c.settings, d.settings, c.File, d.File = nil, nil, "", ""
	if !reflect.DeepEqual(c, d) {
		t.Errorf("read back %+v\nwant      %+v", d, c)
	}
}

func TestReferenceVariables(t *testing.T) {
	c, err := LoadServe([]string{aWorker}, env(map[string]string{
		"DYN_HTTP_BODY_LIMIT_MB":                    "45",
		"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS":   "7",
		"DYN_HTTP_SSE_KEEP_ALIVE_INTERVAL_MS":       "1500",
		"DYN_HTTP_BACKEND_STREAM_TIMEOUT_SECS":      "0",
		"DYN_HTTP_BACKEND_TTFT_STREAM_TIMEOUT_SECS": "60",
		"DYN_RUNTIME_INHIBITED_DURATION_SECS":       "3",
		"DYN_HTTP_OVERLOAD_STATUS_CODE":             "529",
		"DYN_MIGRATION_MAX_SEQ_LEN":                 "8192",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxBodyBytes != 45<<20 || c.ShutdownTimeout != 7*time.Second || c.KeepAliveInterval != 1500*time.Millisecond ||
		c.StallTimeout != 0 || c.FirstTokenTimeout != time.Minute || c.InhibitDuration != 3*time.Second ||
		c.OverloadStatus != 529 || c.MigrationMaxSeqLen != 8192 {
		t.Errorf("got %+v", c)
	}
}

func TestSentences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	tests := []struct {
		name string
		args []string
		env  map[string]string
		file string
		want string
	}{
		{"not a number", []string{"--migration-limit", "abc"}, nil, "", `--migration-limit must be a whole number from 0 to 1000000, not "abc"`},
		{"negative", []string{"--migration-limit=-1"}, nil, "", `--migration-limit must be a whole number from 0 to 1000000, not "-1"`},
		{"in the environment", nil, map[string]string{"DYN_MIGRATION_LIMIT": "x"}, "", `DYN_MIGRATION_LIMIT must be a whole number from 0 to 1000000, not "x"`},
		{"in the file", nil, nil, "migration-limit: x", file + `: migration-limit must be a whole number from 0 to 1000000, not "x"`},
		{"bare number", []string{"--stall-timeout", "30"}, nil, "", `--stall-timeout: "30" has no unit; write 30s, 30ms or the like`},
		{"bare number in the file", nil, nil, "stall-timeout: 30", file + `: stall-timeout: "30" has no unit; write 30s, 30ms or the like`},
		{"negative duration", []string{"--stall-timeout", "-3s"}, nil, "", `--stall-timeout must be a duration with its unit, such as 500ms, 30s or 5m, or 0 for off, not "-3s"`},
		{"size", []string{"--max-body-bytes", "12 parsecs"}, nil, "", `--max-body-bytes must be a size such as 192MiB, 1GiB or 500kB, or a number of bytes, at least 1, not "12 parsecs"`},
		{"no size", []string{"--max-body-bytes", "0"}, nil, "", `--max-body-bytes must be a size such as 192MiB, 1GiB or 500kB, or a number of bytes, at least 1, not "0"`},
		{"size too large", []string{"--max-body-bytes", "9999999999GiB"}, nil, "", `--max-body-bytes must be a size such as 192MiB, 1GiB or 500kB, or a number of bytes, at least 1, not "9999999999GiB"`},
		{"choice", []string{"--log-level", "loud"}, nil, "", `--log-level must be debug, info, warn or error, not "loud"`},
		{"kv", []string{"--router-mode", "kv"}, nil, "", `--router-mode: kv routing needs an index of the workers' caches, which baton does not keep; choose least-loaded, round-robin, power-of-two or random`},
		{"kv in the environment", nil, map[string]string{"DYN_ROUTER_MODE": "kv"}, "", `DYN_ROUTER_MODE: kv routing needs an index of the workers' caches, which baton does not keep; choose least-loaded, round-robin, power-of-two or random`},
		{"unit variable", nil, map[string]string{"DYN_HTTP_BODY_LIMIT_MB": "192MiB"}, "", `DYN_HTTP_BODY_LIMIT_MB must be a number of whole MiB, 0 or more, not "192MiB"`},
		{"port", []string{"--http-port", "70000"}, nil, "", `--http-port must be a whole number from 0 to 65535, not "70000"`},
		{"overload status", []string{"--http-overload-status-code", "200"}, nil, "", `--http-overload-status-code must be a whole number from 400 to 599, not "200"`},
		{"max seq len 0", []string{"--migration-max-seq-len", "0"}, nil, "", `--migration-max-seq-len must be a whole number from 1 to 2147483648, not "0"`},
		{"prefix", []string{"--metrics-prefix", "1x"}, nil, "", `--metrics-prefix must be letters, digits and _, not beginning with a digit, not "1x"`},
		{"unknown flag", []string{"--migration_limit", "3"}, nil, "", `there is no flag --migration_limit; did you mean --migration-limit?`},
		{"far from any flag", []string{"--frobnicate"}, nil, "", `there is no flag --frobnicate; see --help`},
		{"missing value", []string{"--http-port"}, nil, "", `--http-port needs a value: a whole number from 0 to 65535`},
		{"twice", []string{"--http-port", "1", "--http-port", "2"}, nil, "", `--http-port is given twice`},
		{"argument", []string{"serve"}, nil, "", `unexpected argument "serve": settings are written --name value`},
		{"unknown key", nil, nil, "http-port: 1\nmigration_limit: 3", file + `: there is no key "migration_limit" in line 2; did you mean migration-limit?`},
		{"key twice", nil, nil, "http-port: 1\nhttp-port: 2", file + `: the key http-port stands there twice`},
		{"config in the file", nil, nil, "config: x", file + `: config is a flag, not a key of the file`},
		{"list for a number", nil, nil, "http-port: [1]", file + `: http-port must be a whole number from 0 to 65535, not a list or mapping (line 1)`},
		{"mapping for a list", nil, nil, "worker: {a: b}", file + `: worker must be a list of texts (line 1)`},
		{"file is a list", nil, nil, "- a", file + `: a configuration file is a list of lines like migration-limit: 3`},
		{"no workers", []string{"--http-port", "1"}, nil, "", `--worker is missing: name at least one worker, for example --worker http://127.0.0.1:8000, or choose a --discovery`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.file != "" {
				if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", file)
			}
			if tt.name != "no workers" {
				args = append([]string{aWorker}, args...)
			}
			if tt.name == "mapping for a list" {
				args = args[1:]
			}
			_, err := LoadServe(args, env(tt.env))
			if _, ok := errors.AsType[*UsageError](err); !ok || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestBrokenFile(t *testing.T) {
	dir := t.TempDir()
	_, err := LoadServe([]string{aWorker, "--config", filepath.Join(dir, "none.yaml")}, env(nil))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--config: ") {
		t.Errorf("missing file: %v", err)
	}
	for name, body := range map[string]string{"broken": "a: [", "two documents": "http-port: 1\n---\nhttp-port: 2\n", "huge": strings.Repeat("#", maxFileBytes+1)} {
		path := filepath.Join(dir, "x.yaml")
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadServe([]string{aWorker, "--config", path}, env(nil))
		if _, ok := errors.AsType[*UsageError](err); !ok || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{"", "# nothing\n", "null\n", "http-port:\n"} {
		path := filepath.Join(dir, "empty.yaml")
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := LoadServe([]string{aWorker, "--config", path}, env(nil)); err != nil || c.HTTPPort != 8000 {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestReplacedValueIsNotLookedAt(t *testing.T) {
	c, err := LoadServe([]string{aWorker, "--migration-limit=1"}, env(map[string]string{"DYN_MIGRATION_LIMIT": "x"}))
	if err != nil || c.MigrationLimit != 1 {
		t.Errorf("%v", err)
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "-help"} {
		if _, err := LoadServe([]string{arg}, env(nil)); !errors.Is(err, ErrHelp) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	var b bytes.Buffer
	if err := ServeHelp(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range newServe().settings {
		if s.name != "" && !strings.Contains(b.String(), "--"+s.name) {
			t.Errorf("help lacks --%s", s.name)
		}
	}
}

func TestDemo(t *testing.T) {
	c, err := LoadDemo([]string{"--workers", "3", "--kills=2", "--keep"})
	if err != nil || c.Workers != 3 || c.Kills != 2 || !c.Keep || c.Engine != EngineSim {
		t.Errorf("%+v, %v", c, err)
	}
	for args, want := range map[string]string{
		"--workers 1":                        "--kills 1 needs at least --workers 2, because one worker must survive",
		"--workers 3 --kills 3":              "--kills 3 needs at least --workers 4, because one worker must survive",
		"--engine llamacpp":                  "--engine llamacpp needs a model: add --model and the path of a .gguf file",
		"--model x":                          "--model is for --engine llamacpp; the simulated workers have their own",
		"--keep=maybe":                       `--keep must be true or false, not "maybe"`,
		"--engine vllm":                      `--engine must be sim or llamacpp, not "vllm"`,
		"--engine llamacpp --model a --kill": "there is no flag --kill; did you mean --kills?",
	} {
		if _, err := LoadDemo(strings.Fields(args)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}

func TestDurationsAndSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, "7B": 7, "192MiB": 192 << 20, "1 GiB": 1 << 30, "500kB": 500_000, "3KiB": 3 << 10} {
		if n, ok := parseSize(text); !ok || n != want {
			t.Errorf("parseSize(%q) = %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "-1", "MiB", "1.5GiB", "1TB", "0x10", "1e3"} {
		if n, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %d", text, n)
		}
	}
	for d, want := range map[time.Duration]string{0: "0", 5 * time.Minute: "5m", 2 * time.Hour: "2h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 1500 * time.Millisecond: "1.5s", 61 * time.Minute: "1h1m"} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%v) = %s", d, got)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s reads back as %v", want, back)
		}
	}
}
