package chattemplate

import (
	"math"
	"math/big"
	"strings"
)

// formatPercent is "format % argument".
func (r *render) formatPercent(format, argument value) value {
	text, ok := textOf(format)
	if !ok {
		return typeError("unsupported operand type(s) for %%: '%s'", typeName(format))
	}
	_, safe := format.(markup)
	f := &percentFormat{r: r, text: text, argument: argument, args: []value{argument}, safe: safe}
	if l, ok := argument.(*list); ok && l.tuple {
		f.args = l.items
	}
	f.run()
	r.text(f.out.Len())
	return alike(format, f.out.String())
}

type percentFormat struct {
	r        *render
	text     string
	pos      int
	argument value
	args     []value // those not used yet
	named    bool
	safe     bool // the format is markup: escape what is put in
	out      strings.Builder
}

func (f *percentFormat) run() {
	f.r.step(len(f.text) / 16)
	for f.pos < len(f.text) {
		plain, _, more := strings.Cut(f.text[f.pos:], "%")
		f.out.WriteString(plain)
		f.pos += len(plain) + 1
		if more {
			f.field()
		}
		if f.out.Len() > maxTextBytes {
			break
		}
	}
	if len(f.args) > 0 && !f.named && !isSubscriptable(f.argument) {
		typeError("not all arguments converted during string formatting")
	}
}

// isSubscriptable tells what Python takes for a mapping here, of which a format
// need not use anything.
func isSubscriptable(v value) bool {
	switch x := v.(type) {
	case *dict, *span, *undefined:
		return true
	case *list:
		return !x.tuple
	}
	return false
}

func (f *percentFormat) peek() byte {
	if f.pos >= len(f.text) {
		fail("ValueError", "incomplete format")
	}
	return f.text[f.pos]
}

func (f *percentFormat) field() {
	f.r.step(1)
	if f.peek() == '%' {
		f.pos++
		f.out.WriteByte('%')
		return
	}
	var from *value
	if f.peek() == '(' {
		v := f.member()
		from = &v
	}
	spec := f.spec()
	for strings.IndexByte("hlL", f.peek()) >= 0 {
		f.pos++
	}
	spec.kind = f.peek()
	f.pos++
	if strings.IndexByte("srauidoxXeEfFgGc", spec.kind) < 0 {
		fail("ValueError", "unsupported format character '%c'", rune(spec.kind))
	}
	if from == nil {
		v := f.next()
		from = &v
	}
	f.out.WriteString(f.one(*from, spec))
}

// member reads "(key)", whose brackets may nest.
func (f *percentFormat) member() value {
	d, ok := f.argument.(*dict)
	if !ok {
		typeError("format requires a mapping")
	}
	start, depth := f.pos+1, 0
	for ; f.pos < len(f.text); f.pos++ {
		if f.text[f.pos] == '(' {
			depth++
		} else if f.text[f.pos] == ')' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if depth != 0 || f.pos >= len(f.text) {
		fail("ValueError", "incomplete format key")
	}
	key := f.text[start:f.pos]
	f.pos++
	f.named = true
	v, ok := d.get(key)
	if !ok {
		fail("KeyError", "'%s'", key)
	}
	return v
}

func (f *percentFormat) next() value {
	if len(f.args) == 0 || f.named {
		typeError("not enough arguments for format string")
	}
	v := f.args[0]
	f.args = f.args[1:]
	return v
}

func (f *percentFormat) spec() *formatSpec {
	spec := &formatSpec{precision: -1, minDigits: true}
	for {
		switch f.peek() {
		case '-':
			spec.align = '<'
		case '+':
			spec.sign = '+'
		case ' ':
			if spec.sign == 0 {
				spec.sign = ' '
			}
		case '#':
			spec.alternate = true
		case '0':
			spec.fill = "0"
		default:
			spec.width = f.count()
			if spec.width < 0 {
				spec.align, spec.width = '<', -spec.width
			}
			if f.peek() == '.' {
				f.pos++
				spec.precision = max(f.count(), 0)
			}
			return spec
		}
		f.pos++
	}
}

// count reads a width or a precision, which may be an argument.
func (f *percentFormat) count() int64 {
	if f.peek() == '*' {
		f.pos++
		v := f.next()
		n, ok := intOf(v)
		if !ok {
			typeError("* wants int")
		}
		return min(max(n, -math.MaxInt32), math.MaxInt32)
	}
	n := int64(0)
	for ; f.peek() >= '0' && f.peek() <= '9'; f.pos++ {
		if n = n*10 + int64(f.peek()-'0'); n > math.MaxInt32 {
			fail("ValueError", "width too big")
		}
	}
	return n
}

func (f *percentFormat) one(v value, spec *formatSpec) string {
	r := f.r
	zeros := spec.fill == "0" && spec.align == 0
	spec.fill = ""
	switch spec.kind {
	case 's', 'r', 'a':
		var s string
		switch spec.kind {
		case 's':
			s = r.str(v)
		case 'r':
			s = r.reprText(v)
		case 'a':
			s = r.asciiRepr(v)
		}
		if _, ok := v.(markup); f.safe && !ok {
			s = escapeHTML(s)
		}
		return rightUnless(r, s, spec)
	case 'c':
		if s, ok := textOf(v); ok {
			if len([]rune(s)) != 1 {
				typeError("%%c requires int or char")
			}
			return rightUnless(r, s, spec)
		}
		n, ok := bigOf(v)
		if !ok {
			typeError("%%c requires int or char")
		}
		inner := &formatSpec{kind: 'c', precision: -1}
		return rightUnless(r, r.integer(n, inner), &formatSpec{align: spec.align, width: spec.width, precision: -1})
	}
	if zeros {
		spec.align, spec.fill = '=', "0"
	}
	if strings.IndexByte("eEfFgG", spec.kind) >= 0 {
		x, ok := floatOf(v)
		if !ok {
			typeError("must be real number, not %s", typeName(v))
		}
		return r.float(x, spec)
	}
	return r.integer(percentInt(v, spec.kind), spec)
}

// rightUnless pads a text on the left, which is the default of % only.
func rightUnless(r *render, s string, spec *formatSpec) string {
	if spec.align == 0 {
		spec.align = '>'
	}
	return r.clipped(s, spec)
}

func percentInt(v value, kind byte) *big.Int {
	if n, ok := bigOf(v); ok {
		return n
	}
	x, ok := v.(float64)
	if !ok || strings.IndexByte("xXo", kind) >= 0 {
		typeError("%%%c format: a number is required, not %s", rune(kind), typeName(v))
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		fail("OverflowError", "cannot convert float to integer")
	}
	n, _ := bigOf(truncate(x))
	return n
}
