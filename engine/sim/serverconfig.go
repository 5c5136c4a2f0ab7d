package sim

import "time"

// What the simulated engines say of their versions.
const (
	version           = "0.32.0"
	systemFingerprint = "vllm-0.32.0-51a17ed0"
)

// ServerConfig is what only a Server has.
type ServerConfig struct {
	// ScaleOut opens vLLM's /inference/v1/generate, which is closed by default.
	ScaleOut bool
	// Profile is the version of the engine, or the way to start it, that the worker
	// plays, by its name in --profile; "" = the newest.
	Profile string
	// Slots bounds how many requests run at once; the others wait. 0 = no bound.
	Slots int
	// ModelPath is where the worker says its model's files lie.
	ModelPath string
	// Incremental, Deterministic and Priorities are options of SGLang: that its
	// events hold what is new and do not repeat the answer, that it honours seeds,
	// and priorities.
	Incremental, Deterministic, Priorities bool
	// PingInterval is llama.cpp's keep-alive where a request names none.
	PingInterval time.Duration
}

const (
	defaultPingInterval = 30 * time.Second // llama.cpp's own
	defaultSlots        = 4                // what llama.cpp reports when Slots is 0
)

func (c ServerConfig) withDefaults(model string) ServerConfig {
	if c.ModelPath == "" {
		c.ModelPath = model
	}
	if c.PingInterval == 0 {
		c.PingInterval = defaultPingInterval
	}
	return c
}
