package main

import (
	"context"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"

	"baton/config"
	"baton/hub"
	"baton/model"
)

// newModels reads the models that flags name. What is not on this machine is
// fetched from the hub that the environment names, while baton serves.
func newModels(cfg *config.Serve, log *slog.Logger) (*model.Set, error) {
	from := hub.FromEnvironment(os.Getenv)
	from.Log = log
	h, err := hub.New(from)
	if err != nil {
		return nil, err
	}
	return model.NewSet(model.Options{
		Paths:            byName(cfg.ModelPaths),
		ServedNames:      byName(cfg.ServedNames),
		ToolCallParsers:  byName(cfg.ToolCallParsers),
		ReasoningParsers: byName(cfg.ReasoningParsers),
		Hub:              h,
		Log:              log,
	})
}

// together runs all of runs at the same time.
func together(runs ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range runs {
			group.Go(func() error { return run(ctx) })
		}
		return group.Wait()
	}
}
