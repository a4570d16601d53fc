package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/services/admin/auditlog"
)

const (
	// firstWindow is how much of the log is looked at first; further back it is a part of how far that is.
	firstWindow     = time.Hour
	firstWindowPart = 16
	// longest is more than any log goes back.
	longest = 100 * 365 * 24 * time.Hour
	// fastLook is what a look takes that may reach much further the next time.
	fastLook = 10 * time.Millisecond
)

// Search returns at most limit rows before a position; the zero one is now. It goes back in time in windows that grow,
// until the page is full or its time is used up.
// Pages go by keyset pagination over (at, id). The windows keep a search for something rare from reading the whole log at once: the log
// is partitioned by month and may have years.
func (r *Reader) Search(ctx context.Context, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error) {
	s, err := r.lookBack(ctx, f, before)
	if err != nil {
		return auditlog.Page{}, err
	}
	// A page that is not full when the time is used up says how far back it has come (Page.Unfinished).
	start := r.now()
	var page auditlog.Page
	for !s.done() {
		// One row more than the page has tells that there is another page.
		look := r.now()
		found, err := s.next(ctx, limit+1-len(page.Calls))
		if err != nil {
			return auditlog.Page{}, err
		}
		page.Calls = append(page.Calls, found...)
		if len(page.Calls) > limit {
			page.Calls = page.Calls[:limit]
			page.Next = page.Calls[limit-1].Position()
			return page, nil
		}
		took, left := r.now().Sub(look), r.budget-r.now().Sub(start)
		s.grow(took, left)
		if left <= 2*took && !s.done() {
			page.Next, page.Unfinished = auditlog.Position{At: s.to}, true
			return page, nil
		}
	}
	return page, nil
}

// exportPage is how many rows an export holds at once.
const exportPage = 1000

// Export calls row with each row, newest first, until there are none, it has had limit, row fails, or ctx ends. It
// holds a page of them and no transaction: nothing waits for a slow reader, and rows do not change. more tells that there
// are others, older than next.
func (r *Reader) Export(ctx context.Context, f auditlog.Filter, limit int, row func(auditlog.Call) error) (next auditlog.Position,
	more bool, err error) {
	s, err := r.lookBack(ctx, f, auditlog.Position{})
	if err != nil {
		return auditlog.Position{}, false, err
	}
	for !s.done() {
		look := r.now()
		found, err := s.next(ctx, exportPage)
		if err != nil {
			return auditlog.Position{}, false, err
		}
		for _, c := range found {
			if limit--; limit < 0 {
				return next, true, nil
			}
			if err := row(c); err != nil {
				return auditlog.Position{}, false, err
			}
			next = c.Position()
		}
		if len(found) == exportPage {
			s.after(next)
		} else {
			s.grow(r.now().Sub(look), time.Hour)
		}
	}
	return auditlog.Position{}, false, nil
}

// lookBack is a search through the log, window by window.
type lookBack struct {
	r *Reader
	// where is the filter's conditions, but for the time, and args what they and a look name.
	where string
	args  pgx.NamedArgs
	// from is where the log, or the filter, begins; to is what has been looked at already.
	from, to time.Time
	// last is a row of the moment to, which comes before what is left; empty when none is.
	last   string
	window time.Duration
}

// lookBack begins a search before a position.
func (r *Reader) lookBack(ctx context.Context, f auditlog.Filter, before auditlog.Position) (*lookBack, error) {
	// Clocks differ: what the store has dated a little in our future is found.
	s := &lookBack{r: r, to: r.now().Add(time.Minute)}
	s.where, s.args = conditions(f)
	if !f.To.IsZero() && f.To.Before(s.to) {
		s.to = f.To
	}
	if !before.At.IsZero() && !before.At.After(s.to) {
		s.after(before)
	}
	s.window = max(firstWindow, r.now().Sub(s.to)/firstWindowPart)
	if isIndexed(f) {
		s.window = longest
	}
	// The oldest row bounds the search: without it a search that finds nothing would go back for ever.
	var oldest *time.Time
	if err := r.pool.QueryRow(ctx, `SELECT min(at) FROM audit.calls`).Scan(&oldest); err != nil {
		return nil, explainReader(err)
	}
	switch s.from = f.From; {
	case oldest == nil:
		s.from = s.to
	case oldest.After(s.from):
		s.from = *oldest
	}
	return s, nil
}

