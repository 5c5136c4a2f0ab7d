package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Hub is the local cache of a hub, and the way to the hub. It is safe for
// concurrent use.
type Hub struct {
	offline  string // the variable that forbids the network
	log      *slog.Logger
	endpoint *url.URL
	token    func() string
	client   *http.Client
	cache    cache // that of huggingface_hub
	headers  cache // our own, of headers of .gguf files

	maxFileBytes int64 // [MaxFileBytes], or less in a test
}

// Bounds of what a hub may do.
const (
	connectTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second // from a request to the headers of its answer
	listTimeout    = time.Minute      // for a whole list of files
	stallTimeout   = 30 * time.Second // without a byte of a body
	maxRetryAfter  = 10 * time.Minute
	maxRedirects   = 5
	maxHeaderBytes = 256 << 10
	maxListBytes   = 32 << 20
	maxListedFiles = 100_000
)

func newHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			ResponseHeaderTimeout:  answerTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			IdleConnTimeout:        answerTimeout,
			DisableCompression:     true, // what is counted and hashed is the file
			ForceAttemptHTTP2:      true,
		},
		// Each step is looked at: the token goes to one origin only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A listing is what a revision of a model is.
type listing struct {
	commit string
	files  []string
}

// list asks which commit ref is and which files it has.
func (h *Hub) list(ctx context.Context, ref Ref) (*listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("no whole list of files in %v", listTimeout))
	defer cancel()
	u := h.endpoint.JoinPath("api", "models", ref.Repo, "revision")
	u = withSegment(u, ref.Revision)
	answer, _, err := h.ask(ctx, ref, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxListBytes+1))
	switch {
	case err != nil:
		return nil, h.unreachable(ctx, err)
	case len(data) > maxListBytes:
		return nil, failed(ErrTooLarge, "%s answers with more than %d bytes of information on %s", h.endpoint.Host, maxListBytes, ref.Repo)
	}
	var info struct {
		SHA      string    `json:"sha"`
		Siblings fileNames `json:"siblings"`
	}
	err = json.Unmarshal(data, &info)
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, failed(ErrTooLarge, "%s lists more than %d files of %s", h.endpoint.Host, maxListedFiles, ref.Repo)
	case err != nil || !commitForm.MatchString(info.SHA) || ref.IsPinned() && info.SHA != ref.Revision:
		return nil, failed(ErrProtocol, "%s does not answer as a hub does: the commit is missing or another one in its information on %s; see HF_ENDPOINT, or give a folder with --model-path", h.endpoint.Host, ref.Repo)
	}
	return &listing{commit: info.SHA, files: info.Siblings}, nil
}

// fileNames are the names in a list of files, which may be long.
type fileNames []string

func (f *fileNames) UnmarshalJSON(data []byte) error {
	in := json.NewDecoder(bytes.NewReader(data))
	start, err := in.Token()
	if err != nil || start == nil { // null
		return err
	}
	if start != json.Delim('[') {
		return errors.New("not a list")
	}
	for in.More() {
		var file struct {
			Name string `json:"rfilename"`
		}
		if err := in.Decode(&file); err != nil {
			return err
		}
		if len(*f) == maxListedFiles {
			return ErrTooLarge
		}
		*f = append(*f, file.Name)
	}
	return nil
}

// fileURL is the address of a file of a commit.
func (h *Hub) fileURL(ref Ref, commit, name string) *url.URL {
	return h.endpoint.JoinPath(ref.Repo, "resolve", commit).JoinPath(strings.Split(name, "/")...)
}

// withSegment is u with one more segment, which may hold slashes.
func withSegment(u *url.URL, segment string) *url.URL {
	with := *u
	with.RawPath = u.EscapedPath() + "/" + url.PathEscape(segment)
	with.Path = u.Path + "/" + segment
	return &with
}

