// Package sim is the simulated worker.
//
// Its model is a hash: the next token follows from the whole sequence so far,
// prompt and answer alike, so that one token lost, doubled or reordered changes
// all that come after. What a client gets with faults can then be compared,
// token by token, with what it gets without them. In the style StyleWords the
// hash picks the next word of a small grammar instead of any id, for people to
// read. The embedded model folder (package toymodel makes it, WriteModel writes
// it) gives frontends the tokenizer and chat template that go with the ids.
//
// There are two forms of the worker, with the same model and the same faults.
// An Engine implements engine.Client without any network and with a clock that
// may be virtual, for tests of everything above the engine clients. A Server
// speaks the HTTP protocols of real engines, for everything else. Reference
// gives the answer that either would give if nothing failed.
package sim
