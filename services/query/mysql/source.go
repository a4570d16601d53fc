// Package mysql reads the marketplace's database: MariaDB, MySQL 8 or TiDB. Each
// method has its SQL beside it. It refuses to write: every session is read-only, and
// an account that may do more than read is not used at all.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/query"
)

// Dialect is the kind of server, as its version says it.
type Dialect string

// The dialects. They differ in the names of session variables and in how
// information_schema writes things down.
const (
	MariaDB Dialect = "mariadb"
	MySQL   Dialect = "mysql"
	TiDB    Dialect = "tidb"
)

func dialectOf(version string) Dialect {
	switch v := strings.ToLower(version); {
	case strings.Contains(v, "mariadb"):
		return MariaDB
	case strings.Contains(v, "tidb"):
		return TiDB
	}
	return MySQL
}

// Options bound a Source.
type Options struct {
	// PoolSize bounds the connections for the fixed statements; 0 means 16.
	PoolSize int
	// StatementTimeout is the server's own limit for one of them; 0 means DefaultStatementTimeout.
	StatementTimeout time.Duration
	// Functions are the stored functions (HUB_SQL_FUNCTIONS) on which the account may hold EXECUTE.
	Functions []string
	// Replica lets the account hold the right to see how far the server lags behind.
	Replica bool
	// Setting names where the data source name comes from, for messages; empty means HUB_SOURCE_DSN.
	Setting string
}

// DefaultStatementTimeout is a little less than the deadline of a call, so that the
// server gives up before Hub does and nothing is left running.
const DefaultStatementTimeout = 9500 * time.Millisecond

const (
	dialTimeout = 3 * time.Second
	// lockWait bounds the wait for metadata and row locks, in seconds.
	lockWait = 5
	// sqlMode is pinned: it decides how the guard's lexer and the server read text.
	sqlMode = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)

// Source is the marketplace's database. It implements query.Source.
type Source struct {
	server *server
	db     *sql.DB
	kept   keptNames
	calls  *telemetry.Dependency
}

var _ query.Source = (*Source)(nil)

// Open returns a Source. It does not wait for the database: the first connection
// finds out what server this is and proves that its account can only read.
func Open(dsn string, o Options) (*Source, error) {
	setting := cmp.Or(o.Setting, "HUB_SOURCE_DSN")
	config, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		// The parser's error may quote the DSN with its password.
		return nil, errors.New(setting + " is not a data source name such as user:password@tcp(host:3306)/database")
	}
	if config.DBName == "" {
		return nil, errors.New(setting + " names no database")
	}
	if o.PoolSize <= 0 {
		o.PoolSize = 16
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = DefaultStatementTimeout
	}
	for name := range config.Params {
		return nil, fmt.Errorf("%s sets the session variable %s; Hub sets its own", setting, name)
	}
	// What safety and meaning rest on is not for the DSN to say.
	config.MultiStatements = false
	config.AllowAllFiles = false
	config.ParseTime = false
	config.InterpolateParams = true // one round trip a statement
	config.Loc = time.UTC
	config.Timeout = dialTimeout
	config.ClientFoundRows = false
	config.ColumnsWithAlias = false
	config.Logger = &mysqldriver.NopLogger{} // what it prints, it returns too
	// Compressed, a few bytes of the network would be many of memory.
	if err := config.Apply(mysqldriver.Charset("utf8mb4", "utf8mb4_general_ci"), mysqldriver.EnableCompression(false)); err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	s := &Source{server: &server{config: config, functions: o.Functions, replica: o.Replica}, calls: telemetry.NewDependency("source")}
	s.db = s.newPool(o.PoolSize, o.StatementTimeout)
	return s, nil
}

// DB is the pool of the fixed statements.
func (s *Source) DB() *sql.DB { return s.db }

// Addr is the server's address, such as host:3306.
func (s *Source) Addr() string { return s.server.config.Addr }

// Database is the name of the source's schema.
func (s *Source) Database() string { return s.server.config.DBName }

// Dialect is the server's kind; it connects when nobody has yet.
func (s *Source) Dialect(ctx context.Context) (Dialect, error) {
	p, err := s.server.prove(ctx)
	if err != nil {
		return "", Fault(ctx, err)
	}
	return p.dialect, nil
}

// Prove connects and returns nil when the account can only read, a *GrantsError when
// it may do more, or E_DB when the database cannot be reached.
func (s *Source) Prove(ctx context.Context) error {
	_, err := s.Dialect(ctx)
	return err
}

// Ping asks the server whether it answers statements.
func (s *Source) Ping(ctx context.Context) error {
	return s.query(ctx, `SELECT 1`, nil, func(*sql.Rows) error { return nil })
}

// Close closes the pool.
func (s *Source) Close() error { return s.db.Close() }

// newPool returns a pool of read-only sessions. Each statement in it is limited to
// timeout by the server.
func (s *Source) newPool(size int, timeout time.Duration) *sql.DB {
	db := sql.OpenDB(&connector{server: s.server, timeout: timeout})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute)
	return db
}

// server is what the pools of a Source have in common.
type server struct {
	config    *mysqldriver.Config // without session variables: they depend on the dialect
	functions []string
	replica   bool // the account may see the server's lag

	mu    sync.Mutex
	proof *proof // nil before the first attempt and after a failed one
}

