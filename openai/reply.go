package openai

// Values of the field object.
const (
	ObjectChatCompletion      = "chat.completion"
	ObjectChatCompletionChunk = "chat.completion.chunk"
	ObjectTextCompletion      = "text_completion" // of replies and of chunks
	ObjectList                = "list"
	ObjectModel               = "model"
)

// RoleAssistant is the role of every answer.
const RoleAssistant = "assistant"

// A ChatCompletion is the JSON reply of /v1/chat/completions.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"` // Unix time, seconds
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   *Usage       `json:"usage"`

	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"` // with return_token_ids
}

// A ChatChoice is one answer of a ChatCompletion.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      ChatMessage   `json:"message"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
	StopReason   any           `json:"stop_reason"` // as in vLLM: a stop string, a stop token id, or null

	TokenIDs []int32 `json:"token_ids,omitempty"` // with return_token_ids
}

// A ChatMessage is the text of an answer.
type ChatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"` // always null: no engine has it
}

// ChatLogprobs has one element per generated token.
type ChatLogprobs struct {
	Content []ChatLogprob `json:"content"`
}

// A ChatLogprob is one token with its probability and its alternatives. Bytes
// are the token's own, which need not be whole characters; they are numbers in
// JSON, which is why they are no []byte.
type ChatLogprob struct {
	Token       string           `json:"token"`
	Logprob     float64          `json:"logprob"`
	Bytes       []int            `json:"bytes"`
	TopLogprobs []ChatTopLogprob `json:"top_logprobs"` // [] if none were asked for, never null
}

// A ChatTopLogprob is one alternative.
type ChatTopLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// A Completion is the JSON reply of /v1/completions.
type Completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"` // Unix time, seconds
	Model   string             `json:"model"`
	Choices []CompletionChoice `json:"choices"`
	Usage   *Usage             `json:"usage"`
}

// A CompletionChoice is one answer of a Completion.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason string              `json:"finish_reason"`
	StopReason   any                 `json:"stop_reason"` // as in ChatChoice

	TokenIDs       []int32 `json:"token_ids,omitempty"`        // with return_token_ids
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"` // with return_token_ids
}

// CompletionLogprobs are parallel lists with one element per generated token.
// TextOffset counts characters (Unicode code points), from the beginning of the
// choice's text.
type CompletionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

// Usage counts tokens: the original prompts once each, and everything that was
// generated, over all choices.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// A ModelList is the reply of /v1/models.
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// A Model is one entry of a ModelList.
type Model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"` // Unix time, seconds
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len,omitempty"` // tokens, as in vLLM; absent = unknown
}
