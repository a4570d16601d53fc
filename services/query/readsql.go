package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/quota"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/query/bulkhead"
	"hub.internal/services/query/sqlguard"
)

// StatementReader runs one statement that the guard accepted on a read-only session of
// the source, limited in time. Its errors are faults: E_DB_TIMEOUT, E_DB, and
// E_VALIDATION for what the server refuses. When it returns, nothing of the statement
// runs any more, or it has been killed; the statement's turn tells which.
type StatementReader interface {
	ReadStatement(ctx context.Context, s Statement, to RowWriter) error
}

// Statement is text to run.
type Statement struct {
	Text string
	// Written is the text as the caller wrote it, for messages; empty when it is Text.
	Written string
	// Quoted are texts in it that may have been meant as names of columns: those that are, are warned of.
	Quoted []string
	// Grouping says whether it may select what its groups do not determine: the server is asked then, and it is warned of.
	Grouping sqlguard.Grouping
	// Most is how many rows the text itself yields at most; 0 when that is not known.
	Most int
	// Explain says that it is an EXPLAIN or a DESCRIBE: no row limit of Hub's is in the plan that it tells.
	Explain bool
	// Heavy says that it may take much of the server's memory: it gets less time, and one runs at a time.
	Heavy bool
	// Turn is told of the statement's end on the server; nil when nobody waits for it.
	Turn Turn
}

// Turn is a statement's place among those that may run at once.
type Turn interface {
	// Overdue says that the statement has been killed and runs on. It comes at most once.
	Overdue()
	// End says that nothing of the statement runs on the server any more. It comes once,
	// as ReadStatement returns or later.
	End()
}

// RowWriter takes what a statement answers. It is not used after ReadStatement has
// returned.
type RowWriter interface {
	// Arrived tells that n more bytes of the answer have come from the server, before
	// anything is made of them; false ends the reading.
	Arrived(n int) (more bool)
	// Columns comes first. When it comes again, the statement has begun anew, on another server: what
	// came before counts no more.
	Columns([]ResultColumn)
	// Row takes a row; false ends the reading.
	Row(RowEncoder) (more bool)
	// Ended comes once, behind the rows of a statement that has ended well: only warnings may follow, and ReadStatement is going to
	// return nil. What can be done while the session is made ready for the next statement begins here.
	Ended()
	// Warned comes behind the rows, perhaps more than once.
	Warned([]tool.Warning)
}

// A RowEncoder appends a row as a JSON array. It gives up, and returns false, when the
// result would be longer than most bytes.
type RowEncoder func(to []byte, most int) (_ []byte, whole bool)

// ResultColumn is a column of an answer, named and typed as the server does.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// SQLAudit keeps the record of each statement.
type SQLAudit interface {
	// Away is nil, or E_DB while a record would not be kept. The call is then recorded as refused, when that can be again.
	Away(context.Context, ReadSQLIn) error
	// Record begins to write the record. The answer waits until it is committed.
	Record(context.Context, SQLRecord) audit.Committed
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
	// TmpBytes (HUB_SQL_TMP_BYTES) is what the reader lets a statement have of the server's
	// temporary space; DefaultTmpBytes. It is told to callers.
	TmpBytes int64
}

// DefaultTmpBytes is enough to group or sort some million rows, and eight times of it no harm
// to a disk.
const DefaultTmpBytes = 512 << 20

