package sim

import (
	"regexp/syntax"
	"strings"
)

// matching draws a text that matches a regular expression; false if it cannot be
// read, or says what no text does. Assertions are taken as true where they stand.
func matching(expression string, d *draw) (string, bool) {
	w := writer{d: d}
	ok := w.matching(expression)
	return w.text.String(), ok
}

// A writer draws a text part by part.
type writer struct {
	text  strings.Builder
	d     *draw
	steps int
}

// maxSteps bounds the work, because what is nested in repetitions grows fast.
const maxSteps = 10000

func (w *writer) matching(expression string) bool {
	re, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && w.match(re)
}

// maxRepeats is how often more than it must something without an upper bound comes.
const maxRepeats = 4

func (w *writer) match(re *syntax.Regexp) bool {
	if w.steps++; w.steps > maxSteps {
		return false
	}
	least, most := 0, -1
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		w.text.WriteString(string(re.Rune))
		return true
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return false
		}
		w.text.WriteRune(oneOf(re.Rune, w.d))
		return true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.text.WriteByte(byte('a' + w.d.below(26)))
		return true
	case syntax.OpAlternate:
		return w.match(re.Sub[w.d.below(len(re.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			if !w.match(sub) {
				return false
			}
		}
		return true
	case syntax.OpStar:
	case syntax.OpPlus:
		least = 1
	case syntax.OpQuest:
		most = 1
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
	default:
		return true // an assertion
	}
	if most < 0 {
		most = least + maxRepeats
	}
	for range least + w.d.below(most-least+1) {
		if !w.match(re.Sub[0]) {
			return false
		}
	}
	return true
}

// oneOf draws a character of a class, which is a list of ranges: of ASCII that can be
// seen, if there is any in it.
func oneOf(ranges []rune, d *draw) rune {
	var all, seen []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		all = append(all, ranges[i])
		for r := max(ranges[i], '!'); r <= min(ranges[i+1], '~'); r++ {
			seen = append(seen, r)
		}
	}
	if len(seen) > 0 {
		return seen[d.below(len(seen))]
	}
	return all[d.below(len(all))]
}
