package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// A screen shows the demo: on a terminal with colours and a live line of who
// writes, else as plain text without a single escape sequence.
//
// On a terminal the answer's last line and the live line below it are drawn
// anew with each token, in one write; all other lines are final.
type screen struct {
	w     io.Writer
	color bool // NO_COLOR is not set
	live  bool // w is a terminal
	width int  // of the text and the live line, in columns

	line   []span // the answer's last line
	column int    // its width
	drawn  bool   // the live block is on the screen
	word   []span // the letters since the last blank, which may move to a new line
}

// A span is a text in one style.
type span struct {
	text  string
	style style
}

// A style is what is put between ESC [ and m.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// workerStyles tell the workers apart; with more workers they repeat.
var workerStyles = []style{"36", "35", "33", "34", "32", "96", "95", "94"}

const (
	margin       = "  "
	maxTextWidth = 76
	minTextWidth = 20
)

func newScreen(w io.Writer) *screen {
	s := &screen{w: &errorKeeper{Writer: w}, width: maxTextWidth}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || !enableEscapes(f) {
		return s
	}
	s.live, s.color = true, os.Getenv("NO_COLOR") == ""
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 { // 0 = nobody has said
		s.width = max(min(maxTextWidth, columns-2*len(margin)), minTextWidth)
	}
	return s
}

// failure is why something could not be shown, or nil.
func (s *screen) failure() error {
	if k, ok := s.w.(*errorKeeper); ok {
		return k.err
	}
	return nil
}

// An errorKeeper remembers the first failure of a writer.
type errorKeeper struct {
	io.Writer
	err error
}

func (k *errorKeeper) Write(p []byte) (int, error) {
	n, err := k.Writer.Write(p)
	if k.err == nil {
		k.err = err
	}
	return n, err
}

// paint gives a text a style, where there is colour.
func (s *screen) paint(st style, text string) string {
	if !s.color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// say prints a line. Arguments are painted by the caller.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.w, margin+format+"\n", args...)
}

func (s *screen) blank() { fmt.Fprintln(s.w) }

// transient shows a line that the next call takes away again, on a terminal only.
func (s *screen) transient(text string) {
	switch {
	case !s.live:
	case text == "":
		io.WriteString(s.w, "\r\x1b[K")
	default:
		io.WriteString(s.w, margin+s.paint(dim, text))
	}
}

// begin starts an answer.
func (s *screen) begin(status []span) {
	s.line, s.word, s.column, s.drawn = nil, nil, 0, false
	if s.live {
		io.WriteString(s.w, "\x1b[?25l") // no cursor while the line moves
	}
	s.draw(status)
}

// add appends text to the answer, breaking lines between words, and shows the
// live line.
func (s *screen) add(text string, st style, status []span) {
	var out strings.Builder
	for _, r := range text {
		switch r {
		case '\n':
			s.flushWord(&out)
			s.newLine(&out)
		case ' ':
			s.flushWord(&out)
			if s.column < s.width {
				s.line, s.column = appendSpan(s.line, " ", st), s.column+1
			}
		default:
			s.word = appendSpan(s.word, string(r), st)
		}
	}
	s.print(out.String())
	s.draw(status)
}

// mark puts a quiet mark where the worker changed. It is no part of the text.
func (s *screen) mark() { s.word = append(s.word, span{"┊", dim}) }

// end finishes the answer and takes the live line away.
func (s *screen) end() {
	var out strings.Builder
	s.flushWord(&out)
	s.newLine(&out)
	s.print(out.String())
	s.erase()
	s.showCursor()
}

// showCursor undoes what begin did to the terminal. It may be called at any time.
func (s *screen) showCursor() {
	if s.live {
		io.WriteString(s.w, "\x1b[?25h")
	}
}

// flushWord moves the pending word to the line, or to a new one where it does
// not fit.
func (s *screen) flushWord(out *strings.Builder) {
	width := spanWidth(s.word)
	if s.column+width > s.width && s.column > 0 {
		s.newLine(out)
	}
	s.line, s.column = append(s.line, s.word...), s.column+width
	s.word = nil
}

// newLine makes the current line final.
func (s *screen) newLine(out *strings.Builder) {
	for n := len(s.line); n > 0; n-- {
		if s.line[n-1].text = strings.TrimRight(s.line[n-1].text, " "); s.line[n-1].text != "" {
			break
		}
	}
	out.WriteString(strings.TrimRight(margin+s.render(s.line), " ") + "\n")
	s.line, s.column = nil, 0
}

// print puts finished lines above the live block.
func (s *screen) print(lines string) {
	if lines == "" {
		return
	}
	if s.live {
		s.erase()
	}
	io.WriteString(s.w, lines)
}

// draw shows the line in the making and the live line. Without a terminal there
// is neither: lines come out when they are complete.
func (s *screen) draw(status []span) {
	if !s.live {
		return
	}
	var out strings.Builder
	if s.drawn {
		out.WriteString("\r\x1b[2A")
	}
	line, word := s.line, s.word
	if s.column+spanWidth(word) > s.width { // it will move to the next line
		word = nil
	}
	out.WriteString("\x1b[J" + margin + s.render(line) + s.render(word) + "\n\n" + margin + s.render(cut(status, s.width)))
	io.WriteString(s.w, out.String())
	s.drawn = true
}

// erase takes the live block away; the cursor is where it began.
func (s *screen) erase() {
	if s.live && s.drawn {
		io.WriteString(s.w, "\r\x1b[2A\x1b[J")
	}
	s.drawn = false
}

func (s *screen) render(spans []span) string {
	var out strings.Builder
	for _, sp := range spans {
		out.WriteString(s.paint(sp.style, sp.text))
	}
	return out.String()
}

// appendSpan joins text to the last span where the style is the same.
func appendSpan(spans []span, text string, st style) []span {
	if n := len(spans); n > 0 && spans[n-1].style == st {
		spans[n-1].text += text
		return spans
	}
	return append(spans, span{text, st})
}

// cut takes what fits into so many columns: a live line that breaks could not be
// taken away again.
func cut(spans []span, columns int) []span {
	var out []span
	for _, sp := range spans {
		letters := []rune(sp.text)
		out = append(out, span{string(letters[:min(len(letters), columns)]), sp.style})
		columns -= min(len(letters), columns)
	}
	return out
}

// spanWidth counts columns. Characters of two columns, which no simulated worker
// writes, break a line a little late at worst.
func spanWidth(spans []span) int {
	n := 0
	for _, sp := range spans {
		n += utf8.RuneCountInString(sp.text)
	}
	return n
}
