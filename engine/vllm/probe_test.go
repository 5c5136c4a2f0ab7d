package vllm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// A server that returns no ids is found out when it is attached: by its own
// description, or by what it generates.
func TestServersWithoutTokenIDs(t *testing.T) {
	for name, test := range map[string]struct {
		spec, generation string
		tooOld           bool
	}{
		"described without":             {describedAs("priority"), "", true},
		"described with":                {describedAs("return_token_ids"), "", false},
		"undescribed, text only":        {"", `{"choices":[{"index":0,"text":"Hi","finish_reason":"length"}]}`, true},
		"undescribed, null":             {"", `{"choices":[{"index":0,"text":"Hi","token_ids":null}]}`, true},
		"undescribed, with ids":         {"", `{"choices":[{"index":0,"text":"Hi","token_ids":[12]}]}`, false},
		"undescribed, refuses":          {"", "", false},
		"undescribed, another document": {`[1]`, `{"choices":[{"text":"Hi"}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{documents: map[string]string{"/v1/models": modelsJSON, "/version": `{"version":"0.9.2"}`}}
			if test.spec != "" {
				s.documents["/openapi.json"] = test.spec
			}
			if test.generation != "" {
				s.documents[completionsPath] = test.generation
			}
			_, err := clientOf(t, s).Probe(t.Context())
			if (err != nil) != test.tooOld || err != nil && (engine.AsError(err).Kind != engine.WorkerMisconfigured || !strings.Contains(err.Error(), "does not return token ids (0.10.2 is the first that does)")) {
				t.Errorf("%v; too old: %v", err, test.tooOld)
			}
		})
	}
}

// A parameter that the description lacks would be ignored without a word.
func TestParametersThatAVersionLacks(t *testing.T) {
	req := enginetest.NewRequest()
	req.CacheSalt, req.Priority = "salt", 1
	for _, test := range []struct {
		fields []string
		want   string
	}{
		{[]string{"return_token_ids", "priority", "cache_salt"}, ""},
		{[]string{"return_token_ids", "priority"}, "cache_salt"},
		{[]string{"return_token_ids", "cache_salt"}, "priority"},
	} {
		c := clientOf(t, &server{documents: map[string]string{"/v1/models": modelsJSON, "/openapi.json": describedAs(test.fields...)}})
		if _, err := c.Probe(t.Context()); err != nil || c.Unsupported(req) != test.want {
			t.Errorf("%v: lacks %q, want %q; %v", test.fields, c.Unsupported(req), test.want, err)
		}
	}
	if Parameters[engine.CacheSalt].Fidelity == engine.Unsupported || Parameters[engine.JSONSchema].Fidelity == engine.Unsupported {
		t.Error("the package's table was changed")
	}
}

// A server of before 0.11 would ignore a constraint without a word.
func TestConstraintsThatAVersionLacks(t *testing.T) {
	req := enginetest.NewRequest()
	req.Constraint = &engine.Constraint{Choice: []string{"a"}}
	for _, test := range []struct {
		fields []string
		want   string
	}{{[]string{"return_token_ids", "structured_outputs"}, ""}, {[]string{"return_token_ids", "guided_choice"}, "guided_choice"}} {
		c := clientOf(t, &server{documents: map[string]string{"/v1/models": modelsJSON, "/openapi.json": describedAs(test.fields...)}})
		if _, err := c.Probe(t.Context()); err != nil || c.Unsupported(req) != test.want {
			t.Errorf("%v: lacks %q, want %q; %v", test.fields, c.Unsupported(req), test.want, err)
		}
	}
	for version, want := range map[string]string{"0.10.2": "guided_choice", "0.11.0": "", "1.0.0": "", "main": ""} {
		if got := (&spec{}).parameters(version).Unsupported(req); got != want {
			t.Errorf("%s, which does not describe its requests, lacks %q, want %q", version, got, want)
		}
	}
}

// What a worker refuses because of how it was started, another one may take, and
// the worker is not asked again.
func TestLimitsOfItsOwn(t *testing.T) {
	const (
		long      = `{"error":{"message":"This model's maximum context length is 2048 tokens. However, your prompt contains 3000 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}`
		full      = `{"error":{"message":"max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)","type":"BadRequestError","param":"max_tokens","code":400}}`
		logprobs  = `{"error":{"message":"Requested sample logprobs of 20, which is greater than max allowed: 5","type":"BadRequestError","param":"logprobs","code":400}}`
		unqueued  = `{"error":{"message":"Got priority 3 but Priority scheduling is not enabled.","type":"BadRequestError","param":null,"code":400}}`
		hot       = `{"error":{"message":"temperature must be non-negative, got -1.","type":"BadRequestError","param":"temperature","code":400}}`
		frameLong = `{"error": {"message": "The decoder prompt (length 3000) is longer than the maximum model length of 2048. Make sure that it is no smaller.", "type": "BadRequestError", "param": null, "code": 400}}`
	)
	for name, test := range map[string]struct {
		body      string
		elsewhere bool
		lacks     string
	}{
		"prompt":       {long, true, ""},
		"full context": {full, true, ""},
		"logprobs":     {logprobs, true, "logprobs"},
		"priority":     {unqueued, true, "priority"},
		"the request":  {hot, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{documents: map[string]string{"/v1/models": modelsJSON, "/version": `{"version":"0.24.0"}`, "/openapi.json": describedAs("return_token_ids", "priority", "cache_salt")}}
			c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					io.Copy(io.Discard, r.Body)
					respond(400, test.body)(w, r)
					return
				}
				s.ServeHTTP(w, r)
			}))
			if _, err := c.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			req := enginetest.NewRequest()
			req.Priority, req.Output = 3, engine.OutputOptions{Logprobs: true, TopLogprobs: 20}
			if c.Unsupported(req) != "" {
				t.Fatalf("before it refused: %q", c.Unsupported(req))
			}
			for _, err := range c.Generate(t.Context(), req) {
				e := engine.AsError(err)
				if e.Kind != engine.InvalidRequest || e.Elsewhere != test.elsewhere || e.Message == "" {
					t.Errorf("%+v", e)
				}
			}
			if got := c.Unsupported(req); got != test.lacks {
				t.Errorf("it lacks %q, want %q", got, test.lacks)
			}
			req.Priority, req.Output.TopLogprobs = 0, 5
			if got := c.Unsupported(req); got != "" {
				t.Errorf("within its limits it lacks %q", got)
			}
			s.documents["/version"] = `{"version":"0.32.0"}` // restarted as another one
			req.Priority, req.Output.TopLogprobs = 3, 20
			if _, err := c.Probe(t.Context()); err != nil || c.Unsupported(req) != "" {
				t.Errorf("another version lacks %q, %v", c.Unsupported(req), err)
			}
		})
	}
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", frameLong)
	}))
	for _, err := range c.Generate(t.Context(), enginetest.NewRequest()) {
		if e := engine.AsError(err); e.Kind != engine.InvalidRequest || !e.Elsewhere {
			t.Errorf("as an event: %+v", e)
		}
	}
}
