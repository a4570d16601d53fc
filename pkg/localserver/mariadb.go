package localserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a running MariaDB server.
type MariaDB struct{ SourceServer }

// StartMariaDB starts a MariaDB server and returns when it answers.
//
// Its administrator is the operating system user of this process, known by the unix
// socket alone: there is no root account that a local process could use over TCP.
func StartMariaDB(ctx context.Context, o Options) (*MariaDB, error) {
	return startMariaDB(ctx, o, prepareMariaDB, func(s *Server) ([]string, error) {
		program, err := find("mariadbd", "mysqld")
		return []string{program, "--defaults-file=" + sourceConfig(s)}, err
	})
}

// startMariaDB starts the system's MariaDB, or the one beside it: they differ in how they are prepared and called.
func startMariaDB(ctx context.Context, o Options, prepare func(context.Context, *Server) error,
	command func(*Server) ([]string, error)) (*MariaDB, error) {
	admin, err := administrator()
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, "mariadb", o, flavor{users: []string{"mysql"}, prepare: prepare, command: command, stop: syscall.SIGTERM,
		ready: func(ctx context.Context, s *Server) error { return (&SourceServer{s, admin}).ready(ctx) }})
	return &MariaDB{SourceServer{s, admin}}, err
}

// sourceConfig is the path of the configuration of MariaDB and MySQL.
func sourceConfig(s *Server) string { return filepath.Join(s.dir, "my.cnf") }

// socket is where their administrator connects.
func (s *Server) socket() string { return filepath.Join(s.sockets, "my.sock") }

// prepareMariaDB writes the configuration and, the first time, the system tables.
func prepareMariaDB(ctx context.Context, s *Server) error {
	if err := writeMariaDBConfig(s, ""); err != nil {
		return err
	}
	return s.makeData(func(making string) error {
		program, err := find("mariadb-install-db", "mysql_install_db")
		if err != nil {
			return err
		}
		admin, err := administrator()
		if err != nil {
			return err
		}
		return s.run(ctx, program, "--defaults-file="+sourceConfig(s), "--datadir="+making,
			"--auth-root-authentication-method=socket", "--auth-root-socket-user="+admin, "--skip-test-db")
	})
}

// makeData makes the data directory the first time: beside and renamed, so that a half-made one is never taken for a whole one.
func (s *Server) makeData(do func(making string) error) error {
	data := filepath.Join(s.dir, "data")
	if _, err := os.Stat(data); err == nil {
		return nil
	}
	making := data + ".making"
	if err := os.RemoveAll(making); err != nil {
		return err
	}
	if err := do(making); err != nil {
		return err
	}
	return os.Rename(making, data)
}

// writeMariaDBConfig writes the configuration, with lines of one's own at its end.
func writeMariaDBConfig(s *Server, own string) error {
	more := ""
	if s.opts.Fast {
		more = "innodb_doublewrite = 0\ninnodb_log_file_size = 16M\n"
	}
	if s.opts.ServerID > 0 {
		more += fmt.Sprintf("server_id = %d\nlog_bin = binlog\nlog_slave_updates = 1\nbinlog_format = row\nslave_net_timeout = 4\n",
			s.opts.ServerID)
	}
	return writeSourceConfig(s, "mariadbd", `character_set_server = utf8mb4
# Tells emoji apart, as MySQL 8's default collation does; MariaDB's default does not.
collation_server = utf8mb4_unicode_520_ci
`+more+own)
}

// writeSourceConfig writes what MariaDB and MySQL have in common, with further lines at its end.
func writeSourceConfig(s *Server, section, more string) error {
	temporary := filepath.Join(s.dir, "tmp") // of its own: a server that starts deletes what it finds there
	files := filepath.Join(s.dir, "files")   // secure_file_priv: an empty place, nothing to read or overwrite
	if err := errors.Join(s.who.own(temporary), s.who.own(files)); err != nil {
		return err
	}
	pool := "512M"
	if s.opts.Fast {
		pool = "64M"
	}
	text := fmt.Sprintf(`[%s]
datadir = %s
socket = %s
pid_file = %s
bind_address = 127.0.0.1
port = %d
skip_name_resolve = 1
default_time_zone = "+00:00"
local_infile = 0
tmpdir = %s
secure_file_priv = %s
performance_schema = 0
max_connections = 400
innodb_buffer_pool_size = %s
# Survives the end of the process; a power cut may cost a second of sample data.
innodb_flush_log_at_trx_commit = 2
%s%s`, section, filepath.Join(s.dir, "data"), s.socket(), filepath.Join(s.dir, "my.pid"), s.port, temporary, files, pool, more,
		s.opts.Config)
	return writeFile(sourceConfig(s), text, s.who)
}

// administrator is the name of this process's operating system user.
func administrator() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

// Copy lets the server copy all that another one does from now on, and start again with it after a restart.
// Both have a ServerID.
// It is replication by GTID; a server that has been away catches up by itself.
func (m *MariaDB) Copy(ctx context.Context, from *MariaDB) error {
	primary, err := from.Admin()
	if err != nil {
		return err
	}
	defer primary.Close()
	replica, err := m.Admin()
	if err != nil {
		return err
	}
	defer replica.Close()
	const password = "copied-on-this-machine"
	user := fmt.Sprintf("copier_%d", m.opts.ServerID)
	var position string
	for _, q := range []string{"CREATE USER IF NOT EXISTS " + user + "@'%' IDENTIFIED BY " + literal(password),
		"GRANT REPLICATION SLAVE ON *.* TO " + user + "@'%'"} {
		if _, err := primary.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if err := primary.QueryRowContext(ctx, "SELECT @@gtid_current_pos").Scan(&position); err != nil {
		return err
	}
	for _, q := range []string{
		"SET GLOBAL gtid_slave_pos = " + literal(position),
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = %s, MASTER_PASSWORD = %s, "+
			"MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos",
			from.port, literal(user), literal(password)),
		"START SLAVE",
	} {
		if _, err := replica.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// open is sql.Open for MySQL without the driver's habit of printing to standard error
// what it also returns.
func open(dsn string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// writeFile writes a small private file of the account's.
func writeFile(path, content string, who account) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	if !who.other {
		return nil
	}
	return os.Chown(path, int(who.uid), int(who.gid))
}
