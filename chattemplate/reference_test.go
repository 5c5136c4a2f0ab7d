package chattemplate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests compare with what transformers and its jinja2 made of the same
// templates, as recorded by test/models/record-templates.sh. Our own templates
// are here, with their whole results. Those of real models are fetched by
// test/models/record-templates-fetch.sh; without them the comparison is skipped,
// unless BATON_REQUIRE_MODELS=1 says that they must be there.

// clock is the reference's time of recording.
var clock = time.Date(2026, 3, 5, 14, 7, 9, 0, time.UTC)

// An outcome is what the reference made of one case.
type outcome struct {
	Text   *string // the prompt
	Raised *string // raise_exception, with its message
	Error  string  // any other error: Python's name of it
}

func (want *outcome) check(t *testing.T, got string, err error) {
	t.Helper()
	var raised *RaisedError
	var internal *InternalError
	switch isRaised := errors.As(err, &raised); {
	case errors.As(err, &internal):
		t.Errorf("%v\n%s", err, internal.Stack)
	case want.Text != nil:
		if err != nil || got != *want.Text {
			t.Errorf("got %q, %v\nwant %q", near(got, *want.Text), err, near(*want.Text, got))
		}
	case want.Raised != nil:
		if !isRaised || raised.Message != *want.Raised {
			t.Errorf("got %q, %v\nwant it to raise %q", got, err, *want.Raised)
		}
	case err == nil || isRaised:
		t.Errorf("got %q, %v\nwant an error like %s", got, err, want.Error)
	}
}

// near cuts a long text to where it begins to differ from another.
func near(text, other string) string {
	i := 0
	for i < len(text) && i < len(other) && text[i] == other[i] {
		i++
	}
	return strings.ToValidUTF8(text[max(0, i-60):min(len(text), i+100)], "?")
}

func readTestdata(tb testing.TB, name string, into any) {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
}

type namedContext struct {
	Name string          `json:"name"`
	Ctx  json.RawMessage `json:"ctx"`
}

func testContexts(tb testing.TB) []namedContext {
	var contexts []namedContext
	readTestdata(tb, "contexts.json", &contexts)
	return contexts
}

func ownTemplate(tb testing.TB, name string) string {
	tb.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "templates", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(source)
}

// renderVariables renders with any variables, also those that Render would not
// let through to the template.
func (t *Template) renderVariables(raw json.RawMessage) (text string, err error) {
	defer rescue(&err)
	c := &conversation{now: clock, size: len(raw)}
	variables, ok := readJSON("variables", raw).(*dict)
	if !ok {
		typeError("the variables must be an object")
	}
	for i, name := range variables.keys {
		c.set(name.(string), variables.vals[i])
	}
	return t.render(c), nil
}

