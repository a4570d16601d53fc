package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/query"
)

const (
	// ownDeadline is how much later than the server's own limit Hub stops a statement.
	ownDeadline = 250 * time.Millisecond
	// checkoutLimit bounds the wait for a session, making one included.
	checkoutLimit = 5 * time.Second
	// renewLimit bounds the end of a session's transaction: the answer waits for it.
	renewLimit = 250 * time.Millisecond
	// maxTries is how many sessions in a row may turn out to be dead.
	maxTries = 3
	// killPoolSize is how many statements can be killed at a time.
	killPoolSize = 2
	// recursionLimit is for recursive CTEs: MariaDB ends them at 1,000 steps without an
	// error, so that the answer would be wrong. The statement's time limit bounds them.
	recursionLimit = "4294967295"
)

// ReaderOptions bound a Reader.
type ReaderOptions struct {
	// Timeout is the server's limit for a statement (MCP_QUERY_TIMEOUT_MS); 0 means 30 s.
	Timeout time.Duration
	// Sessions bounds the connections; 0 means 12. It has to exceed the number of
	// statements that the service lets run at once.
	Sessions int
	// MaxRows is the greatest number of rows asked for (MCP_MAX_ROW_LIMIT); 0 means 1,000.
	MaxRows int
	// Logger hears of what nobody is answered; nil discards.
	Logger *slog.Logger
}

// Reader runs the statements of callers, each on a session of its own making: READ
// ONLY by session and by transaction, limited in time by the server, by a deadline of
// Hub's and by the caller's patience. It implements query.StatementReader.
//
// A session waits in the pool inside an open READ ONLY transaction, which holds neither
// snapshot nor lock before its first read: after a statement, ROLLBACK AND CHAIN ends
// its transaction and opens the next one in a single round trip (23 µs beside 46 for
// two; doing it behind the answer's back cost more than it saved). A session goes back
// into the pool only if its statement ended by itself, without an error and with every
// row read. After anything else the connection is closed.
type Reader struct {
	db      *sql.DB
	kills   *sql.DB
	timeout time.Duration
	logger  *slog.Logger
	warm    sync.Once
	running sync.WaitGroup
	rows    sync.Pool // *[]byte, the row being encoded
	holes   metric.Int64Counter
}

var _ query.StatementReader = (*Reader)(nil)

// NewReader returns a reader of the source. It does not wait for the database.
func NewReader(s *Source, o ReaderOptions) *Reader {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Sessions <= 0 {
		o.Sessions = 12
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 1000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	holes, err := otel.Meter("hub.internal/services/query/mysql").Int64Counter("hub.sql.guard_hole",
		metric.WithDescription("Statements that the guard accepted and that the server refused as a write (1792) or for lack of rights (1142, 1227)."))
	if err != nil {
		otel.Handle(err)
	}
	r := &Reader{timeout: o.Timeout, logger: o.Logger, holes: holes, rows: sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}}
	r.db = sql.OpenDB(&sessions{server: s.server, timeout: o.Timeout, maxRows: o.MaxRows})
	r.db.SetMaxOpenConns(o.Sessions)
	r.db.SetMaxIdleConns(o.Sessions)
	r.db.SetConnMaxIdleTime(5 * time.Minute)
	r.db.SetConnMaxLifetime(30 * time.Minute)
	r.kills = s.newPool(killPoolSize, killLimit, nil)
	return r
}

// Close waits for the statements that run, kills included, and closes the sessions.
func (r *Reader) Close() error {
	r.running.Wait()
	return errors.Join(r.db.Close(), r.kills.Close())
}

// Why a statement is stopped.
var (
	errDeadline = errors.New("the statement ran into its deadline")
	errEnough   = errors.New("no more rows are wanted")
)

// ReadStatement implements query.StatementReader.
func (r *Reader) ReadStatement(ctx context.Context, st query.Statement, to query.RowWriter) error {
	r.running.Add(1)
	defer r.running.Done()
	r.warm.Do(func() { r.prepareKill(context.WithoutCancel(ctx)) })
	// The text may hold data; the audit log has it, under the same request id.
	ctx, span := startSpan(ctx, "a caller's statement")
	stale, err := r.attempt(ctx, st, to)
	for tries := 1; stale && tries < maxTries; tries++ {
		stale, err = r.attempt(ctx, st, to)
	}
	endSpan(span, err)
	return err
}