// after makes p what has been looked at last.
func (s *lookBack) after(p auditlog.Position) { s.to, s.last = p.At, p.ID }

// done tells that the log, or the filter, goes no further back.
func (s *lookBack) done() bool { return !s.from.Before(s.to) && (s.last == "" || s.from.After(s.to)) }

// next looks at the next window.
func (s *lookBack) next(ctx context.Context, limit int) ([]auditlog.Call, error) {
	from := s.to.Add(-s.window)
	if from.Before(s.from) {
		from = s.from
	}
	s.args["from"], s.args["to"], s.args["last"], s.args["limit"] = from, s.to, s.last, limit
	where := " WHERE at >= @from AND at < @to"
	if s.last != "" {
		where = " WHERE at >= @from AND at <= @to AND (at, id) < (@to, @last::uuid)"
	}
	// Planned for these values each time: what is rare is found by another index than what is frequent.
	found, err := postgres.All(ctx, s.r.pool, pgx.RowToStructByName[auditlog.Call], `SELECT `+callColumns+` FROM audit.calls`+where+s.where+
		` ORDER BY calls.at DESC, calls.id DESC LIMIT @limit`, pgx.QueryExecModeCacheDescribe, s.args)
	if err != nil {
		return nil, explainReader(err)
	}
	if len(found) < limit {
		s.after(auditlog.Position{At: from})
	}
	return found, nil
}

// grow chooses the next window by what the last look took and what is left of the time.
// A window is never made smaller: Search ends before a look that would take too long.
func (s *lookBack) grow(took, left time.Duration) {
	switch {
	case took < fastLook:
		s.window *= 4
	case left > 4*took:
		s.window *= 2
	}
}

// isIndexed tells that one index has what is looked for, in the order of time: then the whole log is one window.
// Two conditions may each be frequent and rare together, which no index shows; those go by windows.
func isIndexed(f auditlog.Filter) bool {
	if f.SQL != "" || f.Outcome == auditlog.Failed || f.Foreign != nil {
		return false
	}
	if f.RequestID != "" || f.Draft != "" {
		return true
	}
	n := 0
	for _, value := range []string{f.Tool, f.Caller, f.Person, f.Outcome} {
		if value != "" {
			n++
		}
	}
	return n == 1 && f.Outcome != audit.OK
}

// conditions are the filter's as SQL, but for the time, with the values that they name.
func conditions(f auditlog.Filter) (where string, args pgx.NamedArgs) {
	args = pgx.NamedArgs{"owners": f.Foreign, "edge": auditlog.EdgeRole()}
	for _, c := range []struct{ name, value, condition string }{
		{"request", f.RequestID, "request_id = @request"}, {"draft", f.Draft, "detail ->> 'draft_id' = @draft"},
		{"caller", f.Caller, "credential_id = @caller"}, {"tool", f.Tool, "tool = @tool"},
		// The second names the condition of the index.
		{"person", f.Person, "external_user_id = @person AND external_user_id <> ''"},
		{"sql", f.SQL, "tool = 'execute_read_sql' AND strpos(lower(detail ->> 'sql'), lower(@sql)) > 0"},
	} {
		if c.value != "" {
			args[c.name] = audit.Stored(c.value)
			where += " AND " + c.condition
		}
	}
	switch f.Outcome {
	case "":
	case audit.OK:
		where += " AND outcome = 'ok'"
	case auditlog.Failed:
		where += " AND outcome <> 'ok'"
	default:
		args["outcome"] = audit.Stored(f.Outcome)
		where += " AND outcome = @outcome AND outcome <> 'ok'"
	}
	if f.Foreign != nil {
		where += " AND " + foreign
	}
	return where, args
}
