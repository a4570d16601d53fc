package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/repeat"
)

// counted is which drafts d count as earlier: those that were queued before the one that asks, as far as it was queued itself, and those
// that have moved on before that did.
const counted = `($5::timestamptz IS NULL OR (d.queued_at, d.id) < ($5, $4::bigint)
				OR d.status <> 'in_review' AND coalesce(d.moved_at, d.queued_at) < own.decided_at)`

// earlierMails finds, for each target, an earlier mail, the gravest kind first and the newest of that: by text at any time, by address and
// partner in the drafts that are about to leave or have left since $6; of those that are counted. A draft that was cancelled counts by the
// text of those targets alone that it names as rejected. Each is a look into an index, at its newest 20 entries: whoever saves a draft
// again and again makes nobody wait. The planner is not to know how many targets there are, nor which drafts: it would read all targets
// that ever were.
const earlierMails = `WITH own AS MATERIALIZED (
		SELECT CASE count(*) WHEN 0 THEN 'infinity'::timestamptz ELSE coalesce(max(moved_at), '-infinity') END AS decided_at
		FROM authoring.drafts WHERE id = $4 AND status NOT IN ('draft', 'in_review')
	), recent AS MATERIALIZED (
		SELECT coalesce(array_agg(id), '{}') AS ids, min(id) AS first FROM (
			SELECT id, status, queued_at, moved_at FROM authoring.drafts WHERE status IN ('in_review', 'approved')
			UNION ALL
			SELECT id, status, queued_at, moved_at FROM authoring.drafts WHERE status = 'sent' AND coalesce(moved_at, queued_at) >= $6) d, own
		WHERE $6::timestamptz IS NOT NULL AND id <> $4 AND ` + counted + `
	), found AS MATERIALIZED (
		SELECT (a.place - 1)::int AS place, k.*
		FROM unnest((SELECT $1::bigint[]), (SELECT $2::bigint[]), (SELECT $3::bigint[])) WITH ORDINALITY AS a (text, address, partner, place)
		CROSS JOIN recent r CROSS JOIN own
		CROSS JOIN LATERAL (SELECT * FROM (
			(SELECT 1 AS kind, t.draft_id AS draft, t.position FROM (SELECT draft_id, position FROM authoring.draft_targets
					WHERE text_hash = a.text AND draft_id <> $4 ORDER BY draft_id DESC LIMIT 20) t
				WHERE (SELECT ` + counted + ` AND (d.status IN ('in_review', 'approved', 'sent', 'rejected') OR d.status = 'cancelled'
						AND d.rejected_targets @> jsonb_build_array(jsonb_build_object('index', t.position)))
					FROM authoring.drafts d WHERE d.id = t.draft_id) ORDER BY t.draft_id DESC LIMIT 1)
			UNION ALL
			(SELECT 2, t.draft_id, t.position FROM (SELECT draft_id, position FROM authoring.draft_targets
					WHERE address_hash = a.address AND draft_id >= r.first ORDER BY draft_id DESC LIMIT 20) t
				WHERE t.draft_id = ANY (r.ids) ORDER BY t.draft_id DESC LIMIT 1)
			UNION ALL
			(SELECT 3, t.draft_id, t.position FROM (SELECT draft_id, position FROM authoring.draft_targets
					WHERE external_id = a.partner AND draft_id >= r.first ORDER BY draft_id DESC LIMIT 20) t
				WHERE t.draft_id = ANY (r.ids) ORDER BY t.draft_id DESC LIMIT 1)
		) kinds LIMIT 1) k
	)
	SELECT f.*, d.status, coalesce(d.moved_at, d.queued_at) AS at FROM found f JOIN authoring.drafts d ON d.id = f.draft`

// Earlier returns the gravest earlier mail to each target that has any, by the target's place.
// Each kind has an index: draft_targets_text, draft_targets_address, draft_targets_partner. A target without a text hash repeats
// nobody's text.
func (s *Store) Earlier(ctx context.Context, but authoring.ID, before, since *time.Time, targets []repeat.Target) (
	map[int]repeat.Mail, error) {
	texts, addresses, partners := make([]*int64, len(targets)), make([]int64, len(targets)), make([]int64, len(targets))
	for i, t := range targets {
		texts[i], addresses[i], partners[i] = t.Text, repeat.Address(t.Email), t.Partner
	}
	mails, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[repeat.Mail], earlierMails, texts, addresses, partners, int64(but),
		before, since)
	if err != nil || len(mails) == 0 {
		return nil, explain(err)
	}
	drafts := make([]authoring.ID, len(mails))
	for i, m := range mails {
		drafts[i] = authoring.ID(m.Draft)
	}
	slices.Sort(drafts)
	// At most 50 rejected targets of a draft are kept, so that of an older rejection nothing is known here.
	told, err := s.Rejected(ctx, slices.Compact(drafts))
	if err != nil {
		return nil, err
	}
	reasons := map[int64]map[int]string{}
	for draft, list := range told {
		reasons[int64(draft)] = map[int]string{}
		for _, t := range list {
			reasons[int64(draft)][t.Index] = t.Reason
		}
	}
	return repeat.Gravest(mails, reasons), nil
}