// prepareKill makes the first connection for kills, so that the first KILL does not have
// to, of a server that may be full by then.
func (r *Reader) prepareKill(ctx context.Context) {
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		ctx, cancel := context.WithTimeout(ctx, killLimit)
		defer cancel()
		if err := r.kills.PingContext(ctx); err != nil {
			r.logger.WarnContext(ctx, "no connection to kill statements with yet", "error", err)
		}
	}()
}

// attempt runs the statement once. It is stale when the session turned out to be dead
// before the statement was sent.
func (r *Reader) attempt(ctx context.Context, st query.Statement, to query.RowWriter) (stale bool, err error) {
	checkout, cancel := context.WithTimeout(ctx, checkoutLimit)
	conn, err := r.db.Conn(checkout)
	cancel()
	if err != nil {
		return false, sessionFault(ctx, err)
	}
	err = driver.ErrBadConn
	// Raw closes the connection when it is told that it is bad, which is how a session
	// that is not known to be pristine is kept from everybody else.
	_ = conn.Raw(func(c any) error {
		var pristine bool
		if pristine, err = r.run(ctx, c.(*session), st, to); pristine {
			return nil
		}
		return driver.ErrBadConn
	})
	_ = conn.Close()
	return errors.Is(err, driver.ErrBadConn), r.judge(ctx, err)
}

// run reads the statement's rows. The session is pristine when the statement ended by
// itself, nobody has tried to stop it, and the next transaction is open.
func (r *Reader) run(ctx context.Context, s *session, st query.Statement, to query.RowWriter) (pristine bool, err error) {
	// The caller's end does not close the socket by itself: first the statement has to
	// be killed, while the connection is still known to be its.
	socket, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	f := &flight{id: s.id, cancel: cancel, landed: make(chan struct{})}
	start := time.Now()
	deadline := time.AfterFunc(r.timeout+ownDeadline, func() { r.stop(ctx, f, errDeadline) })
	defer deadline.Stop()
	unwatch := context.AfterFunc(ctx, func() { r.stop(ctx, f, ctx.Err()) })
	defer unwatch()

	whole, err := r.read(socket, s, st, to)
	if err == nil && !whole {
		r.stop(ctx, f, errEnough)
	}
	stopped := f.land()
	switch {
	case stopped != nil && !errors.Is(stopped, errEnough):
		return false, stopped
	case time.Since(start) >= r.timeout:
		// BENCHMARK and GET_LOCK end with a value, not an error, when time is up.
		return false, errDeadline
	}
	if err != nil || !whole || s.chain == "" {
		return err == nil && whole, err
	}
	// What is read is read: a session that cannot go on costs the connection only.
	renewal := time.AfterFunc(renewLimit, cancel)
	defer renewal.Stop()
	return s.exec(socket, s.chain) == nil, nil
}

// read hands the rows on, and tells whether it has read them all.
func (r *Reader) read(ctx context.Context, s *session, st query.Statement, to query.RowWriter) (whole bool, err error) {
	rows, err := s.Conn.(driver.QueryerContext).QueryContext(ctx, st.Text, nil)
	if err != nil {
		return false, err
	}
	names, types := rows.Columns(), rows.(driver.RowsColumnTypeDatabaseTypeName)
	columns, encoders := make([]query.ResultColumn, len(names)), make([]encoder, len(names))
	for i, name := range names {
		kind := kindOf(types.ColumnTypeDatabaseTypeName(i))
		columns[i], encoders[i] = query.ResultColumn{Name: name, Type: kind.name}, kind.encode
	}
	to.Columns(columns)

	buffer := r.rows.Get().(*[]byte)
	row := *buffer
	defer func() { *buffer = row[:0]; r.rows.Put(buffer) }()
	values := make([]driver.Value, len(names))
	for n := 1; ; n++ {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return true, rows.Close()
		} else if err != nil {
			return false, err
		}
		row = append(row[:0], '[')
		for i, v := range values {
			if i > 0 {
				row = append(row, ',')
			}
			if v == nil {
				row = append(row, "null"...)
			} else {
				row = encoders[i](row, v)
			}
		}
		row = append(row, ']')
		if to.Row(row) {
			continue
		}
		// The statement's LIMIT ends here: what follows can only be its end.
		if n == st.Most && errors.Is(rows.Next(values), io.EOF) {
			return true, rows.Close()
		}
		return false, nil // Close would read on to the end
	}
}

