package stream

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Ids gather, are told one message at a time, and wait in bounded number.
func TestAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var aborts Aborts
		var told [][]string
		tell := func(ids []string) {
			told = append(told, slices.Clone(ids))
			time.Sleep(time.Second) // a stuck server
		}
		aborts.Add("a", tell)
		aborts.Add("b", tell)
		time.Sleep(2 * AbortGather)
		for i := range 2 * maxAborts {
			aborts.Add(fmt.Sprint(i), tell)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 2 || !slices.Equal(told[0], []string{"a", "b"}) {
			t.Fatalf("%d messages, the first %q", len(told), told[0])
		}
		if n := len(told[1]); n != maxAborts || told[1][0] != "0" {
			t.Errorf("%d ids waited, want %d", n, maxAborts)
		}
		aborts.Add("c", tell)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 3 || !slices.Equal(told[2], []string{"c"}) {
			t.Errorf("afterwards %q", told[2:])
		}
	})
}