const (
	defaultResultBytes = 16 << 20
	defaultConcurrent  = 8
	defaultWait        = 2 * time.Second
	// auditLimit bounds the wait for an audit row when the caller's own patience is over.
	auditLimit = 6 * time.Second
	// memoryAnswers is how many of the largest answers there is memory for in all, and half of
	// them for those of a key; one counts three times while it is read. No less than
	// memoryLeast, so that a small answer is never refused for it.
	memoryAnswers = 12
	memoryLeast   = 4 << 20
	// deadlineMargin is what a call may take beyond its statement's time (CONTRACT.md 4.6).
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
	tmpLimit  int64
	turns     *bulkhead.Bulkhead
	memory    *quota.Quota // bytes
	now       func() time.Time
	// noticed tells what a statement may have meant otherwise, of an empty answer or another.
	noticed func(ctx context.Context, text string, empty bool) []tool.Warning
	answers sync.Pool // *sqlAnswer
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
	if l.TmpBytes <= 0 {
		l.TmpBytes = DefaultTmpBytes
	}
	if c.Guard == nil {
		c.Guard = sqlguard.Default(l.ResultBytes)
	}
	return &statements{guard: c.Guard, reader: c.Reader, audit: c.Audit, rowLimit: c.MaxRowLimit, byteLimit: l.ResultBytes,
		tmpLimit: l.TmpBytes, now: c.Now,
		turns: bulkhead.New(l.Concurrent, l.PerKey, l.Wait), memory: quota.New(int64(max(memoryAnswers*l.ResultBytes, memoryLeast))),
		answers: sync.Pool{New: func() any { return &sqlAnswer{} }}}
}

// ReadSQLIn is the input of execute_read_sql.
type ReadSQLIn struct {
	SQL   string `json:"sql"`
	Limit int64  `json:"limit"`
}

// ReadSQLOut is the answer of execute_read_sql, written as JSON already. Release has to be
// called when it is not needed any more: a large answer counts among those in memory until then.
type ReadSQLOut struct {
	data   []byte
	rows   int
	memory *quota.Loan // nil for a small one
}

// JSON is the answer's data.
func (o ReadSQLOut) JSON() []byte { return o.data }

// Count is the number of rows.
func (o ReadSQLOut) Count() int { return o.rows }

// Release frees what the answer takes.
func (o ReadSQLOut) Release() {
	if o.memory != nil {
		o.memory.Close()
	}
}

// ExecuteReadSQL runs one reading statement of the caller's. Whatever comes of it, its
// audit row is committed first; without the row there is no answer.
func (s *Service) ExecuteReadSQL(ctx context.Context, in ReadSQLIn) (ReadSQLOut, error) {
	return s.statements.execute(ctx, in)
}

func (s *statements) execute(ctx context.Context, in ReadSQLIn) (ReadSQLOut, error) {
	// An answer that would be withheld takes nobody's turn, and nothing of the source.
	if err := s.audit.Away(ctx, in); err != nil {
		return ReadSQLOut{}, err
	}
	record, key := SQLRecord{Input: in, At: s.now()}, caller.From(ctx).Account()
	answer := s.answers.Get().(*sqlAnswer)
	defer s.release(answer)
	most := s.byteLimit
	if n := tool.MostBytes(ctx); n > 0 {
		most = min(most, n)
	}
	answer.begin(int(min(in.Limit, int64(s.rowLimit))), most, room{of: s.memory, who: key})

	// The record is on its way when the last row is there.
	var committed audit.Committed
	begin := func(err error) {
		if record.Err = err; err == nil {
			record.Columns, record.RowCount, record.Truncated = answer.names(), answer.rows, answer.truncated
		}
		record.Took = s.now().Sub(record.At)
		committed = s.audit.Record(ctx, record)
	}
	answer.ended = func() { begin(answer.refused) }
	var out ReadSQLOut
	err := s.run(ctx, key, in.SQL, answer)
	if committed == nil {
		begin(err)
	}
	if err == nil {
		out = answer.end()
	}
	// A caller who has gone away is in the log as well.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditLimit)
	defer cancel()
	if err := committed(keep); err != nil {
		out.Release()
		if record.Err != nil {
			// For the log alone: the code that the caller gets is the audit's.
			err = fmt.Errorf("%w (the statement itself: %s)", err, record.Err.Error())
		}
		return ReadSQLOut{}, err
	}
	return out, record.Err
}

