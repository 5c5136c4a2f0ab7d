// Command sdktest asks with openai-go: it reads what to ask from $JOB and prints
// what the SDK made of it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

var job struct {
	Model   string `json:"model"`
	Targets []struct {
		URL   string `json:"url"`
		Cases map[string]struct {
			Ask      string `json:"ask"`
			Question string `json:"question"`
		} `json:"cases"`
	} `json:"targets"`
}

type params = openai.ChatCompletionNewParams

// A sdk asks one target.
type sdk struct {
	ctx    context.Context
	client openai.Client
}

var cases = map[string]func(s sdk, p params) (any, error){
	"text": func(s sdk, p params) (any, error) { return textOf(s.streamed(p)) },
	"whole": func(s sdk, p params) (any, error) {
		return textOf(s.client.Chat.Completions.New(s.ctx, p))
	},
	"choices": func(s sdk, p params) (any, error) {
		p.N, p.Temperature, p.Seed = openai.Int(2), openai.Float(1), openai.Int(7)
		c, err := s.streamed(p)
		if err != nil {
			return nil, err
		}
		var texts, finishes []string
		for _, choice := range c.Choices {
			texts, finishes = append(texts, choice.Message.Content), append(finishes, choice.FinishReason)
		}
		return map[string]any{"texts": texts, "finishes": finishes, "tokens": c.Usage.CompletionTokens}, nil
	},
	"logprobs": func(s sdk, p params) (any, error) {
		p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(2)
		c, err := s.streamed(p)
		if err != nil {
			return nil, err
		}
		var tokens, bytes, logprobs, tops []any
		for _, t := range c.Choices[0].Logprobs.Content {
			var top []any
			for _, one := range t.TopLogprobs {
				top = append(top, []any{one.Token, one.Logprob})
			}
			tokens, bytes, logprobs, tops = append(tokens, t.Token), append(bytes, t.Bytes), append(logprobs, t.Logprob), append(tops, top)
		}
		return map[string]any{"text": c.Choices[0].Message.Content, "tokens": tokens, "bytes": bytes, "logprobs": logprobs, "tops": tops}, nil
	},
	"schema": func(s sdk, p params) (any, error) {
		return parsedOf(s.client.Chat.Completions.New(s.ctx, withSchema(p)))
	},
	"schema_streamed": func(s sdk, p params) (any, error) { return parsedOf(s.streamed(withSchema(p))) },
	"reasoning":       reasoning,
	"tools":           func(s sdk, p params) (any, error) { return called(s.streamed(withTools(p))) },
	"required": func(s sdk, p params) (any, error) {
		return called(s.client.Chat.Completions.New(s.ctx, required(withTools(p))))
	},
	"required_streamed": func(s sdk, p params) (any, error) { return called(s.streamed(required(withTools(p)))) },
	"named": func(s sdk, p params) (any, error) {
		return called(s.client.Chat.Completions.New(s.ctx, named(withTools(p))))
	},
	"loop": loop,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := json.Unmarshal([]byte(os.Getenv("JOB")), &job); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out []map[string]any
	for _, target := range job.Targets {
		s := sdk{ctx, openai.NewClient(option.WithBaseURL(target.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))}
		answers := map[string]any{}
		for name, c := range target.Cases {
			if ask, ok := responseCases[c.Ask]; ok {
				answers[name] = orError(ask(s, c.Question))
				continue
			}
			answers[name] = orError(cases[c.Ask](s, params{
				Model:               job.Model,
				Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.Question)},
				Temperature:         openai.Float(0),
				MaxCompletionTokens: openai.Int(400),
			}))
		}
		out = append(out, answers)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func orError(answer any, err error) any {
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return answer
}

// streamed asks for a stream and puts it together with the SDK's accumulator,
// its strictest reader.
func (s sdk) streamed(p params, each ...func(openai.ChatCompletionChunk)) (*openai.ChatCompletion, error) {
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	var acc openai.ChatCompletionAccumulator
	stream := s.client.Chat.Completions.NewStreaming(s.ctx, p)
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return nil, errors.New("the accumulator refused a chunk")
		}
		for _, do := range each {
			do(stream.Current())
		}
	}
	return &acc.ChatCompletion, stream.Err()
}

func textOf(c *openai.ChatCompletion, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	choice := c.Choices[0]
	return map[string]any{"text": choice.Message.Content, "role": string(choice.Message.Role), "finish": choice.FinishReason, "tokens": c.Usage.CompletionTokens}, nil
}

// A report is what the structured cases ask for.
type report struct {
	Title   string `json:"title"`
	Weather string `json:"weather"`
	Depths  []int  `json:"depths"`
}

const reportSchema = `{
	"type": "object", "additionalProperties": false, "required": ["title", "weather", "depths"],
	"properties": {"title": {"type": "string"}, "weather": {"enum": ["calm", "storm"]}, "depths": {"type": "array", "items": {"type": "integer"}}}}`

// object reads one of the constant schemas.
func object(schema string) (o map[string]any) {
	if err := json.Unmarshal([]byte(schema), &o); err != nil {
		panic(err)
	}
	return o
}

func withSchema(p params) params {
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "report", Strict: openai.Bool(true), Schema: object(reportSchema)},
	}}
	return p
}

func parsedOf(c *openai.ChatCompletion, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	parsed, err := parse(c.Choices[0].Message.Content)
	return map[string]any{"parsed": parsed, "finish": c.Choices[0].FinishReason}, err
}

func parse(text string) (*report, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	parsed := &report{}
	return parsed, d.Decode(parsed)
}
