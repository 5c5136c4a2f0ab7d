package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/test/harness"
)

// An unstreamed answer under a schema begins anew when its worker is killed in the
// middle of it, and fits the schema. A streamed one ends with an error that says why.
func TestConstrainedAnswersAndAKill(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--migration-limit", "3", "--inhibit-duration", "500ms", "--health-interval", "200ms")
	waitReady(t, url, 2)
	body := func(stream string) string {
		return `{"model":"smollm2","messages":[{"role":"user","content":"List people."}],"temperature":0,"max_tokens":600,"stream":` + stream + `,
			"response_format":{"type":"json_schema","json_schema":{"name":"people","schema":{"type":"array","minItems":6,"maxItems":6,"items":
			{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":1,"maximum":99}},"required":["name","age"]}}}}}`
	}
	killBusy := func() *worker {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			for _, w := range []*worker{a, b} {
				if w.busy() {
					time.Sleep(300 * time.Millisecond) // into the answer
					w.proc.Kill()
					return w
				}
			}
		}
		return nil
	}

	killed := make(chan *worker, 1)
	go func() { killed <- killBusy() }()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body("false")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	var answer struct {
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct{ Content string }
		}
	}
	var people []struct {
		Name string
		Age  int
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].Finish != "stop" {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &people); err != nil || len(people) != 6 {
		t.Errorf("%q: %v", answer.Choices[0].Message.Content, err)
	}
	dead := <-killed
	if dead == nil || migrations(t, url, "new_request") != 1 || migrations(t, url, "ongoing_request") != 0 {
		t.Fatalf("killed %v; moves: %v anew, %v on", dead, migrations(t, url, "new_request"), migrations(t, url, "ongoing_request"))
	}
	dead.start()
	waitReady(t, url, 2)

	got := stream(t, url, body("true"), func(n int) {
		if n == 10 {
			dead = b
			if a.busy() {
				dead = a
			}
			dead.proc.Kill()
		}
	})
	if got.Error == nil || !strings.Contains(got.Error.Message, "constrained") || got.Finish != "" || !strings.HasPrefix(strings.TrimSpace(got.Text), "[") {
		t.Errorf("%+v", got)
	}
}
