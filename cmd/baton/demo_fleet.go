package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/config"
	"baton/engine/sim"
	"baton/gguf"
)

// A fleet is what the demo starts: workers and one frontend, each a process.
type fleet struct {
	workers  []*demoWorker
	frontend *process
	address  string // of the frontend
	model    string // public name
	seams    chan seam

	migrationLimit int
	dir            string // temporary; holds the simulated model
}

// A demoWorker is one worker of the demo.
type demoWorker struct {
	name    string
	address string // host:port, which is its id for the frontend too
	style   style
	process *process
	dead    bool

	kind string // config.EngineSim or config.EngineLlamaCPP
	path string // the program, and how it is called
	args []string
}

const (
	demoSeamBacklog = 64
	// demoGap is the simulated workers' time for one token: slow enough to read
	// along, fast enough not to wait.
	demoGap = 35 * time.Millisecond
	// llamaContext is split among llama.cpp's slots.
	llamaContext, llamaSlots = 8192, 4
)

// startFleet starts everything and waits until the frontend is ready to ask
// every worker. What it returns must be closed, also after an error.
func startFleet(ctx context.Context, cfg *config.Demo) (*fleet, error) {
	f := &fleet{seams: make(chan seam, demoSeamBacklog), migrationLimit: max(demoMigrationLimit, cfg.Kills)}
	self, err := os.Executable()
	if err != nil {
		return f, fmt.Errorf("find the program to start workers with: %w", err)
	}
	if f.dir, err = os.MkdirTemp("", "baton-demo-"); err != nil {
		return f, fmt.Errorf("make a folder for the demo: %w", err)
	}
	modelPath := filepath.Join(f.dir, "model")
	if cfg.Engine == config.EngineLlamaCPP {
		modelPath = cfg.Model
	} else if err := sim.WriteModel(modelPath); err != nil {
		return f, err
	}
	for i := range cfg.Workers {
		port, err := freePort()
		if err != nil {
			return f, err
		}
		w := &demoWorker{
			name: "worker " + strconv.Itoa(i+1), address: loopback(port),
			style: workerStyles[i%len(workerStyles)], kind: cfg.Engine,
		}
		if err := w.command(self, port, modelPath); err != nil {
			return f, err
		}
		f.workers = append(f.workers, w)
	}
	for _, w := range f.workers {
		if err := w.start(); err != nil {
			return f, err
		}
	}
	for _, w := range f.workers {
		if err := waitUntil(ctx, w.process, demoStartLimit, w.healthy); err != nil {
			return f, err
		}
	}
	return f, f.startFrontend(ctx, self, modelPath)
}

// checkModelFile gives a path that does not depend on the working folder. A file
// that is none of a model is said here, because llama-server says it between many
// other lines.
func checkModelFile(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("--model: %w", err)
	}
	switch _, err := gguf.Open(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("--model %s: there is no such file", path)
	case err != nil:
		return "", fmt.Errorf("--model: %w", err)
	}
	return path, nil
}

// command decides how the worker is started.
func (w *demoWorker) command(self string, port int, modelPath string) error {
	if w.kind == config.EngineSim {
		w.path = self
		w.args = []string{"sim", "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--style", "words", "--gap", demoGap.String(), "--mean-length", "-1"}
		return nil
	}
	path, err := exec.LookPath("llama-server")
	if err != nil {
		return fmt.Errorf("--engine llamacpp needs the program llama-server, which is not on the PATH; install llama.cpp, or leave --engine out to see the demo with simulated workers")
	}
	// A prefill batch of 32 makes a continued greedy answer identical to an uncut
	// one: llama.cpp computes larger batches with other kernels than single steps.
	w.path = path
	w.args = []string{"--host", "127.0.0.1", "--port", strconv.Itoa(port), "-m", modelPath,
		"--alias", strings.TrimSuffix(filepath.Base(modelPath), filepath.Ext(modelPath)), "-b", "32", "-ub", "32",
		"-c", strconv.Itoa(llamaContext), "-np", strconv.Itoa(llamaSlots), "--slots"}
	return nil
}

func (w *demoWorker) start() (err error) {
	w.process, err = startProcess(w.name, nil, w.path, w.args...)
	w.dead = false
	return err
}

func (w *demoWorker) what() string {
	what := "baton sim, simulated vLLM"
	if w.kind == config.EngineLlamaCPP {
		what = "llama-server"
	}
	return fmt.Sprintf("%s, process %d", what, w.process.pid())
}

func (w *demoWorker) healthy(ctx context.Context) bool {
	_, err := get(ctx, "http://"+w.address+"/health")
	return err == nil
}

