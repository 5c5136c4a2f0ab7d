package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"baton/backend"
)

func knowsOnly(good string) func(*Config) {
	return func(c *Config) { c.KnowsKey = func(key string) bool { return key == good } }
}

func allows(origins ...string) func(*Config) {
	return func(c *Config) { c.CORSOrigins = origins }
}

// do sends a request without a body.
func do(t *testing.T, ts *httptest.Server, method, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, ts.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp, readAll(t, resp)
}

func TestKeys(t *testing.T) {
	rig := newRig(says("x"), knowsOnly("s3cret"))
	ts := rig.serve(t)
	for _, value := range []string{"Bearer s3cret", "bearer s3cret", "BEARER   s3cret "} {
		if resp, raw := do(t, ts, "GET", "/v1/models", "Authorization", value); resp.StatusCode != 200 {
			t.Errorf("%q: %d %s", value, resp.StatusCode, raw)
		}
		if resp, raw := post(t, ts, chatPath, `{"model":"m"}`, "Authorization", value); resp.StatusCode != 200 {
			t.Errorf("%q: %d %s", value, resp.StatusCode, raw)
		}
	}
	calls := rig.preparer.calls.Load()
	for value, challenge := range map[string]string{
		"":                        `Bearer realm="baton"`,
		"Bearer":                  `Bearer realm="baton"`,
		"Bearer ":                 `Bearer realm="baton"`,
		"s3cret":                  `Bearer realm="baton"`,
		"Basic s3cret":            `Bearer realm="baton"`,
		"Bearers3cret":            `Bearer realm="baton"`,
		"Bearer s3cre":            `Bearer realm="baton", error="invalid_token"`,
		"Bearer s3cret2":          `Bearer realm="baton", error="invalid_token"`,
		"Bearer S3CRET":           `Bearer realm="baton", error="invalid_token"`,
		"Bearer Bearer s3cret":    `Bearer realm="baton", error="invalid_token"`,
		"Bearer wr0ng, Bearer x1": `Bearer realm="baton", error="invalid_token"`,
	} {
		for _, path := range []string{chatPath, "/v1/models", "/v1/models/m", "/", "/nothing", "/health/", "/health/../v1/models", "//health", "/Health", "/metrics/x"} {
			var resp *http.Response
			var raw []byte
			if path == chatPath {
				resp, raw = post(t, ts, path, `{"model":"m"}`, "Authorization", value)
			} else {
				resp, raw = do(t, ts, "GET", path, "Authorization", value)
			}
			e := wantError(t, resp, raw, 401, "invalid_api_key")
			if e.Error.Type != "invalid_request_error" || resp.Header.Get("WWW-Authenticate") != challenge || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("%q at %s: %s, %v", value, path, raw, resp.Header)
			}
			if strings.Contains(string(raw), "wr0ng") {
				t.Errorf("the answer repeats the key: %s", raw)
			}
		}
	}
	if n := rig.preparer.calls.Load(); n != calls {
		t.Errorf("%d requests without a good key were looked at", n-calls)
	}
	for _, path := range []string{"/health", "/health?model=m", "/live", "/metrics", "/version"} {
		if resp, raw := get(t, ts, path); resp.StatusCode != 200 {
			t.Errorf("%s without a key: %d %s", path, resp.StatusCode, raw)
		}
	}
	if log := rig.log.String(); strings.Contains(log, "s3cre") || strings.Contains(log, "wr0ng") {
		t.Errorf("the log shows a key: %s", log)
	}
}

// A client without a key that sends a long prompt gets its answer all the same,
// and its connection goes on.
func TestRefusedBodyIsReceived(t *testing.T) {
	ts := newRig(says("x"), knowsOnly("s3cret")).serve(t)
	body := strings.Repeat("x", 4<<20)
	for i := range 2 {
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
		req, err := http.NewRequestWithContext(ctx, "POST", ts.URL+chatPath, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := ts.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, resp, readAll(t, resp), 401, "invalid_api_key")
		if reused != (i > 0) {
			t.Errorf("request %d on a kept connection: %v", i, reused)
		}
	}
}

func TestPreflight(t *testing.T) {
	const page, header = "https://page.example", "authorization,content-type,x-stainless-lang"
	ask := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", header}
	// With keys on, because a preflight brings none.
	for origins, want := range map[string]string{page: page, "https://other.example " + page: page, "*": "*"} {
		ts := newRig(says("x"), knowsOnly("s3cret"), allows(strings.Fields(origins)...)).serve(t)
		resp, raw := do(t, ts, "OPTIONS", chatPath, append(ask, "Origin", page)...)
		h := resp.Header
		if resp.StatusCode != 204 || len(raw) > 0 || h.Get("Access-Control-Allow-Origin") != want || h.Get("Access-Control-Allow-Methods") != "GET, HEAD, POST, DELETE" ||
			h.Get("Access-Control-Allow-Headers") != header || h.Get("Access-Control-Max-Age") == "" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origins %s: %d %v", origins, resp.StatusCode, h)
		}
		if got := strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin"); got != (origins != "*") {
			t.Errorf("origins %s: Vary %v", origins, h.Values("Vary"))
		}
	}
	for name, change := range map[string]func(*Config){"off": allows(), "another": allows("https://other.example")} {
		ts := newRig(says("x"), change).serve(t)
		for _, origin := range []string{page, "null", "https://other.example.evil", "https://other.example:8443", "http://other.example"} {
			resp, _ := do(t, ts, "OPTIONS", chatPath, append(ask, "Origin", origin)...)
			if resp.StatusCode != 405 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s, from %s: %d %v", name, origin, resp.StatusCode, resp.Header)
			}
		}
	}
	ts := newRig(says("x"), allows("*")).serve(t)
	for _, names := range []string{"a b\"c", "x:y", "", strings.Repeat("x", maxCORSHeadersBytes+1)} {
		resp, _ := do(t, ts, "OPTIONS", chatPath, "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", names)
		if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Headers") != "" {
			t.Errorf("%.20q: %d %v", names, resp.StatusCode, resp.Header)
		}
	}
	// An OPTIONS that is no preflight is what it was.
	if resp, _ := do(t, ts, "OPTIONS", chatPath, "Origin", page); resp.StatusCode != 405 || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// Answers and errors of every kind can be read by the page, and by no other.
