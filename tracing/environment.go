package tracing

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

// The variables that are read here. Those of the exporter (headers, certificates,
// time-outs) are read in destination.go, all others (samplers, batches, attributes of
// the resource) by the SDK.
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
)

// shown is an endpoint without a password or a query, which may hold a key.
func shown(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "an address that cannot be read"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// wanted reports whether the environment asks for traces, and the endpoint. What
// it asks for and does not get is a warning: traces are no reason not to serve.
func wanted(getenv func(string) string, log *slog.Logger) (endpoint string, on bool) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if endpoint = get(envTracesEndpoint); endpoint == "" {
		endpoint = get(envEndpoint)
	}
	if endpoint == "" || strings.EqualFold(get(envDisabled), "true") {
		return "", false
	}
	switch exporter := strings.ToLower(get(envExporter)); exporter {
	case "", "otlp":
	case "none":
		return "", false
	default:
		log.Warn(fmt.Sprintf("traces are off: %s is %q, and baton has otlp only", envExporter, exporter))
		return "", false
	}
	protocol := get(envTracesProtocol)
	if protocol == "" {
		protocol = get(envProtocol)
	}
	if protocol != "" && protocol != "http/protobuf" {
		log.Warn(fmt.Sprintf("traces are sent as http/protobuf, not as %s says; the usual port for it is 4318", envProtocol), "protocol", protocol)
	}
	return endpoint, true
}
