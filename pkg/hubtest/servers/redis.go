package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// RedisDatabases is the number of logical databases of a private Redis.
const RedisDatabases = 1024

// Redis is a running Redis server.
type Redis struct{ *Server }

// StartRedis starts a Redis server without persistence: Hub keeps nothing in Redis that it
// cannot lose.
func StartRedis(ctx context.Context, o Options) (*Redis, error) {
	s, err := newServer(ctx, "redis", o, flavor{
		users:   []string{"redis"},
		prepare: prepareRedis,
		command: func(s *Server) ([]string, error) {
			program, err := find("redis-server")
			return []string{program, redisConfig(s)}, err
		},
		// Over the socket: on the TCP port another server might answer while ours is
		// about to find it taken.
		ready: func(ctx context.Context, s *Server) error {
			return (&Redis{s}).do(ctx, "unix", redisSocket(s), "PING")
		},
		stop: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	return &Redis{s}, nil
}

func redisConfig(s *Server) string { return filepath.Join(s.dir, "redis.conf") }

func redisSocket(s *Server) string { return filepath.Join(s.sockets, "redis.sock") }

// prepareRedis writes the configuration: a file, so that the password is not on a command
// line that every user can read.
func prepareRedis(_ context.Context, s *Server) error {
	config := fmt.Sprintf("bind 127.0.0.1\nport %d\nunixsocket %q\nunixsocketperm 700\ndir %q\ndatabases %d\n"+
		"save \"\"\nappendonly no\ndaemonize no\n",
		s.port, redisSocket(s), s.dir, RedisDatabases)
	if s.opts.Password != "" {
		config += fmt.Sprintf("requirepass %q\n", s.opts.Password)
	}
	return writeFile(redisConfig(s), config, s.who)
}

// URL is the connection URL of a logical database.
func (r *Redis) URL(db int) string {
	u := url.URL{Scheme: "redis", Host: r.Addr(), Path: fmt.Sprintf("/%d", db)}
	if r.opts.Password != "" {
		u.User = url.UserPassword("", r.opts.Password)
	}
	return u.String()
}

// Do sends inline commands and wants a status or an integer as the answer to each: enough
// for PING, FLUSHDB or PUBLISH without a client library.
func (r *Redis) Do(ctx context.Context, commands ...string) error {
	return r.do(ctx, "tcp", r.Addr(), commands...)
}

func (r *Redis) do(ctx context.Context, network, addr string, commands ...string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if r.opts.Password != "" {
		commands = append([]string{"AUTH " + r.opts.Password}, commands...)
	}
	answers := bufio.NewReader(conn)
	for _, c := range commands {
		if _, err := fmt.Fprintf(conn, "%s\r\n", c); err != nil {
			return err
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		// Status and integer replies are one line each.
		if !strings.HasPrefix(answer, "+") && !strings.HasPrefix(answer, ":") {
			return fmt.Errorf("redis: %s", strings.TrimSpace(answer))
		}
	}
	return nil
}
