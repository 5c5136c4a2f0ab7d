package config

import (
	"strings"
	"unicode/utf8"
)

// found is what one source says about one setting.
type found struct {
	source source
	values []string
}

// load puts the strongest source's value of each setting in force. The file is
// read between the flags and the rest, because a flag or a variable names it.
func load(settings []*setting, args []string, lookupEnv func(string) (string, bool), file func() ([]byte, error)) error {
	flags, err := parseFlags(settings, args)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if f, ok := flags[s]; ok {
			if err := s.apply(f.source, f.values); err != nil {
				return err
			}
			continue
		}
		f, ok, err := fromEnvironment(s, lookupEnv)
		if err != nil {
			return err
		}
		if ok {
			if err := s.apply(f.source, f.values); err != nil {
				return err
			}
		}
	}
	if file == nil {
		return nil
	}
	body, err := file()
	if err != nil || body == nil {
		return err
	}
	return applyFile(settings, body)
}

// parseFlags reads --name VALUE, --name=VALUE and, for booleans, --name. One
// dash does as well as two.
func parseFlags(settings []*setting, args []string) (map[*setting]found, error) {
	flags := map[*setting]found{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case arg == "--help" || arg == "-help" || arg == "-h":
			return nil, ErrHelp
		case !strings.HasPrefix(name, "-") || len(name) < 2:
			return nil, usage("unexpected argument %q: settings are written --name value", arg)
		}
		name = strings.TrimPrefix(name[1:], "-")
		s := lookup(settings, name)
		if s == nil {
			return nil, usage("there is no flag --%s%s", name, suggest(settings, name))
		}
		if !hasValue {
			switch {
			case s.isBool:
				value = "true"
			case len(args) == 0:
				return nil, usage("--%s needs a value: %s", s.name, s.allowed)
			default:
				value, args = args[0], args[1:]
			}
		}
		f, twice := flags[s]
		if twice && !s.isList {
			return nil, usage("--%s is given twice", s.name)
		}
		if !utf8.ValidString(value) {
			return nil, usage("--%s: the value is not valid UTF-8", s.name)
		}
		flags[s] = found{source{kind: fromFlag}, append(f.values, value)}
	}
	return flags, nil
}

// fromEnvironment looks for the derived name first, then for the reference
// frontend's own. An empty variable counts as none: compose files and charts
// write those for "not set".
func fromEnvironment(s *setting, lookupEnv func(string) (string, bool)) (found, bool, error) {
	if s.name == "" || s.noEnv || lookupEnv == nil {
		return found{}, false, nil
	}
	if v, _ := lookupEnv(s.env()); v != "" {
		values := []string{v}
		if s.isList {
			values = splitList(v)
		}
		return found{source{fromEnv, s.env()}, values}, true, nil
	}
	for _, o := range s.others {
		if v, _ := lookupEnv(o.name); v != "" {
			v, err := o.unit.convert(o.name, v)
			return found{source{fromEnv, o.name}, []string{v}}, err == nil, err
		}
	}
	return found{}, false, nil
}

// splitList takes "a, b,c" apart; empty elements are left out.
func splitList(v string) []string {
	var out []string
	for e := range strings.SplitSeq(v, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

func lookup(settings []*setting, name string) *setting {
	for _, s := range settings {
		if s.name != "" && s.name == name {
			return s
		}
	}
	return nil
}

// suggest is "; did you mean --x?" for a name that is nearly one of ours, with
// _ for - or a letter or two wrong.
func suggest(settings []*setting, name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	best, bestDistance := "", 3
	for _, s := range settings {
		if s.name == "" || len(name) > 2*len(s.name) {
			continue
		}
		if d := editDistance(name, s.name); d < bestDistance {
			best, bestDistance = s.name, d
		}
	}
	if best == "" {
		return "; see --help"
	}
	return "; did you mean --" + best + "?"
}

// editDistance counts the letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
