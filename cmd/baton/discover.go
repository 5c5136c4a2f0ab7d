package main

import (
	"context"
	"fmt"
	"log/slog"

	"baton/config"
	"baton/discovery"
	"baton/router"
)

// workerSource returns the source of all workers: those of --worker, and those that
// --discovery finds.
func workerSource(cfg *config.Serve, log *slog.Logger) (discovery.Source, error) {
	var static discovery.Static
	for _, w := range cfg.Workers {
		static = append(static, discovery.Target{URL: w.URL, Kind: w.Kind})
	}
	sources := []discovery.Source{static}
	switch cfg.Discovery {
	case config.DiscoverStatic:
	case config.DiscoverFile:
		for _, name := range cfg.DiscoveryFiles {
			f, err := discovery.NewFile(string(name), config.Kinds(), log)
			if err != nil {
				return nil, fmt.Errorf("--discovery-file %w", err)
			}
			sources = append(sources, f)
		}
	case config.DiscoverDNS:
		for _, n := range cfg.DiscoveryNames {
			sources = append(sources, discovery.Addresses(discovery.Name(n), cfg.DiscoveryInterval, discovery.SystemResolver, log))
		}
	case config.DiscoverSRV:
		for _, n := range cfg.DiscoveryNames {
			sources = append(sources, discovery.Services(discovery.Name(n), cfg.DiscoveryInterval, discovery.SystemResolver, log))
		}
	default:
		panic(fmt.Sprintf("discovery %q", cfg.Discovery)) // config lets no other through
	}
	return discovery.Join(log, sources...), nil
}

// following returns what tells the router of each change of the source.
func following(source discovery.Source, workers *router.Router) func(context.Context) error {
	return func(ctx context.Context) error {
		return source.Run(ctx, func(targets []discovery.Target) {
			specs := make([]router.Spec, len(targets))
			for i, t := range targets {
				specs[i] = router.Spec{ID: t.Address(), URL: t.URL, Kind: t.Kind}
			}
			workers.SetWorkers(specs)
		})
	}
}
