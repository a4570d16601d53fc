// Package postgres is how services reach the write store: a pool with bounds and
// traces, migrations embedded per service, readiness. It refuses to know tables of a service:
// their SQL lives beside the methods that run it.
package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/fault"
)

// Pool is a pool of connections to the write store.
type Pool = pgxpool.Pool

// Config bounds a pool.
type Config struct {
	// URL names the service's own role; never the owner. Its connect_timeout counts; 3 s without. Its parameter
	// pooler (Session or Transaction) says that a pooler is in between.
	URL string
	// MaxConns bounds the connections of this process; 0 means 10.
	MaxConns int32
	// StatementTimeout is the server's own limit for one statement; 0 means 10 s.
	StatementTimeout time.Duration
	// ReadOnly is for a role that may only read: a server that takes no writes is good for it.
	ReadOnly bool
}

// idleInTransaction is how long a session may sit in a transaction and do nothing.
const idleInTransaction = 30 * time.Second

// defaultTimeout is the server's limit for a statement of a service's.
const defaultTimeout = 10 * time.Second

// Open returns a pool. It does not wait for the database: a service starts in any
// order, and readiness tells when the store is reachable.
func Open(c Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// The error of the parser may quote the URL with its password.
		return nil, errors.New("HUB_WRITE_STORE_URL is not a PostgreSQL URL")
	}
	pc.MaxConns = 10
	if c.MaxConns > 0 {
		pc.MaxConns = c.MaxConns
	}
	timeout := defaultTimeout
	if c.StatementTimeout > 0 {
		timeout = c.StatementTimeout
	}
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.ShouldPing = shouldPing
	if pc.ConnConfig.ConnectTimeout == 0 { // connect_timeout in the URL
		pc.ConnConfig.ConnectTimeout = 3 * time.Second
	}
	mode, err := takePooler(pc.ConnConfig)
	if err != nil {
		return nil, err
	}
	// A name or proxy may lead to the server of before for a while after a failover, which reads on as a standby. Unless the URL has
	// target_session_attrs, a connection to it is refused: it would live for an hour, with each write an error.
	if pc.ConnConfig.ValidateConnect == nil && !c.ReadOnly {
		pc.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	proven := sessionOf(pc, mode, timeout)
	pc.ConnConfig.Tracer = newTracer()
	pc.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		// Without a location moments are read in the machine's zone.
		c.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		return proven(ctx, c)
	}
	return pgxpool.NewWithConfig(context.Background(), pc)
}

// pingAfter is after how much idleness a connection may have been forgotten by what is in between, without a word.
const pingAfter = 30 * time.Second

// shouldPing tells whether the server is asked, which costs a round trip, if a connection can still be used. One that the server has ended
// need not be asked about: its socket has something to read.
func shouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	socket := p.Conn.PgConn().Conn()
	if encrypted, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = encrypted.NetConn()
	}
	raw, err := socket.(syscall.Conn).SyscallConn()
	silent := false
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			silent = errors.Is(err, syscall.EAGAIN)
		})
	}
	return !silent || p.IdleDuration > pingAfter
}

// Querier is what a pool, a connection and a transaction have in common.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Fault turns an error of the driver into a fault: E_DB for a store that cannot be
// reached, refuses this log-in, is starting, is full, takes no writes (a standby), goes away in the middle, or chose
// this transaction as a deadlock's victim; any other error is returned as it is and ends as E_INTERNAL. Faults pass through.
func Fault(err error) error {
	var already *fault.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		for _, passing := range []string{"08", "28", "3D000", "53", "57", "25006", "25P03", "40001", "40P01", "55P03"} { // a class or a code
			if strings.HasPrefix(pg.Code, passing) {
				return unavailable(err)
			}
		}
		return err
	}
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unavailable(err)
	}
	return err
}

func unavailable(err error) error {
	return fault.New(fault.DB, "The write store is not available right now. Try again in a moment.").After(time.Second).Because(err)
}
