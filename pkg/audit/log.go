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
	"hub.internal/pkg/telemetry"
)

const (
	// queueSize and queueBytes bound the rows that wait, those that are being written among them; what does not fit is
	// dropped and counted.
	queueSize  = 20_000
	queueBytes = 32 << 20
	// keepFor is how long a queued row waits for a store that is away.
	keepFor = 30 * time.Minute
)

// Log commits rows in groups: one writer takes whatever waits, writes it in one statement, and while it commits the next
// group forms. Those that somebody waits for go first, and no timer delays them.
//
// While the store is away, a row that somebody waits for fails at once, and the others are kept: they are written again, with
// pauses of up to two seconds, until the store takes them, they do not fit any more, or they are half an hour old. A row is
// written once, however often it is tried (see insert).
type Log struct {
	pool    *pgxpool.Pool
	logger  *slog.Logger
	dropped metric.Int64Counter
	forget  func()          // ends the gauges
	ctx     context.Context // ends when Close waits no longer
	cancel  context.CancelFunc
	wake    chan struct{}
	stopped chan struct{}

	mu sync.Mutex
	// awaited and queued wait, in the order of their arrival.
	awaited, queued []*pending
	rows, bytes     int // of those and the group that is being written
	closed          bool
	store           outage
}

// pending is a row that waits to be written.
type pending struct {
	row   row
	since time.Time
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
	l := &Log{pool: pool, logger: logger, dropped: dropped, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.forget = telemetry.ObserveBulkhead("audit", l.load)
	go l.run()
	return l
}

// load is how full the queue is: of rows, or of bytes where those are nearer to their bound.
func (l *Log) load() telemetry.Bulkhead {
	l.mu.Lock()
	defer l.mu.Unlock()
	return telemetry.Bulkhead{Limit: queueSize, Used: int64(max(l.rows, l.bytes*queueSize/queueBytes))}
}

// Committed waits for the commit of a row. It returns nil, or E_DB when the row could not be kept: the answer that it records
// must then be kept back. It is called once.
type Committed func(context.Context) error

// Begin hands a row to the writer and does not wait: what is left to be done for an answer is done while the row is committed.
// The store has three seconds for it, and none while it is known to be away.
func (l *Log) Begin(ctx context.Context, e Entry) Committed {
	r, err := e.in(ctx).row()
	if err != nil {
		return func(context.Context) error { return err }
	}
	p := &pending{row: r, done: make(chan error, 1)}
	if err := l.enqueue(p); err != nil {
		return func(context.Context) error { return notKept(err) }
	}
	return func(ctx context.Context) error {
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
}

// Write returns when the row is committed, or E_DB when it could not be. It is Begin, and the wait for what that returns.
func (l *Log) Write(ctx context.Context, e Entry) error { return l.Begin(ctx, e)(ctx) }

// Away is nil, or the E_DB of a Write that would fail at once: work whose answer would be withheld need not begin.
func (l *Log) Away() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.store.fastFailure(time.Now()); err != nil {
		return notKept(err)
	}
	return nil
}

var (
	errClosed = errors.New("audit log is closed")
	errFull   = errors.New("audit queue is full")
)

// notKept is E_DB for a row that somebody waits for, with the cause for the log of the process.
func notKept(cause error) error {
	return fault.New(fault.DB,
		"The call could not be recorded in the audit log, so its answer is withheld. Try again in a moment.").After(time.Second).Because(cause)
}

// Queue records a row within a second, or as soon as the store is back; it never blocks, and what is
// dropped is counted in the metric hub.audit.dropped.
func (l *Log) Queue(e Entry) {
	r, err := e.row()
	if err == nil {
		err = l.enqueue(&pending{row: r})
	}
	if err != nil {
		l.drop(1, err)
	}
}

// enqueue puts a row into its queue and wakes the writer. It never blocks: a queue that is full is an error.
func (l *Log) enqueue(p *pending) error {
	p.since = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := p.row.bytes()
	switch {
	case l.closed:
		return errClosed
	case l.rows >= queueSize || l.bytes+n > queueBytes:
		return errFull
	}
	if p.done == nil {
		l.queued = append(l.queued, p)
	} else {
		if err := l.store.fastFailure(p.since); err != nil {
			return err
		}
		l.awaited = append(l.awaited, p)
	}
	l.rows++
	l.bytes += n
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// drop counts and logs rows that are lost.
func (l *Log) drop(n int, err error) {
	l.dropped.Add(context.Background(), int64(n))
	l.logger.Warn("audit rows dropped", "rows", n, "error", err)
}

// Close writes what waits and stops the writer. What the store has not taken when ctx ends is dropped, counted and told.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	defer l.cancel()
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		l.cancel()
		<-l.stopped
		return ctx.Err()
	}
}
