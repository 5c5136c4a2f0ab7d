package chattemplate

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// smallest gives an integer the form that values have: int64 where it fits, so
// that no two values of the same number differ in type.
func smallest(n *big.Int) value {
	if n.IsInt64() {
		return n.Int64()
	}
	if n.BitLen() > maxIntBits {
		overLimit("bits of an integer", maxIntBits)
	}
	return n
}

// intOf returns an int that fits into int64; True and False are ints.
func intOf(v value) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func isInt(v value) bool {
	switch v.(type) {
	case bool, int64, *big.Int:
		return true
	}
	return false
}

// bigOf returns any int.
func bigOf(v value) (*big.Int, bool) {
	if n, ok := v.(*big.Int); ok {
		return n, true
	}
	if n, ok := intOf(v); ok {
		return big.NewInt(n), true
	}
	return nil, false
}

// floatOf returns any number as a float.
func floatOf(v value) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(x).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "int too large to convert to float")
		}
		return f, true
	}
	n, ok := intOf(v)
	return float64(n), ok
}

// needInt is for arguments that Python takes as an index. Numbers beyond int64
// are as good as its ends there.
func needInt(v value) int64 {
	if n, ok := intOf(v); ok {
		return n
	}
	switch x := v.(type) {
	case *big.Int:
		if x.Sign() < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	case *undefined:
		typeError("'Undefined' object cannot be interpreted as an integer")
	}
	typeError("'%s' object cannot be interpreted as an integer", typeName(v))
	return 0
}

// binary is Python's +, -, *, /, //, % and **.
func (r *render) binary(op string, a, b value) value {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok && op == "+" {
			r.text(len(x) + len(y))
			return x + y
		}
	}
	if op == "%" {
		if _, ok := textOf(a); ok {
			return r.formatPercent(a, b)
		}
	}
	if u, ok := a.(*undefined); ok {
		return u.fail()
	}
	if u, ok := b.(*undefined); ok {
		return u.fail()
	}
	switch op {
	case "+":
		if v, ok := r.concat(a, b); ok {
			return v
		}
	case "*":
		if v, ok := r.repeat(a, b); ok {
			return v
		}
	}
	if v, ok := r.arithmetic(op, a, b); ok {
		return v
	}
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
}

// concat is + of sequences.
func (r *render) concat(a, b value) (value, bool) {
	if x, ok := a.(*list); ok {
		y, ok := b.(*list)
		if !ok || x.tuple != y.tuple {
			return nil, false
		}
		r.list(len(x.items) + len(y.items))
		items := make([]value, 0, len(x.items)+len(y.items))
		return &list{items: append(append(items, x.items...), y.items...), tuple: x.tuple}, true
	}
	x, ok := textOf(a)
	y, ok2 := textOf(b)
	if !ok || !ok2 {
		return nil, false
	}
	_, safeA := a.(markup)
	_, safeB := b.(markup)
	if safeA != safeB {
		if safeA {
			y = escapeHTML(y)
		} else {
			x = escapeHTML(x)
		}
	}
	r.text(len(x) + len(y))
	if safeA || safeB {
		return markup(x + y), true
	}
	return x + y, true
}

// repeat is * of a sequence and an int.
func (r *render) repeat(a, b value) (value, bool) {
	seq, count := a, b
	if isInt(a) {
		seq, count = b, a
	}
	if !isInt(count) {
		return nil, false
	}
	times := max(needInt(count), 0)
	if s, ok := textOf(seq); ok {
		r.text(product(len(s), times))
		return alike(seq, strings.Repeat(s, int(times))), true
	}
	l, ok := seq.(*list)
	if !ok {
		return nil, false
	}
	if len(l.items) == 0 {
		times = 0
	}
	n := product(len(l.items), times)
	r.list(n)
	out := make([]value, 0, n)
	for range times {
		out = append(out, l.items...)
	}
	return &list{items: out, tuple: l.tuple}, true
}

// product multiplies sizes, and stops at a number that is over every limit.
func product(n int, times int64) int {
	if n == 0 || times == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(times))
	if hi != 0 || lo > 1<<40 {
		return 1 << 40
	}
	return int(lo)
}

func (r *render) arithmetic(op string, a, b value) (value, bool) {
	if x, ok := intOf(a); ok {
		if y, ok := intOf(b); ok {
			if v, ok := smallInts(op, x, y); ok {
				return v, true
			}
		}
	}
	if x, ok := bigOf(a); ok {
		if y, ok := bigOf(b); ok {
			r.step(1 + (x.BitLen()+y.BitLen())/64)
			return r.bigInts(op, x, y), true
		}
	}
	x, ok := floatOf(a)
	y, ok2 := floatOf(b)
	if !ok || !ok2 {
		return nil, false
	}
	return floats(op, x, y), true
}