func TestCORSAnswers(t *testing.T) {
	const page = "https://page.example"
	ts := newRig(says("x", "y"), knowsOnly("s3cret"), allows(page)).serve(t)
	for name, send := range map[string]func(origin string) (*http.Response, []byte){
		"answer": func(origin string) (*http.Response, []byte) {
			return post(t, ts, chatPath, `{"model":"m"}`, "Origin", origin, "Authorization", "Bearer s3cret")
		},
		"stream": func(origin string) (*http.Response, []byte) {
			return post(t, ts, chatPath, `{"model":"m","stream":true}`, "Origin", origin, "Authorization", "Bearer s3cret")
		},
		"400": func(origin string) (*http.Response, []byte) {
			return post(t, ts, chatPath, `no`, "Origin", origin, "Authorization", "Bearer s3cret")
		},
		"401": func(origin string) (*http.Response, []byte) { return do(t, ts, "GET", "/v1/models", "Origin", origin) },
		"panic": func(origin string) (*http.Response, []byte) {
			return post(t, ts, chatPath, `{"model":"m","panic":true}`, "Origin", origin, "Authorization", "Bearer s3cret")
		},
		"health": func(origin string) (*http.Response, []byte) { return do(t, ts, "GET", "/health", "Origin", origin) },
	} {
		for origin, want := range map[string]string{page: page, "https://evil.example": "", "": ""} {
			resp, raw := send(origin)
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want || resp.Header.Get("Vary") != "Origin" {
				t.Errorf("%s for %q: Allow-Origin %q, Vary %q (%d %s)", name, origin, got, resp.Header.Get("Vary"), resp.StatusCode, raw)
			}
			if exposed := resp.Header.Get("Access-Control-Expose-Headers"); (exposed != "") != (want != "") || want != "" && !strings.Contains(exposed, requestIDHeader) {
				t.Errorf("%s for %q: exposed %q", name, origin, exposed)
			}
		}
	}
}

// Over HTTP/2, each event leaves at once: the next word is said only when the
// client has read the one before.
func TestHTTP2Flushes(t *testing.T) {
	read := make(chan struct{})
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		for i, w := range []string{"one", "two", "three"} {
			if !yield(token(i+1, w), nil) {
				return
			}
			select {
			case <-read:
			case <-ctx.Done():
				t.Error("the client did not get an event before the next one")
				return
			}
		}
		yield(finish(4), nil)
	})
	rig := newRig(text, knowsOnly("s3cret"), allows("*"))
	ts := httptest.NewUnstartedServer(rig.Handler())
	ts.EnableHTTP2 = true
	ts.StartTLS()
	defer ts.Close()
	resp, err := request(ts, chatPath, `{"model":"m","stream":true}`, "Authorization", "Bearer s3cret", "Origin", "https://page.example")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Fatalf("%s %v", resp.Proto, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, word := range []string{`"one"`, `"two"`, `"three"`, "[DONE]"} {
		for lines.Scan() && !strings.Contains(lines.Text(), word) {
		}
		if err := lines.Err(); err != nil || !strings.Contains(lines.Text(), word) {
			t.Fatalf("%s did not come: %v", word, err)
		}
		if word != "[DONE]" {
			read <- struct{}{}
		}
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

// A client that leaves in the middle of an HTTP/2 stream frees the worker, and
// the connection goes on to serve others.
func TestHTTP2ClientLeaves(t *testing.T) {
	left := make(chan struct{})
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		if yield(token(1, "one"), nil) { // else it left before the token
			<-ctx.Done()
		}
		close(left)
	})
	rig := newRig(text)
	ts := httptest.NewUnstartedServer(rig.Handler())
	ts.EnableHTTP2 = true
	ts.StartTLS()
	defer ts.Close()
	made := 0
	client := ts.Client().Transport.(*http.Transport)
	client.DialTLSContext = nil
	client.TLSClientConfig.VerifyConnection = func(tls.ConnectionState) error { made++; return nil }
	resp, err := request(ts, chatPath, `{"model":"m","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-left
	if resp, _ := get(t, ts, "/health"); resp.ProtoMajor != 2 || made != 1 {
		t.Errorf("%s, %d connections", resp.Proto, made)
	}
}
