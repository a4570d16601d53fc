// Package localserver starts private MariaDB, PostgreSQL, Redis and Consul servers on this
// machine: as unprivileged processes, on loopback, with their data in a directory of the
// caller's choice. Tests use it through package hubtest; the local stack (scripts/stack)
// uses it directly, which is why it does not import "testing".
//
// It works on Linux alone. A server is a child of the calling process and dies with it. Starting on a
// directory that already holds data takes the data over, also after a crash.
//
// What there is, and where each is from:
//
//	StartMariaDB              the system's package mariadb-server; the sample and most tests lie on it
//	StartMySQL                MySQL of Debian's next release, side by side (sidebyside.go): tests, and the sample
//	StartSideBySideMariaDB    MariaDB of that release; tests alone
//	StartPostgres             the system's postgresql, the newest version or the one that made the data
//	StartRedis, JoinRedis     the system's redis-server, alone or as a cluster
//	StartSentinel, Watch      the same as sentinels of a server and its replica; tests alone
//	StartBouncer              the system's pgbouncer, in transaction mode; tests alone
//	  with Options.Beside     PostgreSQL, Valkey and PgBouncer of Debian's next release; tests alone
//	StartHAProxy              HAProxy of that release in front of source servers; tests alone
//	StartDNS                  the system's dnsmasq with service records; tests alone
//	StartConsul               an agent that scripts/consul builds
//	StartSMTP                 in this process: it keeps mails as files, and delivers none
//
// Each is a flavor of Server: how to prepare its directory, its command line, how to ask whether
// it is ready, and the signal that asks it to end. Server.Start is the one way to start a server
// process and Poll the one way to wait for it. A server that fails to start says so with the end
// of its own output.
//
// The package knows nothing of Hub's services; it refuses to manage servers that it did
// not start.
package localserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// startLimit bounds a start whose context has no deadline. Crash recovery of a large data
// directory is the slow case.
const startLimit = 90 * time.Second

// Options says where and how a server runs.
type Options struct {
	// Dir holds everything the server writes. It is made when missing; data found in it is
	// used again. When the process runs as root the directory is given to the operating
	// system user that the server runs as; where that user cannot reach Dir (a checkout
	// below /root), the data moves to a directory it can reach and Dir becomes a link to it.
	Dir string
	// Port is the TCP port on 127.0.0.1; 0 picks a free one.
	Port int
	// Output receives what the server prints; nil discards it.
	Output io.Writer
	// Fast trades durability for speed: no fsync, small caches. For tests.
	Fast bool
	// Beside starts PostgreSQL, PgBouncer or, in Redis' place, Valkey of Debian's next release, which lie beside the system. For tests.
	Beside bool
	// Password protects Redis (optional); the other servers keep passwords per user.
	Password string
	// Users, in place of Password alone, are all users that a Redis has but the operator, whose Password is: RedisUsers.
	Users string
	// ClusterPort, where it is not 0, makes a Redis the node of a cluster: its nodes talk to one another there.
	ClusterPort int
	// Config are further lines of the configuration of a MariaDB or MySQL.
	Config string
	// ServerID, above 0, lets a MariaDB copy others and be copied: no two of them have the same.
	ServerID int
}

// Server is one running server process. MariaDB, Postgres, Redis and Consul embed it.
// Start begins another process and must not run at the same time as any other method;
// the others may be called from several goroutines.
type Server struct {
	// What does not change while the server is there: its kind by name, the options, the user that it runs as, its
	// directories and its port.
	name     string
	opts     Options
	who      account
	dir      string // real directory, reachable for who
	sockets  string // directory of the unix sockets, short enough for them
	port     int
	flavor   flavor
	*Process // the running one; Start replaces it
}

// flavor is what differs between the kinds of server.
type flavor struct {
	users   []string                                   // operating system users to run as when root, by preference
	prepare func(ctx context.Context, s *Server) error // makes the data directory on the first start
	command func(s *Server) ([]string, error)          // the server's argv
	ready   func(ctx context.Context, s *Server) error // nil when the server answers
	stop    syscall.Signal                             // asks for an orderly end
}

