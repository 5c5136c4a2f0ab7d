package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStart measures the start of the built program with a real model: from its
// exec to the first answer on /health, and the CPU time until then.
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "baton")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	folder := os.Getenv("BATON_MODELS")
	if folder == "" {
		cache, _ := os.UserCacheDir()
		folder = filepath.Join(cache, "baton", "models")
	}
	for _, name := range []string{"llama3_1", "qwen3", "gptoss"} {
		b.Run(name, func(b *testing.B) {
			place := filepath.Join(folder, name)
			if _, err := os.Stat(place); err != nil {
				b.Skipf("the tokenizer of %s is not there; test/models/fetch.sh fetches it", name)
			}
			var cpu time.Duration
			for b.Loop() {
				cpu += startOnce(b, binary, place)
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// startOnce returns the CPU time that the start took.
func startOnce(b *testing.B, binary, model string) time.Duration {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	listener.Close()
	serve := exec.CommandContext(b.Context(), binary, "serve", "--http-host", "127.0.0.1", "--http-port", port,
		"--worker", "http://127.0.0.1:9", "--model-path", "m="+model)
	if err := serve.Start(); err != nil {
		b.Fatal(err)
	}
	for tries := 0; ; tries++ {
		resp, err := http.Get("http://" + address + "/health")
		if err == nil {
			resp.Body.Close()
			break
		}
		if tries > 30_000 {
			b.Fatal(err)
		}
		time.Sleep(time.Millisecond) // until it listens
	}
	_ = serve.Process.Kill()
	_ = serve.Wait() // the error says that it was killed
	return serve.ProcessState.UserTime() + serve.ProcessState.SystemTime()
}
