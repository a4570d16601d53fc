// Package server is one server of the marketplace's database, MariaDB, MySQL 8 or TiDB: its pools of read-only sessions,
// which kind of server it is, what its account may do, and what its errors mean. It knows no table: the fixed reads
// (package mysql) and the statements of callers (package statements) stand on it. It refuses to write: every session is
// read-only, and an account that may do more than read is not used at all.
package server

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/query/mysql/errno"
)

// Options bound a Server.
type Options struct {
	// PoolSize bounds the connections for the fixed statements; 0 means 16.
	PoolSize int
	// StatementTimeout is the server's own limit for one of them; 0 means DefaultStatementTimeout.
	StatementTimeout time.Duration
	// Functions are the stored functions (HUB_SQL_FUNCTIONS) on which the account may hold EXECUTE.
	Functions []string
	// Replica lets the account hold the right to see how far the server lags behind.
	Replica bool
	TLS     TLS
	// Logger hears of an account that is used, and should have fewer rights; nil discards.
	Logger *slog.Logger
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

// Server is one server of the marketplace's database. Its methods may be called by many at once.
type Server struct {
	config    *mysqldriver.Config // without session variables: they depend on the dialect
	functions []string
	replica   bool // the account may see the server's lag
	logger    *slog.Logger
	db        *sql.DB
	calls     *telemetry.Dependency

	mu       sync.Mutex
	identity *Identity // nil before the first attempt and after a failed one
}

// Open returns a Server. It does not wait for the database: the first connection
// finds out what server this is and proves that its account can only read.
func Open(dsn string, o Options) (*Server, error) {
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
	if err := o.TLS.apply(config); err != nil {
		return nil, err
	}
	s := &Server{config: config, functions: o.Functions, replica: o.Replica, logger: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		calls: telemetry.NewDependency("source")}
	s.db = s.NewPool(o.PoolSize, o.StatementTimeout)
	return s, nil
}

// DB is the pool of the fixed statements.
func (s *Server) DB() *sql.DB { return s.db }

// Addr is the server's address, such as host:3306.
func (s *Server) Addr() string { return s.config.Addr }

// Database is the name of the source's schema.
func (s *Server) Database() string { return s.config.DBName }

// Dialect is the server's kind; it connects when nobody has yet.
func (s *Server) Dialect(ctx context.Context) (Dialect, error) {
	p, err := s.Identify(ctx)
	if err != nil {
		return "", Fault(ctx, err)
	}
	return p.Dialect, nil
}

// Prove connects and returns nil when the account can only read, a *GrantsError when
// it may do more, or E_DB when the database cannot be reached.
func (s *Server) Prove(ctx context.Context) error {
	_, err := s.Dialect(ctx)
	return err
}

// Ping asks the server whether it answers statements.
func (s *Server) Ping(ctx context.Context) error {
	return s.Query(ctx, `SELECT 1`, nil, func(*sql.Rows) error { return nil })
}

// Config is how sessions connect, as a copy to change: the session variables are for its Params.
func (s *Server) Config() *mysqldriver.Config { return s.config.Clone() }

// Close closes the pool.
func (s *Server) Close() error { return s.db.Close() }

// NewPool returns a pool of read-only sessions. Each statement in it is limited to
// timeout by the server.
func (s *Server) NewPool(size int, timeout time.Duration) *sql.DB {
	db := sql.OpenDB(&connector{server: s, timeout: timeout})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute)
	return db
}

// Connect opens a connection whose incoming bytes can be counted.
func (s *Server) Connect(ctx context.Context, config *mysqldriver.Config) (driver.Conn, *Wire, error) {
	var w *Wire
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w = &Wire{Conn: conn, plain: readable(config)}
		return w, nil
	}
	c, err := mysqldriver.NewConnector(config)
	if err != nil {
		return nil, nil, err
	}
	conn, err := c.Connect(ctx)
	var answered *mysqldriver.MySQLError
	if errors.As(err, &answered) && answered.Number == errno.UnknownVariable {
		s.forget() // another server is behind the address now
	}
	return conn, w, Connecting(err)
}

// Query runs a fixed statement, hands over its rows one by one, and
// turns an error into its fault.
func (s *Server) Query(ctx context.Context, statement string, args []any, row func(*sql.Rows) error) error {
	return s.query(ctx, &fixedMeter{}, statement, args, row)
}

// QueryPrepared is Query of a constant statement that each connection prepares when it has it the first time: the server parses it
// once and answers in binary, which saves a tenth of what a small read takes. It is for statements whose answers are held to an
// oracle when they run again and again: MariaDB 10.11 answers some otherwise then, such as one with ORDER BY … LIMIT 1 of a
// subquery in ON.
func (s *Server) QueryPrepared(ctx context.Context, statement string, args []any, row func(*sql.Rows) error) error {
	return s.query(ctx, &fixedMeter{prepared: true}, statement, args, row)
}

func (s *Server) query(ctx context.Context, m *fixedMeter, statement string, args []any, row func(*sql.Rows) error) error {
	start := time.Now()
	ctx, span := StartSpan(ctx, statement)
	err := s.rows(ctx, m, statement, args, row)
	EndSpan(span, err)
	err = Fault(ctx, err)
	s.Done(ctx, "fixed", start, err)
	return err
}

func (s *Server) rows(ctx context.Context, m *fixedMeter, statement string, args []any, row func(*sql.Rows) error) (err error) {
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

// Done counts a call of the server that began at start; kind is "fixed" or "caller".
func (s *Server) Done(ctx context.Context, kind string, start time.Time, err error) {
	s.calls.Done(ctx, kind, start, telemetry.Outcome(err))
}

// StartSpan makes a client span of a statement under a recorded span. The statement
// is text with placeholders, so it holds no data.
func StartSpan(ctx context.Context, statement string) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return otel.Tracer("hub.internal/services/query/mysql").Start(ctx, "mysql", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", "mysql"), attribute.String("db.query.text", statement)))
}

// EndSpan ends the span of a statement; err says whether the statement failed.
func EndSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, "statement failed")
	}
	span.End()
}
