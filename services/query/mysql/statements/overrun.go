package statements

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/services/query/mysql/server"
)

const (
	// overdueAfter is how long a statement that was stopped may take to leave the server.
	overdueAfter = time.Second
	// askSoonest and askLatest bound the time between two looks at the server's processes, a quarter of the
	// youngest doubt's age; askFailed is the longest after failures.
	askSoonest, askLatest, askFailed = 10 * time.Millisecond, time.Second, 5 * time.Second
	// killLatest is the greatest time between two KILLs of one connection.
	killLatest = 30 * time.Second
	// closeLimit bounds the wait for what still runs when the process stops.
	closeLimit = 2 * time.Second
)

// overruns follows statements of which it is not known whether they still run: stopped
// and killed, or lost with their connection. A server looks for a KILL between rows,
// some functions run for minutes in between. A statement's turn ends when its connection
// has left the server's list of processes, which shows an account its own without
// further rights; until the server can be asked, it is held.
//
// One goroutine asks for all of them; it lives while there are any.
// Without it a turn would end with the call, and callers could stack statements on the server that nobody waits for.
type overruns struct {
	server  *server.Server
	db      *sql.DB // the pool for kills
	logger  *slog.Logger
	current metric.Int64UpDownCounter
	ever    metric.Int64Counter

	ctx    context.Context // ends when close has waited long enough
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // there is something in added

	mu      sync.Mutex
	added   []*doubt
	running bool
}

// doubt is a statement that may still run.
type doubt struct {
	*flight
	since   time.Time // when it was stopped or lost
	overdue bool
	kills   int
	kill    time.Time // when the next KILL is due
}

// newOverruns uses the pool for kills, so that what it asks does not wait behind statements.
func newOverruns(s *server.Server, db *sql.DB, logger *slog.Logger) *overruns {
	meter := otel.Meter("hub.internal/services/query/mysql/statements")
	current, err := meter.Int64UpDownCounter("hub.sql.runaway",
		metric.WithDescription("Statements of callers that run on the source now, although they were killed a second ago and more."))
	if err != nil {
		otel.Handle(err)
	}
	ever, err := meter.Int64Counter("hub.sql.runaways",
		metric.WithDescription("Statements of callers that still ran on the source a second after they were killed."))
	if err != nil {
		otel.Handle(err)
	}
	o := &overruns{server: s, db: db, logger: logger, current: current, ever: ever, wake: make(chan struct{}, 1)}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	// An alarm needs the series before the first of them.
	current.Add(o.ctx, 0)
	ever.Add(o.ctx, 0)
	return o
}

