package sim

import (
	"strings"

	"baton/engine"
	"baton/engine/sim/toymodel"
)

// A lexicon is the vocabulary's side of the grammar: which ids are which part
// of speech. Lists hold the forms within a sentence, with a leading space.
type lexicon struct {
	class map[engine.TokenID]class

	determiners, possessives, pronouns, openers, numerals []engine.TokenID
	adjectives, nouns                                     bySound
	plurals, transitive, intransitive, adverbs            []engine.TokenID
	prepositions, conjunctions                            []engine.TokenID

	capital map[engine.TokenID]engine.TokenID // " word" to " Word"
	bare    map[engine.TokenID]engine.TokenID // " Word" to "Word"

	stop, comma, paragraph, a, an engine.TokenID
}

// A class is what a token is to the grammar.
type class uint8

const (
	other class = iota
	determiner
	numeral
	pronoun
	opener
	adjective
	noun // plurals too
	transitive
	intransitive
	adverb
	preposition
	conjunction
	comma
	fullStop
	lineEnd // the text begins anew
	control // special tokens: another text begins
)

func newLexicon(v *vocabulary) *lexicon {
	l := &lexicon{
		class:   map[engine.TokenID]class{},
		capital: map[engine.TokenID]engine.TokenID{},
		bare:    map[engine.TokenID]engine.TokenID{},
	}
	list := func(words []string, c class) []engine.TokenID {
		var ids []engine.TokenID
		for _, w := range words {
			id := v.ids[" "+w]
			capital := v.ids[" "+toymodel.Capital(w)]
			l.capital[id], l.bare[capital] = capital, v.ids[toymodel.Capital(w)]
			for _, form := range []engine.TokenID{id, capital, v.ids[w], l.bare[capital]} {
				if _, taken := l.class[form]; !taken { // "often" is an adverb, "before" a preposition first
					l.class[form] = c
				}
			}
			ids = append(ids, id)
		}
		return ids
	}
	l.determiners = list(toymodel.Determiners, determiner)
	l.possessives = list(toymodel.Possessives, determiner)
	l.numerals = list(toymodel.Numerals, numeral)
	l.pronouns = list(toymodel.Pronouns, pronoun)
	l.openers = list(toymodel.Openers, opener)
	l.plurals = list(toymodel.Plurals, noun)
	l.transitive = list(toymodel.Transitive, transitive)
	l.intransitive = list(toymodel.Intransitive, intransitive)
	l.adverbs = list(toymodel.Adverbs, adverb)
	l.prepositions = list(toymodel.Prepositions, preposition)
	l.conjunctions = list(toymodel.Conjunctions, conjunction)
	l.adjectives = newBySound(v, list(toymodel.Adjectives, adjective))
	l.nouns = newBySound(v, list(toymodel.Nouns, noun))

	l.stop, l.comma, l.paragraph, l.a, l.an = v.ids["."], v.ids[","], v.ids["\n\n"], v.ids[" a"], v.ids[" an"]
	l.class[l.comma] = comma
	for _, s := range []string{".", "!", "?"} {
		l.class[v.ids[s]] = fullStop
	}
	l.class[v.ids["\n"]], l.class[l.paragraph] = lineEnd, lineEnd
	for id, special := range v.special {
		if special {
			l.class[engine.TokenID(id)] = control
		}
	}
	return l
}

// bySound parts the words that want "a" from those that want "an".
type bySound struct {
	all, consonant, vowel []engine.TokenID
}

func newBySound(v *vocabulary, ids []engine.TokenID) bySound {
	s := bySound{all: ids}
	for _, id := range ids {
		w := strings.TrimSpace(v.pieces[id])
		if strings.ContainsRune("aeiou", rune(w[0])) && w != "useful" || w == "hour" || w == "honest" {
			s.vowel = append(s.vowel, id)
		} else {
			s.consonant = append(s.consonant, id)
		}
	}
	return s
}

// A grammar is where in a sentence the sequence stands. It is a function of the
// ids alone, folded one by one, so that a continuation goes on mid-sentence.
type grammar struct {
	state   state
	role    role
	article engine.TokenID // " a" or " an" just before; 0 = neither
	clauses int            // of this sentence, so that it comes to an end

	sentences int // of this text, so that it does not come to an end at once
}

type state uint8

const (
	fresh       state = iota // at the start of a text or paragraph
	between                  // after a full stop
	afterOpener              // "Later" wants its comma
	wantNominal              // a subject, an object, or what a preposition wants
	wantNoun                 // after a determiner
	wantHead                 // after an adjective: the noun itself
	wantPlural               // after a numeral
	afterNominal
	afterVerb // intransitive, or with an adverb
	wantConjunction
)

