package audit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/telemetry"
)

const (
	// groupSize bounds the rows of one commit.
	groupSize = 1000
	// lingerTime is how long rows that nobody waits for collect; a queued row is to be
	// committed within a second.
	lingerTime = 100 * time.Millisecond
	// queueSize bounds the rows that wait; what does not fit is dropped and counted.
	queueSize = 20_000
	// commitTimeout bounds one group's commit.
	commitTimeout = 5 * time.Second
	// partitionsAhead is how many months have a partition before they begin.
	partitionsAhead = 3
)

// Log commits rows in groups: one writer takes whatever waits, writes it in one
// statement, and while it commits the next group forms. No timer delays a caller who waits.
type Log struct {
	pool    *pgxpool.Pool
	logger  *slog.Logger
	rows    chan pending
	stopped chan struct{}
	dropped metric.Int64Counter
	forget  func() // ends the gauges

	// open is held by who puts a row into rows, and taken for good by Close: a row
	// that was put behind the writer's back would be lost without a word.
	open sync.RWMutex
	once sync.Once
}

type pending struct {
	row row
	// done is nil for a queued row.
	done chan error
}

// NewLog starts the writer; Close stops it.
func NewLog(pool *pgxpool.Pool, logger *slog.Logger) *Log {
	dropped, err := otel.Meter("hub.internal/pkg/audit").Int64Counter("hub.audit.dropped",
		metric.WithDescription("Audit rows that were not kept."))
	if err != nil {
		otel.Handle(err)
	}
	dropped.Add(context.Background(), 0) // the first one that is not kept is an increase
	l := &Log{pool: pool, logger: logger, rows: make(chan pending, queueSize), stopped: make(chan struct{}), dropped: dropped}
	l.forget = telemetry.ObserveBulkhead("audit", func() telemetry.Bulkhead {
		return telemetry.Bulkhead{Limit: queueSize, Used: int64(len(l.rows))}
	})
	go l.run()
	return l
}

// Write returns when the row is committed, or E_DB when it could not be: the caller
// must then keep its answer back.
func (l *Log) Write(ctx context.Context, e Entry) error {
	r, err := e.in(ctx).row()
	if err != nil {
		return err
	}
	p := pending{row: r, done: make(chan error, 1)}
	if !l.open.TryRLock() {
		return notKept(errClosed)
	}
	select {
	case l.rows <- p:
		l.open.RUnlock()
	case <-ctx.Done():
		l.open.RUnlock()
		return notKept(ctx.Err())
	}
	select {
	case err := <-p.done:
		if err != nil {
			return notKept(err)
		}
		return nil
	case <-ctx.Done():
		return notKept(ctx.Err())
	}
}

var errClosed = errors.New("audit log is closed")

func notKept(cause error) error {
	return fault.New(fault.DB,
		"The call could not be recorded in the audit log, so its answer is withheld. Try again in a moment.").After(time.Second).Because(cause)
}

// Queue records a row within a second, best effort: it never blocks, and what is
// dropped is counted in the metric hub.audit.dropped.
func (l *Log) Queue(e Entry) {
	if err := l.enqueue(e); err != nil {
		l.drop(1, err)
	}
}

func (l *Log) enqueue(e Entry) error {
	r, err := e.row()
	if err != nil {
		return err
	}
	if !l.open.TryRLock() {
		return errClosed
	}
	defer l.open.RUnlock()
	select {
	case l.rows <- pending{row: r}:
		return nil
	default:
		return errors.New("audit queue is full")
	}
}

func (l *Log) drop(n int, err error) {
	l.dropped.Add(context.Background(), int64(n))
	l.logger.Warn("audit rows dropped", "rows", n, "error", err)
}

// Close flushes what waits and stops the writer.
func (l *Log) Close(ctx context.Context) error {
	l.once.Do(func() {
		go func() {
			l.open.Lock()
			close(l.rows)
		}()
	})
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) run() {
	defer close(l.stopped)
	defer l.forget()
	l.ensurePartitions()
	daily := time.NewTicker(24 * time.Hour)
	defer daily.Stop()
	for {
		select {
		case p, open := <-l.rows:
			if !open {
				return
			}
			l.commit(l.group(p))
		case <-daily.C:
			l.ensurePartitions()
		}
	}
}

// group takes what waits behind first. While nobody waits for any of the rows it lingers a
// little, so that a queued row seldom costs a statement of its own; the first awaited one
// ends that.
func (l *Log) group(first pending) []pending {
	g := []pending{first}
	var linger <-chan time.Time
	awaited := first.done != nil
	for len(g) < groupSize {
		select {
		case p, open := <-l.rows:
			if !open {
				return g
			}
			g = append(g, p)
			awaited = awaited || p.done != nil
			continue
		default:
		}
		if awaited {
			return g
		}
		if linger == nil {
			linger = time.After(lingerTime)
		}
		select {
		case p, open := <-l.rows:
			if !open {
				return g
			}
			g = append(g, p)
			awaited = p.done != nil
		case <-linger:
			return g
		}
	}
	return g
}

func (l *Log) commit(g []pending) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	err := l.insert(ctx, g)
	if err != nil && len(g) > 1 && !fault.Is(err, fault.DB) {
		// One row that the store refuses must not take its neighbours with it.
		for i := range g {
			l.commit(g[i : i+1])
		}
		return
	}
	queued := 0
	for _, p := range g {
		if p.done == nil {
			queued++
			continue
		}
		p.done <- err
	}
	if err != nil && queued > 0 {
		l.drop(queued, err)
	}
}

// insert writes a group in one statement: a column a parameter, whatever its size.
func (l *Log) insert(ctx context.Context, g []pending) error {
	n := len(g)
	var (
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
		at[i], request[i], service[i], user[i], credential[i], tool[i], outcome[i] = r.at, r.requestID, r.service, r.externalUser, r.credential,
			r.tool, r.outcome
		count[i], took[i], hash[i], detail[i], traces[i] = r.count, r.tookMS, r.inputHash, r.detail, r.traceID
	}
	_, err := l.pool.Exec(ctx, insert+`unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
		$8::int[], $9::int[], $10::bytea[], $11::jsonb[], $12::text[])`+as,
		at, request, service, user, credential, tool, outcome, count, took, hash, detail, traces)
	return postgres.Fault(err)
}

func (l *Log) ensurePartitions() {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	if _, err := l.pool.Exec(ctx, `SELECT audit.ensure_partitions($1)`, partitionsAhead); err != nil {
		l.logger.Warn("audit partitions not ensured", "error", err)
	}
}
