package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"baton/hub/hubtest"
)

// tiny is a model whose tokenizer lies in the store, with weights that nobody wants.
func tiny() *hubtest.Model {
	return &hubtest.Model{
		Files: map[string][]byte{
			"config.json":                              []byte(`{"vocab_size": 3}`),
			"generation_config.json":                   []byte(`{}`),
			"tokenizer_config.json":                    []byte(`{"a": 1}`),
			"tokenizer.json":                           bytes.Repeat([]byte("tokenizer "), 20_000),
			"model.safetensors":                        make([]byte, 1<<20),
			"README.md":                                []byte("# tiny"),
			"additional_chat_templates/tool_use.jinja": []byte("{{ messages }}"),
		},
		Large: []string{"tokenizer.json", "model.safetensors"},
	}
}

// startHub starts a fake hub with one model, and a client of it with an empty cache.
func startHub(t *testing.T, fake *hubtest.Hub) (*Hub, *bytes.Buffer) {
	t.Helper()
	if fake.Models == nil {
		fake.Models = map[string]*hubtest.Model{"org/tiny": tiny()}
	}
	fake.Start()
	t.Cleanup(fake.Close)
	return clientOf(t, fake, t.TempDir())
}

func clientOf(t *testing.T, fake *hubtest.Hub, cache string) (*Hub, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	h, err := New(Config{
		Endpoint:  fake.URL(),
		CacheDir:  cache,
		HeaderDir: t.TempDir(),
		Token:     func() string { return fake.Token },
		Log:       slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.CloseIdleConnections)
	return h, &log
}

func refOf(t *testing.T, text string) Ref {
	t.Helper()
	ref, ok := ParseRef(text)
	if !ok {
		t.Fatalf("%q is no ref", text)
	}
	return ref
}

// tree lists a folder: files with their content, links with their target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if target, err := os.Readlink(path); err == nil {
			entries[rel] = "-> " + target
			return nil
		}
		data, err := os.ReadFile(path)
		entries[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// The layout was compared with what huggingface_hub 2.4 makes and finds.
func TestFetchedCacheIsThatOfHuggingfaceHub(t *testing.T) {
	fake := &hubtest.Hub{Token: "hf_secret"}
	h, log := startHub(t, fake)
	ref := refOf(t, "org/tiny")
	if _, ok := h.Find(ref); ok {
		t.Fatal("found in an empty cache")
	}
	found, err := h.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	m := fake.Models["org/tiny"]
	commit := m.Commit()
	if want := filepath.Join(h.cache.dir, "models--org--tiny", "snapshots", commit); found.Path != want || !found.Complete {
		t.Errorf("found %+v", found)
	}
	if again, ok := h.Find(ref); !ok || again != found {
		t.Errorf("then found %+v, %v", again, ok)
	}

	want := map[string]string{"models--org--tiny/refs/main": commit}
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"} {
		want["models--org--tiny/blobs/"+m.ETag(name)] = string(m.Files[name])
		want["models--org--tiny/snapshots/"+commit+"/"+name] = "-> ../../blobs/" + m.ETag(name)
		want[".locks/models--org--tiny/"+m.ETag(name)+".lock"] = ""
	}
	template := "additional_chat_templates/tool_use.jinja"
	want["models--org--tiny/blobs/"+m.ETag(template)] = string(m.Files[template])
	want["models--org--tiny/snapshots/"+commit+"/"+template] = "-> ../../../blobs/" + m.ETag(template)
	want[".locks/models--org--tiny/"+m.ETag(template)+".lock"] = ""
	for _, name := range []string{"chat_template.jinja", "chat_template.json", "special_tokens_map.json", "added_tokens.json", "adapter_config.json"} {
		want["models--org--tiny/.no_exist/"+commit+"/"+name] = ""
	}
	got := tree(t, h.cache.dir)
	if !strings.HasPrefix(got["CACHEDIR.TAG"], "Signature: 8a477f597d28d172789f06886806bc55") {
		t.Error("no CACHEDIR.TAG")
	}
	delete(got, "CACHEDIR.TAG")
	if !maps.Equal(got, want) {
		t.Errorf("the cache has %v\nwant %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}

	for _, r := range fake.Requests() {
		if strings.Contains(r.Path, "safetensors") || r.Path == "/"+m.ETag("model.safetensors") {
			t.Errorf("asked for weights: %+v", r)
		}
		if (r.Authorization == "Bearer hf_secret") == r.Store {
			t.Errorf("the token goes to the hub and not to the store: %+v", r)
		}
	}
	if strings.Contains(log.String(), "hf_secret") || strings.Contains(log.String(), "signature") {
		t.Errorf("a secret in the log: %s", log)
	}

	before := len(fake.Requests())
	if _, err := h.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if n := len(fake.Requests()) - before; n != 1 {
		t.Errorf("%d requests for what is there, want the list only", n)
	}
}

// A second process that wants the same waits for the first, or finds what it made.
func TestFetchedOnceByMany(t *testing.T) {
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	other, _ := clientOf(t, fake, h.cache.dir)
	var wg sync.WaitGroup
	for _, h := range []*Hub{h, other, h, other} {
		wg.Go(func() {
			if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, r := range fake.Requests() {
		if r.Method == http.MethodGet && r.Store {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the tokenizer was fetched %d times", n)
	}
}

// What Python left incomplete is completed at the commit that is there, though the
// hub has a newer one.
func TestCachedCommitIsCompleted(t *testing.T) {
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	m := fake.Models["org/tiny"]
	commit := m.Commit()
	repo := filepath.Join(h.cache.dir, "models--org--tiny")
	write(t, filepath.Join(repo, "refs", "main"), commit)
	write(t, filepath.Join(repo, "snapshots", commit, "tokenizer.json"), "tokenizer")
	ref := refOf(t, "org/tiny")
	if found, ok := h.Find(ref); !ok || found.Complete {
		t.Fatalf("%+v, %v", found, ok)
	}
	found, err := h.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if again, ok := h.Find(ref); !ok || !again.Complete || again != found {
		t.Errorf("%+v, %v", again, ok)
	}
	if data, _ := os.ReadFile(filepath.Join(found.Path, "tokenizer.json")); string(data) != "tokenizer" {
		t.Error("what was there is another file now")
	}
	for _, r := range fake.Requests() {
		if strings.Contains(r.Path, "main") {
			t.Errorf("asked for the newest commit: %+v", r)
		}
	}

	// A commit that the hub no longer has: what is there is all that there is.
	write(t, filepath.Join(repo, "refs", "old"), strings.Repeat("0", 40))
	write(t, filepath.Join(repo, "snapshots", strings.Repeat("0", 40), "tokenizer.json"), "tokenizer")
	if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny@old")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// A list of all files, as newer versions of Python's library keep it, says that
// nothing is missing.
func TestCachedTreeSaysComplete(t *testing.T) {
	h, err := New(Config{Endpoint: "http://hub", CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	commit := strings.Repeat("a", 40)
	repo := filepath.Join(h.cache.dir, "models--m")
	write(t, filepath.Join(repo, "snapshots", commit, "tokenizer.json"), "tokenizer")
	ref := refOf(t, "m") // one commit and no refs: it is meant
	for tree, complete := range map[string]bool{
		`{"format_version": 1, "files": {"tokenizer.json": {"size": 1}}}`:                             true,
		`{"format_version": 1, "files": {"tokenizer.json": {"size": 1}, "config.json": {"size": 1}}}`: false,
		`{"format_version": 2, "files": {"tokenizer.json": {"size": 1}}}`:                             false,
		`{`: false,
	} {
		write(t, filepath.Join(repo, "trees", commit+".json"), tree)
		if found, ok := h.Find(ref); !ok || found.Complete != complete {
			t.Errorf("%s: %+v, %v", tree, found, ok)
		}
	}
	// Older versions keep no list; a template may be in one of two places.
	if err := os.RemoveAll(filepath.Join(repo, "trees")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer_config.json"} {
		write(t, filepath.Join(repo, "snapshots", commit, name), "{}")
	}
	if found, ok := h.Find(ref); !ok || found.Complete {
		t.Errorf("without a template: %+v, %v", found, ok)
	}
	write(t, filepath.Join(repo, "snapshots", commit, "tokenizer_config.json"), `{"chat_template": "x"}`)
	if found, ok := h.Find(ref); !ok || !found.Complete {
		t.Errorf("with a template: %+v, %v", found, ok)
	}

	write(t, filepath.Join(repo, "refs", "main"), "../../..")
	if found, ok := h.Find(ref); ok {
		t.Errorf("a hostile ref leads to %+v", found)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The sentence for each refusal says what to do.
func TestRefusals(t *testing.T) {
	fake := &hubtest.Hub{Models: map[string]*hubtest.Model{
		"org/tiny":    tiny(),
		"org/gated":   {Files: tiny().Files, Gated: true},
		"org/private": {Files: tiny().Files, Private: true},
		"org/weights": {Files: map[string][]byte{"model.safetensors": nil}},
		"org/gguf":    {Files: map[string][]byte{"a-Q8_0.gguf": nil, "tokenizer.json": nil}},
	}}
	h, _ := startHub(t, fake)
	status := 0
	fake.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if status != 0 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		}
		return status != 0
	}
	for _, c := range []struct {
		ref, token string
		status     int
		reason     error
		say        string
	}{
		{"org/none", "", 0, ErrNotFound, "no file or folder org/none here, and no such model on"},
		{"org/none", "", 0, ErrNotFound, "set HF_TOKEN if it is private"},
		{"org/private", "", 0, ErrNotFound, "set HF_TOKEN if it is private"},
		{"org/none", "hf", 0, ErrNotFound, "whether the token that is in use may read it"},
		{"org/gated", "", 0, ErrDenied, "org/gated is gated: accept its terms at " + fake.URL() + "/org/gated and set HF_TOKEN"},
		{"org/tiny@v9", "", 0, ErrNotFound, `has no revision "v9"`},
		{"org/weights", "", 0, ErrNotFound, "has no tokenizer"},
		{"org/gguf:Q4_K_M", "", 0, ErrNotFound, "has no .gguf file that is org/gguf:Q4_K_M; of such files it has a-Q8_0.gguf"},
		{"org/tiny", "", 403, ErrDenied, "status 403"},
		{"org/tiny", "", 429, ErrUnavailable, "status 429"},
		{"org/tiny", "", 503, ErrUnavailable, "status 503"},
		{"org/tiny", "", 418, ErrProtocol, "HF_ENDPOINT"},
		{"org/tiny", "", 204, ErrProtocol, "HF_ENDPOINT"},
	} {
		fake.Token, status = c.token, c.status
		_, err := h.Fetch(t.Context(), refOf(t, c.ref))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Reason != c.reason || !strings.Contains(e.Text, c.say) {
			t.Errorf("%s with token %q and status %d: %v", c.ref, c.token, c.status, err)
			continue
		}
		if e.IsFinal() == (c.reason == ErrUnavailable) {
			t.Errorf("%s: final %v", c.ref, e.IsFinal())
		}
		if c.reason == ErrUnavailable && e.RetryAfter.Seconds() != 7 {
			t.Errorf("retry after %v", e.RetryAfter)
		}
	}
	fake.Token, status = "right", 0
	h.token = func() string { return "wrong" }
	if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "does not accept the token") || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
}

func TestOffline(t *testing.T) {
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	h.offline = "HF_HUB_OFFLINE"
	_, err := h.Fetch(t.Context(), refOf(t, "org/tiny"))
	if !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "HF_HUB_OFFLINE forbids") {
		t.Error(err)
	}
	if n := len(fake.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
	fake.Close()
	h.offline = ""
	if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "/api/") {
		t.Errorf("an absent hub: %v", err)
	}
}

// answer makes the fake hub answer one path as given.
func answer(suffix string, with http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, suffix) {
			return false
		}
		with(w, r)
		return true
	}
}

func header(values ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(values); i += 2 {
			w.Header().Set(values[i], values[i+1])
		}
		if location := w.Header().Get("Location"); location != "" {
			w.WriteHeader(http.StatusFound)
		}
	}
}

// Whatever a hub says, nothing is written outside of the model's folder and nothing
// is read without a bound.
func TestHostileHub(t *testing.T) {
	commit := tiny().Commit()
	const list = "/revision/main"
	write := func(format string, args ...any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
	}
	for name, c := range map[string]struct {
		before func(http.ResponseWriter, *http.Request) bool
		reason error
	}{
		"no JSON":               {answer(list, write("<html>")), ErrProtocol},
		"null":                  {answer(list, write("null")), ErrProtocol},
		"no commit":             {answer(list, write(`{"siblings": []}`)), ErrProtocol},
		"a path for a commit":   {answer(list, write(`{"sha": "../../../x", "siblings": [{"rfilename": "tokenizer.json"}]}`)), ErrProtocol},
		"no list":               {answer(list, write(`{"sha": %q, "siblings": 7}`, commit)), ErrProtocol},
		"a long list":           {answer(list, write(`{"sha": %q, "siblings": [{}%s]}`, commit, strings.Repeat(",{}", maxListedFiles))), ErrTooLarge},
		"an endless list":       {answer(list, write(`{"x": "%s`, strings.Repeat("x", maxListBytes))), ErrTooLarge},
		"a list cut short":      {answer(list, header("Content-Length", "100")), ErrUnavailable},
		"another commit":        {answer("/config.json", header("X-Repo-Commit", strings.Repeat("1", 40), "ETag", `"x"`)), ErrProtocol},
		"no etag":               {answer("/config.json", header("X-Repo-Commit", commit)), ErrProtocol},
		"an etag with slashes":  {answer("/config.json", header("ETag", `"../../../x"`)), ErrProtocol},
		"an etag of dots":       {answer("/config.json", header("ETag", `".."`)), ErrProtocol},
		"a long etag":           {answer("/config.json", header("ETag", strings.Repeat("e", 1000))), ErrProtocol},
		"an etag of another":    {answer("/config.json", header("ETag", `"x.incomplete"`)), ErrProtocol},
		"a huge file":           {answer("/config.json", header("ETag", `"x"`, "X-Linked-Size", "99999999999")), ErrTooLarge},
		"redirects in a circle": {answer(list, header("Location", "/api/models/org/tiny/revision/main")), ErrProtocol},
		"a redirect to a file":  {answer(list, header("Location", "file:///etc/passwd")), ErrProtocol},
		"a redirect to nowhere": {answer(list, header("Location", "http://")), ErrProtocol},
		"headers without end":   {answer(list, header("X-Long", strings.Repeat("x", 2*maxHeaderBytes))), ErrUnavailable},
		"a compressed file":     {answer("/config.json", compressed), ErrProtocol},
		"more than announced":   {answer("/config.json", moreThanAnnounced), ErrProtocol},
		"without end":           {answer("/config.json", withoutEnd), ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &hubtest.Hub{Before: c.before}
			h, _ := startHub(t, fake)
			h.maxFileBytes = 1 << 20
			_, err := h.Fetch(t.Context(), refOf(t, "org/tiny"))
			if e, ok := errors.AsType[*Error](err); !ok || e.Reason != c.reason {
				t.Error(err)
			}
			for path := range tree(t, filepath.Dir(h.cache.dir)) {
				if strings.Contains(path, "refs") || strings.Contains(path, "snapshots") || strings.Contains(path, "blobs") {
					t.Errorf("left %s", path)
				}
			}
		})
	}
}

func compressed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"x"`)
	w.Header().Set("Content-Encoding", "gzip")
	w.Write([]byte("bomb"))
}

func moreThanAnnounced(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"x"`)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", "3")
		return
	}
	w.Write([]byte("four"))
}

