package query_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// tools are the service's tools on a source of a test's own.
type tools struct {
	t      testing.TB
	admin  *sql.DB
	source *mysql.Source
	byID   map[string]tool.Tool
}

// serve makes a source with the marketplace's tables, and the tools on it.
func serve(t testing.TB, statements ...string) *tools {
	t.Helper()
	adminDSN, readerDSN := hubtest.SourceDB(t)
	return serveAs(t, adminDSN, readerDSN, statements...)
}

func serveOn(t testing.TB, on *localserver.SourceServer, statements ...string) *tools {
	t.Helper()
	adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
	return serveAs(t, adminDSN, readerDSN, statements...)
}

func serveAs(t testing.TB, adminDSN, readerDSN string, statements ...string) *tools {
	t.Helper()
	admin, err := sql.Open("mysql", adminDSN+"?multiStatements=true&interpolateParams=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	x := &tools{t: t, admin: admin}
	x.exec(statements...)
	x.open(readerDSN)
	return x
}

func (x *tools) open(dsn string) {
	x.t.Helper()
	source, err := mysql.Open(dsn, server.Options{PoolSize: 4})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { source.Close() })
	x.source = source
	reader := statements.NewReader(source.Server, statements.ReaderOptions{})
	x.t.Cleanup(func() { reader.Close() })
	x.use(query.New(query.Config{Source: source, Reader: reader, Audit: unrecorded{}}))
}

// unrecorded is an audit log for tests of something else.
type unrecorded struct{}

func (unrecorded) Away(context.Context, query.ReadSQLIn) error { return nil }
func (unrecorded) Record(context.Context, query.SQLRecord) audit.Committed {
	return func(context.Context) error { return nil }
}

func (x *tools) use(s *query.Service) {
	x.byID = map[string]tool.Tool{}
	for _, t := range query.Tools(s) {
		x.byID[t.Spec.Name] = t
	}
}

func (x *tools) exec(statements ...string) {
	x.t.Helper()
	for _, s := range statements {
		if _, err := x.admin.ExecContext(x.t.Context(), s); err != nil {
			x.t.Fatalf("%v\n%s", err, s)
		}
	}
}

// raw calls a tool.
func (x *tools) raw(ctx context.Context, name string, input any) (*tool.Result, error) {
	in, isText := input.(string)
	if !isText {
		b, err := json.Marshal(input)
		if err != nil {
			x.t.Fatal(err)
		}
		in = string(b)
	}
	response, err := x.byID[name].Endpoint(ctx, &tool.Call{Tool: name, Input: []byte(in)})
	if err != nil {
		return nil, err
	}
	r := response.(*tool.Result)
	// No fixture gives a verified contact such an address.
	if bytes.Contains(r.Data, []byte("unverified")) {
		x.t.Errorf("%s %s answers an unverified address: %s", name, in, r.Data)
	}
	return r, nil
}

// call calls a tool and reads its answer.
func call[Out any](x *tools, name string, input any) Out {
	x.t.Helper()
	r, err := x.raw(x.t.Context(), name, input)
	if err != nil {
		x.t.Fatalf("%s %v: %v", name, input, err)
	}
	var out Out
	d := json.NewDecoder(bytes.NewReader(r.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		x.t.Fatalf("%s %v: %v in %s", name, input, err, r.Data)
	}
	if c, ok := any(out).(tool.Counter); ok && c.Count() != r.Count {
		x.t.Errorf("%s %v: count %d, want %d", name, input, r.Count, c.Count())
	}
	return out
}

// refused calls a tool that has to answer a fault with the code; it returns its text.
func (x *tools) refused(name string, input any, code fault.Code) *fault.Error {
	x.t.Helper()
	r, err := x.raw(x.t.Context(), name, input)
	if err == nil {
		x.t.Fatalf("%s %v answers %s, want %s", name, input, r.Data, code)
	}
	f := fault.From(err)
	if f.Code != code {
		x.t.Fatalf("%s %v: %v, want %s", name, input, err, code)
	}
	return f
}

func ptr[T any](v T) *T { return &v }

// values writes rows for an INSERT.
func values(rows [][]any) (string, []any) {
	var b strings.Builder
	var args []any
	for i, r := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strings.TrimSuffix(strings.Repeat("?, ", len(r)), ", ") + ")")
		args = append(args, r...)
	}
	return b.String(), args
}

// insert adds rows to a table, all of its columns given.
func (x *tools) insert(table string, rows [][]any) {
	x.t.Helper()
	for len(rows) > 0 {
		n := min(len(rows), 500)
		text, args := values(rows[:n])
		if _, err := x.admin.ExecContext(x.t.Context(), "INSERT INTO "+table+" VALUES "+text, args...); err != nil {
			x.t.Fatalf("insert into %s: %v", table, err)
		}
		rows = rows[n:]
	}
}

// text is a value as JSON, for comparison and for messages.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
