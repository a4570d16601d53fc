package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// database is a fresh source database without tables.
func database(t *testing.T) (o options, db *sql.DB) {
	t.Helper()
	dsn, _ := hubtest.SourceDB(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return options{dsn: dsn, scale: 0.01, seed: 1}, db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// stored is a query's rows, each as the literal tuple that the generator writes.
func stored(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	cells, targets := make([]sql.RawBytes, len(types)), make([]any, len(types))
	for i := range cells {
		targets[i] = &cells[i]
	}
	var list []string
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		var b batch
		for i, cell := range cells {
			b.buf = append(b.buf, "(,"[min(i, 1)])
			switch types[i].DatabaseTypeName() {
			case "BIGINT", "INT", "TINYINT", "DECIMAL":
				b.buf = append(b.buf, cell...)
			default:
				b.literal(text{V: string(cell), Valid: cell != nil})
			}
		}
		list = append(list, string(b.buf)+")")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// generated is a table's rows as tuples.
func generated(t *testing.T, table table) []string {
	t.Helper()
	var list []string
	err := table.statements(1, func(b *batch) error {
		list = append(list, strings.TrimPrefix(string(b.buf), table.head()+"\n"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// checkStored compares every cell of every table with what was generated.
func checkStored(t *testing.T, db *sql.DB, o options) {
	t.Helper()
	p, err := newPlan(o.scale, o.seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range p.tables() {
		got, want := stored(t, db, "SELECT "+table.columns+" FROM "+table.name), generated(t, table)
		slices.Sort(got)
		slices.Sort(want)
		if len(got) != len(want) {
			t.Errorf("%s: %d rows stored, %d generated", table.name, len(got), len(want))
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: stored    %s\ngenerated %s", table.name, got[i], want[i])
				break
			}
		}
	}
}

func TestLoad(t *testing.T) {
	o, db := database(t)
	var out bytes.Buffer
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	checkStored(t, db, o)
	if lines := strings.Count(out.String(), "\n"); lines != 11 || !strings.Contains(out.String(), "rows/s") {
		t.Errorf("want a line per table and a summary, got\n%s", &out)
	}

	t.Run("refuses to load twice", func(t *testing.T) {
		err := run(t.Context(), o, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "already holds rows in category, category_name, partner,") ||
			strings.Contains(err.Error(), "\n") {
			t.Fatalf("got %v", err)
		}
		checkStored(t, db, o)
	})
	t.Run("force", func(t *testing.T) {
		o := o
		o.force = true
		execute(t, db, "DELETE FROM partner_admin") // as after an interrupted run
		execute(t, db, "DELETE FROM review")
		if err := run(t.Context(), o, io.Discard); err != nil {
			t.Fatal(err)
		}
		checkStored(t, db, o)
		o.seed, o.scale = 5, 0.002
		if err := run(t.Context(), o, io.Discard); err != nil {
			t.Fatal(err)
		}
		checkStored(t, db, o)
	})
	t.Run("batches much smaller than a table", func(t *testing.T) {
		p, err := newPlan(o.scale, o.seed)
		if err != nil {
			t.Fatal(err)
		}
		l, err := open(t.Context(), o.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		l.batchBytes = 2000
		if err := l.prepare(t.Context(), p.tables(), true); err != nil {
			t.Fatal(err)
		}
		for _, table := range p.tables() {
			if err := l.load(t.Context(), table); err != nil {
				t.Fatal(err)
			}
		}
		checkStored(t, db, o)
	})
}

func TestRefusals(t *testing.T) {
	good, db := database(t)
	quiet := io.Discard
	refused := func(t *testing.T, o options, part string) {
		t.Helper()
		err := run(t.Context(), o, quiet)
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("got %v, want one line with %q", err, part)
		}
	}
	with := func(change func(o *options)) options {
		o := good
		change(&o)
		return o
	}
	t.Run("scale", func(t *testing.T) { refused(t, with(func(o *options) { o.scale = 101 }), "--scale 101") })
	t.Run("no DSN", func(t *testing.T) { refused(t, with(func(o *options) { o.dsn = "nonsense" }), "--dsn") })
	t.Run("no database", func(t *testing.T) {
		refused(t, with(func(o *options) { o.dsn = o.dsn[:strings.LastIndex(o.dsn, "/")+1] }), "names no database")
	})
	t.Run("nobody listens", func(t *testing.T) {
		refused(t, with(func(o *options) { o.dsn = "a:b@tcp(127.0.0.1:1)/crm" }), "connect to 127.0.0.1:1")
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := with(func(o *options) { o.scale = 0.2 })
		err := run(ctx, o, cancelAt{"brand", cancel})
		if err == nil || !strings.Contains(err.Error(), "interrupted; the tables are partly filled, run again with --force") {
			t.Fatalf("got %v", err)
		}
		refused(t, o, "already holds rows")
	})
	t.Run("narrow table", func(t *testing.T) {
		execute(t, db, "ALTER TABLE member CONVERT TO CHARACTER SET latin1")
		refused(t, with(func(o *options) { o.force = true }), "member in latin1")
	})
	t.Run("no table", func(t *testing.T) {
		execute(t, db, "DROP TABLE member")
		refused(t, with(func(o *options) { o.force = true }), "lacks member: run deploy/source/schema.sql")
	})
}

// cancelAt cancels when a table's line is written.
type cancelAt struct {
	table  string
	cancel context.CancelFunc
}

func (c cancelAt) Write(line []byte) (int, error) {
	if strings.HasPrefix(string(line), c.table) {
		c.cancel()
	}
	return len(line), nil
}

func TestCommandNeedsADSN(t *testing.T) {
	c := command()
	c.SetArgs([]string{"--scale", "2"})
	c.SetOut(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(fmt.Sprint(err), "dsn") {
		t.Errorf("got %v", err)
	}
}
