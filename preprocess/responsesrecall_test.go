package preprocess

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"baton/openai"
	"baton/responsestore"
)

// recallOf returns what a client sees of a store with this response, whose output is
// these items.
func recallOf(limitBytes int64, id string, input *responsestore.Items, output ...string) *responsestore.Client {
	c := responsestore.New(limitBytes).For(responsestore.Owner{})
	answer(c, id, input, output...)
	return c
}

// answer keeps a response.
func answer(c *responsestore.Client, id string, input *responsestore.Items, output ...string) {
	var ends []int
	for i := range output {
		ends = append(ends, len(strings.Join(output[:i+1], ",")))
	}
	c.Save(&responsestore.Response{ID: id, Output: responsestore.NewItems(input, []byte(strings.Join(output, ",")), ends)})
}

// readConversation returns the messages of a request, and the items that are kept.
func readConversation(t *testing.T, p *Preprocessor, recall Recall, members string) (messages string, kept *responsestore.Items) {
	t.Helper()
	body := responsesBody(members)
	r, err := p.read(responsesAPI, body)
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	v, err := r.conversation("resp_N", recall)
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	messages = string(v.raw())
	clear(body) // nothing that is kept may refer to it
	return messages, r.toKeep
}

func joined(i *responsestore.Items) string {
	var all []string
	for item := range i.All() {
		all = append(all, string(item))
	}
	return strings.Join(all, "\n")
}

const (
	keptThought = `{"id":"rs_A-0","type":"reasoning","summary":[],"status":"completed","content":[{"type":"reasoning_text","text":"hm"}]}`
	keptCall    = `{"id":"fc_A-1","type":"function_call","call_id":"c1","name":"f","status":"completed","arguments":"{\"a\":1}"}`
	keptSystem  = `{"id":"msg_1","type":"message","role":"developer","content":"be kind"}`
	keptUser    = `{"id":"msg_2","type":"message","role":"user","content":[{"type":"input_text","text":"u"}]}`

	callMessage = `{"role":"assistant","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}],"content":null}`
)

func keptBefore() *responsestore.Items {
	json := keptSystem + "," + keptUser
	return responsestore.NewItems(nil, []byte(json), []int{len(keptSystem), len(json)})
}

