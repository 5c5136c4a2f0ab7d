package server

import (
	"net/http"
	"strings"

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
			w.Header().Set("WWW-Authenticate", `Bearer realm="baton", error="invalid_token"`)
			writeError(w, errUnauthorized("The API key is not valid here."))
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="baton"`)
			writeError(w, errUnauthorized("No API key was presented; send one in the header Authorization, as Bearer and the key."))
		}
	})
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
