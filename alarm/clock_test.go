package alarm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

func TestWhenAnAlarmRings(t *testing.T) {
	for _, c := range []struct {
		name             string
		now              time.Duration
		earliest, latest time.Duration
		want             time.Duration
	}{
		{"exactly", 0, 333 * ms, 333 * ms, 333 * ms},
		{"exactly on the grid", 0, 250 * ms, 250 * ms, 250 * ms},
		{"at the next eighth", 0, 251 * ms, 376 * ms, 375 * ms},
		{"at this eighth", 0, 250 * ms, 375 * ms, 250 * ms},
		{"at the last moment", 0, 251 * ms, 375 * ms, 375 * ms},
		{"no eighth lies between", 0, 251 * ms, 374 * ms, 251 * ms},
		{"latest is none", 0, 251 * ms, 0, 251 * ms},
		{"any time", 0, time.Second, math.MaxInt64, time.Second},
		{"it is past", 700 * ms, 600 * ms, 600 * ms, 700 * ms},
		{"a little of it is past", 700 * ms, 690 * ms, 815 * ms, 750 * ms},
		{"before the start", 0, -time.Second, -time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				time.Sleep(c.now)
				at := time.Duration(-1)
				var a Alarm
				a.Ring = func(time.Duration) { at = clock.Now() }
				clock.Set(&a, c.earliest, c.latest)
				time.Sleep(time.Hour)
				synctest.Wait()
				if at != c.want {
					t.Errorf("rang at %v, want %v", at, c.want)
				}
			})
		})
	}
}

// What is as far off as times go neither rings at once nor keeps others from it.
func TestTheEndOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		var never, soon Alarm
		never.Ring = func(time.Duration) { t.Error("it rang") }
		rang := false
		soon.Ring = func(time.Duration) { rang = true }
		clock.Set(&never, math.MaxInt64-1, math.MaxInt64)
		clock.Set(&soon, time.Second, time.Second)
		time.Sleep(time.Hour)
		synctest.Wait()
		if !rang {
			t.Error("it did not ring")
		}
	})
}

// Ring is told what the alarm was due at, also when the process stood still.
func TestLateAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		got := map[string]time.Duration{}
		var slow, behind Alarm
		slow.Ring = func(due time.Duration) {
			got["slow"] = clock.Now() - due
			time.Sleep(3 * time.Second) // nothing of ours runs
		}
		behind.Ring = func(due time.Duration) { got["behind"] = clock.Now() - due }
		clock.Set(&slow, time.Second, time.Second)
		clock.Set(&behind, 2*time.Second, 2*time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got["slow"] != 0 || got["behind"] != 2*time.Second {
			t.Errorf("late by %v", got)
		}
	})
}

// An alarm may set itself again, and is then due once each time.
func TestAnAlarmSetsItselfAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		var rang []time.Duration
		var a Alarm
		a.Ring = func(due time.Duration) {
			rang = append(rang, clock.Now())
			clock.Set(&a, due+time.Second, due+time.Second+Grid)
		}
		clock.Set(&a, 300*ms, 300*ms)
		time.Sleep(4 * time.Second)
		clock.Stop(&a)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{300 * ms, 1375 * ms, 2375 * ms, 3375 * ms}; !slices.Equal(rang, want) {
			t.Errorf("rang at %v, want %v", rang, want)
		}
	})
}

// Stop waits for an alarm that rings, takes back what that sets, and waits for no
// other one.
func TestStopWhileItRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		var slow, other Alarm
		rang := 0
		slow.Ring = func(time.Duration) {
			time.Sleep(time.Second)
			rang++
			clock.Set(&slow, 0, 0)
		}
		other.Ring = func(time.Duration) { t.Error("an alarm rang that was stopped") }
		clock.Set(&slow, time.Second, time.Second)
		clock.Set(&other, 1500*ms, 1500*ms)
		time.Sleep(1200 * ms)
		clock.Stop(&other)
		if now := clock.Now(); now != 1200*ms {
			t.Errorf("Stop of another one returned at %v", now)
		}
		clock.Stop(&slow)
		if now := clock.Now(); now != 2*time.Second || rang != 1 {
			t.Errorf("Stop returned at %v; it had rung %d times", now, rang)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rang != 1 {
			t.Errorf("it rang %d times", rang)
		}
		clock.Stop(&slow) // which is not set, nor ever was the next
		clock.Stop(new(Alarm))
	})
}

// A clock that nothing is set on any more does not keep its timer going.
func TestTheTimerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		var alarms [10]Alarm
		for i := range alarms {
			alarms[i].Ring = func(time.Duration) { t.Error("it rang") }
			clock.Set(&alarms[i], time.Duration(i)*time.Second, time.Duration(i)*time.Second)
		}
		for i := range alarms {
			clock.Stop(&alarms[i])
		}
		time.Sleep(time.Second)
		synctest.Wait()
		clock.mu.Lock()
		defer clock.mu.Unlock()
		if clock.set != never || len(clock.queue) > 0 || clock.timer.Stop() {
			t.Errorf("set to %v, %d alarms", clock.set, len(clock.queue))
		}
	})
}

// A model is alarms kept the simple way.
type model map[int][3]time.Duration // by the number of the alarm: earliest, latest, and when it was set

