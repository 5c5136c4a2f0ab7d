package chattemplate

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

func numberFilters() map[string]*method {
	return map[string]*method{
		"int":            filter(takes("default base", int64(0), int64(10)), toInt),
		"float":          filter(takes("default", 0.0), toFloat),
		"abs":            plain(absolute),
		"round":          filter(takes("precision method", int64(0), "common"), rounded),
		"sum":            filter(takes("attribute start", nil, int64(0)), sum),
		"filesizeformat": filter(takes("binary", false), fileSize),
		"default": filter(takes("default_value boolean", "", false), func(r *render, v value, args []value) value {
			if _, ok := v.(*undefined); ok || r.truth(args[1]) && !r.truth(v) {
				return args[0]
			}
			return v
		}),
	}
}

func toInt(r *render, v value, args []value) value {
	switch x := v.(type) {
	case int64, *big.Int:
		return x
	case bool:
		n, _ := intOf(x)
		return n
	case float64:
		switch {
		case math.IsInf(x, 0):
			return fail("OverflowError", "cannot convert float infinity to integer")
		case math.IsNaN(x):
			return args[0]
		}
		return truncate(x)
	case *undefined:
		return x.fail()
	}
	s, ok := textOf(v)
	if !ok {
		return args[0]
	}
	if base, ok := intOf(args[1]); ok {
		if n, ok := parseInt(s, int(min(base, 99))); ok {
			return n
		}
	}
	if f, ok := parseFloat(s); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return truncate(f)
	}
	return args[0]
}

// truncate is int() of a finite float.
func truncate(f float64) value {
	if math.Abs(f) < 1<<62 {
		return int64(f)
	}
	n, _ := big.NewFloat(f).Int(nil)
	return smallest(n)
}

func toFloat(r *render, v value, args []value) value {
	if f, ok := floatOf(v); ok {
		return f
	}
	if u, ok := v.(*undefined); ok {
		return u.fail()
	}
	if s, ok := textOf(v); ok {
		if f, ok := parseFloat(s); ok {
			return f
		}
	}
	return args[0]
}

func absolute(r *render, v value) value {
	switch x := v.(type) {
	case float64:
		return math.Abs(x)
	case *big.Int:
		return new(big.Int).Abs(x)
	case *undefined:
		return typeError("bad operand type for abs(): 'Undefined'")
	}
	n, ok := intOf(v)
	if !ok {
		return typeError("bad operand type for abs(): '%s'", typeName(v))
	}
	if n < 0 {
		return negate(n, true)
	}
	return n
}

func rounded(r *render, v value, args []value) value {
	how, _ := textOf(args[1])
	switch how {
	case "common":
		return roundHalfEven(v, args[0])
	case "ceil", "floor":
	default:
		return fail("FilterArgumentError", "method must be common, ceil or floor")
	}
	scale := r.binary("**", int64(10), args[0])
	scaled := r.binary("*", v, scale)
	f, ok := floatOf(scaled)
	if !ok {
		return typeError("must be real number, not %s", typeName(v))
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return fail("OverflowError", "cannot convert float %v to integer", f)
	}
	whole := scaled
	if _, isFloat := scaled.(float64); isFloat {
		if how == "ceil" {
			whole = truncate(math.Ceil(f))
		} else {
			whole = truncate(math.Floor(f))
		}
	}
	return r.binary("/", whole, scale)
}

// roundHalfEven is Python's round(): exact on the float's binary value, to even
// on ties, and an int stays an int.
func roundHalfEven(v, precision value) value {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
	default:
		return typeError("type %s doesn't define __round__ method", typeName(v))
	}
	f, isFloat := v.(float64)
	if precision == nil { // round(x, None) is round(x): an int
		if !isFloat {
			n, _ := bigOf(v)
			return smallest(n)
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return fail("OverflowError", "cannot convert float %v to integer", f)
		}
		return truncate(math.RoundToEven(f))
	}
	digits := needInt(precision)
	if !isFloat {
		n, _ := bigOf(v)
		if digits >= 0 {
			return smallest(n)
		}
		if digits < -maxIntDigits {
			return int64(0)
		}
		return smallest(roundToTens(new(big.Rat).SetInt(n), -digits))
	}
	switch {
	case math.IsInf(f, 0), math.IsNaN(f), digits > 330:
		return f
	case digits < -330:
		return math.Copysign(0, f)
	case digits >= 0:
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
		return out
	}
	exact, _ := new(big.Float).SetInt(roundToTens(new(big.Rat).SetFloat64(f), -digits)).Float64()
	return math.Copysign(exact, f)
}

// roundToTens rounds to a multiple of 10**digits.
func roundToTens(x *big.Rat, digits int64) *big.Int {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
	x = new(big.Rat).Quo(x, new(big.Rat).SetInt(unit))
	q, m := new(big.Int).DivMod(x.Num(), x.Denom(), new(big.Int)) // floor: the rest is not negative
	switch half := new(big.Int).Lsh(m, 1).Cmp(x.Denom()); {
	case half > 0, half == 0 && q.Bit(0) == 1:
		q.Add(q, big.NewInt(1))
	}
	return q.Mul(q, unit)
}

func sum(r *render, v value, args []value) value {
	if _, ok := textOf(args[1]); ok {
		return typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	get := getter(args[0])
	total := args[1]
	next := r.iterate(v)
	for e, ok := next(); ok; e, ok = next() {
		r.step(1)
		total = r.binary("+", total, get(r, e))
	}
	return total
}

func fileSize(r *render, v value, args []value) value {
	n, ok := floatOf(toFloat(r, v, []value{nil}))
	if !ok {
		return fail("ValueError", "could not convert to float")
	}
	base, letters := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if r.truth(args[0]) {
		base, letters = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case n == 1:
		return "1 Byte"
	case n < base:
		return r.str(truncate(n)) + " Bytes"
	}
	unit := base
	for i, letter := range letters {
		unit *= base
		if n < unit || i == len(letters)-1 {
			return fmt.Sprintf("%.1f %s", base*n/unit, letter)
		}
	}
	return nil
}
