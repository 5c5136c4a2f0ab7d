package llamacpp

import (
	"encoding/json"
	"fmt"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

func newClient(t testing.TB, opts transport.Options) engine.Client {
	link, err := transport.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return New(link, Options{Piece: smolPiece(t), Size: smolVocabulary})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func partialEvent(content string, ids []engine.TokenID, predicted int) string {
	return encode(map[string]any{"index": 0, "content": content, "tokens": ids, "stop": false, "id_slot": -1, "tokens_predicted": predicted, "tokens_evaluated": 3})
}

func finalEvent(stopType string, predicted int) string {
	return encode(map[string]any{"index": 0, "content": "", "tokens": []int{}, "id_slot": 0, "stop": true, "stop_type": stopType, "tokens_predicted": predicted, "truncated": false, "prompt": "x", "generation_settings": map[string]any{"stop": []string{}, "n_predict": 16}})
}

func errorObject(code int, message string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"type":"invalid_request_error"}}`, code, message)
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, newClient, enginetest.Dialect{
		Path: completionPath,
		Events: func(step enginetest.Step) []string {
			events := []string{partialEvent("x", step.IDs, step.Total)}
			if step.Finish != "" {
				events = append(events, finalEvent("eos", step.Total))
			}
			return events
		},
		ErrorFrame: errorObject,
		ErrorBody:  errorObject,
		NegativeID: partialEvent("x", []engine.TokenID{-1}, 1),
		MaxSilence: maxSilence,
	})
}

func TestTokenize(t *testing.T) {
	enginetest.RunTokenize(t, newClient, `{"content":"a b","add_special":false}`)
}
