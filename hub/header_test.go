package hub

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/gguf"
	"baton/gguf/gguftest"
	"baton/hub/hubtest"
)

// ggufHub serves a file with a header of some 3 MB and weights behind it.
func ggufHub(t *testing.T) (*hubtest.Hub, *Hub) {
	t.Helper()
	file := gguftest.Header(
		gguftest.Entry{Key: "general.architecture", Value: "llama"},
		gguftest.Entry{Key: "long", Value: strings.Repeat("x", 3<<20)},
	)
	file = append(file, make([]byte, 6<<20)...)
	fake := &hubtest.Hub{Token: "hf", Models: map[string]*hubtest.Model{"org/m-GGUF": {
		Files: map[string][]byte{"README.md": nil, "m-Q8_0.gguf": []byte("other"), "m-Q4_K_M.gguf": file},
		Large: []string{"m-Q8_0.gguf", "m-Q4_K_M.gguf"},
	}}}
	h, _ := startHub(t, fake)
	return fake, h
}

// Only the header comes, in growing parts, and it is found again.
func TestFetchHeader(t *testing.T) {
	for _, text := range []string{"org/m-GGUF", "org/m-GGUF:Q4_K_M", "org/m-GGUF/m-Q4_K_M.gguf"} {
		t.Run(text, func(t *testing.T) {
			fake, h := ggufHub(t)
			ref := refOf(t, text)
			if _, ok := h.Find(ref); ok {
				t.Fatal("found before it was fetched")
			}
			found, err := h.Fetch(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if again, ok := h.Find(ref); !ok || again != found || !found.Complete {
				t.Errorf("%+v, %v; want %+v", again, ok, found)
			}
			f, err := gguf.Open(found.Path)
			if err != nil {
				t.Fatal(err)
			}
			if arch, _ := f.String("general.architecture"); arch != "llama" {
				t.Error(arch)
			}
			if info, _ := os.Stat(found.Path); info.Size() > 8<<20 {
				t.Errorf("%d bytes are kept", info.Size())
			}
			var ranges []string
			for _, r := range fake.Requests() {
				if r.Store {
					ranges = append(ranges, r.Range)
					if r.Authorization != "" {
						t.Error("the token goes to the store")
					}
				}
			}
			if got := strings.Join(ranges, " "); got != "bytes=0-1048575 bytes=1048576-3145727 bytes=3145728-7340031" {
				t.Errorf("asked for %s", got)
			}
			if len(tree(t, h.cache.dir)) > 0 {
				t.Error("a part of a file is in the cache that others use")
			}
			if _, ok := h.Find(refOf(t, "org/m-GGUF:Q2_K")); ok {
				t.Error("another quantization is found")
			}
		})
	}
}

// Where parts are unknown the file is read as far as it is needed.
func TestFetchHeaderWithoutRanges(t *testing.T) {
	fake, h := ggufHub(t)
	fake.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		return false
	}
	found, err := h.Fetch(t.Context(), refOf(t, "org/m-GGUF"))
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(found.Path); info.Size() > 8<<20 {
		t.Errorf("%d bytes are kept", info.Size())
	}
}

func TestFetchHeaderErrors(t *testing.T) {
	fake, h := ggufHub(t)
	if _, err := h.Fetch(t.Context(), refOf(t, "org/m-GGUF:Q8_0")); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "m-Q8_0.gguf of org/m-GGUF is not a .gguf file") {
		t.Error(err)
	}
	once := false
	fake.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "bytes=1048576-3145727" || once {
			return false
		}
		once = true
		w.Header().Set("Content-Range", "bytes 1048576-3145727/*")
		w.Header().Set("Content-Length", "2097152")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	if _, err := h.Fetch(t.Context(), refOf(t, "org/m-GGUF")); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if len(tree(t, h.headers.dir)) > 0 {
		t.Error("half a header is kept")
	}
	if _, err := h.Fetch(t.Context(), refOf(t, "org/m-GGUF")); err != nil {
		t.Error(err)
	}

	// A header without an end stops at the limit that gguf sets, before it is read.
	fake.Models["org/m-GGUF"].Files["m-Q4_K_M.gguf"] = append(gguftest.Header()[:16], bytes.Repeat([]byte{0xff}, 1000)...)
	other, _ := clientOf(t, fake, t.TempDir())
	if _, err := other.Fetch(t.Context(), refOf(t, "org/m-GGUF")); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "limit") {
		t.Error(err)
	}
}

// llama.cpp keeps what it fetched in the cache that Python uses; then nothing is to
// be fetched.
func TestGGUFInTheCache(t *testing.T) {
	fake, h := ggufHub(t)
	commit := strings.Repeat("a", 40)
	repo := filepath.Join(h.cache.dir, "models--org--m-GGUF")
	write(t, filepath.Join(repo, "refs", "main"), commit)
	path := filepath.Join(repo, "snapshots", commit, "m-Q8_0.gguf")
	write(t, path, "weights")
	for _, text := range []string{"org/m-GGUF", "org/m-GGUF:Q8_0", "org/m-GGUF/m-Q8_0.gguf", "org/m-GGUF@" + commit + ":Q8_0"} {
		if found, ok := h.Find(refOf(t, text)); !ok || found.Path != path || !found.Complete {
			t.Errorf("%s: %+v, %v", text, found, ok)
		}
	}
	if len(fake.Requests()) > 0 {
		t.Error("asked the hub")
	}
}
