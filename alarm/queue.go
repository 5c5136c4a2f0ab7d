package alarm

import "time"

// A queue is a heap: the alarm that is due first stands first, and each is due no
// later than the children of its place. A place has four, which lie side by side: the
// tree is half as deep as one of two, and the records of alarms, which lie about the
// memory, are touched only where something moves.
type queue []entry

type entry struct {
	due   time.Duration
	alarm *Alarm
}

const children = 4

// put puts a where it belongs with this due, whether it is in the queue or not.
func (q *queue) put(a *Alarm, due time.Duration) {
	if a.place == 0 {
		*q = append(*q, entry{})
		a.place = len(*q)
	}
	q.settle(a.place-1, entry{due, a})
}

// remove takes a out of the queue, if it is there.
func (q *queue) remove(a *Alarm) {
	if a.place == 0 {
		return
	}
	i, last := a.place-1, len(*q)-1
	moved := (*q)[last]
	(*q)[last] = entry{} // keep no record alive
	*q = (*q)[:last]
	if i < last {
		q.settle(i, moved)
	}
	a.place = 0
}

// settle puts e at the free place i, or as far above or below it as it belongs.
func (q queue) settle(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / children
		if q[parent].due <= e.due {
			break
		}
		q.place(i, q[parent])
		i = parent
	}
	for {
		first := i
		dueFirst := e.due
		for child := children*i + 1; child <= children*i+children && child < len(q); child++ {
			if q[child].due < dueFirst {
				first, dueFirst = child, q[child].due
			}
		}
		if first == i {
			break
		}
		q.place(i, q[first])
		i = first
	}
	q.place(i, e)
}

func (q queue) place(i int, e entry) {
	q[i] = e
	e.alarm.place = i + 1
}
