package sim

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"baton/engine"
)

// stopStrings watches the text of an answer for one of a request's stop
// strings. baton matches them itself and sends none; other clients do.
type stopStrings struct {
	stops []string
	words textStream

	text string // so far
	hit  string // the string that was found, "" = none
	at   int    // where in text it begins
	told int    // how much of text has been sent
}

// readStops reads a stop list, which may be a single string.
func readStops(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil
		}
		return []string{one}
	}
	var list []string
	_ = json.Unmarshal(raw, &list) // what is neither stops nothing
	return list
}

// newStopStrings returns nil if there are none to watch for.
func newStopStrings(v *vocabulary, stops []string) *stopStrings {
	if len(stops) == 0 {
		return nil
	}
	return &stopStrings{stops: stops, words: textStream{words: v}}
}

// add takes the next id and reports whether it completes a stop string.
func (s *stopStrings) add(id engine.TokenID) bool {
	from := len(s.text)
	s.text += s.words.add(id)
	for _, stop := range s.stops {
		start := max(0, from-len(stop)+1)
		if i := strings.Index(s.text[start:], stop); i >= 0 && (s.hit == "" || start+i < s.at) {
			s.hit, s.at = stop, start+i
		}
	}
	return s.hit != ""
}

// take returns the text that may be sent now, up to end.
func (s *stopStrings) take(end int) string {
	end = max(s.told, end)
	text := s.text[s.told:end]
	s.told = end
	return text
}

// heldBack returns the text up to the longest stop string's length less one
// from the end, which is what vLLM sends before the answer is over.
func (s *stopStrings) heldBack(over bool) string {
	switch {
	case s.hit != "":
		return s.take(s.at)
	case over:
		return s.take(len(s.text))
	}
	longest := 0
	for _, stop := range s.stops {
		longest = max(longest, utf8.RuneCountInString(stop))
	}
	end := len(s.text)
	for range longest - 1 {
		_, size := utf8.DecodeLastRuneInString(s.text[:end])
		end -= size
	}
	return s.take(end)
}

// unlessPartial returns the text, or none while its end may begin a stop
// string, which is how llama.cpp does it.
func (s *stopStrings) unlessPartial() string {
	if s.hit != "" {
		return s.take(s.at)
	}
	for _, stop := range s.stops {
		for n := 1; n < len(stop); n++ {
			if strings.HasSuffix(s.text[s.told:], stop[:n]) {
				return ""
			}
		}
	}
	return s.take(len(s.text))
}
