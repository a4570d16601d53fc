package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Standing is how far a server is behind the one that it copies.
type Standing struct {
	// Lag is 0 for a server that copies none: a primary, or a member of a cluster that keeps
	// itself at one.
	Lag time.Duration
	// Stopped says that it copies nothing at the moment: its lag grows, and nobody knows it.
	Stopped bool
	// Unknown says that the account may not see the lag, or that the server has no word for it.
	Unknown bool
}

// Monitor asks one server how it is, on a connection of its own: a pool that calls have
// filled does not look like a server that is down.
type Monitor struct {
	server    *Server
	db        *sql.DB
	statement string
}

// lookTimeout is the server's own limit for a look.
const lookTimeout = 2 * time.Second

// NewMonitor returns a monitor of the source's server. statement answers the lag as one number, in
// seconds; without one the server's replication status does, which takes the right REPLICA MONITOR
// on MariaDB and REPLICATION CLIENT on MySQL (Options.Replica).
func NewMonitor(s *Server, statement string) *Monitor {
	return &Monitor{server: s, db: s.NewPool(1, lookTimeout), statement: statement}
}

// Close closes the connection.
func (m *Monitor) Close() error { return m.db.Close() }

// Look connects, or uses the connection that there is, and reads the standing. It returns an error,
// perhaps a *GrantsError, when the server does not answer or is not to be used.
func (m *Monitor) Look(ctx context.Context) (Standing, error) {
	if m.statement != "" {
		return m.ask(ctx)
	}
	var one int
	if err := m.db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return Standing{}, err
	}
	p, err := m.server.Identify(ctx)
	if err != nil {
		return Standing{}, err
	}
	var shows []string
	switch p.Dialect {
	case TiDB: // copies nothing: each of its servers reads the same storage
		return Standing{}, nil
	case MariaDB:
		shows = []string{"SHOW ALL SLAVES STATUS"}
	case MySQL: // the second for servers before 8.0.22
		shows = []string{"SHOW REPLICA STATUS", "SHOW SLAVE STATUS"}
	}
	for _, show := range shows {
		standing, err := m.status(ctx, show)
		var refused *mysqldriver.MySQLError
		if !errors.As(err, &refused) || IsEnvironmental(err) {
			return standing, err
		}
	}
	return Standing{Unknown: true}, nil
}

// ask reads the lag by the operator's statement. NULL, no row and an error of the statement are an
// unknown lag.
func (m *Monitor) ask(ctx context.Context) (Standing, error) {
	var seconds sql.NullFloat64
	err := m.db.QueryRowContext(ctx, m.statement).Scan(&seconds)
	var refused *mysqldriver.MySQLError
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !seconds.Valid, errors.As(err, &refused) && !IsEnvironmental(err):
		return Standing{Unknown: true}, nil
	case err != nil:
		return Standing{}, err
	}
	return Standing{Lag: max(time.Duration(seconds.Float64*float64(time.Second)), 0)}, nil
}

// status reads a replication status: a row for each server that is copied. The greatest lag counts.
func (m *Monitor) status(ctx context.Context, show string) (standing Standing, err error) {
	rows, err := m.db.QueryContext(ctx, show)
	if err != nil {
		return Standing{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return Standing{}, err
	}
	at := slices.IndexFunc(columns, func(name string) bool {
		return name == "Seconds_Behind_Master" || name == "Seconds_Behind_Source"
	})
	if at < 0 {
		return Standing{}, fmt.Errorf("%s tells no lag", show)
	}
	var seconds sql.NullInt64
	into := make([]any, len(columns))
	for i := range into {
		into[i] = &sql.RawBytes{}
	}
	into[at] = &seconds
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return Standing{}, err
		}
		standing.Stopped = standing.Stopped || !seconds.Valid
		standing.Lag = max(standing.Lag, time.Duration(seconds.Int64)*time.Second)
	}
	return standing, rows.Err()
}
