// Package replicas spreads the reads of the source database over servers that hold the same data: each
// call goes to one of them, with all of its statements and, when it has to be stopped, its KILL. A
// server that does not answer, or lags too far behind, is left out while there is a better one.
// It refuses to know a statement: those are package mysql's.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
	"hub.internal/services/query/recipients"
)

// Options bound a Set.
// The zero value of each field has a default; only Source has to be filled in.
type Options struct {
	// Source and Reader are each server's: whichever are left have to carry everything.
	Source server.Options
	Reader statements.ReaderOptions
	// MaxLag (HUB_SOURCE_MAX_LAG) is how far a server may be behind to be asked; 0 means 10 s.
	MaxLag time.Duration
	// LagSQL (HUB_SOURCE_LAG_SQL) answers the lag as one number, in seconds; empty asks the server for
	// its replication status.
	LagSQL string
	// Every is the time between two looks at a server; 0 means a second.
	Every time.Duration
	// Logger hears when a server's state changes; nil discards.
	Logger *slog.Logger
}

// lookLimit bounds a look at a server.
// It is as long as the time between two looks, so that a server that hangs is found out by two of them.
const lookLimit = time.Second

// Set is the source database on several servers. It implements query.Source, recipients.Source and
// query.StatementReader.
// It balances by the fewest calls in flight (least outstanding requests), and begins each choice at the next server (round
// robin) so that servers of one rank and load take turns.
type Set struct {
	members []*member
	maxLag  time.Duration
	every   time.Duration
	logger  *slog.Logger
	metrics *metrics

	mu    sync.Mutex
	turn  int
	stale bool // the reads come from servers beyond the limit
}

var (
	_ query.Source          = (*Set)(nil)
	_ recipients.Source     = (*Set)(nil)
	_ query.StatementReader = (*Set)(nil)
)

// Split cuts HUB_SOURCE_DSNS into its entries: one a line where there is more than one line, so that a
// password may hold a comma, else at the commas.
func Split(list string) (dsns []string) {
	separator := ","
	if list = strings.TrimSpace(list); strings.Contains(list, "\n") {
		separator = "\n"
	}
	for entry := range strings.SplitSeq(list, separator) {
		if entry = strings.TrimSpace(entry); entry != "" {
			dsns = append(dsns, entry)
		}
	}
	return dsns
}

