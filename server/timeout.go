package server

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"baton/openai"
)

const timeoutHeader = "X-Request-Timeout"

// requestTimeout is the bound of a request whose header says value, where flag
// is the configured one: the header can lower it. 0 = none.
func requestTimeout(value string, flag time.Duration) (time.Duration, *openai.Error) {
	if value == "" {
		return flag, nil
	}
	d, ok := parseTimeout(value)
	if !ok || d <= 0 {
		return 0, openai.InvalidRequest(timeoutHeader, "The header %s must be a positive number of seconds or a duration such as 90s or 2m, not %s.",
			timeoutHeader, printable(value))
	}
	if flag > 0 {
		d = min(d, flag)
	}
	return d, nil
}

// parseTimeout reads seconds or a Go duration.
func parseTimeout(value string) (time.Duration, bool) {
	if d, err := time.ParseDuration(value); err == nil {
		return d, true
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return 0, false
	}
	const maxSeconds = 365 * 24 * 3600 // far beyond any answer, and no overflow
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second)), true
}

// errTimedOut is the cause of a context whose request took too long.
func errTimedOut(limit time.Duration) error {
	return fmt.Errorf("request time limit of %v: %w", limit, context.DeadlineExceeded)
}
