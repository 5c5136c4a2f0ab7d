package main

import (
	"io"
	"log/slog"

	"baton/config"
)

// logLevel is the level that the flags ask for. Operators may change it.
func logLevel(cfg *config.Serve) *slog.LevelVar {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		panic(err) // config lets no other words through
	}
	return level
}

// newLogger makes the one logger that all packages are given.
func newLogger(w io.Writer, cfg *config.Serve, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		options.ReplaceAttr = durationsInWords
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// durationsInWords writes durations with their unit, as the text format does: the
// JSON handler's own way is a bare number of nanoseconds.
func durationsInWords(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
