package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
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
	if s.opts.ClusterPort != 0 {
		// The nodes find out within half a second that one of them has gone.
		config += fmt.Sprintf("cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout 500\n"+
			"repl-diskless-sync-delay 0\ncluster-port %d\n", s.opts.ClusterPort)
	}
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

// Ask sends one inline command and returns its answer: a status, an integer or a text.
func (r *Redis) Ask(ctx context.Context, command string) (answer string, err error) {
	err = r.talk(ctx, "tcp", r.Addr(), func(kind byte, line string, rest *bufio.Reader) error {
		answer = line
		if kind != '$' {
			return nil
		}
		size, err := strconv.Atoi(line)
		if err != nil || size < 0 {
			return err
		}
		b := make([]byte, size+len("\r\n"))
		_, err = io.ReadFull(rest, b)
		answer = string(b[:size])
		return err
	}, command)
	return answer, err
}

func (r *Redis) do(ctx context.Context, network, addr string, commands ...string) error {
	return r.talk(ctx, network, addr, func(kind byte, line string, _ *bufio.Reader) error {
		if kind != '+' && kind != ':' {
			return fmt.Errorf("redis: %c%s", kind, line)
		}
		return nil
	}, commands...)
}

// talk sends inline commands and hands over the first line of each answer, by its kind.
func (r *Redis) talk(ctx context.Context, network, addr string, heard func(kind byte, line string, rest *bufio.Reader) error,
	commands ...string) error {
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
		kind, line := answer[0], strings.TrimSpace(answer[1:])
		if kind == '-' {
			return fmt.Errorf("redis: %s", line)
		}
		if err := heard(kind, line, answers); err != nil {
			return err
		}
	}
	return nil
}
