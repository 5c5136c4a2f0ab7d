package router

import "time"

// maxMoveWait bounds what spacing adds to a move. A crowd that would take longer is
// spread over that time, and so starts closer together.
const maxMoveWait = 2 * time.Second

// pace returns when a request that lost its worker may start on another one.
// After the death of a worker with many streams the survivors get them spread in
// time: MoveSpacing apart on each of them. A lone stream starts at once, and one
// model's streams do not wait for another's. r.mu is held.
func (r *Router) pace(model string, now time.Time, survivors int) time.Time {
	start := now
	if next := r.nextMove[model]; next.After(now) {
		start = next
	}
	if start.Sub(now) > maxMoveWait {
		return now.Add(time.Duration(r.rnd(int(maxMoveWait))))
	}
	r.nextMove[model] = start.Add(r.cfg.MoveSpacing / time.Duration(survivors))
	return start
}

// moved reports whether the request comes from another worker. One that goes on with a
// further part of its answer, and is to stay where it is, does not.
func (c *call) moved() bool {
	return c.req.Prefer == "" && (len(c.req.Avoid) > 0 || c.req.Carried > 0)
}
