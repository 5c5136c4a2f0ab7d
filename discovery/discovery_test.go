package discovery

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// A pushed source reports what a test gives it.
type pushed chan []Target

func (p pushed) Run(ctx context.Context, report func([]Target)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case targets := <-p:
			report(targets)
		}
	}
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(seen)
		a, b := make(pushed), make(pushed)
		source := Join(s.logger(), Static{{URL: "http://w1:80", Kind: "vllm"}}, a, b)
		s.following(t, source, func() {
			s.mustBe(t, 1, "w1:80") // nobody waits for a and b
			b <- []Target{{URL: "http://w3:80"}, {URL: "http://w1:80", Kind: "llamacpp"}}
			s.mustBe(t, 2, "w1:80", "w3:80")
			if kind := s.reports[1][0].Kind; kind != "vllm" {
				t.Errorf("the latter kind won: %q", kind)
			}
			a <- []Target{{URL: "http://w2:80"}, {URL: "https://w1:80"}}
			s.mustBe(t, 3, "w1:80", "w2:80", "w1:80", "w3:80")
			b <- nil
			s.mustBe(t, 4, "w1:80", "w2:80", "w1:80")

			var many []Target
			for i := range maxTargets {
				many = append(many, Target{URL: fmt.Sprintf("http://x%d:80", i)})
			}
			for range 2 {
				b <- many
				s.mustBe(t, 4, "w1:80", "w2:80", "w1:80")
			}
			if n := s.logged("more workers than can be used"); n != 1 {
				t.Errorf("%d records", n)
			}
			b <- many[:1]
			s.mustBe(t, 5, "w1:80", "w2:80", "w1:80", "x0:80")
		})
	})
}

type failing struct{}

func (failing) Run(context.Context, func([]Target)) error { return errors.New("broken") }

// The end of one source is the end of all.
func TestJoinFails(t *testing.T) {
	s := new(seen)
	if err := Join(s.logger(), Static{}, failing{}).Run(t.Context(), s.report); err == nil || err.Error() != "broken" {
		t.Error(err)
	}
}
