package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/repeat"
)

// AddDraft stores a draft once for the key; its targets go by COPY.
// An address is stored with its hash (repeat.Address), by which Earlier finds it. A replay gets the stored answer, and nothing is
// written twice.
func (s *Store) AddDraft(ctx context.Context, key write.Key, d authoring.Draft, targets authoring.DraftTargets,
	record authoring.Record) (tool.Result, error) {
	return s.once(ctx, key, record, func(ctx context.Context, tx pgx.Tx) (id authoring.ID, err error) {
		err = tx.QueryRow(ctx, `INSERT INTO authoring.drafts (name, status, segment_id, subject_template, body_template, sender_name,
				sender_email, created_by, created_at, target_count, pending, service, external_user_id, credential_id, hub_user)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id`,
			d.Name, string(d.Status), int64(d.SegmentID), d.SubjectTemplate, d.BodyTemplate, d.SenderName, d.SenderEmail,
			d.CreatedBy, d.CreatedAt, d.TargetCount, d.Progress.Decisions.Pending,
			d.Origin.Service, d.Origin.ExternalUserID, d.Origin.CredentialID, d.Origin.HubUser).Scan(&id)
		if err != nil {
			return 0, err
		}
		columns := []string{"draft_id", "position", "external_id", "to_email", "to_name", "subject", "body", "context", "doubts",
			"text_hash", "address_hash"}
		return id, copyRows(ctx, tx, "draft_targets", columns, targets, func(row []any, position int, t authoring.DraftTarget) []any {
			return append(row, int64(id), int32(position), t.ExternalID, t.ToEmail, t.ToName, t.Subject, t.Body, t.Context,
				append([]string{}, t.Doubts...), t.TextHash, repeat.Address(t.ToEmail))
		})
	})
}

const (
	// The list reads no bodies: templates may be long.
	draftColumns = `d.id, d.name, d.status, d.segment_id, s.name AS segment_name, s.kind AS segment_kind, d.sender_name, d.sender_email,
	d.created_by, d.created_at, d.queued_at, d.target_count, d.service, d.external_user_id, d.credential_id, d.hub_user,
	d.progress_version, d.pending, d.approved, d.rejected, d.sent, d.failed, d.suppressed, d.unknown, d.rejections`
	// A draft is listed with the name and kind of its segment, which never change.
	fromDrafts = ` FROM authoring.drafts d JOIN authoring.segments s ON s.id = d.segment_id`
	// One draft is read with its templates; a list is not.
	oneDraft = `SELECT d.subject_template, d.body_template, ` + draftColumns + fromDrafts + ` WHERE d.id = $1`
)

// draftRow is a row of draftColumns, with or without the templates.
// RowToStructByNameLax leaves empty what a query does not have.
type draftRow struct {
	authoring.Draft
	authoring.Origin
	authoring.Decisions
	authoring.Delivery
	ProgressVersion int64
	Rejections      authoring.Rejections
}

// draft puts the parts of a row, which pgx fills by their columns' names, into the domain's form.
func (r draftRow) draft() authoring.Draft {
	r.Draft.Origin = r.Origin
	r.Progress = authoring.Progress{Version: r.ProgressVersion, Decisions: r.Decisions, Delivery: r.Delivery,
		Rejections: r.Rejections}
	return r.Draft
}

// draft reads one draft; a lock such as FOR UPDATE OF d may follow the query.
// E_NOT_FOUND for an id that no draft has.
func draft(ctx context.Context, q postgres.Querier, id authoring.ID, lock string) (authoring.Draft, error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByNameLax[draftRow], oneDraft+lock, int64(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return authoring.Draft{}, authoring.NotFound("draft", id)
	}
	return row.draft(), err
}

// Draft returns a draft without its targets.
func (s *Store) Draft(ctx context.Context, id authoring.ID) (authoring.Draft, error) {
	d, err := draft(ctx, s.pool, id, "")
	return d, explain(err)
}

// Each kind of segment has an index of its own that finds a partner's snapshots. A partner may
// have thousands of campaigns: the first ten will do.
// A batch is keyset pagination by position, along the primary key. The snapshots come with the first of its targets of a partner, so that
// it has no more of them than the segment has; they may be megabytes.
const (
	targetsOf     = `SELECT * FROM authoring.draft_targets WHERE draft_id = $1 AND position > $2`
	targetsNamed  = targetsOf + ` AND position = ANY ($4)`
	selectTargets = `SELECT t.position AS index, t.external_id, t.to_email, t.to_name, t.subject, t.body, t.context, t.doubts,
	t.text_hash, e.snapshots
FROM (SELECT *, row_number() OVER (PARTITION BY external_id ORDER BY position) AS place FROM (%s ORDER BY position LIMIT $3) b) t
JOIN authoring.drafts d ON d.id = t.draft_id
JOIN authoring.segments s ON s.id = d.segment_id
CROSS JOIN LATERAL (SELECT array_agg(x.snapshot::text ORDER BY x.position) FROM (
	SELECT position, snapshot FROM authoring.segment_targets
		WHERE t.place = 1 AND s.kind = 'partner' AND segment_id = s.id AND external_id = t.external_id
	UNION ALL
	(SELECT position, snapshot FROM authoring.segment_targets
		WHERE t.place = 1 AND s.kind <> 'partner' AND segment_id = s.id AND partner_id = t.external_id
		ORDER BY position LIMIT 10)) x) e (snapshots)
ORDER BY t.position`
)

// Rows are fetched a few at a time: a page ends by its size, and one row may have megabytes.
const targetBatch = 64

