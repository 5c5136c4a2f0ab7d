package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"baton/engine"
	"baton/responsestore"
)

func keeping(limitBytes int64) func(*Config) {
	return func(cfg *Config) { cfg.ResponseStore = responsestore.New(limitBytes) }
}

// ask sends a request without a body and reads the whole answer.
func ask(t testing.TB, ts *httptest.Server, method, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, ts.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := ts.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp, readAll(t, resp)
}

// responseOf is the response object of an answer, which may be a stream, and its id.
func responseOf(t testing.TB, raw []byte) (object []byte, id string) {
	t.Helper()
	object = raw
	if bytes.HasPrefix(raw, []byte("event:")) {
		events := strings.Split(strings.TrimSpace(string(raw)), "\n\n")
		_, data, _ := strings.Cut(events[len(events)-1], "\ndata: ")
		var last struct{ Response json.RawMessage }
		if err := json.Unmarshal([]byte(data), &last); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		object = last.Response
	}
	var head struct{ ID string }
	if err := json.Unmarshal(object, &head); err != nil || head.ID == "" {
		t.Fatalf("%v in %s", err, object)
	}
	return object, head.ID
}

// TestStoredResponses: a response that was complete can be asked for again, as it was
// given, and its items referred to; until it is deleted.
func TestStoredResponses(t *testing.T) {
	const both = `,"tools":"hermes","thoughts":"qwen3"`
	const much = `<think>hm</think>a` + `<tool_call>{"name": "f", "arguments": {"x": "é\u2028"}}</tool_call>`
	for _, test := range []struct {
		name, members string
		text          Generator
		items         int // -1 = it is not kept
	}{
		{"a text", `,"keep":true`, says("Hel", "lo"), 1},
		{"much", `,"keep":true` + both, says(much), 3},
		{"a text cut", `,"keep":true`, fakeText(cutByBudget("Hel")), 1},
		{"nothing, cut", `,"keep":true`, fakeText(cutByBudget("")), 0},
		{"not to be kept", ``, says("Hel", "lo"), -1},
		{"failed", `,"keep":true`, fails(&engine.Error{Kind: engine.Disconnected}, "Hel"), -1},
	} {
		for _, stream := range []string{`,"stream":true`, ``} {
			ts := newRig(test.text, keeping(1<<20)).serve(t)
			_, raw := post(t, ts, responsesPath, `{"model":"m"`+stream+test.members+`}`)
			if stream == "" && bytes.HasPrefix(raw, []byte(`{"error"`)) {
				continue // it has no id
			}
			if test.items < 0 && test.name == "failed" {
				raw = raw[:bytes.Index(raw, []byte("event: error"))]
			}
			object, id := responseOf(t, raw)
			resp, got := get(t, ts, "/v1/responses/"+id)
			if test.items < 0 {
				if e := wantError(t, resp, got, 404, "not_found"); !strings.Contains(e.Error.Message, "'"+id+"' not found: responses are kept in the memory") {
					t.Errorf("%s: %s", test.name, got)
				}
				continue
			}
			if !bytes.Equal(got, object) || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: GET is\n%s, the answer was\n%s", test.name, got, object)
			}
			output := readReplyObject(t, got).Output
			if len(output) != test.items {
				t.Errorf("%s: %d items in %s", test.name, len(output), got)
			}
			for _, item := range output {
				if resp, raw := post(t, ts, responsesPath, `{"model":"m","refer":"`+item.ID+`"}`); resp.StatusCode != 200 {
					t.Errorf("%s: item %s: %s", test.name, item.ID, raw)
				}
			}
			resp, got = ask(t, ts, "DELETE", "/v1/responses/"+id)
			if want := `{"id":"` + id + `","object":"response","deleted":true}`; resp.StatusCode != 200 || string(got) != want {
				t.Errorf("%s: %d %s, want %s", test.name, resp.StatusCode, got, want)
			}
			for _, method := range []string{"GET", "DELETE"} {
				resp, got = ask(t, ts, method, "/v1/responses/"+id)
				wantError(t, resp, got, 404, "not_found")
			}
			resp, got = post(t, ts, responsesPath, `{"model":"m","previous":"`+id+`"}`)
			wantError(t, resp, got, 400, "previous_response_not_found")
		}
	}
}

// TestStoredInTime: whoever has seen the end of a stream can refer to it, though the
// stream itself has not ended.
func TestStoredInTime(t *testing.T) {
	ts := newRig(says("x"), keeping(1<<20)).serve(t)
	for range 50 {
		resp, err := request(ts, responsesPath, `{"model":"m","stream":true,"keep":true}`)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), `data: {"type":"response.completed"`) {
		}
		_, rest, _ := strings.Cut(lines.Text(), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		if resp, raw := get(t, ts, "/v1/responses/"+id); resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, raw)
		}
		resp.Body.Close()
	}
}

