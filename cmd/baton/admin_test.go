package main

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"baton/config"
)

// That the default address is taken is said and is no reason not to serve; that
// the one which was asked for is taken, is.
func TestTakenAdminAddress(t *testing.T) {
	if l, err := net.Listen("tcp", "127.0.0.1:8001"); err == nil { // else another process has it
		defer l.Close()
	}
	for _, c := range []struct {
		args      []string
		log, fail string
	}{
		{nil, "there is no admin address: the default one is in use by another process", ""},
		{[]string{"--admin-address", "127.0.0.1:8001"}, "", "127.0.0.1:8001 is in use by another process; choose another address with --admin-address, or turn it off with --admin-address off"},
		{[]string{"--admin-address", "192.0.2.1:0"}, "", "cannot listen on 192.0.2.1:0: "},
		{[]string{"--admin-address", "off"}, "", ""},
	} {
		cfg, err := config.LoadServe(append([]string{"--worker", "http://h:1"}, c.args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		l, err := listenAdmin(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		if l != nil {
			l.Close()
			t.Errorf("%q: listens on %v", c.args, l.Addr())
		}
		if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
			t.Errorf("%q: log %q", c.args, log.String())
		}
		if (err == nil) != (c.fail == "") || err != nil && !strings.HasPrefix(err.Error(), c.fail) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// Who opens the admin address to the network is told what that means.
func TestOpenAdminAddressIsSaid(t *testing.T) {
	for address, warns := range map[string]bool{"127.0.0.1:0": false, ":0": true} {
		cfg, err := config.LoadServe([]string{"--worker", "http://h:1", "--admin-address", address}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := listenAdmin(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var log bytes.Buffer
		sayAdmin(cfg, l, slog.New(slog.NewTextHandler(&log, nil)))
		if strings.Contains(log.String(), "level=WARN") != warns || !strings.Contains(log.String(), l.Addr().String()) {
			t.Errorf("%s: %s", address, log.String())
		}
	}
}