// DraftTargets calls yield with targets in their order until it answers false.
// An error of yield ends it and is returned as it is. Each batch is a statement of its own, so a connection is held for the length of a
// batch.
func (s *Store) DraftTargets(ctx context.Context, id authoring.ID, after int, indexes []int,
	yield func(authoring.StoredTarget) (bool, error)) error {
	wanted := make([]int64, len(indexes))
	for i, index := range indexes {
		wanted[i] = int64(index)
	}
	slices.Sort(wanted)
	for {
		statement, args := fmt.Sprintf(selectTargets, targetsOf), []any{int64(id), int64(after), targetBatch}
		if len(wanted) > 0 {
			statement, args = fmt.Sprintf(selectTargets, targetsNamed), append(args, wanted)
		}
		snapshots := map[int64][]string{}
		rows, err := s.pool.Query(ctx, statement, args...)
		if err != nil {
			return explain(err)
		}
		read := 0
		for rows.Next() {
			var t authoring.StoredTarget
			if t, err = pgx.RowToStructByName[authoring.StoredTarget](rows); err != nil {
				break
			}
			if said, again := snapshots[t.ExternalID]; again {
				t.Snapshots = said
			}
			snapshots[t.ExternalID] = t.Snapshots
			var more bool
			if more, err = yield(t); err != nil || !more {
				rows.Close()
				return err
			}
			read, after = read+1, t.Index
		}
		rows.Close()
		if err = errors.Join(err, rows.Err()); err != nil || read < targetBatch {
			return explain(err)
		}
	}
}

// DraftRecipients returns targets in their order without what they are written.
// Who asks for addresses alone spares the store the bodies, which may be megabytes.
func (s *Store) DraftRecipients(ctx context.Context, id authoring.ID, after, limit int) ([]authoring.StoredTarget, error) {
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[authoring.StoredTarget],
		`SELECT position AS index, external_id, to_email, to_name, text_hash FROM authoring.draft_targets
			WHERE draft_id = $1 AND position > $2 ORDER BY position LIMIT $3`, int64(id), int64(after), limit)
	return list, explain(err)
}

// Transition stores what the domain says that a transition does to a draft.
// It is a compare-and-set for review-control: Draft.Change refuses a status that is not the expected one (E_CONFLICT), and t.Operation
// is its idempotency key.
func (s *Store) Transition(ctx context.Context, id authoring.ID, t authoring.Transition, by authoring.Origin,
	at time.Time) (done authoring.StatusChange, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The lock lets one transition of a draft follow the other, and the same operation find itself.
		d, err := draft(ctx, tx, id, ` FOR UPDATE OF d`)
		if err != nil {
			return err
		}
		before, err := statusChange(ctx, tx, t.Operation)
		if err != nil {
			return err
		}
		if done, err = d.Change(t, before, at); err != nil || done.Replayed {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE authoring.drafts SET status = $2, queued_at = $3, moved_at = $4 WHERE id = $1`,
			int64(id), string(done.To), done.QueuedAt, done.At)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO authoring.draft_transitions
			(operation_id, draft_id, from_status, to_status, queued_at, at, service, external_user_id, credential_id, hub_user)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, t.Operation, int64(id), string(done.From), string(done.To), done.QueuedAt, done.At,
			by.Service, by.ExternalUserID, by.CredentialID, by.HubUser)
		if postgres.IsUnique(err, "draft_transitions_pkey") { // of another draft, which this lock does not hold up
			return authoring.OperationReused(t.Operation)
		}
		return err
	})
	if err != nil {
		return authoring.StatusChange{}, explain(err)
	}
	return done, nil
}

// statusChange is what an operation has done before; nil when it has not.
func statusChange(ctx context.Context, tx pgx.Tx, operation string) (*authoring.StatusChange, error) {
	var c authoring.StatusChange
	err := tx.QueryRow(ctx, `SELECT draft_id, from_status, to_status, queued_at, at FROM authoring.draft_transitions
		WHERE operation_id = $1`, operation).Scan(&c.DraftID, &c.From, &c.To, &c.QueuedAt, &c.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &c, err
}

// SetProgress stores what the domain says that new counters change of a draft.
// A version that is as old as what is stored changes nothing, so messages may come twice and in any order.
func (s *Store) SetProgress(ctx context.Context, id authoring.ID, p authoring.Progress) (now authoring.Progress, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		d, err := draft(ctx, tx, id, ` FOR NO KEY UPDATE OF d`)
		if err != nil {
			return err
		}
		var changed bool
		if now, changed, err = d.Count(p); err != nil || !changed {
			return err
		}
		// The same rejected targets stay where they are stored: while mails leave, the other counts change alone.
		_, err = tx.Exec(ctx, `UPDATE authoring.drafts SET progress_version = $2, pending = $3, approved = $4, rejected = $5,
			sent = $6, failed = $7, suppressed = $8, rejections = coalesce($9::jsonb, '{}'), unknown = $10,
			rejected_targets = CASE WHEN rejected_targets = $11::jsonb THEN rejected_targets ELSE $11::jsonb END WHERE id = $1`,
			int64(id), now.Version,
			now.Decisions.Pending, now.Decisions.Approved, now.Decisions.Rejected, now.Delivery.Sent, now.Delivery.Failed,
			now.Delivery.Suppressed, now.Rejections, now.Delivery.Unknown, append([]authoring.RejectedTarget{}, now.Rejected...))
		return err
	})
	return now, explain(err)
}
