package preprocess

import (
	"log/slog"
	"time"

	"baton/backend"
	"baton/model"
	"baton/openai"
	"baton/responsestore"
)

// Prepared is one API request, ready to run.
type Prepared struct {
	Model   string   // public name, as in every chunk
	Choices []Choice // in index order: prompt index × n + i

	Stream          bool
	IncludeUsage    bool // stream_options.include_usage
	ContinuousUsage bool // stream_options.continuous_usage_stats
	ReturnTokenIDs  bool
	PromptTokens    int // of every prompt once, whatever n is

	Read *Reading // nil = the answers are text and nothing else

	// Echo are the members of a response that repeat its request, as JSON on one
	// line; of responses only.
	Echo []byte
	// SummarizeReasoning: the client asks for a summary of the reasoning; of responses
	// only.
	SummarizeReasoning bool
	// Input is what was said, to be kept with the response; nil = the response is not
	// kept. Of responses only.
	Input *responsestore.Items
}

// A Choice is one element of the answer's choices array.
type Choice struct {
	Request *backend.Request
	Echo    string // completions with echo: the prompt's text, before the answer
}

// Options are what the preprocessor has to ask for.
type Options struct {
	// ContextLength returns the context length of a public model in tokens, the
	// largest among its workers; 0 = unknown, and the model's files decide. May
	// be nil.
	ContextLength func(publicModel string) int
	// Served returns the public names of the models that workers serve, for an
	// error that says which there are; nil = all that are known.
	Served func() []string
	// Now is the clock of templates that print the date; nil = time.Now.
	Now func() time.Time
}

// A Preprocessor is safe for concurrent use.
type Preprocessor struct {
	models  *model.Set
	options Options
	unknown *unknownFields
}

// New returns a preprocessor for these models.
func New(models *model.Set, options Options, log *slog.Logger) *Preprocessor {
	if options.ContextLength == nil {
		options.ContextLength = func(string) int { return 0 }
	}
	if options.Served == nil {
		options.Served = models.Names
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Preprocessor{models: models, options: options, unknown: newUnknownFields(log)}
}

// Chat prepares the body of a POST /v1/chat/completions. The pipeline's request
// ids are requestID and a suffix of fixed width. The body may be changed by the
// caller once Chat has returned.
func (p *Preprocessor) Chat(requestID string, body []byte) (*Prepared, *openai.Error) {
	r, err := p.read(chatAPI, body)
	if err != nil {
		return nil, err
	}
	rendered, err := p.renderChat(r)
	if err != nil {
		return nil, err
	}
	return p.prepare(requestID, chatAPI, r, []prompt{rendered})
}

// Responses prepares the body of a POST /v1/responses, as Chat does. requestID is the id
// of the response. recall is what its client can refer to; nil = nothing is kept, this
// response neither.
func (p *Preprocessor) Responses(requestID string, body []byte, recall Recall) (*Prepared, *openai.Error) {
	r, err := p.read(responsesAPI, body)
	if err != nil {
		return nil, err
	}
	if r.messages, err = r.conversation(requestID, recall); err != nil {
		return nil, err
	}
	rendered, err := p.renderChat(r)
	if err != nil {
		return nil, err
	}
	prepared, err := p.prepare(requestID, responsesAPI, r, []prompt{rendered})
	if err != nil {
		return nil, err
	}
	prepared.Input = r.toKeep
	prepared.Echo = r.echoed()
	prepared.SummarizeReasoning = r.reasoningSummary != nil && string(r.reasoningSummary.raw()) != `"none"`
	return prepared, nil
}

// Completion prepares the body of a POST /v1/completions, as Chat does.
func (p *Preprocessor) Completion(requestID string, body []byte) (*Prepared, *openai.Error) {
	r, err := p.read(completionAPI, body)
	if err != nil {
		return nil, err
	}
	prompts, err := r.readPrompts()
	if err != nil {
		return nil, err
	}
	return p.prepare(requestID, completionAPI, r, prompts)
}