// newServer makes a server and starts it. One that did not start is there too, beside the error, so that it can be removed.
func newServer(ctx context.Context, name string, o Options, f flavor) (*Server, error) {
	if o.Output == nil {
		o.Output = io.Discard
	}
	s := &Server{name: name, opts: o, flavor: f}
	if err := s.settle(); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, s.Start(ctx)
}

// settle finds the user that the server runs as, and makes its directories.
func (s *Server) settle() (err error) {
	if s.opts.Dir == "" {
		return errors.New("Options.Dir is empty")
	}
	if s.who, err = pickAccount(s.flavor.users); err != nil {
		return err
	}
	if s.dir, err = home(s.opts.Dir, s.who); err != nil {
		return err
	}
	s.sockets, err = socketDir(s.dir, s.who)
	return err
}

// Start starts the server again, on the same directory and port, after Stop or Kill or
// after it ended by itself. The context bounds the start, not the server's life.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := Reclaim(ctx, s.dir); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	// A free port that was just picked can be taken before the server binds it; then
	// another one is tried. A port the caller or an earlier start fixed stays.
	fixed := s.opts.Port != 0 || s.port != 0
	var err error
	for range 3 {
		if err = s.try(ctx, fixed); err == nil || fixed || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s did not start in %s: %w", s.name, s.dir, err)
	}
	return nil
}

// try starts the server once, at the fixed port or a free one.
func (s *Server) try(ctx context.Context, fixed bool) (err error) {
	if !fixed {
		if s.port, err = FreePort(); err != nil {
			return err
		}
	} else {
		if s.opts.Port != 0 {
			s.port = s.opts.Port
		}
		if !PortFree(s.port) {
			return fmt.Errorf("port %d of 127.0.0.1 is in use by another program", s.port)
		}
	}
	if err := s.flavor.prepare(ctx, s); err != nil {
		return err
	}
	argv, err := s.flavor.command(s)
	if err != nil {
		return err
	}
	if s.Process, err = StartProgram(s.program(s.flavor.stop, argv)); err != nil {
		return err
	}
	if err := s.until(ctx, func() error { return s.flavor.ready(ctx, s) }); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// program is argv as the server's user, in the server's directory and with a small
// environment.
func (s *Server) program(last syscall.Signal, argv []string) Program {
	return Program{
		Path: argv[0], Args: argv[1:], Dir: s.dir, Output: s.opts.Output,
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + os.Getenv("PATH"),
			"HOME=" + s.dir, "TMPDIR=" + os.TempDir(), "LC_ALL=C.UTF-8", "TZ=UTC",
		},
		// When this process is killed the server still gets to end in an orderly way.
		as: s.who, end: last,
	}
}

// run executes a helper program (initdb and the like) to its end.
func (s *Server) run(ctx context.Context, argv ...string) error {
	p, err := StartProgram(s.program(syscall.SIGKILL, argv))
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return ctx.Err()
	}
	if p.err != nil {
		return p.Err()
	}
	return nil
}

// Pause freezes the process that runs now, see Process.Pause. It is a method of the server's own because a method value of
// the embedded process would keep the process that ran when the value was taken: a server that is started again has another.
func (s *Server) Pause() error { return s.Process.Pause() }

// Resume lets the process that runs now go on, see Process.Resume.
func (s *Server) Resume() error { return s.Process.Resume() }

// Addr is host:port of the server's TCP listener.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Port is the TCP port.
func (s *Server) Port() int { return s.port }

// Dir is the real directory of the server's files.
func (s *Server) Dir() string { return s.dir }

// Remove kills the server if it still runs and deletes its directory.
func (s *Server) Remove() error {
	if s.Process != nil {
		s.Kill()
	}
	return RemoveDir(s.opts.Dir)
}

// RemoveDir deletes a directory that was an Options.Dir, wherever its data lie.
func RemoveDir(dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if err := os.RemoveAll(socketPath(real)); err != nil {
			return err
		}
		if err := os.RemoveAll(real); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
