package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/services/review-control/metrics"
)

// Each part reads an index of its own: reviews_waiting, reviews_approved with targets_progress, reviews_troubled.
// to_send is what is approved and has no outcome yet; sending is the part of it whose hand-over has begun.
const backlog = `SELECT w.drafts, w.mails, w.oldest, a.to_send, a.sending, t.failed, t.unknown FROM
	(SELECT count(*) AS drafts, coalesce(sum(pending), 0) AS mails, min(queued_at) AS oldest
		FROM review_control.reviews WHERE status = 'in_review') w,
	(SELECT coalesce(sum(approved - sent - failed - suppressed - unknown), 0) AS to_send, coalesce(sum(
			(SELECT count(*) FROM review_control.targets t WHERE t.draft_id = r.draft_id AND t.progress = 'sending')), 0) AS sending
		FROM review_control.reviews r WHERE status = 'approved') a,
	(SELECT coalesce(sum(failed), 0) AS failed, coalesce(sum(unknown), 0) AS unknown
		FROM review_control.reviews WHERE failed + unknown > 0 AND changed_at >= $1) t`

// Backlog counts what waits, and what went wrong with drafts that have changed since a moment.
// It is one statement, so the numbers are of one moment. The admin service asks for it by an operation, and the gauges each time that
// they are sampled.
func (s *Store) Backlog(ctx context.Context, since time.Time) (metrics.Backlog, error) {
	b, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[metrics.Backlog], backlog, since)
	return b, explain(err)
}
