package config

import (
	"strings"
	"time"
)

// Probe is the configuration of `baton probe`.
type Probe struct {
	Worker           Worker
	ModelPaths       []Named
	WorkerAPIKeyFile string        // "" = the worker gets no key
	Timeout          time.Duration // of all of it; 0 = off
	JSON             bool

	settings []*setting
}

// CommandProbe is the name of LoadProbe's command.
const CommandProbe = "probe"

// LoadProbe reads the command line of `baton probe`, without its name. Its error is
// ErrHelp or a *UsageError.
func LoadProbe(args []string) (*Probe, error) {
	c := newProbe()
	flags, operands := splitOperands(c.settings, args)
	if err := load(c.settings, flags, nil, nil); err != nil {
		return nil, err
	}
	switch {
	case len(operands) == 0:
		return nil, usage("probe needs the address of a worker, for example baton probe http://127.0.0.1:8000")
	case len(operands) > 1:
		return nil, usage("unexpected argument %q: probe takes one worker at a time", operands[1])
	}
	workers, err := parseWorker(nil, operands[0])
	if err != nil {
		return nil, usage("%v", err)
	}
	c.Worker = workers[0]
	return c, nil
}

func newProbe() *Probe {
	c := &Probe{}
	c.settings = []*setting{
		list(&c.ModelPaths, parseModelPath, "model-path", "[NAME=]PATH",
			"as for serve: the folder or .gguf file with the tokenizer of the worker's model, which is compared with the worker's own",
			"[NAME=]PATH"),
		file(&c.WorkerAPIKeyFile, "worker-api-key-file", "the worker gets the key in this file as Bearer"),
		duration(&c.Timeout, time.Minute, "timeout", "how long all of it may take"),
		boolean(&c.JSON, "json", "print what was found as JSON"),
	}
	return c
}

// splitOperands separates what is no flag. A flag that is no boolean, and not one
// of those that ask for help, has a value.
func splitOperands(settings []*setting, args []string) (flags, operands []string) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			operands = append(operands, arg)
			continue
		}
		flags = append(flags, arg)
		s := lookup(settings, strings.TrimLeft(arg, "-"))
		alone := arg == "--help" || arg == "-help" || arg == "-h" || strings.Contains(arg, "=") || s != nil && s.isBool
		if !alone && len(args) > 0 {
			flags, args = append(flags, args[0]), args[1:]
		}
	}
	return flags, operands
}
