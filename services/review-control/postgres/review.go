package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/triage"
)

const (
	// reviewColumns and targetColumns are what is read; each has the name of the field that it is read into. An intent (status draft) is
	// no review yet, so the queries leave it out.
	reviewColumns = `draft_id, status, pending, approved, rejected, sent, failed, suppressed, unknown, version, attempted,
	queued_at, actor, note, created_by, hub_user, external_user, sender_name, sender_email, closed_by, closed_at,
	actions, reopened, leaves_at, inspected, layout`
	oneReview   = `SELECT ` + reviewColumns + ` FROM review_control.reviews WHERE draft_id = $1 AND status <> 'draft'`
	manyReviews = `SELECT ` + reviewColumns + ` FROM review_control.reviews WHERE draft_id = ANY ($1) AND status <> 'draft'`

	// The partial index reviews_waiting has them in this order.
	waitingReviews = `SELECT ` + reviewColumns + ` FROM review_control.reviews
		WHERE status = 'in_review' AND pending > 0 AND (created_by, hub_user, external_user) NOT IN (
			SELECT * FROM unnest($2::text[], $3::text[], $4::text[])) ORDER BY queued_at, draft_id LIMIT $1`

	// takeSync says that no job is on its way in the same statement in which it reads: what changes afterwards adds another job.
	takeSync = `UPDATE review_control.reviews SET sync_waiting = false WHERE draft_id = $1 AND status <> 'draft' RETURNING ` + reviewColumns
	// Of most drafts the rejected ones are few: the index has them.
	rejectionsOf = `SELECT reason, count(*) FROM review_control.targets
		WHERE draft_id = $1 AND choice = 'rejected' AND reason <> '' GROUP BY reason`
	// The index has them in their order, however many are rejected.
	newestRejections = `SELECT ` + targetColumns + ` FROM review_control.targets
		WHERE draft_id = $1 AND choice = 'rejected' ORDER BY decided_at DESC, position LIMIT 50`

	targetColumns = `position AS index, external_id, to_email, to_name, mailings, unsubscribe_token AS token,
	choice, revision, decided_by, decided_at, note, reason, rendering_hash, action,
	progress AS state, attempts, delays, since, progress_at AS at, problem, message_id,
	subject, inspected_hash, flags | hints AS flags, variant`
	oneTarget   = `SELECT ` + targetColumns + ` FROM review_control.targets WHERE draft_id = $1 AND position = $2`
	manyTargets = `SELECT ` + targetColumns + ` FROM review_control.targets WHERE draft_id = $1 AND position = ANY ($2) ORDER BY position`
	// Rows are locked by position, so that two who want some of the same ones wait and do not deadlock.
	lockTargets = manyTargets + ` FOR NO KEY UPDATE`
)

// reviewRow is a row of reviewColumns.
type reviewRow struct {
	reviewcontrol.Review
	reviewcontrol.Counts
	reviewcontrol.Maker
	SenderName, SenderEmail string
}

