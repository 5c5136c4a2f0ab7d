package preprocess

import (
	"baton/openai"
)

// A prompt is a text as the model sees it.
type prompt struct {
	param string // where it came from, for errors
	ids   []int32
	echo  string // its text, if the client wants that back

	read *Reading // how the answers are read; nil = they are text
}

// readPrompts reads the four forms of a completion's prompt: a text, a list of
// texts, a list of ids, a list of lists of ids.
func (r *request) readPrompts() ([]prompt, *openai.Error) {
	v := r.prompt
	switch {
	case v == nil:
		return nil, openai.Missing("prompt")
	case v.isText():
		p, err := r.textPrompt(v)
		return []prompt{p}, err
	case !v.isArray():
		return nil, v.wrongType("a string or an array")
	case v.isEmpty():
		return nil, v.invalid("the prompt is empty.")
	case v.first() != '"' && v.first() != '[':
		p, err := r.idPrompt(v)
		return []prompt{p}, err
	}

	read := r.idPrompt
	if v.first() == '"' {
		read = r.textPrompt
	}
	var prompts []prompt
	for _, e := range v.elements() {
		if (len(prompts)+1)*r.n > maxChoices {
			return nil, tooManyChoices(v.param())
		}
		p, err := read(e)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, p)
	}
	return prompts, nil
}

func (r *request) textPrompt(v *value) (prompt, *openai.Error) {
	text, err := v.text()
	if err != nil {
		return prompt{}, err
	}
	ids := r.model.Tokenizer.Encode(text, r.addSpecial)
	if len(ids) == 0 {
		return prompt{}, v.invalid("the prompt is empty.")
	}
	p := prompt{param: v.param(), ids: ids}
	if r.echo {
		p.echo = text
	}
	return p, nil
}

// idPrompt takes ids as they are: nothing is put before them.
func (r *request) idPrompt(v *value) (prompt, *openai.Error) {
	if !v.isArray() {
		return prompt{}, v.wrongType("an array of integers")
	}
	if v.isEmpty() {
		return prompt{}, v.invalid("the prompt is empty.")
	}
	p := prompt{param: v.param()}
	for _, e := range v.elements() {
		id, err := r.tokenID(e)
		if err != nil {
			return prompt{}, err
		}
		p.ids = append(p.ids, id)
	}
	if r.echo {
		p.echo = r.model.Tokenizer.Decode(p.ids, r.skipSpecial)
	}
	return p, nil
}
