package server

import (
	"net/http"
	"strings"

	"baton/openai"
	"baton/router"
)

// The endpoints that only tell what there is.

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // nobody is left to be told of a failure
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	body := []byte(`{"object":"list","data":[`)
	for i, m := range s.fleet.Models() {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendModel(body, m)
	}
	writeJSON(w, http.StatusOK, append(body, "]}"...))
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if id == "" {
		s.listModels(w, r)
		return
	}
	var names []string
	for _, m := range s.fleet.Models() {
		if m.Name == id {
			writeJSON(w, http.StatusOK, appendModel(nil, m))
			return
		}
		names = append(names, m.Name)
	}
	writeError(w, openai.ModelNotFound(id, names))
}

func appendModel(dst []byte, m router.ModelStatus) []byte {
	dst = appendString(append(dst, `{"id":`...), m.Name)
	dst = append(dst, `,"object":"model","created":`...)
	created := 0
	if !m.Since.IsZero() {
		created = int(m.Since.Unix())
	}
	dst = append(appendInt(dst, created), `,"owned_by":"baton"`...)
	if m.ContextLength > 0 {
		dst = appendInt(append(dst, `,"max_model_len":`...), m.ContextLength) // vLLM's name
	}
	return append(dst, '}')
}

// health is 200 while any model, or the one that ?model= names, has a worker
// that can be asked, and 503 otherwise. A model that no worker has reported yet
// cannot be told from one that will never come, so its answer is 503 too. Workers
// that were never attached have no model yet, and are listed beside the models.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	models := s.fleet.Models()
	if name := r.URL.Query().Get("model"); name != "" {
		all := models
		models = nil
		for _, m := range all {
			if m.Name == name {
				models = append(models, m)
			}
		}
	}
	ready := false
	list := []byte{}
	for _, m := range models {
		ready = ready || m.Ready > 0
		list = appendString(append(appendComma(list), `{"name":`...), m.Name)
		list = appendInt(append(list, `,"ready_workers":`...), m.Ready)
		list = append(appendInt(append(list, `,"workers":`...), m.Total), '}')
	}
	status, word := http.StatusServiceUnavailable, "not ready"
	switch {
	case s.running.isStopping():
		word = "stopping"
	case ready:
		status, word = http.StatusOK, "ready"
	}
	body := appendString([]byte(`{"status":`), word)
	body = append(append(body, `,"models":[`...), list...)
	list = list[:0]
	for _, w := range s.fleet.Workers() {
		if w.Kind == "" { // never attached
			list = appendString(appendComma(list), w.ID)
		}
	}
	body = append(append(body, `],"unattached_workers":[`...), list...)
	writeJSON(w, status, append(body, "]}"...))
}

// live says that the process answers, and nothing of its workers.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"live"}`))
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	version := strings.TrimSpace(s.cfg.Version)
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"version":`), version), '}'))
}
