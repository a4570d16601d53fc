package statements

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

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
