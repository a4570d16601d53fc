package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	"hub.internal/services/admin/auditlog"
)

// top is how many tools and callers a summary names, mostCodes how many codes: more than there are, unless somebody makes
// them up.
const top, mostCodes = 10, 100

// maxRawSpan bounds what of the log itself a summary reads: what is younger than the roll-ups is minutes, unless these
// do not run.
const maxRawSpan = time.Hour

// part is what of a range is read from where: a grain of the roll-ups, or the log itself.
type part struct{ from, to time.Time }

// parts are the parts of a range.
// missingFrom and missingTo are what nobody has rolled up and what is too much to read here; zero where nothing is missing.
type parts struct {
	day, hour, fine, log         part
	missingFrom, missingTo, from time.Time
}

// parts says which part of a range is read from which roll-up: the coarsest that has it, and the log itself for what is
// younger.
// An example with a step of an hour: whole hours come from the grain hour, what is younger from 5m, and the last minutes from the log.
func (r *Reader) parts(ctx context.Context, g auditlog.Range, now time.Time) (p parts, err error) {
	marks := map[string]time.Time{}
	type mark struct {
		Grain string
		Until time.Time
	}
	// A watermark begins as -infinity, which time.Time does not have.
	rows, err := postgres.All(ctx, r.pool, pgx.RowToStructByName[mark],
		`SELECT grain, greatest(until, '1970-01-01 00:00+00') AS until FROM audit.watermarks`)
	if err != nil {
		return p, explainReader(err)
	}
	for _, m := range rows {
		marks[m.Grain] = m.Until
	}
	p.from = g.At(now)
	at := p.from
	// take reads from a grain what it has, where nothing coarser did.
	take := func(grain string) part {
		is := part{at, marks[grain]}
		if is.to.Before(at) {
			is.to = at
		}
		at = is.to
		return is
	}
	if g.Step%(24*time.Hour) == 0 {
		p.day = take("day")
	}
	if g.Step%time.Hour == 0 {
		p.hour = take("hour")
	}
	p.fine = take("5m")
	if first := now.Add(-maxRawSpan); at.Before(first) {
		var missing bool
		const older = `SELECT EXISTS (SELECT FROM audit.calls WHERE at >= $1 AND at < $2)`
		if err := r.pool.QueryRow(ctx, older, at, first).Scan(&missing); err != nil {
			return p, explainReader(err)
		}
		if missing {
			p.missingFrom, p.missingTo = at, first
		}
		at = first
	}
	p.log = part{at, now.Add(time.Second)}
	return p, nil
}

// ofTools is which rows are calls of tools: what people do has a dot in its name.
// calls.refused is a count of refused calls (audit.Tally), so it stands for calls of tools in spite of its dot.
const ofTools = `(strpos(tool, '.') = 0 OR tool = 'calls.refused')`

// Summary sums up a range that ends now.
// Beside the watermarks it costs two statements, which run at the same time: measures by point and by tool, and callers.
func (r *Reader) Summary(ctx context.Context, g auditlog.Range) (auditlog.Summary, error) {
	now := r.now()
	p, err := r.parts(ctx, g, now)
	if err != nil {
		return auditlog.Summary{}, err
	}
	s := auditlog.Summary{From: p.from, To: now, MissingFrom: p.missingFrom, MissingTo: p.missingTo}
	type measure struct {
		At            *time.Time
		Tool, Outcome *string
		Bucket        int
		Calls         int64
	}
	// The mode plans for these values each time, so that the planner sees which months of the partitioned log they exclude.
	bounds := []any{pgx.QueryExecModeCacheDescribe, p.day.from, p.day.to, p.hour.from, p.hour.to, p.fine.from, p.fine.to, p.log.from, p.log.to}
	var callers sync.WaitGroup
	var problem error
	callers.Go(func() { s.Callers, s.Limited, problem = r.callers(ctx, bounds) })
	measures, err := postgres.All(ctx, r.pool, pgx.RowToStructByName[measure], `
		SELECT point AS at, tool, outcome, bucket, sum(calls)::bigint AS calls
		FROM (SELECT date_bin($9::interval, start, $10) AS point, tool, outcome, bucket, calls FROM (
			SELECT start, tool, outcome, bucket, calls FROM audit.rollups WHERE grain = 'day' AND start >= $1 AND start < $2
			UNION ALL SELECT start, tool, outcome, bucket, calls FROM audit.rollups WHERE grain = 'hour' AND start >= $3 AND start < $4
			UNION ALL SELECT start, tool, outcome, bucket, calls FROM audit.rollups WHERE grain = '5m' AND start >= $5 AND start < $6
			UNION ALL SELECT at, tool, outcome, bucket, calls FROM audit.measured WHERE at >= $7 AND at < $8) all_of WHERE `+ofTools+`) x
		GROUP BY GROUPING SETS ((point, outcome, bucket), (tool, outcome, bucket))`, append(slices.Clone(bounds), g.Step, auditlog.Origin())...)
	callers.Wait()
	if err = errors.Join(explainReader(err), problem); err != nil {
		return auditlog.Summary{}, err
	}
	points, tools, codes := map[time.Time]*histogram{}, map[string]*histogram{}, map[string]int64{}
	var total histogram
	for _, m := range measures {
		outcome := ""
		if m.Outcome != nil {
			outcome = *m.Outcome
		}
		// A row of the second grouping set: of a tool, without a point.
		if m.At == nil {
			if name := text.OrEmpty(m.Tool); name != "calls.refused" {
				histogramOf(tools, name).add(outcome, m.Bucket, m.Calls)
			}
			continue
		}
		histogramOf(points, m.At.UTC()).add(outcome, m.Bucket, m.Calls)
		total.add(outcome, m.Bucket, m.Calls)
		if outcome != audit.OK {
			codes[outcome] += m.Calls
		}
	}
	s.Total = total.figures()
	for at := s.From; !at.After(now); at = at.Add(g.Step) {
		s.Points = append(s.Points, auditlog.Point{At: at, Figures: histogramOf(points, at).figures()})
	}
	for name, h := range tools {
		s.Tools = append(s.Tools, auditlog.Tool{Name: name, Figures: h.figures()})
	}
	slices.SortFunc(s.Tools, func(a, b auditlog.Tool) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name))
	})
	s.Tools = s.Tools[:min(len(s.Tools), top)]
	for code, n := range codes {
		s.Errors = append(s.Errors, auditlog.Count{Code: code, Calls: n})
	}
	slices.SortFunc(s.Errors, func(a, b auditlog.Count) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Code, b.Code))
	})
	s.Errors = s.Errors[:min(len(s.Errors), mostCodes)]
	return s, nil
}

