package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	reviewcontrol "hub.internal/services/review-control"
)

const (
	// Those whose row and whose newest decision are both of the action: an earlier release that runs
	// beside this one decides without one.
	newestOfAction = ` FROM review_control.targets t JOIN review_control.decisions d USING (draft_id, position, revision)
		WHERE t.draft_id = $1 AND t.action = $2 AND d.action = t.action`
	actionTargets = `SELECT ` + targetColumns + ` FROM review_control.targets
		WHERE draft_id = $1 AND position IN (SELECT position` + newestOfAction + `) ORDER BY position FOR NO KEY UPDATE`
	earlierDecisions = `SELECT coalesce(e.choice, 'pending') AS choice, coalesce(e.by, '') AS by,
			CASE WHEN e.choice <> 'pending' THEN e.at END AS at,
			coalesce(e.note, '') AS note, coalesce(e.reason, '') AS reason, coalesce(e.rendering_hash, '') AS hash,
			coalesce(e.action, 0) AS action, coalesce(e.previous, 0) AS previous
		FROM (SELECT draft_id, position, d.previous` + newestOfAction + `) n
		LEFT JOIN review_control.decisions e ON e.draft_id = n.draft_id AND e.position = n.position AND e.revision = n.previous
		ORDER BY n.position`
	// lastAction reads targets_action, the actions of one draft. A target that was decided on again belongs to the later action.
	lastAction = `SELECT action, count(*), min(choice) FROM review_control.targets
		WHERE draft_id = $1 AND action > 0 AND ($2 = '' OR decided_by = $2) GROUP BY action ORDER BY action DESC LIMIT 1`
)

// UpdateAction is Update with the targets of an action.
// Earlier has the decision that each of the targets had before, in the order of the targets: what an undo brings back.
func (s *Store) UpdateAction(ctx context.Context, id reviewcontrol.ID, action int,
	change func(*reviewcontrol.Transaction) error) (reviewcontrol.Review, error) {
	return s.update(ctx, id, change, func(tx pgx.Tx, t *reviewcontrol.Transaction) (err error) {
		if t.Targets, err = targets(ctx, tx, actionTargets, int64(id), action); err != nil {
			return err
		}
		t.Earlier, err = collect(ctx, tx, pgx.RowToStructByNameLax[reviewcontrol.Decision], earlierDecisions, int64(id), action)
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

// BeginCancel keeps the audit row of a cancellation that authoring is about to be asked for.
// Unless it is anew it tells whether one is kept.
func (s *Store) BeginCancel(ctx context.Context, id reviewcontrol.ID, entry audit.Entry, anew bool) (begun bool, err error) {
	if !anew {
		err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM review_control.cancellations WHERE draft_id = $1)`, int64(id)).Scan(&begun)
		return begun, explain(err)
	}
	b, err := json.Marshal(entry)
	if err == nil {
		_, err = s.pool.Exec(ctx, `INSERT INTO review_control.cancellations (draft_id, entry) VALUES ($1, $2)
			ON CONFLICT (draft_id) DO UPDATE SET entry = excluded.entry`, int64(id), string(b))
	}
	return err == nil, explain(err)
}

// EndCancel puts the audit row of a cancellation into the log, once: entry where it is anew, else the one that BeginCancel has kept. It
// tells false when none is kept any more.
func (s *Store) EndCancel(ctx context.Context, id reviewcontrol.ID, entry audit.Entry, anew bool) (ended bool, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		var kept []byte
		err := tx.QueryRow(ctx, `DELETE FROM review_control.cancellations WHERE draft_id = $1 RETURNING entry`, int64(id)).Scan(&kept)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && !anew {
			entry = audit.Entry{}
			err = json.Unmarshal(kept, &entry)
		}
		if err != nil {
			return err
		}
		ended = true
		return audit.Append(ctx, tx, entry)
	})
	return ended && err == nil, err
}
