package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

const (
	reviewColumns = `draft_id, status, pending, approved, rejected, sent, failed, suppressed, unknown, version, attempted,
	queued_at, actor, note, created_by, hub_user, external_user, sender_name, sender_email, closed_by, closed_at,
	actions, reopened, leaves_at, inspected`
	oneReview   = `SELECT ` + reviewColumns + ` FROM review_control.reviews WHERE draft_id = $1 AND status <> 'draft'`
	manyReviews = `SELECT ` + reviewColumns + ` FROM review_control.reviews WHERE draft_id = ANY ($1) AND status <> 'draft'`

	waitingReviews = `SELECT ` + reviewColumns + ` FROM review_control.reviews
		WHERE status = 'in_review' AND pending > 0 ORDER BY queued_at, draft_id LIMIT $1`

	takeSync = `UPDATE review_control.reviews SET sync_waiting = false WHERE draft_id = $1 AND status <> 'draft' RETURNING ` + reviewColumns
	// Of most drafts the rejected ones are few: the index has them.
	rejectionsOf = `SELECT reason, count(*) FROM review_control.targets
		WHERE draft_id = $1 AND choice = 'rejected' AND reason <> '' GROUP BY reason`

	targetColumns = `position AS index, external_id, to_email, to_name, mailings, unsubscribe_token AS token,
	choice, revision, decided_by, decided_at, note, reason, rendering_hash, action,
	progress AS state, attempts, delays, since, progress_at AS at, problem, message_id,
	subject, inspected_hash, flags, variant`
	oneTarget   = `SELECT ` + targetColumns + ` FROM review_control.targets WHERE draft_id = $1 AND position = $2`
	manyTargets = `SELECT ` + targetColumns + ` FROM review_control.targets WHERE draft_id = $1 AND position = ANY ($2) ORDER BY position`
	lockTargets = manyTargets + ` FOR NO KEY UPDATE`
)

// reviewRow is a row of reviewColumns.
type reviewRow struct {
	reviewcontrol.Review
	reviewcontrol.Counts
	reviewcontrol.Maker
	SenderName, SenderEmail string
}

func (r reviewRow) review() reviewcontrol.Review {
	r.Review.Counts, r.Review.Maker = r.Counts, r.Maker
	r.Sender = reviewcontrol.Address{Name: r.SenderName, Email: r.SenderEmail}
	return r.Review
}

// targetRow is a row of targetColumns.
type targetRow struct {
	reviewcontrol.Target
	reviewcontrol.Delivery
	Choice        reviewcontrol.Choice
	Revision      int
	DecidedBy     string
	DecidedAt     *time.Time
	Note          string
	Reason        reviewcontrol.Reason
	RenderingHash string
	Action        int
	Subject       string
	InspectedHash string
	Flags         triage.Flag
	Variant       int
}

func (r targetRow) target() reviewcontrol.Target {
	r.Target.Delivery = r.Delivery
	r.Decision = reviewcontrol.Decision{Choice: r.Choice, By: r.DecidedBy, At: r.DecidedAt, Note: r.Note,
		Reason: r.Reason, Hash: r.RenderingHash, Revision: r.Revision, Action: r.Action}
	r.Inspection = reviewcontrol.Inspection{Subject: r.Subject, Hash: r.InspectedHash, Flags: r.Flags, Variant: r.Variant}
	return r.Target
}

func targets(ctx context.Context, q postgres.Querier, sql string, args ...any) ([]reviewcontrol.Target, error) {
	rows, err := postgres.All(ctx, q, pgx.RowToStructByNameLax[targetRow], sql, args...)
	list := make([]reviewcontrol.Target, len(rows))
	for i, row := range rows {
		list[i] = row.target()
	}
	return list, explain(err)
}

// review reads one review; a lock may follow the query.
func review(ctx context.Context, q postgres.Querier, id reviewcontrol.ID, lock string) (reviewcontrol.Review, error) {
	return someReview(ctx, q, id, oneReview+lock)
}

