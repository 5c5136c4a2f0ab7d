package preprocess

import (
	"strconv"
	"strings"

	"baton/openai"
	"baton/responsestore"
)

// What earlier responses leave for later ones: the conversation that goes on behind
// previous_response_id, and items that an input refers to instead of having them.

// A Recall finds what is kept of earlier responses of the client that asks. It is
// called on the goroutine of the request, and what it returns does not change.
type Recall interface {
	// Conversation returns what was said up to the end of a response.
	Conversation(responseID string) (*responsestore.Items, bool)
	// Item returns an item of the output of a response.
	Item(id string) ([]byte, bool)
	// Room is how many bytes may be kept of a response that goes on from before; nil =
	// from nothing.
	Room(before *responsestore.Items) int
}

// maxRecalledBytes bounds what one request can bring in without sending it. It is far
// beyond any model's context.
const maxRecalledBytes = 64 << 20

// previous adds what was said up to the end of the response that v names.
func (c *items) previous(v *value) *openai.Error {
	if c.recall == nil {
		return openai.Unsupported(v.param(), notStored)
	}
	id, err := v.text()
	if err != nil {
		return err
	}
	before, ok := c.recall.Conversation(id)
	if !ok {
		return openai.PreviousResponseNotFound(printable(id), responsestore.WhileKept)
	}
	for item := range before.All() {
		if err := c.recalled(item, v); err != nil {
			return err
		}
	}
	c.before = before
	return nil
}

// reference adds the item that it refers to.
func (c *items) reference(it *item) *openai.Error {
	if c.recall == nil {
		return openai.Unsupported(it.param(), "it refers to an item, and items are not stored; send the item itself")
	}
	if !given(it.id) {
		return openai.Missing(it.param() + ".id")
	}
	id, err := it.id.text()
	if err != nil {
		return err
	}
	found, ok := c.recall.Item(id)
	if !ok {
		return openai.ItemNotFound(it.id.param(), printable(id), responsestore.WhileKept)
	}
	if c.referred[id] { // OpenAI refuses that too; else little could bring in much
		return it.id.invalid("there is another reference to the same item.")
	}
	if c.referred == nil {
		c.referred = make(map[string]bool)
	}
	c.referred[id] = true
	if err := c.recalled(found, it.value); err != nil {
		return err
	}
	c.kept.add(found)
	return nil
}

// recalled adds an item of an earlier response, for which the request has v.
func (c *items) recalled(json []byte, v *value) *openai.Error {
	if c.recalledBytes += len(json); c.recalledBytes > maxRecalledBytes {
		return v.invalid("together with what it refers to, the input has more than %d bytes.", maxRecalledBytes)
	}
	return c.add(&value{data: json, end: len(json), key: v.param()})
}

// keptInput is the input of a request while it is read, as it will be kept with the
// response: items with ids and a status, which clients can leave out, and contents as
// lists.
type keptInput struct {
	suffix string // of new ids
	limit  int    // bytes

	json []byte // items with commas between them
	ends []int
	over bool // more than the limit, which is too much to keep
}

func newKeptInput(responseID string, limitBytes int) *keptInput {
	return &keptInput{suffix: strings.TrimPrefix(responseID, openai.ResponsePrefix) + "-i", limit: limitBytes, over: limitBytes <= 0}
}

// items returns the list, nil if there is none to keep.
func (k *keptInput) items(before *responsestore.Items) *responsestore.Items {
	if k == nil || k.over {
		return nil
	}
	return responsestore.NewItems(before, k.json, k.ends)
}

// full reports whether there is no use in adding more.
func (k *keptInput) full() bool { return k == nil || k.over }

// add adds an item that has its id.
func (k *keptInput) add(item []byte) {
	if k.full() {
		return
	}
	k.begin()
	k.json = append(k.json, item...)
	k.end()
}

func (k *keptInput) begin() {
	if len(k.json) > 0 {
		k.json = append(k.json, ',')
	}
}

func (k *keptInput) end() {
	k.ends = append(k.ends, len(k.json))
	if k.over = len(k.json) > k.limit; k.over {
		k.json, k.ends = nil, nil
	}
}

// keptStatus is that of an item of an input. The types of SDKs require one.
const keptStatus = `,"status":"completed"`

// addText adds an input that is a text.
func (k *keptInput) addText(quoted []byte) {
	if k.full() {
		return
	}
	k.begin()
	k.head("msg_", nil)
	k.json = append(append(k.json, `,"type":"message"`...), keptStatus...)
	k.json = append(k.json, `,"role":"user","content":`...)
	k.content("input_text", quoted)
	k.json = append(k.json, '}')
	k.end()
}

// addItem adds an item that the client sent.
func (k *keptInput) addItem(it *item, kind string) {
	if k.full() {
		return
	}
	k.begin()
	k.head(inputPrefixes[kind], &it.id)
	k.json = appendQuoted(append(k.json, `,"type":`...), kind)
	if !given(it.status) { // which clients need not send, and have to be shown
		k.json = append(k.json, keptStatus...)
	}
	for key, m := range it.members() {
		if key == "id" || key == "type" || key == "status" && m.isNull() {
			continue
		}
		k.json = append(appendQuoted(append(k.json, ','), key), ':')
		switch {
		case key != "content" || kind != "message" || !m.isText():
			k.json = append(k.json, m.raw()...)
		case string(it.role.raw()) == `"assistant"`:
			k.content("output_text", m.raw())
		default:
			k.content("input_text", m.raw())
		}
	}
	k.json = append(k.json, '}')
	k.end()
}

// inputPrefixes begin the ids of items that come without one.
var inputPrefixes = map[string]string{
	"message": "msg_", "function_call": "fc_", "function_call_output": "fco_", "reasoning": "rs_",
}

// maxKeptIDBytes bounds an id of a client's; a longer one is replaced.
const maxKeptIDBytes = 128

// head begins an item with the client's id, or a new one in place of an id that is none.
func (k *keptInput) head(prefix string, id *value) {
	k.json = append(k.json, `{"id":`...)
	if id != nil && given(*id) && id.isText() && isPlainID(id.raw()) {
		k.json = append(k.json, id.raw()...)
		return
	}
	k.json = append(append(append(k.json, '"'), prefix...), k.suffix...)
	k.json = append(strconv.AppendInt(k.json, int64(len(k.ends)), 10), '"')
}

// isPlainID reports whether a quoted id is visible ASCII without escapes.
func isPlainID(quoted []byte) bool {
	id := quoted[1 : len(quoted)-1]
	for _, c := range id {
		if c <= ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return len(id) > 0 && len(id) <= maxKeptIDBytes
}

// content writes a text as a list of one part.
func (k *keptInput) content(kind string, quoted []byte) {
	k.json = append(append(append(k.json, `[{"type":"`...), kind...), `","text":`...)
	k.json = append(k.json, quoted...)
	if kind == "output_text" {
		k.json = append(k.json, `,"annotations":[]`...)
	}
	k.json = append(k.json, "}]"...)
}
