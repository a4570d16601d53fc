package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
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

// Identity is what is known of a server since the first connection: its kind, and that its account can only read.
type Identity struct {
	Dialect Dialect
	// TmpLimits are the variables by which a session's temporary space is bounded, as far
	// as this server has them and lets the account set them.
	TmpLimits []string
	done      chan struct{} // closed when the attempt to find out has ended
	err       error
}

// Identify finds out, once, what server this is and what its account may do. Callers
// that come meanwhile share the attempt and its outcome. It returns a *GrantsError when the account may do more than read.
func (s *Server) Identify(ctx context.Context) (*Identity, error) {
	s.mu.Lock()
	p, mine := s.identity, false
	if p == nil {
		p, mine = &Identity{done: make(chan struct{})}, true
		s.identity = p
	}
	s.mu.Unlock()
	if mine {
		// Others wait for this attempt: the end of one call must not fail theirs.
		if p.err = Connecting(explain(s.attempt(context.WithoutCancel(ctx), p), s.config)); p.err != nil {
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

func (s *Server) attempt(ctx context.Context, p *Identity) error {
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
	p.Dialect = dialectOf(version)
	everything, err := checkGrants(ctx, db, p.Dialect, s.functions, s.replica)
	if err != nil {
		return err
	}
	if everything {
		s.logger.WarnContext(ctx, "the source account may read all schemas, the server's own with the hashes of passwords among them: "+
			"grant it SELECT on the schemas to read in place of *.*", "server", s.config.Addr)
	}
	p.TmpLimits, err = tmpLimits(ctx, db)
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

// forget makes the next connection prove anew.
func (s *Server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identity = nil
}
