package localserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// PostgresSuperuser is the bootstrap superuser; it has no password and connects over the
// unix socket only, which only root and the server's own user can open.
const PostgresSuperuser = "hub_super"

// Postgres is a running PostgreSQL server.
type Postgres struct{ *Server }

// StartPostgres starts a PostgreSQL server and returns when it answers. TCP connections
// need a password (SCRAM).
func StartPostgres(ctx context.Context, o Options) (*Postgres, error) {
	s, err := newServer(ctx, "postgres", o, flavor{
		users:   []string{"postgres"},
		prepare: preparePostgres,
		command: postgresCommand,
		ready: func(ctx context.Context, s *Server) error {
			conn, err := pgx.Connect(ctx, (&Postgres{s}).SuperuserURL("postgres"))
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		},
		stop: syscall.SIGINT, // "fast": ends sessions, writes a checkpoint
	})
	return &Postgres{s}, err
}

// postgresData is the cluster's directory.
func postgresData(s *Server) string { return filepath.Join(s.dir, "data") }

// postgresPrograms is the directory of the server's programs; version is that of the data, or "".
func (s *Server) postgresPrograms(version string) (string, error) {
	if s.opts.Beside {
		return sideBySidePostgres(s)
	}
	return postgresPrograms(version)
}

// preparePostgres makes the cluster the first time and clears what a killed server left.
func preparePostgres(ctx context.Context, s *Server) error {
	// No process lives in the directory (Reclaim saw to it), so a pid file there is a
	// leftover, and its number may meanwhile be another process's.
	if err := os.Remove(filepath.Join(postgresData(s), "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.makeData(func(making string) error {
		bin, err := s.postgresPrograms("")
		if err != nil {
			return err
		}
		argv := []string{filepath.Join(bin, "initdb"), "-D", making, "-U", PostgresSuperuser,
			"--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"}
		if s.opts.Fast {
			argv = append(argv, "--no-sync")
		}
		return s.run(ctx, argv...)
	})
}

// postgresCommand runs the version of PostgreSQL that made the data: another one refuses them.
// Connections are bounded far above what a stack opens.
func postgresCommand(s *Server) ([]string, error) {
	version, err := os.ReadFile(filepath.Join(postgresData(s), "PG_VERSION"))
	if err != nil {
		return nil, err
	}
	bin, err := s.postgresPrograms(strings.TrimSpace(string(version)))
	if err != nil {
		return nil, err
	}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port),
		"unix_socket_directories=" + s.sockets, "unix_socket_permissions=0700",
		"max_connections=300", "timezone=UTC", "log_timezone=UTC", "jit=off",
	}
	if s.opts.Fast {
		// Commits stay synchronous, which is cheap without fsync: what was committed outlives
		// Kill, so a test of a crash tests Hub and not the server. Shared memory is in files of the directory, which goes with
		// the test: a server that is killed leaves what it has in /dev/shm to nobody.
		settings = append(settings, "fsync=off", "full_page_writes=off", "shared_buffers=64MB", "dynamic_shared_memory_type=mmap")
	} else {
		settings = append(settings, "shared_buffers=256MB")
	}
	argv := []string{filepath.Join(bin, "postgres"), "-D", postgresData(s)}
	for _, v := range settings {
		argv = append(argv, "-c", v)
	}
	return argv, nil
}

// URL is a connection URL over TCP.
func (p *Postgres) URL(user, password, db string) string {
	return userURL(p.Server, user, password, db)
}

// userURL is a connection URL over TCP. Nothing is encrypted on the machine's own address.
func userURL(s *Server, user, password, db string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: s.Addr(), Path: "/" + db,
		RawQuery: "sslmode=disable",
	}).String()
}

// SuperuserURL is the superuser's connection URL, over the unix socket.
func (p *Postgres) SuperuserURL(db string) string {
	return fmt.Sprintf("postgres://%s@/%s?%s", PostgresSuperuser, url.PathEscape(db),
		url.Values{"host": {p.sockets}, "port": {strconv.Itoa(p.port)}, "sslmode": {"disable"}}.Encode())
}
