package tracing

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// batch is the request that exports spans of one Tracer. The protocol calls it
// ExportTraceServiceRequest; TracesData has the same bytes, and a package that does
// not bring gRPC. Record makes neither events nor links, so there are none here.
func batch(spans []sdk.ReadOnlySpan) *otlp.TracesData {
	scope := spans[0].InstrumentationScope()
	scoped := &otlp.ScopeSpans{
		Scope:     &common.InstrumentationScope{Name: valid(scope.Name), Version: valid(scope.Version)},
		SchemaUrl: valid(scope.SchemaURL),
		Spans:     make([]*otlp.Span, len(spans)),
	}
	for i, s := range spans {
		scoped.Spans[i] = message(s)
	}
	of := spans[0].Resource()
	return &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: keyValues(of.Attributes())},
		SchemaUrl:  valid(of.SchemaURL()),
		ScopeSpans: []*otlp.ScopeSpans{scoped},
	}}}
}

// message is one span as the protocol has it.
func message(s sdk.ReadOnlySpan) *otlp.Span {
	own, parent := s.SpanContext(), s.Parent()
	traceID, spanID, parentID := own.TraceID(), own.SpanID(), parent.SpanID()
	m := &otlp.Span{
		TraceId:                traceID[:],
		SpanId:                 spanID[:],
		TraceState:             valid(own.TraceState().String()),
		Flags:                  uint32(own.TraceFlags()) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
		Name:                   valid(s.Name()),
		Kind:                   kind(s.SpanKind()),
		StartTimeUnixNano:      nanoseconds(s.StartTime()),
		EndTimeUnixNano:        nanoseconds(s.EndTime()),
		Attributes:             keyValues(s.Attributes()),
		DroppedAttributesCount: uint32(min(max(s.DroppedAttributes(), 0), math.MaxUint32)),
		Status:                 status(s.Status()),
	}
	if parent.SpanID().IsValid() {
		m.ParentSpanId = parentID[:]
	}
	if parent.IsRemote() {
		m.Flags |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return m
}

// kind is of the two that Record gives.
func kind(k trace.SpanKind) otlp.Span_SpanKind {
	switch k {
	case trace.SpanKindServer:
		return otlp.Span_SPAN_KIND_SERVER
	case trace.SpanKindClient:
		return otlp.Span_SPAN_KIND_CLIENT
	default:
		return otlp.Span_SPAN_KIND_UNSPECIFIED
	}
}

// status is needed because the SDK and the protocol number the codes differently.
func status(s sdk.Status) *otlp.Status {
	switch s.Code {
	case codes.Error:
		return &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR, Message: valid(s.Description)}
	case codes.Ok:
		return &otlp.Status{Code: otlp.Status_STATUS_CODE_OK}
	default:
		return &otlp.Status{}
	}
}

// keyValues are attributes. A kind that nothing here uses (lists) becomes text.
func keyValues(attributes []attribute.KeyValue) []*common.KeyValue {
	all := make([]*common.KeyValue, len(attributes))
	for i, kv := range attributes {
		v := &common.AnyValue{}
		switch kv.Value.Type() {
		case attribute.BOOL:
			v.Value = &common.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		case attribute.INT64:
			v.Value = &common.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &common.AnyValue_DoubleValue{DoubleValue: kv.Value.AsFloat64()}
		default:
			v.Value = &common.AnyValue_StringValue{StringValue: valid(kv.Value.String())}
		}
		all[i] = &common.KeyValue{Key: valid(string(kv.Key)), Value: v}
	}
	return all
}

// valid is text that the protocol takes. One stray byte in what a client sent must
// not cost the whole batch.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

// A partialSuccess is the remark of a collector that took a batch, or most of it.
type partialSuccess struct {
	rejected int64 // spans; 0 = all were taken
	message  string
}

func (p *partialSuccess) Error() string {
	return fmt.Sprintf("the collector took the batch and rejected %d of its spans: %q", p.rejected, p.message)
}

// rejection reads an ExportTraceServiceResponse: its field 1 is the partial success,
// of which field 1 counts the spans and field 2 says why. What cannot be read is no
// remark, as the spans have been taken.
// https://opentelemetry.io/docs/specs/otlp/#partial-success-1
func rejection(reply []byte) error {
	var p partialSuccess
	each(reply, func(field protowire.Number, _ uint64, partial []byte) {
		if field != 1 {
			return
		}
		each(partial, func(field protowire.Number, n uint64, text []byte) {
			switch field {
			case 1:
				p.rejected = int64(n)
			case 2:
				p.message = quoted(text)
			}
		})
	})
	if p == (partialSuccess{}) {
		return nil
	}
	return &p
}

// each calls f with every field of a message that is a number or has a length. It
// ends where the message cannot be read.
func each(message []byte, f func(field protowire.Number, n uint64, b []byte)) {
	for len(message) > 0 {
		field, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		var n uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(field, kind, message)
		}
		if size < 0 {
			return
		}
		message = message[size:]
		f(field, n, b)
	}
}

// quoted is the beginning of a collector's words.
func quoted(words []byte) string {
	return valid(strings.TrimSpace(string(words[:min(len(words), maxQuotedBytes)])))
}
