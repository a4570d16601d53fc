package mysql

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"hub.internal/services/query"
)

// campaignsPerRow is how many campaigns are looked at first for each row of a page in
// the hope that enough of them pass the filters.
const campaignsPerRow = 4

// walk looks for the page of c among its newest campaigns: perRow for each row of a page, and where these are too few, as many
// as the page should take after what was found, but eight times as many at a step. look answers how many rows of the list, up
// to the page's end, are there since a time; all says that none of c's campaigns is older. The walk ends without a full page
// when it should take more campaigns than most answers, unless c has no more. Keyword and MinApplyCount are look's alone.
// In words of query processing it is a top-k search over a descending index with an adaptive window: it widens the window
// by what the selectivity of the filters, seen so far, asks for, and gives up for a scan when that is cheaper.
func (s *Source) walk(ctx context.Context, c query.CampaignFilter, perRow int64, most func() (int64, error),
	look func(since time.Time, all bool) (found int64, err error)) error {
	c.Keyword, c.MinApplyCount = "", nil
	rows := c.Offset + c.Limit + 1
	for n := perRow * (c.Limit + 1); ; {
		since, all, err := s.recently(ctx, c, n)
		if err != nil || since.IsZero() && !all {
			return err
		}
		found, err := look(since, all)
		if err != nil || all || found >= rows {
			return err
		}
		bound, err := most()
		if err != nil {
			return err
		}
		// A third more, since chance made the sample.
		likely := n * rows * 4 / (3 * max(found, 1))
		if likely <= bound {
			n = min(likely, 8*n)
			continue
		}
		if c.StartedAfter.IsZero() && len(c.StatusCodes) == 0 {
			return nil
		}
		// Of a bounded range of dates it may be cheaper to read the whole range than the whole table: the range is counted up to
		// the bound.
		there, args := byStatus(c, `SELECT 1`, ` LIMIT ?`, ` UNION ALL `, bound)
		if in, err := s.count(ctx, there+` LIMIT ?`, append(args, bound)); err != nil || in >= bound {
			return err
		}
		_, err = look(c.StartedAfter, true)
		return err
	}
}

// recently returns the start of the campaign behind the newest n of c, and all when there are no more than n: then none is older
// than c.StartedAfter, which it returns. A zero time without all promises nothing. It may be what was true up to startsAge ago: it
// says where to look, and not what is found there.
func (s *Source) recently(ctx context.Context, c query.CampaignFilter, n int64) (since time.Time, all bool, err error) {
	of := window{strings.Join(c.StatusCodes, ","), c.StartedAfter, c.StartedBefore, n}
	if known, ok := s.starts.get(of, time.Now()); ok {
		return known.since, known.all, nil
	}
	if since, all, err = s.startOf(ctx, c, n); err == nil {
		s.starts.put(of, start{since, all, time.Now()})
	}
	return since, all, err
}

// startOf reads entries of ix_campaign_status alone. A zero date (0000-00-00) sorts last, and is no time to walk back to.
func (s *Source) startOf(ctx context.Context, c query.CampaignFilter, n int64) (since time.Time, all bool, err error) {
	statement, args := byStatus(c, `SELECT c.start_at`, ` ORDER BY c.start_at DESC LIMIT ?`, `
  UNION ALL `, n+1)
	since, all = c.StartedAfter, true
	err = s.Query(ctx, `SELECT m.start_at FROM (`+statement+`) m ORDER BY m.start_at DESC LIMIT 1 OFFSET ?`, append(args, n),
		func(r *sql.Rows) error {
			var text string
			if err := r.Scan(&text); err != nil {
				return err
			}
			since, all = time.Time{}, false
			if t, err := time.Parse(time.DateTime, text); err == nil { // not a zero date
				since = t
			}
			return nil
		})
	return since, all, err
}

const (
	// startsAge is how long starts keeps what it is told: the campaigns of a minute more are looked at in vain.
	startsAge = time.Minute
	// mostStarts bounds how much that is.
	mostStarts = 256
)

// starts are where the newest campaigns of some windows begin. Most searches ask for one of few, and to count the campaigns takes a
// third of what a search costs.
type starts struct {
	mu    sync.Mutex
	known map[window]start
}

// window is the newest so many campaigns of some statuses that start between two times.
type window struct {
	codes         string // with commas
	after, before time.Time
	campaigns     int64
}

// start is the answer of recently, and when it was read.
type start struct {
	since time.Time
	all   bool
	read  time.Time
}

func (s *starts) get(of window, now time.Time) (start, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.known[of]
	return found, ok && now.Sub(found.read) < startsAge
}

func (s *starts) put(of window, found start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostStarts {
		s.known = map[window]start{}
	}
	s.known[of] = found
}

// rows is about how many rows a table has, as the server knows without counting; 0 when it does not.
// The estimate is enough: it decides between two ways to the same answer.
func (s *Source) rows(ctx context.Context, table string) (n int64, err error) {
	const statement = `SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?`
	err = s.Query(ctx, statement, []any{table}, func(r *sql.Rows) error {
		var known sql.NullInt64
		err := r.Scan(&known)
		n = known.Int64
		return err
	})
	return n, err
}

// count answers how many rows a statement has.
func (s *Source) count(ctx context.Context, statement string, args []any) (n int64, err error) {
	err = s.Query(ctx, `SELECT COUNT(*) FROM (`+statement+`) counted`, args, func(r *sql.Rows) error { return r.Scan(&n) })
	if incomparable(err) {
		err = nil
	}
	return n, err
}
