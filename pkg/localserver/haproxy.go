package localserver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
)

// HAProxy is a running HAProxy, a balancer of TCP connections in front of source servers.
type HAProxy struct{ *Server }

// StartHAProxy starts the HAProxy that lies beside the system in front of source servers, and returns when it takes connections. Each
// of these goes to the next server in turn. A server that twice greets nobody within half a second gets none, and loses those it has.
func StartHAProxy(ctx context.Context, o Options, servers ...*SourceServer) (*HAProxy, error) {
	_, program, err := SideBySideHAProxy.command()
	if err != nil {
		return nil, err
	}
	config := func(s *Server) string { return filepath.Join(s.dir, "haproxy.cfg") }
	s, err := newServer(ctx, "haproxy", o, flavor{
		users: []string{"nobody"},
		prepare: func(_ context.Context, s *Server) error {
			var b strings.Builder
			fmt.Fprintf(&b, `defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
  timeout check 500ms
listen source
  bind 127.0.0.1:%d
  balance roundrobin
  option mysql-check
  default-server inter 100ms fall 2 rise 1 on-marked-down shutdown-sessions
`, s.port)
			for i, server := range servers {
				fmt.Fprintf(&b, "  server s%d %s check\n", i+1, server.Addr())
			}
			return writeFile(config(s), b.String(), s.who)
		},
		command: func(s *Server) ([]string, error) { return append(program, "-db", "-f", config(s)), nil },
		ready: func(ctx context.Context, s *Server) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
			if err != nil {
				return err
			}
			return conn.Close()
		},
		stop: syscall.SIGTERM,
	})
	return &HAProxy{s}, err
}
