package localserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// SentinelMaster is the name that the sentinels know their master by.
const SentinelMaster = "hub"

// Sentinel is a running Redis Sentinel, which promotes a replica in place of a master that has gone.
type Sentinel struct{ *Server }

// StartSentinel starts a sentinel that watches the master: two have to agree that it has gone, after half a second.
func StartSentinel(ctx context.Context, o Options, master *Redis) (*Sentinel, error) {
	config := func(s *Server) string { return filepath.Join(s.dir, "sentinel.conf") }
	s, err := newServer(ctx, "sentinel", o, flavor{
		users: []string{"redis"},
		prepare: func(_ context.Context, s *Server) error {
			return writeFile(config(s), fmt.Sprintf("bind 127.0.0.1\nport %[1]d\ndir %[2]q\ndaemonize no\n"+
				"sentinel monitor %[3]s 127.0.0.1 %[4]d 2\nsentinel down-after-milliseconds %[3]s 500\n"+
				"sentinel failover-timeout %[3]s 3000\n", s.port, s.dir, SentinelMaster, master.port), s.who)
		},
		command: func(s *Server) ([]string, error) {
			program, err := s.command(SideBySideValkey, "redis-server")
			return append(program, config(s), "--sentinel"), err
		},
		ready: func(ctx context.Context, s *Server) error {
			_, err := (&Sentinel{s}).Ask(ctx, "PING")
			return err
		},
		stop: syscall.SIGTERM,
	})
	return &Sentinel{s}, err
}

// Ask sends one inline command and returns its answer: a status, an integer or a text.
func (s *Sentinel) Ask(ctx context.Context, command string) (string, error) {
	return sendInline(ctx, "tcp", s.Addr(), nil, command)
}

// Watch has the replica copy the master, and returns when it does and each sentinel knows it and all the others.
func Watch(ctx context.Context, master, replica *Redis, sentinels []*Sentinel) error {
	if err := master.Do(ctx, "CONFIG SET repl-diskless-sync-delay 0"); err != nil {
		return err
	}
	if err := replica.Do(ctx, fmt.Sprintf("REPLICAOF 127.0.0.1 %d", master.port)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	whole := fmt.Sprintf("status=ok,address=%s,slaves=1,sentinels=%d", master.Addr(), len(sentinels))
	return Poll(ctx, nil, 10*time.Millisecond, func() error {
		if copied, err := replica.Ask(ctx, "INFO replication"); err != nil || !strings.Contains(copied, "master_link_status:up") {
			return errors.Join(errors.New("the replica does not copy the master"), err)
		}
		for _, s := range sentinels {
			if known, err := s.Ask(ctx, "INFO sentinel"); err != nil || !strings.Contains(known, whole) {
				return errors.Join(fmt.Errorf("a sentinel knows %q", known), err)
			}
		}
		return nil
	})
}
