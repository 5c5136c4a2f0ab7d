package config

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Admin is the configuration of the commands that talk to a running baton.
type Admin struct {
	Address  string        // host:port to connect to
	WorkerID string        // of drain and undrain
	Wait     time.Duration // of drain: until nothing runs there; 0 = it does not wait

	settings []*setting
}

// The commands of LoadAdmin.
const (
	CommandDrain   = "drain"
	CommandUndrain = "undrain"
	CommandWorkers = "workers"
)

// LoadAdmin reads the command line of one of these commands, without its name.
// Its error is ErrHelp or a *UsageError.
func LoadAdmin(command string, args []string, lookupEnv func(string) (string, bool)) (*Admin, error) {
	c := newAdmin(command)
	flags, operands := splitOperands(c.settings, args)
	if err := load(c.settings, flags, lookupEnv, nil); err != nil {
		return nil, err
	}
	wanted := 1
	if command == CommandWorkers {
		wanted = 0
	}
	switch {
	case len(operands) > wanted:
		return nil, usage("unexpected argument %q%s", operands[wanted], map[bool]string{true: ": " + command + " takes one worker at a time"}[wanted == 1])
	case len(operands) < wanted:
		return nil, usage("%s needs the id of a worker, its host:port; baton workers lists them", command)
	case wanted == 1:
		c.WorkerID = operands[0]
	}
	if c.Address == "" {
		return nil, usage("the admin address is off, so there is nothing to talk to; name that of the running baton with --admin-address")
	}
	c.Address = reachable(c.Address)
	return c, nil
}

func newAdmin(command string) *Admin {
	c := &Admin{}
	c.settings = []*setting{
		address(&c.Address, defaultAdminAddress, "admin-address", "the --admin-address of the running baton"),
	}
	if command == CommandDrain {
		c.settings = append(c.settings, commandOnly(duration(&c.Wait, 0, "wait",
			"how long to wait until nothing runs on the worker; it is an error if something still does")))
	}
	return c
}

const defaultAdminAddress = "127.0.0.1:8001"

// reachable is where to connect to for an address to listen on.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// noAddress is the word for an address that is not listened on. The empty text
// means the same where it can be written.
const noAddress = "off"

// address declares a host:port to listen on, or none.
func address(p *string, initial, name, meaning string) *setting {
	*p = initial
	s := &setting{
		name: name, operand: "HOST:PORT", meaning: meaning,
		allowed: "host:port, or " + noAddress,
		set: func(text string) error {
			if text = strings.TrimSpace(text); text == "" || text == noAddress {
				*p = ""
				return nil
			}
			host, port, err := net.SplitHostPort(text)
			n, wrong := strconv.Atoi(port)
			if err != nil || wrong != nil || n < 0 || n > 65535 || len(host) > maxNameBytes || strings.ContainsAny(host, " /@?#") {
				return errNotAllowed
			}
			*p = text
			return nil
		},
		get: func() []string {
			if *p == "" {
				return []string{noAddress}
			}
			return []string{*p}
		},
	}
	s.initial = s.get()
	return s
}

// isDefault reports whether nobody has set it.
func isDefault(settings []*setting, name string) bool {
	return lookup(settings, name).source.kind == fromDefault
}
