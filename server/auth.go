package server

import (
	"io"
	"net/http"
	"strings"
	"time"

	"baton/openai"
)

// openPaths need no key: probes, scrapers and people who look whether it lives
// have none.
var openPaths = map[string]bool{"/health": true, "/live": true, "/metrics": true, "/version": true}

// authenticated lets requests through that present a key which cfg.KnowsKey
// knows, as RFC 6750 says. The path is compared as it stands, so that no way of
// writing one leads past.
func (s *Server) authenticated(next http.Handler) http.Handler {
	if s.cfg.KnowsKey == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, presented := bearer(r)
		switch {
		case openPaths[r.URL.Path] || presented && s.cfg.KnowsKey(key):
			next.ServeHTTP(w, r)
		case presented:
			s.refuseKey(w, r, `Bearer realm="baton", error="invalid_token"`, "The API key is not valid here.")
		default:
			s.refuseKey(w, r, `Bearer realm="baton"`, "No API key was presented; send one in the header Authorization, as Bearer and the key.")
		}
	})
}

// maxRefusedBodyBytes is how much of the body of a refused request is received.
const maxRefusedBodyBytes = 8 << 20

// refuseKey answers 401. Many clients read an answer only when they have sent
// all, and closing early would reset the connection under them; what they send is
// thrown away, within the deadline that limitBody has set.
//
// A request of the generation API is counted and is in the access log, where
// whoever gets no answer is looked for. It makes no trace: those are kept for long,
// and whoever has no key must not be able to fill them.
func (s *Server) refuseKey(w http.ResponseWriter, r *http.Request, challenge, message string) {
	start := time.Now()
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, maxRefusedBodyBytes)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	refusal := errUnauthorized(message)
	ep := endpointOf(r)
	if ep == nil {
		writeError(w, refusal)
		return
	}
	c := &call{server: s, ep: ep, ids: requestIDsOf(r.Context()), start: start, from: origin{remote: r.RemoteAddr}, stranger: true}
	c.refuse(w, refusal)
}

// endpointOf is the endpoint of the generation API that a request is for, or nil.
func endpointOf(r *http.Request) *endpoint {
	switch {
	case r.Method != http.MethodPost:
		return nil
	case r.URL.Path == "/v1/chat/completions":
		return &chatCompletions
	case r.URL.Path == "/v1/completions":
		return &completions
	case r.URL.Path == "/v1/responses":
		return &responses
	}
	return nil
}

// bearer returns the key that a request presents.
func bearer(r *http.Request) (key string, presented bool) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.Trim(key, " ")
	return key, key != "" && strings.EqualFold(scheme, "Bearer")
}

// errUnauthorized has the type and the code that OpenAI's API has then. It does
// not repeat the key, not even a part of it.
func errUnauthorized(message string) *openai.Error {
	return &openai.Error{
		Status:  http.StatusUnauthorized,
		Message: message,
		Type:    openai.TypeInvalidRequest,
		Code:    "invalid_api_key",
	}
}
