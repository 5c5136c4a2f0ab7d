package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"baton/engine"
)

// A discreetClient keeps the key that its worker gets out of errors. Workers, and
// proxies before them, repeat in their complaints what they were sent, and an
// engine's complaint about a request goes on to the client and into the log.
type discreetClient struct {
	engine.Client
	key func() string
}

// discreet returns client, which is discreet if there is a key.
func discreet(client engine.Client, key func() string) engine.Client {
	if key == nil {
		return client
	}
	return discreetClient{client, key}
}

func (c discreetClient) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		sent := c.key()
		for d, err := range c.Client.Generate(ctx, req) {
			if err != nil {
				err = withoutKeys(err, sent, c.key()) // the file may have changed in between
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (c discreetClient) Probe(ctx context.Context) (engine.Info, error) {
	sent := c.key()
	info, err := c.Client.Probe(ctx)
	return info, withoutKeys(err, sent, c.key())
}

func (c discreetClient) Health(ctx context.Context) error {
	sent := c.key()
	return withoutKeys(c.Client.Health(ctx), sent, c.key())
}

// withoutKeys is err with keys blotted out. An error that holds none is returned
// as it is.
func withoutKeys(err error, keys ...string) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*engine.Error); ok { // the error itself: what it wraps is inside
		return engineErrorWithoutKeys(e, keys)
	}
	text := blot(err.Error(), keys)
	if text == err.Error() {
		return err
	}
	return &blottedError{text, err, keys}
}

func engineErrorWithoutKeys(e *engine.Error, keys []string) *engine.Error {
	clean := *e
	clean.Message, clean.Param = blot(e.Message, keys), blot(e.Param, keys)
	clean.Err = withoutKeys(e.Err, keys...)
	if clean.Error() == e.Error() && clean.Param == e.Param {
		return e
	}
	return &clean
}

// A blottedError is an error whose text was not fit to be shown. It is what it
// was, but what it wraps cannot be unwrapped to show the text after all.
type blottedError struct {
	text string
	err  error
	keys []string
}

func (e *blottedError) Error() string        { return e.text }
func (e *blottedError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *blottedError) As(target any) bool {
	p, ok := target.(**engine.Error)
	if !ok || !errors.As(e.err, p) {
		return false
	}
	*p = engineErrorWithoutKeys(*p, e.keys)
	return true
}

// blot replaces keys in a text, also as they stand in quotation marks.
func blot(text string, keys []string) string {
	for _, key := range keys {
		if key == "" {
			continue
		}
		text = strings.ReplaceAll(text, key, "[key]")
		quoted := strconv.Quote(key)
		text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], "[key]")
	}
	return text
}
