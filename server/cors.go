package server

import (
	"net/http"
	"slices"
	"strings"
)

// What pages of other origins may do and see (https://fetch.spec.whatwg.org, "CORS
// protocol"). Credentials of the browser, such as cookies, are never asked for: a
// page presents its key itself.
const (
	anyOrigin      = "*"
	corsMethods    = "GET, HEAD, POST, DELETE"
	corsMaxAge     = "600" // seconds for which a browser remembers a preflight
	exposedHeaders = "Retry-After, X-Request-Id, X-Baton-Attempts, X-Baton-Migrations"

	maxCORSHeadersBytes = 4096 // of the names that a preflight asks for
)

// withCORS answers preflights, and marks all answers, errors too, such that
// browsers show them to the pages of cfg.CORSOrigins. It stands before the check
// of keys, because a preflight brings none.
func (s *Server) withCORS(next http.Handler) http.Handler {
	origins := s.cfg.CORSOrigins
	if len(origins) == 0 {
		return next
	}
	every := slices.Contains(origins, anyOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		if !every {
			h.Add("Vary", "Origin") // caches must not show one origin's answer to another
		}
		if origin == "" || !every && !slices.Contains(origins, origin) {
			next.ServeHTTP(w, r) // the browser keeps the answer from the page
			return
		}
		if every {
			origin = anyOrigin
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w, r)
			return
		}
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
		next.ServeHTTP(w, r)
	})
}

// preflight allows the headers that the page wants to send: SDKs have many of
// their own, and "*" would not cover Authorization. What they hold is looked at
// when they come.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	if names := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ","); isHeaderList(names) {
		h.Set("Access-Control-Allow-Headers", names)
	}
	w.WriteHeader(http.StatusNoContent)
}

// isHeaderList reports whether s is made of names of headers and commas.
func isHeaderList(s string) bool {
	return s != "" && len(s) <= maxCORSHeadersBytes && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("!#$%&'*+-.^_`|~, ", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
