// Package telemetry sets up OpenTelemetry for a process: traces (OTLP when an
// endpoint is set), metrics (Prometheus text, and OTLP when an endpoint is set) and
// slog lines that carry trace ids. It refuses to know what is measured: the one
// middleware here gives every tool its span and its RED metrics.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// Config says where telemetry goes.
type Config struct {
	Service, Version string
	// Endpoint is OTEL_EXPORTER_OTLP_ENDPOINT; empty records no trace at all.
	Endpoint string
	// SampleRatio is the share of new traces that are recorded, 0..1; a caller's
	// own decision is kept.
	SampleRatio float64
}

// Telemetry is a process's set-up; Close flushes it.
type Telemetry struct {
	// Metrics serves the Prometheus text format, and OpenMetrics to who asks for it.
	Metrics http.Handler
	close   []func(context.Context) error
}

// Start installs the providers that instrumented code finds through otel.
func Start(ctx context.Context, c Config) (*Telemetry, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("telemetry", "error", err) }))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	res := resource.NewSchemaless(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsScheduler)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	// Exemplars, the trace ids of recorded calls, are part of OpenMetrics alone.
	t := &Telemetry{Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})}
	readers := []metric.Option{metric.WithResource(res), metric.WithReader(reader)}
	if c.Endpoint != "" {
		base, err := url.Parse(c.Endpoint)
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
			return nil, fmt.Errorf("configuration: OTEL_EXPORTER_OTLP_ENDPOINT: %q is not an http or https URL", c.Endpoint)
		}
		traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base.JoinPath("v1/traces").String()))
		if err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
		provider := trace.NewTracerProvider(trace.WithResource(res), trace.WithBatcher(traces),
			trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(c.SampleRatio))))
		otel.SetTracerProvider(provider)
		t.close = append(t.close, provider.Shutdown)
		metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base.JoinPath("v1/metrics").String()))
		if err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
		readers = append(readers, metric.WithReader(metric.NewPeriodicReader(metrics)))
	}
	meters := metric.NewMeterProvider(readers...)
	otel.SetMeterProvider(meters)
	t.close = append(t.close, meters.Shutdown)
	return t, nil
}

// Close flushes and stops the providers.
func (t *Telemetry) Close(ctx context.Context) error {
	var errs []error
	for _, f := range t.close {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// Logger writes JSON lines with the trace and span id of their context.
func Logger(w io.Writer, service string, level slog.Level) *slog.Logger {
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	return slog.New(traceHandler{h}).With("service", service)
}
