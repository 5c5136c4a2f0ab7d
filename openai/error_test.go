package openai

import (
	"strings"
	"testing"
)

func TestConstructors(t *testing.T) {
	long := strings.Repeat("l", maxListedBytes+1)
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
		{ModelNotFound("x", nil), 404, TypeInvalidRequest, "model", "model_not_found", "The model 'x' does not exist; there is none at the moment."},
		{ModelNotFound("x", []string{"a", "org/b"}), 404, TypeInvalidRequest, "model", "model_not_found", "The model 'x' does not exist; there is: a, org/b."},
		{ModelNotFound("x", []string{"a", long, "c"}), 404, TypeInvalidRequest, "model", "model_not_found", "The model 'x' does not exist; there is: a, …; GET /v1/models lists all."},
		{ModelNotFound("x", []string{long}), 404, TypeInvalidRequest, "model", "model_not_found", "The model 'x' does not exist; GET /v1/models lists those that do."},
		{ModelNotReady("x", 5), 503, TypeServer, "model", "model_not_ready", "not ready yet"},
		{ContextLengthExceeded("messages", 11, 10), 400, TypeInvalidRequest, "messages", "context_length_exceeded", "maximum context length is 10 tokens. However, your messages resulted in 11 tokens"},
		{RequestTooLarge(100), 413, TypeInvalidRequest, "", "request_too_large", "100 bytes"},
	}
	for _, tt := range tests {
		e := tt.err
		if e.Status != tt.status || e.Type != tt.typ || e.Param != tt.param || e.Code != tt.code || !strings.Contains(e.Error(), tt.message) {
			t.Errorf("%+v, want %+v", e, tt)
		}
	}
	if e := ModelNotFound(strings.Repeat("é", 1000), nil); len(e.Message) > 400 {
		t.Errorf("message of %d bytes", len(e.Message))
	}
}
