package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"baton/config"
)

// demoPrompt is what the demo asks. The simulated workers' answer to it is the
// same each time.
const demoPrompt = "Tell me a bedtime story."

const (
	demoMaxTokens      = 140 // the most that an answer may have
	demoTokens         = 90  // the least; the kills are placed within
	demoTokensToKill   = 36  // the most that are shown before a worker is killed
	demoMigrationLimit = 3
	demoStartLimit     = 60 * time.Second
	demoAnswerLimit    = 5 * time.Minute
	// demoRecordLimit is how long a chunk waits after a kill for the frontend's
	// word on whether it came from the next worker. Nothing but the place of the
	// mark depends on it.
	demoRecordLimit = 250 * time.Millisecond
)

// A demo shows one answer that survives its worker: real processes, a real kill.
type demo struct {
	cfg    *config.Demo
	screen *screen
	fleet  *fleet

	answer strings.Builder // the text, as it came
	tokens int             // completion tokens so far
	finish string          // the finish reason
	writer *demoWorker     // who writes; nil = not known yet
	killed []*demoWorker
	due    bool // a worker was killed, and the frontend has not yet said where the answer goes on
	seams  []seam

	undisturbed chan undisturbed // nil = not asked for yet
}

// undisturbed is the answer to the same question while nobody is killed.
type undisturbed struct {
	chunk
	err error
}

// A seam is a move of the answer, as the frontend logged it.
type seam struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Kind    string  `json:"kind"`
	Carried int     `json:"tokens_carried"`
	GapMS   float64 `json:"gap_ms"`
}

// runDemo is `baton demo`. It succeeds only if the text was exact.
func runDemo(args []string, stdout io.Writer) error {
	cfg, err := config.LoadDemo(args)
	if errors.Is(err, config.ErrHelp) {
		return demoHelp(stdout)
	}
	if err != nil {
		return err
	}
	if cfg.Model != "" {
		if cfg.Model, err = checkModelFile(cfg.Model); err != nil {
			return err
		}
	}
	// The children die with the thread that started them, see startProcess.
	runtime.LockOSThread()
	ctx, stop := interruptible(context.Background())
	defer stop()
	d := &demo{cfg: cfg, screen: newScreen(stdout)}
	defer d.screen.showCursor()
	err = d.run(ctx)
	if ctx.Err() != nil {
		d.screen.blank()
		d.screen.say("Stopped; nothing is left running.")
		if err != nil {
			err = errQuiet
		}
	}
	if err == nil && d.screen.failure() != nil {
		return fmt.Errorf("show the demo: %w", d.screen.failure())
	}
	return err
}

// run is the story.
func (d *demo) run(stop context.Context) error {
	d.screen.blank()
	about := "an answer outlives the worker that writes it"
	if d.cfg.Kills == 0 {
		about = "an answer, and nobody is killed"
	}
	d.screen.say("%s  %s", d.screen.paint(bold, "baton demo"), about)
	d.screen.blank()

	fleet, err := startFleet(stop, d.cfg)
	defer fleet.close()
	if err != nil {
		return err
	}
	d.fleet = fleet
	d.introduce()
	ctx, cancel := context.WithTimeout(stop, demoAnswerLimit)
	defer cancel()
	if err := d.show(ctx); err != nil {
		return err
	}
	exact, err := d.compare(ctx)
	if err != nil {
		return err
	}
	if err := d.count(ctx); err != nil {
		return err
	}
	if d.cfg.Keep {
		if err := d.keep(stop); err != nil {
			return err
		}
	} else {
		d.inviteToTry()
	}
	if !exact {
		return errQuiet
	}
	return nil
}

// introduce names the processes.
func (d *demo) introduce() {
	for _, w := range d.fleet.workers {
		d.screen.say("%s  %-15s  %s", d.screen.paint(w.style, fmt.Sprintf("%-9s", w.name)), w.address, d.screen.paint(dim, w.what()))
	}
	d.screen.say("%-9s  %-15s  %s", "frontend", d.fleet.address,
		d.screen.paint(dim, fmt.Sprintf("baton serve --migration-limit %d, process %d", d.fleet.migrationLimit, d.fleet.frontend.pid())))
	if d.cfg.Engine == config.EngineSim {
		d.screen.say("%s", d.screen.paint(dim, "Simulated workers write nonsense, but each of its words depends on all before it."))
	}
	d.screen.blank()
	d.screen.say("%s %s", d.screen.paint(dim, ">"), d.screen.paint(bold, demoPrompt))
	d.screen.blank()
}

