package statements

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/errno"
	"hub.internal/services/query/mysql/server"
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
	// killPoolSize is how many statements can be killed at a time, and one connection to
	// follow what they do.
	killPoolSize = 3
	// heavyLimit is the time of a heavy statement by default. MySQL holds the rows of JSON_ARRAYAGG and JSON_OBJECTAGG in
	// memory, 0.3 GB a second of a cross join, and no other limit of its own ends that.
	heavyLimit = time.Second
	// recursionLimit is for recursive CTEs: MariaDB ends them at 1,000 steps without an
	// error, so that the answer would be wrong. The statement's time limit bounds them.
	recursionLimit = "4294967295"
	// mostRecursion is how many steps they may take on MySQL, which ends them with an error of its own: what one that never
	// ends writes to the server's disk until the time limit is less then.
	mostRecursion = "1000000"
)

// ReaderOptions bound a Reader.
// The zero value is good for tests: each field has a default.
type ReaderOptions struct {
	// Timeout is the server's limit for a statement (MCP_QUERY_TIMEOUT_MS); 0 means 30 s.
	Timeout time.Duration
	// HeavyTimeout is that of a heavy statement, one of which runs at a time; 0 means one second. Timeout is the most.
	HeavyTimeout time.Duration
	// Sessions bounds the connections for statements; 0 means 12. It has to exceed the number of
	// statements that the service lets run at once. One of them is for the heavy statement. Two that prepare
	// doubtful statements and three for kills come on top.
	Sessions int
	// MaxRows is the greatest number of rows asked for (MCP_MAX_ROW_LIMIT); 0 means 1,000.
	MaxRows int
	// TmpBytes (HUB_SQL_TMP_BYTES) bounds the temporary space of a statement on the server's
	// disk, where the server can: of each temporary table on MariaDB, of all temporary tables
	// and files together since MariaDB 11.5; 0 means query.DefaultTmpBytes.
	TmpBytes int64
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
	server   *server.Server
	names    keptNames // of tables and columns, for messages
	ordinary statements
	heavy    statements
	groups   statements    // prepared alone, with ONLY_FULL_GROUP_BY
	place    chan struct{} // of the heavy statement
	kills    *sql.DB
	logger   *slog.Logger
	warm     sync.Once
	running  sync.WaitGroup
	overruns *overruns
	holes    metric.Int64Counter
}

// statements are those that share sessions and have the same time. The heavy ones have a session of their own: MySQL takes a
// thread for each connection, whose memory it rarely gives back, and so it is the same memory that each of them takes.
// A pool of database/sql opens sessions on demand (a lazy pool), keeps idle ones for five minutes and none longer than
// thirty.
type statements struct {
	db      *sql.DB
	timeout time.Duration
}

var _ query.StatementReader = (*Reader)(nil)

// NewReader returns a reader of the source. It does not wait for the database.
// The sessions are a bulkhead: one is kept for the heavy statement, two prepare doubtful statements, and kills have a pool
// of their own, since a KILL must not wait behind what it is to end.
func NewReader(s *server.Server, o ReaderOptions) *Reader {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Sessions <= 0 {
		o.Sessions = 12
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 1000
	}
	if o.TmpBytes <= 0 {
		o.TmpBytes = query.DefaultTmpBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	holes, err := otel.Meter("hub.internal/services/query/mysql/statements").Int64Counter("hub.sql.guard_hole",
		metric.WithDescription("Statements that the guard accepted and that the server refused as a write (1792) "+
			"or for lack of rights (1142, 1227)."))
	if err != nil {
		otel.Handle(err)
	}
	for _, number := range []int{errno.ReadOnlyTransaction, errno.TableDenied, errno.AccessNeeded} { // the first one is an increase
		holes.Add(context.Background(), 0, metric.WithAttributes(attribute.Int("db_errno", number)))
	}
	r := &Reader{server: s, logger: o.Logger, holes: holes, place: make(chan struct{}, 1)}
	r.ordinary = newStatements(s, o, o.Timeout, max(1, o.Sessions-1))
	r.heavy = newStatements(s, o, min(o.Timeout, cmp.Or(o.HeavyTimeout, heavyLimit)), 1)
	r.groups = newStatements(s, o, o.Timeout, 2, "ONLY_FULL_GROUP_BY")
	r.kills = s.NewPool(killPoolSize, killLimit)
	r.overruns = newOverruns(s, r.kills, r.logger)
	return r
}

// newStatements opens the sessions of statements that have the same time.
func newStatements(s *server.Server, o ReaderOptions, timeout time.Duration, most int, sqlModes ...string) statements {
	db := sql.OpenDB(&sessions{server: s, timeout: timeout, maxRows: o.MaxRows, tmpBytes: o.TmpBytes, sqlModes: sqlModes})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute)
	return statements{db, timeout}
}

