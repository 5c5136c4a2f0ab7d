package sim

import (
	"encoding/json"
	"slices"
	"testing"

	"baton/engine"
)

// The example of the package's documentation.
func TestDocumentedScript(t *testing.T) {
	var faults []Fault
	script := `[{"kind":"reset","after":5,"nth":2,"times":1}, {"kind":"status","status":503,"nth":2}]`
	if err := json.Unmarshal([]byte(script), &faults); err != nil {
		t.Fatal(err)
	}
	e := New(Config{MeanLength: -1, Faults: faults})
	var kinds []string
	for range 4 {
		kinds = append(kinds, kind(collect(t.Context(), e, request(prompt, 9)).err))
	}
	if want := []string{"none", engine.Disconnected.String(), engine.Overloaded.String(), engine.Overloaded.String()}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}
