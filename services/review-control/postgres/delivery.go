package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/jobs"
	reviewcontrol "hub.internal/services/review-control"
)

// Finish makes approved targets wait for their delivery, a job for each, once they may leave.
// The job FinishReview calls it. wait says for how long the job has to sleep before it asks again; 0 when there is nothing left to do.
func (s *Store) Finish(ctx context.Context, id reviewcontrol.ID, now time.Time) (wait time.Duration, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		r, err := review(ctx, tx, id, ` FOR NO KEY UPDATE`)
		if err != nil || r.Status != reviewcontrol.Approved {
			return err
		}
		if r.LeavesAt != nil && now.Before(*r.LeavesAt) { // this job is of an approval that was undone
			wait = r.LeavesAt.Sub(now)
			return nil
		}
		// PostgreSQL makes the token of a strong random source: 122 bits of it. One that is there stays: a mail with its link may have left.
		indexes, err := collect(ctx, tx, pgx.RowTo[int], `UPDATE review_control.targets
			SET progress = 'queued', unsubscribe_token = coalesce(unsubscribe_token, uuid_send(gen_random_uuid()))
			WHERE draft_id = $1 AND choice = 'approved' AND progress = '' RETURNING position`, int64(id))
		if err != nil || len(indexes) == 0 {
			return err
		}
		return s.addDeliveries(ctx, tx, id, indexes)
	})
	return wait, err
}

// addDeliveries adds a job for each mail.
// They are added in the transaction that makes the mails wait (transactional outbox): no mail waits without a job.
func (s *Store) addDeliveries(ctx context.Context, tx pgx.Tx, id reviewcontrol.ID, indexes []int) error {
	list := make([]jobs.Job, len(indexes))
	for i, index := range indexes {
		list[i] = Deliver{id, index}
	}
	return s.jobs.Add(ctx, tx, list...)
}

// missed is how late a place in the line may be taken; then another is drawn.
const missed = time.Minute

// clockAhead is by how much the caller's clock, an argument, is ahead of a minute from the store's time; 0 where it is not.
func clockAhead(arg string) string {
	return `(` + arg + `::timestamptz - least(` + arg + `::timestamptz, now() + interval '1 minute'))`
}

// startedLater holds for a process that has run for $1 seconds and was started after the one that says the pace, and not at its side. It
// is told by the store's clock.
const startedLater = `(p.since IS NULL OR now() - make_interval(secs => $1) > p.since + interval '5 seconds')`

// Turn gives a target's mail its place in the line of all mails.
// at is when the mail may leave; due is false for a mail that waits no more. The line is one time for all replicas, pace.next_at, which
// each mail moves ahead by pace.every. A place that is further away than near is kept with the target, because its job does not wait for
// that long. A replica whose clock is more than a minute ahead of the store's takes its places at that minute, since all others wait for
// where the line ends, and is told them by its own clock. interval is what the caller's process, which has run for up, says of the pace:
// the process that was started last is believed by all, so that replicas with two settings, as beside each other while one is rolled out,
// do not change it to and fro.
func (s *Store) Turn(ctx context.Context, id reviewcontrol.ID, index int, now time.Time,
	interval, near, up time.Duration) (at time.Time, due bool, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		var kept *time.Time
		var newer bool
		// The target is locked ahead of the line here as where places are given back.
		err := tx.QueryRow(ctx, `SELECT CASE WHEN t.slot_line = p.line THEN t.slot_at + `+clockAhead("$2")+` END, `+startedLater+`
			FROM review_control.targets t JOIN review_control.reviews r USING (draft_id), review_control.pace p
			WHERE t.draft_id = $3 AND t.position = $4 AND r.status = 'approved' AND t.progress IN ('queued', 'sending')
			FOR NO KEY UPDATE OF t`, up.Seconds(), now, int64(id), int64(index)).Scan(&kept, &newer)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		due = true
		if newer {
			anew, err := goBy(ctx, tx, interval, up)
			if err != nil {
				return err
			}
			if anew {
				kept = nil
			}
		}
		if kept != nil && now.Sub(*kept) <= missed {
			at = *kept
			return nil
		}
		// The row's lock is what puts the mails of all replicas into one line.
		var place time.Time
		var line int
		err = tx.QueryRow(ctx, `UPDATE review_control.pace SET next_at = greatest(next_at, $1 - `+clockAhead("$1")+`) + every
			RETURNING next_at - every, next_at - every + `+clockAhead("$1")+`, line`, now).Scan(&place, &at, &line)
		if err != nil {
			return err
		}
		if at.Sub(now) <= near {
			return nil
		}
		_, err = tx.Exec(ctx, `UPDATE review_control.targets SET slot_at = $3, slot_line = $4 WHERE draft_id = $1 AND position = $2`,
			int64(id), int64(index), place, line)
		return err
	})
	return at, due && err == nil, err
}

