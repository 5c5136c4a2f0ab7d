package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"baton/config"
	"baton/engine"
	"baton/engine/sim"
	"baton/model"
	"baton/router"
)

// nonsense is what a field of an answer may hold instead of what it should.
var nonsense = []any{
	nil, true, "", "x", "\x1b[31m\u202e\x07", strings.Repeat("long", 5000), json.Number("-1"), json.Number("1e999"), json.Number("1.5"),
	json.Number("9223372036854775807"), json.Number("99999999999999999999999"), json.Number("2147483648"), []any{}, map[string]any{},
	[]any{nil}, []any{json.Number("-5"), "7", json.Number("3.5")}, map[string]any{"id": json.Number("3"), "error": "x"},
}

// A liar hands on what a worker answers, with one thing in some of it changed.
type liar struct {
	worker http.Handler
	random *rand.Rand
	often  int // one answer in so many is changed
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	l.worker.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	if l.random.IntN(l.often) == 0 {
		body = l.change(body)
	}
	for name, values := range rec.Header() {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(rec.Code)
	w.Write(body)
}

// change changes one value of a document, or of one event of a stream.
func (l *liar) change(body []byte) []byte {
	lines := bytes.Split(body, []byte("\n"))
	var with []int // lines that hold JSON
	for i, line := range lines {
		if json.Valid(bytes.TrimPrefix(line, []byte("data: "))) {
			with = append(with, i)
		}
	}
	if json.Valid(body) {
		return l.changeJSON(body)
	}
	if len(with) == 0 {
		return body
	}
	i := with[l.random.IntN(len(with))]
	changed := l.changeJSON(bytes.TrimPrefix(lines[i], []byte("data: ")))
	lines[i] = append([]byte("data: "), changed...)
	return bytes.Join(lines, []byte("\n"))
}

func (l *liar) changeJSON(doc []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return doc
	}
	at := l.random.IntN(count(v))
	out, err := json.Marshal(l.replace(v, &at))
	if err != nil {
		return doc
	}
	return out
}

func count(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	case []any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

// replace returns v with the value at place *at replaced.
func (l *liar) replace(v any, at *int) any {
	if *at--; *at < 0 {
		if *at == -1 {
			return nonsense[l.random.IntN(len(nonsense))]
		}
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = l.replace(v[key], at)
		}
	case []any:
		for i, e := range v {
			v[i] = l.replace(e, at)
		}
	}
	return v
}

// maxSentence bounds what is said of a worker's nonsense.
const maxSentence = 2000

// Whatever a worker of any kind says when it is asked what it is, and whatever its
// streams hold: nothing breaks, an answer ends with a finish reason or an error, and
// what people are told is one printable line.
func TestWorkersThatTalkNonsense(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 20
	}
	dir := modelFolder(t)
	for _, kind := range []string{sim.KindVLLM, sim.KindSGLang, sim.KindTRTLLM, sim.KindLlamaCPP} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ends := make(map[string]int)
			for seed := range uint64(seeds) {
				for _, often := range []int{1, 4} {
					ends[talk(t, dir, kind, seed, often)]++
				}
			}
			t.Log(ends)
			for _, end := range []string{"finished", "refused", string(engine.ProtocolError.String())} {
				if !testing.Short() && ends[end] == 0 {
					t.Errorf("nothing was ever %s: %v", end, ends)
				}
			}
		})
	}
}

func talk(t *testing.T, dir, kind string, seed uint64, often int) (end string) {
	t.Helper()
	l := &liar{worker: sim.NewServer(sim.Config{Kind: kind, Server: sim.ServerConfig{ModelPath: dir}}), random: rand.New(rand.NewPCG(seed, uint64(often))), often: often}
	s := httptest.NewServer(l)
	defer s.Close()
	models, err := model.NewSet(model.Options{Paths: map[string]string{"": dir}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a := newAttacher(&config.Serve{}, models, slog.New(slog.NewTextHandler(&log, nil)))
	a.onModel = func(string) {}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s seed %d, one in %d: %s", kind, seed, often, fmt.Sprintf(format, args...))
	}
	check := func(said string) {
		t.Helper()
		if len(said) > maxSentence || strings.ContainsFunc(said, func(c rune) bool { return unicode.IsControl(c) || c == '\u202e' }) {
			fail("said %.200q (%d bytes)", said, len(said))
		}
	}
	w, err := a.attach(ctx, router.Spec{ID: "w:1", URL: s.URL})
	for line := range strings.Lines(log.String()) {
		check(strings.TrimSuffix(line, "\n"))
	}
	if err != nil {
		check(err.Error())
		return "refused"
	}
	defer a.forget("w:1")
	l.often = 1
	req := &engine.Request{ID: "r-000-m00-r000", Model: w.Models[0].Own, TokenIDs: []engine.TokenID{5, 6, 7}, VocabSize: 2000, ContextLength: 512,
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Stop: engine.StopConditions{MaxTokens: 12}, Output: engine.OutputOptions{Logprobs: true}}
	if w.Client.Unsupported(req) != "" {
		req.Output.Logprobs = false
	}
	end, ended := "", false
	for d, err := range w.Client.Generate(ctx, req) {
		if ended {
			fail("something came after the end")
		}
		var e *engine.Error
		switch {
		case errors.As(err, &e):
			check(e.Error())
			end, ended = e.Kind.String(), true
		case err != nil:
			fail("a foreign error: %v", err)
		case req.Output.Logprobs && len(d.Logprobs) != len(d.TokenIDs):
			fail("%d logprobs of %d tokens", len(d.Logprobs), len(d.TokenIDs))
		case d.FinishReason != "":
			end, ended = "finished", true
		}
	}
	if !ended {
		fail("the stream just ended")
	}
	if ctx.Err() != nil {
		fail("it did not end in time")
	}
	return end
}