// TestInputItems: the conversation before a response, in pages.
func TestInputItems(t *testing.T) {
	ts := newRig(says("x"), keeping(1<<20)).serve(t)
	var want []string // ids, the oldest first
	last := ""
	for range 15 {
		_, raw := post(t, ts, responsesPath, `{"model":"m","keep":true,"previous":"`+last+`"}`)
		_, last = responseOf(t, raw)
		want = append(want, "in_"+last, readReplyObject(t, raw).Output[0].ID)
	}
	want = want[:len(want)-1]
	newest := slices.Clone(want)
	slices.Reverse(newest)
	path := "/v1/responses/" + last + "/input_items"
	type list struct {
		Object string
		Data   []struct{ ID string }
		First  *string `json:"first_id"`
		Last   *string `json:"last_id"`
		More   bool    `json:"has_more"`
	}
	for query, expected := range map[string]struct {
		ids  []string
		more bool
	}{
		``:                              {newest[:20], true},
		`?limit=100&include=x`:          {newest, false},
		`?order=asc&limit=29`:           {want, false},
		`?order=asc&limit=28`:           {want[:28], true},
		`?after=` + newest[19]:          {newest[20:], false},
		`?order=asc&after=` + want[19]:  {want[20:], false},
		`?limit=3&after=` + newest[7]:   {newest[8:11], true},
		`?order=desc&after=` + want[0]:  {nil, false},
		`?order=asc&after=` + newest[0]: {nil, false},
	} {
		resp, raw := get(t, ts, path+query)
		var got list
		if err := json.Unmarshal(raw, &got); err != nil || resp.StatusCode != 200 || got.Object != "list" || got.Data == nil {
			t.Fatalf("%s: %v in %s", query, err, raw)
		}
		var ids []string
		for _, item := range got.Data {
			ids = append(ids, item.ID)
		}
		if !slices.Equal(ids, expected.ids) || got.More != expected.more {
			t.Errorf("%s: %s, more: %v; want %s, %v", query, ids, got.More, expected.ids, expected.more)
		}
		if n := len(ids); n == 0 && (got.First != nil || got.Last != nil) || n > 0 && (*got.First != ids[0] || *got.Last != ids[n-1]) {
			t.Errorf("%s: %s", query, raw)
		}
	}
	for query, param := range map[string]string{`?limit=0`: "limit", `?limit=101`: "limit", `?limit=x`: "limit", `?order=up`: "order", `?after=msg_none`: "after"} {
		resp, raw := get(t, ts, path+query)
		if e := wantError(t, resp, raw, 400, "invalid_value"); *e.Error.Param != param {
			t.Errorf("%s: %s", query, raw)
		}
	}
	resp, raw := get(t, ts, "/v1/responses/resp_none/input_items")
	wantError(t, resp, raw, 404, "not_found")
}

func TestStoredRoutes(t *testing.T) {
	ts := newRig(says("x"), keeping(1<<20)).serve(t)
	_, raw := post(t, ts, responsesPath, `{"model":"m","keep":true}`)
	_, id := responseOf(t, raw)
	path := "/v1/responses/" + id
	for _, query := range []string{"?stream=true", "?stream=1&starting_after=3"} {
		resp, raw := get(t, ts, path+query)
		wantError(t, resp, raw, 400, "unsupported_parameter")
	}
	if resp, raw := get(t, ts, path+"?stream=false&include=reasoning.encrypted_content"); resp.StatusCode != 200 {
		t.Errorf("%s", raw)
	}
	if resp, raw := ask(t, ts, "HEAD", path); resp.StatusCode != 200 || len(raw) > 0 {
		t.Errorf("HEAD: %d %s", resp.StatusCode, raw)
	}
	for route, allow := range map[string]string{path: "GET, HEAD, DELETE", path + "/input_items": "GET, HEAD"} {
		resp, raw := ask(t, ts, "PUT", route)
		if wantError(t, resp, raw, 405, "method_not_allowed"); resp.Header.Get("Allow") != allow {
			t.Errorf("%s: Allow %q", route, resp.Header.Get("Allow"))
		}
	}
	for _, route := range []string{path + "/cancel", "/v1/responses/", path + "/input_items/x", "/v1/responses/compact", "/v1/responses/input_tokens"} {
		resp, raw := ask(t, ts, "POST", route)
		wantError(t, resp, raw, 404, "not_found")
	}
	resp, raw := get(t, ts, "/v1/responses/resp_%0a%22x")
	if e := wantError(t, resp, raw, 404, "not_found"); strings.ContainsAny(e.Error.Message, "\n") {
		t.Errorf("%s", raw)
	}
}

