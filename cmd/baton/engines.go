package main

import (
	"context"
	"errors"
	"fmt"

	"baton/engine"
	"baton/engine/detect"
	"baton/engine/llamacpp"
	"baton/engine/sglang"
	"baton/engine/transport"
	"baton/engine/trtllm"
	"baton/engine/vllm"
	"baton/model"
)

// identify asks a worker what it is and what it serves. stated is the engine
// that --worker names, "" for none; it counts where the worker cannot be
// recognised, and must not contradict it.
func identify(ctx context.Context, link *transport.Link, stated string) (engine.Client, engine.Info, error) {
	kind, err := detect.Kind(ctx, link)
	switch {
	case stated != "" && errors.Is(err, detect.ErrNotAnEngine):
		kind = stated
	case err != nil:
		return nil, engine.Info{}, err
	case stated != "" && kind != stated:
		return nil, engine.Info{}, fmt.Errorf("this is a %s server, not %s; leave out %q before its address", engineNames[kind], engineNames[stated], stated+"=")
	}
	client, err := newClient(kind, link)
	if err != nil {
		return nil, engine.Info{}, err
	}
	info, err := client.Probe(ctx)
	return client, info, err
}

// engineNames are the engines as people write them.
var engineNames = map[string]string{
	engine.VLLM:     "vLLM",
	engine.LlamaCPP: "llama.cpp",
	engine.SGLang:   "SGLang",
	engine.TRTLLM:   "TensorRT-LLM",
}

// newClient makes the client of a worker. A new engine is a new case.
func newClient(kind string, link *transport.Link) (engine.Client, error) {
	switch kind {
	case engine.VLLM:
		return vllm.New(link), nil
	case engine.SGLang:
		return sglang.New(link), nil
	case engine.TRTLLM:
		return trtllm.New(link), nil
	case engine.LlamaCPP:
		return llamacpp.New(link, llamacpp.Options{}), nil
	}
	return nil, fmt.Errorf("the worker is a %s server, which this version does not speak with", engineNames[kind])
}

// withModel gives a client what it must know of the model that the probe found:
// that of llama.cpp needs the tokenizer, to repair ids that the engine loses.
func withModel(client engine.Client, m *model.Model) engine.Client {
	if c, ok := client.(*llamacpp.Client); ok {
		return c.WithModel(llamacpp.Options{Piece: m.Tokenizer.Bytes, Size: m.Tokenizer.Size()})
	}
	return client
}
