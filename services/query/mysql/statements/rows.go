package statements

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strconv"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// read hands the rows on, and tells whether it has read them all.
// It encodes each row as it comes. What is kept of the answer, and how much, is the writer's to decide.
func (r *Reader) read(ctx context.Context, s *session, st query.Statement, to query.RowWriter) (whole bool, err error) {
	if st.Explain { // the session's own limit would be in the plan
		if err := s.exec(ctx, rowLimit(noRowLimit)); err != nil {
			return false, err
		}
	}
	rows, err := s.query(ctx, st.Text)
	if err != nil {
		return false, err
	}
	kinds := make([]columnKind, len(rows.columns))
	for i := range rows.columns {
		kinds[i] = kindOf(rows.columns[i].Type)
		rows.columns[i].Type = kinds[i].name
	}
	to.Columns(rows.columns)

	// The writer decides how much may still be written; a row that does not fit is left out as a whole.
	encode := func(to []byte, most int) ([]byte, bool) {
		to = append(to, '[')
		for i, text := range rows.texts {
			if i > 0 {
				to = append(to, ',')
			}
			if text == nil {
				to = append(to, "null"...)
				continue
			}
			// A large value is measured before it is escaped: growing a buffer of megabytes step by step would copy it
			// again and again.
			if len(text) > largeValue {
				var fits bool
				if to, fits = kinds[i].room(to, text, most-len(to)); !fits {
					return to, false
				}
			}
			to = kinds[i].encode(to, text)
			if len(to) >= most {
				return to, false
			}
		}
		return append(to, ']'), len(to) < most
	}
	for n := 1; ; n++ {
		if err := rows.next(); errors.Is(err, io.EOF) {
			return true, rows.driver.Close()
		} else if err != nil {
			return false, err
		}
		if to.Row(encode) {
			continue
		}
		// The statement's LIMIT ends here: what follows can only be its end.
		if n == st.Most && errors.Is(rows.next(), io.EOF) {
			return true, rows.driver.Close()
		}
		return false, nil // Close would read on to the end
	}
}

// rows are a result as texts, whoever has read them: the wire, where it can, or the driver, whose values become texts again.
type rows struct {
	driver  driver.Rows
	wire    *server.Wire         // nil where the driver reads the rows
	columns []query.ResultColumn // by the driver's names of types
	texts   [][]byte             // of the row that was read last; nil for NULL
	values  []driver.Value
	numbers []byte // what texts of the driver's numbers are in
}

// query runs a statement without arguments.
func (s *session) query(ctx context.Context, text string) (*rows, error) {
	r := &rows{}
	if s.wire.KeepRows() {
		r.wire = s.wire
	}
	var err error
	if r.driver, err = s.Conn.(driver.QueryerContext).QueryContext(ctx, text, nil); err != nil {
		return nil, err
	}
	names, types := r.driver.Columns(), r.driver.(driver.RowsColumnTypeDatabaseTypeName)
	r.columns = make([]query.ResultColumn, len(names))
	for i, name := range names {
		r.columns[i] = query.ResultColumn{Name: name, Type: types.ColumnTypeDatabaseTypeName(i)}
	}
	r.texts, r.values = make([][]byte, len(names)), make([]driver.Value, len(names))
	return r, nil
}

// next reads a row into texts, which are good until the next call; io.EOF behind the last one.
func (r *rows) next() error {
	if r.wire == nil {
		return r.nextOfDriver()
	}
	row, err := r.wire.NextRow()
	if err != nil {
		return err
	}
	if row == nil {
		if err := r.driver.Next(r.values); err != nil {
			return err
		}
		return errors.New("the driver has a row that the wire was to have")
	}
	for i := range r.texts {
		if r.texts[i], row, err = server.Field(row); err != nil {
			return err
		}
	}
	return nil
}

// nextOfDriver is next where the driver reads the rows: it writes numbers as the server does, or so that they read back as the same.
func (r *rows) nextOfDriver() error {
	if err := r.driver.Next(r.values); err != nil {
		return err
	}
	r.numbers = r.numbers[:0]
	for i, v := range r.values {
		from := len(r.numbers)
		switch v := v.(type) {
		case nil:
			r.texts[i] = nil
			continue
		case []byte:
			r.texts[i] = v
			continue
		case int64:
			r.numbers = strconv.AppendInt(r.numbers, v, 10)
		case uint64:
			r.numbers = strconv.AppendUint(r.numbers, v, 10)
		case float32:
			r.numbers = strconv.AppendFloat(r.numbers, float64(v), 'g', -1, 32)
		case float64:
			r.numbers = strconv.AppendFloat(r.numbers, v, 'g', -1, 64)
		default:
			return errors.New("the driver has a value of a kind that it did not have")
		}
		r.texts[i] = r.numbers[from:len(r.numbers):len(r.numbers)]
	}
	return nil
}
