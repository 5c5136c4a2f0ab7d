package detect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"baton/engine"
	"baton/engine/transport"
)

// The three reasons not to know the engine. The errors of Kind wrap one of them,
// and are sentences for people.
var (
	ErrNotReachable = errors.New("the worker is not reachable")
	ErrLoading      = errors.New("the worker is still loading")
	ErrNotAnEngine  = errors.New("this is no engine that is known here")
)

// ownedBy are the engines by the owner that they give to their models.
var ownedBy = map[string]string{
	"vllm":         engine.VLLM,
	"sglang":       engine.SGLang,
	"tensorrt_llm": engine.TRTLLM,
	"llamacpp":     engine.LlamaCPP,
}

// frontend is the owner that we give to models ourselves: a worker is one process,
// and not what chooses among several.
const frontend = "baton"

// documents tell an engine whose models have another owner, as some builds and
// forks have. The first that is there, and has the field, decides.
var documents = []struct{ path, field, kind string }{
	{"/props", "default_generation_settings", engine.LlamaCPP},
	{"/server_info", "tokenizer_path", engine.SGLang},
	{"/get_server_info", "tokenizer_path", engine.SGLang},
	{"/version", "version", engine.VLLM}, // TensorRT-LLM has it too, but also its owner
}

// Kind asks the worker behind link and returns the name of its engine, one of
// package engine's. The caller's own end, and a refused key, come back as they are.
func Kind(ctx context.Context, link *transport.Link) (string, error) {
	body, err := link.Get(ctx, "/v1/models")
	if err != nil {
		return "", explain(ctx, link, err)
	}
	var list struct {
		Data []struct {
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil || list.Data == nil {
		return "", fmt.Errorf("%w: %s/v1/models holds no list of models", ErrNotAnEngine, link.URL())
	}
	for _, model := range list.Data {
		if kind, ok := ownedBy[model.OwnedBy]; ok {
			return kind, nil
		}
		if model.OwnedBy == frontend {
			return "", fmt.Errorf("%w: %s is another baton; name the engines behind it", ErrNotAnEngine, link.URL())
		}
	}
	for _, doc := range documents {
		has, err := hasField(ctx, link, doc.path, doc.field)
		if err != nil {
			return "", explain(ctx, link, err)
		}
		if has {
			return doc.kind, nil
		}
	}
	return "", fmt.Errorf("%w: %s lists models, but is neither vLLM, SGLang, TensorRT-LLM nor llama.cpp", ErrNotAnEngine, link.URL())
}

// hasField reports whether the document at path is an object with field. An
// answer of any other kind is a no.
func hasField(ctx context.Context, link *transport.Link, path, field string) (bool, error) {
	body, err := link.Get(ctx, path)
	if err != nil {
		if engine.AsError(err).Status != 0 {
			return false, nil
		}
		return false, err
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal(body, &object)
	_, ok := object[field]
	return ok, nil
}

// explain turns the failure to get a document into a sentence.
func explain(ctx context.Context, link *transport.Link, err error) error {
	e := engine.AsError(err)
	switch {
	case ctx.Err() != nil:
		return err
	case e.Status == 0 && e.Kind == engine.ProtocolError:
		return fmt.Errorf("%w: %s does not speak HTTP (%w)", ErrNotAnEngine, link.URL(), err)
	case e.Status == 0:
		return fmt.Errorf("%w at %s (%w)", ErrNotReachable, link.URL(), err)
	case e.Status == 503:
		return fmt.Errorf("%w at %s (%w)", ErrLoading, link.URL(), err)
	case e.Status == 401 || e.Status == 403:
		return fmt.Errorf("the worker at %s wants another API key: %w", link.URL(), err)
	}
	return fmt.Errorf("%w: %s/v1/models answers with status %d", ErrNotAnEngine, link.URL(), e.Status)
}
