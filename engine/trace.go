package engine

import (
	"sync"
	"time"
)

// A Trace is the notebook of one request: which workers were asked, how each
// attempt ended. The router writes an entry per attempt, the migration operator
// adds what a move was; both run on the goroutine that ranges over the stream,
// and whoever made the Trace reads it on that goroutine too, so its fields have
// no lock. Others may ask for its Progress, of which a token changes nothing.
//
// A Trace must not be copied. All methods work on a nil Trace.
type Trace struct {
	Attempts []Attempt
	Moves    int      // how many used up the limit; the operator goes on from it where an answer has several parts
	NotMoved NotMoved // why the failure that ended the request, which called for a move, got none; "" = it called for none

	mu       sync.Mutex // guards progress
	progress Progress
}

// Progress is what anyone may know of a request while it runs.
type Progress struct {
	WorkerID   string // where it runs; "" = it waits for a worker
	Attempts   int
	Migrations int
	Moving     bool // its worker failed, and the next one has not delivered anything yet
}

// NotMoved is a reason not to move a request to another worker.
type NotMoved string

const (
	MigrationOff     NotMoved = "off"             // the limit is 0
	MovesUsedUp      NotMoved = "limit"           // the request was moved as often as it may
	SequenceTooLong  NotMoved = "max_seq_len"     // prompt and output are longer than a request that is moved may be
	PoisonousRequest NotMoved = "poison"          // its worker was lost twice in a row, and nothing else can be why
	GuidedDecoding   NotMoved = "guided_decoding" // its answer is constrained, and a part of it was delivered
	PoisonSuspected  NotMoved = "suspected"       // its worker was lost twice in a row, with others that may be why, and no worker was found to try it alone
)

// MigrationType tells the two kinds of a move apart, in Dynamo's words.
type MigrationType string

const (
	NewRequest     MigrationType = "new_request"     // no token had been delivered
	OngoingRequest MigrationType = "ongoing_request" // replayed with the tokens so far
)

// An Attempt is one try on one worker.
type Attempt struct {
	ID       string // the worker-visible request id
	WorkerID string
	Start    time.Time
	End      time.Time // zero while it runs
	Tokens   int       // ids that it delivered
	Err      *Error    // how it failed; nil while it runs and after a success

	// Parameters is what the worker makes of each parameter.
	Parameters Parameters

	// Set if the request was moved to this attempt (a refused request that
	// goes on to the next worker was not moved).
	Migration MigrationType
	Carried   int           // tokens given along
	Gap       time.Duration // last token before to first token after; 0 until it came
}

// Begin writes down a new attempt and returns its entry, valid until the next
// Begin. On a nil Trace it returns an entry that nobody reads.
func (t *Trace) Begin(id, workerID string) *Attempt {
	if t == nil {
		return &Attempt{}
	}
	t.Attempts = append(t.Attempts, Attempt{ID: id, WorkerID: workerID, Start: time.Now()})
	t.note(func(p *Progress) { p.WorkerID, p.Attempts = workerID, len(t.Attempts) })
	return &t.Attempts[len(t.Attempts)-1]
}

// Ended notes that the newest attempt runs no more.
func (t *Trace) Ended() { t.note(func(p *Progress) { p.WorkerID = "" }) }

// SetMoving notes that a move is under way, or no longer.
func (t *Trace) SetMoving(moving bool) { t.note(func(p *Progress) { p.Moving = moving }) }

// Moved notes that the request was moved to the newest attempt, and how many
// tokens it was given along.
func (t *Trace) Moved(kind MigrationType, carried int) {
	if a := t.Last(); a != nil {
		a.Migration, a.Carried = kind, carried
		t.note(func(p *Progress) { p.Migrations++ })
	}
}

func (t *Trace) note(change func(*Progress)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.progress)
}

// Progress may be called from any goroutine.
func (t *Trace) Progress() (p Progress) {
	t.note(func(now *Progress) { p = *now })
	return p
}

// Last returns the newest attempt, or nil.
func (t *Trace) Last() *Attempt {
	if t == nil || len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// Migrations counts the moves. Unlike Progress it belongs to the goroutine that
// ranges over the stream.
func (t *Trace) Migrations() int {
	n := 0
	if t != nil {
		for i := range t.Attempts {
			if t.Attempts[i].Migration != "" {
				n++
			}
		}
	}
	return n
}