// proof is an attempt to find out what server this is and what its account may do.
type proof struct {
	done    chan struct{} // closed when the attempt has ended
	dialect Dialect
	// tmpLimits are the variables by which a session's temporary space is bounded, as far
	// as this server has them and lets the account set them.
	tmpLimits []string
	err       error
}

// prove finds out, once, what server this is and what its account may do. Callers
// that come meanwhile share the attempt and its outcome.
func (s *server) prove(ctx context.Context) (*proof, error) {
	s.mu.Lock()
	p, mine := s.proof, false
	if p == nil {
		p, mine = &proof{done: make(chan struct{})}, true
		s.proof = p
	}
	s.mu.Unlock()
	if mine {
		// Others wait for this attempt: the end of one call must not fail theirs.
		if p.err = connecting(s.attempt(context.WithoutCancel(ctx), p)); p.err != nil {
			s.forget()
		}
		close(p.done)
	}
	select {
	case <-p.done:
		return p, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) attempt(ctx context.Context, p *proof) error {
	c, err := mysqldriver.NewConnector(s.config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(c)
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	p.dialect = dialectOf(version)
	if err := checkGrants(ctx, db, p.dialect, s.functions, s.replica); err != nil {
		return err
	}
	p.tmpLimits, err = tmpLimits(ctx, db)
	return err
}

// tmpLimits tries which of the variables the account may set here. MariaDB has the first,
// for each temporary table by itself, and since 11.5 the second, for all temporary tables
// and files of a session together; MySQL and TiDB have none.
func tmpLimits(ctx context.Context, db *sql.DB) (names []string, err error) {
	for _, name := range []string{"tmp_disk_table_size", "max_tmp_session_space_usage"} {
		_, err := db.ExecContext(ctx, fmt.Sprintf("SET SESSION %[1]s = @@SESSION.%[1]s", name))
		var refused *mysqldriver.MySQLError
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.As(err, &refused):
			return nil, err
		}
	}
	return names, nil
}

// connect opens a connection whose incoming bytes can be counted.
func (s *server) connect(ctx context.Context, config *mysqldriver.Config) (driver.Conn, *wire, error) {
	var w *wire
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w = &wire{Conn: conn}
		return w, nil
	}
	c, err := mysqldriver.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	conn, err := c.Connect(ctx)
	var answered *mysqldriver.MySQLError
	if errors.As(err, &answered) && answered.Number == errUnknownVariable {
		s.forget() // another server is behind the address now
	}
	return conn, w, connecting(err)
}

// forget makes the next connection prove anew.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proof = nil
}

// connector makes read-only sessions.
type connector struct {
	server  *server
	timeout time.Duration
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	p, err := c.server.prove(ctx)
	if err != nil {
		return nil, err
	}
	config := c.server.config.Clone()
	config.Params = sessionOf(p.dialect, c.timeout)
	conn, w, err := c.server.connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return &metered{driverConn: conn.(driverConn), wire: w}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return mysqldriver.MySQLDriver{} }

// sessionOf are the variables of each session: read-only, limited, and the same
// reading of text and time on every server.
func sessionOf(d Dialect, timeout time.Duration) map[string]string {
	v := map[string]string{
		"time_zone":                "'+00:00'",
		"sql_mode":                 "'" + sqlMode + "'",
		"innodb_lock_wait_timeout": strconv.Itoa(lockWait),
	}
	switch d {
	case MariaDB:
		v["tx_read_only"] = "1"
		v["lock_wait_timeout"] = strconv.Itoa(lockWait)
		v["max_statement_time"] = strconv.FormatFloat(timeout.Seconds(), 'f', 3, 64)
	case MySQL:
		v["transaction_read_only"] = "1"
		v["lock_wait_timeout"] = strconv.Itoa(lockWait)
		v["max_execution_time"] = strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)
		// The estimates of information_schema.tables as of now, not of yesterday.
		v["information_schema_stats_expiry"] = "0"
	case TiDB:
		// TiDB has no read-only sessions: the account's grants hold alone.
		v["max_execution_time"] = strconv.FormatInt(max(timeout.Milliseconds(), 1), 10)
	}
	return v
}

// query runs one of this package's statements, hands over its rows one by one, and
// turns an error into its fault.
func (s *Source) query(ctx context.Context, statement string, args []any, row func(*sql.Rows) error) error {
	start := time.Now()
	ctx, span := startSpan(ctx, statement)
	err := s.rows(ctx, statement, args, row)
	endSpan(span, err)
	err = Fault(ctx, err)
	s.calls.Done(ctx, "fixed", start, telemetry.Outcome(err))
	return err
}

func (s *Source) rows(ctx context.Context, statement string, args []any, row func(*sql.Rows) error) (err error) {
	m := &fixedMeter{}
	defer func() {
		if m.cut {
			err = tooLarge(err)
		}
	}()
	rows, err := s.db.QueryContext(withFixedMeter(ctx, m), statement, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// startSpan makes a client span of a statement under a recorded span. The statement
// is text with placeholders, so it holds no data.
func startSpan(ctx context.Context, statement string) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return otel.Tracer("hub.internal/services/query/mysql").Start(ctx, "mysql", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "mysql"), attribute.String("db.query.text", statement)))
}

func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, "statement failed")
	}
	span.End()
}
