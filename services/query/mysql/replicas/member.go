package replicas

import (
	"context"
	"errors"
	"sync"
	"time"

	"hub.internal/services/query"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/mysql/server"
	"hub.internal/services/query/mysql/statements"
)

// rank orders servers: the least is asked.
// A higher rank is asked only while no server has a lower one.
type rank int

const (
	current rank = iota // within the limit, or nobody can tell
	lagging             // behind by more than the limit
	stopped             // behind by nobody knows how much
	down                // does not answer, or has just failed a call
)

// described are the ranks in words for the log.
var described = map[rank]string{
	current: "is asked", lagging: "lags too far behind", stopped: "no longer copies its primary", down: "does not answer",
}

// misses is how many looks in a row have to time out: a busy server misses one. Any other failure counts at once.
const misses = 2

// errDown ends the calls to a server that was found not to answer.
var errDown = errors.New("the replica of the source does not answer")

// member is one of the servers.
// state, missed, flights and lost are guarded by mu; the others never change.
type member struct {
	addr    string
	source  *mysql.Source
	reader  *statements.Reader
	monitor *server.Monitor
	wake    chan struct{} // asks for a look at once

	mu     sync.Mutex
	state  view
	missed int
	// flights end when the server is found not to answer; lost are turns of statements that
	// may still run on it.
	flights map[*context.CancelCauseFunc]struct{}
	lost    map[*turn]struct{}
}

// view is what is known of a server.
// It is a copy: what is decided on it may be a moment old, and a call that goes to a server just gone moves to another.
type view struct {
	up       bool
	doubted  bool // it has failed a call since it was looked at
	standing server.Standing
	calls    int // in flight
}

// newMember begins with a server that is taken for well, so that the first calls need not wait for a look.
func newMember(source *mysql.Source, o Options) *member {
	return &member{addr: source.Addr(), source: source, reader: statements.NewReader(source.Server, o.Reader),
		monitor: server.NewMonitor(source.Server, o.LagSQL),
		wake:    make(chan struct{}, 1), state: view{up: true}, flights: map[*context.CancelCauseFunc]struct{}{}, lost: map[*turn]struct{}{}}
}

// close waits for the statements that run on the server.
func (m *member) close() error {
	return errors.Join(m.reader.Close(), m.source.Close(), m.monitor.Close())
}

// view is what is known of the server now.
func (m *member) view() view {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// rank holds what is known against the limit. A server that nobody can tell the lag of is current: it may well be a
// primary.
func (v view) rank(maxLag time.Duration) rank {
	switch {
	case !v.up || v.doubted:
		return down
	case v.standing.Stopped:
		return stopped
	case !v.standing.Unknown && v.standing.Lag > maxLag:
		return lagging
	}
	return current
}

// describe is the state in words for the log. Doubt is no state: it lasts until the next look, which comes at once.
func (v view) describe(maxLag time.Duration) string {
	if v.up && v.standing.Unknown {
		return "is asked although nobody can tell its lag: grant its account REPLICA MONITOR (MariaDB) or REPLICATION CLIENT (MySQL), " +
			"or set HUB_SOURCE_LAG_SQL"
	}
	v.doubted = false
	return described[v.rank(maxLag)]
}

// learn keeps what a look has found; late says that it has found nothing in time. A server that does not
// answer loses its calls; one that answers a refusal, because it is full or stops, gets no new ones.
func (m *member) learn(standing server.Standing, err error, late bool) (before, now view) {
	m.mu.Lock()
	before = m.state
	var ended map[*turn]struct{}
	switch {
	case err == nil:
		m.missed = 0
		m.state.up, m.state.doubted, m.state.standing = true, false, standing
	case late && before.up && m.missed+1 < misses:
		m.missed++
	default:
		if m.state.up = false; server.Answered(err) {
			break
		}
		for cancel := range m.flights {
			(*cancel)(errDown)
		}
		ended, m.lost = m.lost, map[*turn]struct{}{}
	}
	now = m.state
	m.mu.Unlock()
	for t := range ended {
		t.End()
	}
	return before, now
}

// suspect takes the server out until it has been looked at, which is soon.
func (m *member) suspect() {
	m.mu.Lock()
	m.state.doubted = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// begin counts a call. Its context ends when the server is found not to answer; leave is called at the
// end of the call.
func (m *member) begin(ctx context.Context) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	m.state.calls++
	m.flights[&cancel] = struct{}{}
	m.mu.Unlock()
	return ctx, func() {
		m.mu.Lock()
		m.state.calls--
		delete(m.flights, &cancel)
		m.mu.Unlock()
		cancel(nil)
	}
}

// moves tells whether a call that has failed here is to be tried elsewhere. attempt is its context here,
// ctx its caller's.
// What moves is a failure of the server and never of the statement, so that a statement that breaks a server is run twice
// at most.
func (m *member) moves(ctx, attempt context.Context, err error) bool {
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case errors.Is(context.Cause(attempt), errDown), server.Lost(err):
		return true
	case !server.Killed(err):
		return false
	}
	// A server that stops kills what runs on it; what an administrator has killed is not run again.
	look, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_, err = m.monitor.Look(look)
	return err != nil && ctx.Err() == nil
}

// hold keeps the turn of a statement that may still run on the server. It ends when the server says so, or
// is found not to answer.
func (m *member) hold(t *turn) {
	m.mu.Lock()
	up := m.state.up
	m.lost[t] = struct{}{}
	m.mu.Unlock()
	switch {
	case !up:
		t.End()
	case t.over(): // meanwhile
		m.release(t)
	}
}

// release forgets a turn that has ended by itself.
func (m *member) release(t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lost, t)
}

// turn is a statement's place among those that may run, as one server's reader sees it. It implements
// query.Turn.
type turn struct {
	of *member

	mu   sync.Mutex
	held query.Turn // nil once it has ended, or gone to another server
	// settled says that the statement does not move any more; until then nothing is passed on.
	settled, ended bool
}

// End implements query.Turn.
func (t *turn) End() {
	t.mu.Lock()
	t.ended = true
	held := t.held
	if !t.settled {
		held = nil
	} else {
		t.held = nil
	}
	t.mu.Unlock()
	if held != nil {
		t.of.release(t)
		held.End()
	}
}

// over tells whether it has ended.
func (t *turn) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// Overdue implements query.Turn.
func (t *turn) Overdue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settled && t.held != nil {
		t.held.Overdue()
	}
}

// settle says that the statement stays where it is.
func (t *turn) settle() {
	t.mu.Lock()
	t.settled = true
	ended := t.ended
	t.mu.Unlock()
	if ended {
		t.End()
		return
	}
	t.of.hold(t)
}

// leave says that the statement has gone to another server, and its turn with it.
func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil
}
