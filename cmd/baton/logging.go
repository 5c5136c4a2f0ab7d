package main

import (
	"io"
	"log/slog"

	"baton/config"
)

// newLogger makes the one logger that all packages are given.
func newLogger(w io.Writer, cfg *config.Serve) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		panic(err) // config lets no other words through
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
