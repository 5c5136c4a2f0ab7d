package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"baton/engine"
)

// A FaultKind is something that goes wrong. Each has an effect on the wire (of a
// Server) and at the token level (of an Engine), so that one script serves both.
type FaultKind string

const (
	// Before the response; After does not count.

	// FaultRefuse closes the connection without a byte of response.
	// Token level: CannotConnect.
	FaultRefuse FaultKind = "refuse"
	// FaultDialTimeout answers nothing at all for Delay (default 3 s), then
	// closes. Token level: ConnectionTimeout after Delay.
	FaultDialTimeout FaultKind = "dial_timeout"
	// FaultStatus answers with Status (default 503), RetryAfter and Message.
	// Token level: the kind that the clients give that status.
	FaultStatus FaultKind = "status"
	// FaultMute sends the headers of a success and nothing more.
	// Token level: silence until the context ends.
	FaultMute FaultKind = "mute"

	// After so many tokens.

	// FaultReset resets the connection (RST). Token level, as for all ways to
	// end without a finish reason: Disconnected.
	FaultReset FaultKind = "reset"
	// FaultCut closes the connection (FIN) without the terminating chunk, as a
	// killed process does.
	FaultCut FaultKind = "cut"
	// FaultEnd ends the body in good order, without a finish reason.
	FaultEnd FaultKind = "end"
	// FaultDone sends [DONE] without a finish reason.
	FaultDone FaultKind = "done"
	// FaultHalfNumber resets after half an event, within the digits of an id.
	FaultHalfNumber FaultKind = "half_number"
	// FaultHalfString resets after half an event, within a character of a string.
	FaultHalfString FaultKind = "half_string"
	// FaultAbort ends with the finish reason "abort" (llama.cpp, which has none,
	// with an error frame). Token level: EngineError.
	FaultAbort FaultKind = "abort"
	// FaultError sends an error frame with code Status (default 500) and ends.
	// Token level: EngineError.
	FaultError FaultKind = "error"
	// FaultStall says nothing more, for ever; llama.cpp's pings go on.
	FaultStall FaultKind = "stall"
	// FaultVanish stalls all streams and closes the listener, as vLLM and
	// llama.cpp do on SIGTERM. Token level: all streams are silent, later
	// requests are refused.
	FaultVanish FaultKind = "vanish"
	// FaultFreeze stops the whole worker, as SIGSTOP does: no pings, /health
	// hangs, for Delay or for ever. Token level: only this stream is silent.
	FaultFreeze FaultKind = "freeze"
	// FaultPause is silent for Delay, then goes on.
	FaultPause FaultKind = "pause"
	// FaultDrip waits Delay before each further token and writes its event in pieces.
	FaultDrip FaultKind = "drip"
	// FaultGarbage sends an event that is no JSON and ends. Token level: ProtocolError.
	FaultGarbage FaultKind = "garbage"
	// FaultWrongID sends TokenID (default: the vocabulary's size) in place of the next token.
	FaultWrongID FaultKind = "wrong_id"
	// FaultMiscount tells wrong numbers of tokens from then on. Token level: nothing.
	FaultMiscount FaultKind = "miscount"
	// FaultLength ends with the finish reason "length", as a worker with a
	// smaller context does.
	FaultLength FaultKind = "length"
	// FaultKill ends the worker: all its streams are cut, later requests are
	// refused until it is revived.
	FaultKill FaultKind = "kill"
	// FaultShutdown is the death of the engine behind living HTTP, which vLLM tells
	// in an error frame with code Status (default 500). SGLang and llama.cpp have
	// none: there it is FaultAbort. Token level: EngineShutdown.
	FaultShutdown FaultKind = "shutdown"
	// FaultQuiet ends the sequence with neither a finish reason nor an error,
	// which breaks the contract of engine.Engine. On the wire it is FaultEnd.
	FaultQuiet FaultKind = "quiet"
)

// FaultKinds are all of them, those before the response first.
var FaultKinds = []FaultKind{
	FaultRefuse, FaultDialTimeout, FaultStatus, FaultMute,
	FaultReset, FaultCut, FaultEnd, FaultDone, FaultHalfNumber, FaultHalfString, FaultAbort, FaultError,
	FaultStall, FaultVanish, FaultFreeze, FaultPause, FaultDrip, FaultGarbage, FaultWrongID, FaultMiscount, FaultLength,
	FaultKill, FaultShutdown, FaultQuiet,
}

// AfterLast is the Fault.After that strikes between the last token, be it an
// end id or the last of the budget, and the finish reason.
const AfterLast = -1