// TestRecall: what is referred to is as if it had been sent.
func TestRecall(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	recall := recallOf(1<<20, "resp_A", keptBefore(), keptThought, keptCall)
	const output = `{"type":"function_call_output","call_id":"c1","output":"o"}`
	const outputMessage = `{"role":"tool","tool_call_id":"c1","content":"o"}`
	for _, test := range []struct{ name, members, want string }{
		{"a conversation goes on", `"previous_response_id":"resp_A","input":[` + output + `]`,
			`[{"role":"system","content":"be kind"},{"role":"user","content":"u"},` + callMessage + `,` + outputMessage + `]`},
		{"instructions are of one request", `"instructions":"i","previous_response_id":"resp_A","input":"v"`,
			`[{"role":"system","content":"i\n\nbe kind"},{"role":"user","content":"u"},` + callMessage + `,{"role":"user","content":"v"}]`},
		{"it goes on without being kept", `"store":false,"previous_response_id":"resp_A","input":[` + output + `]`,
			`[{"role":"system","content":"be kind"},{"role":"user","content":"u"},` + callMessage + `,` + outputMessage + `]`},
		{"references", `"input":[{"role":"user","content":"u"},{"type":"item_reference","id":"rs_A-0"},{"id":"fc_A-1"},` + output + `]`,
			`[{"role":"user","content":"u"},` + callMessage + `,` + outputMessage + `]`},
		{"the assistant goes on", `"previous_response_id":"resp_A","input":[{"role":"assistant","content":"a"}]`,
			`[{"role":"system","content":"be kind"},{"role":"user","content":"u"},` + strings.Replace(callMessage, "null", `"a"`, 1) + `]`},
	} {
		if got, _ := readConversation(t, p, recall, test.members); got != test.want || !json.Valid([]byte(got)) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestKeptInput: what is kept has ids, types and statuses, and is otherwise what was sent.
func TestKeptInput(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	recall := recallOf(1<<20, "resp_A", keptBefore(), keptThought, keptCall)
	chain := strings.Join([]string{keptSystem, keptUser, keptThought, keptCall}, "\n") + "\n"
	for _, test := range []struct{ members, want string }{
		{`"input":"a \"b\" \u2028"`, `{"id":"msg_N-i0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"a \"b\" \u2028"}]}`},
		{`"input":[{"role":"user","content":"u","\u0078":[1, null]},{"content":"a","role":"assistant","type":"message","id":null}]`,
			`{"id":"msg_N-i0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"u"}],"x":[1, null]}` + "\n" +
				`{"id":"msg_N-i1","type":"message","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}],"role":"assistant"}`},
		{`"input":[{"role":"user","content":[{"type":"input_text", "text":"u"}],"id":"mine"}]`,
			`{"id":"mine","type":"message","status":"completed","role":"user","content":[{"type":"input_text", "text":"u"}]}`},
		{`"input":[{"role":"user","content":[],"id":"a b"},{"role":"user","content":[],"id":"a\\"},{"role":"user","content":[],"id":""},{"role":"user","content":[],"id":7},{"role":"user","content":[],"id":"` + strings.Repeat("x", maxKeptIDBytes+1) + `"}]`,
			`{"id":"msg_N-i0","type":"message","status":"completed","role":"user","content":[]}` + "\n" + `{"id":"msg_N-i1","type":"message","status":"completed","role":"user","content":[]}` + "\n" +
				`{"id":"msg_N-i2","type":"message","status":"completed","role":"user","content":[]}` + "\n" + `{"id":"msg_N-i3","type":"message","status":"completed","role":"user","content":[]}` + "\n" +
				`{"id":"msg_N-i4","type":"message","status":"completed","role":"user","content":[]}`},
		{`"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"},{"type":"reasoning","summary":[]}]`,
			`{"id":"fc_N-i0","type":"function_call","status":"completed","call_id":"c","name":"f","arguments":"{}"}` + "\n" + `{"id":"fco_N-i1","type":"function_call_output","status":"completed","call_id":"c","output":"o"}` + "\n" +
				`{"id":"rs_N-i2","type":"reasoning","status":"completed","summary":[]}`},
		{`"previous_response_id":"resp_A","input":"v"`, chain + `{"id":"msg_N-i0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"v"}]}`},
		{`"input":[{"role":"user","content":[],"status":"incomplete"},{"role":"user","content":[],"status":null}]`,
			`{"id":"msg_N-i0","type":"message","role":"user","content":[],"status":"incomplete"}` + "\n" + `{"id":"msg_N-i1","type":"message","status":"completed","role":"user","content":[]}`},
		// What is referred to is kept itself: the other response may have to go.
		{`"input":[{"id":"fc_A-1"},{"type":"function_call_output","call_id":"c1","output":"o"}]`,
			keptCall + "\n" + `{"id":"fco_N-i1","type":"function_call_output","status":"completed","call_id":"c1","output":"o"}`},
	} {
		_, kept := readConversation(t, p, recall, test.members)
		if kept == nil || joined(kept) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.members, joined(kept), test.want)
			continue
		}
		for item := range kept.All() {
			if !json.Valid(item) || responsestore.IDOf(item) == "" {
				t.Errorf("%s: keeps %s", test.members, item)
			}
		}
	}
	for _, members := range []string{`"store":false`, `"input":"` + strings.Repeat("x", recall.Room(nil)+1) + `"`, `"input":[{"role":"user","content":"` + strings.Repeat("x", recall.Room(nil)+1) + `"},{"role":"user","content":"x"}]`} {
		if _, kept := readConversation(t, p, recall, members); kept != nil {
			t.Errorf("%.40s: keeps %.40s", members, joined(kept))
		}
	}
}

// TestRecalledRepeats: an answer says what it goes on from, and whether it is kept.
func TestRecalledRepeats(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	recall := recallOf(1<<20, "resp_A", keptBefore(), keptCall)
	for members, want := range map[string][2]string{
		``:             {`null`, `true`},
		`"store":null`: {`null`, `true`},
		`"previous_response_id":"resp_A","store":true`:  {`"resp_A"`, `true`},
		`"previous_response_id":"resp_A","store":false`: {`"resp_A"`, `false`},
	} {
		prepared, err := p.Responses("resp_N", responsesBody(members), recall)
		if err != nil {
			t.Fatal(err)
		}
		var echo map[string]json.RawMessage
		if err := json.Unmarshal([]byte("{"+string(prepared.Echo)+"}"), &echo); err != nil {
			t.Fatal(err)
		}
		if got := [2]string{string(echo["previous_response_id"]), string(echo["store"])}; got != want || (prepared.Input != nil) != (want[1] == "true") {
			t.Errorf("%s: %s, %v", members, got, prepared.Input)
		}
	}
}

