package chattemplate

// The limits. Real templates and conversations stay far below them: the largest
// template known has 30 kB and nests 12 blocks, and a conversation of a million
// tokens renders in about a million steps. They are there for the template that
// was written to do harm and for the request that meets a weak one.
const (
	maxTemplateBytes = 1 << 20   // length of a template's source
	maxBlockDepth    = 100       // blocks inside blocks
	maxExprDepth     = 200       // brackets inside brackets, while parsing
	maxExprHeight    = 500       // operators on top of each other, while rendering
	maxMacroDepth    = 200       // calls inside calls; Python gives up at about as many
	maxSteps         = 8 << 20   // statements, rounds of loops, elements looked at, 64 bytes of text: less than a second
	maxOutputBytes   = 32 << 20  // length of the prompt
	maxMadeBytes     = 512 << 20 // text and lists that are made on the way, freed ones included
	maxTextBytes     = 32 << 20  // one text
	maxListItems     = 1 << 20   // one list
	maxRange         = 100_000   // the sandbox's own limit
	maxValueDepth    = 500       // lists inside lists, where they are printed or compared
	maxIntBits       = 1 << 16   // an integer; Python prints none above 4,300 digits
	maxIntDigits     = 4300      // digits of an integer in text or JSON, as in Python
	maxJSONBytes     = 32 << 20  // the request's JSON
	maxJSONDepth     = 256       // arrays and objects inside each other
	maxFieldWidth    = 1 << 16   // padding that a format asks for
	maxKeyBytes      = 4 << 10   // a tuple that is the key of a dict
	maxPathParts     = 100       // names with dots between, in map(attribute=...) and its like
)

// budget is what is left to one rendering.
type budget struct {
	steps int
	bytes int
}

// step pays for n units of work.
func (b *budget) step(n int) {
	if b.steps -= n; b.steps < 0 {
		overLimit("steps of rendering", maxSteps)
	}
}

// text pays for a new text of n bytes.
func (b *budget) text(n int) {
	if n > maxTextBytes {
		overLimit("bytes in one text", maxTextBytes)
	}
	b.made(n)
}

// list pays for a new list of n elements.
func (b *budget) list(n int) {
	if n > maxListItems {
		overLimit("elements in one list", maxListItems)
	}
	b.steps -= n
	b.made(16 * n)
}

func (b *budget) made(n int) {
	b.step(1 + n/256)
	if b.bytes -= n; b.bytes < 0 {
		overLimit("bytes made while rendering", maxMadeBytes)
	}
}

// deeper guards the recursion over values that contain values.
func deeper(depth int) int {
	if depth >= maxValueDepth {
		overLimit("lists inside lists", maxValueDepth)
	}
	return depth + 1
}
