// Command sdktest asks the frontend at $BASE_URL with openai-go, streamed and
// not, and prints what the SDK made of the answers as one JSON object.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := openai.NewClient(option.WithBaseURL(os.Getenv("BASE_URL")+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model:               os.Getenv("MODEL"),
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(os.Getenv("QUESTION"))},
		Temperature:         openai.Float(0),
		MaxCompletionTokens: openai.Int(400),
		StreamOptions:       openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	var acc openai.ChatCompletionAccumulator
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			fail("the accumulator refused a chunk")
		}
	}
	if err := stream.Err(); err != nil {
		fail(err.Error())
	}
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	whole, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		fail(err.Error())
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"streamed": acc.Choices[0].Message.Content, "streamed_finish": acc.Choices[0].FinishReason,
		"streamed_tokens": acc.Usage.CompletionTokens, "role": string(acc.Choices[0].Message.Role),
		"whole": whole.Choices[0].Message.Content, "whole_finish": whole.Choices[0].FinishReason,
		"whole_tokens": whole.Usage.CompletionTokens,
	})
}

func fail(msg string) {
	os.Stderr.WriteString(msg + "\n")
	os.Exit(1)
}