// review is the row as the domain has it.
func (r reviewRow) review() reviewcontrol.Review {
	r.Review.Counts, r.Review.Maker = r.Counts, r.Maker
	r.Sender = mailer.Address{Name: r.SenderName, Email: r.SenderEmail}
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

// target is the row as the domain has it.
func (r targetRow) target() reviewcontrol.Target {
	r.Target.Delivery = r.Delivery
	r.Decision = reviewcontrol.Decision{Choice: r.Choice, By: r.DecidedBy, At: r.DecidedAt, Note: r.Note,
		Reason: r.Reason, Hash: r.RenderingHash, Revision: r.Revision, Action: r.Action}
	r.Inspection = reviewcontrol.Inspection{Subject: r.Subject, Hash: r.InspectedHash, Flags: r.Flags, Variant: r.Variant}
	return r.Target
}

// targets reads targets by one of the queries of targetColumns.
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

// someReview reads the review that a query finds; E_NOT_FOUND without one.
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
// A draft without one is absent.
func (s *Store) Reviews(ctx context.Context, ids []reviewcontrol.ID) (map[reviewcontrol.ID]reviewcontrol.Review, error) {
	rows, err := collect(ctx, s.pool, pgx.RowToStructByNameLax[reviewRow], manyReviews, drafts(ids))
	found := make(map[reviewcontrol.ID]reviewcontrol.Review, len(rows))
	for _, row := range rows {
		found[row.DraftID] = row.review()
	}
	return found, err
}

// Waiting returns reviews with targets to decide on that none of the makers has made, the oldest first.
func (s *Store) Waiting(ctx context.Context, own []reviewcontrol.Maker, limit int) ([]reviewcontrol.Review, error) {
	labels, users, externals := make([]string, len(own)), make([]string, len(own)), make([]string, len(own))
	for i, m := range own {
		labels[i], users[i], externals[i] = m.CreatedBy, m.HubUser, m.ExternalUser
	}
	rows, err := collect(ctx, s.pool, pgx.RowToStructByNameLax[reviewRow], waitingReviews, limit, labels, users, externals)
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
// This is keyset pagination: $2 is the index of the target after which the page begins, whose place in the order of the filter is
// computed from its row. Back turns the order around, and the caller turns the page again.
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
// (flags = 0) is false for a mail with a flag, and false sorts before true; the index targets_flagged_first has this expression.
func orderOf(f reviewcontrol.TargetFilter) (key []string, of string) {
	if !f.FlaggedFirst {
		return []string{"position"}, "($2)"
	}
	return []string{"(flags = 0)", "position"}, `(coalesce((SELECT x.flags = 0 FROM review_control.targets x
		WHERE x.draft_id = $1 AND x.position = $2), false), $2)`
}

// placeOf is the query for the place of After among the targets of a filter.
// It counts the targets up to After, so it costs as much as After is far down. The console shows it as "12 of 340".
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
// before are the arguments of the query around it, which its own follow. A condition that repeats one of an index, as that of
// targets_progress, lets the planner use that partial index.
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
		add(` AND (flags | hints) & $%[1]d = $%[1]d`, int32(f.Flag))
	}
	if f.Flagged {
		sql += ` AND flags <> 0`
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

// numbers are indexes as the driver takes them.
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

// missingOf is E_NOT_FOUND for the first index that none of the targets has.
func missingOf(id reviewcontrol.ID, indexes []int, targets []reviewcontrol.Target) error {
	for _, index := range indexes {
		if !slices.ContainsFunc(targets, func(t reviewcontrol.Target) bool { return t.Index == index }) {
			return reviewcontrol.MissingTarget(id, index)
		}
	}
	return fmt.Errorf("draft %s: an index is asked for twice", id)
}

// TakeSync returns a review whose changes authoring may not have heard of, with which of its targets are rejected
// for which reason: all of one moment, as nobody decides while the review is locked.
func (s *Store) TakeSync(ctx context.Context, id reviewcontrol.ID) (
	r reviewcontrol.Review, rejections map[reviewcontrol.Reason]int, rejected []reviewcontrol.Target, err error) {
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
		if err != nil || r.Counts.Rejected == 0 {
			return err
		}
		rejected, err = targets(ctx, tx, newestRejections, int64(id))
		return err
	})
	return r, rejections, rejected, err
}

// Synced keeps what authoring knows.
// An older version never takes the place of a newer one: jobs may end in another order than they began.
func (s *Store) Synced(ctx context.Context, id reviewcontrol.ID, version int64) error {
	_, err := s.pool.Exec(ctx, `UPDATE review_control.reviews SET synced = $2 WHERE draft_id = $1 AND synced < $2`, int64(id), version)
	return explain(err)
}

// Unsynced keeps that a job is going to try again.
func (s *Store) Unsynced(ctx context.Context, id reviewcontrol.ID) error {
	_, err := s.pool.Exec(ctx, `UPDATE review_control.reviews SET sync_waiting = true WHERE draft_id = $1 AND NOT sync_waiting`, int64(id))
	return explain(err)
}
