package chattemplate

// symbols says which names a scope of the template uses, as Jinja's compiler sees
// it. It matters for one thing only.
//
// A name that a scope sets, without having read it before, belongs to that scope
// from its very beginning: scopes inside of it that read the name earlier find it
// undefined, even if the request has a variable of that name. So in
//
//	{% for m in messages %}{{ x }}{% endfor %}{% set x = 1 %}
//
// the loop never sees the request's x. Everything else about names is found out
// while rendering, see render.lookup.
type symbols struct {
	parent   *symbols
	used     map[int]bool
	born     map[int]bool // set before anything else; whether a scope inside uses it
	branches int          // ifs around the current statement, within this scope

	// undefined are the names to be hidden when the scope is entered.
	undefined []int
}

// openScope begins a scope; the result ends it.
func (p *parser) openScope(parent *symbols) (s *symbols, leave func()) {
	outer := p.scope
	s = &symbols{parent: parent, used: map[int]bool{}, born: map[int]bool{}}
	p.scopes = append(p.scopes, s)
	p.scope = s
	return s, func() { p.scope = outer }
}

// notesRead notes that the current scope reads a name.
func (p *parser) notesRead(slot int) { p.scope.used[slot] = true }

// notesSet notes that it sets one. Set in a branch, the name may be the request's.
func (p *parser) notesSet(slot int) {
	if !p.scope.used[slot] && p.scope.branches == 0 {
		p.scope.born[slot] = false
	}
	p.scope.used[slot] = true
}

// noteTargets notes that it sets several.
func (p *parser) noteTargets(slots []int) {
	for _, slot := range slots {
		p.notesSet(slot)
	}
}

// parameters notes names that a scope is given.
func (s *symbols) parameters(slots ...int) {
	for _, slot := range slots {
		s.used[slot] = true
	}
}

// resolveSymbols finds the names to be hidden, once all scopes are known.
func (p *parser) resolveSymbols() {
	for _, s := range p.scopes {
		for slot := range s.used {
			for outer := s.parent; outer != nil; outer = outer.parent {
				if _, ok := outer.born[slot]; ok {
					outer.born[slot] = true
				}
			}
		}
	}
	for _, s := range p.scopes {
		for slot, usedInside := range s.born {
			if usedInside && !s.parent.uses(slot) {
				s.undefined = append(s.undefined, slot)
			}
		}
	}
}

// uses tells whether the scope or one around it uses a name.
func (s *symbols) uses(slot int) bool {
	for ; s != nil; s = s.parent {
		if s.used[slot] {
			return true
		}
	}
	return false
}

// hide makes a scope's names undefined before it begins.
func (r *render) hide(s *symbols) {
	for _, slot := range s.undefined {
		r.set(slot, undefinedName(r.names[slot]))
	}
}
