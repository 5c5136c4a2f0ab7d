package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Hub serves models. Its fields are set before the first request.
type Hub struct {
	Models map[string]*Model // by repository
	// Token is what private and gated models want to be shown.
	Token string
	// Before is asked first, with the lock not held; true = it answered itself.
	Before func(w http.ResponseWriter, r *http.Request) bool

	hub, store *httptest.Server

	mu       sync.Mutex // guards what follows
	requests []Request
}

// A Model is one commit of a repository.
type Model struct {
	Files    map[string][]byte
	Large    []string // files that lie in the store
	Branches []string // besides main
	Gated    bool
	Private  bool
}

// A Request is one that came to the hub or its store.
type Request struct {
	Method, Path, Range, Authorization string
	Store                              bool
}

// Start makes the hub listen. Close ends it.
func (h *Hub) Start() {
	h.hub = httptest.NewServer(http.HandlerFunc(h.serve))
	h.store = httptest.NewServer(http.HandlerFunc(h.serveStore))
}

// Close ends both servers.
func (h *Hub) Close() {
	h.hub.Close()
	h.store.Close()
}

// URL is the value for HF_ENDPOINT.
func (h *Hub) URL() string { return h.hub.URL }

// StoreURL is the address of the store.
func (h *Hub) StoreURL() string { return h.store.URL }

// Requests returns what was asked until now.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func (h *Hub) note(r *http.Request, store bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, Request{r.Method, r.URL.EscapedPath(), r.Header.Get("Range"), r.Header.Get("Authorization"), store})
}

// Commit is the id of the model's commit, made of its content.
func (m *Model) Commit() string {
	sum := sha1.New()
	for _, name := range slices.Sorted(names(m.Files)) {
		fmt.Fprintf(sum, "%s %s\n", name, GitHash(m.Files[name]))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func names(files map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}

// GitHash is the etag of a small file.
func GitHash(data []byte) string {
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", len(data))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// ETag is the name that the content of a file has in a cache.
func (m *Model) ETag(name string) string {
	if slices.Contains(m.Large, name) {
		sum := sha256.Sum256(m.Files[name])
		return hex.EncodeToString(sum[:])
	}
	return GitHash(m.Files[name])
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	h.note(r, false)
	if h.Before != nil && h.Before(w, r) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	if parts[0] == "api" && len(parts) > 4 {
		repo, rest := repository(parts[2:])
		h.serveAPI(w, r, repo, rest)
		return
	}
	repo, rest := repository(parts)
	if len(rest) < 3 || rest[0] != "resolve" {
		refuse(w, http.StatusNotFound, "", "Not found")
		return
	}
	m, ok := h.model(w, r, repo, rest[1])
	if !ok {
		return
	}
	h.serveFile(w, r, m, strings.Join(rest[2:], "/"))
}

// repository takes the name of a repository off a path.
func repository(parts []string) (repo string, rest []string) {
	if len(parts) > 1 && !slices.Contains([]string{"revision", "tree", "resolve"}, parts[1]) {
		return parts[0] + "/" + parts[1], parts[2:]
	}
	return parts[0], parts[1:]
}

// model finds a model that the request may see.
func (h *Hub) model(w http.ResponseWriter, r *http.Request, repo, revision string) (*Model, bool) {
	m := h.Models[repo]
	authorization := r.Header.Get("Authorization")
	may := h.Token != "" && authorization == "Bearer "+h.Token
	switch {
	case authorization != "" && !may:
		refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
	case (m == nil || m.Private) && !may:
		refuse(w, http.StatusUnauthorized, "", "Invalid username or password.") // as if it were there
	case m == nil:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case m.Gated && !may && strings.Contains(r.URL.Path, "/resolve/"):
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to model "+repo+" is restricted.")
	case revision != "main" && revision != m.Commit() && !slices.Contains(m.Branches, revision):
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
	default:
		return m, true
	}
	return nil, false
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	http.Error(w, message, status)
}

// serveAPI answers /api/models/REPO/revision/REVISION and …/tree/REVISION.
func (h *Hub) serveAPI(w http.ResponseWriter, r *http.Request, repo string, rest []string) {
	if len(rest) < 2 {
		refuse(w, http.StatusNotFound, "", "Not found")
		return
	}
	m, ok := h.model(w, r, repo, rest[1])
	if !ok {
		return
	}
	type file struct {
		Name string `json:"rfilename,omitempty"`
		Path string `json:"path,omitempty"`
		Type string `json:"type,omitempty"`
		OID  string `json:"oid,omitempty"`
		Size int    `json:"size,omitempty"`
		LFS  any    `json:"lfs,omitempty"`
	}
	files := []file{}
	for _, name := range slices.Sorted(names(m.Files)) {
		if rest[0] == "revision" {
			files = append(files, file{Name: name})
			continue
		}
		f := file{Path: name, Type: "file", OID: GitHash(m.Files[name]), Size: len(m.Files[name])}
		if slices.Contains(m.Large, name) {
			f.LFS = map[string]any{"oid": m.ETag(name), "size": f.Size, "pointerSize": 130}
		}
		files = append(files, f)
	}
	w.Header().Set("Content-Type", "application/json")
	if rest[0] == "tree" {
		json.NewEncoder(w).Encode(files)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"id": repo, "modelId": repo, "sha": m.Commit(), "private": m.Private,
		"downloads": 0, "likes": 0, "tags": []string{}, "siblings": files})
}

func (h *Hub) serveFile(w http.ResponseWriter, r *http.Request, m *Model, name string) {
	data, ok := m.Files[name]
	w.Header().Set("X-Repo-Commit", m.Commit())
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	if slices.Contains(m.Large, name) {
		w.Header().Set("X-Linked-Etag", `"`+m.ETag(name)+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(data)))
		http.Redirect(w, r, h.store.URL+"/"+m.ETag(name)+"?signature=secret", http.StatusFound)
		return
	}
	w.Header().Set("ETag", `"`+m.ETag(name)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func (h *Hub) serveStore(w http.ResponseWriter, r *http.Request) {
	h.note(r, true)
	if h.Before != nil && h.Before(w, r) {
		return
	}
	for _, m := range h.Models {
		for _, name := range m.Large {
			if r.URL.Path == "/"+m.ETag(name) {
				w.Header().Set("ETag", `"`+m.ETag(name)+`"`)
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(m.Files[name]))
				return
			}
		}
	}
	http.NotFound(w, r)
}
