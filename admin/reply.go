package admin

import (
	"encoding/json"
	"net/http"
	"strings"

	"baton/openai"
)

// envelope is the error object of the public API.
type envelope struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"` // always null: nothing here has parameters
	Code    string  `json:"code"`
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, envelope{errorObject{Message: message, Type: openai.TypeInvalidRequest, Code: code}})
}

// reply writes v as JSON. An error of writing is the client's, who has left.
func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// maxPrintableBytes bounds how much of a caller's word a message repeats.
const maxPrintableBytes = 128

// printable is s as a message may repeat it on a terminal.
func printable(s string) string {
	if len(s) > maxPrintableBytes {
		s = s[:maxPrintableBytes] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