// ask sends a request, follows redirects, and returns the answer if it is a good
// one. A HEAD is not followed to another origin, where the hub keeps large files: what
// there is to know of a file stands in the hub's own answer, and at is then where
// the file is.
func (h *Hub) ask(ctx context.Context, ref Ref, method string, u *url.URL, header http.Header) (answer *http.Response, at *url.URL, err error) {
	var linked http.Header
	for range maxRedirects + 1 {
		answer, err := h.once(ctx, method, u, header)
		if err != nil {
			return nil, nil, h.unreachable(ctx, err)
		}
		if answer.Header.Get("X-Linked-Etag") != "" {
			linked = answer.Header
		} else if linked != nil { // a hop at the same hub knows less
			for _, name := range []string{"X-Linked-Etag", "X-Linked-Size"} {
				answer.Header.Set(name, linked.Get(name))
			}
		}
		location := answer.Header.Get("Location")
		if answer.StatusCode/100 != 3 || location == "" {
			if err := h.refused(ref, u, answer); err != nil {
				answer.Body.Close()
				return nil, nil, err
			}
			return answer, u, nil
		}
		answer.Body.Close()
		next, err := u.Parse(location)
		if err != nil || next.Host == "" || next.Scheme != u.Scheme && next.Scheme != "https" {
			return nil, nil, failed(ErrProtocol, "%s redirects to an address that is not followed: neither http nor https, or from https to http", u.Host)
		}
		if method == http.MethodHead && !sameOrigin(next, h.endpoint) {
			return answer, next, nil
		}
		u = next
	}
	return nil, nil, failed(ErrProtocol, "%s redirects more than %d times", h.endpoint.Host, maxRedirects)
}

// once sends one request. The token goes to the origin of the endpoint only.
func (h *Hub) once(ctx context.Context, method string, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "baton")
	req.Header.Set("Accept-Encoding", "identity")
	if token := h.token(); token != "" && sameOrigin(u, h.endpoint) {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return h.client.Do(req)
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// unreachable is the error of a hub that gave no answer. An address in it could
// hold a signature, so it is left out.
func (h *Hub) unreachable(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return failed(ErrUnavailable, "%s cannot be reached: %v; see HF_ENDPOINT and HTTPS_PROXY, or give a folder with --model-path", h.endpoint.Host, err)
}

// refused is the error of an answer that is none of 2xx. What the hub means stands in
// a header; without a token it says 401 of models that do not exist.
//
// Source: utils/_http.py of huggingface_hub, hf_raise_for_status.
func (h *Hub) refused(ref Ref, u *url.URL, answer *http.Response) error {
	const orFolder = "or give a folder with --model-path"
	code, status, host := answer.Header.Get("X-Error-Code"), answer.StatusCode, h.endpoint.Host
	switch {
	case status/100 == 2 || status == http.StatusRequestedRangeNotSatisfiable:
		return nil
	case !sameOrigin(u, h.endpoint): // the store that it sent us to
		return failed(ErrUnavailable, "%s sends us to %s for a file of %s, which answers with status %d", host, u.Host, ref.Repo, status)
	case code == "GatedRepo":
		return failed(ErrDenied, "%s is gated: accept its terms at %s/%s and set HF_TOKEN to a token of that account, %s", ref.Repo, h.endpoint, ref.Repo, orFolder)
	case code == "RevisionNotFound":
		return failed(ErrNotFound, "%s has no revision %q on %s; correct what stands behind the @", ref.Repo, ref.Revision, host)
	case code == "EntryNotFound":
		return failed(ErrNotFound, "%s lacks a file on %s that it had a moment ago", ref.Repo, host)
	case status == http.StatusUnauthorized && strings.HasPrefix(answer.Header.Get("X-Error-Message"), "Invalid credentials"):
		return failed(ErrDenied, "%s does not accept the token; renew what is in HF_TOKEN or in the file of `hf auth login`, %s", host, orFolder)
	case code == "RepoNotFound", status == http.StatusNotFound, status == http.StatusUnauthorized:
		need := "or set HF_TOKEN if it is private"
		if h.token() != "" {
			need = "or whether the token that is in use may read it"
		}
		return failed(ErrNotFound, "there is no file or folder %s here, and no such model on %s; check the name, %s, %s", ref, host, need, orFolder)
	case status == http.StatusForbidden:
		return failed(ErrDenied, "%s does not let us read %s (status 403); set HF_TOKEN to a token that may, %s", host, ref.Repo, orFolder)
	case status == http.StatusTooManyRequests, status >= 500, status == http.StatusRequestTimeout:
		e := failed(ErrUnavailable, "%s answers with status %d; %s is fetched later", host, status, ref.Repo)
		e.RetryAfter = retryAfter(answer.Header)
		return e
	}
	return failed(ErrProtocol, "%s answers with status %d, which no hub does; see HF_ENDPOINT, %s", host, status, orFolder)
}

// retryAfter is how long the hub wants to be left alone, 0 if it does not say.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(min(seconds, 1<<20))*time.Second, maxRetryAfter)
}
