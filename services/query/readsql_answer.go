package query

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
)

// sqlAnswer is an answer in the making. It implements RowWriter.
type sqlAnswer struct {
	limit, bytes  int
	memory        *loan
	columns       []ResultColumn
	json          []byte
	rows          int
	truncated     bool
	truncatedHere string // what cut the answer, other than the row limit
	refused       error  // why there is none
	// What came from the server: all of it, and since the end of the last row.
	arrived, arrivedOfRow int
}

const (
	// tailSize is more than end appends.
	tailSize = 128
	// columnBytes bounds the definitions of an answer's columns. They are cheap to ask for
	// (SELECT a.*, a.*, …) and cost many times their size: 2 MiB are 10,000 columns and more.
	columnBytes = 2 << 20
	// readAhead is how much of the rows that follow may have come with a row: the greatest
	// buffer that the driver keeps.
	readAhead = 256 << 10
)

func (a *sqlAnswer) begin(limit, bytes int, memory *loan) {
	*a = sqlAnswer{limit: limit, bytes: bytes, memory: memory, json: a.json[:0]}
}

// Arrived implements RowWriter. The driver takes a row as one piece, so one that cannot
// fit is cut here, before it is all in memory.
func (a *sqlAnswer) Arrived(n int) bool {
	a.arrived += n
	a.arrivedOfRow += n
	switch {
	case a.columns == nil && a.arrived > columnBytes:
		return a.refuse(tooManyColumns())
	case a.columns != nil && (a.arrivedOfRow > max(a.bytes, readAhead) || a.arrived > columnBytes+2*a.bytes):
		return a.cut()
	}
	return a.fits()
}

// Columns implements RowWriter.
func (a *sqlAnswer) Columns(columns []ResultColumn) {
	a.columns, a.arrivedOfRow = columns, 0
	a.json = append(a.json, `{"columns":`...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings always encode.
	_ = e.Encode(columns)
	a.json = append(append(a.json, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), `,"rows":[`...)
	if len(a.json)+tailSize > a.bytes {
		a.refuse(tooManyColumns())
	}
}

// Row implements RowWriter.
func (a *sqlAnswer) Row(encode RowEncoder) bool {
	a.arrivedOfRow = 0
	switch {
	case a.refused != nil:
		return false
	case a.rows == a.limit:
		a.truncated = true
		return false
	}
	before := len(a.json)
	if a.rows > 0 {
		a.json = append(a.json, ',')
	}
	var whole bool
	if a.json, whole = encode(a.json, a.bytes-tailSize); !whole {
		a.json = a.json[:before]
		return a.cut()
	}
	a.rows++
	return a.fits()
}

// cut ends the answer at its size.
func (a *sqlAnswer) cut() bool {
	a.truncated, a.truncatedHere = true, "bytes"
	return false
}

func (a *sqlAnswer) refuse(err error) bool {
	a.refused = err
	return false
}

// fits takes the memory that the answer needs now: the answer so far, and the row that
// is on its way, once as the driver holds it and once as it is going to be encoded.
func (a *sqlAnswer) fits() bool {
	if a.memory.grow(cap(a.json) + 2*a.arrivedOfRow) {
		return true
	}
	return a.refuse(fault.New(fault.RateLimit, "There are too many large answers at once. "+
		"Try again in a second, or ask for less: fewer rows, fewer or shorter columns.").
		With(map[string]any{"scope": "source", "retryAfter": 1}).After(time.Second))
}

func tooManyColumns() error {
	return sqlRefused("sql.columns", "the answer has more columns than Hub reads: name those that you need")
}

// end completes the document and hands it over.
func (a *sqlAnswer) end() []byte {
	a.json = strconv.AppendInt(append(a.json, `],"row_count":`...), int64(a.rows), 10)
	a.json = strconv.AppendBool(append(a.json, `,"truncated":`...), a.truncated)
	a.json = strconv.AppendInt(append(a.json, `,"row_limit":`...), int64(a.limit), 10)
	if a.truncatedHere != "" {
		a.json = append(append(append(a.json, `,"truncated_by":"`...), a.truncatedHere...), '"')
	}
	a.json = append(a.json, '}')
	if cap(a.json) <= keptBuffer {
		return bytes.Clone(a.json) // the buffer serves the next answer
	}
	data := a.json
	a.json = nil
	return data
}

func (a *sqlAnswer) names() []string {
	names := make([]string, len(a.columns))
	for i, c := range a.columns {
		names[i] = c.Name
	}
	return names
}
