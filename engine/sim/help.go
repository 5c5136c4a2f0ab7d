package sim

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const helpIntro = `baton sim [flags]

One simulated worker, for trying things out without a GPU. Its first line of output is its
address. What it says is nonsense, but each token depends on all before it. The frontend needs
the folder of its tokenizer, which the worker does not have:

  baton sim --write-model sim-model
  baton sim --port 9001
  baton serve --worker http://127.0.0.1:9001 --model-path sim-model

`

const helpFaults = `
Faults

  --fault cut,after=20,nth=2 breaks the second answer off after 20 tokens. Of a fault's settings,
  nth is the first request that it takes, times how many from then on (0 = all), request a text in
  the request's id, after the tokens before it (last = all, but before the end). KIND is one of:

`

// faultMeanings are what the kinds do, in the order of FaultKinds.
var faultMeanings = map[FaultKind]string{
	FaultRefuse:      "the connection is closed without a byte",
	FaultDialTimeout: "nothing is answered for delay (3s), then the connection is closed",
	FaultStatus:      "the answer is status (503), with retry_after and message",
	FaultMute:        "headers, then nothing",
	FaultReset:       "the connection is reset",
	FaultCut:         "the connection is closed, as a killed process does",
	FaultEnd:         "the body ends in good order, without a finish reason",
	FaultDone:        "[DONE] without a finish reason",
	FaultHalfNumber:  "a reset within the digits of an id",
	FaultHalfString:  "a reset within a character of a string",
	FaultAbort:       `the finish reason "abort"`,
	FaultError:       "an error event with code status (500)",
	FaultStall:       "silence for ever",
	FaultVanish:      "all streams are silent and the port is closed, as at SIGTERM",
	FaultFreeze:      "the whole worker is silent, for delay or for ever",
	FaultPause:       "silence for delay, then it goes on",
	FaultDrip:        "delay before each further token, in pieces",
	FaultGarbage:     "an event that is no JSON",
	FaultWrongID:     "token_id in place of the next token",
	FaultMiscount:    "wrong numbers of tokens from then on",
	FaultLength:      `the finish reason "length", as with a smaller context`,
	FaultKill:        "the worker dies",
	FaultShutdown:    "vLLM's error event of a dead engine; SGLang and llama.cpp, which have none: abort",
	FaultQuiet:       "end, in tests without a wire a broken contract",
}

// writeHelp writes the flags as the other commands of baton have them.
func writeHelp(w io.Writer, f *flag.FlagSet) {
	var b strings.Builder
	b.WriteString(helpIntro)
	f.VisitAll(func(fl *flag.Flag) {
		operand, meaning := flag.UnquoteUsage(fl)
		switch operand {
		case "int", "float":
			operand = "N"
		case "duration":
			operand = "DURATION"
		}
		fmt.Fprintf(&b, "  %s\n      %s", strings.TrimSpace("--"+fl.Name+" "+operand), meaning)
		if fl.DefValue != "" && operand != "" {
			fmt.Fprintf(&b, " (default %s)", strings.Replace(fl.DefValue, "0s", "0", 1))
		}
		b.WriteByte('\n')
	})
	b.WriteString(helpFaults)
	for _, kind := range FaultKinds {
		fmt.Fprintf(&b, "  %-13s %s\n", kind, faultMeanings[kind])
	}
	_, _ = io.WriteString(w, b.String()) // whoever asked for it is gone
}
