package parser

// ReasoningMarkers returns what opens and what closes the reasoning, where that is all
// that does; nothing for formats of another build.
func (f *Format) ReasoningMarkers() (opens, closes []string) { return f.opens, f.closes }

// Thinking reports whether what is fed next belongs to the reasoning, as far as is known.
func (p *Parser) Thinking() bool { return p.thinking }
