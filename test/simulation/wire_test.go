package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/llamacpp"
	"baton/engine/sglang"
	"baton/engine/sim"
	"baton/engine/transport"
	"baton/engine/trtllm"
	"baton/engine/vllm"
	"baton/migration"
	"baton/preprocess"
	"baton/router"
	"baton/server"
	"baton/test/harness"
	"baton/thinking"
)

const frontAddress = "front:80"

// runWire runs a world's request over HTTP on both sides: a strict client, the
// real server, the real engine clients, and simulated workers that speak the
// engines' protocols and break them.
func runWire(t *testing.T, w *World) (a *harness.Answer, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		network := &enginetest.Network{}
		var background sync.WaitGroup
		fleet := map[string]*sim.Server{}
		var specs []router.Spec
		for _, c := range w.Workers {
			s := sim.NewServer(c)
			fleet[c.ID] = s
			l := network.Listen(c.ID)
			background.Go(func() { s.Serve(l) })
			specs = append(specs, router.Spec{ID: c.ID, URL: "http://" + c.ID})
		}
		log := slog.New(slog.DiscardHandler)
		if *oneSeed != 0 {
			log = slog.New(slog.NewTextHandler(t.Output(), nil))
		}
		kinds := map[string]string{}
		for _, c := range w.Workers {
			kinds[c.ID] = c.Kind
		}
		m, _ := models.Get(sim.DefaultModelName)
		links := map[string]*transport.Link{}
		var mu sync.Mutex
		attach := func(ctx context.Context, s router.Spec) (*router.Worker, error) {
			mu.Lock()
			link := links[s.ID]
			if link == nil {
				link, _ = transport.New(transport.Options{URL: s.URL, WorkerID: s.ID, ConnectTimeout: time.Second, DialContext: network.DialContext})
				links[s.ID] = link
			}
			mu.Unlock()
			var client engine.Client
			switch kinds[s.ID] {
			case sim.KindLlamaCPP:
				client = llamacpp.New(link, llamacpp.Options{Piece: m.Tokenizer.Bytes, Size: m.Tokenizer.Size()})
			case sim.KindSGLang:
				client = sglang.New(link)
			case sim.KindTRTLLM:
				client = trtllm.New(link)
			default:
				client = vllm.New(link)
			}
			info, err := client.Probe(ctx)
			if err != nil {
				return nil, err
			}
			return &router.Worker{Client: client, Models: []router.Model{{Name: sim.DefaultModelName, Own: info.Models[0].ID, ContextLength: info.Models[0].ContextLength}}}, nil
		}
		reg := prometheus.NewRegistry()
		next := w.Seed
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			next = next*6364136223846793005 + 1442695040888963407
			return int(next>>33) % n
		}
		workers := router.New(specs, attach, router.Config{
			ConnectTimeout: time.Second, FirstTokenTimeout: 3 * time.Second, StallTimeout: 4 * time.Second,
			WorkerWaitTimeout: 20 * time.Second, InhibitDuration: 500 * time.Millisecond, HealthInterval: 200 * time.Millisecond,
			Dial: network.DialContext,
		}, log, reg, "sim", rnd)
		background.Go(func() {
			if err := workers.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second) // a client may try what its worker can do, which takes a prefill
		synctest.Wait()

		texts := backend.New(thinking.New(migration.New(workers, migration.Config{Limit: w.Limit, MaxSeqLen: w.MaxLen}, log, reg, "sim")))
		pre := preprocess.New(models, preprocess.Options{ContextLength: workers.ContextLength}, log)
		api := server.New(pre, texts, workers, server.Config{SSEKeepAliveInterval: time.Second, WriteTimeout: time.Minute, MetricsNamespace: "sim", ReasoningField: "reasoning_content"}, log, reg, reg)
		front := &http.Server{Handler: api.Handler()}
		l := api.Listen(network.Listen(frontAddress), front)
		background.Go(func() { front.Serve(l) })

		a, err = post(t, network, w)

		front.Close()
		cancel()
		for _, s := range fleet {
			s.Kill()
			if err := s.Settle(context.Background()); err != nil {
				t.Error(err)
			}
		}
		for _, link := range links {
			link.Close()
		}
		background.Wait()
	})
	return a, err
}

