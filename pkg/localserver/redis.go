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
			program, err := s.command(SideBySideValkey, "redis-server")
			return append(program, redisConfig(s)), err
		},
		// Over the socket: on the TCP port another server might answer while ours is
		// about to find it taken.
		ready: func(ctx context.Context, s *Server) error {
			_, err := sendInline(ctx, "unix", redisSocket(s), (&Redis{s}).login(), "PING")
			return err
		},
		stop: syscall.SIGTERM,
	})
	return &Redis{s}, err
}

// redisConfig is the path of the configuration.
func redisConfig(s *Server) string { return filepath.Join(s.dir, "redis.conf") }

// redisSocket is the path of the unix socket.
func redisSocket(s *Server) string { return filepath.Join(s.sockets, "redis.sock") }

// prepareRedis writes the configuration: a file, so that the password is not on a command
// line that every user can read.
func prepareRedis(_ context.Context, s *Server) error {
	config := fmt.Sprintf("bind 127.0.0.1\nport %d\nunixsocket %q\nunixsocketperm 700\ndir %q\ndatabases %d\n"+
		"save \"\"\nappendonly no\ndaemonize no\n",
		s.port, redisSocket(s), s.dir, RedisDatabases)
	// A cluster is told by Options.ClusterPort; JoinRedis makes one of such nodes.
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
	return (&url.URL{Scheme: "redis", User: r.login(), Host: r.Addr(), Path: fmt.Sprintf("/%d", db)}).String()
}

// UserURL is the connection URL of a logical database for a user.
func (r *Redis) UserURL(user, password string, db int) string {
	return (&url.URL{Scheme: "redis", User: url.UserPassword(user, password), Host: r.Addr(), Path: fmt.Sprintf("/%d", db)}).String()
}

// login is who may do everything, nil where that is everybody.
func (r *Redis) login() *url.Userinfo {
	switch {
	case r.opts.Users != "":
		return url.UserPassword(RedisOperator, r.opts.Password)
	case r.opts.Password != "":
		return url.UserPassword("", r.opts.Password)
	}
	return nil
}

// Do sends inline commands, as PING, FLUSHDB or PUBLISH, for whoever may do everything. Package redis is for programs.
func (r *Redis) Do(ctx context.Context, commands ...string) error {
	_, err := sendInline(ctx, "tcp", r.Addr(), r.login(), commands...)
	return err
}

// Ask sends one inline command as Do does and returns its answer: a status, an integer or a text.
func (r *Redis) Ask(ctx context.Context, command string) (string, error) {
	return sendInline(ctx, "tcp", r.Addr(), r.login(), command)
}

// AskRedis is Ask for the user of a connection URL.
func AskRedis(ctx context.Context, userURL, command string) (string, error) {
	u, err := url.Parse(userURL)
	if err != nil {
		return "", err
	}
	return sendInline(ctx, "tcp", u.Host, u.User, command)
}

// sendInline logs in, sends inline commands one after the other and returns the last answer; of a list its length alone.
// It is enough for tests and for readiness: one command after another on a connection of its own, five seconds for
// all.
func sendInline(ctx context.Context, network, addr string, login *url.Userinfo, commands ...string) (answer string, err error) {
	if password, _ := login.Password(); password != "" {
		commands = append([]string{strings.Join(strings.Fields("AUTH "+login.Username()+" "+password), " ")}, commands...)
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	answers := bufio.NewReader(conn)
	for _, c := range commands {
		if _, err := fmt.Fprintf(conn, "%s\r\n", c); err != nil {
			return "", err
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			return "", err
		}
		answer = strings.TrimSpace(line[1:])
		switch size, _ := strconv.Atoi(answer); {
		case line[0] == '-':
			return "", fmt.Errorf("redis: %s", answer)
		case line[0] == '$' && size >= 0: // a text, of which the line is the size
			text := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(answers, text); err != nil {
				return "", err
			}
			answer = string(text[:size])
		}
	}
	return answer, nil
}
