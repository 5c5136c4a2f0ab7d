package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"baton/admin"
	"baton/config"
)

const (
	operateTimeout   = 10 * time.Second // of one question to the running baton
	maxAdminReply    = 64 << 20
	drainPollSpacing = 200 * time.Millisecond
)

// runOperate is `baton drain`, `baton undrain` and `baton workers`: they talk to a
// running baton.
func runOperate(command string, args []string, stdout io.Writer) error {
	cfg, err := config.LoadAdmin(command, args, os.LookupEnv)
	switch {
	case errors.Is(err, config.ErrHelp):
		return operateHelp(command, stdout)
	case err != nil:
		return err
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	o := operator{address: cfg.Address}
	if command == config.CommandWorkers {
		return o.workers(ctx, stdout)
	}
	return o.drain(ctx, command, cfg, stdout)
}

// An operator talks to the admin address of a running baton.
type operator struct{ address string }

func (o operator) drain(ctx context.Context, command string, cfg *config.Admin, stdout io.Writer) error {
	var d admin.Drained
	if err := o.ask(ctx, http.MethodPost, "/admin/workers/"+url.PathEscape(cfg.WorkerID)+"/"+command, &d); err != nil {
		return err
	}
	if command == config.CommandUndrain {
		fmt.Fprintf(stdout, "%s is back in rotation; %s there\n", d.ID, running(d.Running))
		return nil
	}
	fmt.Fprintf(stdout, "%s gets no new requests; %s there\n", d.ID, running(d.Running))
	if cfg.Wait <= 0 || d.Running == 0 {
		return nil
	}
	left, err := o.empty(ctx, cfg)
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%s there after %v", running(left), cfg.Wait)
	}
	fmt.Fprintf(stdout, "%s is empty\n", d.ID)
	return nil
}

// empty waits until nothing runs on the worker, at most cfg.Wait, and returns how
// many requests still do.
func (o operator) empty(ctx context.Context, cfg *config.Admin) (left int, err error) {
	deadline := time.Now().Add(cfg.Wait)
	for {
		var list admin.WorkersReply
		if err := o.ask(ctx, http.MethodGet, "/admin/workers", &list); err != nil {
			return 0, err
		}
		left = 0 // a worker that is gone is empty
		for _, w := range list.Workers {
			if w.ID == cfg.WorkerID {
				left = w.InFlight
			}
		}
		if left == 0 || time.Now().After(deadline) {
			return left, nil
		}
		wait(ctx, drainPollSpacing)
		if err := ctx.Err(); err != nil {
			return left, fmt.Errorf("interrupted; %s is still drained, and %s there", cfg.WorkerID, running(left))
		}
	}
}

func running(n int) string {
	if n == 1 {
		return "1 request is running"
	}
	return fmt.Sprintf("%d requests are running", n)
}

// ask sends one request and reads its reply. Its error is a sentence.
func (o operator) ask(ctx context.Context, method, path string, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, operateTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+o.address+path, nil)
	if err != nil {
		return fmt.Errorf("ask baton at %s: %w", o.address, err)
	}
	client := &http.Client{Transport: &http.Transport{}} // a proxy of the environment is not for this
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("no baton listens at %s; name the --admin-address of the running one", o.address)
		}
		return fmt.Errorf("cannot reach baton at %s: %w", o.address, reason(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminReply))
	if err != nil {
		return fmt.Errorf("read the answer of baton at %s: %w", o.address, reason(err))
	}
	var refusal struct {
		Error struct{ Message, Code string }
	}
	if resp.StatusCode/100 == 2 && json.Unmarshal(body, reply) == nil {
		return nil
	}
	if json.Unmarshal(body, &refusal) == nil && refusal.Error.Message != "" && refusal.Error.Code != "not_found" {
		message := strings.Replace(refusal.Error.Message, "GET /admin/workers lists", "baton workers lists", 1)
		return errors.New(strings.ToLower(message[:1]) + strings.TrimSuffix(message[1:], "."))
	}
	return fmt.Errorf("what answers at %s (status %d) is no admin address of a baton", o.address, resp.StatusCode)
}
