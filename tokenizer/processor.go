package tokenizer

import (
	"encoding/json"
	"fmt"
)

// A processor holds the ids that the post-processor puts around a text.
type processor struct {
	before, after []int32
}

type processorSpec struct {
	Type       string            `json:"type"`
	Processors []json.RawMessage `json:"processors"`
	Single     []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
		Sequence *struct {
			ID string `json:"id"`
		} `json:"Sequence"`
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int64 `json:"ids"`
	} `json:"special_tokens"`
}

// add takes one component, and those inside it, into account.
func (p *processor) add(raw json.RawMessage, depth int) error {
	if isNull(raw) {
		return nil
	}
	var spec processorSpec
	if err := unmarshal(raw, &spec, "post_processor"); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("post_processor: nested deeper than %d", maxDepth)
	}
	switch spec.Type {
	case "Sequence":
		for _, sub := range spec.Processors {
			if err := p.add(sub, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel": // moves offsets only
		return nil
	case "TemplateProcessing":
		return p.addTemplate(&spec)
	}
	return unsupported("post_processor", spec.Type)
}

// addTemplate reads the template for a single text.
func (p *processor) addTemplate(spec *processorSpec) error {
	var before, after []int32
	texts := 0
	for _, part := range spec.Single {
		switch {
		case part.Sequence != nil:
			if texts++; part.Sequence.ID != "A" {
				return fmt.Errorf("post_processor: the template for one text names a text %q", clip([]byte(part.Sequence.ID)))
			}
		case part.SpecialToken != nil:
			token, ok := spec.SpecialTokens[part.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("post_processor: special token %q is not defined", clip([]byte(part.SpecialToken.ID)))
			}
			for _, id := range token.IDs {
				if id < 0 || id >= MaxTokens {
					return fmt.Errorf("post_processor: id %d of special token %q is out of range", id, clip([]byte(part.SpecialToken.ID)))
				}
				if texts == 0 {
					before = append(before, int32(id))
				} else {
					after = append(after, int32(id))
				}
			}
		}
	}
	if texts != 1 {
		return fmt.Errorf("post_processor: a template that holds the text %d times is %w", texts, ErrUnsupported)
	}
	if len(before)+len(after) > MaxComponents {
		return fmt.Errorf("post_processor: more than %d special tokens around a text", MaxComponents)
	}
	if len(p.before)+len(p.after) > 0 { // the reference cannot do it, either
		return fmt.Errorf("post_processor: a second TemplateProcessing is %w", ErrUnsupported)
	}
	p.before, p.after = before, after
	return nil
}