// smallInts computes what stays within int64; bigInts does the rest.
func smallInts(op string, x, y int64) (value, bool) {
	switch op {
	case "+":
		s := x + y
		return s, (s > x) == (y > 0)
	case "-":
		s := x - y
		return s, (s < x) == (y > 0)
	case "*":
		if x == 0 || y == 0 {
			return int64(0), true
		}
		if x == math.MinInt64 || y == math.MinInt64 {
			return nil, false
		}
		p := x * y
		return p, p/y == x
	case "/":
		if y == 0 {
			fail("ZeroDivisionError", "division by zero")
		}
		const exact = 1 << 53
		return float64(x) / float64(y), -exact <= x && x <= exact && -exact <= y && y <= exact
	case "//", "%":
		if y == 0 {
			fail("ZeroDivisionError", "integer modulo by zero")
		}
		if y == -1 {
			return nil, false
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) {
			q, m = q-1, m+y
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	return nil, false
}

func (r *render) bigInts(op string, x, y *big.Int) value {
	z := new(big.Int)
	switch op {
	case "+":
		return smallest(z.Add(x, y))
	case "-":
		return smallest(z.Sub(x, y))
	case "*":
		return smallest(z.Mul(x, y))
	case "**":
		return r.power(x, y)
	}
	if y.Sign() == 0 {
		fail("ZeroDivisionError", "division by zero")
	}
	if op == "/" {
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "integer division result too large for a float")
		}
		return f
	}
	q, m := z.QuoRem(x, y, new(big.Int))
	if m.Sign() != 0 && (m.Sign() < 0) != (y.Sign() < 0) {
		q.Sub(q, big.NewInt(1))
		m.Add(m, y)
	}
	if op == "%" {
		return smallest(m)
	}
	return smallest(q)
}

func (r *render) power(x, y *big.Int) value {
	if y.Sign() < 0 {
		a, _ := floatOf(smallest(x))
		b, _ := floatOf(smallest(y))
		return floats("**", a, b)
	}
	if x.BitLen() > 1 && (!y.IsInt64() || product(x.BitLen()-1, y.Int64()) > maxIntBits) {
		overLimit("bits of an integer", maxIntBits)
	}
	if x.BitLen() <= 1 { // -1, 0 and 1: any exponent is cheap, if it is made small
		y = new(big.Int).And(y, big.NewInt(1)).Add(new(big.Int).And(y, big.NewInt(1)), big.NewInt(int64(2*y.Sign())))
	}
	r.step(maxIntBits / 64)
	return smallest(new(big.Int).Exp(x, y, nil))
}

func floats(op string, x, y float64) value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		switch {
		case x == 0 && y < 0:
			return fail("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		case x < 0 && y != math.Trunc(y) && !math.IsInf(y, 0) && !math.IsInf(x, 0):
			return fail("ValueError", "complex numbers are not supported")
		}
		f := math.Pow(x, y)
		if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			return fail("OverflowError", "Numerical result out of range")
		}
		return f
	}
	if y == 0 {
		return fail("ZeroDivisionError", "float division by zero")
	}
	if op == "/" {
		return x / y
	}
	// The remainder has the sign of the divisor, and the quotient is what is
	// left after it, rounded to a whole number.
	m := math.Mod(x, y)
	q := (x - m) / y
	if m != 0 {
		if (y < 0) != (m < 0) {
			m += y
			q--
		}
	} else {
		m = math.Copysign(0, y)
	}
	if op == "%" {
		return m
	}
	if q == 0 {
		return math.Copysign(0, x/y)
	}
	whole := math.Floor(q)
	if q-whole > 0.5 {
		whole++
	}
	return whole
}

// negate is the unary minus, and plus when minus is false.
func negate(v value, minus bool) value {
	switch x := v.(type) {
	case *undefined:
		return x.fail()
	case float64:
		if minus {
			return -x
		}
		return x
	case *big.Int:
		if minus {
			return smallest(new(big.Int).Neg(x))
		}
		return x
	}
	n, ok := intOf(v)
	if !ok {
		return typeError("bad operand type for unary -: '%s'", typeName(v))
	}
	if minus {
		if n == math.MinInt64 {
			return new(big.Int).Neg(big.NewInt(n))
		}
		return -n
	}
	return n
}
