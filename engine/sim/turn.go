package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"baton/engine"
)

// What the model of StyleWords writes in a chat before, or in place of, its words,
// as Qwen 3 has it and as the embedded chat template teaches it.
const (
	thinkOpen   = "<think>\n"
	thinkClose  = "</think>\n\n"
	toolsOpen   = "<tools>\n"
	toolsClose  = "\n</tools>"
	toolResult  = "<tool_response>"
	turnOpen    = "<|im_start|>"
	turnClose   = "<|im_end|>"
	thinkSwitch = "/think" // in the user's last words: the model thinks, although the template has not opened a thought
)

// A turn is the answer to the last turn of a chat.
type turn struct {
	asked string           // the turn that is answered, with its role
	tools []offeredTool    // that the first turn shows
	said  []engine.TokenID // what stands behind the head of the answer already
	draw  draw
}

type offeredTool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters any    `json:"parameters"`
	} `json:"function"`
}

// opening returns what is left to say of a thought and of calls before the words of
// an answer: nothing where prompt is no chat, or asks for neither. Like the words it
// follows from all that was asked. What of it the prompt ends with is not said again;
// if that is not exactly how it begins, then a token was lost or doubled, and the hash
// goes on.
func (g *generation) opening(prompt []engine.TokenID) []engine.TokenID {
	t, ok := readTurn(prompt)
	if !ok {
		return nil
	}
	said := t.said
	thinks := strings.Contains(t.asked, thinkSwitch)
	if closed := Tokenize(thinkOpen + "\n" + thinkClose); hasPrefix(said, closed) {
		said, thinks = said[len(closed):], false
	} else if hasPrefix(said, Tokenize(thinkOpen)) {
		thinks = true // the template, or the model itself, has opened a thought
	}
	var text strings.Builder
	if thinks {
		text.WriteString(thinkOpen + g.sentences(&t.draw, 1+t.draw.below(2)) + "\n" + thinkClose)
	}
	calls := t.calls()
	if len(calls) > 0 && t.draw.one(2) {
		text.WriteString(g.sentences(&t.draw, 1) + "\n")
	}
	text.WriteString(strings.Join(calls, "\n"))
	script := Tokenize(text.String())
	if len(calls) > 0 && len(g.config.EOS) > 0 {
		script = append(script, g.config.EOS[0])
	}
	if !hasPrefix(script, said) {
		return nil
	}
	return script[len(said):]
}

func hasPrefix(ids, beginning []engine.TokenID) bool {
	return len(ids) >= len(beginning) && slices.Equal(ids[:len(beginning)], beginning)
}

// readTurn finds the answer that a prompt ends with, in the form of the embedded
// template.
func readTurn(prompt []engine.TokenID) (turn, bool) {
	var t turn
	head := Tokenize(turnOpen + "assistant\n")
	at := lastIndex(prompt, head)
	if at < 0 {
		return t, false
	}
	t.said = prompt[at+len(head):]
	if begin := lastIndex(prompt[:at], head[:1]); begin >= 0 {
		t.asked = Detokenize(prompt[begin:at])
	}
	first := prompt[:at]
	if end := slices.Index(first, embedded().ids[turnClose]); end >= 0 {
		first = first[:end]
	}
	if _, list, ok := strings.Cut(Detokenize(first), toolsOpen); ok {
		list, _, _ = strings.Cut(list, toolsClose)
		for line := range strings.SplitSeq(list, "\n") {
			var tool offeredTool
			if json.Unmarshal([]byte(line), &tool) == nil && tool.Function.Name != "" {
				t.tools = append(t.tools, tool)
			}
		}
	}
	var chain uint64
	for _, id := range prompt[:at] {
		chain = link(chain, id)
	}
	t.draw = draw(mix(chain + 3))
	return t, true
}

// lastIndex is where list last holds part; -1 = nowhere.
func lastIndex(list, part []engine.TokenID) int {
	for i := len(list) - len(part); i >= 0; i-- {
		if slices.Equal(list[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// calls are the calls that answer the turn: of each tool that it names, as often as
// it does and in this order, else of one that is drawn. The results of calls are
// answered with words.
func (t *turn) calls() []string {
	if len(t.tools) == 0 || strings.Contains(t.asked, toolResult) {
		return nil
	}
	var calls []string
	for rest := t.asked; ; {
		tool, end := t.nextNamed(rest)
		if tool == nil {
			break
		}
		calls = append(calls, t.call(tool))
		rest = rest[end:]
	}
	if calls == nil {
		calls = append(calls, t.call(&t.tools[t.draw.below(len(t.tools))]))
	}
	return calls
}

// nextNamed returns the tool that text names first, and where the name ends.
func (t *turn) nextNamed(text string) (named *offeredTool, end int) {
	first := len(text)
	for i := range t.tools {
		name := t.tools[i].Function.Name
		at := strings.Index(text, name)
		if at >= 0 && (at < first || at == first && at+len(name) > end) {
			named, first, end = &t.tools[i], at, at+len(name)
		}
	}
	return named, end
}

// odd are characters that readers of calls may trip over. Each is one token, because
// llama.cpp loses the ids of others.
var odd = []string{`"`, `\`, "\n", "{", "}", "<", "é", "界", "🚀"}

func (t *turn) call(tool *offeredTool) string {
	var arguments any = map[string]any{}
	if schema, ok := tool.Function.Parameters.(map[string]any); ok && len(schema) > 0 {
		arguments = instance{root: schema, d: &t.draw, odd: odd}.of(schema, 0)
	}
	call := struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	}{tool.Function.Name, arguments}
	return "<tool_call>\n" + string(encodeJSON(call)) + "\n</tool_call>"
}

// sentences writes so many sentences of the small grammar.
func (g *generation) sentences(d *draw, n int) string {
	words := g.words.words
	endless := *g.config
	endless.MeanLength = -1
	var ids []engine.TokenID
	for at := (grammar{}); at.sentences < n; {
		id, _ := at.next(words, d, &endless)
		ids = append(ids, id)
		at = at.after(words, id)
	}
	return Detokenize(ids)
}
