package config

import (
	"errors"
	"testing"
	"time"
)

func TestAdminAddress(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "off": "", "127.0.0.1:9": "127.0.0.1:9", ":8001": ":8001", "[::1]:0": "[::1]:0", "admin.example:8001": "admin.example:8001",
	} {
		c, err := LoadServe([]string{"--worker", "http://h:1", "--admin-address", text}, nil)
		if err != nil || c.AdminAddress != want || c.AdminAddressIsDefault() {
			t.Errorf("%q: %q, %v", text, c.AdminAddress, err)
		}
	}
	for _, text := range []string{"8001", "h", "h:x", "h:-1", "h:65536", "http://h:1", "a b:1", "u@h:1"} {
		_, err := LoadServe([]string{"--worker", "http://h:1", "--admin-address", text}, nil)
		if want := "--admin-address must be host:port, or off, not \"" + text + "\""; err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	c, err := LoadServe([]string{"--worker", "http://h:1"}, nil)
	if err != nil || !c.AdminAddressIsDefault() || c.AdminAddress != "127.0.0.1:8001" {
		t.Errorf("by default: %+v, %v", c, err)
	}
}

func TestLoadAdmin(t *testing.T) {
	env := func(name string) (string, bool) {
		return map[string]string{"DYN_ADMIN_ADDRESS": "10.0.0.1:7"}[name], true
	}
	for _, c := range []struct {
		command string
		args    []string
		env     func(string) (string, bool)
		want    Admin
	}{
		{CommandDrain, []string{"w:1"}, nil, Admin{Address: "127.0.0.1:8001", WorkerID: "w:1"}},
		{CommandDrain, []string{"w:1", "--wait", "1m"}, env, Admin{Address: "10.0.0.1:7", WorkerID: "w:1", Wait: time.Minute}},
		{CommandUndrain, []string{"--admin-address", "h:2", "w:1"}, env, Admin{Address: "h:2", WorkerID: "w:1"}},
		{CommandWorkers, []string{"--admin-address=:9"}, nil, Admin{Address: "localhost:9"}},
		{CommandWorkers, []string{"--admin-address=0.0.0.0:9"}, nil, Admin{Address: "localhost:9"}},
		{CommandWorkers, []string{"--admin-address=[::]:9"}, nil, Admin{Address: "localhost:9"}},
	} {
		got, err := LoadAdmin(c.command, c.args, c.env)
		if err != nil || got.Address != c.want.Address || got.WorkerID != c.want.WorkerID || got.Wait != c.want.Wait {
			t.Errorf("%s %q: %+v, %v", c.command, c.args, got, err)
		}
	}
	for _, c := range []struct {
		command string
		args    []string
		want    string
	}{
		{CommandDrain, nil, "drain needs the id of a worker, its host:port; baton workers lists them"},
		{CommandDrain, []string{"a", "b"}, `unexpected argument "b": drain takes one worker at a time`},
		{CommandWorkers, []string{"a"}, `unexpected argument "a"`},
		{CommandUndrain, []string{"a", "--wait", "1s"}, "there is no flag --wait; see --help"},
		{CommandWorkers, []string{"--admin-address"}, "--admin-address needs a value: host:port, or off"},
		{CommandWorkers, []string{"--admin-address", "off"}, "the admin address is off, so there is nothing to talk to; name that of the running baton with --admin-address"},
	} {
		_, err := LoadAdmin(c.command, c.args, nil)
		if _, ok := errors.AsType[*UsageError](err); !ok || err.Error() != c.want {
			t.Errorf("%s %q: %v\nwant %s", c.command, c.args, err, c.want)
		}
	}
	if _, err := LoadAdmin(CommandDrain, []string{"--help"}, nil); err != ErrHelp {
		t.Errorf("--help: %v", err)
	}
}
