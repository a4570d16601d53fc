package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/query/sqlguard"
)

// StatementReader runs one statement that the guard accepted on a read-only session of
// the source, limited in time. Its errors are faults: E_DB_TIMEOUT, E_DB, and
// E_VALIDATION for what the server refuses. When it returns, nothing of the statement
// runs any more, or it has been killed.
type StatementReader interface {
	ReadStatement(ctx context.Context, s Statement, to RowWriter) error
}

// Statement is text to run.
type Statement struct {
	Text string
	// Most is how many rows the text itself yields at most; 0 when that is not known.
	Most int
}

// RowWriter takes what a statement answers.
type RowWriter interface {
	// Columns comes first, once.
	Columns([]ResultColumn)
	// Row takes a row as a JSON array, which it does not keep; false ends the reading.
	Row(array []byte) (more bool)
}

// ResultColumn is a column of an answer, named and typed as the server does.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// SQLAudit keeps the record of each statement.
type SQLAudit interface {
	// Record returns when the record is committed, or E_DB.
	Record(context.Context, SQLRecord) error
}

// SQLRecord is what the audit log keeps of one call of execute_read_sql.
type SQLRecord struct {
	Input    ReadSQLIn
	At       time.Time
	Took     time.Duration
	Err      error // the refusal or failure that the caller is answered
	Columns  []string
	RowCount int
	// Truncated tells whether the statement had more rows than the answer.
	Truncated bool
}

// SQLLimits bound execute_read_sql; each zero stands for its default.
type SQLLimits struct {
	// ResultBytes (HUB_MAX_RESULT_BYTES) bounds an answer; 16 MiB.
	ResultBytes int
	// Concurrent is how many statements run at once, 8; PerKey is how many of them may
	// be of one key, half of Concurrent. Fewer than the reader's sessions.
	Concurrent, PerKey int
	// Wait is how long a statement waits for its turn; 2 s.
	Wait time.Duration
}

const (
	defaultResultBytes = 16 << 20
	defaultConcurrent  = 8
	defaultWait        = 2 * time.Second
	// auditLimit bounds the wait for an audit row when the caller's own patience is over.
	auditLimit = 6 * time.Second
	// deadlineMargin is what a call may take beyond its statement's time (contract 1.8).
	deadlineMargin = 5 * time.Second
	// keptBuffer is the largest buffer that waits for another answer.
	keptBuffer = 4 << 20
)

// statements is execute_read_sql: guard, turn, statement, audit, answer.
type statements struct {
	guard     *sqlguard.Guard
	reader    StatementReader
	audit     SQLAudit
	rowLimit  int
	byteLimit int
	turns     *bulkhead
	now       func() time.Time
	answers   sync.Pool // *sqlAnswer
}

func newStatements(c Config) *statements {
	l := c.SQL
	if l.ResultBytes <= 0 {
		l.ResultBytes = defaultResultBytes
	}
	if l.Concurrent <= 0 {
		l.Concurrent = defaultConcurrent
	}
	if l.PerKey <= 0 {
		l.PerKey = max(l.Concurrent/2, 1)
	}
	if l.Wait <= 0 {
		l.Wait = defaultWait
	}
	if c.Guard == nil {
		c.Guard = sqlguard.Default(l.ResultBytes)
	}
	return &statements{guard: c.Guard, reader: c.Reader, audit: c.Audit, rowLimit: c.MaxRowLimit, byteLimit: l.ResultBytes, now: c.Now,
		turns: newBulkhead(l.Concurrent, l.PerKey, l.Wait), answers: sync.Pool{New: func() any { return &sqlAnswer{} }}}
}

// ReadSQLIn is the input of execute_read_sql.
type ReadSQLIn struct {
	SQL   string `json:"sql"`
	Limit int64  `json:"limit"`
}

// ReadSQLOut is the answer of execute_read_sql, written as JSON already.
type ReadSQLOut struct {
	data []byte
	rows int
}

// JSON is the answer's data.
func (o ReadSQLOut) JSON() []byte { return o.data }

// Count is the number of rows.
func (o ReadSQLOut) Count() int { return o.rows }

// ExecuteReadSQL runs one reading statement of the caller's. Whatever comes of it, its
// audit row is committed first; without the row there is no answer.
func (s *Service) ExecuteReadSQL(ctx context.Context, in ReadSQLIn) (ReadSQLOut, error) {
	return s.statements.execute(ctx, in)
}

