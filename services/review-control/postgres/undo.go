package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	reviewcontrol "hub.internal/services/review-control"
)

const (
	// Those whose row and whose newest decision are both of the action: an earlier release that runs
	// beside this one decides without one.
	actionTargets = `SELECT t.position, t.external_id, t.to_email, t.to_name, t.mailings, t.choice, t.revision, t.decided_by, t.decided_at, t.note, t.reason, t.rendering_hash, t.action,
			t.progress, t.attempts, t.delays, t.since, t.progress_at, t.problem, t.message_id, t.unsubscribe_token, t.subject, t.inspected_hash, t.flags, t.variant
		FROM review_control.targets t JOIN review_control.decisions d USING (draft_id, position, revision)
		WHERE t.draft_id = $1 AND t.action = $2 AND d.action = t.action ORDER BY t.position FOR NO KEY UPDATE OF t`
	earlierDecisions = `SELECT coalesce(e.choice, 'pending'), coalesce(e.by, ''), CASE WHEN e.choice <> 'pending' THEN e.at END, coalesce(e.note, ''), coalesce(e.reason, ''), coalesce(e.rendering_hash, ''),
			coalesce(e.action, 0), coalesce(e.previous, 0)
		FROM review_control.targets t JOIN review_control.decisions d USING (draft_id, position, revision)
		LEFT JOIN review_control.decisions e ON e.draft_id = d.draft_id AND e.position = d.position AND e.revision = d.previous
		WHERE t.draft_id = $1 AND t.action = $2 AND d.action = t.action ORDER BY t.position`
	lastAction = `SELECT action, count(*), min(choice) FROM review_control.targets
		WHERE draft_id = $1 AND action > 0 AND ($2 = '' OR decided_by = $2) GROUP BY action ORDER BY action DESC LIMIT 1`
)

// UpdateAction locks a review, hands it over with the targets of an action, and commits what the function
// changes of them.
func (s *Store) UpdateAction(ctx context.Context, id reviewcontrol.ID, action int, change func(*reviewcontrol.Unit) error) (reviewcontrol.Review, error) {
	return s.update(ctx, id, change, func(tx pgx.Tx, u *reviewcontrol.Unit) (err error) {
		if u.Targets, err = collect(ctx, tx, targetRow, actionTargets, int64(id), action); err != nil {
			return err
		}
		u.Earlier, err = collect(ctx, tx, func(row pgx.CollectableRow) (d reviewcontrol.Decision, err error) {
			err = row.Scan(&d.Choice, &d.By, &d.At, &d.Note, &d.Reason, &d.Hash, &d.Action, &d.Previous)
			utc(d.At)
			return d, err
		}, earlierDecisions, int64(id), action)
		return err
	})
}

// LastAction returns the newest action on a draft of which something is left.
func (s *Store) LastAction(ctx context.Context, id reviewcontrol.ID, by string) (a reviewcontrol.Action, found bool, err error) {
	err = s.pool.QueryRow(ctx, lastAction, int64(id), by).Scan(&a.Number, &a.Targets, &a.Choice)
	if errors.Is(err, pgx.ErrNoRows) {
		return reviewcontrol.Action{}, false, nil
	}
	return a, err == nil, explain(err)
}
