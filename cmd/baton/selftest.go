package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"baton/config"
	"baton/engine"
	"baton/engine/transport"
	"baton/model"
)

// selfTestText holds what tokenizers differ in: digits, apostrophes, accents,
// line ends, runs of blanks, scripts, an emoji.
const selfTestText = "Numbers: 1234567, 3.14; don't, naïve café\r\n\n\ttabs    and blanks. 你好，мир 🌍"

// maxTokenizeBytes bounds a worker's answer to the self-test.
const maxTokenizeBytes = 1 << 20

// checkTokenizer lets the worker tokenize a short text and compares: a model
// folder or .gguf file that is not the worker's would make it read nonsense, and
// nobody would see an error. A worker that does not tokenize, which both engines
// can be told, is believed.
func checkTokenizer(ctx context.Context, link *transport.Link, kind string, f foundModel) error {
	got, ok, err := workerTokenizes(ctx, link, kind, f.own)
	if err != nil || !ok {
		return err
	}
	want := f.model.Tokenizer.Encode(selfTestText, false)
	if slices.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("model %q: worker %s has %w than %s: it makes other tokens of a test text; give the files of the worker's model with %s",
		f.public, link.WorkerID(), model.ErrOtherTokenizer, f.model.Path, model.PathFlag(f.public))
}

// workerTokenizes returns the ids that the worker makes of selfTestText. ok is
// false if it does not say.
func workerTokenizes(ctx context.Context, link *transport.Link, kind, own string) (ids []engine.TokenID, ok bool, err error) {
	request := map[string]any{"content": selfTestText, "add_special": false} // llama.cpp's
	if kind == config.KindVLLM {
		request = map[string]any{"model": own, "prompt": selfTestText, "add_special_tokens": false}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, false, err
	}
	resp, err := link.Post(ctx, "/tokenize", "", body)
	if err != nil {
		return nil, false, err
	}
	defer resp.Abort()
	if resp.Status != http.StatusOK {
		return nil, false, nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp, maxTokenizeBytes))
	if err != nil {
		return nil, false, resp.ReadError(err)
	}
	resp.Finish()
	var list struct {
		Tokens []engine.TokenID `json:"tokens"`
	}
	if json.Unmarshal(answer, &list) != nil || len(list.Tokens) == 0 {
		return nil, false, nil
	}
	return list.Tokens, true, nil
}
