package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/config"
	"baton/engine/sim"
)

// patience bounds every wait. It is far more than anything here takes.
const patience = 30 * time.Second

// A diary is a log, or what a worker received, that tests can wait for.
type diary struct {
	mu    sync.Mutex // guards what follows
	text  strings.Builder
	grown chan struct{} // closed by the next entry
}

func newDiary() *diary { return &diary{grown: make(chan struct{})} }

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text.Write(p)
	close(d.grown)
	d.grown = make(chan struct{})
	return len(p), nil
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// await waits for what and returns its first group.
func (d *diary) await(t *testing.T, what string) string {
	t.Helper()
	want := regexp.MustCompile(what)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		d.mu.Lock()
		text, grown := d.text.String(), d.grown
		d.mu.Unlock()
		if m := want.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-grown:
		case <-ctx.Done():
			t.Fatalf("%s did not come:\n%s", what, text)
		}
	}
}

// serveHere runs `baton serve` in this process until the test ends.
func serveHere(t *testing.T, args ...string) (address string, log *diary) {
	t.Helper()
	cfg, err := config.LoadServe(append([]string{"--http-host", "127.0.0.1", "--http-port", "0", "--lame-duck", "0", "--shutdown-timeout", "0", "--log-level", "debug", "--admin-address", "off"}, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	log = newDiary()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, cfg, newLogger(log, cfg, logLevel(cfg)), logLevel(cfg)) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return log.await(t, `baton serves" address=(127\.0\.0\.1:\d+)`), log
}

// Credentials of clients stay before the frontend, the workers' key behind it,
// whatever a worker does with what it gets.
func TestCredentialsStayOnTheirSide(t *testing.T) {
	const workerSecret, clientSecret = `w0rker"k\ey`, "cl1ent"
	folder := modelFolder(t)
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(workerSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed: %s %v", r.URL, r.Header)
	}))
	defer elsewhere.Close()

	// What a worker may do with a request. sent is the key that came with it.
	complain := func(status int) func(w http.ResponseWriter, sent string) {
		return func(w http.ResponseWriter, sent string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Your-Key", sent)
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
				"message": fmt.Sprintf("what do you want with %s, that is %q?", sent, sent), "type": "BadRequestError", "param": sent, "code": status,
			}})
		}
	}
	behaviours := map[string]func(w http.ResponseWriter, sent string){
		"answers": nil,
		"400":     complain(400), "401": complain(401), "403": complain(403), "404": complain(404), "429": complain(429), "500": complain(500),
		"redirects": func(w http.ResponseWriter, sent string) {
			w.Header().Set("Location", elsewhere.URL+"/v1/completions?key="+sent)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"error in the stream": func(w http.ResponseWriter, sent string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":%q,\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n", "no: "+sent)
		},
		"refusal in the stream": func(w http.ResponseWriter, sent string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":%q,\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n", "no: "+sent)
		},
		"nonsense in the stream": func(w http.ResponseWriter, sent string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {%s\n\n", sent)
		},
		"no HTTP": func(w http.ResponseWriter, sent string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, "%s\r\n\r\n", sent)
			conn.Close()
		},
	}
	for _, kind := range []string{sim.KindVLLM, sim.KindLlamaCPP} {
		for name, behave := range behaviours {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				received := newDiary()
				worker := sim.NewServer(sim.Config{Kind: kind, Model: "sim", ContextLength: 512})
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					dump, _ := httputil.DumpRequest(r, true)
					received.Write(append(dump, '\n'))
					if got := r.Header.Get("Authorization"); got != "Bearer "+workerSecret {
						t.Errorf("%s %s: Authorization %q", r.Method, r.URL, got)
					}
					if behave != nil && r.Method == http.MethodPost && r.URL.Path != "/tokenize" {
						behave(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
						return
					}
					worker.ServeHTTP(w, r)
				}))
				defer s.Close()
				address, log := serveHere(t, "--worker", s.URL, "--worker-api-key-file", keyFile, "--model-path", folder, "--worker-wait-timeout", "50ms")
				log.await(t, "worker attached")
				for _, stream := range []string{"false", "true"} {
					req, err := http.NewRequest("POST", "http://"+address+"/v1/chat/completions?api_key="+clientSecret,
						strings.NewReader(`{"model":"sim","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":`+stream+`}`))
					if err != nil {
						t.Fatal(err)
					}
					for _, header := range []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "Openai-Organization"} {
						req.Header.Set(header, "Bearer "+clientSecret)
					}
					req.AddCookie(&http.Cookie{Name: "session", Value: clientSecret})
					req.Header.Set("X-Baton-Debug", "1")
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					answer, err := httputil.DumpResponse(resp, true)
					if err != nil {
						t.Fatal(err)
					}
					if behave == nil && (resp.StatusCode != 200 || strings.Contains(string(answer), `"error"`)) {
						t.Errorf("%s", answer)
					}
					if strings.Contains(string(answer), "w0rker") {
						t.Errorf("the client sees the worker's key: %s", answer)
					}
				}
				if got := received.String(); !strings.Contains(got, "POST") || strings.Contains(got, clientSecret) {
					t.Errorf("the worker sees the client's credentials, or nothing: %s", got)
				}
				if got := log.String(); strings.Contains(got, "w0rker") || strings.Contains(got, clientSecret) {
					t.Errorf("the log shows a key: %s", got)
				}
			})
		}
	}
}

// A worker that does not know the key says so to the log, without the key.
func TestWorkerThatRefusesTheKey(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("w0rker"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"not my key: %s"}}`, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	_, log := serveHere(t, "--worker", "vllm="+s.URL, "--worker-api-key-file", keyFile, "--model-path", modelFolder(t))
	log.await(t, `worker is not attached.*status 401.*not my key: Bearer \[key\]`)
	if strings.Contains(log.String(), "w0rker") {
		t.Error(log.String())
	}
}

// Behind https there must be a worker whose certificate this machine's authorities
// have signed; what else answers there gets no key.
func TestWorkerOfAnUnknownAuthority(t *testing.T) {
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("w0rker"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked, with %v", r.Header)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	_, log := serveHere(t, "--worker", s.URL, "--worker-api-key-file", keyFile, "--model-path", modelFolder(t))
	log.await(t, `worker is not attached.*certificate`)
}

func TestLoadSecurity(t *testing.T) {
	silent := slog.New(slog.DiscardHandler)
	for want, cfg := range map[string]config.Serve{
		"--tls-cert-path none: no such file or directory":       {TLSCertPath: "none", TLSKeyPath: "none"},
		"--api-key-file testdata: no such file or directory":    {APIKeyFile: "testdata"},
		"--worker-api-key-file .: this is a folder, not a file": {WorkerAPIKeyFile: "."},
	} {
		if _, err := loadSecurity(&cfg, silent); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	d, err := loadSecurity(&config.Serve{}, silent)
	if err != nil || d.tls != nil || d.knowsKey != nil || d.workerKey != nil {
		t.Errorf("without flags: %+v, %v", d, err)
	}
}