// judge turns what ended a statement into what its caller is told.
func (r *Reader) judge(ctx context.Context, err error) error {
	var answered *mysqldriver.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDeadline):
		return r.timedOut(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.DBTimeout, "The call's deadline passed while the statement ran; it was stopped.").Because(err)
	case errors.Is(err, context.Canceled):
		return gone(err)
	case !errors.As(err, &answered):
		return unavailable(err)
	}
	switch number := answered.Number; {
	case number == errStatementTimeMariaDB, number == errStatementTimeMySQL:
		return r.timedOut(err)
	case environmental[number]:
		return unavailable(err)
	case number == errReadOnlyTransaction, number == errTableDenied, number == errAccessNeeded:
		r.holes.Add(ctx, 1, metric.WithAttributes(attribute.Int("db_errno", int(number))))
		r.logger.WarnContext(ctx, "a statement that the guard accepted was refused by the server", "db_errno", number, "error", answered.Message)
	}
	return fault.New(fault.Validation, "The source database refused the statement: %s", answered.Message).
		With(statementDetails{DBErrno: answered.Number, Violations: []schema.Violation{{Path: "/sql", Rule: "sql.server", Message: answered.Message}}}).
		Because(err)
}

// Refusals of a statement that the guard accepted: each is counted, for an alarm.
const (
	errReadOnlyTransaction = 1792
	errAccessNeeded        = 1227
)

// environmental are the errors that say something of the server, not of the statement.
var environmental = map[uint16]bool{
	errTooManyConnections: true, errAccessDenied: true, errUnknownDatabase: true, errShutdown: true, errTooManyUserConns: true,
	errLockWaitTimeout: true, errDeadlock: true, errUserLimit: true, errKilled: true, errConnectionKilled: true,
	1021: true, 1030: true, 1037: true, 1038: true, 1041: true, // disk full, storage engine, memory
	1034: true, 1035: true, 1194: true, 1195: true, // a damaged table
	1152: true, 1153: true, 1158: true, 1159: true, 1160: true, 1161: true, 1184: true, // the connection
	1114: true, 1135: true, 1180: true, 1206: true, // temporary space, threads, transactions
}

type statementDetails struct {
	DBErrno    uint16             `json:"db_errno"`
	Violations []schema.Violation `json:"violations"`
}

func (r *Reader) timedOut(err error) error {
	return fault.New(fault.DBTimeout, "The statement ran longer than %s and was stopped. Read less: filter on indexed columns, aggregate, or use EXPLAIN to see the plan.", r.timeout).Because(err)
}

// gone is for the audit log: nobody is there to read it.
func gone(err error) error {
	return fault.New(fault.DB, "The caller went away before the statement ended; it was stopped.").Because(err)
}

// sessionFault is the fault of not getting a session: it is never the statement's.
func sessionFault(ctx context.Context, err error) error {
	var grants *GrantsError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return gone(err)
	case errors.As(err, &grants):
		return fault.New(fault.DB, "The source database is not served: its account may do more than read. An operator has to correct that.").Because(err)
	}
	return unavailable(err)
}

// sessions makes read-only sessions.
type sessions struct {
	server  *server
	timeout time.Duration
	maxRows int
}

// session is a connection whose id is known.
type session struct {
	driver.Conn
	id    uint64
	chain string // ends the transaction and begins the next one; empty where there are none
}

// Driver implements driver.Connector.
func (c *sessions) Driver() driver.Driver { return mysqldriver.MySQLDriver{} }

