package engine

import "testing"

// A worker can only be lost at the hands of a request that ran there.
func TestIsLoss(t *testing.T) {
	for _, test := range []struct {
		err  *Error
		want bool
	}{
		{nil, false},
		{&Error{Kind: Disconnected}, true},
		{&Error{Kind: CannotConnect}, false},
		{&Error{Kind: Stalled}, false},
		{&Error{Kind: EngineError, Status: 500}, false},
		{&Error{Kind: EngineShutdown}, true},
		{&Error{Kind: EngineShutdown, Status: 500}, true},
		{&Error{Kind: EngineShutdown, Status: 503}, false}, // dead before
	} {
		if got := test.err.IsLoss(); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
