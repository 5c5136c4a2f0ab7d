package sim

// version is what a simulated worker says of itself where its protocol has one.
const version = "0.32.0"

// ServerConfig is what only a Server has.
type ServerConfig struct {
	// ScaleOut opens vLLM's /inference/v1/generate, which is closed by default.
	ScaleOut bool
}
