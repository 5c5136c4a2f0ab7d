package engine

import (
	"fmt"
	"testing"
)

func TestSubID(t *testing.T) {
	for _, n := range []int{0, 7, 10, 99, 100, 999, 1000, 12345} {
		for digits := 1; digits <= 4; digits++ {
			if got, want := SubID("chatcmpl-x", "-r", n, digits), fmt.Sprintf("chatcmpl-x-r%0*d", digits, n); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
