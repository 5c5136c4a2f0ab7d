package tokenizer

import (
	"slices"
	"unicode/utf8"

	"baton/tokenizer/ucd"

	"golang.org/x/text/unicode/norm"
)

// A unicodeForm is one of Unicode's normal forms as the reference makes them,
// which is not quite how golang.org/x/text does:
//
//   - x/text obeys the stream-safe rule and puts U+034F after 30 combining
//     marks in a row, the reference does not;
//   - the reference's data is that of Unicode 9. A later mark (some are in
//     daily use for Arabic) is an ordinary character to it.
//
// So x/text does the texts that neither concerns, and its properties serve to
// do the others here.
type unicodeForm struct {
	decomposed norm.Form // the form to take decompositions from
	whole      norm.Form
	compose    bool
}

var unicodeForms = map[string]unicodeForm{
	"NFC":  {norm.NFD, norm.NFC, true},
	"NFD":  {norm.NFD, norm.NFD, false},
	"NFKC": {norm.NFKD, norm.NFKC, true},
	"NFKD": {norm.NFKD, norm.NFKD, false},
}

// normalizes are the code points that the reference decomposes or reorders.
var normalizes = ucd.MustNamed(ucd.Normalizes).Table()

// streamSafe is a little below the number of marks at which x/text intervenes.
const streamSafe = 28

// firstLateComposition is where characters begin that are no marks but compose
// with the one before them, in scripts newer than the reference's data.
const firstLateComposition = 0x11000

func (f unicodeForm) normalize(text string) string {
	marks := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			marks = 0
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		p := f.decomposed.PropertiesString(text[i:])
		i += size
		expanded := 1
		if d := p.Decomposition(); d != nil {
			expanded = utf8.RuneCount(d)
		} else if p.CCC() == 0 {
			if !p.BoundaryBefore() && r >= firstLateComposition {
				return f.normalizeSlowly(text)
			}
			marks = 0
			continue
		}
		if !normalizes.Has(r) {
			return f.normalizeSlowly(text)
		}
		if p.LeadCCC() == 0 {
			marks = 0
		}
		if marks += expanded; marks > streamSafe {
			return f.normalizeSlowly(text)
		}
	}
	return f.whole.String(text)
}

func (f unicodeForm) normalizeSlowly(text string) string {
	var runes []rune
	for i, r := range text {
		d := f.decomposed.PropertiesString(text[i:]).Decomposition()
		if r >= hangulFirst && r <= hangulLast { // decomposed by a rule, not by the table
			d = f.decomposed.Bytes([]byte(string(r)))
		}
		if d == nil || !normalizes.Has(r) {
			runes = append(runes, r)
			continue
		}
		for len(d) > 0 {
			c, size := utf8.DecodeRune(d)
			runes = append(runes, c)
			d = d[size:]
		}
	}
	for i := 0; i < len(runes); { // put each run of marks into the order of their classes
		j := i
		for j < len(runes) && combiningClass(runes[j]) != 0 {
			j++
		}
		slices.SortStableFunc(runes[i:j], func(a, b rune) int { return int(combiningClass(a)) - int(combiningClass(b)) })
		i = j + 1
	}
	if f.compose {
		runes = compose(runes)
	}
	return string(runes)
}

// The Hangul syllables.
const hangulFirst, hangulLast = 0xAC00, 0xD7A3

func combiningClass(r rune) uint8 {
	if r < 0x300 || !normalizes.Has(r) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// compose joins, in place, starters with what follows and is not blocked.
func compose(runes []rune) []rune {
	out := runes[:0]
	starter := -1
	last := uint8(0) // the class of the last character kept after the starter
	for _, r := range runes {
		class := combiningClass(r)
		adjacent := len(out)-1 == starter
		if starter >= 0 && (adjacent || last != 0 && last < class) {
			if c, ok := composePair(out[starter], r); ok {
				out[starter] = c
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, r)
	}
	return out
}

// composePair returns the character that two compose into, if there is one.
func composePair(a, b rune) (rune, bool) {
	if a < utf8.RuneSelf && b < 0x300 {
		return 0, false
	}
	s := norm.NFC.String(string([]rune{a, b}))
	c, size := utf8.DecodeRuneInString(s)
	return c, size == len(s) && normalizes.Has(c)
}
