package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"baton/config"
)

func TestNamesInFlagsThatNoWorkerHas(t *testing.T) {
	cfg := &config.Serve{
		Workers:     []config.Worker{{ID: "a:1"}, {ID: "b:1"}},
		ModelPaths:  []config.Named{{Value: "/all"}, {Name: "smollm2", Value: "/x"}, {Name: "nosuch", Value: "/y"}},
		ServedNames: []config.Named{{Name: "SmolLM2-360M", Value: "smollm2"}, {Name: "smolm2-360M", Value: "typo"}},
	}
	const path = `flag="--model-path nosuch=/y" there_is=[smollm2]`
	const served = `flag="--served-model-name smolm2-360M=typo" there_is=[SmolLM2-360M]`
	begin := time.Now()
	t.Run("when all workers are there", func(t *testing.T) {
		var log bytes.Buffer
		f := newFlagNames(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		f.saw("SmolLM2-360M", "smollm2")
		f.looked("a:1", true, begin)
		if log.Len() > 0 {
			t.Errorf("too early, a worker is still missing: %s", log.String())
		}
		f.looked("b:1", true, begin)
		f.looked("a:1", true, begin.Add(time.Hour))
		if got := log.String(); strings.Count(got, "WARN") != 2 || !strings.Contains(got, path) || !strings.Contains(got, served) {
			t.Errorf("log %s", got)
		}
	})
	t.Run("when one does not come", func(t *testing.T) {
		var log bytes.Buffer
		f := newFlagNames(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		f.looked("b:1", false, begin)
		f.looked("b:1", false, begin.Add(flagNamesGrace))
		if log.Len() > 0 {
			t.Errorf("no worker is there at all: %s", log.String())
		}
		f.saw("SmolLM2-360M", "smollm2")
		f.looked("a:1", true, begin.Add(flagNamesGrace))
		if got := log.String(); strings.Count(got, "WARN") != 2 {
			t.Errorf("log %s", got)
		}
	})
	t.Run("when the only worker's model has no files, maybe for that reason", func(t *testing.T) {
		var log bytes.Buffer
		f := newFlagNames(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		f.saw("SmolLM2-360M", "smollm2")
		f.looked("a:1", false, begin)
		if log.Len() > 0 {
			t.Errorf("too early: %s", log.String())
		}
		f.looked("a:1", false, begin.Add(flagNamesGrace))
		if got := log.String(); strings.Count(got, "WARN") != 2 || !strings.Contains(got, path) {
			t.Errorf("log %s", got)
		}
	})
	t.Run("not if all are known", func(t *testing.T) {
		var log bytes.Buffer
		f := newFlagNames(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		f.saw("SmolLM2-360M", "smollm2")
		f.saw("smolm2-360M", "nosuch")
		f.looked("a:1", true, begin)
		f.looked("b:1", true, begin)
		if log.Len() > 0 {
			t.Errorf("log %s", log.String())
		}
	})
}
