package enginetest

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// RunTokenize checks that a client asks POST /tokenize with the body that is
// wanted for the text "a b" of the model "m", and what it makes of the answers.
func RunTokenize(t *testing.T, newClient NewClient, wantBody string) {
	for answer, test := range map[string]struct {
		status int
		ids    []engine.TokenID
		kind   engine.Kind // of the error, if one is wanted
		fails  bool
	}{
		`{"tokens":[4,7]}`:       {status: 200, ids: []engine.TokenID{4, 7}},
		`{"tokens":[]}`:          {status: 200},
		`{"tokens":["a"]}`:       {status: 200},
		`no JSON`:                {status: 200},
		`{"detail":"Not Found"}`: {status: 404},
		`{"error":"busy"}`:       {status: 503},
		``:                       {fails: true, kind: engine.Disconnected},
	} {
		synctest.Test(t, func(t *testing.T) {
			var network Network
			defer network.Serve("w:1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var got, want any
				if json.Unmarshal(body, &got) != nil || json.Unmarshal([]byte(wantBody), &want) != nil || !reflect.DeepEqual(got, want) || r.Method+r.URL.Path != "POST/tokenize" {
					t.Errorf("%s %s: %s, want %s", r.Method, r.URL.Path, body, wantBody)
				}
				if test.fails {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(test.status)
				io.WriteString(w, answer)
			}))()
			client := newClient(t, transport.Options{URL: "http://w:1", DialContext: network.DialContext, ConnectTimeout: time.Second})
			ids, ok, err := client.Tokenize(t.Context(), "m", "a b")
			if ok != (test.ids != nil) || ok && !reflect.DeepEqual(ids, test.ids) || (err != nil) != test.fails || test.fails && engine.AsError(err).Kind != test.kind {
				t.Errorf("%s: %v, %v, %v", answer, ids, ok, err)
			}
		})
	}
}
