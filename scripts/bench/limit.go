package main

// No program that answers over HTTP can be faster than the statements themselves through the same driver. The ratio to
// this limit is what is left of a machine after Hub, whatever the machine.

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/go-sql-driver/mysql"
)

// limitTarget is the least that the same SQL can cost through go-sql-driver: the text
// protocol, each row scanned into sql.RawBytes and appended to one buffer as JSON, in this
// process and without HTTP.
func limitTarget(s *stack, on source) target {
	return target{name: "limit" + on.suffix, processes: []string{on.name}, read: readLimit,
		open: func(w *workload) (session, error) { return openLimit(s.readerDSN(on), w, w.statements) }}
}

// straightforwardTarget is the SQL that a person would write first.
func straightforwardTarget(s *stack) target {
	t := limitTarget(s, s.sources[0])
	t.name = "straightforward"
	t.open = func(w *workload) (session, error) {
		return openLimit(s.readerDSN(s.sources[0]), w, []string{w.straightforward})
	}
	return t
}

// openLimit prepares one connection for statements, of which the widest one's rows are the answer.
func openLimit(dsn string, w *workload, statements []string) (session, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.InterpolateParams = true // one round trip, in the text protocol
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1) // a session each, like the other targets
	return &limitSession{db: db, work: w, statements: statements}, nil
}

// limitSession reuses its buffers between calls, so that the limit measures SQL and not the allocator.
type limitSession struct {
	db         *sql.DB
	work       *workload
	statements []string
	// The answer of a statement so far, that of the widest one, and the first column of the row before.
	out, widest, last []byte
}

func (c *limitSession) close() { _ = c.db.Close() }

// call answers {"columns":[…],"rows":[[…]]} of the statement with the most columns, the last of several: the others find what it
// is of, or count.
func (c *limitSession) call(i int) ([]byte, error) {
	most := 0
	for _, text := range c.statements {
		c.out = append(c.out[:0], `{"columns":[`...)
		columns, err := c.run(text, c.work.inputs[i].args)
		if err != nil {
			return nil, err
		}
		c.out = append(c.out, "]}"...)
		if columns >= most {
			most, c.widest, c.out = columns, c.out, c.widest
		}
	}
	return c.widest, nil
}

// run appends the rows of one statement to the answer, and tells how many columns they have. Rows that repeat the first column of the
// row before are left out, as Hub does.
func (c *limitSession) run(text string, args []any) (columns int, err error) {
	rows, err := c.db.QueryContext(context.Background(), text, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return 0, err
	}
	values, pointers, numbers := make([]sql.RawBytes, len(types)), make([]any, len(types)), make([]bool, len(types))
	for i, t := range types {
		pointers[i] = &values[i]
		// Decimals are written as texts: a number in JSON is a float to many readers, and loses digits.
		switch t.DatabaseTypeName() {
		case "TINYINT", "SMALLINT", "INT", "BIGINT":
			numbers[i] = true
		}
		c.out = appendString(comma(c.out, i), t.Name())
	}
	c.out = append(c.out, `],"rows":[`...)
	c.last = nil
	for n := 0; rows.Next(); {
		if err := rows.Scan(pointers...); err != nil {
			return 0, err
		}
		// Hub probes for one row more than a page has: it is read here too, and left out.
		if n == c.work.most || c.last != nil && bytes.Equal(c.last, values[0]) {
			continue
		}
		c.last = append(c.last[:0], values[0]...)
		c.out = append(comma(c.out, n), '[')
		for i, v := range values {
			c.out = appendValue(comma(c.out, i), v, numbers[i])
		}
		c.out = append(c.out, ']')
		n++
	}
	return len(types), rows.Err()
}

// It goes ahead of each element but the first.
func comma(to []byte, i int) []byte {
	if i > 0 {
		to = append(to, ',')
	}
	return to
}

// NULL is null, and a number stays as the server has written it.
func appendValue(to []byte, v sql.RawBytes, number bool) []byte {
	switch {
	case v == nil:
		return append(to, "null"...)
	case number:
		return append(to, v...)
	}
	return appendString(to, v)
}

// appendString appends text as a JSON string.
func appendString[T string | sql.RawBytes](to []byte, s T) []byte {
	to = append(to, '"')
	clean := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			to = append(to, s[clean:i]...)
			clean = i + 1
			if c < ' ' {
				to = fmt.Appendf(to, `\u%04x`, c)
			} else {
				to = append(to, '\\', c)
			}
		}
	}
	return append(append(to, s[clean:]...), '"')
}

// readLimit reads an answer of limitSession.call.
func readLimit(w *workload, b []byte) ([][]string, error) {
	var answer struct {
		Columns []string
		Rows    [][]any
	}
	if err := decode(b, &answer); err != nil {
		return nil, fmt.Errorf("%w in %s", err, strconv.Quote(string(b[:min(len(b), 200)])))
	}
	return tuples(answer.Columns, answer.Rows, w.fields)
}
