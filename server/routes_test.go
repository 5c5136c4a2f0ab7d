package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/router"
)

func TestUnknownRoutesAndMethods(t *testing.T) {
	ts := newRig(says("x")).serve(t)
	for _, path := range []string{"/", "/v1", "/v1/chat", "/v2/models", "/health/x", "/%00"} {
		resp, raw := get(t, ts, path)
		wantError(t, resp, raw, 404, "not_found")
		if resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", path)
		}
	}
	for path, meant := range map[string]string{
		"/": "/v1/chat/completions", "/v1/": "/v1/chat/completions", "/chat/completions": "/v1/chat/completions", "/v1/v1/models": ": /v1/models",
		"/models": "/v1/models", "/v1/v1/secret": "/v1/v1/secret.", "/v1/embeddings": "/v1/embeddings.",
	} {
		resp, raw := get(t, ts, path)
		if e := wantError(t, resp, raw, 404, "not_found"); !strings.Contains(e.Error.Message, meant) {
			t.Errorf("%s: %s", path, raw)
		}
	}
	for path, allow := range map[string]string{
		chatPath: "POST", textPath: "POST", responsesPath: "POST", "/v1/models": "GET, HEAD", "/v1/models/m": "GET, HEAD", "/health": "GET, HEAD", "/metrics": "GET, HEAD",
	} {
		req, _ := http.NewRequest("DELETE", ts.URL+path, nil)
		resp, err := ts.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw := readAll(t, resp)
		wantError(t, resp, raw, 405, "method_not_allowed")
		if got := resp.Header.Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q, want %q", path, got, allow)
		}
	}
	for _, path := range []string{"/v1/responses/resp_1", "/v1/responses/resp_1/input_items", "/v1/responses/"} {
		resp, raw := get(t, ts, path)
		if e := wantError(t, resp, raw, 404, "not_found"); !strings.Contains(e.Error.Message, "not stored") {
			t.Errorf("%s: %s", path, raw)
		}
	}
	if resp, raw := get(t, ts, chatPath); resp.StatusCode != 405 {
		t.Errorf("GET of chat: %d %s", resp.StatusCode, raw)
	}
}

func TestModels(t *testing.T) {
	rig := newRig(says("x"))
	rig.fleet = fakeFleet{
		{Name: "m", Ready: 1, Total: 2, ContextLength: 4096, Since: time.Unix(1790000000, 0)},
		{Name: "org/m \"x\"", Total: 1},
	}
	ts := rig.serve(t)
	type model struct {
		ID, Object string
		Created    int64
		OwnedBy    string `json:"owned_by"`
		MaxLen     *int   `json:"max_model_len"`
	}
	var list struct {
		Object string
		Data   []model
	}
	_, raw := get(t, ts, "/v1/models")
	if err := json.Unmarshal(raw, &list); err != nil || list.Object != "list" || len(list.Data) != 2 {
		t.Fatalf("%v in %s", err, raw)
	}
	if m := list.Data[0]; m.ID != "m" || m.Object != "model" || m.Created != 1790000000 || m.OwnedBy == "" || *m.MaxLen != 4096 {
		t.Errorf("model %+v", m)
	}
	for _, path := range []string{"/v1/models/org/m%20%22x%22", "/v1/models/org%2Fm%20%22x%22"} {
		var one model
		resp, raw := get(t, ts, path)
		if err := json.Unmarshal(raw, &one); err != nil || resp.StatusCode != 200 || one.ID != "org/m \"x\"" || one.MaxLen != nil {
			t.Errorf("%s: %v in %s", path, err, raw)
		}
	}
	resp, raw := get(t, ts, "/v1/models/none/such")
	if e := wantError(t, resp, raw, 404, "model_not_found"); *e.Error.Param != "model" {
		t.Errorf("error %s", raw)
	}
}

func TestHealth(t *testing.T) {
	rig := newRig(says("x"))
	rig.fleet = fakeFleet{{Name: "up", Ready: 1, Total: 2}, {Name: "down", Total: 1}}
	ts := rig.serve(t)
	for path, status := range map[string]int{"/health": 200, "/health?model=up": 200, "/health?model=down": 503, "/health?model=none": 503, "/live": 200} {
		if resp, raw := get(t, ts, path); resp.StatusCode != status || !json.Valid(raw) {
			t.Errorf("%s: %d %s, want %d", path, resp.StatusCode, raw, status)
		}
	}
	var body struct {
		Status string
		Models []struct {
			Name           string
			Ready, Workers int
		}
	}
	_, raw := get(t, ts, "/health")
	if err := json.Unmarshal(raw, &body); err != nil || body.Status != "ready" || len(body.Models) != 2 || body.Models[0].Workers != 2 {
		t.Errorf("%v in %s", err, raw)
	}
	if !strings.HasSuffix(string(raw), `"unattached_workers":["10.0.0.2:8000","10.0.0.3:8000"]}`) {
		t.Errorf("workers that never came up: %s", raw)
	}
	rig.fleet = fakeFleet([]router.ModelStatus{{Name: "up", Total: 2}})
	if resp, raw := get(t, ts, "/health"); resp.StatusCode != 503 || !strings.Contains(string(raw), "not ready") {
		t.Errorf("without workers: %d %s", resp.StatusCode, raw)
	}
}

func TestVersion(t *testing.T) {
	if _, raw := get(t, newRig(says("x")).serve(t), "/version"); string(raw) != `{"version":"1.2.3"}` {
		t.Errorf("version %s", raw)
	}
}

func TestRequestID(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	resp, raw := post(t, ts, chatPath, `{"model":"m"}`, "X-Request-Id", "client-7")
	if got := resp.Header.Get("X-Request-Id"); got != "client-7" {
		t.Errorf("the client's id is not echoed: %q", got)
	}
	if id := readReply(t, raw).ID; !strings.HasPrefix(id, "chatcmpl-") || len(id) < 20 {
		t.Errorf("id %q", id)
	}
	if !strings.Contains(rig.log.String(), "client_request_id=client-7") {
		t.Errorf("log %s", rig.log)
	}
	for _, bad := range []string{strings.Repeat("x", 129), "a b", "é"} {
		resp, _ := post(t, ts, chatPath, `{"model":"m"}`, "X-Request-Id", bad)
		if got := resp.Header.Get("X-Request-Id"); !strings.HasPrefix(got, "chatcmpl-") {
			t.Errorf("%q is echoed as %q", bad, got)
		}
	}
	if resp, _ := get(t, ts, "/nowhere"); resp.Header.Get("X-Request-Id") == "" {
		t.Error("no id on a 404")
	}
}
