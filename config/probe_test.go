package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLoadProbe(t *testing.T) {
	for _, args := range []string{
		"--json http://h:1 --model-path m=/x --timeout 5s",
		"http://h:1 --json --timeout=5s --model-path m=/x",
		"--model-path m=/x --timeout 5s --json=true http://h:1/",
	} {
		c, err := LoadProbe(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if c.Worker != (Worker{ID: "h:1", URL: "http://h:1"}) || !c.JSON || c.Timeout != 5*time.Second || len(c.ModelPaths) != 1 || c.ModelPaths[0] != (Named{"m", "/x"}) {
			t.Errorf("%s: %+v", args, c)
		}
	}
	if c, err := LoadProbe([]string{"vllm=http://h:1"}); err != nil || c.Worker.Kind != KindVLLM || c.JSON || c.Timeout != time.Minute {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadProbeMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "probe needs the address of a worker",
		"http://h:1 http://h:2":           `unexpected argument "http://h:2"`,
		"h:1":                             "write http://host:port",
		"http://u:secret@h:1":             "user name or password",
		"http://h:1 --timeout never":      "--timeout must be",
		"http://h:1 --migration-limit":    "there is no flag --migration-limit; see",
		"http://h:1 --worker-api-key-fil": "did you mean --worker-api-key-file?",
	} {
		_, err := LoadProbe(strings.Fields(args))
		if _, is := errors.AsType[*UsageError](err); !is || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, err := LoadProbe([]string{"--help"}); !errors.Is(err, ErrHelp) {
		t.Errorf("help: %v", err)
	}
}
