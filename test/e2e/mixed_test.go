package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/test/harness"
)

// A fleet of vLLM and llama.cpp with the same weights is one model, by one flag, and an
// answer goes on from either engine to the other. The tokenizer is that of the .gguf
// file, which llama.cpp names.
func TestMixedFleet(t *testing.T) {
	for _, first := range []string{"vllm", "llamacpp"} {
		t.Run("from "+first, func(t *testing.T) {
			big := startVLLM(t, 1)[0]
			small := startWorker(t)
			fleet := map[string]string{"vllm": big.url, "llamacpp": small.url()}
			url, front := harness.Serve(t, "--worker", big.url, "--worker", small.url(), "--served-model-name", "smollm2", "--migration-limit", "3")
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			for strings.Count(front.Output(), "worker attached") < 2 {
				if ctx.Err() != nil {
					t.Fatal("the workers were not attached")
				}
				<-time.After(20 * time.Millisecond) // polls a real process
			}
			var lost string
			for try := 0; lost != first; try++ { // the policy takes one of two idle workers
				if try == 20 {
					t.Fatalf("%s was never asked", first)
				}
				lost = ""
				a, err := harness.Stream(ctx, url, "/v1/chat/completions", chatBody(300), func(n int) {
					if n != 12 {
						return
					}
					lost = "llamacpp"
					if big.running() {
						lost = "vllm"
					}
					switch {
					case lost != first:
					case lost == "vllm":
						syscall.Kill(big.pid, syscall.SIGKILL)
					default:
						small.proc.Kill()
					}
				})
				if err != nil || a.Error != nil {
					t.Fatal(err, a)
				}
				if a.Finish == "" || a.Usage.CompletionTokens == 0 || a.Text == "" {
					t.Errorf("%+v", a)
				}
				if lost == first {
					t.Logf("%q", a.Text)
				}
			}
			if out := front.Output(); !strings.Contains(out, "request migrated") || !strings.Contains(out, "from="+strings.TrimPrefix(fleet[first], "http://")) {
				t.Error("the log has no record of the move")
			}
		})
	}
}
