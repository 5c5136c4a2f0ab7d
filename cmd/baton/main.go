package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"baton/config"
	"baton/engine/sim"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // it could not be done
	exitUsage  = 2 // it was asked for in a wrong way
)

func main() {
	dieWithParent()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is one call of baton: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	var err error
	switch command {
	case "serve":
		err = runServe(args, stdout, stderr)
	case "demo":
		err = runDemo(args, stdout)
	case "sim":
		err = runSim(args, stdout)
	case config.CommandDrain, config.CommandUndrain, config.CommandWorkers:
		err = runOperate(command, args, stdout)
	case config.CommandProbe:
		err = runProbe(args, stdout)
	case "version", "--version", "-v":
		err = noArguments("version", args, func() error { return printVersion(stdout) })
	case "help", "--help", "-h", "-help":
		err = runHelp(args, stdout)
	default:
		err = usageError{fmt.Sprintf("there is no command %q; baton knows %s", command, commands)}
	}
	return report(err, stderr)
}

// report says in one sentence why a command failed, and gives its exit status.
func report(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errQuiet):
		return exitFailed
	}
	fmt.Fprintf(stderr, "baton: %v\n", err)
	if isUsage(err) {
		return exitUsage
	}
	return exitFailed
}

// errQuiet fails a command that has already said why.
var errQuiet = errors.New("failed")

// usageError is a sentence about how baton was called.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func isUsage(err error) bool {
	_, ofConfig := errors.AsType[*config.UsageError](err)
	_, ofSim := errors.AsType[*sim.UsageError](err)
	_, ofCommand := errors.AsType[usageError](err)
	return ofConfig || ofSim || ofCommand
}

func noArguments(command string, args []string, do func() error) error {
	if len(args) > 0 {
		return usageError{fmt.Sprintf("%s takes no arguments, but was given %q", command, args[0])}
	}
	return do()
}

// stopSignals ask the process to stop. SIGTERM exists on Windows too, where it
// stands for the console's closing.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// interruptible returns a context that ends with the first signal that asks the
// process to stop; its cause is errInterrupted if that came from a keyboard. A
// second signal ends the process at once, as the default action is back in force
// by then.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, stopSignals...)
	go func() {
		var why error
		select {
		case s := <-signals:
			if s == os.Interrupt {
				why = errInterrupted
			}
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel(why)
	}()
	return ctx, func() { cancel(nil) }
}

// errInterrupted is the cause of a stop by Ctrl-C.
var errInterrupted = errors.New("interrupted")