// TestAgainstAModel sets and stops alarms at random, some from the ringing of others,
// and compares at each moment with what a simple one says.
func TestAgainstAModel(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(7, uint64(seed)))
			clock, want := NewClock(), model{}
			var mu sync.Mutex // guards want and rnd
			alarms := make([]Alarm, 1+rnd.IntN(200))
			change := func(i int) { // mu is held
				if rnd.IntN(4) == 0 {
					return
				}
				earliest := clock.Now() + time.Duration(rnd.IntN(2000)-50)*ms
				latest := earliest + time.Duration(max(0, rnd.IntN(300)-100))*ms
				want[i] = [3]time.Duration{earliest, latest, clock.Now()}
				clock.Set(&alarms[i], earliest, latest)
			}
			rang := 0
			for i := range alarms {
				alarms[i].Ring = func(due time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					now := clock.Now()
					w, set := want[i]
					switch {
					case !set:
						t.Errorf("seed %d: alarm %d rang at %v and was not set", seed, i, now)
					case now < w[0] || now > max(w[1], w[2]):
						t.Errorf("seed %d: alarm %d rang at %v, not from %v to %v", seed, i, now, w[0], w[1])
					case due < w[0] || due > w[1]:
						t.Errorf("seed %d: alarm %d was due at %v, not from %v to %v", seed, i, due, w[0], w[1])
					}
					rang++
					delete(want, i)
					if clock.Now() < 20*time.Second {
						change(i)
						if j := rnd.IntN(len(alarms)); j != i {
							change(j)
						}
					}
				}
			}
			for clock.Now() < 30*time.Second {
				mu.Lock()
				for i, w := range want {
					if w[1] < clock.Now()-ms { // changes are made behind the moment they ring at
						t.Errorf("seed %d: at %v alarm %d is overdue since %v", seed, clock.Now(), i, w[1])
					}
				}
				if clock.Now() < 20*time.Second {
					change(rnd.IntN(len(alarms)))
				}
				stop, pause := rnd.IntN(len(alarms)), time.Duration(rnd.IntN(20))*ms
				mu.Unlock()
				synctest.Wait() // until all has rung that is due: nothing sets the one that is stopped
				clock.Stop(&alarms[stop])
				delete(want, stop)
				check(t, clock)
				time.Sleep(pause)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(want) > 0 || rang < 20 {
				t.Errorf("seed %d: %d did not ring, %d did", seed, len(want), rang)
			}
		})
	}
}

// check looks whether the queue is one, and its alarms know their places.
func check(t *testing.T, c *Clock) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.queue {
		if e.alarm.place != i+1 || e.due < c.queue[max(0, i-1)/children].due {
			t.Fatalf("place %d of %d: %+v", i, len(c.queue), e)
		}
	}
}

// Many goroutines set and stop alarms in real time; run it with -race.
func TestManyGoroutines(t *testing.T) {
	clock := NewClock()
	var rang atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var running, stopped atomic.Bool
			var a Alarm
			a.Ring = func(due time.Duration) {
				running.Store(true)
				if stopped.Load() {
					t.Error("it rang after Stop had returned")
				}
				rang.Add(1)
				clock.Set(&a, due+10*time.Microsecond, due+10*time.Microsecond)
				running.Store(false)
			}
			for i := range 300 {
				stopped.Store(false)
				clock.Set(&a, clock.Now()+time.Duration(i%7)*time.Microsecond, 0)
				if i%3 == 0 {
					time.Sleep(20 * time.Microsecond)
				}
				clock.Stop(&a)
				stopped.Store(true)
				if running.Load() {
					t.Error("it rings, and Stop has returned")
				}
			}
		})
	}
	all.Wait()
	if rang.Load() == 0 {
		t.Error("nothing rang")
	}
}

func TestNoAllocation(t *testing.T) {
	clock := NewClock()
	alarms := make([]Alarm, 100)
	all := func() {
		for i := range alarms {
			clock.Set(&alarms[i], clock.Now()+time.Hour, clock.Now()+2*time.Hour)
		}
		for i := range alarms {
			clock.Set(&alarms[i], clock.Now()+time.Minute, clock.Now()+time.Hour)
		}
		for i := range alarms {
			clock.Stop(&alarms[i])
		}
	}
	all()
	if n := testing.AllocsPerRun(20, all); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkSetAndStop is what an alarm costs that does not ring, beside what a timer
// of its own costs, with as many others set.
func BenchmarkSetAndStop(b *testing.B) {
	for _, others := range []int{0, 500, 10000} {
		b.Run(fmt.Sprintf("alarm/others=%d", others), func(b *testing.B) {
			clock := NewClock()
			alarms := make([]Alarm, others+1)
			for i := range alarms {
				clock.Set(&alarms[i], time.Hour+time.Duration(i)*ms, 2*time.Hour)
			}
			b.ReportAllocs()
			for b.Loop() {
				clock.Set(&alarms[0], time.Hour, 2*time.Hour)
				clock.Stop(&alarms[0])
			}
		})
		b.Run(fmt.Sprintf("timer/others=%d", others), func(b *testing.B) {
			for i := range others {
				defer time.AfterFunc(time.Hour+time.Duration(i)*ms, func() {}).Stop()
			}
			b.ReportAllocs()
			for b.Loop() {
				time.AfterFunc(time.Hour, func() {}).Stop()
			}
		})
	}
}
