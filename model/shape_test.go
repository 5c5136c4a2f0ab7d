package model

import (
	"testing"
)

// TestShapeOfTools: what a template has to do with tools, ids of calls and developers.
func TestShapeOfTools(t *testing.T) {
	const (
		plain = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
		tools = `{{ tools | tojson if tools }}` + plain
		// As in Mistral Nemo.
		shortIDs = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}` +
			`{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}{{ c.function | tojson }}{% endfor %}{% endfor %}`
		shortAnswers = `{% for m in messages %}{{ m.content }}{% if m.role == 'tool' and m.tool_call_id | length != 9 %}{{ raise_exception('nine') }}{% endif %}{% endfor %}`
		// As in Qwen 3: roles that it does not know are passed over.
		knownRoles = `{% for m in messages %}{% if m.role in ['system', 'user', 'assistant', 'tool'] %}{{ m.content }}{% endif %}{% endfor %}`
		strict     = `{% for m in messages %}{% if m.role == 'developer' %}{{ raise_exception('role') }}{% endif %}{{ m.content }}{% endfor %}`
		noSystem   = `{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`
	)
	for _, tt := range []struct {
		name, template         string
		tools, short, bySystem bool
	}{
		{"plain", plain, false, false, false},
		{"tools", tools, true, false, false},
		{"short ids of calls", shortIDs, false, true, false},
		{"short ids of answers", shortAnswers, false, true, false},
		{"known roles", knownRoles, false, false, true},
		{"refused role", strict, false, false, true},
		{"neither role", noSystem, false, false, false},
	} {
		m, err := Load("m", folderWith(t, map[string]string{templateFile: tt.template}))
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Shape; s.Tools != tt.tools || s.ShortCallIDs != tt.short || s.SystemForDeveloper != tt.bySystem {
			t.Errorf("%s: tools %v, short ids %v, the system for developers %v", tt.name, s.Tools, s.ShortCallIDs, s.SystemForDeveloper)
		}
	}
}

func TestShape(t *testing.T) {
	const (
		plain = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`
		// As in Llama 3.2 Vision and Qwen 2 VL: either form.
		either = `{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}` +
			`{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}`
		// As in the first SmolVLM: only parts.
		typed = `{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endfor %}`
		// As in Qwen 3: what is no text is dropped.
		dropping = `{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else '' }}{% endfor %}`
		// Users may have parts, the model not.
		userOnly = `{% for m in messages %}{% if m.role == 'user' and m.content is not string %}{% for p in m.content %}{{ p.text }}{% endfor %}` +
			`{% else %}{{ m.content }}{% endif %}{% endfor %}`
		// As in older Mistral: no system role, strict order.
		strict = `{% if messages[0].role != 'user' %}{{ raise_exception('order') }}{% endif %}` + either

		callsQuoted = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{% endfor %}`
		callsText   = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}`
		callsEither = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}` +
			`{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}{{ c.function.arguments | tojson }}{% endif %}{% endfor %}{% endfor %}`
		callsItems = `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}` +
			`{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}`
	)
	tests := []struct {
		name, template       string
		typed, objects       bool
		user, assistant, sys bool
	}{
		{"plain", plain, false, false, false, false, false},
		{"either", either, false, false, true, true, true},
		{"typed", typed, true, false, true, true, true},
		{"dropping", dropping, false, false, false, false, false},
		{"user only", userOnly, false, false, true, false, false},
		{"strict", strict, false, false, true, true, false},
		{"calls quoted", callsQuoted, false, true, false, false, false},
		{"calls as text", callsText, false, false, false, false, false},
		{"calls either way", callsEither, false, false, false, false, false},
		{"calls by item", callsItems, false, true, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Load("m", folderWith(t, map[string]string{templateFile: tt.template}))
			if err != nil {
				t.Fatal(err)
			}
			s := m.Shape
			if s.TypedContent != tt.typed || s.ObjectArguments != tt.objects {
				t.Errorf("typed %v, object arguments %v", s.TypedContent, s.ObjectArguments)
			}
			for role, want := range map[string]bool{"user": tt.user, "assistant": tt.assistant, "system": tt.sys} {
				if s.TakesParts(role) != want {
					t.Errorf("%s takes parts: %v", role, !want)
				}
			}
			if s.TakesParts("some other role") != tt.user {
				t.Error("an unknown role is treated like the user's")
			}
		})
	}
}
