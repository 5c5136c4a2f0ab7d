package chattemplate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isSpace is str.isspace(): what White_Space has, and four separators of ASCII.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	}
	return unicode.IsSpace(r)
}

func isNameStart(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
}

func isNamePart(r rune) bool {
	return isNameStart(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isCased tells the letters that words begin and end with, for title().
func isCased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func isUpper(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Other_Uppercase) }
func isLower(r rune) bool { return unicode.In(r, unicode.Ll, unicode.Other_Lowercase) }

// toUpper and toLower are str.upper() and str.lower(), which unlike Go's know
// that some letters become several.
func toUpper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteString(upperRune(r))
	}
	return b.String()
}

func upperRune(r rune) string {
	if s, ok := longUpper[r]; ok {
		return s
	}
	return string(unicode.ToUpper(r))
}

func titleRune(r rune) string {
	if s, ok := longTitle[r]; ok {
		return s
	}
	return string(unicode.ToTitle(r))
}

func toLower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		b.WriteString(lowerRune(s, i, r))
	}
	return b.String()
}

// lowerRune lowers the letter at s[i]. A sigma at the end of a word has a form
// of its own.
func lowerRune(s string, i int, r rune) string {
	switch r {
	case 'İ':
		return "i̇"
	case 'Σ':
		before := strings.TrimRightFunc(s[:i], isCaseIgnorable)
		after := strings.TrimLeftFunc(s[i+utf8.RuneLen(r):], isCaseIgnorable)
		p, _ := utf8.DecodeLastRuneInString(before)
		n, _ := utf8.DecodeRuneInString(after)
		if before != "" && isCased(p) && (after == "" || !isCased(n)) {
			return "ς"
		}
		return "σ"
	}
	return string(unicode.ToLower(r))
}

func isCaseIgnorable(r rune) bool {
	switch r {
	case '\'', '.', ':', '^', '`', '·', '’', '‘', '․', '‧', '︓', '﹒', '﹕', '＇', '．', '：', '´', '¨', '¯', '¸':
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

func toTitle(s string) string {
	var b strings.Builder
	inWord := false
	for i, r := range s {
		if inWord {
			b.WriteString(lowerRune(s, i, r))
		} else {
			b.WriteString(titleRune(r))
		}
		inWord = isCased(r)
	}
	return b.String()
}

func capitalize(s string) string {
	if s == "" {
		return s
	}
	r, width := utf8.DecodeRuneInString(s)
	var b strings.Builder
	b.WriteString(titleRune(r))
	for i, r := range s[width:] {
		b.WriteString(lowerRune(s, width+i, r))
	}
	return b.String()
}

func isDigit(r rune) bool {
	return unicode.Is(unicode.Nd, r) || unicode.Is(otherDigits, r)
}

func isNumeric(r rune) bool {
	return unicode.In(r, unicode.Nd, unicode.Nl, unicode.No, otherNumerics)
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || isNumeric(r) }

// asciiDigits writes the digits of every script as ASCII, as Python reads them.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		// The decimal digits of a script follow each other, from its zero.
		for _, d := range unicode.Nd.R16 {
			if r >= rune(d.Lo) && r <= rune(d.Hi) {
				return '0' + (r-rune(d.Lo))%10
			}
		}
		for _, d := range unicode.Nd.R32 {
			if r >= rune(d.Lo) && r <= rune(d.Hi) {
				return '0' + (r-rune(d.Lo))%10
			}
		}
		return r
	}, s)
}
