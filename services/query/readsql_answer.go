package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/tool"
)

// sqlAnswer is an answer in the making. It implements RowWriter.
type sqlAnswer struct {
	limit, bytes  int
	offset        int // of the statement's own; -1 where that is not plain
	room          room
	columns       []ResultColumn
	json          []byte
	rowsAt        int // where in it the rows begin
	rows          int
	truncated     bool
	truncatedHere string // what cut the answer, other than the row limit
	refused       error  // why there is none
	warnings      []tool.Warning
	ended         func()
	// What came from the server: all of it, and since the end of the last row.
	arrived, arrivedOfRow int
}

const (
	// tailSize is more than end appends, but for warnings: they come on top, and are a few hundred bytes each.
	tailSize = 128
	// columnBytes bounds the definitions of an answer's columns. They are cheap to ask for
	// (SELECT a.*, a.*, …) and cost many times their size: 2 MiB are 10,000 columns and more.
	columnBytes = 2 << 20
	// readAhead is how much of the rows that follow may have come with a row: the greatest
	// buffer that the driver keeps.
	readAhead = 256 << 10
)

func (a *sqlAnswer) begin(limit, bytes int, room room) {
	*a = sqlAnswer{limit: limit, bytes: bytes, offset: a.offset, room: room, json: a.json[:0], ended: a.ended}
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
	if a.columns != nil && a.rows == a.limit && !a.room.grow(a.size()) {
		return a.cut() // it is read only to know that it is there
	}
	return a.fits()
}

// Columns implements RowWriter.
func (a *sqlAnswer) Columns(columns []ResultColumn) {
	if a.columns != nil {
		a.begin(a.limit, a.bytes, a.room)
	}
	a.columns, a.arrivedOfRow = columns, 0
	a.json = append(a.json, `{"columns":`...)
	a.json = append(append(a.json, encoded(columns)...), `,"rows":[`...)
	a.rowsAt = len(a.json)
	if len(a.json)+tailSize > a.bytes {
		a.refuse(tooManyColumns())
	}
}

// empty reports whether the answer has no row, or a single one of nothing but NULL and 0: an aggregate of no rows.
func (a *sqlAnswer) empty() bool {
	return a.rows == 0 || a.rows == 1 && len(bytes.Trim(a.json[a.rowsAt:], `[]null,0."`)) == 0
}

// encoded is a list of strings as JSON, which always can be.
func encoded(list any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(list)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
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

// Ended implements RowWriter.
func (a *sqlAnswer) Ended() { a.ended() }

// Warned implements RowWriter.
func (a *sqlAnswer) Warned(list []tool.Warning) { a.warnings = append(a.warnings, list...) }

// add takes warnings that have not been told by their words.
func (a *sqlAnswer) add(list []tool.Warning) {
	for _, w := range list {
		if !slices.Contains(a.warnings, w) {
			a.warnings = append(a.warnings, w)
		}
	}
}

// cut ends the answer before a row that is too large, unless it has all its rows anyway.
func (a *sqlAnswer) cut() bool {
	a.truncated = true
	if a.rows < a.limit {
		a.truncatedHere = "bytes"
	}
	return false
}

// readOn says how to read what did not fit.
func (a *sqlAnswer) readOn() tool.Warning {
	w := tool.Warning{Rule: "sql.truncated", Message: fmt.Sprintf("the answer ends after %d rows, at %d bytes: name the columns that you "+
		"need, or aggregate; to read on, ORDER BY a key and ask again with WHERE key > the last one", a.rows, a.bytes)}
	if a.offset >= 0 {
		w.Message += fmt.Sprintf(", or with LIMIT n OFFSET %d", a.offset+a.rows)
	}
	if a.rows == 0 {
		w.Message = fmt.Sprintf("the first row has more than %d bytes: name the columns that you need, and shorten long ones, as LEFT(col, 1000)",
			a.bytes)
	}
	return w
}

func (a *sqlAnswer) refuse(err error) bool {
	a.refused = err
	return false
}

// size is what the answer takes now: the answer so far, and the row that is on its way,
// once as the driver holds it and once as it is going to be encoded.
func (a *sqlAnswer) size() int { return cap(a.json) + 2*a.arrivedOfRow }

// fits takes the memory for that.
func (a *sqlAnswer) fits() bool {
	if a.room.grow(a.size()) {
		return true
	}
	return a.refuse(fault.New(fault.RateLimit, "There are too many large answers at once. "+
		"Try again in a second, or ask for less: fewer rows, fewer or shorter columns.").
		With(map[string]any{"scope": "source", "retryAfter": 1}).After(time.Second))
}

func tooManyColumns() error {
	return sqlRefused("sql.columns", "the answer has more columns than Hub reads: name those that you need")
}

// end completes the document and hands it over, with the memory that it takes.
func (a *sqlAnswer) end() ReadSQLOut {
	a.json = strconv.AppendInt(append(a.json, `],"row_count":`...), int64(a.rows), 10)
	a.json = strconv.AppendBool(append(a.json, `,"truncated":`...), a.truncated)
	a.json = strconv.AppendInt(append(a.json, `,"row_limit":`...), int64(a.limit), 10)
	if a.truncatedHere != "" {
		a.json = append(append(append(a.json, `,"truncated_by":"`...), a.truncatedHere...), '"')
		a.warnings = append(a.warnings, a.readOn())
	}
	if len(a.warnings) > 0 {
		a.json = append(append(a.json, `,"warnings":`...), encoded(a.warnings)...)
	}
	a.json = append(a.json, '}')
	out := ReadSQLOut{data: a.json, rows: a.rows}
	if cap(a.json) <= keptBuffer {
		out.data = bytes.Clone(a.json) // the buffer serves the next answer
	} else {
		a.json = nil
	}
	out.memory = a.room.handOver(cap(out.data))
	return out
}

func (a *sqlAnswer) names() []string {
	names := make([]string, len(a.columns))
	for i, c := range a.columns {
		names[i] = c.Name
	}
	return names
}

// room is what an answer takes of the memory for all of them.
type room struct {
	of    *quota.Quota
	who   string
	taken int
	loan  *quota.Loan // nil while the answer is small
}

const (
	// roomFree is what an answer may take without being counted.
	roomFree = 64 << 10
	// roomStep is how much is taken at a time.
	roomStep = 256 << 10
)

// grow takes what is missing to size bytes; false when there is not enough.
func (r *room) grow(size int) bool {
	if size <= r.taken+roomFree {
		return true
	}
	if r.loan == nil {
		r.loan = r.of.Open(r.who)
	}
	more := (size - roomFree - r.taken + roomStep - 1) / roomStep * roomStep
	if !r.loan.TryTake(int64(more)) {
		return false
	}
	r.taken += more
	return true
}

// handOver leaves what size bytes need to whoever has them now; nil when that is nothing.
func (r *room) handOver(size int) *quota.Loan {
	if size <= roomFree {
		return nil
	}
	loan := r.loan
	if loan != nil {
		loan.Keep(int64(size))
	}
	r.loan = nil
	return loan
}

// leave gives back what has not been handed over.
func (r *room) leave() {
	if r.loan != nil {
		r.loan.Close()
		r.loan = nil
	}
}
