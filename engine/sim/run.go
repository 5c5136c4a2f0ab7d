package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a worker process does when it is told to end.
const (
	onSigtermSilent = "silent" // the port refuses, open streams stay open and say nothing
	onSigtermCut    = "cut"    // everything is cut at once
	onSigtermDrain  = "drain"  // open streams finish
)

// options are what the flags of Run say.
type options struct {
	config     Config
	host       string
	port       int
	onSigterm  string
	writeModel string
}

// A UsageError says what is wrong with the arguments of Run.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Run is the command line of one worker process. Its first line on stdout is
// the address, as in http://127.0.0.1:41234. It ends when ctx does, in the way
// that --on-sigterm says, or when a fault has ended the worker. Its error is a
// *UsageError if the arguments are wrong.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return &UsageError{err}
	case o.writeModel != "":
		return WriteModel(o.writeModel)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("sim: listen: %w", err)
	}
	s := NewServer(o.config)
	if _, err := fmt.Fprintf(stdout, "http://%s\n", l.Addr()); err != nil {
		_ = l.Close()
		return fmt.Errorf("sim: print the address: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case <-ctx.Done():
		s.stop(o.onSigterm)
		<-served
		return nil
	case err := <-served:
		if !errors.Is(err, http.ErrServerClosed) {
			s.Kill()
			return fmt.Errorf("sim: serve: %w", err)
		}
	}
	// A fault closed the listener; streams that it left open live on.
	if s.Settle(ctx) == nil {
		return errors.New("sim: a fault has ended the worker")
	}
	s.Kill()
	return nil
}

// stop ends the worker. It returns when no stream is open any more; with
// onSigtermSilent that is when the last client has left.
func (s *Server) stop(how string) {
	switch how {
	case onSigtermSilent:
		s.Vanish()
	case onSigtermDrain:
		s.Drain()
	case onSigtermCut:
		s.Kill()
	}
	_ = s.Settle(context.Background()) // a second signal ends the process
	s.Kill()
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	c := &o.config
	var style, deltas string
	var rate float64
	var faults []string
	f := flag.NewFlagSet("sim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { writeHelp(stderr, f) }
	f.StringVar(&c.Kind, "kind", KindVLLM, "the engine to play, `KIND`: vllm, sglang, trtllm or llamacpp")
	f.StringVar(&c.Server.Profile, "profile", "", "the version of the engine, or the way to start it, to play, `NAME`: "+strings.Join(profileNames(""), ", "))
	f.StringVar(&o.host, "host", "127.0.0.1", "the `ADDRESS` to listen on")
	f.IntVar(&o.port, "port", 0, "the port to listen on; 0 = any")
	f.StringVar(&c.Model, "model-name", DefaultModelName, "the worker's `NAME` for its model")
	f.StringVar(&c.Server.ModelPath, "model-path", "", "the `PATH` at which the worker says its model's files lie")
	f.StringVar(&style, "style", string(StyleWords), "what it writes, `STYLE`: words (with a call where a chat has tools, and a thought where it has reasoning_effort or enable_thinking), hash (any ids) or whole (any whole characters)")
	f.StringVar(&c.Say, "say", "", "a `TEXT` that every answer is, in place of what the style would write")
	f.Float64Var(&rate, "tokens-per-second", 0, "speed of one answer; 0 = as --gap says")
	f.DurationVar(&c.Gap, "gap", 0, "time between tokens")
	f.DurationVar(&c.Prefill, "prefill", 0, "time before the first token")
	f.StringVar(&deltas, "tokens-per-delta", "1", "ids of successive deltas, `N,…`, used in turn; 0 = an empty delta")
	f.BoolVar(&c.FinishAlone, "finish-alone", false, "give the finish reason in a frame without ids")
	f.IntVar(&c.MeanLength, "mean-length", 256, "tokens of an answer on average; -1 = answers never end by themselves")
	f.IntVar(&c.ContextLength, "context-length", ModelContextLength, "in tokens")
	f.IntVar(&c.Server.Slots, "slots", 0, "requests that run at once, the others wait; 0 = no bound")
	f.BoolVar(&c.Server.ScaleOut, "scale-out", false, "open vLLM's /inference/v1/generate")
	f.BoolVar(&c.Server.Incremental, "incremental", false, "sglang: events hold what is new, and do not repeat the answer")
	f.BoolVar(&c.Server.Deterministic, "deterministic", false, "sglang: honour seeds")
	f.BoolVar(&c.Server.Priorities, "priorities", false, "sglang: honour priorities")
	f.StringVar(&o.onSigterm, "on-sigterm", onSigtermSilent, "`HOW` to end at SIGTERM: silent, cut or drain, which is what sglang does unless told otherwise")
	f.StringVar(&o.writeModel, "write-model", "", "write the folder of the model's tokenizer to `PATH` and exit")
	f.Func("fault", "a `FAULT`, repeatable: KIND,after=N,nth=N,times=N,request=TEXT,delay=1s,status=N,retry_after=N,token_id=N, or JSON", func(text string) error {
		faults = append(faults, text)
		return nil
	})
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errors.New("sim: " + strings.Replace(err.Error(), "flag provided but not defined: -", "there is no flag --", 1))
	}
	told := false
	f.Visit(func(fl *flag.Flag) { told = told || fl.Name == "on-sigterm" })
	if c.Kind == KindSGLang && !told {
		o.onSigterm = onSigtermDrain // as the live one
	}
	for _, text := range faults {
		fault, err := ParseFault(text)
		if err != nil {
			return nil, fmt.Errorf("sim: --fault: %s", strings.TrimPrefix(err.Error(), "sim: "))
		}
		c.Faults = append(c.Faults, fault)
	}
	c.Style = Style(style)
	if rate > 0 {
		c.Gap = time.Duration(float64(time.Second) / rate)
	}
	for part := range strings.SplitSeq(deltas, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("sim: --tokens-per-delta %q: want numbers, comma-separated", deltas)
		}
		c.Deltas = append(c.Deltas, n)
	}
	return o, o.check(f.Args())
}

// check says which flag is wrong.
func (o *options) check(rest []string) error {
	c := &o.config
	switch {
	case len(rest) > 0:
		return fmt.Errorf("sim: unexpected argument %q", rest[0])
	case !slices.Contains([]string{KindVLLM, KindSGLang, KindTRTLLM, KindLlamaCPP}, c.Kind):
		return fmt.Errorf("sim: --kind %q: want %s, %s, %s or %s", c.Kind, KindVLLM, KindSGLang, KindTRTLLM, KindLlamaCPP)
	case c.checkProfile() != nil:
		return c.checkProfile()
	case !slices.Contains([]Style{StyleHash, StyleWhole, StyleWords}, c.Style):
		return fmt.Errorf("sim: --style %q: want words, hash or whole", c.Style)
	case !slices.Contains([]string{onSigtermSilent, onSigtermCut, onSigtermDrain}, o.onSigterm):
		return fmt.Errorf("sim: --on-sigterm %q: want silent, cut or drain", o.onSigterm)
	case c.ContextLength < 2:
		return fmt.Errorf("sim: --context-length %d: want at least 2", c.ContextLength)
	case c.Gap < 0 || c.Prefill < 0 || c.Server.Slots < 0:
		return errors.New("sim: --gap, --prefill and --slots cannot be negative")
	}
	return nil
}