// Close waits for the statements that run, kills included, and closes the sessions. For
// what does not end although it was killed it waits two seconds more.
func (r *Reader) Close() error {
	r.running.Wait()
	r.overruns.close()
	return errors.Join(r.ordinary.db.Close(), r.heavy.db.Close(), r.groups.db.Close(), r.kills.Close())
}

// Why a statement is stopped.
var (
	errDeadline = errors.New("the statement ran into its deadline")
	errEnough   = errors.New("no more rows are wanted")
)

// ReadStatement implements query.StatementReader.
// It returns nil when all rows were handed on, or when to wanted no more of them. Its faults are E_VALIDATION for what the
// server refuses of the statement, E_DB_TIMEOUT for one that ran too long, E_DB for a server or a session
// that is not to be had, and E_RATE_LIMIT where the place of a heavy statement stays taken. The statement's turn ends when
// it is known that nothing of it runs on the server, which may be after the return.
func (r *Reader) ReadStatement(ctx context.Context, st query.Statement, to query.RowWriter) error {
	r.running.Add(1)
	defer r.running.Done()
	r.warm.Do(func() { r.prepareKill(context.WithoutCancel(ctx)) })
	// The text may hold data; the audit log has it, under the same request id.
	start := time.Now()
	ctx, span := server.StartSpan(ctx, "a caller's statement")
	end := over
	defer func() {
		// What is unknown has gone to overruns, with its turn.
		if end != unknown && st.Turn != nil {
			st.Turn.End()
		}
	}()
	if st.Heavy {
		place, err := r.enterHeavy(ctx, st.Turn)
		if err != nil {
			server.EndSpan(span, err)
			return err
		}
		st.Turn = place
	}
	warned := r.whileItRuns(ctx, st)
	end, err := r.attempt(ctx, st, to)
	// A retry is safe: of a dead session nothing was sent, and nothing of an answer has been handed on.
	for tries := 1; end == unsent && tries < maxTries; tries++ {
		end, err = r.attempt(ctx, st, to)
	}
	server.EndSpan(span, err)
	r.server.Done(ctx, "caller", start, err)
	if err == nil {
		to.Warned(r.namedTexts(ctx, st.Quoted))
		to.Warned(<-warned)
	}
	return err
}

// ending is what is known of a statement whose reading has ended.
type ending int

const (
	over    ending = iota // nothing of it runs on the server
	unsent                // the session turned out to be dead before it was sent
	unknown               // it may run on; it is followed, and its turn with it
)

// prepareKill makes the first connection for kills, so that the first KILL does not have
// to, of a server that may be full by then.
// It runs once in the life of a reader, beside the first statement. A failure is logged and costs nothing else: KILL
// connects by itself then.
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

// attempt runs the statement once.
// A session that is not pristine is closed, and what it left behind with it, such as locks by name.
func (r *Reader) attempt(ctx context.Context, st query.Statement, to query.RowWriter) (end ending, err error) {
	checkout, cancel := context.WithTimeout(ctx, checkoutLimit)
	conn, err := r.kind(st).db.Conn(checkout)
	cancel()
	if err != nil {
		return over, sessionFault(ctx, err)
	}
	// Raw closes the connection when it is told that it is bad, which is how a session
	// that is not known to be pristine is kept from everybody else.
	end, err = unsent, driver.ErrBadConn
	_ = conn.Raw(func(c any) error {
		var pristine bool
		if pristine, end, err = r.run(ctx, c.(*session), st, to); pristine {
			return nil
		}
		return driver.ErrBadConn
	})
	_ = conn.Close()
	return end, r.judge(ctx, st, err)
}

