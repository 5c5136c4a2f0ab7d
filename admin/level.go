package admin

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// levels are the words for the log's level, as --log-level has them.
var levels = []string{"debug", "info", "warn", "error"}

// Level is the reply to GET and PUT /admin/log-level, and one form of the body of
// PUT; the bare word is the other.
type Level struct {
	Level string `json:"level"`
}

func (a *Admin) showLevel(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusOK, Level{strings.ToLower(a.level.Level().String())})
}

func (a *Admin) setLevel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		status, code := http.StatusBadRequest, "unreadable_body"
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status, code = http.StatusRequestEntityTooLarge, "request_too_large"
		}
		refuse(w, status, code, "The body cannot be read; it must be a level.")
		return
	}
	wanted := Level{Level: strings.Trim(strings.TrimSpace(string(body)), `"`)}
	if strings.HasPrefix(wanted.Level, "{") {
		_ = json.Unmarshal(body, &wanted) // what is no level is refused below
	}
	wanted.Level = strings.ToLower(wanted.Level)
	var level slog.Level
	if !slices.Contains(levels, wanted.Level) || level.UnmarshalText([]byte(wanted.Level)) != nil {
		refuse(w, http.StatusBadRequest, "invalid_value", `The body must be a level, `+strings.Join(levels, ", ")+`, or an object such as {"level":"debug"}.`)
		return
	}
	if before := a.level.Level(); before != level {
		a.level.Set(level)
		a.log.Log(r.Context(), max(before, level, slog.LevelInfo), "log level changed",
			"from", strings.ToLower(before.String()), "to", wanted.Level)
	}
	reply(w, http.StatusOK, wanted)
}
