package preprocess

import (
	"fmt"
	"strings"
	"testing"

	"baton/openai"
)

// TestBadInput: each kind of wrong request is a 4xx that names the parameter,
// and says nothing of what stands in it.
func TestBadInput(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	long := strings.Repeat("x", maxStopBytes+1)
	stops := func(n int) string { return `["s"` + strings.Repeat(`,"s"`, n-1) + `]` }
	ids := func(n int) string { return `[1` + strings.Repeat(`,1`, n-1) + `]` }
	user := func(content string) string { return `"messages":[{"role":"user","content":` + content + `}]` }

	both := []struct{ members, param, message string }{
		// Numbers.
		{`"temperature":-0.1`, "temperature", "between 0 and 2"},
		{`"temperature":2.5`, "temperature", "between 0 and 2"},
		{`"temperature":1e999`, "temperature", "between 0 and 2"},
		{`"temperature":"hot"`, "temperature", "expected a number, but got a string"},
		{`"temperature":true`, "temperature", "expected a number, but got a boolean"},
		{`"temperature":[]`, "temperature", "expected a number, but got an array"},
		{`"temperature":NaN`, "temperature", "NaN"},
		{`"temperature":-Infinity`, "temperature", "Infinity"},
		{`"top_p":0`, "top_p", "greater than 0"},
		{`"top_p":1.01`, "top_p", "between 0 and 1"},
		{`"min_p":-1`, "min_p", "between 0 and 1"},
		{`"min_p":2`, "min_p", "between 0 and 1"},
		{`"top_k":-2`, "top_k", "between -1 and"},
		{`"top_k":1.5`, "top_k", "expected an integer, but got a number with a fraction"},
		{`"top_k":99999999999`, "top_k", "between"},
		{`"presence_penalty":2.1`, "presence_penalty", "between -2 and 2"},
		{`"frequency_penalty":-3`, "frequency_penalty", "between -2 and 2"},
		{`"repetition_penalty":0`, "repetition_penalty", "greater than 0"},
		{`"repetition_penalty":-1`, "repetition_penalty", "at least 0"},
		{`"repetition_penalty":1e400`, "repetition_penalty", "at least 0"},
		{`"seed":9223372036854775808`, "seed", "too large"},
		{`"seed":1e300`, "seed", "too large"},
		{`"seed":1.5`, "seed", "fraction"},
		{`"seed":"7"`, "seed", "expected an integer, but got a string"},
		{`"n":0`, "n", "between 1 and 128"},
		{`"n":-1`, "n", "between 1 and 128"},
		{`"n":129`, "n", "between 1 and 128"},
		{`"n":1e400`, "n", "between 1 and 128"},
		{`"best_of":2`, "best_of", "not supported"},
		{`"best_of":0`, "best_of", "between 1"},
		{`"max_completion_tokens":0`, "max_completion_tokens", "at least 1"},
		{`"max_tokens":0`, "max_tokens", "must be at least 1."},
		{`"max_tokens":-5`, "max_tokens", "at least 1"},
		{`"max_tokens":1e30`, "max_tokens", "at least 1"},
		{`"max_tokens":"many"`, "max_tokens", "expected an integer"},
		{`"min_tokens":-1`, "min_tokens", "between 0"},
		{`"min_tokens":9,"max_tokens":8`, "min_tokens", "(9) must not be greater than the maximum number of tokens (8)"},
		{`"priority":99999999999`, "priority", "between"},

		// Lists and objects.
		{`"stop":""`, "stop", "must not be empty"},
		{`"stop":["a",""]`, "stop[1]", "must not be empty"},
		{`"stop":[1]`, "stop[0]", "expected a string"},
		{`"stop":{}`, "stop", "expected a string or an array of strings"},
		{`"stop":` + stops(65), "stop", "at most 64"},
		{`"stop":"` + long + `"`, "stop", "4096 bytes"},
		{`"stop_token_ids":[2337]`, "stop_token_ids[0]", "between 0 and 2336"},
		{`"stop_token_ids":[1,-1]`, "stop_token_ids[1]", "between 0 and 2336"},
		{`"stop_token_ids":5`, "stop_token_ids", "expected an array"},
		{`"stop_token_ids":` + ids(1025), "stop_token_ids", "at most 1024"},
		{`"logit_bias":{"2337":1}`, "logit_bias", "'2337' is no token id; ids are integers from 0 to 2336"},
		{`"logit_bias":{"-1":1}`, "logit_bias", "no token id"},
		{`"logit_bias":{"a":1}`, "logit_bias", "no token id"},
		{`"logit_bias":{"1":101}`, "logit_bias.1", "between -100 and 100"},
		{`"logit_bias":{"1":null}`, "logit_bias.1", "expected a number"},
		{`"logit_bias":[]`, "logit_bias", "expected an object"},
		{`"stream":"yes"`, "stream", "expected a boolean"},
		{`"stream_options":{"include_usage":true}`, "stream_options", "only allowed when 'stream' is true"},
		{`"stream":true,"stream_options":{"include_usage":1}`, "stream_options.include_usage", "expected a boolean"},
		{`"stream":true,"stream_options":[]`, "stream_options", "expected an object"},
		{`"cache_salt":""`, "cache_salt", "1 to 1024 bytes"},
		{`"ignore_eos":"x"`, "ignore_eos", "expected a boolean"},

		// The model.
		{`"model":null`, "model", "Missing required parameter"},
		{`"model":""`, "model", "name of a model"},
		{`"model":5`, "model", "expected a string"},

		// What is known and cannot be honoured.
		{`"response_format":{"type":"yaml"}`, "response_format", "'type' must be"},
		{`"response_format":{}`, "response_format", "'type' must be"},
		{`"response_format":"text"`, "response_format", "expected an object"},
		// Constraints of the answer.
		{`"response_format":{"type":"json_schema"}`, "response_format.json_schema", "Missing"},
		{`"response_format":{"type":"json_schema","json_schema":{"secret":1}}`, "response_format.json_schema.schema", "Missing"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":5}}`, "response_format.json_schema.schema", "expected an object"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}}`, "response_format.json_schema.strict", "expected a boolean"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":false}}`, "response_format.json_schema.schema", "no answer fits"},
		{`"response_format":{"type":"structural_tag"}`, "response_format", "'structures' and 'triggers'"},
		{`"response_format":{"type":"json_object"},"guided_regex":"secret"`, "guided_regex", "'response_format' and 'guided_regex' are both given"},
		{`"structured_outputs":{"json":{},"regex":"secret"}`, "structured_outputs.regex", "Only one constraint"},
		{`"structured_outputs":{}`, "structured_outputs", "exactly one of"},
		{`"structured_outputs":{"regex":"a","whitespace_pattern":"secret"}`, "structured_outputs.whitespace_pattern", "not supported"},
		{`"structured_outputs":"secret"`, "structured_outputs", "expected an object"},
		{`"structured_outputs":{"json":"secret"}`, "structured_outputs.json", "no JSON object"},
		{`"guided_json":[]`, "guided_json", "expected an object"},
		{`"guided_json":{"properties":{"a":{"minItems":"secret"}}}`, "guided_json.properties.a.minItems", "expected an integer"},
		{`"guided_json":{"type":"secret"}`, "guided_json.type", "one of object"},
		{`"guided_json":{"anyOf":[]}`, "guided_json.anyOf", "not empty"},
		{`"guided_json":{"enum":[]}`, "guided_json.enum", "not empty"},
		{`"guided_json":{"$ref":"https://secret/"}`, "guided_json.$ref", "nothing is fetched"},
		{`"guided_json":` + strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70), "guided_json.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not.not", "64 deep"},
		{`"guided_regex":""`, "guided_regex", "1 to"},
		{`"guided_choice":[]`, "guided_choice", "at least one text"},
		{`"guided_choice":["a",5]`, "guided_choice[1]", "expected a string"},
		{`"guided_choice":"secret"`, "guided_choice", "expected an array"},
		{`"guided_grammar":5`, "guided_grammar", "expected a string"},
		{`"guided_whitespace_pattern":"secret"`, "guided_whitespace_pattern", "not supported"},
		{`"ebnf":"secret"`, "ebnf", "one engine's name"},
		{`"nvext":{"guided_json":5}`, "nvext.guided_json", "expected an object"},
		{`"use_beam_search":true`, "use_beam_search", "beam search"},
		{`"prompt_logprobs":1`, "prompt_logprobs", "not supported"},
		{`"bad_words":["secret"]`, "bad_words", "not supported"},
		{`"allowed_token_ids":[1]`, "allowed_token_ids", "not supported"},

		// Bytes that are no text.
		{`"user":"` + "\xff" + `"`, "user", "not valid UTF-8 at byte"},
		{`"user":"` + "\xed\xa0\xbd" + `"`, "user", "not valid UTF-8"},
		{`"user":"\ud83d"`, "user", "half of a surrogate pair"},
		{`"user":"\ude00"`, "user", "half of a surrogate pair"},
		{`"user":"\ud83d\ud83d"`, "user", "half of a surrogate pair"},
		{`"user":"\ud83dx\ude00"`, "user", "half of a surrogate pair"},

		// Bytes that are no JSON.
		{`"user":"\x"`, "user", "unexpected byte"},
		{`"user":"` + "\n" + `"`, "user", "unexpected byte"},
		{`"user":01`, "user", "unexpected byte"},
		{`"user":tru`, "user", "unexpected byte"},
		{`"user":{"a" 1}`, "user", "unexpected byte"},
		{`"user":[1,]`, "user[1]", "unexpected byte"},
		{`"user"`, "user", "unexpected byte"},
		{`user:1`, "", "unexpected byte"},
		{`"user":` + strings.Repeat("[", 500), "user[0]", "nested deeper than 200"},
	}
	chat := []struct{ members, param, message string }{
		{`"messages":null`, "messages", "Missing required parameter"},
		{`"messages":[]`, "messages", "at least one message"},
		{`"messages":"secret"`, "messages", "expected an array, but got a string"},
		{`"messages":{}`, "messages", "expected an array"},
		{`"messages":["secret"]`, "messages[0]", "expected an object"},
		{`"messages":[{"content":"secret"}]`, "messages[0].role", "Missing required parameter"},
		{`"messages":[{"role":"","content":"secret"}]`, "messages[0].role", "must have a role"},
		{`"messages":[{"role":7,"content":"secret"}]`, "messages[0].role", "expected a string"},
		{user(`5`), "messages[0].content", "expected a string or an array of content parts, but got a number"},
		{user(`{"type":"text","text":"secret"}`), "messages[0].content", "got an object"},
		{user(`["secret"]`), "messages[0].content[0]", "expected an object"},
		{user(`[{"type":"text","text":"secret"},{"type":"image_url","image_url":{"url":"secret"}}]`), "messages[0].content[1]", "images, audio"},
		{user(`[{"type":"input_audio","input_audio":{}}]`), "messages[0].content[0]", "audio"},
		{user(`[{"type":"file","file":{}}]`), "messages[0].content[0]", "files"},
		{user(`[{"text":"secret"}]`), "messages[0].content[0].type", "Missing"},
		{user(`[{"type":"text"}]`), "messages[0].content[0].text", "Missing"},
		{user(`[{"type":"text","text":null}]`), "messages[0].content[0].text", "expected a string, but got null"},
		{user(`"\ud83d"`), "messages[0]", "half of a surrogate pair"},
		{user("\"\xc3\""), "messages[0]", "UTF-8"},
		{`"messages":[{"role":"user","content":"secret"},{"role":"user","content":"secret` + "\xfe" + `"}]`, "messages[1]", "UTF-8"},

		{`"tool_choice":{"type":"function","function":{"name":"f"}}`, "tool_choice", "no 'tools'"},
		{`"tool_choice":"required","tools":[]`, "tool_choice", "no 'tools'"},
		{`"tool_choice":{"type":"function","function":{"name":"g"}},"tools":[{"type":"function","function":{"name":"f"}}]`, "tool_choice", "no tool has this name"},
		{`"tool_choice":{"type":"function","function":{"name":""}}`, "tool_choice.function.name", "must be the name"},
		{`"tool_choice":{"type":"function","function":"f"}`, "tool_choice.function", "expected an object"},
		{`"tool_choice":{"type":"function","name":"f"}`, "tool_choice.function", "Missing"},
		{`"tool_choice":{"type":"allowed_tools"}`, "tool_choice.type", "send those only"},
		{`"tool_choice":{}`, "tool_choice.type", "Missing"},
		{`"parallel_tool_calls":"no"`, "parallel_tool_calls", "expected a boolean"},
		{`"include_reasoning":"no"`, "include_reasoning", "expected a boolean"},
		{`"tools":[{"type":"function","name":"secret"}]`, "tools[0].function", "In chat completions the name"},
		{`"max_output_tokens":5`, "max_output_tokens", "here it is 'max_tokens'"},
		{`"instructions":"secret"`, "instructions", "role 'system'"},
		{`"previous_response_id":"secret"`, "previous_response_id", "the whole conversation"},
		{`"tools":[{"type":"function","function":{"name":"two words"}}]`, "tools[0].function.name", "no spaces"},
		{`"tools":[{"type":"function","function":{"name":""}}]`, "tools[0].function.name", "1 to 256"},
		{`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`, "tools[0].function.parameters", "expected an object"},
		{`"tools":[{"type":"function","function":{"name":"f","parameters":"{}"}}]`, "tools[0].function.parameters", "expected an object"},
		{`"tools":[` + strings.Repeat(`{"function":{"name":"f"}},`, 1999) + `{"function":{"name":"f"}}]`, "tools", "at most 1024"},
		{`"tool_choice":"required","tools":[{"function":{"name":"f","parameters":{"type":"thing"}}}]`, "tools[0].function.parameters.type", "must be one of"},
		{`"tool_choice":"required","tools":[{"function":{"name":"f","parameters":{"properties":{"a":{"$ref":"#a"}}}}}]`, "tools[0].function.parameters.properties.a.$ref", "#/…"},
		{`"tool_choice":"required","guided_json":{},"response_format":{"type":"text"},"tools":[{"function":{"name":"f"}}]`, "tool_choice", "Only one constraint"},
		{`"guided_regex":"a","tools":[{"function":{"name":"f"}}]`, "guided_regex", "no tool could be called"},
		{`"tool_choice":"secret"`, "tool_choice", "must be none, auto"},
		{`"tool_choice":5`, "tool_choice", "expected a string or an object"},
		{`"tools":{}`, "tools", "expected an array"},
		{`"tools":["secret"],"tool_choice":"none"`, "tools[0]", "expected an object"},
		{`"tools":[{"type":"custom"}],"tool_choice":"none"`, "tools[0].type", "type function"},
		{`"tools":[{"type":"function"}],"tool_choice":"none"`, "tools[0].function", "Missing"},
		{`"tools":[{"type":"function","function":{}}],"tool_choice":"none"`, "tools[0].function.name", "Missing"},
		{`"tools":[{"type":"function","function":{"name":5}}],"tool_choice":"none"`, "tools[0].function.name", "expected a string"},
		{`"functions":[{"name":"f"}]`, "functions", "old form of 'tools'"},
		{`"function_call":"auto"`, "function_call", "old form of 'tool_choice'"},

		{`"logprobs":5`, "logprobs", "expected a boolean"},
		{`"logprobs":true,"top_logprobs":21`, "top_logprobs", "between 0 and 20"},
		{`"logprobs":true,"top_logprobs":-1`, "top_logprobs", "between 0 and 20"},
		{`"top_logprobs":2`, "top_logprobs", "only allowed when 'logprobs' is true"},
		{`"continue_final_message":true,"add_generation_prompt":true`, "continue_final_message", "cannot both be true"},
		{`"chat_template_kwargs":[]`, "chat_template_kwargs", "expected an object"},
		{`"chat_template_kwargs":{"messages":[]}`, "chat_template_kwargs.messages", "field of the request itself"},
		{`"chat_template_kwargs":{"chat_template":"secret"}`, "chat_template_kwargs.chat_template", "not supported"},
		{`"chat_template":"secret"`, "chat_template", "not supported"},
		{`"reasoning_effort":5`, "reasoning_effort", "expected a string"},
		{`"modalities":["text","audio"]`, "modalities[1]", "text only"},
		{`"audio":{}`, "audio", "text only"},
		{`"echo":true`, "echo", "completions"},
	}
	completion := []struct{ members, param, message string }{
		{`"prompt":null`, "prompt", "Missing required parameter"},
		{`"prompt":""`, "prompt", "empty"},
		{`"prompt":[]`, "prompt", "empty"},
		{`"prompt":[[]]`, "prompt[0]", "empty"},
		{`"prompt":["secret",""]`, "prompt[1]", "empty"},
		{`"prompt":5`, "prompt", "expected a string or an array"},
		{`"prompt":["secret",5]`, "prompt[1]", "expected a string, but got a number"},
		{`"prompt":[5,"secret"]`, "prompt[1]", "expected an integer, but got a string"},
		{`"prompt":[[5],6]`, "prompt[1]", "expected an array of integers"},
		{`"prompt":[{}]`, "prompt[0]", "expected an integer, but got an object"},
		{`"prompt":[2337]`, "prompt[0]", "between 0 and 2336"},
		{`"prompt":[-1]`, "prompt[0]", "between 0 and 2336"},
		{`"prompt":[[1],[1,99999999999999999999]]`, "prompt[1][1]", "between 0 and 2336"},
		{`"prompt":[1.5]`, "prompt[0]", "fraction"},
		{`"prompt":` + ids(8192), "prompt", "maximum context length is 8192 tokens. However, your prompt resulted in 8192 tokens"},
		{`"prompt":["a",` + strings.TrimPrefix(strings.Replace(ids(8200), "1", `"a"`, -1), "[") + `,"n":1`, "prompt", "At most 1000"},
		{`"prompt":["a","b","c","d","e","f","g","h"],"n":128`, "prompt", "At most 1000"},
		{`"logprobs":true`, "logprobs", "expected an integer, but got a boolean"},
		{`"logprobs":21`, "logprobs", "between 0 and 20"},
		{`"echo":true,"logprobs":0`, "echo", "exclude each other"},
		{`"suffix":"secret"`, "suffix", "not supported"},
		{`"min_tokens":17`, "min_tokens", "(17) must not be greater than the maximum number of tokens (16)"},
		{`"prompt_embeds":"secret"`, "prompt_embeds", "not supported"},
	}

	check := func(t *testing.T, err *openai.Error, members, param, message string) {
		t.Helper()
		name := members[:min(len(members), 90)]
		switch {
		case err == nil:
			t.Errorf("%s: accepted", name)
			return
		case err.Status != 400 || err.Type != openai.TypeInvalidRequest || err.Code == "":
			t.Errorf("%s: status %d, type %s, code %s", name, err.Status, err.Type, err.Code)
		case err.Param != param:
			t.Errorf("%s: param %q, want %q (%s)", name, err.Param, param, err.Message)
		case !strings.Contains(err.Message, message):
			t.Errorf("%s: message %q lacks %q", name, err.Message, message)
		case strings.Contains(err.Message, "secret"):
			t.Errorf("%s: message %q repeats the request", name, err.Message)
		case len(err.Message) > 400:
			t.Errorf("%s: a message of %d bytes", name, len(err.Message))
		}
	}
	for _, tt := range append(both, chat...) {
		_, err := p.Chat("r", chatBody(tt.members))
		check(t, err, tt.members, tt.param, tt.message)
	}
	for _, tt := range append(both, completion...) {
		_, err := p.Completion("r", completionBody(tt.members))
		check(t, err, tt.members, tt.param, tt.message)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("logged %s", log)
	}
}

func TestBodyIsNoObject(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for body, want := range map[string]string{
		"":                     "empty",
		"  \n":                 "empty",
		"null":                 "must be a JSON object",
		"[]":                   "must be a JSON object",
		`"x"`:                  "must be a JSON object",
		"\ufeff{}":             "must be a JSON object",
		"{":                    "ends too early",
		`{"model":"m"`:         "ends too early",
		`{"model":"m`:          "ends too early",
		`{"model":"m\`:         "ends too early",
		`{"model":"m"}}`:       "unexpected byte",
		`{"model":"m"} x`:      "unexpected byte",
		`{"model":"m",}`:       "unexpected byte",
		`{"` + "\xff" + `":1}`: "UTF-8",
	} {
		for name, prepare := range map[string]func(string, []byte) (*Prepared, *openai.Error){"chat": p.Chat, "completion": p.Completion} {
			_, err := prepare("r", []byte(body))
			if err == nil || err.Status != 400 || err.Code != openai.CodeInvalidJSON || !strings.Contains(err.Message, want) {
				t.Errorf("%s %q: %+v", name, body, err)
			}
		}
	}
}

func TestUnknownModels(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for name, want := range map[string]int{"nobody": 404, "own": 404, "later": 503, strings.Repeat("n", 10_000): 404} {
		_, err := p.Chat("r", chatBody(fmt.Sprintf(`"model":%q`, name)))
		if err == nil || err.Status != want || err.Param != "model" || len(err.Message) > 400 {
			t.Errorf("%.20s: %+v", name, err)
			continue
		}
		if want == 404 && err.Code != openai.CodeModelNotFound || want == 503 && (err.Code != openai.CodeModelNotReady || err.RetryAfter == 0) {
			t.Errorf("%.20s: %+v", name, err)
		}
	}
	p.options.Served = func() []string { return []string{"seen"} }
	if _, err := p.Chat("r", chatBody(`"model":"nobody"`)); err == nil || !strings.Contains(err.Message, "there is: seen.") {
		t.Errorf("models with workers are not named: %+v", err)
	}
	if _, err := p.Chat("r", []byte(`{"messages":[]}`)); err == nil || err.Status != 400 || err.Param != "model" {
		t.Errorf("no model: %+v", err)
	}
}

// TestNothingWrong: what looks odd and means nothing is accepted.
func TestNothingWrong(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	for _, members := range []string{
		`"stream":null,"stop":null,"tools":null,"tool_choice":null,"n":null,"logit_bias":null,"response_format":null`,
		`"stop":[],"logit_bias":{},"stop_token_ids":[]`,
		`"stream":false,"stream_options":null`,
		`"stream":true,"stream_options":{"include_usage":null}`,
		`"guided_json":null,"structured_outputs":null,"nvext":{"guided_json":null}`,
		`"use_beam_search":false,"bad_words":[],"vllm_xargs":{}`,
		`"top_p":1,"temperature":2,"temperature":0`,
		`"stop":["` + strings.Repeat(`s","`, 63) + `s"]`,
		`"max_tokens":1,"min_tokens":1`,
	} {
		mustChat(t, p, members)
		mustComplete(t, p, members)
	}
	for _, members := range []string{
		`"top_logprobs":0`,
		`"logprobs":false,"top_logprobs":null`,
		`"tools":[],"tool_choice":"none"`,
		`"tool_choice":"none"`,
		`"functions":[],"function_call":"none"`,
		`"continue_final_message":true`,
		`"continue_final_message":true,"add_generation_prompt":false`,
		`"echo":false`,
	} {
		mustChat(t, p, members)
	}
	for _, members := range []string{`"best_of":1`, `"suffix":""`, `"suffix":null`, `"echo":true,"logprobs":null`, `"logprobs":0`} {
		mustComplete(t, p, members)
	}
}
