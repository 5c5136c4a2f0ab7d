// Package failures takes every kind of failure of a worker through every phase of
// a request, checks what the contract demands, and writes docs/failures.md.
//
// The real server, pipeline, router and engine clients run in memory and in
// virtual time, over simulated workers that speak the engines' protocols and break
// them (stage_test.go). cases_test.go and hostile_test.go list what goes wrong.
//
//	go test ./test/failures -update       rewrites the document
//	go test ./test/failures -v -run TestFailures/RST
package failures

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/model"
	"baton/test/harness"
)

var update = flag.Bool("update", false, "rewrite docs/failures.md")

var models *model.Set

func TestMain(m *testing.M) {
	flag.Parse()
	var remove func()
	var err error
	if models, remove, err = harness.SimModels(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	log.SetOutput(io.Discard) // net/http's own words about what hostile workers send
	code := m.Run()
	remove()
	os.Exit(code)
}

// engines are the protocols that the workers speak.
var engines = []string{sim.KindVLLM, sim.KindLlamaCPP}

// The settings of the document's columns.
var (
	saving    = setting{limit: 3}
	off       = setting{limit: 0}
	lastOfAll = setting{limit: 3, alone: true}
)

func TestFailures(t *testing.T) {
	calm := map[string]observation{}
	for _, e := range engines {
		calm[e] = perform(t, &stage{engine: e, setting: saving}, &failure{}, beforeFirst)
		if o := calm[e]; o.broken != nil || o.answer.Error != nil || o.answer.Usage.CompletionTokens != answerTokens {
			t.Fatalf("%s without a failure: %v %+v", e, o.broken, o.answer)
		}
	}
	var doc document
	for _, f := range slices.Concat(failures, hostiles()) {
		t.Run(f.name, func(t *testing.T) {
			for _, p := range f.phases {
				r := row{name: f.name, phases: []phase{p}, hostile: f.hostile != nil}
				for _, e := range engines {
					saved := f.bounded(t, func() observation { return perform(t, &stage{engine: e, setting: saving}, f, p) })
					f.checkSaved(t, e, p, saved, calm[e])
					if f.act == nil || p != inTheMiddle { // else nobody can say when the middle is
						whole := perform(t, &stage{engine: e, setting: saving, unary: true}, f, p)
						f.checkUnary(t, e, p, whole, calm[e])
					}
					unmoved := perform(t, &stage{engine: e, setting: off}, f, p)
					f.checkUnmoved(t, e, p, unmoved, calm[e])
					var alone observation
					if f.hostile == nil {
						alone = perform(t, &stage{engine: e, setting: lastOfAll}, f, p)
						f.checkAlone(t, e, p, alone, calm[e])
					}
					r.add(e, f, saved, unmoved, alone)
				}
				doc.add(r)
			}
		})
	}
	if !t.Failed() {
		doc.compare(t)
	}
}

// checkSaved holds what happened beside a survivor, with moves left, against the
// contract.
func (f *failure) checkSaved(t *testing.T, engine string, p phase, o, calm observation) {
	t.Helper()
	where := fmt.Sprintf("%s, %s, survivor, limit 3", engine, p)
	if f.fate == toldSo {
		f.checkTold(t, where, o, calm)
		return
	}
	checkExact(t, where, o, calm)
	if got := classify(o.silence(), f.gap == itsOwn); got != f.class(engine, p) {
		t.Errorf("%s: the gap was %v, which is %q, want %q", where, o.silence(), got, f.class(engine, p))
	}
	moves := strings.Join(o.counted, ", ")
	told := strings.Contains(strings.Join(o.logged, ", "), "request migrated")
	want := ""
	if f.fate == moved && p != beforeFinish {
		want = "migration{ongoing_request} 1"
		if p != inTheMiddle {
			want = "migration{new_request} 1"
		}
		if f.drainAfter > 0 && p == beforeConnecting {
			want = ""
		}
	}
	if moves != want || told != (want != "") {
		t.Errorf("%s: counted %q, want %q; logged %q", where, moves, want, o.logged)
	}
}

// checkUnary holds an answer that is one JSON object against the contract: it is
// moved like a stream, and an error is always a status.
func (f *failure) checkUnary(t *testing.T, engine string, p phase, o, calm observation) {
	t.Helper()
	where := fmt.Sprintf("%s, %s, survivor, limit 3, not streamed", engine, p)
	if f.fate != toldSo {
		checkExact(t, where, o, calm)
		return
	}
	checkHonest(t, where, o, calm)
	if o.answer != nil && o.answer.Status == http.StatusOK {
		t.Errorf("%s: status 200", where)
	}
}

// checkUnmoved holds what happened at limit 0 against the contract.
func (f *failure) checkUnmoved(t *testing.T, engine string, p phase, o, calm observation) {
	t.Helper()
	where := fmt.Sprintf("%s, %s, survivor, limit 0", engine, p)
	switch {
	case f.fate == toldSo:
		if code := f.errorCode(engine, p); code != "" && (o.answer == nil || o.answer.Error == nil || o.answer.Error.Code != code) {
			t.Errorf("%s: %s, want %s", where, o.client(), code)
		}
		checkHonest(t, where, o, calm)
	case f.fate == passedOn, f.unaided, p == beforeFinish, f.drainAfter > 0:
		checkExact(t, where, o, calm)
	default:
		checkHonest(t, where, o, calm)
		if o.answer != nil && o.answer.Error != nil && o.answer.Error.Code != f.errorCode(engine, p) {
			t.Errorf("%s: %s, want %s", where, o.client(), f.errorCode(engine, p))
		}
		if got := classify(o.silence(), false); got != f.class(engine, p) {
			t.Errorf("%s: told after %v, which is %q, want %q", where, o.silence(), got, f.class(engine, p))
		}
		if !slices.Contains(o.counted, "migration_refused{limit} 1") {
			t.Errorf("%s: counted %q", where, o.counted)
		}
	}
	for _, c := range o.counted {
		if strings.HasPrefix(c, "migration{") {
			t.Errorf("%s: moved at limit 0: %v", where, o.counted)
		}
	}
}

// checkAlone holds what happened without another worker against the contract:
// either the worker is well again, or an honest error in bounded time.
func (f *failure) checkAlone(t *testing.T, engine string, p phase, o, calm observation) {
	t.Helper()
	where := fmt.Sprintf("%s, %s, alone, limit 3", engine, p)
	if f.unaided || p == beforeFinish {
		checkExact(t, where, o, calm)
		return
	}
	if o.answer != nil && o.answer.Error == nil {
		checkExact(t, where, o, calm)
	} else {
		checkHonest(t, where, o, calm)
	}
	each := connectTimeout + workerWaitTimeout + time.Second
	if f.class(engine, p) == bound {
		each += stallTimeout
		if p != inTheMiddle {
			each += firstTokenTimeout
		}
	}
	if most := time.Duration(lastOfAll.limit+1) * each; o.took > most {
		t.Errorf("%s: it took %v, more than %v", where, o.took, most)
	}
}

// checkTold checks an error that the client gets although a survivor is there.
func (f *failure) checkTold(t *testing.T, where string, o, calm observation) {
	t.Helper()
	checkHonest(t, where, o, calm)
	if o.answer == nil || o.answer.Error == nil {
		return
	}
	switch code := o.answer.Error.Code; {
	case f.victims > 1 && code != "request_lost_workers":
		t.Errorf("%s: %s", where, o.client())
	case f.victims < 2 && (o.answer.Status != 400 || len(o.counted) != 1):
		t.Errorf("%s: %s, counted %v, and the request is at fault", where, o.client(), o.counted)
	}
}

// checkExact checks that the client got all, as if nothing had happened.
func checkExact(t *testing.T, where string, o, calm observation) {
	t.Helper()
	if o.broken != nil || o.answer.Error != nil {
		t.Errorf("%s: %s, want the whole answer", where, o.client())
		return
	}
	a, want := o.answer, calm.answer
	if a.Text != want.Text || a.Finish != want.Finish || *a.Usage != *want.Usage || !a.Done {
		t.Errorf("%s: %q %s %+v\nwant %q %s %+v", where, a.Text, a.Finish, *a.Usage, want.Text, want.Finish, *want.Usage)
	}
}

// checkHonest checks that the client got a beginning of the answer and an error,
// and nothing that looks like success.
func checkHonest(t *testing.T, where string, o, calm observation) {
	t.Helper()
	if o.broken != nil {
		t.Errorf("%s: %v", where, o.broken)
		return
	}
	a := o.answer
	if a.Error == nil || a.Done || a.Finish != "" || a.Usage != nil {
		t.Errorf("%s: %q shown as success: finish %q, [DONE] %v", where, a.Text, a.Finish, a.Done)
		return
	}
	if !strings.HasPrefix(calm.answer.Text, a.Text) {
		t.Errorf("%s: %q is no beginning of the answer", where, a.Text)
	}
	if a.Error.Message == "" || a.Error.Type == "" || (a.Status < 400 || a.Status > 599) && a.Status != 200 {
		t.Errorf("%s: status %d, %+v", where, a.Status, a.Error)
	}
}

// The bounds of the classes.
const (
	noGap        = 300 * time.Millisecond // the survivor's prefill included
	detectedSoon = 6 * time.Second
	late         = time.Second // after a bound
)

func classify(silence time.Duration, own bool) class {
	switch {
	case silence <= noGap:
		return none
	case own:
		return itsOwn
	case silence <= detectedSoon:
		return detection
	case silence >= stallTimeout && silence <= stallTimeout+late,
		silence >= firstTokenTimeout && silence <= firstTokenTimeout+late:
		return bound
	}
	return class(fmt.Sprintf("unbounded: %v", silence))
}
