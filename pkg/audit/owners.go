package audit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/telemetry"
	"hub.internal/pkg/tool"
)

// Owners names the database role of the service that records a tool, a route, or, by the word before the first dot and that dot,
// acts such as user.add. Of a name that is not in it nobody knows whose it is.
type Owners map[string]string

// OwnersIn are those that the catalog names.
func OwnersIn(c tool.Catalog) Owners {
	o := Owners{}
	for word, service := range c.Acts {
		o[word+"."] = postgres.ServiceRole(service)
	}
	for _, m := range c.Manifests {
		role := postgres.ServiceRole(m.Service)
		for _, t := range m.Tools {
			o[t.Name] = role
		}
		for _, r := range m.Routes {
			o[r.Name] = role
		}
	}
	return o
}

// edge is the role that records what is refused before it comes to its owner, under whatever name it was asked for.
func edge() string { return postgres.ServiceRole(caller.Gateway) }

// Foreign tells that a row was recorded by a role that does not own its name. The store lets each service's role write rows of any
// name: what such a row says did not happen where it would have. A refusal by the edge is no foreign row, nor is one from before the
// log named its writers.
func (o Owners) Foreign(c Call) bool {
	owner := o.of(c.Tool)
	return owner != "" && c.Writer != "" && c.Writer != owner && (c.Writer != edge() || c.Outcome == OK)
}

func (o Owners) of(name string) string {
	if role, known := o[name]; known {
		return role
	}
	word, _, dotted := strings.Cut(name, ".")
	if !dotted {
		return ""
	}
	return o[word+"."]
}

// foreign is Foreign as a condition; what it compares with an unknown name's owner is null. Its parameters are the owners and the edge.
const foreign = `writer <> '' AND writer <> coalesce($%[1]d::jsonb ->> tool, $%[1]d::jsonb ->> substring(tool FROM '^[^.]*[.]'))
	AND (writer <> $%[2]d OR outcome = 'ok')`

const (
	// settles is when a row is in the log for sure: it may be dated five minutes in the past, its transaction may take a little, and
	// clocks differ.
	settles = 7 * time.Minute
	// watched is what the gauge speaks of, and watchStep what one statement of it reads at most.
	watched, watchStep = time.Hour, 5 * time.Minute
)

// Watch counts the foreign rows of the last hour. It reads each part of the log once, when it has settled.
type Watch struct {
	reader *Reader
	owners Owners

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
func (r *Reader) Watch(owners Owners) *Watch { return &Watch{reader: r, owners: owners} }

// Foreign is how many there are in the hour that ended seven minutes ago. What was read stays so when ctx ends.
func (w *Watch) Foreign(ctx context.Context) (rows int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	settled := w.reader.now().Add(-settles)
	if begin := settled.Add(-watched); w.until.Before(begin) {
		w.until = begin
	}
	for w.until.Before(settled) {
		next := w.until.Add(watchStep)
		if next.After(settled) {
			next = settled
		}
		found, err := w.reader.count(ctx, Filter{From: w.until, To: next, Foreign: w.owners})
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
func (r *Reader) count(ctx context.Context, f Filter) (rows int64, err error) {
	where, args := f.conditions()
	args = append(args, f.From, f.To)
	n := len(args)
	err = r.pool.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM audit.calls WHERE at >= $%d AND at < $%d`, n-1, n)+where, args...).Scan(&rows)
	return rows, explain(err)
}