// TestStoredByKey: to clients with another key a response does not exist.
func TestStoredByKey(t *testing.T) {
	rig := newRig(says("x"), keeping(1<<20), func(cfg *Config) {
		cfg.KnowsKey = func(key string) bool { return key == "alpha-key" || key == "beta-key" }
	})
	ts := rig.serve(t)
	mine, others := []string{"Authorization", "Bearer alpha-key"}, []string{"Authorization", "bearer beta-key"}
	_, raw := post(t, ts, responsesPath, `{"model":"m","keep":true}`, mine...)
	_, id := responseOf(t, raw)
	item := readReplyObject(t, raw).Output[0].ID
	path := "/v1/responses/" + id
	resp, raw := ask(t, ts, "GET", path)
	wantError(t, resp, raw, 401, "invalid_api_key")
	for _, route := range [][2]string{{"GET", path}, {"GET", path + "/input_items"}, {"DELETE", path}} {
		resp, got := ask(t, ts, route[0], route[1], others...)
		wantError(t, resp, got, 404, "not_found")
		_, none := ask(t, ts, route[0], strings.Replace(route[1], id, "resp_none", 1), others...)
		if strings.Replace(string(none), "resp_none", id, 1) != string(got) {
			t.Errorf("%s: another's response and none can be told apart: %s, %s", route, got, none)
		}
	}
	for _, members := range []string{`"previous":"` + id + `"`, `"refer":"` + item + `"`} {
		resp, got := post(t, ts, responsesPath, `{"model":"m",`+members+`}`, others...)
		wantError(t, resp, got, 400, "previous_response_not_found")
		if resp, got := post(t, ts, responsesPath, `{"model":"m",`+members+`}`, mine...); resp.StatusCode != 200 {
			t.Errorf("%s: %s", members, got)
		}
	}
	if resp, got := ask(t, ts, "DELETE", path, mine...); resp.StatusCode != 200 {
		t.Errorf("%s", got)
	}
	if log := rig.log.String(); strings.Contains(log, "alpha-key") || strings.Contains(log, "beta-key") {
		t.Errorf("the log has a key: %s", log)
	}
}

// TestStoreIsBounded: many large responses, and small ones, hold what the store may hold.
func TestStoreIsBounded(t *testing.T) {
	const limit = 1 << 20
	rig := newRig(says(strings.Repeat("x", limit/20), strings.Repeat("\n", limit/40)), keeping(limit))
	ts := rig.serve(t)
	var ids []string
	for n := range 60 {
		_, raw := post(t, ts, responsesPath, fmt.Sprintf(`{"model":"m","keep":true,"stream":%v}`, n%2 == 0))
		_, id := responseOf(t, raw)
		ids = append(ids, id)
		if got := rig.cfg.ResponseStore.Bytes(); got > limit {
			t.Fatalf("%d bytes are kept, limit %d", got, limit)
		}
	}
	if resp, raw := get(t, ts, "/v1/responses/"+ids[0]); resp.StatusCode != 404 {
		t.Errorf("the oldest is there: %.40s", raw)
	}
	if resp, _ := get(t, ts, "/v1/responses/"+ids[59]); resp.StatusCode != 200 {
		t.Error("the newest is not there")
	}
	// One that takes more than its share is given out, and not kept.
	rig = newRig(says(strings.Repeat("x", limit/2)), keeping(limit))
	ts = rig.serve(t)
	_, raw := post(t, ts, responsesPath, `{"model":"m","keep":true}`)
	_, id := responseOf(t, raw)
	if resp, _ := get(t, ts, "/v1/responses/"+id); resp.StatusCode != 404 || rig.cfg.ResponseStore.Bytes() != 0 {
		t.Errorf("%d, %d bytes are kept", resp.StatusCode, rig.cfg.ResponseStore.Bytes())
	}
}

// TestStoredAtOnce: clients that go on, look and delete at the same time, while their
// responses have to go for others, see whole responses or none.
func TestStoredAtOnce(t *testing.T) {
	const limit = 64 << 10
	rig := newRig(says(strings.Repeat("x", limit/40)), keeping(limit))
	ts := rig.serve(t)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			last := ""
			for n := range 25 {
				resp, err := request(ts, responsesPath, fmt.Sprintf(`{"model":"m","keep":true,"stream":%v,"previous":"%s"}`, n%2 == 0, last))
				if err != nil {
					return err
				}
				raw := readAll(t, resp)
				if resp.StatusCode == 400 { // it had to go
					last = ""
					continue
				}
				var object []byte
				object, last = responseOf(t, raw)
				resp, got := ask(t, ts, "GET", "/v1/responses/"+last)
				if resp.StatusCode == 200 && !bytes.Equal(got, object) {
					return fmt.Errorf("%s is not %s", got, object)
				}
				switch n % 5 {
				case 3:
					ask(t, ts, "DELETE", "/v1/responses/"+last)
				case 4:
					if resp, got := ask(t, ts, "GET", "/v1/responses/"+last+"/input_items"); resp.StatusCode == 200 && !json.Valid(got) {
						return fmt.Errorf("a list is %s", got)
					}
				}
				if got := rig.cfg.ResponseStore.Bytes(); got > limit {
					return fmt.Errorf("%d bytes are kept, limit %d", got, limit)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