// A Fault goes wrong for some of the requests. Requests are offered to the
// faults in their order; the first one that takes a request is what it gets.
type Fault struct {
	Kind FaultKind `json:"kind"`

	// Request, if set, must occur in the worker-visible id of the request.
	Request string `json:"request,omitempty"`
	// Nth is the first of the requests offered to this fault that it takes,
	// counted from 1; 0 = 1.
	Nth int `json:"nth,omitempty"`
	// Times is how many requests it takes from then on; 0 = all.
	Times int `json:"times,omitempty"`

	// After is how many tokens are delivered before; AfterLast = all of them.
	// A generation that ends sooner is not struck.
	After int `json:"after,omitempty"`

	Status     int            `json:"status,omitempty"`
	RetryAfter int            `json:"retry_after,omitempty"` // seconds
	Message    string         `json:"message,omitempty"`
	TokenID    engine.TokenID `json:"token_id,omitempty"`
	Delay      Duration       `json:"delay,omitempty"`
}

// A Duration is a time.Duration that JSON writes as Go does: "1.5s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// beforeResponse reports whether the fault strikes before anything is generated.
func (f *Fault) beforeResponse() bool {
	return f != nil && slices.Index(FaultKinds, f.Kind) <= slices.Index(FaultKinds, FaultMute)
}

// due reports whether the fault strikes now, with delivered tokens behind it
// and finish as the finish reason that the last of them came with.
func (f *Fault) due(delivered int, finish engine.FinishReason) bool {
	switch {
	case f == nil || f.beforeResponse():
		return false
	case f.After == AfterLast:
		return finish != ""
	}
	return delivered >= f.After
}

func (f *Fault) status(otherwise int) int {
	if f.Status != 0 {
		return f.Status
	}
	return otherwise
}

// wrongID is the id that FaultWrongID delivers.
func (f *Fault) wrongID(c *Config) engine.TokenID {
	if f.TokenID != 0 {
		return f.TokenID
	}
	return engine.TokenID(c.VocabSize)
}

// Validate says what is wrong with the fault.
func (f *Fault) Validate() error {
	switch {
	case !slices.Contains(FaultKinds, f.Kind):
		return fmt.Errorf("sim: unknown fault kind %q; there are %s", f.Kind, listKinds())
	case f.After < AfterLast, f.Nth < 0, f.Times < 0, f.RetryAfter < 0, f.Delay < 0:
		return fmt.Errorf("sim: fault %s: a negative number (after may be %d)", f.Kind, AfterLast)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("sim: fault %s: status %d is no error", f.Kind, f.Status)
	}
	return nil
}

func listKinds() string {
	names := make([]string, len(FaultKinds))
	for i, kind := range FaultKinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}

// ParseFault reads a fault as a flag has it: a JSON object, or the kind and
// then settings, as in "reset,after=5,nth=2,times=1".
func ParseFault(text string) (Fault, error) {
	var f Fault
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return f, fmt.Errorf("sim: fault %q: %w", text, err)
		}
		return f, f.Validate()
	}
	kind, rest, _ := strings.Cut(text, ",")
	f.Kind = FaultKind(kind)
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		if err := f.set(key, value); err != nil {
			return f, fmt.Errorf("sim: fault %q: %s: %w", text, key, err)
		}
	}
	return f, f.Validate()
}

func (f *Fault) set(key, value string) (err error) {
	switch key {
	case "request":
		f.Request = value
	case "message":
		f.Message = value
	case "delay":
		err = f.Delay.UnmarshalText([]byte(value))
	case "nth":
		f.Nth, err = strconv.Atoi(value)
	case "times":
		f.Times, err = strconv.Atoi(value)
	case "after":
		if value == "last" {
			f.After = AfterLast
			return nil
		}
		f.After, err = strconv.Atoi(value)
	case "status":
		f.Status, err = strconv.Atoi(value)
	case "retry_after":
		f.RetryAfter, err = strconv.Atoi(value)
	case "token_id":
		var n int
		n, err = strconv.Atoi(value)
		f.TokenID = engine.TokenID(n)
	default:
		err = errors.New("no such setting")
	}
	return err
}

// A script hands out the faults.
type script struct {
	mu      sync.Mutex // guards what follows
	faults  []Fault
	offered []int // by fault
}

func (s *script) set(faults []Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.offered = slices.Clone(faults), make([]int, len(faults))
}

func (s *script) list() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

// take returns the fault of the request with this worker-visible id, or nil.
func (s *script) take(id string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		f := &s.faults[i]
		if !strings.Contains(id, f.Request) {
			continue
		}
		s.offered[i]++
		n := s.offered[i] - max(f.Nth, 1)
		if n < 0 || f.Times > 0 && n >= f.Times {
			continue
		}
		taken := *f
		return &taken
	}
	return nil
}
