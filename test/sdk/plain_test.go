package sdk

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"baton/engine/sim"
)

// completion is what of a completion is compared.
type completion struct {
	Choices []struct {
		Message struct {
			Role      string `json:"role"`
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"message"`
		Logprobs struct {
			Content []struct {
				Token   string  `json:"token"`
				Bytes   []any   `json:"bytes"`
				Logprob float64 `json:"logprob"`
				Top     []struct {
					Token   string  `json:"token"`
					Logprob float64 `json:"logprob"`
				} `json:"top_logprobs"`
			} `json:"content"`
		} `json:"logprobs"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		CompletionTokens float64 `json:"completion_tokens"`
	} `json:"usage"`
}

// plain asks without an SDK, with these parameters besides the usual ones.
func plain(t *testing.T, url, question string, more map[string]any) completion {
	t.Helper()
	params := map[string]any{
		"model": sim.DefaultModelName, "temperature": 0, "max_completion_tokens": 400,
		"messages": []any{map[string]string{"role": "user", "content": question}},
	}
	for key, value := range more {
		params[key] = value
	}
	body, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var c completion
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || resp.StatusCode != http.StatusOK || len(c.Choices) == 0 {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return c
}

func plainText(t *testing.T, url string) answer { return textOf(t, plain(t, url, sea, nil)) }

func textOf(t *testing.T, c completion) answer {
	choice := c.Choices[0]
	// Long enough for two cuts, and not ended by its budget, which
	// openai-python's helper takes for an error.
	if c.Usage.CompletionTokens < 30 || choice.Finish != "stop" {
		t.Fatalf("the answer has %v tokens and ends with %q", c.Usage.CompletionTokens, choice.Finish)
	}
	return answer{
		"text": choice.Message.Content, "deltas": choice.Message.Content, "role": choice.Message.Role,
		"finish": choice.Finish, "tokens": c.Usage.CompletionTokens, "status": "completed",
	}
}

func plainReasoning(t *testing.T, url string) answer {
	c := plain(t, url, thought, nil)
	a := textOf(t, c)
	reasoning := c.Choices[0].Message.Reasoning
	if len(reasoning) < 20 {
		t.Fatalf("the thought is %q", reasoning)
	}
	a["reasoning"], a["counted"] = reasoning, true
	return a
}

func plainChoices(t *testing.T, url string) answer {
	c := plain(t, url, sea, map[string]any{"n": 2, "temperature": 1, "seed": 7})
	first, second := c.Choices[0], c.Choices[1]
	if first.Message.Content == second.Message.Content {
		t.Fatal("two choices are equal")
	}
	return answer{
		"texts": []any{first.Message.Content, second.Message.Content}, "finishes": []any{first.Finish, second.Finish},
		"tokens": c.Usage.CompletionTokens,
	}
}

func plainLogprobs(t *testing.T, url string) answer {
	choice := plain(t, url, sea, map[string]any{"logprobs": true, "top_logprobs": 2}).Choices[0]
	var tokens, bytes, logprobs, tops []any
	joined := ""
	for _, token := range choice.Logprobs.Content {
		var top []any
		for _, one := range token.Top {
			top = append(top, []any{one.Token, one.Logprob})
		}
		tokens, bytes = append(tokens, token.Token), append(bytes, token.Bytes)
		logprobs, tops = append(logprobs, token.Logprob), append(tops, top)
		joined += token.Token
	}
	if joined != choice.Message.Content || len(tokens) < 30 {
		t.Fatalf("the tokens are %q, the text %q", joined, choice.Message.Content)
	}
	return answer{"text": joined, "tokens": tokens, "bytes": bytes, "logprobs": logprobs, "tops": tops}
}

// isReport fails unless a was parsed into what the structured cases ask for.
func isReport(t *testing.T, a answer) {
	t.Helper()
	report, _ := a["parsed"].(map[string]any)
	title, _ := report["title"].(string)
	depths, _ := report["depths"].([]any)
	if title == "" || report["weather"] != "calm" && report["weather"] != "storm" || len(depths) == 0 || len(report) != 3 {
		t.Errorf("no report: %v", a)
	}
	if finish, ok := a["finish"]; ok && finish != "stop" {
		t.Errorf("finish reason %v", finish)
	}
	if status, ok := a["status"]; ok && status != "completed" {
		t.Errorf("status %v", status)
	}
}

// areCalls returns a check that a holds calls of the tools with these names, or of any
// tools if there are none, and nothing after them.
func areCalls(names ...string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		t.Helper()
		checkCalls(t, a, names)
		// Frameworks go on by themselves, and have no finish reason.
		if finish, ok := a["finish"]; ok && finish != "tool_calls" && finish != "tool-calls" {
			t.Errorf("finish reason %v", finish)
		}
	}
}

// answeredCalls returns a check that a holds such calls, and the model's words about
// their results.
func answeredCalls(names ...string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		t.Helper()
		checkCalls(t, a, names)
		if text, _ := a["text"].(string); len(text) < 20 || a["requests"] != 2.0 {
			t.Errorf("the last text is %q, after %v requests", text, a["requests"])
		}
		if finish, ok := a["finish"]; ok && finish != "stop" {
			t.Errorf("finish reason %v", finish)
		}
	}
}

func checkCalls(t *testing.T, a answer, names []string) {
	t.Helper()
	list, _ := a["calls"].([]any)
	var called []string
	for _, one := range list {
		call, _ := one.(map[string]any)
		name, _ := call["name"].(string)
		called = append(called, name)
		arguments, _ := call["arguments"].(map[string]any)
		city, _ := arguments["city"].(string)
		_, days := arguments["days"].(float64)
		zones, _ := arguments["zones"].([]any)
		if good := map[string]bool{"get_weather": city != "" && days, "get_time": len(zones) > 0}; !good[name] {
			t.Errorf("call %v", call)
		}
	}
	if len(called) == 0 || len(names) > 0 && !slices.Equal(called, names) {
		t.Errorf("calls of %v, want %v", called, names)
	}
	if status, ok := a["status"]; ok && status != "completed" {
		t.Errorf("status %v", status)
	}
	if a["ids"] != float64(len(called)) {
		t.Errorf("%v ids of %d calls", a["ids"], len(called))
	}
}