func someReview(ctx context.Context, q postgres.Querier, id reviewcontrol.ID, sql string) (reviewcontrol.Review, error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByNameLax[reviewRow], sql, int64(id))
	if errors.Is(err, pgx.ErrNoRows) {
		err = reviewcontrol.Missing("review of draft", id.String())
	}
	return row.review(), err
}

// Review returns a review.
func (s *Store) Review(ctx context.Context, id reviewcontrol.ID) (reviewcontrol.Review, error) {
	r, err := review(ctx, s.pool, id, "")
	return r, explain(err)
}

// Reviews returns the reviews that there are of the drafts.
func (s *Store) Reviews(ctx context.Context, ids []reviewcontrol.ID) (map[reviewcontrol.ID]reviewcontrol.Review, error) {
	rows, err := collect(ctx, s.pool, pgx.RowToStructByNameLax[reviewRow], manyReviews, drafts(ids))
	found := make(map[reviewcontrol.ID]reviewcontrol.Review, len(rows))
	for _, row := range rows {
		found[row.DraftID] = row.review()
	}
	return found, err
}

// Waiting returns reviews with targets to decide on, the oldest first.
func (s *Store) Waiting(ctx context.Context, limit int) ([]reviewcontrol.Review, error) {
	rows, err := collect(ctx, s.pool, pgx.RowToStructByNameLax[reviewRow], waitingReviews, limit)
	list := make([]reviewcontrol.Review, len(rows))
	for i, row := range rows {
		list[i] = row.review()
	}
	return list, err
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, q postgres.Querier, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	list, err := postgres.All(ctx, q, read, sql, args...)
	return list, explain(err)
}

// suppressedSince holds for a target that was put on the suppression list after its draft was queued.
const suppressedSince = `EXISTS (SELECT FROM review_control.suppressions s WHERE s.email_key = lower(to_email COLLATE "C"))`

// sharedVariants are those of a draft that several mails are of.
const sharedVariants = `SELECT number FROM review_control.variants WHERE draft_id = $1 AND targets > 1`

// listTargets is the query of a filter: each has an index of its own.
func listTargets(id reviewcontrol.ID, f reviewcontrol.TargetFilter) (sql string, args []any) {
	sql, args = conditions(f, []any{int64(id), int64(f.After), f.Limit})
	key, of := orderOf(f)
	behind, direction := " > ", ""
	if f.Back {
		behind, direction = " < ", " DESC"
	}
	return `SELECT ` + targetColumns + ` FROM review_control.targets
		WHERE draft_id = $1 AND (` + strings.Join(key, ", ") + `)` + behind + of + sql +
		` ORDER BY ` + strings.Join(key, direction+", ") + direction + ` LIMIT $3`, args
}

// orderOf is what the targets of a filter are ordered by, and that of the target $2.
func orderOf(f reviewcontrol.TargetFilter) (key []string, of string) {
	if !f.FlaggedFirst {
		return []string{"position"}, "($2)"
	}
	return []string{"(flags = 0)", "position"}, `(coalesce((SELECT x.flags = 0 FROM review_control.targets x
		WHERE x.draft_id = $1 AND x.position = $2), false), $2)`
}

// placeOf is the query for the place of After among the targets of a filter.
func placeOf(id reviewcontrol.ID, f reviewcontrol.TargetFilter) (sql string, args []any) {
	sql, args = conditions(f, []any{int64(id), int64(f.After)})
	key, of := orderOf(f)
	return `SELECT CASE WHEN bool_or(position = $2) THEN count(*) ELSE 0 END FROM review_control.targets
		WHERE draft_id = $1 AND (` + strings.Join(key, ", ") + `) <= ` + of + sql, args
}

// Place is which of the targets that a filter finds its After is.
func (s *Store) Place(ctx context.Context, id reviewcontrol.ID, f reviewcontrol.TargetFilter) (place int, err error) {
	f.Search = text.Storable(f.Search)
	sql, args := placeOf(id, f)
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&place)
	return place, explain(err)
}

