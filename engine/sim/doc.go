// Package sim is the simulated worker.
//
// # The model
//
// Its model is a hash: the next token follows from the whole sequence so far,
// prompt and answer alike, so that one token lost, doubled or reordered changes
// all that come after. What a client gets with faults can then be compared,
// token by token, with what it gets without them. Nothing in it is random: at
// temperature 0, or without a seed, the sequence decides alone; with a
// temperature and a seed, the seed and the absolute position take part, so that
// a continuation elsewhere draws the same. (A client of llama.cpp changes the
// seed on a continuation, as that engine needs; what follows then differs here
// as it does there.)
//
// StyleHash takes any id of the vocabulary, StyleWhole only whole characters,
// and StyleWords picks the next word of a small grammar, for people to read.
// In a chat it also thinks and calls tools, in the form of Qwen 3: it calls each
// tool that the user names, as often and in this order, or else one of those offered,
// with arguments that fit its schema, and answers their results with words; it thinks
// where the template has opened a thought (enable_thinking, reasoning_effort) or the
// user writes /think.
// The embedded model folder (package toymodel makes it, WriteModel writes it)
// gives frontends the tokenizer and the chat template that go with the ids.
//
// # The two forms
//
// An Engine implements engine.Client without any network and with a clock that
// may be virtual, for tests of everything above the engine clients. A Server
// speaks HTTP as vLLM 0.32, SGLang 0.5, TensorRT-LLM or llama.cpp does, for
// everything else; Run makes a process of it. Both have the same model, pace and
// faults. Reference gives the answer that either gives when nothing fails.
//
// What a Server sends is held against recordings of live engines in testdata, but
// for TensorRT-LLM, of which there are none: that is written from its sources.
// ServerConfig.Profile names older versions, and other ways to start an engine, as
// far as a frontend sees a difference.
//
// Not simulated: several prompts or answers per request (n), echo, prompt
// logprobs, structural tags (schemas, choices, regular expressions and simple grammars have
// an answer that fits them), LoRA (but for its list), and penalties, which
// like small logit biases are accepted and change nothing, because the model
// has no logits; a bias of 100 or more forces an id, -100 or less bans it.
//
// # Steering a Server
//
// POST /sim/faults takes a JSON list that replaces the faults in force; GET
// shows them. A fault is an object with these keys, of which only kind is
// required:
//
//	kind         what happens; see the FaultKind constants
//	request      a text that the request's id must hold
//	nth          the first request it takes, counted from 1 among those that
//	             were offered to it; the default is 1
//	times        how many it takes from then on; 0, the default, is all
//	after        how many tokens are delivered before; -1 = all of them, so that
//	             it strikes between the last token and the finish reason
//	status       HTTP status, or code of an error frame
//	retry_after  seconds, for kind status
//	message      the words of an error
//	token_id     for kind wrong_id
//	delay        a Go duration such as "1.5s", for pause, drip, freeze, dial_timeout
//
// Each request is offered to the faults in their order, until one takes it. So
// the second request is reset after five tokens, and each later one refused, by
//
//	[{"kind":"reset","after":5,"nth":2,"times":1},
//	 {"kind":"status","status":503,"nth":2}]
//
// (the first passes both, the second never reaches the second fault, the third
// is that fault's second).
//
// GET /sim/requests lists the newest generation requests: objects with id (what
// X-Request-Id said), path, token_ids, params (the body without the ids) and
// header. GET /sim/stats has the counters of Stats: running, started, finished,
// aborted (by the client), failed, tokens. POST /sim/health with {"status":503}
// sets what /health answers; 0 ends that. POST to /sim/kill, /sim/vanish,
// /sim/freeze, /sim/thaw, /sim/drain or /sim/revive does what the methods of
// Server with those names do.
//
// The process takes the same faults as flags, once each, as JSON or short:
//
//	baton sim --kind llamacpp --fault reset,after=5,nth=2,times=1
package sim