// run judges the statement, waits for its turn and reads its rows.
func (s *statements) run(ctx context.Context, key, text string, answer *sqlAnswer) error {
	accepted, err := s.guard.Parse(text)
	var refusal *sqlguard.Refusal
	if errors.As(err, &refusal) {
		return sqlRefused(refusal.Rule, refusal.Message)
	}
	if err != nil {
		return err
	}
	turn, err := s.turns.Enter(ctx, key)
	if err != nil {
		if ctx.Err() != nil {
			return fault.New(fault.DB, "The caller went away before the statement's turn came.").Because(err)
		}
		return err
	}
	// One row more than the limit tells whether the answer is cut.
	st := Statement{Written: text, Turn: turn, Heavy: accepted.Heavy(), Explain: accepted.Kind() == sqlguard.Explain}
	var noticed []sqlguard.Notice
	noticed, st.Quoted = accepted.Noticed()
	st.Grouping = accepted.Grouping()
	answer.offset = accepted.Offset()
	var edited bool
	if st.Text, edited = accepted.Capped(answer.limit + 1); edited {
		st.Most = answer.limit + 1
	}
	if err := s.reader.ReadStatement(ctx, st, answer); err != nil {
		return err
	}
	for _, n := range noticed {
		answer.Warned([]tool.Warning{{Rule: n.Rule, Message: n.Message}})
	}
	if accepted.Kind() == sqlguard.Select {
		answer.add(s.noticed(ctx, text, answer.empty()))
	}
	return answer.refused
}

func (s *statements) release(a *sqlAnswer) {
	if cap(a.json) > keptBuffer {
		a.json = nil
	}
	a.room.leave()
	a.columns, a.ended = nil, nil
	s.answers.Put(a)
}

// sqlRefused is the answer to a statement that the guard refuses.
func sqlRefused(rule, message string) error {
	return fault.New(fault.Validation, "The statement is refused (%s): %s.", rule, message).
		With(map[string]any{"violations": []schema.Violation{{Path: "/sql", Rule: rule, Message: message}}})
}

// AuditLog is the part of audit.Log that keeps statements.
type AuditLog interface {
	Away() error
	Queue(audit.Entry)
	Begin(context.Context, audit.Entry) audit.Committed
}

// AuditTo returns the record of statements that an audit log keeps.
func AuditTo(log AuditLog) SQLAudit { return sqlAudit{log} }

type sqlAudit struct{ log AuditLog }

type sqlDetail struct {
	SQL       string   `json:"sql"`
	Columns   []string `json:"columns"`
	RowCount  int      `json:"row_count"`
	Truncated bool     `json:"truncated"`
	// Refused is what the caller was told; absent of a success.
	Refused *audit.Told `json:"refused,omitempty"`
}

// hashOf is the hash of the input as its schema reads it, defaults filled in: the same call has the same hash.
func hashOf(in ReadSQLIn) ([]byte, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("input of %s: %w", toolExecuteReadSQL, err)
	}
	return audit.HashInput(input), nil
}

// Away implements SQLAudit. The statement is not in the record of a refused call: it did not run, and many of them are to wait.
func (a sqlAudit) Away(ctx context.Context, in ReadSQLIn) error {
	away := a.log.Away()
	if away == nil {
		return nil
	}
	hash, err := hashOf(in)
	if err != nil {
		return err
	}
	a.log.Queue(audit.Entry{At: time.Now(), Caller: caller.From(ctx), Tool: toolExecuteReadSQL, Outcome: audit.Outcome(away),
		InputHash: hash, TraceID: audit.TraceID(ctx), Detail: audit.Refusal{Refused: audit.ToldOf(away)}})
	return away
}

// Record implements SQLAudit.
func (a sqlAudit) Record(ctx context.Context, r SQLRecord) audit.Committed {
	if r.Columns == nil {
		r.Columns = []string{}
	}
	hash, err := hashOf(r.Input)
	if err != nil {
		return func(context.Context) error { return err }
	}
	return a.log.Begin(ctx, audit.Entry{
		At: r.At, Caller: caller.From(ctx), Tool: toolExecuteReadSQL, Outcome: audit.Outcome(r.Err), Count: r.RowCount, Took: r.Took,
		InputHash: hash,
		Detail:    sqlDetail{SQL: r.Input.SQL, Columns: r.Columns, RowCount: r.RowCount, Truncated: r.Truncated, Refused: audit.ToldOf(r.Err)},
	})
}
