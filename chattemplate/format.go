package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec is what Python's two ways of formatting, "%05.1f" % x and
// "{:>8,}".format(x), say about one field.
type formatSpec struct {
	fill      string
	align     byte // '<', '>', '^', '=' (between sign and digits), or 0
	sign      byte // '+', ' ' or 0
	alternate bool // 0x before hexadecimals
	width     int64
	grouping  byte  // ',' or '_' between thousands, or 0
	precision int64 // -1: none
	kind      byte  // d, f, s, ...; 0: none
	minDigits bool  // of an int, precision counts digits
}

// number makes the field of a number from its parts. The whole part is what gets
// separators and zeros; rest is what follows it.
func (r *render) number(negative bool, prefix, whole, rest string, spec *formatSpec) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case spec.sign != 0:
		sign = string(spec.sign)
	}
	if spec.align == '=' && spec.fill == "0" {
		room := spec.width - int64(len(sign)+len(prefix)+len(rest))
		return sign + prefix + r.grouped(whole, spec, room) + rest
	}
	body := prefix + r.grouped(whole, spec, 0) + rest
	if spec.align == '=' {
		inner := *spec
		inner.width -= int64(len(sign))
		inner.align = '>'
		return sign + r.aligned(body, &inner, '>')
	}
	return r.aligned(sign+body, spec, '>')
}

// grouped puts separators between digits, after zeros up to the width.
func (r *render) grouped(digits string, spec *formatSpec, width int64) string {
	if spec.grouping != 0 && width > 0 { // the separators take their part of the width
		size := r.groupSize(spec)
		n := width * size / (size + 1)
		for n+(n-1)/size < width {
			n++
		}
		width = n
	}
	digits = r.padded(digits, "rjust", width, "0")
	if spec.grouping == 0 {
		return digits
	}
	size := int(r.groupSize(spec))
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(spec.grouping)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

func (r *render) groupSize(spec *formatSpec) int64 {
	if strings.IndexByte("xXob", spec.kind) >= 0 && spec.kind != 0 {
		return 4
	}
	return 3
}

func (r *render) aligned(s string, spec *formatSpec, otherwise byte) string {
	align := spec.align
	if align == 0 {
		align = otherwise
	}
	fill := spec.fill
	if fill == "" {
		fill = " "
	}
	switch align {
	case '<':
		return r.padded(s, "ljust", spec.width, fill)
	case '^':
		missing := spec.width - int64(utf8.RuneCountInString(s))
		if missing <= 0 {
			return s
		}
		s = r.padded(s, "rjust", spec.width-(missing+1)/2, fill)
		return r.padded(s, "ljust", spec.width, fill)
	}
	return r.padded(s, "rjust", spec.width, fill)
}

// integer formats an int in the base that the kind says.
func (r *render) integer(n *big.Int, spec *formatSpec) string {
	base, prefix := 10, ""
	switch spec.kind {
	case 'x', 'X':
		base, prefix = 16, "0"+string(spec.kind)
	case 'o':
		base, prefix = 8, "0o"
	case 'b':
		base, prefix = 2, "0b"
	case 'c':
		if !n.IsInt64() || n.Sign() < 0 || n.Int64() > utf8.MaxRune {
			fail("OverflowError", "%%c arg not in range(0x110000)")
		}
		return r.aligned(string(rune(n.Int64())), spec, '<')
	}
	if !spec.alternate {
		prefix = ""
	}
	r.step(1 + n.BitLen()/16)
	digits := new(big.Int).Abs(n).Text(base)
	if base == 10 && len(digits) > maxIntDigits {
		fail("ValueError", "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	if spec.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	if spec.minDigits && spec.precision > int64(len(digits)) {
		digits = r.padded(digits, "rjust", spec.precision, "0")
	}
	return r.number(n.Sign() < 0, prefix, digits, "", spec)
}

// float formats a float. Without a kind it looks like str(), but for a precision.
func (r *render) float(f float64, spec *formatSpec) string {
	precision := spec.precision
	if precision > maxFieldWidth {
		overLimit("digits of a number", maxFieldWidth)
	}
	r.step(1 + int(max(precision, 0))/16)
	negative := math.Signbit(f) && !math.IsNaN(f)
	abs := math.Abs(f)
	kind, percent := spec.kind, ""
	if kind == '%' {
		kind, abs, percent = 'f', abs*100, "%"
	}
	shortest := kind == 0 && precision < 0
	if precision < 0 {
		precision = 6
	}
	var digits string
	switch {
	case shortest:
		digits = floatText(abs)
	case math.IsInf(abs, 0):
		digits = "inf"
	case math.IsNaN(abs):
		digits = "nan"
	case kind == 'g' || kind == 'G' || kind == 'n' || kind == 0:
		digits = general(abs, int(max(precision, 1)), kind == 0, spec.alternate)
	case kind == 'e' || kind == 'E':
		digits = strconv.FormatFloat(abs, 'e', int(precision), 64)
	default:
		digits = strconv.FormatFloat(abs, 'f', int(precision), 64)
	}
	if spec.alternate && !strings.ContainsAny(digits, ".n") {
		if i := strings.IndexByte(digits, 'e'); i >= 0 {
			digits = digits[:i] + "." + digits[i:]
		} else {
			digits += "."
		}
	}
	if kind == 'E' || kind == 'G' || kind == 'F' {
		digits = strings.ToUpper(digits)
	}
	fraction := strings.TrimLeft(digits, "0123456789")
	return r.number(negative, "", strings.TrimSuffix(digits, fraction), fraction+percent, spec)
}

// general is the format g: so many digits, as a power of ten where the number is
// very small or has more. With dot, which is the format of no kind, there is
// always a digit behind the point.
func general(f float64, digits int, dot, keepZeros bool) string {
	s := strconv.FormatFloat(f, 'e', digits-1, 64)
	mantissa, power, _ := strings.Cut(s, "e")
	exponent, _ := strconv.Atoi(power)
	limit := digits
	if dot {
		limit--
	}
	if exponent < -4 || exponent >= limit {
		if !keepZeros && strings.IndexByte(mantissa, '.') >= 0 {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + power
	}
	s = strconv.FormatFloat(f, 'f', max(digits-1-exponent, 0), 64)
	if !keepZeros && strings.IndexByte(s, '.') >= 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if dot && strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

// clipped is a text cut to the precision, in a field.
func (r *render) clipped(s string, spec *formatSpec) string {
	if spec.precision >= 0 {
		s = s[:byteAt(s, spec.precision)]
	}
	return r.aligned(s, spec, '<')
}

// asciiRepr is Python's ascii().
func (r *render) asciiRepr(v value) string {
	var b strings.Builder
	for _, c := range r.reprText(v) {
		if c < utf8.RuneSelf {
			b.WriteByte(byte(c))
		} else {
			b.WriteString(escapedRune(nil, c))
		}
	}
	return b.String()
}
