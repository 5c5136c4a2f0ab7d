package config

// Demo is the configuration of `baton demo`.
type Demo struct {
	Workers int
	Kills   int
	Keep    bool
	Engine  string // EngineSim or EngineLlamaCPP
	Model   string // the .gguf file of EngineLlamaCPP

	settings []*setting
}

// The values of Demo.Engine.
const (
	EngineSim      = "sim"
	EngineLlamaCPP = KindLlamaCPP
)

// LoadDemo reads the demo's command line. Its error is ErrHelp or a *UsageError.
func LoadDemo(args []string) (*Demo, error) {
	c := newDemo()
	if err := load(c.settings, args, nil, nil); err != nil {
		return nil, err
	}
	switch {
	case c.Kills >= c.Workers:
		return nil, usage("--kills %d needs at least --workers %d, because one worker must survive", c.Kills, c.Kills+1)
	case c.Engine == EngineLlamaCPP && c.Model == "":
		return nil, usage("--engine llamacpp needs a model: add --model and the path of a .gguf file")
	case c.Engine == EngineSim && c.Model != "":
		return nil, usage("--model is for --engine llamacpp; the simulated workers have their own")
	}
	return c, nil
}

func newDemo() *Demo {
	c := &Demo{}
	c.settings = []*setting{
		integer(&c.Workers, 2, 1, maxDemoWorkers, "workers", "how many workers to start"),
		integer(&c.Kills, 1, 0, maxDemoWorkers-1, "kills", "how many of them to kill while they write the answer"),
		boolean(&c.Keep, "keep", "leave everything running until Ctrl-C, with a curl line to try"),
		choice(&c.Engine, EngineSim, []string{EngineSim, EngineLlamaCPP}, "engine",
			"what the workers are: simulated ones, or the llama-server found on the PATH", nil),
		text(&c.Model, "", parseFileName, "model", "FILE", "the .gguf file for --engine llamacpp", "the path of a .gguf file"),
	}
	return c
}

const maxDemoWorkers = 8
