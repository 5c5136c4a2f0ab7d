package admin

import (
	"net/http"
	"time"

	"baton/server"
)

// maxRequests bounds how many requests one reply lists.
const maxRequests = 10_000

// The phases of a request.
const (
	phaseReceiving = "receiving" // its body is being read and prepared
	phaseQueued    = "queued"    // nothing has been generated yet
	phaseStreaming = "streaming" // tokens come
	phaseMoving    = "moving"    // its worker failed or gave it up, and the next one has not delivered anything yet
	phaseFinished  = "finished"  // only of one choice of several
)

// A Request is an element of the reply to GET /admin/requests.
type Request struct {
	ID         string `json:"id"`
	ClientID   string `json:"client_id"` // its X-Request-Id; "" = none
	Model      string `json:"model"`     // "" while receiving
	Endpoint   string `json:"endpoint"`  // chat_completions, completions or responses
	Phase      string `json:"phase"`     // receiving, queued, streaming or moving
	Worker     string `json:"worker"`    // where it runs; "" = it waits for one
	Tokens     int    `json:"tokens"`    // generated so far, by all attempts
	Attempts   int    `json:"attempts"`
	Migrations int    `json:"migrations"`
	AgeMS      int64  `json:"age_ms"`

	// Choices are there if there are several. Above are their sums, the phase of
	// the one that is worst off, and the first worker.
	Choices []Choice `json:"choices,omitempty"`
}

// A Choice is one of several choices of a request.
type Choice struct {
	Index      int    `json:"index"`
	Phase      string `json:"phase"` // queued, streaming, moving or finished
	Worker     string `json:"worker"`
	Tokens     int    `json:"tokens"`
	Attempts   int    `json:"attempts"`
	Migrations int    `json:"migrations"`
}

// RequestsReply is the reply to GET /admin/requests: the oldest requests, and how
// many there are.
type RequestsReply struct {
	Total    int       `json:"total"`
	Requests []Request `json:"requests"`
}

func (a *Admin) listRequests(w http.ResponseWriter, r *http.Request) {
	running, total := a.requests.Requests(maxRequests)
	list := RequestsReply{Total: total, Requests: []Request{}}
	now := time.Now()
	for _, s := range running {
		list.Requests = append(list.Requests, requestOf(s, now))
	}
	reply(w, http.StatusOK, list)
}

func requestOf(s server.RequestStatus, now time.Time) Request {
	r := Request{
		ID: s.ID, ClientID: s.ClientID, Model: s.Model, Endpoint: s.Endpoint,
		Phase: phaseReceiving, AgeMS: now.Sub(s.Start).Milliseconds(),
	}
	for i, c := range s.Choices {
		choice := Choice{
			Index: i, Phase: phaseOf(c), Worker: c.WorkerID,
			Tokens: c.Tokens, Attempts: c.Attempts, Migrations: c.Migrations,
		}
		r.Choices = append(r.Choices, choice)
		r.Tokens += c.Tokens
		r.Attempts += c.Attempts
		r.Migrations += c.Migrations
		if r.Worker == "" {
			r.Worker = c.WorkerID
		}
		if i == 0 || worse(choice.Phase, r.Phase) {
			r.Phase = choice.Phase
		}
	}
	if r.Phase == phaseFinished {
		r.Phase = phaseStreaming // its end is being sent
	}
	if len(r.Choices) == 1 {
		r.Choices = nil
	}
	return r
}

func phaseOf(c server.ChoiceStatus) string {
	switch {
	case c.Moving:
		return phaseMoving
	case c.Tokens == 0:
		return phaseQueued
	case c.WorkerID == "":
		return phaseFinished
	}
	return phaseStreaming
}

// worse reports whether a choice in phase a has more to wait for than one in b.
func worse(a, b string) bool { return rank(a) > rank(b) }

func rank(phase string) int {
	switch phase {
	case phaseMoving:
		return 3
	case phaseQueued:
		return 2
	case phaseStreaming:
		return 1
	}
	return 0
}
