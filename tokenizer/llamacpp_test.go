package tokenizer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"baton/gguf"
)

// TestAgainstLlamaCPP compares the tokenizer in a .gguf file with what a
// llama.cpp server that runs the file says: BATON_GGUF names the file,
// BATON_LLAMACPP_URL the server.
func TestAgainstLlamaCPP(t *testing.T) {
	path, url := os.Getenv("BATON_GGUF"), os.Getenv("BATON_LLAMACPP_URL")
	if path == "" || url == "" {
		t.Skip("BATON_GGUF and BATON_LLAMACPP_URL do not name a file and a server that runs it")
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	c := testCorpus(t)
	wrong, compared := 0, 0
	for _, text := range slices.Concat(c.Texts, c.Fuzz) {
		for _, special := range []bool{false, true} {
			compared++
			got, want := tok.Encode(text, special), serverTokens(t, url, text, special)
			if slices.Equal(got, want) {
				continue
			}
			if wrong++; wrong <= 10 {
				t.Errorf("%q (special %v): %v, the server says %v", clip([]byte(text)), special, got[:min(20, len(got))], want[:min(20, len(want))])
			}
		}
	}
	t.Logf("%d of %d encodings differ", wrong, compared)
}

func serverTokens(t *testing.T, url, text string, special bool) []int32 {
	t.Helper()
	body, err := json.Marshal(map[string]any{"content": text, "add_special": special, "parse_special": true})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/tokenize", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return out.Tokens
}
