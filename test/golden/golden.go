// Package golden compares generated documents with what makes them.
package golden

import (
	"os"
	"strings"
	"testing"
)

// Check fails the test if the document at path is not want, and names the command that
// rewrites it; with update it is rewritten first. A checkout may have other line ends.
func Check(t testing.TB, path, want string, update bool, command string) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s is stale: run %s", path, command)
	}
}
