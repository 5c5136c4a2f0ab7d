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
)

// identify asks a worker what it is and what it serves. kind is its engine, ""
// if the worker is to be asked for that too.
func identify(ctx context.Context, link *transport.Link, kind string) (string, engine.Info, error) {
	if kind == "" {
		var err error
		if kind, err = detect.Kind(ctx, link); err != nil {
			return "", engine.Info{}, err
		}
	}
	client, err := newClient(kind, link, nil)
	if err != nil {
		return "", engine.Info{}, err
	}
	info, err := client.Probe(ctx)
	return kind, info, err
}

// newClient makes the client of a worker. A new engine is a new case. found is
// what the worker serves, nil while that is not known: enough for a probe.
func newClient(kind string, link *transport.Link, found []foundModel) (engine.Client, error) {
	switch kind {
	case config.KindVLLM:
		return vllm.New(link), nil
	case config.KindLlamaCPP:
		var opts llamacpp.Options
		if len(found) > 0 { // a llama.cpp server has one model
			tok := found[0].model.Tokenizer
			opts = llamacpp.Options{Piece: tok.Bytes, Size: tok.Size()}
		}
		return llamacpp.New(link, opts), nil
	}
	return nil, fmt.Errorf("the worker is a %s server, which this version does not speak with", kind)
}
