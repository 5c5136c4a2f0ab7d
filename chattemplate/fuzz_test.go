package chattemplate

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzRender: no template and no conversation makes a fault of ours, and the
// same ones always make the same prompt, or the same error.
func FuzzRender(f *testing.F) {
	contexts := testContexts(f)
	files, _ := filepath.Glob("testdata/templates/*.jinja")
	for i, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source), string(contexts[i].Ctx))
	}
	for _, group := range microGroups(f) {
		for i := 0; i < len(group.Cases); i += 10 {
			f.Add(group.Cases[i].Template, `{"messages":[{"role":"user","content":"x"}],"l":[3,1,2],"s":"text","d":{"k":1}}`)
		}
	}
	f.Fuzz(func(t *testing.T, source, variables string) {
		template, err := Parse(source)
		noFault(t, err)
		if err != nil {
			return
		}
		text, err := template.renderVariables(json.RawMessage(variables))
		noFault(t, err)
		if err != nil && text != "" {
			t.Errorf("text %q together with the error %v", text, err)
		}
		if again, err2 := template.renderVariables(json.RawMessage(variables)); again != text || !sameError(err, err2) {
			t.Errorf("got %q, %v and then %q, %v", text, err, again, err2)
		}
		if !utf8.ValidString(text) {
			t.Errorf("%q is not UTF-8", text)
		}
	})
}

func noFault(t *testing.T, err error) {
	var internal *InternalError
	if errors.As(err, &internal) {
		t.Fatalf("%v\n%s", err, internal.Stack)
	}
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// FuzzInput: any bytes as the parts of a request give a prompt or an error for
// the client, never a fault.
func FuzzInput(f *testing.F) {
	template, err := Parse(ownTemplate(f, "tools.jinja"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`[{"role":"user","content":"x"}]`), []byte(`[{"type":"function","function":{"name":"f"}}]`), []byte(`{"a":1}`), true, false)
	f.Add([]byte(`[{"role":"assistant","content":[{"type":"text","text":"x "}],"thinking":null}]`), []byte(`null`), []byte(``), false, true)
	f.Add([]byte("[{\"role\":\"us\xffer\",\"content\":\"\\ud800\\udc00\\ud800x\"}]"), []byte(`[]`), []byte(`{}`), true, true)
	f.Fuzz(func(t *testing.T, messages, tools, kwargs []byte, open, normalize bool) {
		text, err := template.Render(Input{Messages: messages, Tools: tools, Kwargs: kwargs, ContinueFinalMessage: open, Normalize: normalize, Now: clock})
		var raised *RaisedError
		var input *InputError
		var limit *LimitError
		if err != nil && !errors.As(err, &raised) && !errors.As(err, &input) && !errors.As(err, &limit) {
			t.Fatalf("%T %v", err, err)
		}
		if !utf8.ValidString(text) {
			t.Errorf("%q is not UTF-8", text)
		}
	})
}

// FuzzJSON: what encoding/json reads is read here as the same value, and nothing
// else is read.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,1.0,-0,1e5,"é\ud83d\ude00\u0000",true,null]}`, `{"a":1,"a":2}`, `[1,]`, `01`, `"\ud800"`, "\"\xff\"", `1.`, `-`, `{"a" :1 , "b":[ ]}`, `1e999`, "\"\t\"", `nul`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		wantErr := json.Unmarshal([]byte(text), &want)
		got, err := printed(text)
		noFault(t, err)
		var limit *LimitError
		var input *InputError
		switch {
		case errors.As(err, &limit), errors.As(err, &input) && input.Kind == "ValueError":
			return // more digits or deeper than we take
		case wantErr != nil:
			var outOfRange *json.UnmarshalTypeError // infinite for us, as for Python
			if err == nil && !errors.As(wantErr, &outOfRange) {
				t.Fatalf("%q is read as %s, but %v", text, got, wantErr)
			}
			return
		case err != nil:
			t.Fatalf("%q: %v", text, err)
		}
		var again any
		if err := json.Unmarshal([]byte(got), &again); err != nil {
			t.Fatalf("%q is printed as %s: %v", text, got, err)
		}
		if !reflect.DeepEqual(want, again) {
			t.Fatalf("%q is read as %s", text, got)
		}
	})
}

func printed(text string) (s string, err error) {
	defer rescue(&err)
	r := &render{budget: budget{steps: maxSteps, bytes: maxMadeBytes}}
	return r.toJSON(readJSON("text", json.RawMessage(text)), &jsonStyle{item: ",", keyValue: ":"}), nil
}
