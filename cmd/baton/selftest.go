package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"baton/engine"
	"baton/model"
)

// selfTestText holds what tokenizers differ in: digits, apostrophes, accents,
// line ends, runs of blanks, scripts, an emoji.
const selfTestText = "Numbers: 1234567, 3.14; don't, naïve café\r\n\n\ttabs    and blanks. 你好，мир 🌍"

// checkTokenizer lets the worker tokenize a short text and compares: a model
// folder or .gguf file that is not the worker's would make it read nonsense, and
// nobody would see an error. A worker that does not tokenize, which both engines
// can be told, is believed.
func checkTokenizer(ctx context.Context, client engine.Client, workerID string, f foundModel) error {
	got, ok, err := client.Tokenize(ctx, f.own, selfTestText)
	if err != nil || !ok {
		return err
	}
	want := f.model.Tokenizer.Encode(selfTestText, false)
	if slices.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("model %q: worker %s has another tokenizer than %s: it makes other tokens of a test text; give the files of the worker's model with %s",
		f.public, workerID, f.model.Path, model.PathFlag(f.public))
}

// compareTemplates says where the worker's chat template, if it tells it, and that of
// the model's files part. The kind of line ends and the blanks around all of it mean
// nothing.
func compareTemplates(f foundModel) error {
	if f.template == "" {
		return nil
	}
	if f.model.Template == nil {
		return fmt.Errorf("model %q: the worker has a chat template, and %s has none, so chats are refused", f.public, f.model.Path)
	}
	own, files := templateLines(f.template), templateLines(f.model.Template.Source())
	for i := range max(len(own), len(files)) {
		if i >= len(own) || i >= len(files) || own[i] != files[i] {
			return fmt.Errorf("model %q: the templates of the worker and of %s differ from line %d on", f.public, f.model.Path, i+1)
		}
	}
	return nil
}

func templateLines(source string) []string {
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(source, "\r\n", "\n")), "\n")
}
