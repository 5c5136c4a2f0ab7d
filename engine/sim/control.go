package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// controlPrefix is where the worker is controlled; no engine has such paths.
const controlPrefix = "/sim/"

// routeControl adds the endpoints that steer the simulation. The package's
// documentation describes them.
func (s *Server) routeControl() {
	s.mux.HandleFunc("GET /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, s.faults.list())
	})
	s.mux.HandleFunc("POST /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		faults := []Fault{}
		err := json.NewDecoder(r.Body).Decode(&faults)
		for i := range faults {
			if err == nil {
				err = faults[i].Validate()
			}
		}
		if err != nil {
			writeValue(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("sim: faults: %v", err)})
			return
		}
		s.SetFaults(faults...)
		writeValue(w, http.StatusOK, faults)
	})
	s.mux.HandleFunc("GET /sim/requests", func(w http.ResponseWriter, r *http.Request) {
		requests := s.Requests()
		if requests == nil {
			requests = []Received{}
		}
		writeValue(w, http.StatusOK, requests)
	})
	s.mux.HandleFunc("GET /sim/stats", func(w http.ResponseWriter, r *http.Request) {
		writeValue(w, http.StatusOK, s.Stats())
	})
	s.mux.HandleFunc("POST /sim/health", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Status int `json:"status"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Status != 0 && (body.Status < 200 || body.Status > 599) {
			writeValue(w, http.StatusBadRequest, map[string]string{"error": "sim: health: want {\"status\": N}"})
			return
		}
		s.SetHealth(body.Status)
		writeValue(w, http.StatusOK, body)
	})
	for name, act := range map[string]func(){
		"kill": s.Kill, "vanish": s.Vanish, "freeze": s.Freeze, "thaw": s.Thaw, "drain": s.Drain, "revive": s.Revive,
	} {
		s.mux.HandleFunc("POST /sim/"+name, func(w http.ResponseWriter, r *http.Request) {
			writeValue(w, http.StatusOK, s.Stats())
			_ = http.NewResponseController(w).Flush()
			act()
		})
	}
}

// writeValue writes v as JSON.
func writeValue(w http.ResponseWriter, status int, v any) {
	writeJSON(w, status, encodeJSON(v))
}

// writeJSON writes a body that is JSON already; an empty one goes without a type.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	if len(body) > 0 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
