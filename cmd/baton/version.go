package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev"

// revision is the commit that the binary was built from, or "".
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	return rev + dirty
}

func printVersion(w io.Writer) error {
	rev := revision()
	if rev != "" {
		rev = " (" + rev + ")"
	}
	_, err := fmt.Fprintf(w, "baton %s%s %s %s/%s\n", version, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
