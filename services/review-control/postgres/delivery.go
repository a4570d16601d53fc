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

// clockAhead is by how much the caller's clock, $1, is ahead of a minute from the store's time; 0 where it is not.
const clockAhead = `($1::timestamptz - least($1::timestamptz, now() + interval '1 minute'))`

// Turn gives a target's mail its place in the line of all mails.
// at is when the mail may leave; due is false for a mail that waits no more. The line is one time for all replicas, pace.next_at, which
// each mail moves ahead by interval. A place that is further away than near is kept with the target, because its job does not wait for
// that long. A replica whose clock is more than a minute ahead of the store's takes its places at that minute, since all others wait for
// where the line ends, and is told them by its own clock.
func (s *Store) Turn(ctx context.Context, id reviewcontrol.ID, index int, now time.Time,
	interval, near time.Duration) (at time.Time, due bool, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		var kept *time.Time
		err := tx.QueryRow(ctx, `SELECT t.slot_at + `+clockAhead+` FROM review_control.targets t JOIN review_control.reviews r USING (draft_id)
			WHERE t.draft_id = $2 AND t.position = $3 AND r.status = 'approved' AND t.progress IN ('queued', 'sending')`,
			now, int64(id), int64(index)).Scan(&kept)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		due = true
		if kept != nil && now.Sub(*kept) <= missed {
			at = *kept
			return nil
		}
		// The row's lock is what puts the mails of all replicas into one line.
		var place time.Time
		err = tx.QueryRow(ctx, `UPDATE review_control.pace SET next_at = greatest(next_at, $1 - `+clockAhead+`) + make_interval(secs => $2)
			RETURNING next_at - make_interval(secs => $2), next_at - make_interval(secs => $2) + `+clockAhead, now, interval.Seconds()).
			Scan(&place, &at)
		if err != nil {
			return err
		}
		if at.Sub(now) <= near {
			return nil
		}
		_, err = tx.Exec(ctx, `UPDATE review_control.targets SET slot_at = $3 WHERE draft_id = $1 AND position = $2`, int64(id), int64(index),
			place)
		return err
	})
	return at, due && err == nil, err
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
