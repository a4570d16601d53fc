package postgres

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hub.internal/pkg/telemetry"
	"hub.internal/services/admin/auditlog"
)

// foreign is auditlog.Owners.Foreign as a condition; what it compares with an unknown name's owner is null. It names the
// owners and the edge's role.
const foreign = `writer <> '' AND writer <> coalesce(@owners::jsonb ->> tool, @owners::jsonb ->> substring(tool FROM '^[^.]*[.]'))
	AND (writer <> @edge OR outcome = 'ok')`

const (
	// settles is when a row is in the log for sure: it may be dated five minutes in the past, its transaction may take a little, and
	// clocks differ.
	settles = 7 * time.Minute
	// watched is what the gauge speaks of, and watchSpan what one statement of it reads at most.
	watched, watchSpan = time.Hour, 5 * time.Minute
)

// Watch counts the foreign rows of the last hour. It reads each part of the log once, when it has settled.
// found has only stretches with foreign rows, so it is empty as a rule.
type Watch struct {
	reader *Reader
	owners auditlog.Owners

	mu    sync.Mutex
	until time.Time
	found []finding
}

// finding is how many foreign rows there are just before a moment.
type finding struct {
	until time.Time
	rows  int64
}

// Watch returns a count that begins with the hour before.
func (r *Reader) Watch(owners auditlog.Owners) *Watch { return &Watch{reader: r, owners: owners} }

// Foreign is how many there are in the hour that ended seven minutes ago. What was read stays so when ctx ends.
// An error leaves until where it is, and the next call goes on from there.
func (w *Watch) Foreign(ctx context.Context) (rows int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	settled := w.reader.now().Add(-settles)
	// After a start, or a long outage, what is older than the hour is left out.
	if begin := settled.Add(-watched); w.until.Before(begin) {
		w.until = begin
	}
	for w.until.Before(settled) {
		next := w.until.Add(watchSpan)
		if next.After(settled) {
			next = settled
		}
		found, err := w.reader.count(ctx, auditlog.Filter{From: w.until, To: next, Foreign: w.owners})
		if err != nil {
			return 0, err
		}
		w.until = next
		if found > 0 {
			w.found = append(w.found, finding{next, found})
		}
	}
	w.found = slices.DeleteFunc(w.found, func(f finding) bool { return f.until.Before(settled.Add(-watched)) })
	for _, f := range w.found {
		rows += f.rows
	}
	return rows, nil
}

// Sample is the count as a gauge. Run it as a background task.
func (w *Watch) Sample(logger *slog.Logger) *telemetry.Sample {
	const name = "hub.audit.foreign"
	return &telemetry.Sample{Name: "audit", Logger: logger, Gauges: []telemetry.Gauge{{Name: name,
		Description: "Rows of the last hour of the audit log that a role recorded which does not own the tool or act."}},
		Ask: func(ctx context.Context) ([]telemetry.Reading, error) {
			rows, err := w.Foreign(ctx)
			return []telemetry.Reading{{Gauge: name, Value: float64(rows)}}, err
		}}
}

// count is how many rows a filter with both bounds finds.
func (r *Reader) count(ctx context.Context, f auditlog.Filter) (rows int64, err error) {
	where, args := conditions(f)
	args["from"], args["to"] = f.From, f.To
	err = r.pool.QueryRow(ctx, `SELECT count(*) FROM audit.calls WHERE at >= @from AND at < @to`+where, args).Scan(&rows)
	return rows, explainReader(err)
}