// callers are the greatest in the parts of a range that bounds are of.
// One statement finds both orders, by calls and by refusals for rate limits. The 10 in it is top.
func (r *Reader) callers(ctx context.Context, bounds []any) (most, limited []auditlog.Caller, err error) {
	type place struct {
		auditlog.Caller
		ByCalls, ByLimited int
	}
	rows, err := postgres.All(ctx, r.pool, pgx.RowToStructByName[place], `SELECT * FROM (
		SELECT credential_id, calls::bigint AS calls, failed::bigint AS failed, limited::bigint AS limited,
			row_number() OVER (ORDER BY calls DESC, credential_id) AS by_calls,
			row_number() OVER (ORDER BY limited DESC, credential_id) AS by_limited
		FROM (SELECT credential_id, sum(calls) AS calls, sum(failed) AS failed, sum(limited) AS limited FROM (
			SELECT credential_id, calls, failed, limited FROM audit.rollup_callers WHERE grain = 'day' AND start >= $1 AND start < $2
			UNION ALL SELECT credential_id, calls, failed, limited FROM audit.rollup_callers WHERE grain = 'hour' AND start >= $3 AND start < $4
			UNION ALL SELECT credential_id, calls, failed, limited FROM audit.rollup_callers WHERE grain = '5m' AND start >= $5 AND start < $6
			UNION ALL SELECT credential_id, calls, CASE WHEN outcome <> 'ok' THEN calls ELSE 0 END,
				CASE WHEN outcome = 'E_RATE_LIMIT' THEN calls ELSE 0 END
				FROM audit.measured WHERE at >= $7 AND at < $8 AND `+ofTools+`) all_of
		GROUP BY credential_id) sums) places WHERE by_calls <= 10 OR by_limited <= 10 AND limited > 0`, bounds...)
	if err != nil {
		return nil, nil, explainReader(err)
	}
	slices.SortFunc(rows, func(a, b place) int { return cmp.Compare(a.ByCalls, b.ByCalls) })
	for _, p := range rows {
		if p.ByCalls <= top {
			most = append(most, p.Caller)
		}
	}
	slices.SortFunc(rows, func(a, b place) int { return cmp.Compare(a.ByLimited, b.ByLimited) })
	for _, p := range rows {
		if p.ByLimited <= top && p.Limited > 0 {
			limited = append(limited, p.Caller)
		}
	}
	return most, limited, nil
}

// bucketBounds are where buckets of times begin, in milliseconds: the first is bucket 1. The view audit.measured has the same.
// They grow with the time, so that a quantile is off by a part of itself, be it of a fast tool or of a slow one.
var bucketBounds = []float64{0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000,
	10_000, 15_000, 20_000, 30_000, 60_000}

// histogram is of calls; bucket 0 holds those that were not measured.
type histogram struct {
	calls, failed int64
	buckets       []int64
}

// histogramOf is the histogram of a key, made when it is first asked for.
func histogramOf[K comparable](all map[K]*histogram, key K) *histogram {
	if all[key] == nil {
		all[key] = &histogram{}
	}
	return all[key]
}

// add counts calls of an outcome in a bucket.
// What was not measured counts as a call and is in no quantile.
func (h *histogram) add(outcome string, bucket int, calls int64) {
	h.calls += calls
	if outcome != audit.OK {
		h.failed += calls
	}
	if bucket > 0 && bucket <= len(bucketBounds) {
		if h.buckets == nil {
			h.buckets = make([]int64, len(bucketBounds)+1)
		}
		h.buckets[bucket] += calls
		h.buckets[0] += calls
	}
}

// figures are the numbers that are shown of a histogram.
func (h *histogram) figures() auditlog.Figures {
	f := auditlog.Figures{Calls: h.calls, Failed: h.failed}
	if h.buckets != nil {
		f.Measured, f.P50, f.P95 = h.buckets[0], h.quantile(.5), h.quantile(.95)
	}
	return f
}

// quantile is the time that a share of the measured calls kept, as if those of a bucket lay evenly in it.
// This is linear interpolation. What is in the last bucket, which has no end, counts as its begin.
func (h *histogram) quantile(share float64) float64 {
	left := share * float64(h.buckets[0])
	for i, n := range h.buckets[1:] {
		if left > float64(n) || n == 0 {
			left -= float64(n)
			continue
		}
		if i == len(bucketBounds)-1 {
			break
		}
		return bucketBounds[i] + (bucketBounds[i+1]-bucketBounds[i])*left/float64(n)
	}
	return bucketBounds[len(bucketBounds)-1]
}
