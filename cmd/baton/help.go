package main

import (
	"fmt"
	"io"

	"baton/config"
)

const overview = `baton is an OpenAI-compatible frontend for self-hosted workers of language models.
When a worker dies, its running answers go on elsewhere, from the exact token.

  baton demo                        see it happen: two workers, one is killed
  baton serve --worker URL ...      the frontend
  baton sim                         one simulated worker; with it, serve needs --model-path:
                                    baton sim --write-model DIR makes the folder
  baton probe URL                   what one worker is, and whether serve can use it
  baton workers                     the workers of a running frontend
  baton drain ID                    take a worker out of rotation; baton undrain ID brings it back
  baton version
  baton help [COMMAND]

A first frontend for two workers, which may move each request three times:

  baton serve --worker http://10.0.0.1:8000 --worker http://10.0.0.2:8000 --migration-limit 3
`

const commands = "serve, demo, sim, probe, workers, drain, undrain, version and help"

// runHelp explains baton, or one of its commands.
func runHelp(args []string, w io.Writer) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "":
		_, err := io.WriteString(w, overview)
		return err
	case "serve":
		return serveHelp(w)
	case "demo":
		return demoHelp(w)
	case config.CommandDrain, config.CommandUndrain, config.CommandWorkers:
		return operateHelp(command, w)
	case config.CommandProbe:
		return probeHelp(w)
	case "sim":
		return runSim([]string{"--help"}, w)
	case "version", "help":
		_, err := fmt.Fprintf(w, "baton %s takes no flags.\n", command)
		return err
	}
	return usageError{fmt.Sprintf("there is no command %q to help with; baton knows %s", command, commands)}
}

func serveHelp(w io.Writer) error {
	io.WriteString(w, "baton serve --worker [KIND=]URL ... [flags]\n\n"+
		"The frontend: an OpenAI-compatible API before the workers. Each flag has an environment\n"+
		"variable (--migration-limit is DYN_MIGRATION_LIMIT) and a key in the --config file.\n")
	return config.ServeHelp(w)
}

func demoHelp(w io.Writer) error {
	io.WriteString(w, "baton demo [flags]\n\n"+
		"Starts workers and the frontend as real processes, streams one answer, kills the worker\n"+
		"that writes it, and compares the text with the one that nothing happened to.\n\n")
	return config.DemoHelp(w)
}

func probeHelp(w io.Writer) error {
	io.WriteString(w, "baton probe [KIND=]URL [flags]\n\n"+
		"Asks a worker all that serve would ask it, generates one token, and shows the answers\n"+
		"together with a curl line for each request. The exit status is 0 if serve can use the\n"+
		"worker; else one sentence says why not.\n\n")
	return config.ProbeHelp(w)
}

// operateTexts explain the commands that talk to a running baton.
var operateTexts = map[string]string{
	config.CommandDrain: "baton drain ID [flags]\n\n" +
		"Takes the worker ID (its host:port) out of rotation, also over its own restart, until it is\n" +
		"undrained. What runs there may finish for --drain-timeout of serve; then it moves on.\n\n",
	config.CommandUndrain: "baton undrain ID [flags]\n\nBrings a drained worker back into rotation.\n\n",
	config.CommandWorkers: "baton workers [flags]\n\nLists the workers of a running baton: their state, and why one is out.\n\n",
}

func operateHelp(command string, w io.Writer) error {
	io.WriteString(w, operateTexts[command])
	return config.AdminHelp(w, command)
}
