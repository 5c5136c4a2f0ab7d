// Package tracing tells a trace collector how requests went: one span per request
// of the API, and below it one per attempt, which shows where an answer moved and
// how long its client waited.
//
// The spans are made when a request is over, from the notebooks that its choices
// kept anyway (engine.Trace), so that tracing costs nothing while tokens flow.
// OpenTelemetry's own environment variables say whether and where to:
// without an OTLP endpoint there is no Tracer at all (environment.go). A client
// that traces sends its context in the header traceparent, and the request's span
// becomes a child of it. OpenTelemetry's SDK makes batches of the spans, and an
// exporter of our own (exporter.go) posts them as OTLP over HTTP.
// Workers are not told of it: nothing of a client's reaches them.
//
// Nothing of prompts, answers or an engine's own words is in a span.
package tracing