// withoutEnd names no length and sends as long as somebody reads.
func withoutEnd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"x"`)
	if r.Method == http.MethodHead {
		w.Header().Set("Transfer-Encoding", "chunked")
		return
	}
	part := make([]byte, 1<<20)
	for sent := 0; sent <= 8<<20; sent += len(part) {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// The token is for the hub; a redirect that keeps the host but not the port, or the
// scheme, leads elsewhere.
func TestTokenStaysAtTheHub(t *testing.T) {
	fake := &hubtest.Hub{Token: "hf_secret"}
	h, _ := startHub(t, fake)
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/") || "http://"+r.Host != fake.URL() {
			return false
		}
		http.Redirect(w, r, fake.StoreURL()+"/x", http.StatusTemporaryRedirect)
		return true
	}
	if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	requests := fake.Requests()
	if len(requests) != 2 || requests[0].Authorization == "" || !requests[1].Store || requests[1].Authorization != "" {
		t.Errorf("%+v", requests)
	}
}

// A model that was renamed is found behind a redirect of the hub itself.
func TestRenamedModel(t *testing.T) {
	fake := &hubtest.Hub{Token: "hf_secret"}
	h, _ := startHub(t, fake)
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "org/old") {
			return false
		}
		http.Redirect(w, r, strings.Replace(r.URL.Path, "org/old", "org/tiny", 1), http.StatusTemporaryRedirect)
		return true
	}
	found, err := h.Fetch(t.Context(), refOf(t, "org/old"))
	if err != nil || !strings.Contains(found.Path, "models--org--old") {
		t.Error(found, err)
	}
}

// A branch whose name has a slash is one segment of the address.
func TestRevisionWithSlashes(t *testing.T) {
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	fake.Models["org/tiny"].Branches = []string{"refs/pr/4"}
	ref := refOf(t, "org/tiny@refs/pr/4")
	found, err := h.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if again, ok := h.Find(ref); !ok || again != found {
		t.Errorf("%+v, %v", again, ok)
	}
	if _, ok := h.Find(refOf(t, "org/tiny@"+filepath.Base(found.Path))); !ok {
		t.Error("not found by its commit")
	}
}

func TestReadOnlyCache(t *testing.T) {
	fake := &hubtest.Hub{}
	h, _ := startHub(t, fake)
	write(t, filepath.Join(h.cache.dir, "models--org--tiny"), "a file where a folder should be")
	_, err := h.Fetch(t.Context(), refOf(t, "org/tiny"))
	if !errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), "HF_HUB_CACHE") {
		t.Error(err)
	}
}

// A redirect never leads from https to http, where anybody could read along.
func TestNoWayDownToHTTP(t *testing.T) {
	fake := &hubtest.Hub{}
	plain, _ := startHub(t, fake)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fake.URL()+r.URL.Path, http.StatusFound)
	}))
	defer secure.Close()
	h, err := New(Config{Endpoint: secure.URL, CacheDir: plain.cache.dir})
	if err != nil {
		t.Fatal(err)
	}
	h.client.Transport = secure.Client().Transport
	if _, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "from https to http") {
		t.Error(err)
	}
	if n := len(fake.Requests()); n > 0 {
		t.Errorf("%d requests over http", n)
	}
}

// A mirror may live below a path.
func TestMirrorWithAPath(t *testing.T) {
	fake := &hubtest.Hub{}
	plain, _ := startHub(t, fake)
	mirror := httptest.NewServer(http.StripPrefix("/api/hf", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RequestURI = ""
		r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(fake.URL(), "http://")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		io.Copy(w, answer.Body)
	})))
	defer mirror.Close()
	h, err := New(Config{Endpoint: mirror.URL + "/api/hf", CacheDir: plain.cache.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer h.client.CloseIdleConnections()
	if found, err := h.Fetch(t.Context(), refOf(t, "org/tiny")); err != nil || !found.Complete {
		t.Error(found, err)
	}
}