// post sends the world's request and reads the answer as a strict client.
func post(t *testing.T, network *enginetest.Network, w *World) (*harness.Answer, error) {
	tr := &http.Transport{DialContext: network.DialContext}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+frontAddress+w.Path, bytes.NewReader(w.JSON()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &harness.Answer{Status: resp.StatusCode}
	if w.Body["stream"] == true && resp.StatusCode == http.StatusOK {
		leave := func(n int) {
			if n == w.Leave {
				cancel()
			}
		}
		var err error
		if w.Path == responsesPath {
			err = harness.ReadResponse(a, resp.Body, leave)
		} else {
			err = harness.ReadStream(a, resp.Body, strings.Contains(w.Path, "chat"), leave)
		}
		if w.Leave > 0 && ctx.Err() != nil {
			return a, errLeft
		}
		return a, err
	}
	return a, readWhole(a, w.Path, resp.Body)
}

var errLeft = errors.New("the client left")

// readWhole reads a JSON reply.
func readWhole(a *harness.Answer, path string, body io.Reader) error {
	var reply struct {
		Choices []struct {
			Index   int
			Text    string
			Message struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				Calls     []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish   string `json:"finish_reason"`
			TokenIDs []int  `json:"token_ids"`
		}
		Usage *harness.Usage
		Error *harness.APIError
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return fmt.Errorf("%w in %s", err, data)
	}
	if (reply.Error != nil) == (a.Status == http.StatusOK) {
		return fmt.Errorf("status %d with %s", a.Status, data)
	}
	a.Usage, a.Error = reply.Usage, reply.Error
	if path == responsesPath && a.Error == nil {
		return harness.ReadResponseObject(a, data)
	}
	for _, c := range reply.Choices {
		choice := harness.Choice{Text: c.Text + c.Message.Content, Reasoning: c.Message.Reasoning, Finish: c.Finish, TokenIDs: c.TokenIDs}
		for _, call := range c.Message.Calls {
			choice.Calls = append(choice.Calls, harness.Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		a.Choices = append(a.Choices, choice)
	}
	return nil
}

func TestFaultsDoNotShowOnTheWire(t *testing.T) {
	runWorlds(t, func(seed uint64, c reached) *World {
		kinds := []string{sim.KindVLLM, sim.KindSGLang, sim.KindTRTLLM, sim.KindLlamaCPP}
		w := NewWorld(seed, kinds...)
		if seed%3 == 0 {
			w.mix(seed, kinds...)
		}
		if seed%4 == 1 && w.respond(seed) {
			c["response"]++
		}
		c[strings.Join(w.adapt(), "+")]++
		return w
	}, "left", "failed", "whole", "response", "called")
}

// runWorlds runs worlds over the wire, without their faults and with them, and checks
// that things were reached.
func runWorlds(t *testing.T, world func(seed uint64, c reached) *World, things ...string) {
	c := reached{}
	if *oneSeed != 0 {
		w := world(*oneSeed, c)
		t.Log(w)
		compare(t, w, c)
		return
	}
	for seed := range uint64(*seeds / 5) { // a fifth: the wire takes more time
		if compare(t, world(seed+1, c), c); t.Failed() {
			return
		}
	}
	t.Log(c)
	if *seeds >= enoughSeeds {
		c.mustHave(t, things...)
	}
}

// compare runs a world with and without its faults.
func compare(t *testing.T, w *World, c reached) {
	t.Helper()
	want, err := runWire(t, w.faultless())
	if err != nil || want.Error != nil {
		t.Fatalf("%vwithout faults: %v %+v %+v", w, err, want, want.Error)
	}
	got, err := runWire(t, w)
	withoutIDs(got, want)
	switch {
	case errors.Is(err, errLeft):
		c["left"]++
		beginning(t, w, want, got)
	case err != nil:
		t.Fatalf("%v%v", w, err)
	case got.Error != nil:
		c["failed"]++
		if w.Saved {
			t.Errorf("%vcould have been saved: %+v", w, got.Error)
		}
		beginning(t, w, want, got)
	default:
		c["whole"]++
		for _, choice := range got.Choices {
			if choice.Calls != nil {
				c["called"]++
			}
			if choice.Reasoning != "" {
				c["thought"]++
			}
			c["finish "+choice.Finish]++
		}
		if !reflect.DeepEqual(got.Choices, want.Choices) || (got.Usage == nil) != (want.Usage == nil) || got.Usage != nil && *got.Usage != *want.Usage {
			t.Errorf("%v got %+v %+v\nwant %+v %+v", w, got.Choices, got.Usage, want.Choices, want.Usage)
		}
	}
}

// withoutIDs takes the ids from calls: they are made from that of the request.
func withoutIDs(answers ...*harness.Answer) {
	for _, a := range answers {
		for i := range a.Choices {
			for j := range a.Choices[i].Calls {
				a.Choices[i].Calls[j].ID = ""
			}
		}
	}
}

// beginning checks that what came before an error or the client's leaving is
// the beginning of the answer.
func beginning(t *testing.T, w *World, want, got *harness.Answer) {
	t.Helper()
	for i, c := range got.Choices {
		all := &want.Choices[i]
		if !strings.HasPrefix(all.Text, c.Text) || !strings.HasPrefix(all.Reasoning, c.Reasoning) || len(c.Calls) > len(all.Calls) {
			t.Errorf("%vchoice %d: %+v is no beginning of %+v", w, i, c, all)
			continue
		}
		for j, call := range c.Calls {
			if call.Name != all.Calls[j].Name || !strings.HasPrefix(all.Calls[j].Arguments, call.Arguments) {
				t.Errorf("%vchoice %d: the call %+v is no beginning of %+v", w, i, call, all.Calls[j])
			}
		}
	}
}
