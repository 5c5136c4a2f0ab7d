package engine

import "strconv"

// SubID names the n-th part of what has an id, a choice of a request or an attempt
// of a choice: id, mark, and n in at least so many digits (up to 9), so that no
// usual name is a prefix of another.
func SubID(id, mark string, n, digits int) string {
	number := strconv.Itoa(n)
	return id + mark + "000000000"[:max(digits-len(number), 0)] + number
}
