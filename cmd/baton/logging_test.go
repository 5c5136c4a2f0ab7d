package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"baton/config"
)

func TestDurationsInTheLogHaveAUnit(t *testing.T) {
	for format, want := range map[string]string{"json": `"after":"5s"`, "text": "after=5s"} {
		var out bytes.Buffer
		newLogger(&out, &config.Serve{LogLevel: "info", LogFormat: format}).Info("m", "after", 5*time.Second)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
