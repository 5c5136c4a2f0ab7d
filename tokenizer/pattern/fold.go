package pattern

import (
	"sync"
	"unicode"

	"baton/tokenizer/ucd"
)

// The reference's engine lets (?i:ss) match ß, and ß match ss: a character and
// two that are cases of each other. No known file needs that, so it is refused.
var (
	longFolds     = []string{"ss", "ff", "fi", "fl", "st"}
	longFoldRunes = ucd.Runes('ß', 'ẞ', 'İ', 'ŉ', 'ǰ', 'ΐ', 'ΰ', 'և').Union(ucd.Of(
		ucd.Range{Lo: 0x1E96, Hi: 0x1E9A}, ucd.Range{Lo: 0x1F50, Hi: 0x1FFC}, ucd.Range{Lo: 0xFB00, Hi: 0xFB17}))
)

func (p *parser) refuseLongFolds(seq []*node) {
	const few = 8 // ranges: more is no literal
	for i, n := range seq {
		if n.kind != nodeSet || len(n.set) > few {
			continue
		}
		refused := len(n.set.And(longFoldRunes)) > 0
		if i+1 < len(seq) && seq[i+1].kind == nodeSet && len(seq[i+1].set) <= few {
			for _, pair := range longFolds {
				refused = refused || n.set.Contains(rune(pair[0])) && seq[i+1].set.Contains(rune(pair[1]))
			}
		}
		if refused {
			p.fail("ignoring the case of ss, ff, fi, fl, st or of a character like ß is not supported")
		}
	}
}

// foldable are the characters that have other cases.
var foldable = sync.OnceValue(func() []rune {
	var out []rune
	for r := rune(0); r <= ucd.MaxRune; r++ {
		if unicode.SimpleFold(r) != r {
			out = append(out, r)
		}
	}
	return out
})

// folded adds the other cases of every character, if case is ignored here.
func (p *parser) folded(s ucd.Set) ucd.Set {
	if !p.fold {
		return s
	}
	var more []rune
	for _, r := range foldable() {
		if s.Contains(r) {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				more = append(more, f)
			}
		}
	}
	return s.Union(ucd.Runes(more...))
}