// goBy has the line go by the interval of a process that has run for up, unless one that was started later has said another. It tells
// whether the line begins anew by that.
func goBy(ctx context.Context, tx pgx.Tx, interval, up time.Duration) (anew bool, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce(p.every <> make_interval(secs => $2), false) FROM review_control.pace p WHERE `+startedLater+`
		FOR UPDATE`, up.Seconds(), interval.Seconds()).Scan(&anew)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE review_control.pace SET since = now() - make_interval(secs => $1), every = make_interval(secs => $2)`,
		up.Seconds(), interval.Seconds())
	if err == nil && anew {
		err = beginLine(ctx, tx)
	}
	return anew, err
}

// wakeKept wakes the jobs of the mails whose places are kept: they are to draw others. Those that the mail server has put off sleep on,
// and what somebody else has locked is being woken. A mail is looked up for each job, whatever the planner knows of how many there are.
const wakeKept = `UPDATE review_control.river_job SET scheduled_at = now() WHERE id IN (
		SELECT id FROM review_control.river_job j WHERE kind = 'deliver' AND state = 'scheduled'
			AND (SELECT t.slot_at IS NOT NULL FROM review_control.targets t
				WHERE t.draft_id = (j.args ->> 'draft_id')::bigint AND t.position = (j.args ->> 'index')::int)
		FOR UPDATE OF j SKIP LOCKED)`

// beginLine has the line begin anew: with the mail that draws next.
func beginLine(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE review_control.pace SET line = line + 1, next_at = '-infinity'`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, wakeKept)
	return err
}

// giveBack gives the places of a draft back of which nothing leaves: those behind them draw others.
func giveBack(ctx context.Context, tx pgx.Tx, id reviewcontrol.ID) error {
	tag, err := tx.Exec(ctx, `UPDATE review_control.targets SET slot_at = NULL WHERE draft_id = $1 AND slot_at IS NOT NULL`, int64(id))
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return beginLine(ctx, tx)
}

// TakeTest implements reviewcontrol.TestStore. A test takes its interval from a line of the person's own, which may be as long as
// what comes at once.
// again is the zero time, or in the past, for a test that may be sent. The arithmetic is GCRA: next_at is when nothing of what was taken
// is left.
func (s *Store) TakeTest(ctx context.Context, user string, now time.Time, every time.Duration, atOnce int,
	entry audit.Entry) (again time.Time, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		var next time.Time
		err := tx.QueryRow(ctx, `INSERT INTO review_control.tests AS t (user_id, next_at) VALUES ($1, $2)
			ON CONFLICT (user_id) DO UPDATE SET next_at = greatest(t.next_at, $2) RETURNING next_at`, user, now).Scan(&next)
		if err != nil {
			return err
		}
		if again = next.Add(-time.Duration(atOnce-1) * every); again.After(now) {
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE review_control.tests SET next_at = $2 WHERE user_id = $1`, user, next.Add(every)); err != nil {
			return err
		}
		return audit.Append(ctx, tx, entry)
	})
	return again, err
}
