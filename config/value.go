package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errNotAllowed stands for the sentence "… must be …, not …".
var errNotAllowed = errors.New("not allowed")

// integer declares a whole number in [lowest, highest].
func integer(p *int, initial, lowest, highest int, name, meaning string) *setting {
	*p = initial
	s := &setting{
		name: name, operand: "N", meaning: meaning,
		allowed: fmt.Sprintf("a whole number from %d to %d", lowest, highest),
		set: func(text string) error {
			n, err := strconv.Atoi(text)
			if err != nil || n < lowest || n > highest {
				return errNotAllowed
			}
			*p = n
			return nil
		},
		get: func() []string { return []string{strconv.Itoa(*p)} },
	}
	s.initial = s.get()
	return s
}

// maxDuration keeps sums of a few durations far from an overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// duration declares a Go duration, of which 0 is "off".
func duration(p *time.Duration, initial time.Duration, name, meaning string) *setting {
	*p = initial
	s := &setting{
		name: name, operand: "DURATION", meaning: meaning,
		allowed: "a duration with its unit, such as 500ms, 30s or 5m, or 0 for off",
		set: func(text string) error {
			d, err := time.ParseDuration(text)
			if _, bare := strconv.ParseFloat(text, 64); bare == nil && err != nil {
				return fmt.Errorf("%q has no unit; write %ss, %sms or the like", text, text, text)
			}
			if err != nil || d < 0 || d > maxDuration {
				return errNotAllowed
			}
			*p = d
			return nil
		},
		get: func() []string { return []string{formatDuration(*p)} },
	}
	s.initial = s.get()
	return s
}

// formatDuration writes 5m0s as 5m and 0s as 0.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if d == 0 {
		s = "0"
	}
	return s
}

// size declares a number of bytes. There is no "off": a body without a bound
// would let any client take all memory.
func size(p *int64, initial, low int64, name, meaning string) *setting {
	*p = initial
	s := &setting{
		name: name, operand: "SIZE", meaning: meaning,
		allowed: fmt.Sprintf("a size such as 192MiB, 1GiB or 500kB, or a number of bytes, at least %d", low),
		set: func(text string) error {
			n, ok := parseSize(text)
			if !ok || n < low {
				return errNotAllowed
			}
			*p = n
			return nil
		},
		get: func() []string { return []string{formatSize(*p)} },
	}
	s.initial = s.get()
	return s
}

// sizeUnits is in the order in which suffixes are tried: the longer first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

func parseSize(text string) (int64, bool) {
	digits, factor := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, factor = strings.TrimRight(rest, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/factor {
		return 0, false
	}
	return int64(n) * factor, true
}

func formatSize(n int64) string {
	for _, u := range sizeUnits[:3] {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// text declares a string that parse checks and may rewrite.
func text(p *string, initial string, parse func(string) (string, error), name, operand, meaning, allowed string) *setting {
	*p = initial
	s := &setting{
		name: name, operand: operand, meaning: meaning, allowed: allowed,
		set: func(text string) error {
			v, err := parse(text)
			if err == nil {
				*p = v
			}
			return err
		},
		get: func() []string {
			if *p == "" {
				return nil
			}
			return []string{*p}
		},
	}
	s.initial, s.unset = s.get(), initial == ""
	return s
}

// choice declares one of a few words. Words in refused get a sentence of their own.
func choice(p *string, initial string, options []string, name, meaning string, refused map[string]string) *setting {
	*p = initial
	return &setting{
		name: name, operand: strings.ToUpper(name[strings.LastIndexByte(name, '-')+1:]),
		meaning: meaning, allowed: orList(options), isChoice: true,
		set: func(text string) error {
			if why := refused[text]; why != "" {
				return fmt.Errorf("%s; choose %s", why, orList(options))
			}
			if !slices.Contains(options, text) {
				return errNotAllowed
			}
			*p = text
			return nil
		},
		get:     func() []string { return []string{*p} },
		initial: []string{initial},
	}
}

// boolean declares a flag that needs no value.
func boolean(p *bool, name, meaning string) *setting {
	return &setting{
		name: name, meaning: meaning, allowed: "true or false", isBool: true,
		set: func(text string) error {
			if text != "true" && text != "false" {
				return errNotAllowed
			}
			*p = text == "true"
			return nil
		},
		get:     func() []string { return []string{strconv.FormatBool(*p)} },
		initial: []string{"false"},
	}
}

// list declares a setting that may be given several times. add appends to what
// came before, which it may look at in order to refuse what contradicts it.
func list[T fmt.Stringer](p *[]T, add func(before []T, text string) ([]T, error), name, operand, meaning, allowed string) *setting {
	return &setting{
		name: name, operand: operand, meaning: meaning, allowed: allowed, isList: true, unset: true,
		set: func(text string) error {
			if len(*p) == maxListElements {
				return fmt.Errorf("at most %d can be given", maxListElements)
			}
			v, err := add(*p, text)
			if err == nil {
				*p = v
			}
			return err
		},
		get: func() []string {
			var texts []string
			for _, v := range *p {
				texts = append(texts, v.String())
			}
			return texts
		},
	}
}

const maxListElements = 10_000

// A unit is what a variable of the reference frontend counts. It gives the value
// as this package writes it.
type unit struct {
	name  string
	write func(n uint64) string
}

var (
	seconds      = unit{"whole seconds", func(n uint64) string { return strconv.FormatUint(n, 10) + "s" }}
	milliseconds = unit{"whole milliseconds", func(n uint64) string { return strconv.FormatUint(n, 10) + "ms" }}
	mebibytes    = unit{"whole MiB", func(n uint64) string { return strconv.FormatUint(n, 10) + "MiB" }}
)

// convert rewrites the value of a variable that counts u.
func (u unit) convert(name, text string) (string, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return "", usage("%s must be a number of %s, 0 or more, not %q", name, u.name, text)
	}
	return u.write(n), nil
}