func TestOwnTemplatesLikeReference(t *testing.T) {
	var golden map[string]map[string]outcome
	readTestdata(t, "golden.json", &golden)
	contexts := testContexts(t)
	cases := 0
	for name, results := range golden {
		t.Run(name, func(t *testing.T) {
			template, err := Parse(ownTemplate(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range contexts {
				want, ok := results[c.Name]
				if !ok {
					continue
				}
				cases++
				t.Run(c.Name, func(t *testing.T) {
					got, err := template.renderVariables(c.Ctx)
					want.check(t, got, err)
				})
			}
		})
	}
	if files, _ := filepath.Glob("testdata/templates/*.jinja"); len(files) != len(golden) {
		t.Errorf("%d templates, but results of %d: record again", len(files), len(golden))
	}
	if cases < 800 {
		t.Errorf("only %d cases", cases)
	}
}

func TestExpressionsLikeReference(t *testing.T) {
	total := 0
	for _, group := range microGroups(t) {
		for _, c := range group.Cases {
			total++
			got, template, err := "", (*Template)(nil), error(nil)
			if template, err = Parse(c.Template); err == nil {
				got, err = template.renderVariables(group.Context)
			}
			t.Run(c.Template, func(t *testing.T) { c.check(t, got, err) })
		}
	}
	if total < 3000 {
		t.Errorf("only %d cases", total)
	}
}

// microGroups are small templates: expressions, white space, scopes.
func microGroups(tb testing.TB) (groups []struct {
	Context json.RawMessage
	Cases   []struct {
		Template string
		outcome
	}
}) {
	readTestdata(tb, "micro.json", &groups)
	return groups
}

func TestInputsLikeReference(t *testing.T) {
	var cases []struct {
		Template string
		Input    struct {
			Messages             json.RawMessage
			Tools                json.RawMessage
			Documents            json.RawMessage
			AddGenerationPrompt  bool              `json:"add_generation_prompt"`
			ContinueFinalMessage bool              `json:"continue_final_message"`
			SpecialTokens        map[string]string `json:"special_tokens"`
			Kwargs               json.RawMessage   `json:"chat_template_kwargs"`
		}
		Want outcome
	}
	readTestdata(t, "apply.json", &cases)
	if len(cases) < 100 {
		t.Errorf("only %d cases", len(cases))
	}
	for _, c := range cases {
		source := c.Template
		if strings.HasSuffix(source, ".jinja") {
			source = ownTemplate(t, source)
		}
		template, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		in := Input{
			Messages: c.Input.Messages, Tools: c.Input.Tools, Documents: c.Input.Documents,
			AddGenerationPrompt: c.Input.AddGenerationPrompt, ContinueFinalMessage: c.Input.ContinueFinalMessage,
			SpecialTokens: c.Input.SpecialTokens, Kwargs: c.Input.Kwargs, Normalize: true, Now: clock,
		}
		t.Run(c.Template+string(c.Input.Messages), func(t *testing.T) {
			got, err := template.Render(in)
			c.Want.check(t, got, err)
			for _, changed := range []string{"null", "reasoning", "thinking"} {
				if bytes.Contains(c.Input.Messages, []byte(changed)) {
					return
				}
			}
			in.Normalize = false // has nothing to do here
			got, err = template.Render(in)
			c.Want.check(t, got, err)
		})
	}
}

func TestRealTemplatesLikeReference(t *testing.T) {
	var real map[string]struct{ SHA256, Results string }
	readTestdata(t, "real.json", &real)
	contexts := testContexts(t)
	for name, want := range real {
		t.Run(name, func(t *testing.T) {
			source := realTemplate(t, name)
			if digest(source) != want.SHA256 {
				t.Fatal("this is not the template that was recorded")
			}
			template, err := Parse(source)
			if err != nil {
				t.Fatal(err)
			}
			results := strings.Fields(want.Results)
			if len(results) != len(contexts) {
				t.Fatalf("%d results for %d contexts", len(results), len(contexts))
			}
			for i, c := range contexts {
				got, err := template.renderVariables(c.Ctx)
				if short := shortOutcome(got, err); short != results[i] {
					t.Errorf("%s: %s, want %s: %v\n%s", c.Name, short, results[i], err, near(got, ""))
				}
			}
		})
	}
}

func shortOutcome(text string, err error) string {
	var raised *RaisedError
	var internal *InternalError
	switch {
	case errors.As(err, &raised):
		return "raised:" + digest(raised.Message)[:12]
	case errors.As(err, &internal):
		return "internal"
	case err != nil:
		return "error"
	}
	return digest(text)[:12]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// realTemplate finds a template by the name it has in real.json: of a model,
// perhaps one of several, or a file among .templates.
func realTemplate(tb testing.TB, name string) string {
	tb.Helper()
	folder := os.Getenv("BATON_MODELS")
	if folder == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			folder = filepath.Join(cache, "baton", "models")
		}
	}
	if strings.HasPrefix(name, ".templates/") {
		return string(modelFile(tb, filepath.Join(folder, filepath.FromSlash(name))))
	}
	model, which, _ := strings.Cut(name, "/")
	config := modelFile(tb, filepath.Join(folder, model, "tokenizer_config.json"))
	if which != "" && which != "default" && which != "tool_use" {
		templates, err := templatesIn(config)
		if err != nil {
			tb.Fatal(err)
		}
		return templates[which]
	}
	source, err := Select(Sources{TokenizerConfig: config}, which == "tool_use")
	if err != nil {
		tb.Fatal(err)
	}
	return source
}

func modelFile(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		if os.Getenv("BATON_REQUIRE_MODELS") == "1" {
			tb.Fatalf("%v (run test/models/record-templates-fetch.sh)", err)
		}
		tb.Skip("this template is not there; test/models/record-templates-fetch.sh fetches it")
	}
	return data
}
