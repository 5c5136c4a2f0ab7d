package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// parseInt reads a text as Python's int() does.
func parseInt(s string, base int) (value, bool) {
	s = strings.TrimFunc(s, isSpace)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || len(digits) > maxIntDigits || base != 0 && (base < 2 || base > 36) {
		return nil, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		prefix := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]|0x20]
		if prefix != 0 && (base == 0 || base == prefix) {
			base, digits = prefix, strings.TrimPrefix(digits[2:], "_")
		}
	}
	if base == 0 {
		if base = 10; digits[0] == '0' && strings.Trim(digits, "0_") != "" {
			return nil, false // "012" is neither octal nor decimal
		}
	}
	digits, ok := joinDigits(asciiDigits(digits))
	if !ok {
		return nil, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, false
	}
	if s[0] == '-' {
		n.Neg(n)
	}
	return smallest(n), true
}

// parseFloat reads a text as Python's float() does.
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	if strings.ContainsAny(s, "xXpP") { // Go reads hexadecimal, Python does not
		return 0, false
	}
	s, ok := joinDigits(s)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

// joinDigits removes the underscores that stand between two digits, and refuses
// others.
func joinDigits(s string) (string, bool) {
	if strings.IndexByte(s, '_') < 0 {
		return s, true
	}
	alnum := func(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !alnum(s[i-1]) || !alnum(s[i+1])) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}
