package chattemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func Example() {
	template, err := Parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{{ '<assistant>' if add_generation_prompt }}")
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt, err := template.Render(Input{
		Messages:            json.RawMessage(`[{"role":"user","content":"Hello"}]`),
		AddGenerationPrompt: true,
	})
	fmt.Println(prompt, err)
	// Output:
	// <user>Hello
	// <assistant> <nil>
}

func mustParse(tb testing.TB, source string) *Template {
	tb.Helper()
	template, err := Parse(source)
	if err != nil {
		tb.Fatal(err)
	}
	return template
}

func TestErrors(t *testing.T) {
	_, err := Parse("line one\n{% if %}")
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 2 || !strings.HasPrefix(err.Error(), "chat template: line 2: ") {
		t.Errorf("got %v", err)
	}
	empty := Input{Messages: json.RawMessage(`[]`)}
	_, err = mustParse(t, `{{ raise_exception("Not " ~ 5) }}`).Render(empty)
	var raised *RaisedError
	if !errors.As(err, &raised) || raised.Message != "Not 5" || err.Error() != "Not 5" {
		t.Errorf("got %v", err)
	}
	for source, want := range map[string]string{
		`{{ 1 + "a" }}`:                "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
		`{{ nothing.x }}`:              "UndefinedError: 'nothing' is undefined",
		`{{ {}.a.b }}`:                 "UndefinedError: 'dict object' has no attribute 'a'",
		`{{ [1][5].x }}`:               "UndefinedError: list object has no element of that int",
		`{{ [].append(1) }}`:           "SecurityError: access to attribute 'append' of 'list' object is unsafe.",
		`{{ 1 // 0 }}`:                 "ZeroDivisionError: integer modulo by zero",
		`{% for x in 5 %}{% endfor %}`: "TypeError: 'int' object is not iterable",
	} {
		text, err := mustParse(t, "some text "+source).Render(empty)
		var input *InputError
		if !errors.As(err, &input) || err.Error() != "chat template: "+want || text != "" {
			t.Errorf("%s: got %q, %v, want %s", source, text, err, want)
		}
	}
}

// TestInternalFault: what would be a panic is an error with its stack.
func TestInternalFault(t *testing.T) {
	fault := func() (err error) {
		defer rescue(&err)
		var m *method
		m.invoke(nil, nil, arguments{})
		return nil
	}
	var internal *InternalError
	if err := fault(); !errors.As(err, &internal) || !strings.Contains(internal.Stack, "invoke") {
		t.Errorf("got %v", err)
	}
}

// TestConcurrent renders one template in many goroutines. Run with -race.
func TestConcurrent(t *testing.T) {
	for _, name := range []string{"tools.jinja", "scopes.jinja", "values.jinja", "filters.jinja", "strings.jinja"} {
		template := mustParse(t, ownTemplate(t, name))
		in := Input{Messages: conversationOf(6), Tools: toolsOf(2), Now: clock}
		want, err := template.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 5 {
					if got, err := template.Render(in); got != want || err != nil {
						t.Errorf("%s: got %q, %v", name, near(got, want), err)
					}
				}
			})
		}
		group.Wait()
	}
}

// TestBytesThatAreNoText: they become U+FFFD, in the conversation and in the
// template, and so do halves of surrogate pairs.
func TestBytesThatAreNoText(t *testing.T) {
	template := mustParse(t, "a\xffb{{ '\xfe\\ud800' }}{{ messages[0].content }}|{{ messages[0].content|length }}")
	got, err := template.Render(Input{Messages: json.RawMessage("[{\"content\":\"\xff\xfe\\ud800x\\udc00\\ud83d\\ude00\\ud83d\\u0041\"}]")})
	if want := "a\ufffdb\ufffd\ufffd\ufffd\ufffd\ufffdx\ufffd\U0001f600\ufffdA|8"; got != want || err != nil {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestNumbersKeepTheirSpelling(t *testing.T) {
	template := mustParse(t, "{{ messages[0].n }} {{ messages[0]|tojson }}")
	got, err := template.Render(Input{Messages: json.RawMessage(`[{"n":[1,1.0,1e2,-0,-0.0,1e16,12345678901234567890,0.1e-6,1E400],"b":1,"a":2}]`)})
	want := `[1, 1.0, 100.0, 0, -0.0, 1e+16, 12345678901234567890, 1e-07, inf] {"n": [1, 1.0, 100.0, 0, -0.0, 1e+16, 12345678901234567890, 1e-07, Infinity], "b": 1, "a": 2}`
	if got != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestVariables(t *testing.T) {
	template := mustParse(t, "{{ bos_token }}|{{ eos_token }}|{{ x }}|{{ tools }}|{{ documents }}|{{ add_generation_prompt }}|{{ range is callable }}")
	got, err := template.Render(Input{
		Messages:      json.RawMessage(`[]`),
		Tools:         json.RawMessage(` null `),
		SpecialTokens: map[string]string{"bos_token": "<s>", "eos_token": "</s>"},
		Kwargs:        json.RawMessage(`{"x":[1],"eos_token":"<kw>","range":1}`),
	})
	if want := "<s>|<kw>|[1]|None|None|False|False"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, name := range ownNames {
		_, err := template.Render(Input{Messages: json.RawMessage(`[]`), Kwargs: json.RawMessage(`{"` + name + `":1}`)})
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNow(t *testing.T) {
	template := mustParse(t, "{{ strftime_now('%Y-%m-%d %H:%M') }}")
	zone := time.FixedZone("east", 9*3600)
	got, err := template.Render(Input{Messages: json.RawMessage(`[]`), Now: time.Date(2031, 12, 31, 23, 5, 0, 0, zone)})
	if got != "2031-12-31 23:05" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	before := time.Now().Format("2006-01-02 15:04")
	got, err = template.Render(Input{Messages: json.RawMessage(`[]`)})
	if after := time.Now().Format("2006-01-02 15:04"); err != nil || got < before || got > after {
		t.Errorf("got %q, %v, not from %q to %q", got, err, before, after)
	}
}

// TestNothingIsShared: a rendering leaves nothing behind for the next.
func TestNothingIsShared(t *testing.T) {
	template := mustParse(t, "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}{{ x }}{% set x = 1 %}{{ x }}{{ () }}")
	for range 3 {
		got, err := template.Render(Input{Messages: json.RawMessage(`[{},{}]`)})
		if got != "21()" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
