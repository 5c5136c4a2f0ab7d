package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes makes the console understand escape sequences. Those that cannot
// are treated as no terminal.
func enableEscapes(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
