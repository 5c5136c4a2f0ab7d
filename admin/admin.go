package admin

import (
	"log/slog"
	"net/http"
	"net/http/pprof"

	"baton/router"
	"baton/server"
)

// Workers are the router and what is known of its workers, as operators deal with
// it.
type Workers interface {
	Workers() []router.WorkerStatus
	Groups() []router.Group
	Hints() []Hint
	Drain(id string) (running int, ok bool)
	Undrain(id string) (running int, ok bool)
}

// Requests is the API server, as operators look at it.
type Requests interface {
	Requests(limit int) (oldest []server.RequestStatus, total int)
}

// An Admin answers operators. Make it with New.
type Admin struct {
	workers  Workers
	requests Requests
	level    *slog.LevelVar
	host     string
	log      *slog.Logger
}

// New returns an Admin. level is the level of the log, which may be changed. host
// is the name by which operators reach it besides an IP address and localhost; ""
// = there is none.
func New(workers Workers, requests Requests, level *slog.LevelVar, host string, log *slog.Logger) *Admin {
	return &Admin{workers: workers, requests: requests, level: level, host: host, log: log}
}

// maxBodyBytes bounds a request's body, of which the longest that makes sense is
// the name of a level.
const maxBodyBytes = 4 << 10

// Handler returns the routes.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, methods map[string]http.HandlerFunc) {
		for method, h := range methods {
			mux.HandleFunc(method+" "+pattern, h)
		}
		allow := allowed(methods)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "This method is not allowed here; use "+allow+".")
		})
	}
	route("/admin/workers", map[string]http.HandlerFunc{"GET": a.listWorkers})
	route("/admin/workers/{id}/drain", map[string]http.HandlerFunc{"POST": a.drain(a.workers.Drain)})
	route("/admin/workers/{id}/undrain", map[string]http.HandlerFunc{"POST": a.drain(a.workers.Undrain)})
	route("/admin/requests", map[string]http.HandlerFunc{"GET": a.listRequests})
	route("/admin/log-level", map[string]http.HandlerFunc{"GET": a.showLevel, "PUT": a.setLevel})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "There is nothing here; see /admin/workers, /admin/requests, /admin/log-level and /debug/pprof/.")
	})
	return a.guarded(timely(http.MaxBytesHandler(mux, maxBodyBytes)))
}

// allowed is the Allow header; ServeMux serves HEAD where it serves GET.
func allowed(methods map[string]http.HandlerFunc) string {
	list := ""
	for _, m := range []string{"GET", "HEAD", "POST", "PUT"} {
		if methods[m] == nil && (m != "HEAD" || methods["GET"] == nil) {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += m
	}
	return list
}

// Drained is the reply to drain and undrain.
type Drained struct {
	ID      string `json:"id"`
	Running int    `json:"running"` // requests running there now
}

func (a *Admin) drain(do func(id string) (int, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		running, ok := do(id)
		if !ok {
			refuse(w, http.StatusNotFound, "worker_not_found", "There is no worker "+printable(id)+"; GET /admin/workers lists them.")
			return
		}
		reply(w, http.StatusAccepted, Drained{ID: id, Running: running})
	}
}
