package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendJSON(t *testing.T) {
	tests := []struct {
		err  Error
		want string
	}{
		{Error{Message: "m", Type: "t"}, `{"error":{"message":"m","type":"t","param":null,"code":null}}`},
		{Error{Message: "m", Type: "t", Param: "p", Code: "c"}, `{"error":{"message":"m","type":"t","param":"p","code":"c"}}`},
		{Error{Message: `"<a>&` + "\n"}, `{"error":{"message":"\"<a>&\n","type":"","param":null,"code":null}}`},
		{Error{Message: "\xff"}, `{"error":{"message":"\ufffd","type":"","param":null,"code":null}}`},
	}
	for _, tt := range tests {
		got := string(tt.err.AppendJSON([]byte("data: ")))
		if got != "data: "+tt.want {
			t.Errorf("got %s, want data: %s", got, tt.want)
		}
	}
}

func TestConstructors(t *testing.T) {
	tests := []struct {
		err         *Error
		status      int
		typ         string
		param, code string
		message     string
	}{
		{InvalidRequest("n", "n is %d", 0), 400, TypeInvalidRequest, "n", "invalid_value", "n is 0"},
		{InvalidType("n", "an integer", "a string"), 400, TypeInvalidRequest, "n", "invalid_type", "Invalid type for 'n': expected an integer, but got a string."},
		{InvalidJSON("", "broken"), 400, TypeInvalidRequest, "", "invalid_json", "broken"},
		{Missing("model"), 400, TypeInvalidRequest, "model", "missing_required_parameter", "Missing required parameter: 'model'."},
		{Unsupported("suffix", "no"), 400, TypeInvalidRequest, "suffix", "unsupported_parameter", "'suffix' is not supported: no."},
		{ModelNotFound("x"), 404, TypeInvalidRequest, "model", "model_not_found", "The model 'x' does not exist."},
		{ModelNotReady("x", 5), 503, TypeServer, "model", "model_not_ready", "not ready yet"},
		{ContextLengthExceeded("messages", 11, 10), 400, TypeInvalidRequest, "messages", "context_length_exceeded", "maximum context length is 10 tokens. However, your messages resulted in 11 tokens"},
		{RequestTooLarge(100), 413, TypeInvalidRequest, "", "request_too_large", "100 bytes"},
		{Server(502, "bad_gateway", "gone"), 502, TypeServer, "", "bad_gateway", "gone"},
		{RateLimited(3, "busy"), 429, TypeRateLimit, "", "rate_limit_exceeded", "busy"},
	}
	for _, tt := range tests {
		e := tt.err
		if e.Status != tt.status || e.Type != tt.typ || e.Param != tt.param || e.Code != tt.code || !strings.Contains(e.Error(), tt.message) {
			t.Errorf("%+v, want %+v", e, tt)
		}
	}
	if e := ModelNotFound(strings.Repeat("é", 1000)); len(e.Message) > 400 {
		t.Errorf("message of %d bytes", len(e.Message))
	} else if data := e.AppendJSON(nil); !json.Valid(data) || !utf8.Valid(data) {
		t.Errorf("%q", data)
	}
}