// TestBadRecalls: errors name what refers to nothing, and little can bring in only so
// much.
func TestBadRecalls(t *testing.T) {
	p, log := newTestPreprocessor(t, nil)
	recall := recallOf(1<<30, "resp_A", keptBefore(), keptCall)
	var before *responsestore.Items
	for n := range 4 {
		large := fmt.Sprintf(`{"id":"msg_large%d","type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]}`, n, strings.Repeat("x", maxRecalledBytes/4))
		answer(recall, fmt.Sprint("resp_large", n), responsestore.NewItems(before, nil, nil), large)
		before, _ = recall.Conversation(fmt.Sprint("resp_large", n))
	}
	references := func(id string, n int) string {
		return `"input":[{"role":"user","content":"u"}` + strings.Repeat(`,{"type":"item_reference","id":"`+id+`"}`, n) + `]`
	}
	for _, test := range []struct {
		members             string
		status              int
		param, code, phrase string
	}{
		{`"previous_response_id":"resp_B"`, 400, "previous_response_id", "previous_response_not_found", "'resp_B' not found: responses are kept in the memory"},
		{`"previous_response_id":""`, 400, "previous_response_id", "previous_response_not_found", "'' not found"},
		{`"previous_response_id":"rs_A-1"`, 400, "previous_response_id", "previous_response_not_found", "not found"},
		{`"previous_response_id":7`, 400, "previous_response_id", "invalid_type", "a string"},
		{`"store":"yes"`, 400, "store", "invalid_type", "a boolean"},
		{references("msg_9", 1), 404, "input[1].id", "", "'msg_9' not found"},
		{references("msg_1", 1), 404, "input[1].id", "", "'msg_1' not found"}, // sent, not answered
		{`"input":[{"type":"item_reference"}]`, 400, "input[0].id", "missing_required_parameter", "Missing"},
		{`"input":[{"type":"item_reference","id":[1]}]`, 400, "input[0].id", "invalid_type", "a string"},
		{`"conversation":"conv_1","previous_response_id":"resp_A"`, 400, "conversation", "unsupported_parameter", "'previous_response_id' goes on"},
		{references("fc_A-1", 2), 400, "input[2].id", "invalid_value", "another reference to the same item"},
		{references("msg_large0", 1) + `,"previous_response_id":"resp_large3"`, 400, "previous_response_id", "invalid_value", "more than 67108864 bytes"},
		{`"input":[{"role":"user","content":"u"},{"id":"msg_large0"},{"id":"msg_large1"},{"id":"msg_large2"},{"id":"msg_large3"}]`, 400, "input[4]", "invalid_value", "more than 67108864 bytes"},
		{`"previous_response_id":"resp_A","input":[{"role":"user","content":"u"}` + strings.Repeat(`,{"role":"user","content":"u"}`, maxInputItems-3) + `]`, 400, "input", "invalid_value", "at most 65536 items"},
	} {
		_, err := p.Responses("resp_N", responsesBody(test.members), recall)
		if err == nil {
			t.Errorf("%.60s: no error", test.members)
			continue
		}
		if err.Status != test.status || err.Param != test.param || err.Code != test.code || err.Type != openai.TypeInvalidRequest || !strings.Contains(err.Message, test.phrase) {
			t.Errorf("%.60s: %d, %s, %s, %s", test.members, err.Status, err.Param, err.Code, err.Message)
		}
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
}

// TestLongChain: a chain of many turns is read as a whole, and each turn keeps its own
// part only.
func TestLongChain(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	store := responsestore.New(1 << 20)
	recall := store.For(responsestore.Owner{})
	previous := "null"
	var want []string
	for n := range 50 {
		messages, kept := readConversation(t, p, recall, fmt.Sprintf(`"previous_response_id":%s,"input":"q%d"`, previous, n))
		want = append(want, fmt.Sprintf(`{"role":"user","content":"q%d"}`, n))
		if messages != "["+strings.Join(want, ",")+"]" {
			t.Fatalf("turn %d: %s", n, messages)
		}
		if kept.Len() != 1 {
			t.Fatalf("turn %d keeps %d items", n, kept.Len())
		}
		answer(recall, fmt.Sprint("resp_", n), kept, fmt.Sprintf(`{"id":"msg_%d-0","type":"message","role":"assistant","content":"a%d"}`, n, n))
		want = append(want, fmt.Sprintf(`{"role":"assistant","content":"a%d"}`, n))
		previous = fmt.Sprintf(`"resp_%d"`, n)
	}
}