// startFrontend starts the frontend and waits until it can ask every worker.
func (f *fleet) startFrontend(ctx context.Context, self, modelPath string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	f.address = loopback(port)
	args := []string{"serve", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port), "--model-path", modelPath,
		"--migration-limit", strconv.Itoa(f.migrationLimit), "--log-format", "json", "--lame-duck", "0", "--admin-address", "off"}
	for _, w := range f.workers {
		args = append(args, "--worker", "http://"+w.address)
	}
	f.frontend, err = startProcess("the frontend", f.readLog, self, args...)
	if err != nil {
		return err
	}
	return waitUntil(ctx, f.frontend, demoStartLimit, f.ready)
}

// readLog picks the moves out of the frontend's log.
func (f *fleet) readLog(line string) {
	var record struct {
		Msg string `json:"msg"`
		seam
	}
	if json.Unmarshal([]byte(line), &record) != nil || record.Msg != "request migrated" {
		return
	}
	select {
	case f.seams <- record.seam:
	default: // with --keep nobody reads them any more
	}
}

// ready asks the frontend whether it can ask every worker, and for the model's name.
func (f *fleet) ready(ctx context.Context) bool {
	body, err := get(ctx, "http://"+f.address+"/health")
	if err != nil {
		return false
	}
	var health healthReply
	if json.Unmarshal(body, &health) != nil || len(health.Models) != 1 {
		return false
	}
	f.model = health.Models[0].Name
	return health.Models[0].Ready == len(f.workers)
}

// healthReply is what the demo reads of /health.
type healthReply struct {
	Models []struct {
		Name  string `json:"name"`
		Ready int    `json:"ready_workers"`
	} `json:"models"`
}

// revive starts the killed workers again, at their old addresses, and waits
// until the frontend asks them again.
func (f *fleet) revive(ctx context.Context) error {
	for _, w := range f.workers {
		if !w.dead {
			continue
		}
		w.process.close()
		if err := w.start(); err != nil {
			return err
		}
		if err := waitUntil(ctx, w.process, demoStartLimit, w.healthy); err != nil {
			return err
		}
	}
	return waitUntil(ctx, f.frontend, demoStartLimit, f.ready)
}

// close ends every process and removes what the demo wrote.
func (f *fleet) close() {
	if f.frontend != nil {
		f.frontend.close()
	}
	for _, w := range f.workers {
		if w.process != nil {
			w.process.close()
		}
	}
	if f.dir != "" {
		os.RemoveAll(f.dir)
	}
}

// worker is the worker with this address, or nil.
func (f *fleet) worker(address string) *demoWorker {
	i := slices.IndexFunc(f.workers, func(w *demoWorker) bool { return w.address == address })
	if i < 0 {
		return nil
	}
	return f.workers[i]
}

// busy asks the living workers which of them is generating; nil = none says so.
func (f *fleet) busy(ctx context.Context) *demoWorker {
	for _, w := range f.workers {
		if !w.dead && w.generating(ctx) {
			return w
		}
	}
	return nil
}

// generating asks the worker itself whether a request runs there.
func (w *demoWorker) generating(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if w.kind == config.EngineLlamaCPP {
		body, err := get(ctx, "http://"+w.address+"/slots")
		var slots []struct {
			Processing bool `json:"is_processing"`
		}
		if err != nil || json.Unmarshal(body, &slots) != nil {
			return false
		}
		for _, s := range slots {
			if s.Processing {
				return true
			}
		}
		return false
	}
	body, err := get(ctx, "http://"+w.address+"/metrics")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "vllm:num_requests_running") {
			return !strings.HasSuffix(strings.TrimSpace(line), " 0") && !strings.HasSuffix(strings.TrimSpace(line), " 0.0")
		}
	}
	return false
}

func (f *fleet) stream(ctx context.Context, q question, take func(chunk) error) error {
	return askStream(ctx, "http://"+f.address, q, take)
}

func (f *fleet) complete(ctx context.Context, q question) (chunk, error) {
	return askWhole(ctx, "http://"+f.address, q)
}

// migrationCounters are the metrics that the demo shows.
var migrationCounters = []string{
	"dynamo_frontend_model_migration_total{",
	"dynamo_frontend_model_migration_max_seq_len_exceeded_total{",
}

// counters returns the lines of the frontend's /metrics that count migrations.
func (f *fleet) counters(ctx context.Context) ([]string, error) {
	body, err := get(ctx, "http://"+f.address+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("read the frontend's metrics: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if slices.ContainsFunc(migrationCounters, func(c string) bool { return strings.HasPrefix(line, c) }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines, nil
}

// curl is a command that streams an answer, long enough to kill a worker by hand.
func (f *fleet) curl() string {
	q := question{Model: f.model, MaxTokens: 400, IgnoreEOS: true, Stream: true, Messages: []message{{"user", demoPrompt}}}
	body, err := json.Marshal(q)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return fmt.Sprintf("curl -N http://%s/v1/chat/completions -H 'Content-Type: application/json' -d '%s'", f.address, body)
}