// Open returns a Set of the servers. It waits for none of them. The error is one line that names
// HUB_SOURCE_DSNS, and no password.
// It refuses the same address twice, since two entries would count as two servers, and databases of different names, since
// replicas of one source hold one.
func Open(dsns []string, o Options) (*Set, error) {
	if len(dsns) == 0 {
		return nil, errors.New("HUB_SOURCE_DSNS names no data source")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxLag <= 0 {
		o.MaxLag = 10 * time.Second
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	s := &Set{maxLag: o.MaxLag, every: o.Every, logger: o.Logger}
	var addrs []string
	o.Source.Replica, o.Reader.Logger = true, o.Logger
	for i, dsn := range dsns {
		o.Source.Setting = fmt.Sprintf("HUB_SOURCE_DSNS, entry %d of %d,", i+1, len(dsns))
		source, err := mysql.Open(dsn, o.Source)
		switch {
		case err != nil:
		case slices.Contains(addrs, source.Addr()):
			err = fmt.Errorf("HUB_SOURCE_DSNS names %s twice", source.Addr())
		case i > 0 && source.Database() != s.members[0].source.Database():
			err = fmt.Errorf("HUB_SOURCE_DSNS names the databases %s and %s; replicas of one source have one",
				s.members[0].source.Database(), source.Database())
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		addrs = append(addrs, source.Addr())
		s.members = append(s.members, newMember(source, o))
	}
	s.metrics = newMetrics(s)
	return s, nil
}

// Close waits for the statements that run, and closes the connections.
func (s *Set) Close() error {
	var errs []error
	if s.metrics != nil {
		errs = append(errs, s.metrics.close())
	}
	for _, m := range s.members {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// Prove looks at each server once. It returns an error when an account may do more than read, and nil
// for servers that cannot be reached: those are looked at again.
// It is for the start: a process does not begin to serve with an account that may write, and does begin while the source is
// away.
func (s *Set) Prove(ctx context.Context) error {
	errs := make([]error, len(s.members))
	var all sync.WaitGroup
	for i, m := range s.members {
		all.Go(func() {
			err := s.look(ctx, m)
			var grants *server.GrantsError
			if errors.As(err, &grants) {
				errs[i] = fmt.Errorf("HUB_SOURCE_DSNS: %s: %w", m.addr, grants)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Reach returns what is wrong with each server that cannot be used, whether or not others can.
// The host runs it as the check of HUB_SOURCE_DSNS.
func (s *Set) Reach(ctx context.Context) error {
	errs := make([]error, len(s.members))
	var all sync.WaitGroup
	for i, m := range s.members {
		all.Go(func() {
			if err := m.source.Prove(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", m.addr, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Pools are those of each server.
func (s *Set) Pools() (all []statements.Pools) {
	for _, m := range s.members {
		all = append(all, statements.Pools{Server: m.source.Server, Reader: m.reader})
	}
	return all
}

// Watch looks at the servers until ctx ends.
// Each server has a goroutine of its own, so that one that hangs delays no look at the others. It returns when all have
// ended.
func (s *Set) Watch(ctx context.Context) error {
	var all sync.WaitGroup
	for _, m := range s.members {
		all.Go(func() {
			tick := time.NewTicker(s.every)
			defer tick.Stop()
			for ctx.Err() == nil {
				_ = s.look(ctx, m) // which keeps what it finds
				select {
				case <-tick.C:
				case <-m.wake:
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
	return nil
}

// Ping asks whether a server answers statements.
func (s *Set) Ping(ctx context.Context) error {
	_, err := ask(ctx, s, func(ctx context.Context, source *mysql.Source) (none, error) { return none{}, source.Ping(ctx) })
	return err
}

// Replicas tells how the servers are, as they were looked at last.
// It asks nobody: health checks come often. LagSeconds is absent where nobody knows the lag.
func (s *Set) Replicas() []query.ReplicaHealth {
	list := make([]query.ReplicaHealth, len(s.members))
	for i, m := range s.members {
		v := m.view()
		list[i] = query.ReplicaHealth{Addr: m.addr, Up: v.up, Asked: v.rank(s.maxLag) == current}
		if v.up && !v.standing.Unknown && !v.standing.Stopped {
			list[i].LagSeconds = new(v.standing.Lag.Seconds())
		}
	}
	return list
}

// look asks a server how it is, and draws the consequences.
// It logs each change of state once, with WARN for what takes the server out.
func (s *Set) look(ctx context.Context, m *member) error {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	standing, err := m.monitor.Look(limited)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	before, now := m.learn(standing, err, limited.Err() != nil)
	if was, is := before.describe(s.maxLag), now.describe(s.maxLag); was != is {
		level := slog.LevelInfo
		if is != described[current] {
			level = slog.LevelWarn
		}
		s.logger.Log(ctx, level, "a replica of the source "+is, "replica", m.addr, "lag", now.standing.Lag, "error", err)
	}
	s.judge(ctx)
	return err
}

// judge tells when the best of the servers come to be too far behind, and when they no longer are.
// Old answers are better than none (graceful degradation): stale is for alarms, and stops no call.
func (s *Set) judge(ctx context.Context) {
	best := down
	for _, m := range s.members {
		best = min(best, m.view().rank(s.maxLag))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := best == lagging || best == stopped
	if stale == s.stale {
		return
	}
	if s.stale = stale; stale {
		s.logger.WarnContext(ctx, "every replica of the source lags too far behind; answers may be old", "max_lag", s.maxLag)
		return
	}
	s.logger.InfoContext(ctx, "a replica of the source is within the limit again, or none answers", "max_lag", s.maxLag)
}

// pick chooses a server other than not: of the best ones that with the fewest calls. With not, it is nil
// when no other answers.
// A server that is down is chosen only for a first try and only when all are: its error is then the caller's.
func (s *Set) pick(not *member) (chosen *member) {
	s.mu.Lock()
	s.turn++
	turn := s.turn
	s.mu.Unlock()
	best, fewest := down, 0
	for i := range s.members {
		m := s.members[(turn+i)%len(s.members)]
		v := m.view()
		rank := v.rank(s.maxLag)
		if m == not || not != nil && rank == down {
			continue
		}
		if chosen == nil || rank < best || rank == best && v.calls < fewest {
			chosen, best, fewest = m, rank, v.calls
		}
	}
	return chosen
}