// A role is what the nominal at hand is to its clause.
type role uint8

const (
	subject role = iota
	object
	place // after a preposition
)

// after returns where the sequence stands after id. What does not fit the
// grammar, in a prompt or by force, is taken for a word after which a sentence
// can end.
func (g grammar) after(l *lexicon, id engine.TokenID) grammar {
	article := engine.TokenID(0)
	if id == l.a || id == l.an {
		article = id
	}
	g.article = article
	switch l.class[id] {
	case control:
		return grammar{state: fresh}
	case lineEnd:
		return grammar{state: fresh, sentences: g.sentences}
	case fullStop:
		return grammar{state: between, sentences: g.sentences + 1}
	case comma:
		if g.state == afterOpener {
			g.state = wantNominal
		} else {
			g.state = wantConjunction
		}
	case conjunction:
		g.state, g.role = wantNominal, subject
		g.clauses++
	case opener:
		g.state, g.role = afterOpener, subject
	case preposition:
		g.state, g.role = wantNominal, place
	case determiner:
		g.state = wantNoun
	case numeral:
		g.state = wantPlural
	case adjective:
		g.state = wantHead
	case noun, pronoun:
		g.state = afterNominal
	case transitive:
		g.state, g.role = wantNominal, object
	case intransitive, adverb:
		g.state = afterVerb
	default:
		g.state, g.role = afterNominal, object
	}
	return g
}

// sentenceTokens is about how long a sentence is.
const sentenceTokens = 13

// ends draws whether an answer ends after so many sentences: not in the first
// half of the mean length, and then at any sentence with the same chance.
func (g grammar) ends(d *draw, c *Config) bool {
	if c.MeanLength < 0 || len(c.EOS) == 0 {
		return false
	}
	half := c.MeanLength / sentenceTokens / 2
	return g.sentences > half && d.one(max(1, half))
}

// next draws the token that may follow.
func (g grammar) next(l *lexicon, d *draw, c *Config) (engine.TokenID, bool) {
	if c.VocabSize != ModelVocabSize() {
		return 0, false // the words lie outside such a vocabulary
	}
	one := func(ids []engine.TokenID) (engine.TokenID, bool) { return ids[d.below(len(ids))], true }
	switch g.state {
	case fresh:
		return l.bare[g.first(l, d)], true
	case between:
		switch {
		case g.ends(d, c):
			return one(c.EOS[:1])
		case d.one(5):
			return l.paragraph, true
		}
		return g.first(l, d), true
	case afterOpener:
		return l.comma, true
	case wantNominal:
		return g.nominal(l, d), true
	case wantNoun:
		if d.one(3) {
			return one(g.sounding(l.adjectives, l))
		}
		return one(g.sounding(l.nouns, l))
	case wantHead:
		return one(l.nouns.all)
	case wantPlural:
		return one(l.plurals)
	case wantConjunction:
		return one(l.conjunctions)
	case afterNominal:
		if g.role == subject {
			if d.one(4) {
				return one(l.intransitive)
			}
			return one(l.transitive)
		}
		return g.goOn(l, d), true
	default:
		return g.goOn(l, d), true
	}
}

// first draws the capital word that begins a sentence.
func (g grammar) first(l *lexicon, d *draw) engine.TokenID {
	if d.one(4) {
		return l.capital[l.openers[d.below(len(l.openers))]]
	}
	return l.capital[g.nominal(l, d)]
}

// nominal draws the first word of a subject, an object or a place.
func (g grammar) nominal(l *lexicon, d *draw) engine.TokenID {
	from := l.determiners
	switch n := d.below(8); {
	case n < 2:
		from = l.possessives
	case n == 2:
		from = l.numerals
	case n < 5 && g.role == subject:
		from = l.pronouns
	case n < 7:
		from = l.determiners[:1] // "the"
	}
	return from[d.below(len(from))]
}

// sounding returns the words that fit the article before them.
func (g grammar) sounding(words bySound, l *lexicon) []engine.TokenID {
	switch g.article {
	case l.a:
		return words.consonant
	case l.an:
		return words.vowel
	}
	return words.all
}

// goOn draws what follows a clause that could end here.
func (g grammar) goOn(l *lexicon, d *draw) engine.TokenID {
	n := d.below(10)
	switch {
	case n < 2 && g.clauses < 2:
		return l.comma
	case n < 5 && g.role != place:
		return l.prepositions[d.below(len(l.prepositions))]
	case n == 5 && g.state != afterVerb:
		return l.adverbs[d.below(len(l.adverbs))]
	}
	return l.stop
}
