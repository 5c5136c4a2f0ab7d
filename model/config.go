package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// config is what is read of config.json.
type config struct {
	VocabSize             int    `json:"vocab_size"`
	MaxPositionEmbeddings int    `json:"max_position_embeddings"`
	NPositions            int    `json:"n_positions"` // GPT-2's name for it
	MaxSeqLen             int    `json:"max_seq_len"` // MPT's and DBRX's
	RopeScaling           rope   `json:"rope_scaling"`
	RopeParameters        rope   `json:"rope_parameters"` // its name since transformers 5
	EOS                   endIDs `json:"eos_token_id"`

	Text *config `json:"text_config"` // multimodal models keep the language model's values here
}

// contextLength returns how many tokens the model was made for, 0 if the file
// does not say.
//
// It is careful where engines differ: only YaRN, whose factor is counted from a
// length the file itself names, makes a context longer. Models with another kind
// of scaling state the scaled length already (Gemma 3, Llama 3, Phi); where they
// do not, the worker's own figure corrects this one.
func (c *config) contextLength() int {
	if c == nil {
		return 0
	}
	if n := c.Text.contextLength(); n > 0 {
		return n
	}
	n := 0
	for _, figure := range []int{c.MaxPositionEmbeddings, c.NPositions, c.MaxSeqLen} {
		if figure > 0 && (n == 0 || figure < n) {
			n = figure
		}
	}
	return max(n, c.RopeScaling.yarnLength(), c.RopeParameters.yarnLength())
}

func (c *config) vocabSize() int {
	if c == nil {
		return 0
	}
	return max(c.VocabSize, c.Text.vocabSize())
}

func (c *config) eos() endIDs {
	if c == nil {
		return nil
	}
	return c.EOS
}

// rope is how positions are stretched. Files are not always strict about its
// shape (Gemma 3 nests one per kind of layer), so what does not fit is skipped.
type rope struct {
	Type     string
	Factor   float64
	Original int // original_max_position_embeddings
}

// UnmarshalJSON never fails: a scaling of an unknown shape stretches nothing.
func (r *rope) UnmarshalJSON(data []byte) error {
	var shape struct {
		Type     string  `json:"rope_type"`
		OldType  string  `json:"type"`
		Factor   float64 `json:"factor"`
		Original int     `json:"original_max_position_embeddings"`
	}
	if json.Unmarshal(data, &shape) == nil {
		if shape.Type == "" {
			shape.Type = shape.OldType
		}
		*r = rope{Type: shape.Type, Factor: shape.Factor, Original: shape.Original}
	}
	return nil
}

// yarnLength is the context that YaRN gives, 0 if it is not used.
func (r rope) yarnLength() int {
	if length := r.Factor * float64(r.Original); r.Type == "yarn" && length > 0 && length < math.MaxInt32 {
		return int(length)
	}
	return 0
}

// endIDs is eos_token_id: one id, a list of ids, or null.
type endIDs []int32

func (e *endIDs) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]int32)(e))
	}
	var id int32
	if err := json.Unmarshal(data, &id); err != nil {
		return err
	}
	*e = endIDs{id}
	return nil
}

// generationConfig is what is read of generation_config.json: the values that
// vLLM takes as sampling defaults too. do_sample is not among them.
type generationConfig struct {
	Temperature       *float64 `json:"temperature"`
	TopP              *float64 `json:"top_p"`
	TopK              *int     `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	EOS               endIDs   `json:"eos_token_id"`
}

// defaults checks the values: they reach the workers as if a client had sent
// them, so they have to be such as a client may send.
func (g *generationConfig) defaults() (Defaults, error) {
	for _, c := range []struct {
		name    string
		value   *float64
		ok      func(float64) bool
		allowed string
	}{
		{"temperature", g.Temperature, func(v float64) bool { return v >= 0 }, "at least 0"},
		{"top_p", g.TopP, func(v float64) bool { return v > 0 && v <= 1 }, "above 0 and at most 1"},
		{"min_p", g.MinP, func(v float64) bool { return v >= 0 && v <= 1 }, "between 0 and 1"},
		{"repetition_penalty", g.RepetitionPenalty, func(v float64) bool { return v > 0 }, "above 0"},
	} {
		if c.value != nil && !c.ok(*c.value) {
			return Defaults{}, fmt.Errorf("%s is %v, must be %s; correct the file", c.name, *c.value, c.allowed)
		}
	}
	d := Defaults{
		Temperature:       g.Temperature,
		TopP:              g.TopP,
		MinP:              g.MinP,
		RepetitionPenalty: g.RepetitionPenalty,
	}
	if g.TopK != nil {
		off := max(*g.TopK, 0) // -1 means off, as 0 does
		d.TopK = &off
	}
	return d, nil
}
