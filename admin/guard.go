package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guarded refuses what a browser sends because a page of another origin told it
// to. Three signs, of which every browser gives one: Sec-Fetch-Site (Fetch Metadata,
// https://www.w3.org/TR/fetch-metadata), the Origin of the page, and, for a page
// whose own name was made to resolve to our address (DNS rebinding), that name in
// the Host header.
func (a *Admin) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !a.isOurs(r.Host) {
			refuse(w, http.StatusForbidden, "foreign_host", "The Host header must be an IP address, localhost or the host of --admin-address.")
			return
		}
		if isCrossSite(r) {
			refuse(w, http.StatusForbidden, "cross_site_request", "Pages of other origins may not use the admin address.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a Host header names us in a way that nobody else's DNS
// can bring about.
func (a *Admin) isOurs(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || name != "" && name == strings.ToLower(a.host)
}

func isCrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site": // the same site is other ports of this machine
		return true
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	u, err := url.Parse(origins[0])
	return len(origins) > 1 || err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, r.Host)
}
