package hubtest_test

import (
	"bytes"
	"database/sql"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

func TestSourceDB(t *testing.T) {
	t.Parallel()
	admin, readonly := hubtest.SourceDB(t)
	exec := func(dsn, query string) error {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = db.ExecContext(t.Context(), query)
		return err
	}
	const insert = "INSERT INTO category (category_id) VALUES (12)"
	if err := exec(admin, insert); err != nil {
		t.Error(err)
	}
	if err := exec(readonly, "SELECT * FROM category"); err != nil {
		t.Error(err)
	}
	if err := exec(readonly, insert); err == nil {
		t.Error("the read-only user inserted a row")
	}
}

func TestWriteStoresAreSeparate(t *testing.T) {
	t.Parallel()
	a, b := hubtest.WriteStore(t), hubtest.WriteStore(t)
	exec := func(url, query string) error {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), query)
		return err
	}
	for _, store := range []hubtest.WriteStoreDB{a, b} { // the same name twice: two databases
		if err := exec(store.OwnerURL, "CREATE TABLE t (a int)"); err != nil {
			t.Error(err)
		}
	}
	if err := exec(a.URL("review-control"), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if err := exec(a.URL("auth"), "SELECT * FROM t"); err == nil {
		t.Error("a service's role read a table that nobody granted")
	}
}

func TestRedisURLsDiffer(t *testing.T) {
	t.Parallel()
	if a, b := hubtest.RedisURL(t), hubtest.RedisURL(t); a == b {
		t.Errorf("two tests would share %s", a)
	}
}

func TestStoppedServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	r := hubtest.NewRedis(t)
	r.Kill()
	if err := r.Do(t.Context(), "PING"); err == nil {
		t.Error("a killed Redis answered")
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(t.Context(), "PING"); err != nil {
		t.Error(err)
	}
}

func TestClock(t *testing.T) {
	c := hubtest.NewClock(time.Time{})
	before := c.Now()
	if got := c.Advance(time.Hour); got.Sub(before) != time.Hour || !c.Now().Equal(got) {
		t.Errorf("Advance: %v, Now: %v, before: %v", got, c.Now(), before)
	}
}

func TestOTLPKeepsSpans(t *testing.T) {
	c := hubtest.OTLP(t)
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	body, err := proto.Marshal(&tracecollector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "gateway")}},
		ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{
			{TraceId: []byte{1}, SpanId: []byte{2}, ParentSpanId: []byte{1}, Name: "child", Kind: trace.Span_SPAN_KIND_CLIENT},
			{TraceId: []byte{1}, SpanId: []byte{1}, Name: "root", Attributes: []*common.KeyValue{text("tool", "get_brand")}},
		}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(c.URL+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	spans := c.WaitFor(t, func(s []hubtest.Span) bool { return len(s) == 2 })
	if got, want := hubtest.Tree(spans), "gateway: root\n  gateway: child\n"; got != want {
		t.Errorf("tree:\n%s\nwant:\n%s", got, want)
	}
	if spans[0].Kind != "client" || spans[0].ParentID != "01" || spans[1].Attributes["tool"] != "get_brand" {
		t.Errorf("spans: %+v", spans)
	}
}

// judged takes the failures of another test.
type judged struct {
	testing.TB
	failures int
}

func (j *judged) Errorf(string, ...any) { j.failures++ }

// TestWithin judges no single run.
func TestWithin(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration][2]int{hubtest.Patience: {1, 0}, 0: {20, 1}} {
		j, runs := &judged{TB: t}, 0
		hubtest.Within(j, limit, "nothing", func() { runs++ })
		if got := [2]int{runs, j.failures}; got != want {
			t.Errorf("%s: %d runs and failures, not %d", limit, got, want)
		}
	}
}
