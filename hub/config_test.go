package hub

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func environmentOf(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		env             map[string]string
		cache, endpoint string
		offline         string
	}{
		{nil, "/h/.cache/huggingface/hub", "https://huggingface.co", ""},
		{map[string]string{"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub", "https://huggingface.co", ""},
		{map[string]string{"XDG_CACHE_HOME": "/x", "HF_HOME": "~/hf"}, "/h/hf/hub", "https://huggingface.co", ""},
		{map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/old"}, "/old", "https://huggingface.co", ""},
		{map[string]string{"HF_HUB_CACHE": "$DISK/c", "DISK": "/d", "HUGGINGFACE_HUB_CACHE": "/old"}, "/d/c", "https://huggingface.co", ""},
		{map[string]string{"HF_ENDPOINT": "http://mirror:80/hf/"}, "/h/.cache/huggingface/hub", "http://mirror:80/hf", ""},
		{map[string]string{"HF_HUB_OFFLINE": "1"}, "/h/.cache/huggingface/hub", "https://huggingface.co", "HF_HUB_OFFLINE"},
		{map[string]string{"TRANSFORMERS_OFFLINE": "yes"}, "/h/.cache/huggingface/hub", "https://huggingface.co", "TRANSFORMERS_OFFLINE"},
		{map[string]string{"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, "/h/.cache/huggingface/hub", "https://huggingface.co", ""},
	} {
		env := map[string]string{"HOME": "/h"}
		maps.Copy(env, c.env)
		got := FromEnvironment(environmentOf(env))
		if filepath.ToSlash(got.CacheDir) != c.cache || got.Endpoint != c.endpoint || got.Offline != c.offline {
			t.Errorf("%v: %+v", c.env, got)
		}
		if _, err := New(got); err != nil {
			t.Errorf("%v: %v", c.env, err)
		}
	}
}

func TestToken(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(other, []byte("hf_other"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string]map[string]string{
		"hf_file":  {},
		"hf_env":   {"HF_TOKEN": " hf_env\r\n"},
		"hf_older": {"HUGGING_FACE_HUB_TOKEN": "hf_older"},
		"hf_other": {"HF_TOKEN_PATH": other},
		"":         {"HF_TOKEN_PATH": filepath.Join(home, "none")},
	} {
		env["HF_HOME"] = home
		if got := FromEnvironment(environmentOf(env)).Token(); got != want {
			t.Errorf("%v: %q", env, got)
		}
	}
	if c := FromEnvironment(environmentOf(map[string]string{"HF_TOKEN": "x", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"})); c.Token != nil {
		t.Error("a token although it is switched off")
	}
	if got := cleanToken("a b"); got != "" {
		t.Errorf("%q could not be a header", got)
	}
}

func TestWrongEndpoint(t *testing.T) {
	for _, endpoint := range []string{"huggingface.co", "ftp://h", "https://", "https://user:secret@h", "://"} {
		_, err := New(Config{Endpoint: endpoint})
		if err == nil || !strings.HasPrefix(err.Error(), "HF_ENDPOINT is") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