// show streams the answer and kills whoever writes it at the planned places.
func (d *demo) show(ctx context.Context) error {
	step := min(demoTokens/(d.cfg.Kills+1), demoTokensToKill)
	d.screen.begin(d.status())
	err := d.fleet.stream(ctx, d.question(true), func(c chunk) error {
		d.settle(c)
		if d.writer == nil {
			d.writer = d.fleet.busy(ctx)
		}
		d.take(c)
		if d.cfg.Engine == config.EngineSim && len(d.seams) == d.cfg.Kills {
			d.askAgain(ctx)
		}
		if len(d.killed) < d.cfg.Kills && d.tokens >= step*(len(d.killed)+1) && !d.due && d.finish == "" {
			return d.strike(ctx)
		}
		return nil
	})
	d.screen.end()
	d.screen.blank()
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	for range d.killed[len(d.seams):] { // killed so late that nothing came after it
		if !d.awaitSeam(time.Second) {
			break
		}
	}
	for _, s := range d.seams {
		d.saySeam(s)
	}
	if len(d.seams) > 0 {
		d.screen.blank()
	}
	if len(d.killed) < d.cfg.Kills {
		return fmt.Errorf("the answer had %d tokens and was over before the demo could kill %d workers", d.tokens, d.cfg.Kills)
	}
	if len(d.seams) < d.cfg.Kills {
		return fmt.Errorf("%d workers were killed, but the frontend moved the answer %d times", d.cfg.Kills, len(d.seams))
	}
	return nil
}

// settle finds out, after a kill, whether c was written by the next worker
// already. The frontend logs the move right before it sends the first new token.
func (d *demo) settle(c chunk) {
	if !d.due || c.tokens <= d.tokens {
		return
	}
	d.awaitSeam(demoRecordLimit)
}

// awaitSeam waits for the frontend's record of a move, and marks it.
func (d *demo) awaitSeam(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case s := <-d.fleet.seams:
		d.seams = append(d.seams, s)
		d.writer = d.fleet.worker(s.To)
		d.due = false
		d.screen.mark()
		return true
	case <-t.C:
		return false
	}
}

// take shows what a chunk brought.
func (d *demo) take(c chunk) {
	d.tokens = max(d.tokens, c.tokens)
	if c.finish != "" {
		d.finish = c.finish
	}
	d.answer.WriteString(c.text)
	st := plain
	if d.writer != nil {
		st = d.writer.style
	}
	d.screen.add(c.text, st, d.status())
}

// strike kills the worker that writes, in the middle of its work.
func (d *demo) strike(ctx context.Context) error {
	w := d.fleet.busy(ctx)
	if w == nil {
		return nil // between two tokens nobody seemed to write: with the next one
	}
	w.process.kill()
	w.dead = true
	d.killed = append(d.killed, w)
	d.due = true
	d.screen.add("", plain, d.status())
	return nil
}

// status is the live line: who writes, who is dead, how far it is. Many workers
// are shown by their signs only, except the one that matters.
func (d *demo) status() []span {
	short := len(d.fleet.workers) > maxNamedWorkers
	var line []span
	for _, w := range d.fleet.workers {
		sign, name, note, st, rest := "○", " "+w.name, "", dim, dim
		switch {
		case w.dead:
			sign, note, st = "✗", " killed", red
		case w == d.writer && !d.due:
			sign, note, st, rest = "●", " writes", w.style, plain
		}
		if short && (w != d.writer || d.due) {
			name, note = "", ""
		}
		line = append(line, span{sign + name, st}, span{note + "  ", rest})
	}
	return append(line, span{fmt.Sprintf(" %d tokens", d.tokens), dim})
}

// maxNamedWorkers have room for their names in the live line.
const maxNamedWorkers = 3

