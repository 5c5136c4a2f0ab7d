package main

import (
	"bytes"
	"context"
	"io"

	"baton/engine/sim"
)

// runSim is `baton sim`: one simulated worker, until a signal ends it.
func runSim(args []string, stdout io.Writer) error {
	ctx, stop := interruptible(context.Background())
	defer stop()
	// What it says besides its address is its help, which was asked for, or the
	// same with an error, for which one sentence does.
	var help bytes.Buffer
	if err := sim.Run(ctx, args, stdout, &help); err != nil {
		return err
	}
	_, err := help.WriteTo(stdout)
	return err
}
