package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What the demo sends to the frontend and reads from it: the plain OpenAI API,
// as any client would use it.

type question struct {
	Model         string         `json:"model"`
	Messages      []message      `json:"messages"`
	MaxTokens     int            `json:"max_tokens"`
	MinTokens     int            `json:"min_tokens,omitempty"`
	Stop          []string       `json:"stop,omitempty"`
	IncludeStop   bool           `json:"include_stop_str_in_output,omitempty"`
	Temperature   float64        `json:"temperature"` // 0: two askings can be compared
	IgnoreEOS     bool           `json:"ignore_eos,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage    bool `json:"include_usage"`
	ContinuousUsage bool `json:"continuous_usage_stats"`
}

// A chunk is what one event of a stream added, or a whole answer.
type chunk struct {
	text   string
	tokens int // completion tokens so far; 0 = the event does not say
	finish string
}

// reply is the part of the API's objects that the demo looks at.
type reply struct {
	Choices []struct {
		Delta        message `json:"delta"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (r *reply) chunk() (chunk, error) {
	if r.Error != nil {
		return chunk{}, errors.New(r.Error.Message)
	}
	var c chunk
	if len(r.Choices) > 0 {
		c.text = r.Choices[0].Delta.Content + r.Choices[0].Message.Content
		c.finish = r.Choices[0].FinishReason
	}
	if r.Usage != nil {
		c.tokens = r.Usage.CompletionTokens
	}
	return c, nil
}

const maxReplyBytes = 16 << 20

// ask posts q to the chat endpoint at base.
func ask(ctx context.Context, base string, q question) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		var r reply
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxReplyBytes)).Decode(&r); err == nil && r.Error != nil {
			return nil, fmt.Errorf("status %d: %s", resp.StatusCode, r.Error.Message)
		}
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// askStream hands on the chunks of a streamed answer. A stream that ends without
// [DONE] is an error.
func askStream(ctx context.Context, base string, q question, take func(chunk) error) error {
	body, err := ask(ctx, base, q)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a blank line or a comment
		}
		if data == "[DONE]" {
			return nil
		}
		var r reply
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		c, err := r.chunk()
		if err != nil {
			return err
		}
		if err := take(c); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the stream ended without [DONE]")
}

// askWhole returns an answer that is not streamed.
func askWhole(ctx context.Context, base string, q question) (chunk, error) {
	body, err := ask(ctx, base, q)
	if err != nil {
		return chunk{}, err
	}
	defer body.Close()
	var r reply
	if err := json.NewDecoder(io.LimitReader(body, maxReplyBytes)).Decode(&r); err != nil {
		return chunk{}, err
	}
	return r.chunk()
}

// get returns the body of a GET that was answered with 200.
func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", url, resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxReplyBytes))
}
