package alarm

import (
	"math"
	"sync"
	"time"
)

// Grid is the time between two moments at which alarms ring that need not be exact.
// One that has so much between its earliest and its latest always rings at such a
// moment.
const Grid = 125 * time.Millisecond

const (
	// never is what the timer is set to when it is not set: everything is earlier.
	never = math.MaxInt64
	// ringing is what it counts as set to while it is served: nothing is earlier, and
	// when all that is due has rung it is set to the first of what is left.
	ringing = math.MinInt64
)

// A Clock rings alarms. Its methods may be called from any goroutine.
//
// Times are durations after its Start. Make one where the alarms are used and not
// for the whole program: tests have time of their own.
type Clock struct {
	start time.Time

	mu    sync.Mutex // guards the rest, and what the alarms keep here
	queue queue
	timer *time.Timer // nil until the first alarm
	set   time.Duration
	rings *Alarm    // the one that rings now, or nil
	last  bool      // it is being stopped: what it sets is taken back
	rung  sync.Cond // it has rung
}

// An Alarm is one thing that is to happen at its time. It is part of the record of
// what it is for, and belongs to one Clock.
type Alarm struct {
	// Ring is called when the alarm is due, which it then no longer is; it may set it
	// again. due is what it was due at, by which the caller can tell whether it comes
	// late. All alarms of a Clock ring on one goroutine, one after another: Ring does
	// nothing that can block, and starts a goroutine for what may. It is there before
	// the first Set and stays as it is.
	Ring func(due time.Duration)

	place int // in the queue, from 1; 0 = it is not set
}

// NewClock returns a Clock that starts now. It holds nothing that must be given
// back.
func NewClock() *Clock {
	c := &Clock{start: time.Now(), set: never}
	c.rung.L = &c.mu
	return c
}

// Start is the moment that times count from: time.Since(c.Start()) is the time. It
// does not change.
func (c *Clock) Start() time.Time { return c.start }

// Now returns the time.
func (c *Clock) Now() time.Duration { return time.Since(c.start) }

// Set sets a to ring once, not before earliest and not after latest, apart from
// what the machine is late: at the first multiple of Grid that lies between, so that
// alarms ring together, else at earliest. An alarm that must be exact has both the
// same. A moment that is past is as good as now. If a was set already, that is
// forgotten. It allocates nothing once the Clock has held as many alarms.
func (c *Clock) Set(a *Alarm, earliest, latest time.Duration) {
	due := earliest
	if whole := (earliest + Grid - 1).Truncate(Grid); whole <= latest {
		due = max(whole, earliest) // the sum may have run over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.put(a, due)
	if due < c.set {
		c.wind()
	}
}

// Stop takes back what Set did. If a rings at this moment, Stop waits for the end of
// that, and takes back too what that sets: when it has returned, Ring does not run
// and will not. Ring itself must not call it, nor wait for a lock that is held here.
func (c *Clock) Stop(a *Alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.rings == a {
		c.last = true
		c.rung.Wait()
	}
	// The timer stays as it is: at worst it fires for nothing, once.
	c.queue.remove(a)
}

// wind sets the timer to the first alarm. c.mu is held.
func (c *Clock) wind() {
	c.set = c.queue[0].due
	wait := max(c.set-c.Now(), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.fire)
		return
	}
	c.timer.Reset(wait)
}

// fire runs when the timer fires, on its goroutine.
func (c *Clock) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == ringing {
		return // it was set anew while the call that rings now was on its way
	}
	c.set = ringing
	for len(c.queue) > 0 && c.queue[0].due <= c.Now() {
		c.ring(c.queue[0].alarm, c.queue[0].due)
	}
	c.set = never
	if len(c.queue) > 0 {
		c.wind()
	}
}

// ring lets one alarm ring. c.mu is held, but not meanwhile.
func (c *Clock) ring(a *Alarm, due time.Duration) {
	c.queue.remove(a)
	c.rings = a
	c.mu.Unlock()
	a.Ring(due)
	c.mu.Lock()
	if c.last {
		c.queue.remove(a) // not by who waits: it might ring again before that has its turn
	}
	c.rings, c.last = nil, false
	c.rung.Broadcast()
}