// conditions are those of a filter, but for After and Limit, behind a WHERE.
func conditions(f reviewcontrol.TargetFilter, before []any) (sql string, args []any) {
	args = before
	add := func(condition string, arg any) {
		args = append(args, arg)
		sql += fmt.Sprintf(condition, len(args))
	}
	if f.Choice != "" {
		add(` AND choice = $%d`, string(f.Choice))
	}
	if f.State != "" {
		add(` AND progress = $%d AND progress <> ''`, string(f.State))
	}
	switch f.Variant {
	case 0:
	case reviewcontrol.NoVariant:
		sql += ` AND inspected_hash <> '' AND variant NOT IN (` + sharedVariants + `)`
	default:
		add(` AND variant = $%d AND variant > 0`, f.Variant)
	}
	switch f.Flag {
	case 0:
	case triage.Suppressed:
		sql += ` AND ` + suppressedSince
	default:
		add(` AND flags & $%[1]d = $%[1]d`, int32(f.Flag))
	}
	if f.Search != "" {
		add(` AND (to_email ILIKE $%[1]d OR to_name ILIKE $%[1]d OR '%%' || external_id::text || '%%' = $%[1]d)`,
			"%"+postgres.LikePattern(f.Search)+"%")
	}
	return sql, args
}

// Targets returns targets by index.
func (s *Store) Targets(ctx context.Context, id reviewcontrol.ID, f reviewcontrol.TargetFilter) ([]reviewcontrol.Target, error) {
	f.Search = text.Storable(f.Search)
	sql, args := listTargets(id, f)
	return targets(ctx, s.pool, sql, args...)
}

// Target returns a target of a review.
func (s *Store) Target(ctx context.Context, id reviewcontrol.ID, index int) (reviewcontrol.Target, error) {
	row, err := postgres.One(ctx, s.pool, pgx.RowToStructByNameLax[targetRow],
		oneTarget+` AND EXISTS (SELECT FROM review_control.reviews WHERE draft_id = $1 AND status <> 'draft')`, int64(id), int64(index))
	if errors.Is(err, pgx.ErrNoRows) {
		err = reviewcontrol.MissingTarget(id, index)
	}
	return row.target(), explain(err)
}

// TargetsAt returns the targets of the indexes.
func (s *Store) TargetsAt(ctx context.Context, id reviewcontrol.ID, indexes []int) ([]reviewcontrol.Target, error) {
	list, err := targets(ctx, s.pool, manyTargets, int64(id), numbers(indexes))
	if err == nil && len(list) != len(indexes) {
		err = missingOf(id, indexes, list)
	}
	return list, err
}

func numbers(indexes []int) []int64 {
	list := make([]int64, len(indexes))
	for i, index := range indexes {
		list[i] = int64(index)
	}
	return list
}

// History returns the decisions on a target, the newest first.
func (s *Store) History(ctx context.Context, id reviewcontrol.ID, index int) ([]reviewcontrol.Decision, error) {
	return collect(ctx, s.pool, pgx.RowToStructByNameLax[reviewcontrol.Decision], `SELECT choice, by, at, note, reason,
		rendering_hash AS hash, revision, action, undone_by
		FROM review_control.decisions WHERE draft_id = $1 AND position = $2 ORDER BY revision DESC`, int64(id), int64(index))
}

// Update locks a review, hands it over with the targets of the indexes, and commits what
// the function changes of them, with the jobs that follow.
func (s *Store) Update(ctx context.Context, id reviewcontrol.ID, indexes []int,
	change func(*reviewcontrol.Unit) error) (reviewcontrol.Review, error) {
	return s.update(ctx, id, change, func(tx pgx.Tx, u *reviewcontrol.Unit) error {
		if len(indexes) == 0 {
			return nil
		}
		var err error
		u.Targets, err = targets(ctx, tx, lockTargets, int64(id), numbers(indexes))
		if err == nil && len(u.Targets) != len(indexes) {
			err = missingOf(id, indexes, u.Targets)
		}
		return err
	})
}