// run reads the statement's rows. The session is pristine when the statement ended by
// itself, nobody has tried to stop it, and the next transaction is open.
func (r *Reader) run(ctx context.Context, s *session, st query.Statement, to query.RowWriter) (pristine bool, end ending, err error) {
	// The caller's end does not close the socket by itself: first the statement has to
	// be killed, while the connection is still known to be its.
	socket, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	f := &flight{id: s.id, request: caller.From(ctx).RequestID, start: time.Now(), turn: st.Turn, cancel: cancel, landed: make(chan struct{})}
	limit := r.kind(st).timeout
	deadline := time.AfterFunc(limit+ownDeadline, func() { r.stop(ctx, f, errDeadline) })
	defer deadline.Stop()
	unwatch := context.AfterFunc(ctx, func() { r.stop(ctx, f, ctx.Err()) })
	defer unwatch()

	s.wire.Meter = to
	whole, err := r.read(socket, s, st, to)
	s.wire.Meter = nil
	if s.wire.Cut {
		err = nil // the driver's, who knows nothing of it
	}
	// Rows that nobody wants are not read to the end: the KILL is cheaper than the network.
	if err == nil && !whole {
		r.stop(ctx, f, errEnough)
	}
	stopped := f.land()
	switch end = endingOf(whole, err); {
	case end == unknown:
		r.overruns.follow(f, stopped != nil)
	// The caller is gone, or the time is up: another try would only run for nobody.
	case end == unsent && stopped != nil:
		end = over // and not to be sent again
	}
	if stopped != nil && !errors.Is(stopped, errEnough) {
		err = stopped
	} else if time.Since(f.start) >= limit {
		// BENCHMARK and GET_LOCK end with a value, not an error, when time is up.
		err = errDeadline
	}
	if err != nil {
		return false, end, err
	}
	to.Ended()
	if !whole {
		return false, end, nil
	}
	// What is read is read: a session that cannot go on costs the connection only.
	renewal := time.AfterFunc(renewLimit, cancel)
	defer renewal.Stop()
	if s.wire.MayHaveWarned() {
		warnings, err := s.warnings(socket)
		if err != nil {
			return false, end, nil
		}
		to.Warned(warnings)
	}
	if st.Explain && s.exec(socket, s.limitRows) != nil {
		return false, end, nil
	}
	return s.chain == "" || s.exec(socket, s.chain) == nil, end, nil
}

// kind is what a statement is one of.
func (r *Reader) kind(st query.Statement) *statements {
	if st.Heavy {
		return &r.heavy
	}
	return &r.ordinary
}

// enterHeavy waits for the place of a heavy statement. What it returns is the statement's turn: its end frees
// the place, too.
// The wait is checkoutLimit at most, as for a session. Then it is E_RATE_LIMIT with a Retry-After of a second: the
// statement is right, and its time is not. The place is a semaphore of one for each reader, and so for each server.
func (r *Reader) enterHeavy(ctx context.Context, turn query.Turn) (query.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, checkoutLimit)
	defer cancel()
	select {
	case r.place <- struct{}{}:
		return heavyTurn{turn, r.place}, nil
	case <-ctx.Done():
		return nil, fault.New(fault.RateLimit, "Other statements that may take much of the source database's memory run now, one at a "+
			"time: those with JSON_ARRAYAGG, JSON_OBJECTAGG or long computed texts. Try again in a moment, or select the rows and "+
			"columns themselves.").With(map[string]any{"scope": "source", "retryAfter": 1}).After(time.Second).Because(ctx.Err())
	}
}

// heavyTurn is the turn of a heavy statement, and its place among those.
// One end for both keeps the order: the place is free before the next statement may take the turn.
type heavyTurn struct {
	query.Turn // nil when nobody waits for the end
	place      chan struct{}
}

// Overdue implements query.Turn.
func (g heavyTurn) Overdue() {
	if g.Turn != nil {
		g.Turn.Overdue()
	}
}

// End implements query.Turn.
func (g heavyTurn) End() {
	<-g.place
	if g.Turn != nil {
		g.Turn.End()
	}
}

