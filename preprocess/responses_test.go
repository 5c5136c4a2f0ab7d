package preprocess

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"baton/parser"
)

// responsesBody returns a good body with these members added (or replaced).
func responsesBody(members string) []byte {
	body := `{"model":"m","input":"Hi"`
	if members != "" {
		body += "," + members
	}
	return []byte(body + "}")
}

func mustRespond(t testing.TB, p *Preprocessor, members string) *Prepared {
	t.Helper()
	prepared, err := p.Responses("r", responsesBody(members), nil)
	if err != nil {
		t.Fatalf("%s: %v (%s)", members, err, err.Param)
	}
	return prepared
}

// TestInputBecomesMessages: items are what a chat with the same turns would be.
func TestInputBecomesMessages(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	const (
		call   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\": 1}","status":"completed"}`
		call2  = `{"type":"function_call","call_id":"c2","name":"g","arguments":""}`
		output = `{"type":"function_call_output","call_id":"c1","output":"o\n"}`
		calls1 = `{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}`
		calls2 = `{"id":"c2","type":"function","function":{"name":"g","arguments":""}}`
		user   = `{"role":"user","content":"u"}`
	)
	for _, test := range []struct{ name, members, want string }{
		{"a text", `"input":"caf\u00e9 \"x\""`, `[{"role":"user","content":"caf\u00e9 \"x\""}]`},
		{"an empty text", `"input":""`, `[{"role":"user","content":""}]`},
		{"instructions", `"instructions":"be\nkind"`, `[{"role":"system","content":"be\nkind"},{"role":"user","content":"Hi"}]`},
		{"no instructions", `"instructions":null`, `[{"role":"user","content":"Hi"}]`},
		{"a message without type", `"input":[` + user + `]`, `[` + user + `]`},
		{"parts", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"text","text":"b"}]}]`,
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`},
		{"one part", `"input":[{"role":"user","content":[{"text":"a","type":"input_text"}]}]`, `[{"role":"user","content":"a"}]`},
		{"no part", `"input":[{"role":"user","content":[]}]`, `[{"role":"user","content":""}]`},
		{"an answer of ours", `"input":[` + user + `,{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},` + user + `]`,
			`[` + user + `,{"role":"assistant","content":"a"},` + user + `]`},
		{"a refusal", `"input":[{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},` + user + `]`, `[{"role":"assistant","content":"no"},` + user + `]`},
		{"all that is said first is the system's", `"instructions":"i","input":[{"role":"developer","content":"d"},{"role":"system","content":[{"type":"input_text","text":"s"},{"type":"input_text","text":"t"}]},` + user + `,{"role":"developer","content":"later"}]`,
			`[{"role":"system","content":"i\n\nd\n\ns\nt"},` + user + `,{"role":"system","content":"later"}]`},
		{"a call and its output", `"input":[` + user + `,` + call + `,` + output + `]`,
			`[` + user + `,{"role":"assistant","tool_calls":[` + calls1 + `],"content":null},{"role":"tool","tool_call_id":"c1","content":"o\n"}]`},
		{"a whole turn is one message", `"input":[` + user + `,{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"I"},{"type":"reasoning_text","text":"see"}]},` +
			`{"role":"assistant","content":"a"},` + call + `,` + call2 + `,` + output + `,{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"p"},{"type":"input_text","text":"q"}]}]`,
			`[` + user + `,{"role":"assistant","reasoning_content":"I\nsee","tool_calls":[` + calls1 + `,` + calls2 + `],"content":"a"},{"role":"tool","tool_call_id":"c1","content":"o\n"},` +
				`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"p"},{"type":"text","text":"q"}]}]`},
		{"text around a call", `"input":[{"role":"assistant","content":"a"},` + call + `,{"role":"assistant","content":"b"},` + output + `]`,
			`[{"role":"assistant","tool_calls":[` + calls1 + `],"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"tool","tool_call_id":"c1","content":"o\n"}]`},
		{"a call in a namespace", `"input":[{"type":"function_call","call_id":"c1","namespace":"n","name":"f","arguments":"{}"}]`,
			`[{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n.f","arguments":"{}"}}],"content":null}]`},
		{"two turns", `"input":[` + call + `,` + output + `,` + call2 + `]`,
			`[{"role":"assistant","tool_calls":[` + calls1 + `],"content":null},{"role":"tool","tool_call_id":"c1","content":"o\n"},{"role":"assistant","tool_calls":[` + calls2 + `],"content":null}]`},
		{"a thought that was cut", `"input":[` + user + `,{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":null},` + user + `]`,
			`[` + user + `,{"role":"assistant","reasoning_content":"s","content":""},` + user + `]`},
		{"what is encrypted elsewhere", `"input":[` + user + `,{"type":"reasoning","summary":[],"encrypted_content":"x"},` + user + `]`, `[` + user + `,` + user + `]`},
		{"the system after the assistant", `"instructions":"i","input":[{"role":"assistant","content":"a"},{"role":"system","content":"s"}]`,
			`[{"role":"system","content":"i"},{"role":"assistant","content":"a"},{"role":"system","content":"s"}]`},
	} {
		r, err := p.read(responsesAPI, responsesBody(test.members))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		messages, err := r.conversation("r", nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := string(messages.raw()); got != test.want || !json.Valid(messages.raw()) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
		if messages.param() != "input" {
			t.Errorf("%s: named %s", test.name, messages.param())
		}
	}
}

// TestResponsesLikeChat: the prompt, the budget, the tools and how the answer is read
// are those of a chat with the same words.
func TestResponsesLikeChat(t *testing.T) {
	p, log := newTestPreprocessor(t, map[string]string{"chat_template.jinja": toolTemplate})
	const (
		parameters = `"parameters":{"type":"object","properties":{"x":{"type":"string"}}},"strict":true`
		flat       = `"tools":[{"type":"function","name":"f","description":null,` + parameters + `}]`
		nested     = `"tools":[{"type":"function","function":{"name":"f",` + parameters + `}}]`
		schema     = `"schema":{"type":"object"}`
	)
	for _, test := range []struct{ responses, chat string }{
		{``, ``},
		{`"max_output_tokens":7,"temperature":0,"top_p":0.5,"seed":3,"top_k":4,"min_p":0.1,"stop":"x"`, `"max_tokens":7,"temperature":0,"top_p":0.5,"seed":3,"top_k":4,"min_p":0.1,"stop":"x"`},
		{flat, nested},
		{flat + `,"tool_choice":"required","parallel_tool_calls":false`, nested + `,"tool_choice":"required","parallel_tool_calls":false`},
		{flat + `,"tool_choice":{"type":"function","name":"f"}`, nested + `,"tool_choice":{"type":"function","function":{"name":"f"}}`},
		{`"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f",` + parameters + `}]}]`, strings.Replace(nested, `"f"`, `"n.f"`, 1)},
		{`"tools":[{"type":"namespace","name":"n","tools":[{"name":"f",` + parameters + `}]}],"tool_choice":{"type":"function","namespace":"n","name":"f"}`,
			strings.Replace(nested, `"f"`, `"n.f"`, 1) + `,"tool_choice":{"type":"function","function":{"name":"n.f"}}`},
		{flat + `,"text":{"format":{"type":"json_object"}}`, nested + `,"response_format":{"type":"json_object"}`},
		{`"text":{"format":{"type":"json_schema","name":"n","strict":true,` + schema + `},"verbosity":"low"}`, `"response_format":{"type":"json_schema","json_schema":{"name":"n",` + schema + `}}`},
		{`"reasoning":{"effort":"none","summary":"auto"}`, `"reasoning_effort":"none"`},
		{`"chat_template_kwargs":{"enable_thinking":false}`, `"chat_template_kwargs":{"enable_thinking":false}`},
		{`"include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":2`, `"logprobs":true,"top_logprobs":2`},
		{`"top_logprobs":2`, `"logprobs":true,"top_logprobs":2`},
		{`"top_logprobs":0,"include":[]`, ``},
		{`"stream":true,"stream_options":{"include_obfuscation":false}`, `"stream":true`},
		{`"store":true,"metadata":{"a":"b"},"user":"u","safety_identifier":"s","prompt_cache_key":"k","service_tier":"auto","truncation":"auto","max_tool_calls":3,"n":1,"background":false,` +
			`"previous_response_id":null,"conversation":null,"prompt_cache_options":{"mode":"implicit"}`, ``},
		{`"include_reasoning":false`, `"include_reasoning":false`},
	} {
		got, want := mustRespond(t, p, test.responses), mustChat(t, p, test.chat)
		if text(got, 0) != text(want, 0) {
			t.Errorf("%s: prompt %q, want %q", test.responses, text(got, 0), text(want, 0))
		}
		g, w := got.Choices[0].Request, want.Choices[0].Request
		if !reflect.DeepEqual(g.Tokens, w.Tokens) || !slices.Equal(g.Stop, w.Stop) || got.Stream != want.Stream || len(got.Choices) != 1 {
			t.Errorf("%s:\n got %+v\nwant %+v", test.responses, g.Tokens, w.Tokens)
		}
		if !sameOptions(got.Read.Options, want.Read.Options) || got.Read.HideReasoning != want.Read.HideReasoning || len(got.Read.Options.Tools) != len(want.Read.Options.Tools) {
			t.Errorf("%s: read as %+v, want %+v", test.responses, got.Read, want.Read)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	if prepared := mustRespond(t, p, flat); prepared.Read.Options.Tool != parser.ToolByName("hermes") {
		t.Errorf("read as %+v", prepared.Read)
	}
}

// TestResponsesRepeat: the members that an answer repeats, on one line, whatever the client sent.
func TestResponsesRepeat(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": toolTemplate, "generation_config.json": `{"temperature":0.25}`})
	const nothing = `"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"metadata":{},"parallel_tool_calls":true,"previous_response_id":null,` +
		`"reasoning":{"effort":null,"summary":null},"store":false,"temperature":0.25,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"truncation":"disabled"`
	all := strings.ReplaceAll(`"instructions": "a  \" \\ \n b",
		"tools": [ {"type" : "function", "name": "f", "parameters": {"type": "object"}, "description": "NEL LS PS  end é \\\u2028"} ],
		"tool_choice": {"type": "function", "name": "f" }, "parallel_tool_calls": false, "store": true, "metadata": {"k" : "v w"},
		"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "high", "format": { "type": "text" }},
		"temperature": 0.5, "top_p": 0.75, "max_output_tokens": 5, "max_tool_calls": 2, "top_logprobs": 3, "truncation": "auto"`, "NEL LS PS", "\u0085\u2028\u2029")
	const everything = `"instructions":"a  \" \\ \n b","max_output_tokens":5,"max_tool_calls":2,"metadata":{"k":"v w"},"parallel_tool_calls":false,"previous_response_id":null,` +
		`"reasoning":{"effort":"low","summary":"auto"},"store":false,"temperature":0.5,"text":{"format":{"type":"text"},"verbosity":"high"},"tool_choice":{"type":"function","name":"f"},` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"description":"\u0085\u2028\u2029  end é \\\u2028"}],"top_logprobs":3,"top_p":0.75,"truncation":"disabled"`
	for members, want := range map[string]string{``: nothing, all: everything} {
		body := responsesBody(members)
		prepared, err := p.Responses("r", body, nil)
		if err != nil {
			t.Fatal(err)
		}
		clear(body) // nothing may refer to it
		if got := string(prepared.Echo); got != want || !json.Valid([]byte("{"+got+"}")) {
			t.Errorf("%s:\n got %s\nwant %s", members, got, want)
		}
		if prepared.SummarizeReasoning != (members == all) {
			t.Errorf("%s: summary %v", members, prepared.SummarizeReasoning)
		}
	}
}

// TestNoSummary: some clients say that they want none.
func TestNoSummary(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	if mustRespond(t, p, `"reasoning":{"summary":"none"}`).SummarizeReasoning {
		t.Error("a summary")
	}
}

// TestBadResponses: as TestBadInput, with the names of this endpoint.
func TestBadResponses(t *testing.T) {
	p, log := newTestPreprocessor(t, map[string]string{"chat_template.jinja": toolTemplate})
	const tool = `"tools":[{"type":"function","name":"secret"}]`
	for _, test := range []struct{ members, param, message string }{
		{`"input":null`, "input", "Missing"},
		{`"input":5`, "input", "a string or an array of items"},
		{`"input":[]`, "input", "at least one item"},
		{`"input":["secret"]`, "input[0]", "expected an object"},
		{`"input":[{}]`, "input[0].role", "Missing"},
		{`"input":[{"role":5}]`, "input[0].role", "expected a string"},
		{`"input":[{"role":"tool","content":"secret"}]`, "input[0].role", "must be user"},
		{`"input":[{"role":"user"}]`, "input[0].content", "Missing"},
		{`"input":[{"role":"user","content":null}]`, "input[0].content", "Missing"},
		{`"input":[{"role":"user","content":5}]`, "input[0].content", "a string or an array of content parts"},
		{`"input":[{"role":"user","content":"secret"},{"role":"user","content":["secret"]}]`, "input[1].content[0]", "expected an object"},
		{`"input":[{"role":"user","content":[{"text":"secret"}]}]`, "input[0].content[0].type", "Missing"},
		{`"input":[{"role":"user","content":[{"type":1}]}]`, "input[0].content[0].type", "expected a string"},
		{`"input":[{"role":"user","content":[{"type":"input_text","text":"secret"},{"type":"input_image","image_url":"secret"}]}]`, "input[0].content[1].type", "cannot be read"},
		{`"input":[{"role":"user","content":[{"type":"input_text"}]}]`, "input[0].content[0].text", "Missing"},
		{`"input":[{"role":"user","content":[{"type":"input_text","text":7}]}]`, "input[0].content[0].text", "expected a string"},
		{`"input":[{"role":"assistant","content":[{"type":"refusal","text":"secret"}]}]`, "input[0].content[0].refusal", "Missing"},
		{`"input":[{"type":7}]`, "input[0].type", "expected a string"},
		{`"input":[{"type":"web_search_call","id":"secret"}]`, "input[0].type", "not supported"},
		{`"input":[{"type":"item_reference","id":"secret"}]`, "input[0]", "not stored"},
		{`"input":[{"id":"secret"}]`, "input[0]", "not stored"},
		{`"input":[{"type":"function_call","name":"secret","arguments":"{}"}]`, "input[0].call_id", "Missing"},
		{`"input":[{"type":"function_call","call_id":"secret","arguments":"{}"}]`, "input[0].name", "Missing"},
		{`"input":[{"type":"function_call","call_id":"secret","name":"secret"}]`, "input[0].arguments", "Missing"},
		{`"input":[{"type":"function_call","call_id":"secret","name":"secret","arguments":{}}]`, "input[0].arguments", "expected a string"},
		{`"input":[{"type":"function_call_output","output":"secret"}]`, "input[0].call_id", "Missing"},
		{`"input":[{"type":"function_call_output","call_id":7,"output":"secret"}]`, "input[0].call_id", "expected a string"},
		{`"input":[{"type":"function_call_output","call_id":"secret"}]`, "input[0].output", "Missing"},
		{`"input":[{"type":"function_call_output","call_id":"secret","output":[{"type":"input_file","file_id":"secret"}]}]`, "input[0].output[0].type", "cannot be read"},
		{`"input":[{"type":"reasoning","content":[{"type":"reasoning_text"}]}]`, "input[0].content[0].text", "Missing"},
		{`"input":[{"type":"reasoning","summary":5}]`, "input[0].summary", "expected"},
		{`"input":[{"role":"user","content":"x"}` + strings.Repeat(`,{"role":"user","content":"x"}`, maxInputItems) + `]`, "input", "at most 65536 items"},
		{`"input":"` + strings.Repeat("secret ", 20000) + `"`, "input", "your input resulted in"},
		{`"instructions":["secret"]`, "instructions", "expected a string"},

		{`"previous_response_id":"secret"`, "previous_response_id", "send the whole conversation"},
		{`"conversation":{"id":"secret"}`, "conversation", "send the whole conversation"},
		{`"prompt":{"id":"secret"}`, "prompt", "no stored prompts"},
		{`"background":true`, "background", "not supported"},
		{`"background":"secret"`, "background", "expected a boolean"},
		{`"context_management":[{"type":"secret"}]`, "context_management", "not supported"},
		{`"return_token_ids":true`, "return_token_ids", "no place"},
		{`"continue_final_message":true`, "continue_final_message", "/v1/chat/completions"},
		{`"messages":[]`, "messages", "'input'"},
		{`"max_tokens":5`, "max_tokens", "'max_output_tokens'"},
		{`"max_completion_tokens":5`, "max_completion_tokens", "'max_output_tokens'"},
		{`"max_output_tokens":0`, "max_output_tokens", "at least 1"},
		{`"max_output_tokens":5,"min_tokens":6`, "min_tokens", "(6) must not be greater"},
		{`"response_format":{}`, "response_format", "'text.format'"},
		{`"reasoning_effort":"low"`, "reasoning_effort", "'reasoning.effort'"},
		{`"logprobs":true`, "logprobs", "'include'"},
		{`"n":2`, "n", "one answer"},
		{`"include":"secret"`, "include", "expected an array"},
		{`"include":["secret"]`, "include[0]", "nothing of this name"},
		{`"top_logprobs":21`, "top_logprobs", "between 0 and 20"},
		{`"reasoning":"low"`, "reasoning", "expected an object"},
		{`"reasoning":{"effort":5}`, "reasoning.effort", "expected a string"},
		{`"reasoning":{"summary":5}`, "reasoning.summary", "expected a string"},
		{`"metadata":[]`, "metadata", "expected an object"},
		{`"metadata":{"k":5}`, "metadata.k", "expected a string"},
		{`"metadata":{"k":"` + strings.Repeat("x", maxMetadataValueBytes+1) + `"}`, "metadata", "2048"},
		{`"metadata":{` + strings.Repeat(`"k":"",`, maxMetadata) + `"l":""}`, "metadata", "at most 16"},
		{`"max_tool_calls":0`, "max_tool_calls", "between 1"},
		{`"truncation":"secret"`, "truncation", "auto or disabled"},
		{`"stream_options":{}`, "stream_options", "only allowed when 'stream' is true"},
		{`"temperature":3`, "temperature", "between 0 and 2"},

		{`"text":"secret"`, "text", "expected an object"},
		{`"text":{"verbosity":5}`, "text.verbosity", "expected a string"},
		{`"text":{"format":"secret"}`, "text.format", "expected an object"},
		{`"text":{"format":{}}`, "text.format.type", "Missing"},
		{`"text":{"format":{"type":"secret"}}`, "text.format.type", "must be text"},
		{`"text":{"format":{"type":"json_schema","name":"secret"}}`, "text.format.schema", "Missing"},
		{`"text":{"format":{"type":"json_schema","schema":{"type":"secret"}}}`, "text.format.schema.type", "one of object"},
		{`"text":{"format":{"type":"json_object"}},"guided_regex":"secret"`, "guided_regex", "'text.format' and 'guided_regex' are both given"},

		{`"tools":{}`, "tools", "expected an array"},
		{`"tools":["secret"]`, "tools[0]", "expected an object"},
		{`"tools":[{"type":"web_search"}]`, "tools[0].type", "only tools of type function are"},
		{`"tools":[{"type":"function","function":{"name":"secret"}}]`, "tools[0].name", "Missing required parameter: 'tools[0].name'. In responses it stands"},
		{`"tools":[{"type":"function"}]`, "tools[0].name", "Missing"},
		{`"text":{"format":{"type":"json_schema","json_schema":{"name":"secret","schema":{}}}}`, "text.format.schema", "without 'json_schema'"},
		{`"tools":[{"type":"function","name":"a secret"}]`, "tools[0].name", "no spaces"},
		{`"tools":[{"type":"function","name":"f","parameters":"secret"}]`, "tools[0].parameters", "expected an object"},
		{`"tools":[{"type":"namespace","tools":[]}]`, "tools[0].name", "Missing"},
		{`"tools":[{"type":"namespace","name":"a secret","tools":[]}]`, "tools[0].name", "no spaces"},
		{`"tools":[{"type":"namespace","name":"n"}]`, "tools[0].tools", "Missing"},
		{`"tools":[{"type":"namespace","name":"n","tools":"secret"}]`, "tools[0].tools", "expected an array"},
		{`"tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"secret"}]}]`, "tools[0].tools[0].type", "only tools of type function are"},
		{`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}]`, "tools[0].tools[0].name", "Missing"},
		{`"tools":[{"type":"namespace","name":"n","tools":[` + strings.Repeat(`{"name":"f"},`, maxTools) + `{"name":"f"}]}]`, "tools", "at most 1024"},
		{`"input":[{"type":"function_call","call_id":"c","namespace":7,"name":"f","arguments":""}]`, "input[0].namespace", "expected a string"},
		{tool + `,"tool_choice":{"type":"function","name":"f","namespace":7}`, "tool_choice.namespace", "expected a string"},
		{`"tool_choice":"required"`, "tool_choice", "no 'tools'"},
		{tool + `,"tool_choice":"sometimes"`, "tool_choice", "must be none"},
		{tool + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}`, "tool_choice.type", "send those only"},
		{tool + `,"tool_choice":{"type":"function"}`, "tool_choice.name", "Missing"},
		{tool + `,"tool_choice":{"type":"function","name":"other"}`, "tool_choice", "no tool has this name"},
		{`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"x":{"type":"secret"}}}}],"tool_choice":"required"`, "tools[0].parameters.properties.x.type", "one of object"},
		{`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"x":{"type":"secret"}}}}],"tool_choice":{"type":"function","name":"f"}`, "tools[0].parameters.properties.x.type", "one of object"},
	} {
		prepared, err := p.Responses("r", responsesBody(test.members), nil)
		members := test.members[:min(len(test.members), 100)]
		if err == nil {
			t.Errorf("%s: prepared %+v", members, prepared)
			continue
		}
		if err.Status != 400 || err.Param != test.param || !strings.Contains(err.Message, test.message) || strings.Contains(err.Message, "secret") {
			t.Errorf("%s: %d %q %s; want %q, …%s…", members, err.Status, err.Param, err.Message, test.param, test.message)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// TestTemplateRefusesInput: what a template raises is about the input.
func TestTemplateRefusesInput(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": `{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}x`})
	_, err := p.Responses("r", responsesBody(`"instructions":"i"`), nil)
	if err == nil || err.Param != "input" || !strings.Contains(err.Message, "no system") {
		t.Errorf("%v", err)
	}
}