// update locks a review, and commits what change makes of it and of the targets that load has put beside it.
func (s *Store) update(ctx context.Context, id reviewcontrol.ID, change func(*reviewcontrol.Unit) error,
	load func(pgx.Tx, *reviewcontrol.Unit) error) (after reviewcontrol.Review, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		// Who finds the row locked waits: what happens to a review happens one after the other.
		before, err := review(ctx, tx, id, ` FOR NO KEY UPDATE`)
		if err != nil {
			return err
		}
		u := &reviewcontrol.Unit{Review: before, Listed: func(email string) (bool, error) {
			var listed bool
			err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM review_control.suppressions WHERE email_key = $1)`,
				reviewcontrol.EmailKey(email)).Scan(&listed)
			return listed, err
		}}
		if err := load(tx, u); err != nil {
			return err
		}
		locked := slices.Clone(u.Targets)
		if err := change(u); err != nil {
			return err
		}
		if err := s.store(ctx, tx, before, locked, u); err != nil {
			return err
		}
		after = u.Review
		return nil
	})
	if err != nil {
		return reviewcontrol.Review{}, err
	}
	return after, nil
}

func missingOf(id reviewcontrol.ID, indexes []int, targets []reviewcontrol.Target) error {
	for _, index := range indexes {
		if !slices.ContainsFunc(targets, func(t reviewcontrol.Target) bool { return t.Index == index }) {
			return reviewcontrol.MissingTarget(id, index)
		}
	}
	return fmt.Errorf("draft %s: an index is asked for twice", id)
}

// store writes what has changed in one round trip, and the jobs that follow.
func (s *Store) store(ctx context.Context, tx pgx.Tx, before reviewcontrol.Review, targets []reviewcontrol.Target,
	u *reviewcontrol.Unit) error {
	b := &pgx.Batch{}
	id, r := int64(before.DraftID), &u.Review
	changed := r.Status != before.Status || r.Counts != before.Counts || r.Attempted != before.Attempted || r.Actions != before.Actions
	for i, t := range u.Targets { // an undo may bring back another reason alone
		changed = changed || t.Decision.Revision != targets[i].Decision.Revision
	}
	if changed {
		r.Version = before.Version + 1
		b.Queue(`UPDATE review_control.reviews SET status = $2, pending = $3, approved = $4, rejected = $5,
			sent = $6, failed = $7, suppressed = $8, unknown = $9, version = $10, attempted = $11, closed_by = $12, closed_at = $13,
			actions = $14, reopened = $15, leaves_at = $16, changed_at = now() WHERE draft_id = $1`,
			id, string(r.Status), r.Counts.Pending, r.Counts.Approved, r.Counts.Rejected,
			r.Counts.Sent, r.Counts.Failed, r.Counts.Suppressed, r.Counts.Unknown, r.Version, r.Attempted, r.ClosedBy, r.ClosedAt,
			r.Actions, r.Reopened, r.LeavesAt)
	}
	for i, t := range u.Targets {
		if d := t.Decision; d.Revision != targets[i].Decision.Revision {
			// Without a content_hash an earlier release that runs beside this one sends nothing on it.
			b.Queue(`UPDATE review_control.targets
				SET choice = $3, revision = $4, decided_by = $5, decided_at = $6, note = $7, content_hash = '', rendering_hash = $8,
				reason = $9, action = $10 WHERE draft_id = $1 AND position = $2`,
				id, t.Index, string(d.Choice), d.Revision, d.By, d.At, d.Note, d.Hash, string(d.Reason), d.Action)
			b.Queue(`INSERT INTO review_control.decisions (draft_id, position, revision, choice, by, at, note, content_hash,
					rendering_hash, reason, action, previous, undone_by)
				VALUES ($1, $2, $3, $4, $5, CASE WHEN $12 = '' THEN $6 ELSE now() END, $7, '', $8, $9, $10, $11, $12)`,
				id, t.Index, d.Revision, string(d.Choice), d.By, d.At, d.Note, d.Hash, string(d.Reason), d.Action, d.Previous, d.UndoneBy)
		}
		if p := t.Delivery; p != targets[i].Delivery {
			b.Queue(`UPDATE review_control.targets
				SET progress = $3, attempts = $4, delays = $5, since = $6, progress_at = $7, problem = $8, message_id = $9, slot_at = NULL
				WHERE draft_id = $1 AND position = $2`,
				id, t.Index, string(p.State), p.Attempts, p.Delays, p.Since, p.At, p.Problem, p.MessageID)
		}
	}
	if r.Status == reviewcontrol.Cancelled && before.Status == reviewcontrol.Approved {
		b.Queue(`UPDATE review_control.targets SET progress = '', slot_at = NULL WHERE draft_id = $1 AND progress = 'queued'`, id)
	}
	if r.Status == reviewcontrol.InReview && before.Status == reviewcontrol.Approved {
		b.Queue(`UPDATE review_control.targets
			SET progress = '', delays = 0, since = NULL, progress_at = NULL, problem = '', slot_at = NULL
			WHERE draft_id = $1 AND progress <> ''`, id)
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	if u.Entry != nil {
		if err := audit.Append(ctx, tx, *u.Entry); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	if r.Status == reviewcontrol.Approved && before.Status != r.Status {
		var at time.Time
		if r.LeavesAt != nil {
			at = *r.LeavesAt
		}
		if err := s.jobs.AddAt(ctx, tx, at, FinishReview{before.DraftID}); err != nil {
			return err
		}
	}
	return s.askSync(ctx, tx, before, r)
}

// syncAfter is how long deliveries are counted before authoring is told.
const syncAfter = time.Second

// askSync adds the job that tells authoring, unless one is on its way already. A new status
// is told at once, and mails are counted for a moment.
func (s *Store) askSync(ctx context.Context, tx pgx.Tx, before reviewcontrol.Review, after *reviewcontrol.Review) error {
	tag, err := tx.Exec(ctx, `UPDATE review_control.reviews SET sync_waiting = true WHERE draft_id = $1 AND NOT sync_waiting`,
		int64(before.DraftID))
	if err != nil {
		return err
	}
	var at time.Time
	switch {
	case after.Status != before.Status:
	case tag.RowsAffected() == 0:
		return nil
	case after.Counts.Decided() == before.Counts.Decided():
		at = time.Now().Add(syncAfter)
	}
	return s.jobs.AddAt(ctx, tx, at, SyncDraft{before.DraftID})
}

// TakeSync returns a review whose changes authoring may not have heard of, with how many of its targets are rejected
// for which reason: both of one moment, as nobody decides while the review is locked.
func (s *Store) TakeSync(ctx context.Context, id reviewcontrol.ID) (
	r reviewcontrol.Review, rejections map[reviewcontrol.Reason]int, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		if r, err = someReview(ctx, tx, id, takeSync); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, rejectionsOf, int64(id))
		if err != nil {
			return err
		}
		rejections = map[reviewcontrol.Reason]int{}
		var reason reviewcontrol.Reason
		var n int
		_, err = pgx.ForEachRow(rows, []any{&reason, &n}, func() error {
			rejections[reason] = n
			return nil
		})
		return err
	})
	return r, rejections, err
}

// Synced keeps what authoring knows.
func (s *Store) Synced(ctx context.Context, id reviewcontrol.ID, version int64) error {
	_, err := s.pool.Exec(ctx, `UPDATE review_control.reviews SET synced = $2 WHERE draft_id = $1 AND synced < $2`, int64(id), version)
	return explain(err)
}

// Unsynced keeps that a job is going to try again.
func (s *Store) Unsynced(ctx context.Context, id reviewcontrol.ID) error {
	_, err := s.pool.Exec(ctx, `UPDATE review_control.reviews SET sync_waiting = true WHERE draft_id = $1 AND NOT sync_waiting`, int64(id))
	return explain(err)
}
