package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

const sampleAnswer = "The first sentence is short. The second one goes on for a while, so that it has to be broken.\n\nA new paragraph, averyverylongwordthatdoesnotfitintoanyline, and an end."

// play feeds the answer to a screen in pieces of n bytes, with a seam in the middle.
func play(s *screen, n int) {
	status := []span{{"status of many ", plain}, {"workers that is wider than the screen", red}}
	s.begin(status)
	for i := 0; i < len(sampleAnswer); i += n {
		if i/n == len(sampleAnswer)/n/2 {
			s.mark()
		}
		s.add(sampleAnswer[i:min(i+n, len(sampleAnswer))], "36", status)
	}
	s.end()
}

func TestPlainScreenHasNoEscapes(t *testing.T) {
	var out bytes.Buffer
	play(&screen{w: &out, width: 40}, 5)
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Errorf("escape sequences in a pipe: %q", out.String())
	}
	if strings.Contains(out.String(), "status") {
		t.Error("the live line is in a pipe")
	}
	if n := strings.Count(out.String(), "┊"); n != 1 {
		t.Errorf("%d marks", n)
	}
	words := strings.Fields(strings.ReplaceAll(out.String(), "┊", ""))
	if got, want := strings.Join(words, " "), strings.Join(strings.Fields(sampleAnswer), " "); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 40+len(margin)+1 && strings.Count(line, " ") > len(margin) {
			t.Errorf("line of %d columns: %q", n, line)
		}
	}
}

// What a terminal shows in the end is what a pipe gets, however the text was cut.
func TestLiveScreenEndsAsThePlainOne(t *testing.T) {
	for _, color := range []bool{false, true} {
		for n := 1; n < 30; n++ {
			var pipe, live bytes.Buffer
			play(&screen{w: &pipe, width: 40}, n)
			play(&screen{w: &live, width: 40, live: true, color: color}, n)
			if got := terminal(t, live.String()); got != pipe.String() {
				t.Fatalf("pieces of %d, color %v:\n%q\nwant\n%q", n, color, got, pipe.String())
			}
			if !color && strings.Contains(live.String(), "m") && strings.Contains(live.String(), "\x1b[3") {
				t.Error("colours in spite of NO_COLOR")
			}
			if !strings.HasSuffix(live.String(), "\x1b[?25h") {
				t.Error("the cursor stays hidden")
			}
		}
	}
}

// terminal interprets the few sequences that a screen uses.
func terminal(t *testing.T, s string) string {
	t.Helper()
	rows, row, col := [][]rune{nil}, 0, 0
	for len(s) > 0 {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			switch arg, command := rest[:end], rest[end]; command {
			case 'A':
				row -= int(arg[0] - '0')
				if row < 0 {
					t.Fatal("the cursor left the block")
				}
			case 'J':
				rows = rows[:row+1]
				rows[row] = rows[row][:col]
			case 'm', 'h', 'l':
			default:
				t.Fatalf("unknown sequence %q", rest[:end+1])
			}
			s = rest[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		switch r {
		case '\r':
			col = 0
		case '\n':
			row, col = row+1, 0
			if row == len(rows) {
				rows = append(rows, nil)
			}
		default:
			rows[row] = append(rows[row][:col], r)
			col++
		}
	}
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = string(r)
	}
	return strings.Join(lines, "\n")
}
