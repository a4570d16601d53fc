package audit

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
)

const (
	// groupSize and groupBytes bound the rows of one commit; a row of any size is a group.
	groupSize  = 1000
	groupBytes = 4 << 20
	// lingerTime is how long rows that nobody waits for collect; a queued row is to be
	// committed within a second.
	lingerTime = 100 * time.Millisecond
	// commitTimeout bounds one group's commit.
	commitTimeout = 3 * time.Second
	// firstPause is between the first two tries of rows that a store that is away did not take; it doubles up to longestPause.
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// outage is what the writer knows of a store that is away.
type outage struct {
	err   error // of the last group; nil when it was written
	pause time.Duration
	next  time.Time // of another try
	busy  bool      // that try is being made
}

// fastFailure is why a row that somebody waits for need not wait; nil when it is worth a try.
func (o *outage) fastFailure(now time.Time) error {
	if o.err != nil && (o.busy || now.Before(o.next)) {
		return o.err
	}
	return nil
}

// failed notes that a group was not written.
func (o *outage) failed(err error, now time.Time) {
	o.err, o.busy = err, false
	o.pause = min(max(2*o.pause, firstPause), longestPause)
	o.next = now.Add(o.pause)
}

// run writes groups until the log is closed and empty, or Close waits no longer.
func (l *Log) run() {
	defer close(l.stopped)
	defer l.forget()
	for l.ctx.Err() == nil {
		g, pause, over := l.nextBatch(time.Now())
		switch {
		case over:
			return
		case g != nil:
			l.writeBatch(g)
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
	l.dropPending()
}

// nextBatch takes what is to be written now: whoever is waited for, and behind them what is queued. Without any it tells for how
// long there is nothing to do, or that it is over. Rows that nobody waits for linger a little, so that one seldom costs a
// statement of its own.
func (l *Log) nextBatch(now time.Time) (g []*pending, pause time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store.err != nil {
		l.expire(now)
	}
	switch {
	case len(l.awaited)+len(l.queued) == 0:
		return nil, time.Hour, l.closed
	case l.store.err != nil && now.Before(l.store.next):
		return nil, l.store.next.Sub(now), false
	case len(l.awaited) == 0 && len(l.queued) < groupSize && !l.closed && l.store.err == nil:
		if lingers := lingerTime - now.Sub(l.queued[0].since); lingers > 0 {
			return nil, lingers, false
		}
	}
	bytes := 0
	for _, from := range []*[]*pending{&l.awaited, &l.queued} {
		for len(*from) > 0 && len(g) < groupSize {
			p := (*from)[0]
			if bytes += p.row.bytes(); bytes > groupBytes && len(g) > 0 {
				break
			}
			g = append(g, p)
			(*from)[0] = nil
			*from = (*from)[1:]
		}
	}
	l.store.busy = true
	return g, 0, false
}

// expire drops the queued rows that have waited too long. l.mu is held.
func (l *Log) expire(now time.Time) {
	old := 0
	for old < len(l.queued) && now.Sub(l.queued[old].since) > keepFor {
		old++
	}
	if old == 0 {
		return
	}
	l.releaseSpace(l.queued[:old])
	l.queued = l.queued[old:]
	l.drop(old, l.store.err)
}

// releaseSpace gives the place of rows back. l.mu is held.
func (l *Log) releaseSpace(rows []*pending) {
	l.rows -= len(rows)
	for _, p := range rows {
		l.bytes -= p.row.bytes()
	}
}

// writeBatch writes a group. What is left of it while the store is away fails or waits on, at the head of the queue.
func (l *Log) writeBatch(g []*pending) {
	left, err := l.write(g)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseSpace(g[:len(g)-left])
	if err == nil {
		l.store = outage{}
		return
	}
	if l.store.err == nil {
		l.logger.Warn("the audit log cannot be written; queued rows are kept", "error", err)
	}
	l.store.failed(err, time.Now())
	var kept []*pending
	for _, p := range g[len(g)-left:] {
		if p.done == nil {
			kept = append(kept, p)
			continue
		}
		l.releaseSpace([]*pending{p})
		p.done <- err
	}
	l.queued = append(kept, l.queued...)
	l.releaseSpace(l.awaited)
	for _, p := range l.awaited {
		p.done <- err
	}
	l.awaited = nil
}

// write writes a group, and tells how many of its last rows were not, because the store is away. A row that the store refuses
// by itself does not take its neighbours with it, and is not tried again.
func (l *Log) write(g []*pending) (left int, err error) {
	ctx, cancel := context.WithTimeout(l.ctx, commitTimeout)
	defer cancel()
	err = l.insert(ctx, g)
	switch {
	case err == nil:
	case l.ctx.Err() != nil || isUnavailable(err):
		return len(g), err
	case len(g) > 1:
		half := len(g) / 2
		if left, err := l.write(g[:half]); err != nil {
			return left + len(g) - half, err
		}
		return l.write(g[half:])
	case g[0].done == nil:
		l.drop(1, err)
	}
	for _, p := range g {
		if p.done != nil {
			p.done <- err
		}
	}
	return 0, nil
}

// isUnavailable tells whether the store, and not the row, is why a row was not written: it cannot be reached, takes no writes from this
// role, or lacks the month's table, which the server tells as the violation of a constraint without a name.
func isUnavailable(err error) bool {
	var pg *pgconn.PgError
	if fault.Is(err, fault.DB) || !errors.As(err, &pg) {
		return fault.Is(err, fault.DB)
	}
	switch {
	case pg.Code == "23514":
		return pg.ConstraintName == ""
	case strings.HasPrefix(pg.Code, "22"), strings.HasPrefix(pg.Code, "23"), strings.HasPrefix(pg.Code, "54"):
		return false
	}
	return true
}

// dropPending drops what waits when the log is closed and the store has not taken it.
func (l *Log) dropPending() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, p := range l.awaited {
		p.done <- errClosed
	}
	if n := len(l.queued); n > 0 {
		l.drop(n, errors.Join(errClosed, l.store.err))
	}
	l.awaited, l.queued, l.rows, l.bytes = nil, nil, 0, 0
}

// insert writes a group in one statement: a column a parameter, whatever its size.
func (l *Log) insert(ctx context.Context, g []*pending) error {
	n := len(g)
	var (
		id                                                = make([][16]byte, n)
		at                                                = make([]time.Time, n)
		request, service, user, credential, tool, outcome = make([]string, n), make([]string, n), make([]string, n), make([]string, n),
			make([]string, n), make([]string, n)
		count, took = make([]int32, n), make([]int32, n)
		hash        = make([][]byte, n)
		detail      = make([]*string, n)
		traces      = make([]string, n)
	)
	for i, p := range g {
		r := p.row
		id[i], at[i], request[i], service[i], user[i], credential[i], tool[i], outcome[i] = r.id, r.at, r.requestID, r.service, r.externalUser,
			r.credential, r.tool, r.outcome
		count[i], took[i], hash[i], detail[i], traces[i] = r.count, r.tookMS, r.inputHash, r.detail, r.traceID
	}
	_, err := l.pool.Exec(ctx, insert+`unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
		$8::text[], $9::int[], $10::int[], $11::bytea[], $12::jsonb[], $13::text[])`+as,
		id, at, request, service, user, credential, tool, outcome, count, took, hash, detail, traces)
	return postgres.Fault(err)
}
