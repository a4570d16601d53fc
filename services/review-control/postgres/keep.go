package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/suppression"
)

// Update locks a review, hands it over with the targets of the indexes, and commits the steps that the function makes,
// with the jobs that follow.
// The lock on the review comes before those on its targets, so that two transactions on one draft do not deadlock. E_NOT_FOUND for a
// draft without a review, and for an index that it does not have.
func (s *Store) Update(ctx context.Context, id reviewcontrol.ID, indexes []int,
	change func(*reviewcontrol.Transaction) error) (reviewcontrol.Review, error) {
	return s.update(ctx, id, change, func(tx pgx.Tx, t *reviewcontrol.Transaction) error {
		if len(indexes) == 0 {
			return nil
		}
		var err error
		t.Targets, err = targets(ctx, tx, lockTargets, int64(id), numbers(indexes))
		if err == nil && len(t.Targets) != len(indexes) {
			err = missingOf(id, indexes, t.Targets)
		}
		return err
	})
}

// update locks a review, and commits what change does to it and to the targets that load has put beside it.
func (s *Store) update(ctx context.Context, id reviewcontrol.ID, change func(*reviewcontrol.Transaction) error,
	load func(pgx.Tx, *reviewcontrol.Transaction) error) (after reviewcontrol.Review, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		// Who finds the row locked waits: what happens to a review happens one after the other.
		r, err := review(ctx, tx, id, ` FOR NO KEY UPDATE`)
		if err != nil {
			return err
		}
		// The suppression list is asked within the transaction, right before a hand-over is recorded.
		t := &reviewcontrol.Transaction{Review: r, IsListed: func(email string) (bool, error) {
			var listed bool
			err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM review_control.suppressions WHERE email_key = $1)`,
				suppression.Key(email)).Scan(&listed)
			return listed, err
		}}
		if err := load(tx, t); err != nil {
			return err
		}
		if err := change(t); err != nil {
			return err
		}
		if err := s.keep(ctx, tx, t); err != nil {
			return err
		}
		after = t.Review
		return nil
	})
	if err != nil {
		return reviewcontrol.Review{}, err
	}
	return after, nil
}

// keep writes the steps of a transaction in one round trip, its audit row, and the jobs that follow.
// A step that Counts moves the version on, which is what authoring is told of. Tries of one mail do not, and add no job.
func (s *Store) keep(ctx context.Context, tx pgx.Tx, t *reviewcontrol.Transaction) error {
	b := &pgx.Batch{}
	id := t.Review.DraftID
	changed := slices.ContainsFunc(t.Steps, reviewcontrol.Step.Counts)
	if changed {
		t.Review.Version++
		keepReview(b, t.Review)
	}
	for _, step := range t.Steps {
		switch step.Kind {
		case reviewcontrol.Decided:
			keepDecision(b, id, step.Target)
		case reviewcontrol.Begun, reviewcontrol.PutOff, reviewcontrol.Settled:
			keepDelivery(b, id, step.Target)
		case reviewcontrol.Moved:
			keepMove(b, id, step)
		}
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	if t.Entry != nil {
		if err := audit.Append(ctx, tx, *t.Entry); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return s.follow(ctx, tx, t)
}

// keepReview writes the row of the review.
// Callers have locked the row, so it is written as a whole, without a comparison.
func keepReview(b *pgx.Batch, r reviewcontrol.Review) {
	b.Queue(`UPDATE review_control.reviews SET status = $2, pending = $3, approved = $4, rejected = $5,
		sent = $6, failed = $7, suppressed = $8, unknown = $9, version = $10, attempted = $11, closed_by = $12, closed_at = $13,
		actions = $14, reopened = $15, leaves_at = $16, changed_at = now() WHERE draft_id = $1`,
		int64(r.DraftID), string(r.Status), r.Counts.Pending, r.Counts.Approved, r.Counts.Rejected,
		r.Counts.Sent, r.Counts.Failed, r.Counts.Suppressed, r.Counts.Unknown, r.Version, r.Attempted, r.ClosedBy, r.ClosedAt,
		r.Actions, r.Reopened, r.LeavesAt)
}

// keepDecision writes a decision twice: to the target's row, where lists read it, and to the history, from which nothing is
// ever removed.
func keepDecision(b *pgx.Batch, id reviewcontrol.ID, t *reviewcontrol.Target) {
	d := t.Decision
	// Without a content_hash an earlier release that runs beside this one sends nothing on it.
	b.Queue(`UPDATE review_control.targets
		SET choice = $3, revision = $4, decided_by = $5, decided_at = $6, note = $7, content_hash = '', rendering_hash = $8,
		reason = $9, action = $10 WHERE draft_id = $1 AND position = $2`,
		int64(id), t.Index, string(d.Choice), d.Revision, d.By, d.At, d.Note, d.Hash, string(d.Reason), d.Action)
	b.Queue(`INSERT INTO review_control.decisions (draft_id, position, revision, choice, by, at, note, content_hash,
			rendering_hash, reason, action, previous, undone_by)
		VALUES ($1, $2, $3, $4, $5, CASE WHEN $12 = '' THEN $6 ELSE now() END, $7, '', $8, $9, $10, $11, $12)`,
		int64(id), t.Index, d.Revision, string(d.Choice), d.By, d.At, d.Note, d.Hash, string(d.Reason), d.Action, d.Previous, d.UndoneBy)
}

// keepDelivery writes how far the target's mail is. Its place in the line goes: another try draws another.
// Which state may follow which is the domain's to say.
func keepDelivery(b *pgx.Batch, id reviewcontrol.ID, t *reviewcontrol.Target) {
	d := t.Delivery
	b.Queue(`UPDATE review_control.targets
		SET progress = $3, attempts = $4, delays = $5, since = $6, progress_at = $7, problem = $8, message_id = $9, slot_at = NULL
		WHERE draft_id = $1 AND position = $2`,
		int64(id), t.Index, string(d.State), d.Attempts, d.Delays, d.Since, d.At, d.Problem, d.MessageID)
}

// keepMove clears the deliveries of a review that was approved and no longer is: none of them was begun since.
func keepMove(b *pgx.Batch, id reviewcontrol.ID, step reviewcontrol.Step) {
	if step.From != reviewcontrol.Approved {
		return
	}
	switch step.To {
	case reviewcontrol.Cancelled:
		b.Queue(`UPDATE review_control.targets SET progress = '', slot_at = NULL WHERE draft_id = $1 AND progress = 'queued'`, int64(id))
	case reviewcontrol.InReview:
		b.Queue(`UPDATE review_control.targets
			SET progress = '', delays = 0, since = NULL, progress_at = NULL, problem = '', slot_at = NULL
			WHERE draft_id = $1 AND progress <> ''`, int64(id))
	}
}

// syncAfter is how long deliveries are counted before authoring is told.
const syncAfter = time.Second

// follow adds the jobs that follow from a changed review: the one that makes mails leave once it is approved, the one that looks through
// what is left of them once it goes on, and the one that tells authoring, unless that is on its way already. A new status and decisions
// are told at once, and mails are counted for a moment.
// sync_waiting coalesces: while a SyncDraft is on its way, counts that change add no other job. The job reads the row when it runs
// (TakeSync).
func (s *Store) follow(ctx context.Context, tx pgx.Tx, t *reviewcontrol.Transaction) error {
	r := &t.Review
	had := func(kind reviewcontrol.StepKind) bool {
		return slices.ContainsFunc(t.Steps, func(step reviewcontrol.Step) bool { return step.Kind == kind })
	}
	if had(reviewcontrol.Moved) && r.Status == reviewcontrol.Approved {
		var at time.Time
		if r.LeavesAt != nil {
			at = *r.LeavesAt
		}
		if err := s.jobs.AddAt(ctx, tx, at, FinishReview{r.DraftID}); err != nil {
			return err
		}
	}
	if had(reviewcontrol.Moved) && r.Status == reviewcontrol.InReview && r.Inspected < r.Counts.Total() {
		if err := s.jobs.Add(ctx, tx, InspectDraft{r.DraftID}); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `UPDATE review_control.reviews SET sync_waiting = true WHERE draft_id = $1 AND NOT sync_waiting`,
		int64(r.DraftID))
	if err != nil {
		return err
	}
	var at time.Time
	switch {
	case had(reviewcontrol.Moved):
	case tag.RowsAffected() == 0:
		return nil
	case !had(reviewcontrol.Decided):
		at = time.Now().Add(syncAfter)
	}
	return s.jobs.AddAt(ctx, tx, at, SyncDraft{r.DraftID})
}