// follow takes a flight over, and its turn. killed tells whether a KILL is on its way.
func (o *overruns) follow(f *flight, killed bool) {
	d := &doubt{flight: f, since: time.Now()}
	// A statement that was lost with its connection has had no KILL: the first look sends one.
	if d.kill = d.since; killed {
		d.kill = d.since.Add(killGrace)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.added = append(o.added, d)
	if !o.running {
		o.running = true
		o.done.Go(o.run)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close waits a moment for what still runs. Nothing may be added any more.
// What is still left is logged as an error each, by run: an operator has to look at the server.
func (o *overruns) close() {
	patience := time.AfterFunc(closeLimit, o.cancel)
	defer patience.Stop()
	o.done.Wait()
	o.cancel()
}

// run looks until there are no doubts left. A failure is logged once, until a look succeeds again.
func (o *overruns) run() {
	var doubts []*doubt
	failures := 0
	for {
		if doubts = o.with(doubts); len(doubts) == 0 {
			return
		}
		var err error
		if doubts, err = o.look(doubts); err == nil {
			failures = 0
		} else if failures++; failures == 1 && o.ctx.Err() == nil {
			o.logger.Warn("stopped statements cannot be followed", "statements", len(doubts), "error", err)
		}
		o.pause(doubts, failures)
		if o.ctx.Err() != nil {
			for _, d := range doubts {
				o.logger.Error("a statement is left running on the source database", d.attributes()...)
			}
			return
		}
	}
}

// with adds what is new; when there is nothing at all, the goroutine has to end.
func (o *overruns) with(doubts []*doubt) []*doubt {
	o.mu.Lock()
	defer o.mu.Unlock()
	doubts = append(doubts, o.added...)
	o.added = nil
	o.running = len(doubts) > 0
	return doubts
}

// pause waits until the next look is due: the younger the doubt, the sooner.
// Polling at a quarter of the age is a geometric backoff: a KILL mostly works within milliseconds, and what it does not end
// runs for minutes. After failures the wait doubles from a quarter of a second up to askFailed.
func (o *overruns) pause(doubts []*doubt, failures int) {
	age := 4 * askLatest
	for _, d := range doubts {
		age = min(age, time.Since(d.since))
	}
	wait := max(age/4, askSoonest)
	if failures > 0 {
		wait = min(askLatest/8<<min(failures, 10), askFailed)
	}
	if len(doubts) == 0 {
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.wake:
	case <-o.ctx.Done():
	}
}

// look asks the server once for all doubts and returns those that are left. It raises
// the alarm for those that are overdue, and kills again when it is time for it.
// A connection that is gone from the list has ended. One that is there may be another's: after a restart a server counts
// its connections from 1 again, which started tells.
func (o *overruns) look(doubts []*doubt) (left []*doubt, err error) {
	ctx, cancel := context.WithTimeout(o.ctx, killLimit)
	defer cancel()
	dialect, err := o.server.Dialect(ctx)
	if err != nil {
		return doubts, err
	}
	alive, err := o.processes(ctx, dialect)
	if err != nil {
		return doubts, err
	}
	var due []*doubt
	for _, d := range doubts {
		switch {
		case !alive[d.id]:
			o.end(d)
		case time.Now().Before(d.kill) && (d.overdue || time.Since(d.since) < overdueAfter):
			left = append(left, d)
		default:
			due = append(due, d)
		}
	}
	if len(due) == 0 {
		return left, nil
	}
	started, err := o.started(ctx)
	if err != nil {
		return append(left, due...), err
	}
	for _, d := range due {
		if started.After(d.start) {
			// The statement ended with the server that it ran on; its id is another's now.
			o.end(d)
			continue
		}
		left = append(left, d)
		if !d.overdue && time.Since(d.since) >= overdueAfter {
			o.alarm(d)
		}
		// KILL again, at intervals that double from a second up to killLatest.
		d.kill = time.Now().Add(min(overdueAfter<<min(d.kills, 10), killLatest))
		d.kills++
		err = errors.Join(err, kill(ctx, o.db, dialect, "CONNECTION", d.id))
	}
	return left, err
}

// alarm is raised once for a doubt, and seen in the log, in the metrics and in the health of the service.
func (o *overruns) alarm(d *doubt) {
	d.overdue = true
	o.current.Add(o.ctx, 1)
	o.ever.Add(o.ctx, 1)
	// Never the text: it may hold data. The audit log has it, under the same request id.
	o.logger.Error("a statement outlives its KILL on the source database", d.attributes()...)
	if d.turn != nil {
		d.turn.Overdue()
	}
}

// end gives the turn back: from here on the statement takes nothing of the server.
func (o *overruns) end(d *doubt) {
	if d.overdue {
		o.current.Add(o.ctx, -1)
		o.logger.Warn("a statement that outlived its KILL has ended", d.attributes()...)
	}
	if d.turn != nil {
		d.turn.End()
	}
}

// attributes name the connection, the request and how long it has run, for the log.
func (d *doubt) attributes() []any {
	return []any{"connection", d.id, "request_id", d.request, "elapsed", time.Since(d.start).Round(time.Millisecond)}
}

// processes are the ids of the account's connections.
// SHOW PROCESSLIST shows an account its own connections without PROCESS, the right to see those of all.
func (o *overruns) processes(ctx context.Context, d server.Dialect) (map[uint64]bool, error) {
	list := "SHOW PROCESSLIST"
	if d == server.TiDB { // SHOW knows the connections of one of the cluster's servers alone
		list = "SELECT id FROM information_schema.cluster_processlist"
	}
	rows, err := o.db.QueryContext(ctx, list)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var id uint64
	into := make([]any, len(columns))
	for i := range into {
		into[i] = &sql.RawBytes{}
	}
	into[0] = &id
	ids := map[uint64]bool{}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return ids, rows.Err()
}

// started is the earliest time at which the server may have started; long ago where it
// does not tell (TiDB, whose ids do not come again).
func (o *overruns) started(ctx context.Context) (time.Time, error) {
	var name string
	var seconds int64
	err := o.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'").Scan(&name, &seconds)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Unix(0, 0), nil
	}
	// Both ends are whole seconds on the server's clock.
	return time.Now().Add(-time.Duration(seconds+1) * time.Second), err
}
