package hubtest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one received span, reduced to what tests look at.
type Span struct {
	TraceID, SpanID, ParentID string // hex; ParentID is empty for a root
	Service                   string // service.name of the process that made it
	Name                      string
	Kind                      string // "server", "client", "internal", "producer", "consumer"
	Attributes                map[string]string
	Error                     bool
}

// Collector is an OTLP/HTTP receiver (protobuf) in this process that keeps the spans it
// gets. Metrics and logs are accepted and dropped.
type Collector struct {
	// URL goes into OTEL_EXPORTER_OTLP_ENDPOINT.
	URL string

	mu    sync.Mutex
	spans []Span
	more  chan struct{} // closed and replaced when spans arrive
}

// OTLP starts a receiver that ends with the test.
func OTLP(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{more: make(chan struct{})}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Spans are the spans received so far, in the order of their arrival.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// WaitFor waits until the spans received satisfy ready, and returns them. It fails the test
// after a minute and prints what had come.
func (c *Collector) WaitFor(t testing.TB, ready func([]Span) bool) []Span {
	t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		spans, more := append([]Span(nil), c.spans...), c.more
		c.mu.Unlock()
		if ready(spans) {
			return spans
		}
		select {
		case <-more:
		case <-timeout.C:
			t.Fatalf("the spans waited for did not come; received:\n%s", Tree(spans))
		}
	}
}

// Tree draws spans as indented "service: name" lines, trace by trace: easy to compare and
// to read in a failure.
func Tree(spans []Span) string {
	children, known := map[string][]Span{}, map[string]bool{}
	for _, s := range spans {
		known[s.SpanID] = true
	}
	for _, s := range spans {
		parent := s.ParentID
		if !known[parent] {
			parent = "" // its parent was not received: draw it as a root
		}
		children[parent] = append(children[parent], s)
	}
	var b strings.Builder
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, s := range children[parent] {
			b.WriteString(strings.Repeat("  ", depth) + s.Service + ": " + s.Name + "\n")
			draw(s.SpanID, depth+1)
		}
	}
	draw("", 0)
	return b.String()
}

// ServeHTTP is the receiver.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/traces" {
		return // 200: exporters of metrics and logs are content
	}
	var request tracecollector.ExportTraceServiceRequest
	if err := decode(r, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var spans []Span
	for _, resource := range request.GetResourceSpans() {
		service := attributes(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				spans = append(spans, span(service, s))
			}
		}
	}
	c.mu.Lock()
	c.spans = append(c.spans, spans...)
	close(c.more)
	c.more = make(chan struct{})
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty message is a full success
}

// decode reads the body of an export, packed or not.
func decode(r *http.Request, into proto.Message) error {
	body := io.Reader(r.Body)
	// Exporters pack what they send unless they are told otherwise.
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return proto.Unmarshal(b, into)
}

// span is a received span as tests see it.
func span(service string, s *trace.Span) Span {
	return Span{
		TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()),
		ParentID: hex.EncodeToString(s.GetParentSpanId()),
		Service:  service, Name: s.GetName(),
		Kind:       strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Attributes: attributes(s.GetAttributes()),
		Error:      s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
	}
}

// attributes turns every value into text; lists and maps in protobuf's debug notation.
func attributes(list []*common.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *common.AnyValue_BoolValue:
			m[kv.GetKey()] = strconv.FormatBool(v.BoolValue)
		case *common.AnyValue_IntValue:
			m[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_DoubleValue:
			m[kv.GetKey()] = strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
		default:
			m[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return m
}
