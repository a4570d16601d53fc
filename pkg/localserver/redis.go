package localserver

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
	switch {
	case s.opts.Users != "":
		config += s.opts.Users + "\n" + fmt.Sprintf("user %s on >%s ~* &* +@all\n", RedisOperator, s.opts.Password)
	case s.opts.Password != "":
		config += fmt.Sprintf("requirepass %q\n", s.opts.Password)
	}
	return writeFile(redisConfig(s), config, s.who)
}

// RedisOperator is the user of a Redis with users who may do everything.
const RedisOperator = "operator"

// RedisUsers are the users of a file in the form of Redis' ACL files, whose passwords are all written PASSWORD, with
// those that they have.
func RedisUsers(file []byte, password func(user string) string) string {
	lines := strings.Split(strings.TrimSpace(string(file)), "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 1 {
			lines[i] = strings.Replace(line, ">PASSWORD", ">"+password(fields[1]), 1)
		}
	}
	return strings.Join(lines, "\n")
}

// URL is the connection URL of a logical database, for whoever may do everything.
func (r *Redis) URL(db int) string {
	switch {
	case r.opts.Users != "":
		return r.UserURL(RedisOperator, r.opts.Password, db)
	case r.opts.Password != "":
		return r.UserURL("", r.opts.Password, db)
	}
	return (&url.URL{Scheme: "redis", Host: r.Addr(), Path: fmt.Sprintf("/%d", db)}).String()
}

// UserURL is the connection URL of a logical database for a user.
func (r *Redis) UserURL(user, password string, db int) string {
	return (&url.URL{Scheme: "redis", User: url.UserPassword(user, password), Host: r.Addr(), Path: fmt.Sprintf("/%d", db)}).String()
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

// AskRedis sends one inline command as the user of a connection URL and returns the first line of its answer.
func AskRedis(ctx context.Context, userURL, command string) (answer string, err error) {
	u, err := url.Parse(userURL)
	if err != nil {
		return "", err
	}
	commands := []string{command}
	if password, _ := u.User.Password(); password != "" {
		commands = []string{"AUTH " + u.User.Username() + " " + password, command}
	}
	err = talk(ctx, "tcp", u.Host, func(_ byte, line string, _ *bufio.Reader) error { answer = line; return nil }, commands...)
	return answer, err
}

// talk sends inline commands for whoever may do everything.
func (r *Redis) talk(ctx context.Context, network, addr string, heard func(kind byte, line string, rest *bufio.Reader) error,
	commands ...string) error {
	switch {
	case r.opts.Users != "":
		commands = append([]string{"AUTH " + RedisOperator + " " + r.opts.Password}, commands...)
	case r.opts.Password != "":
		commands = append([]string{"AUTH " + r.opts.Password}, commands...)
	}
	return talk(ctx, network, addr, heard, commands...)
}

// talk sends inline commands and hands over the first line of each answer, by its kind.
func talk(ctx context.Context, network, addr string, heard func(kind byte, line string, rest *bufio.Reader) error,
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
