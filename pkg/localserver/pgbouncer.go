package localserver

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a running PgBouncer, a pooler in front of a PostgreSQL server.
type Bouncer struct{ *Server }

// BouncerOptions says in front of what a PgBouncer stands.
type BouncerOptions struct {
	Options
	// Postgres is the server, Passwords are those of its users, Database one that they may enter.
	Postgres  *Postgres
	Passwords map[string]string
	Database  string
}

// StartBouncer starts a PgBouncer in transaction mode with few connections, which it gives to each transaction in
// turn: two transactions of a client are never sure to have the same.
func StartBouncer(ctx context.Context, o BouncerOptions) (*Bouncer, error) {
	s, err := newServer(ctx, "pgbouncer", o.Options, flavor{
		users:   []string{"postgres"},
		prepare: func(_ context.Context, s *Server) error { return prepareBouncer(s, o) },
		command: func(s *Server) ([]string, error) {
			program, err := s.command(SideBySidePgBouncer, "pgbouncer")
			return append(program, "--quiet", bouncerConfig(s)), err
		},
		ready: func(ctx context.Context, s *Server) error {
			// Any one of the users tells that it answers, and that the server behind it does.
			for user, password := range o.Passwords {
				conn, err := pgx.Connect(ctx, userURL(s, user, password, o.Database)+"&default_query_exec_mode=simple_protocol")
				if err != nil {
					return err
				}
				return conn.Close(ctx)
			}
			return nil
		},
		stop: syscall.SIGTERM, // at once
	})
	return &Bouncer{s}, err
}

// bouncerConfig is the path of the configuration.
func bouncerConfig(s *Server) string { return filepath.Join(s.dir, "pgbouncer.ini") }

// prepareBouncer writes the configuration with the users' passwords, in files of the account's own.
func prepareBouncer(s *Server, o BouncerOptions) error {
	users := filepath.Join(s.dir, "users.txt")
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	var list strings.Builder
	for user, password := range o.Passwords {
		fmt.Fprintf(&list, "%s %s\n", quote(user), quote(password))
	}
	if err := writeFile(users, list.String(), s.who); err != nil {
		return err
	}
	return writeFile(bouncerConfig(s), fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 6
server_round_robin = 1
max_client_conn = 1000
log_connections = 0
log_disconnections = 0
`, o.Postgres.port, s.port, users), s.who)
}

// URL is a connection URL over TCP.
func (b *Bouncer) URL(user, password, db string) string { return userURL(b.Server, user, password, db) }