// endingOf says what the end of the reading tells of the statement.
// An error packet and the last row are the server's word that the statement is over. Without it, as after a cut connection,
// it may run on.
func endingOf(whole bool, err error) ending {
	var answered *mysqldriver.MySQLError
	switch {
	case whole, errors.As(err, &answered): // an answer has come to its end
		return over
	case errors.Is(err, driver.ErrBadConn): // nothing was written to the connection
		return unsent
	}
	return unknown
}

// judge turns what ended a statement into what its caller is told.
// Errors that say something of the source and not of the statement (full, restarting, locked) are E_DB, which a client may
// repeat; a statement that the guard has let through and the server calls a write is counted as a hole in the guard, and is
// E_VALIDATION all the same: the session was READ ONLY, and nothing was written.
func (r *Reader) judge(ctx context.Context, st query.Statement, err error) error {
	var answered *mysqldriver.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDeadline):
		return r.timedOut(st, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.DBTimeout, "The call's deadline passed while the statement ran; it was stopped.").Because(err)
	case errors.Is(err, context.Canceled):
		return gone(err)
	case !errors.As(err, &answered):
		return server.Unavailable(err)
	}
	switch number := answered.Number; {
	case number == errno.StatementTimeMariaDB, number == errno.StatementTimeMySQL:
		return r.timedOut(st, err)
	case server.IsEnvironmental(err):
		return server.Unavailable(err)
	case tmpSpace[number]:
		return fault.New(fault.Validation, "The statement needs more temporary space on the source database than it may have. "+
			"Narrow it: filter before you group, sort or recurse, select fewer and shorter columns, or aggregate in steps.").
			With(refusal(answered.Number, "needs too much temporary space on the source database")).Because(err)
	case number == errno.ReadOnlyTransaction, number == errno.TableDenied, number == errno.AccessNeeded:
		r.holes.Add(ctx, 1, metric.WithAttributes(attribute.Int("db_errno", int(number))))
		r.logger.WarnContext(ctx, "a statement that the guard accepted was refused by the server", "db_errno", number, "error", answered.Message)
	}
	message := r.translate(ctx, st, answered)
	return fault.New(fault.Validation, "The source database refused the statement: %s.", strings.TrimSuffix(message, ".")).
		With(refusal(answered.Number, message)).Because(err)
}

// timedOut is E_DB_TIMEOUT of a statement that ran as long as it may. The same statement would again: so it is not retryable, and
// details say what to narrow.
func (r *Reader) timedOut(st query.Statement, err error) error {
	if st.Heavy {
		return fault.New(fault.DBTimeout, "The statement ran longer than the %s that one with JSON_ARRAYAGG, JSON_OBJECTAGG or long computed "+
			"texts may take, and was stopped: it may take much memory. Join with ON, filter, gather what a derived table has already "+
			"grouped or limited, or select the rows and columns themselves: the answer is JSON.", r.heavy.timeout).
			With(narrow(r.heavy.timeout, "join with ON", "filter", "gather what is grouped or limited already", "select the rows themselves")).
			Final().Because(err)
	}
	return fault.New(fault.DBTimeout,
		"The statement ran longer than %s and was stopped. Read less: filter on indexed columns, aggregate, or use EXPLAIN to see the plan.",
		r.ordinary.timeout).
		With(narrow(r.ordinary.timeout, "filter on indexed columns", "aggregate", "see its EXPLAIN")).Final().Because(err)
}

// narrow is the details of a statement that ran too long: how long it may, and what to do about it.
func narrow(timeout time.Duration, ways ...string) map[string]any {
	return map[string]any{"timeout_ms": timeout.Milliseconds(), "narrow": ways}
}

// gone is for the audit log: nobody is there to read it.
func gone(err error) error {
	return fault.New(fault.DB, "The caller went away before the statement ended; it was stopped.").Because(err)
}

// sessionFault is the fault of not getting a session: it is never the statement's.
// An account with more rights than SELECT is an operator's mistake, and Hub serves nothing with it.
func sessionFault(ctx context.Context, err error) error {
	var grants *server.GrantsError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return gone(err)
	case errors.As(err, &grants):
		return fault.New(fault.DB,
			"The source database is not served: its account may do more than read. An operator has to correct that.").Because(err)
	}
	return server.Unavailable(err)
}