// Connect implements driver.Connector: it connects, arms the session, and reads back
// that it is armed.
func (c *sessions) Connect(ctx context.Context) (driver.Conn, error) {
	dialect, err := c.server.prove(ctx)
	if err != nil {
		return nil, err
	}
	config := c.server.config.Clone()
	if config.MultiStatements || config.AllowAllFiles {
		return nil, errors.New("mysql: multiple statements and local files must be off")
	}
	config.InterpolateParams = false // a caller's text goes as it is
	config.Params = sessionOf(dialect, c.timeout)
	maps.Copy(config.Params, c.more(dialect))
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		var answered *mysqldriver.MySQLError
		if errors.As(err, &answered) && answered.Number == errUnknownVariable {
			c.server.forget() // another server is behind the address now
		}
		return nil, err
	}
	s := &session{Conn: conn}
	if err := s.arm(ctx, dialect, c.timeout); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// more are the variables of a session for callers' statements. sql_select_limit is a
// second belt: it bounds a SELECT without a LIMIT, and leaves what the greatest
// row_limit and its probe row need.
func (c *sessions) more(d Dialect) map[string]string {
	v := map[string]string{"sql_select_limit": strconv.Itoa(c.maxRows + 1)}
	switch d {
	case MariaDB:
		v["max_recursive_iterations"] = recursionLimit
		v["idle_readonly_transaction_timeout"] = "0" // a session waits inside a transaction that holds nothing
		v["idle_transaction_timeout"] = "0"
	case MySQL:
		v["cte_max_recursion_depth"] = recursionLimit
	case TiDB:
		v["cte_max_recursion_depth"] = recursionLimit
	}
	return v
}

// arm makes the session READ ONLY, opens a READ ONLY transaction in it and reads back
// what the safety of it all rests on.
func (s *session) arm(ctx context.Context, d Dialect, timeout time.Duration) error {
	check := "SELECT CONNECTION_ID(), @@sql_mode, @@max_execution_time, @@transaction_read_only, 1"
	switch d {
	case MariaDB:
		check = "SELECT CONNECTION_ID(), @@sql_mode, ROUND(@@max_statement_time * 1000), @@tx_read_only, @@in_transaction"
	case TiDB: // has no read-only sessions; the account's grants hold alone
		check = "SELECT CONNECTION_ID(), @@sql_mode, @@max_execution_time, 1, 1"
	}
	if d != TiDB {
		s.chain = "ROLLBACK AND CHAIN"
		// The isolation level keeps a SERIALIZABLE server from locking what is read.
		for _, statement := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "START TRANSACTION READ ONLY"} {
			if err := s.exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	rows, err := s.Conn.(driver.QueryerContext).QueryContext(ctx, check, nil)
	if err != nil {
		return fmt.Errorf("reading the session back: %w", err)
	}
	values := make([]driver.Value, 5)
	if err := rows.Next(values); err != nil {
		return fmt.Errorf("reading the session back: %w", err)
	}
	var read [5]string
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		read[i] = fmt.Sprint(v)
	}
	if err := rows.Close(); err != nil {
		return err
	}
	if s.id, err = strconv.ParseUint(read[0], 10, 64); err != nil {
		return fmt.Errorf("connection id: %w", err)
	}
	mode := "," + strings.ToUpper(read[1]) + ","
	for _, bad := range []string{"ANSI", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "PIPES_AS_CONCAT", "IGNORE_SPACE"} {
		if strings.Contains(mode, ","+bad+",") {
			return fmt.Errorf("the session has sql_mode %s, which reads text otherwise than the guard does", bad)
		}
	}
	limit, err := strconv.ParseFloat(read[2], 64)
	if err != nil || limit != float64(max(timeout.Milliseconds(), 1)) {
		return fmt.Errorf("the session's statement timeout is %s ms, not %s", read[2], timeout)
	}
	if read[3] != "1" || read[4] != "1" {
		return errors.New("the session is not READ ONLY")
	}
	return nil
}

func (s *session) exec(ctx context.Context, statement string) error {
	_, err := s.Conn.(driver.ExecerContext).ExecContext(ctx, statement, nil)
	return err
}

// ResetSession implements driver.SessionResetter: it finds out whether the connection
// has died in the pool.
func (s *session) ResetSession(ctx context.Context) error {
	return s.Conn.(driver.SessionResetter).ResetSession(ctx)
}

// IsValid implements driver.Validator.
func (s *session) IsValid() bool { return s.Conn.(driver.Validator).IsValid() }
