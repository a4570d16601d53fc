package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolerParam is the parameter of a store's URL that says what is between Hub and the server.
const poolerParam = "pooler"

// Modes of a pooler. In both, what a session is to be like is set on its role (Bootstrap does so): poolers take
// no such settings with a connection.
const (
	// Session pooling leaves a connection its server for as long as it lives.
	Session = "session"
	// Transaction pooling gives each transaction a server of its own: no statement stays prepared, and nobody
	// can listen.
	Transaction = "transaction"
)

// errSession says that a migration would not have the session that its locks need.
var errSession = errors.New("HUB_MIGRATE_URL goes through a pooler: migrations hold a session's locks, so it has to name the server itself")

// takePooler takes the mode out of a parsed URL: the server knows no such parameter. It is empty without one.
func takePooler(c *pgx.ConnConfig) (mode string, err error) {
	mode = c.RuntimeParams[poolerParam]
	delete(c.RuntimeParams, poolerParam)
	switch mode {
	case "", Session, Transaction:
		return mode, nil
	}
	return "", fmt.Errorf("the store's URL says pooler=%s; it has to be %s or %s", mode, Session, Transaction)
}

// Pooled tells whether the pool's transactions have a session each, and not the connection.
func Pooled(pool *pgxpool.Pool) bool {
	return pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheDescribe
}

// sessionOf tells the server what a session is to be like, or, behind a pooler, makes sure that its role does.
func sessionOf(c *pgxpool.Config, mode string, statement time.Duration) (proven func(context.Context, *pgx.Conn) error) {
	c.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if mode == "" {
		c.ConnConfig.RuntimeParams["statement_timeout"] = fmt.Sprint(statement.Milliseconds())
		c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = fmt.Sprint(idleInTransaction.Milliseconds())
		return func(context.Context, *pgx.Conn) error { return nil }
	}
	if mode == Transaction {
		// A description is of the statement, wherever it runs; a prepared statement is of one session.
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	role := c.ConnConfig.User
	return func(ctx context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[poolerParam] = mode // for Copy
		const ask = `SELECT current_setting('statement_timeout') <> '0' AND current_setting('idle_in_transaction_session_timeout') <> '0'`
		var bounded bool
		if err := conn.QueryRow(ctx, ask).Scan(&bounded); err != nil || bounded {
			return err
		}
		return fmt.Errorf("the role %[1]s has no time limits, which a pooler cannot pass on: "+
			"ALTER ROLE %[1]s SET statement_timeout = '%[2]ds'; ALTER ROLE %[1]s SET idle_in_transaction_session_timeout = '%[3]ds'",
			role, int(statement.Seconds()), int(idleInTransaction.Seconds()))
	}
}
