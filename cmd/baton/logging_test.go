package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"baton/config"
)

func TestDurationsInTheLogHaveAUnit(t *testing.T) {
	for format, want := range map[string]string{"json": `"after":"5s"`, "text": "after=5s"} {
		var out bytes.Buffer
		newLogger(&out, &config.Serve{LogFormat: format}, new(slog.LevelVar)).Info("m", "after", 5*time.Second)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