// askAgain puts the same question once more, for the text that nothing happened
// to. Simulated workers answer while the first answer is still coming, so that
// nobody has to wait; a real engine computes differently in company and is asked
// afterwards.
func (d *demo) askAgain(ctx context.Context) {
	if d.undisturbed != nil {
		return
	}
	d.undisturbed = make(chan undisturbed, 1)
	go func(result chan<- undisturbed) {
		c, err := d.fleet.complete(ctx, d.question(false))
		result <- undisturbed{c, err}
	}(d.undisturbed)
}

// compare waits for the undisturbed answer and gives the verdict.
func (d *demo) compare(ctx context.Context) (exact bool, err error) {
	d.askAgain(ctx)
	d.screen.transient("the same question, and nobody is killed …")
	want := <-d.undisturbed
	d.screen.transient("")
	if want.err != nil {
		return false, fmt.Errorf("ask for the text without a fault: %w", want.err)
	}
	got := d.answer.String()
	if got == want.text && d.finish == want.finish && d.tokens == want.tokens {
		d.screen.say("%s  %d tokens, %d bytes: byte for byte the text of an answer that nobody disturbed",
			d.screen.paint(green, "✓ exact"), d.tokens, len(got))
		d.screen.blank()
		return true, nil
	}
	d.screen.say("%s  the undisturbed answer is another one (%d tokens, %q; here %d tokens, %q):",
		d.screen.paint(red, "✗ not exact"), want.tokens, want.finish, d.tokens, d.finish)
	d.screen.blank()
	same := commonPrefix(got, want.text)
	d.screen.say("the same      %q", got[:same])
	d.screen.say("disturbed     %q", got[same:])
	d.screen.say("undisturbed   %q", want.text[same:])
	d.screen.blank()
	return false, nil
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// count shows the counters of migration as /metrics has them.
func (d *demo) count(ctx context.Context) error {
	lines, err := d.fleet.counters(ctx)
	if err != nil {
		return err
	}
	d.screen.say("%s", d.screen.paint(dim, "http://"+d.fleet.address+"/metrics"))
	for _, l := range lines {
		d.screen.say("%s", l)
	}
	d.screen.blank()
	return nil
}

func (d *demo) inviteToTry() {
	baton := calledAs(os.Args[0])
	keep := baton + " demo --keep"
	if d.cfg.Engine == config.EngineLlamaCPP {
		keep += " --engine llamacpp --model " + shellWord(d.cfg.Model)
	}
	d.screen.say("Try it by hand:      %s", d.screen.paint(bold, keep))
	d.screen.say("With your workers:   %s", d.screen.paint(bold, baton+" serve --worker http://host:port --worker http://host:port --migration-limit 3"))
	d.screen.blank()
}

// calledAs is how this program is started again, given its name in the call.
func calledAs(name string) string {
	if strings.Contains(name, "go-build") { // a temporary file of `go run`
		return "go run ./cmd/baton"
	}
	return shellWord(name)
}

// shellWord puts a word with a blank into quotation marks.
func shellWord(word string) string {
	if strings.ContainsAny(word, " \t") {
		return "'" + word + "'"
	}
	return word
}

// saySeam tells of a move: from, to, kind, tokens carried, gap.
func (d *demo) saySeam(s seam) {
	d.screen.say("%s %s → %s  %s, %d tokens carried, gap %.0f ms", d.screen.paint(dim, "┊"),
		d.name(s.From), d.name(s.To), s.Kind, s.Carried, s.GapMS)
}

// name is a worker's name in its colour.
func (d *demo) name(id string) string {
	if w := d.fleet.worker(id); w != nil {
		return d.screen.paint(w.style, w.name)
	}
	return id
}

// question is the request that both answers are made of.
func (d *demo) question(stream bool) question {
	q := question{Model: d.fleet.model, MaxTokens: demoMaxTokens, Messages: []message{{"user", demoPrompt}}}
	if d.cfg.Engine == config.EngineSim {
		// Simulated workers never come to an end by themselves: the answer ends with
		// the first sentence that is long enough. llama.cpp has no min_tokens.
		q.MinTokens, q.Stop, q.IncludeStop = demoTokens, []string{"."}, true
	}
	if stream {
		q.Stream, q.StreamOptions = true, &streamOptions{IncludeUsage: true, ContinuousUsage: true}
	}
	return q
}