func (s *statements) execute(ctx context.Context, in ReadSQLIn) (ReadSQLOut, error) {
	record := SQLRecord{Input: in, At: s.now()}
	answer := s.answers.Get().(*sqlAnswer)
	defer s.release(answer)
	answer.begin(int(min(in.Limit, int64(s.rowLimit))), s.byteLimit)

	record.Err = s.run(ctx, in.SQL, answer)
	if record.Err == nil {
		answer.end()
		record.Columns, record.RowCount, record.Truncated = answer.names(), answer.rows, answer.truncated
	}
	record.Took = s.now().Sub(record.At)
	// A caller who has gone away is in the log as well.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditLimit)
	defer cancel()
	if err := s.audit.Record(keep, record); err != nil {
		if record.Err != nil {
			// For the log alone: the code that the caller gets is the audit's.
			err = fmt.Errorf("%w (the statement itself: %s)", err, record.Err.Error())
		}
		return ReadSQLOut{}, err
	}
	if record.Err != nil {
		return ReadSQLOut{}, record.Err
	}
	return ReadSQLOut{data: bytes.Clone(answer.json), rows: answer.rows}, nil
}

// run judges the statement, waits for its turn and reads its rows.
func (s *statements) run(ctx context.Context, text string, answer *sqlAnswer) error {
	accepted, err := s.guard.Parse(text)
	var refusal *sqlguard.Refusal
	if errors.As(err, &refusal) {
		return sqlRefused(refusal.Rule, refusal.Message)
	}
	if err != nil {
		return err
	}
	key := sqlKey(ctx)
	if err := s.turns.enter(ctx, key); err != nil {
		if ctx.Err() != nil {
			return fault.New(fault.DB, "The caller went away before the statement's turn came.").Because(err)
		}
		return err
	}
	defer s.turns.leave(key)
	// One row more than the limit tells whether the answer is cut.
	var st Statement
	var edited bool
	if st.Text, edited = accepted.Capped(answer.limit + 1); edited {
		st.Most = answer.limit + 1
	}
	return s.reader.ReadStatement(ctx, st, answer)
}

func (s *statements) release(a *sqlAnswer) {
	if cap(a.json) > keptBuffer {
		a.json = nil
	}
	a.columns = nil
	s.answers.Put(a)
}

// sqlAnswer is an answer in the making. It implements RowWriter.
type sqlAnswer struct {
	limit, bytes  int
	columns       []ResultColumn
	json          []byte
	rows          int
	truncated     bool
	truncatedHere string // what cut the answer, other than the row limit
}

// tailSize is more than end appends.
const tailSize = 128

func (a *sqlAnswer) begin(limit, bytes int) {
	*a = sqlAnswer{limit: limit, bytes: bytes, json: a.json[:0]}
}

// Columns implements RowWriter.
func (a *sqlAnswer) Columns(columns []ResultColumn) {
	a.columns = columns
	a.json = append(a.json, `{"columns":`...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings always encode.
	_ = e.Encode(columns)
	a.json = append(append(a.json, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), `,"rows":[`...)
}

// Row implements RowWriter.
func (a *sqlAnswer) Row(array []byte) bool {
	switch {
	case a.rows == a.limit:
		a.truncated = true
		return false
	case len(a.json)+len(array)+tailSize > a.bytes:
		a.truncated, a.truncatedHere = true, "bytes"
		return false
	}
	if a.rows > 0 {
		a.json = append(a.json, ',')
	}
	a.json = append(a.json, array...)
	a.rows++
	return true
}

// end completes the document.
func (a *sqlAnswer) end() {
	a.json = strconv.AppendInt(append(a.json, `],"row_count":`...), int64(a.rows), 10)
	a.json = strconv.AppendBool(append(a.json, `,"truncated":`...), a.truncated)
	a.json = strconv.AppendInt(append(a.json, `,"row_limit":`...), int64(a.limit), 10)
	if a.truncatedHere != "" {
		a.json = append(append(append(a.json, `,"truncated_by":"`...), a.truncatedHere...), '"')
	}
	a.json = append(a.json, '}')
}

func (a *sqlAnswer) names() []string {
	names := make([]string, len(a.columns))
	for i, c := range a.columns {
		names[i] = c.Name
	}
	return names
}
