package hub

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{
		"gpt2":                             {Repo: "gpt2", Revision: "main"},
		"Qwen/Qwen3-8B":                    {Repo: "Qwen/Qwen3-8B", Revision: "main"},
		"Qwen/Qwen3-8B@v1.0":               {Repo: "Qwen/Qwen3-8B", Revision: "v1.0"},
		"Qwen/Qwen3-8B@refs/pr/4":          {Repo: "Qwen/Qwen3-8B", Revision: "refs/pr/4"},
		"org/m-GGUF:Q4_K_M":                {Repo: "org/m-GGUF", Revision: "main", Quant: "Q4_K_M"},
		"org/m@v2:UD-Q4_K_XL":              {Repo: "org/m", Revision: "v2", Quant: "UD-Q4_K_XL"},
		"org/m/m-q4.gguf":                  {Repo: "org/m", Revision: "main", File: "m-q4.gguf"},
		"org/m@v2/BF16/m-part.GGUF":        {Repo: "org/m", Revision: "v2", File: "BF16/m-part.GGUF"},
		"a_b/c.d-e":                        {Repo: "a_b/c.d-e", Revision: "main"},
		"org/m@" + strings.Repeat("a", 40): {Repo: "org/m", Revision: strings.Repeat("a", 40)},
	} {
		got, ok := ParseRef(text)
		if !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
		if got.String() != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
	for _, text := range []string{
		"", ".", "..", "/models/m", "./m", "~/m", "a/b/c", "a//b", "../m", "a/..", "a/../b.gguf", "org/m/../../x.gguf", "org/m/..\\x.gguf",
		"m.gguf", "org/m.gguf", "-a/b", "a/b-", "a--b/c", "a..b", "org/m.git", "org/m@", "org/m@../x", "org/m@/etc", "org/m@a//b", "org/m@a/", "org/m:",
		"org/m:../x", "org/m:a/b", "org/m/f.gguf:Q4", "http://host/m", "org/m@v?x", "org/m/a%2e.gguf", "org/ü", "C:\\m", "org/" + strings.Repeat("a", 97),
	} {
		if got, ok := ParseRef(text); ok {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func TestRefOfCachePath(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	for path, want := range map[string]string{
		"/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/" + commit: "Qwen/Qwen3-8B@" + commit,
		"/h/models--gpt2/snapshots/" + commit:                                     "gpt2@" + commit,
		"/h/models--o--m-GGUF/snapshots/" + commit + "/q/m.gguf":                  "o/m-GGUF@" + commit + "/q/m.gguf",
		`C:\h\models--o--m\snapshots\` + commit:                                   "o/m@" + commit,
		"/h/models--o--m/snapshots/" + commit + "/config.json":                    "",
		"/h/models--o--m/snapshots/main":                                          "",
		"/h/models--o--m/snapshots/" + commit + "/../../x.gguf":                   "",
		"/h/models--../snapshots/" + commit:                                       "",
		"/models/m.gguf":                                                          "",
	} {
		got, ok := RefOfCachePath(path)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %s, %v", path, got, ok)
		}
	}
}

func TestChooseFiles(t *testing.T) {
	fetch, absent := chooseFiles([]string{
		"model.safetensors", "tokenizer.json", "config.json", "../../config.json", "/etc/passwd", "tokenizer.model",
		"additional_chat_templates/tool_use.jinja", "additional_chat_templates/../x.jinja", "additional_chat_templates/.x.jinja", "sub/tokenizer.json", "",
	})
	if got, want := strings.Join(fetch, " "), "config.json tokenizer.json additional_chat_templates/tool_use.jinja"; got != want {
		t.Errorf("fetches %s", got)
	}
	if len(absent) != len(wanted)-2 {
		t.Errorf("absent %v", absent)
	}
	if fetch, _ = chooseFiles([]string{"tekken.json", "tokenizer.model"}); strings.Join(fetch, " ") != "tekken.json" {
		t.Errorf("without tokenizer.json: %v", fetch)
	}
}

func TestChooseGGUF(t *testing.T) {
	list := []string{
		"README.md", "mmproj-m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-IQ4_K_M.gguf", "BF16/m-BF16-00002-of-00002.gguf", "BF16/m-BF16-00001-of-00002.gguf",
		"../x-Q2_K.gguf", "Q6_K/m.gguf",
	}
	for text, want := range map[string]string{
		"o/m":             "m-Q4_K_M.gguf",
		"o/m:q4_k_m":      "m-Q4_K_M.gguf",
		"o/m:Q8_0":        "m-Q8_0.gguf",
		"o/m:BF16":        "BF16/m-BF16-00001-of-00002.gguf",
		"o/m:Q6_K":        "Q6_K/m.gguf",
		"o/m:Q2_K":        "",
		"o/m:K_M":         "m-IQ4_K_M.gguf", // what people write is what they get
		"o/m/m-Q8_0.gguf": "m-Q8_0.gguf",
		"o/m/none.gguf":   "",
	} {
		ref, ok := ParseRef(text)
		if got := chooseGGUF(list, ref); !ok || got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := chooseGGUF([]string{"b-Q8_0.gguf", "a-Q8_0.gguf"}, Ref{}); got != "a-Q8_0.gguf" {
		t.Error(got)
	}
}

// Whatever is taken for a ref is written as it was read, and stays below its folder.
func FuzzParseRef(f *testing.F) {
	for _, text := range []string{"org/m@refs/pr/4", "org/m/q/f.gguf", "o/m:Q4", "a/../b.gguf", "x/models--a--b/snapshots/0123456789012345678901234567890123456789/f.gguf"} {
		f.Add(text)
	}
	c := cache{filepath.FromSlash("/cache")}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (Ref, bool){ParseRef, RefOfCachePath} {
			ref, ok := parse(text)
			if !ok {
				continue
			}
			if again, ok := ParseRef(ref.String()); !ok || again != ref {
				t.Errorf("%q is %+v, then %+v, %v", text, ref, again, ok)
			}
			repo := c.repo(ref)
			if filepath.Dir(repo) != c.dir {
				t.Errorf("%q leads to %s", text, repo)
			}
			for _, name := range []string{ref.Revision, ref.File} {
				if name != "" && !strings.HasPrefix(filepath.Join(repo, "refs", filepath.FromSlash(name)), filepath.Join(repo, "refs")+string(filepath.Separator)) {
					t.Errorf("%q leads to %s", text, name)
				}
			}
		}
	})
}
