package main

import (
	"context"
	"fmt"

	"baton/config"
	"baton/engine"
	"baton/engine/detect"
	"baton/engine/llamacpp"
	"baton/engine/transport"
	"baton/engine/vllm"
	"baton/model"
)

// identify asks a worker what it is and what it serves. kind is its engine, ""
// if the worker is to be asked for that too.
func identify(ctx context.Context, link *transport.Link, kind string) (engine.Client, engine.Info, error) {
	if kind == "" {
		var err error
		if kind, err = detect.Kind(ctx, link); err != nil {
			return nil, engine.Info{}, err
		}
	}
	client, err := newClient(kind, link)
	if err != nil {
		return nil, engine.Info{}, err
	}
	info, err := client.Probe(ctx)
	return client, info, err
}

// newClient makes the client of a worker. A new engine is a new case.
func newClient(kind string, link *transport.Link) (engine.Client, error) {
	switch kind {
	case config.KindVLLM:
		return vllm.New(link), nil
	case config.KindLlamaCPP:
		return llamacpp.New(link, llamacpp.Options{}), nil
	}
	return nil, fmt.Errorf("the worker is a %s server, which this version does not speak with", kind)
}

// withModel gives a client what it must know of the model that the probe found:
// that of llama.cpp needs the tokenizer, to repair ids that the engine loses.
func withModel(client engine.Client, link *transport.Link, m *model.Model) engine.Client {
	if client.Kind() != config.KindLlamaCPP {
		return client
	}
	return llamacpp.New(link, llamacpp.Options{Piece: m.Tokenizer.Bytes, Size: m.Tokenizer.Size()})
}
