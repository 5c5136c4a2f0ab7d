package main

import (
	"os"
	"syscall"
)

// stopSignals ask the process to stop. SIGTERM exists on Windows too, where it
// stands for the console's closing.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
