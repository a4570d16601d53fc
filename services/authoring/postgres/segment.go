package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/authoring"
)

// inlineTargets is how many targets go along with their segment in one statement, and small how many bytes their snapshots may have then;
// more go by COPY, which takes round trips of its own, and holds one of them at a time.
const inlineTargets, small = 100, 1 << 20

// insertSegment stores a segment without its targets, which follow by COPY in the same transaction.
const insertSegment = `INSERT INTO authoring.segments (name, kind, description, created_by, created_at, target_count,
		service, external_user_id, credential_id, hub_user)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`

// insertSmallSegment stores a segment and its few targets in one statement, so in one round trip.
const insertSmallSegment = `WITH s AS (` + insertSegment + `),
	t AS (INSERT INTO authoring.segment_targets (segment_id, position, external_id, snapshot, partner_id)
		SELECT s.id, u.position - 1, u.external_id, u.snapshot::json, u.partner_id
		FROM s, unnest($11::bigint[], $12::text[], $13::bigint[]) WITH ORDINALITY AS u (external_id, snapshot, partner_id, position))
	SELECT id FROM s`

// AddSegment stores a segment once for the key.
// Targets are a sequence, because snapshots of a large segment may be more than the process should hold. It is read a second time where
// the first few turn out to be too large for one statement.
func (s *Store) AddSegment(ctx context.Context, key write.Key, segment authoring.Segment, targets authoring.SegmentTargets,
	record authoring.Record) (tool.Result, error) {
	return s.once(ctx, key, record, func(ctx context.Context, tx pgx.Tx) (id authoring.ID, err error) {
		statement, args := insertSegment, []any{
			segment.Name, string(segment.Kind), segment.Description, segment.CreatedBy, segment.CreatedAt, segment.TargetCount,
			segment.Origin.Service, segment.Origin.ExternalUserID, segment.Origin.CredentialID, segment.Origin.HubUser}
		together := segment.TargetCount <= inlineTargets
		if together {
			size, ids, snapshots, partners := 0, make([]int64, 0, inlineTargets), make([]string, 0, inlineTargets), make([]*int64, 0, inlineTargets)
			for t, err := range targets {
				if err != nil {
					return 0, err
				}
				if size += len(t.Snapshot); size > small {
					// The sequence is begun anew by copyRows below.
					together = false
					break
				}
				ids, snapshots = append(ids, t.ExternalID), append(snapshots, string(t.Snapshot))
				partners = append(partners, t.Partner(segment.Kind))
			}
			if together {
				statement, args = insertSmallSegment, append(args, ids, snapshots, partners)
			}
		}
		if err := tx.QueryRow(ctx, statement, args...).Scan(&id); err != nil || together {
			return id, err
		}
		columns := []string{"segment_id", "position", "external_id", "snapshot", "partner_id"}
		return id, copyRows(ctx, tx, "segment_targets", columns, targets, func(row []any, position int, t authoring.SegmentTarget) []any {
			return append(row, int64(id), int32(position), t.ExternalID, t.Snapshot, t.Partner(segment.Kind))
		})
	})
}

// copyRows loads what the sequence yields by postgres.Copy, one row at a time.
// An error of the sequence ends the COPY and the transaction with it.
func copyRows[T any](ctx context.Context, tx pgx.Tx, table string, columns []string, rows iter.Seq2[T, error],
	values func([]any, int, T) []any) error {
	next, stop := iter.Pull2(rows)
	defer stop()
	row, position := make([]any, 0, len(columns)), 0
	return postgres.Copy(ctx, tx, pgx.Identifier{service, table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		t, err, more := next()
		if !more || err != nil {
			return nil, err
		}
		// The row is used again: CopyFromFunc has encoded it before it asks for the next one.
		row = values(row[:0], position, t)
		position++
		return row, nil
	}))
}

// segmentColumns are those of segmentRow.
const segmentColumns = `id, name, kind, description, created_by, created_at, target_count,
	service, external_user_id, credential_id, hub_user`

// segmentRow is a row of segmentColumns.
type segmentRow struct {
	authoring.Segment
	authoring.Origin
}

// segment puts the origin, whose columns stand beside the others, into the segment.
func (r segmentRow) segment() authoring.Segment {
	r.Segment.Origin = r.Origin
	return r.Segment
}

// Segment returns a segment.
// E_NOT_FOUND for an id that no segment has.
func (s *Store) Segment(ctx context.Context, id authoring.ID) (authoring.Segment, error) {
	row, err := postgres.One(ctx, s.pool, pgx.RowToStructByNameLax[segmentRow],
		`SELECT `+segmentColumns+` FROM authoring.segments WHERE id = $1`, int64(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return authoring.Segment{}, authoring.NotFound("segment", id)
	}
	return row.segment(), explain(err)
}

// listSegments is the query of a filter: the newest of all or of a kind, each in the order of an index. The place where a page with an
// offset begins is found in the index alone.
func listSegments(f authoring.SegmentFilter) (string, []any) {
	var s statement
	where := ` WHERE true`
	if f.Kind != "" {
		where += ` AND kind = ` + s.arg(string(f.Kind))
	}
	page := ""
	if f.ID != 0 {
		page += ` AND id = ` + s.arg(int64(f.ID))
	}
	if f.Offset > 0 {
		page += ` AND id < (SELECT id FROM authoring.segments` + where + page + ` ORDER BY id DESC OFFSET ` + s.arg(f.Offset-1) + ` LIMIT 1)`
	}
	return `SELECT ` + segmentColumns + ` FROM authoring.segments` + where + page + ` ORDER BY id DESC LIMIT ` + s.arg(f.Limit), s.args
}

// Segments returns the newest segments that the filter finds.
func (s *Store) Segments(ctx context.Context, f authoring.SegmentFilter) ([]authoring.Segment, error) {
	sql, args := listSegments(f)
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[segmentRow], sql, args...)
	list := make([]authoring.Segment, len(rows))
	for i, row := range rows {
		list[i] = row.segment()
	}
	return list, explain(err)
}

// Each of the two conditions is an index of its own.
const (
	outsideSegmentOfPartners = `SELECT p.id, false FROM unnest($2::bigint[]) WITH ORDINALITY p (id, place)
		WHERE NOT EXISTS (SELECT FROM authoring.segment_targets t WHERE t.segment_id = $1 AND t.external_id = p.id) ORDER BY p.place`
	outsideSegmentOfOthers = `SELECT p.id, EXISTS (SELECT FROM authoring.segment_targets t WHERE t.segment_id = $1 AND t.external_id = p.id)
		FROM unnest($2::bigint[]) WITH ORDINALITY p (id, place)
		WHERE NOT EXISTS (SELECT FROM authoring.segment_targets t WHERE t.segment_id = $1 AND t.partner_id = p.id) ORDER BY p.place`
)

// OutsideSegment returns those of the partners that a segment has nothing of.
// The flag of each tells that the id is that of a brand or campaign of the segment: somebody took one for the partner.
func (s *Store) OutsideSegment(ctx context.Context, segment authoring.Segment, partners []int64) ([]authoring.OutsidePartner, error) {
	statement := outsideSegmentOfPartners
	if segment.Kind != authoring.Partner {
		statement = outsideSegmentOfOthers
	}
	list, err := postgres.All(ctx, s.pool, pgx.RowToStructByPos[authoring.OutsidePartner], statement, int64(segment.ID), partners)
	return list, explain(err)
}

const (
	evidenceOfPartners = `SELECT external_id, snapshot::text FROM authoring.segment_targets WHERE segment_id = $1 AND external_id = ANY ($2)`
	evidenceOfOthers   = `SELECT partner_id, snapshot::text FROM authoring.segment_targets WHERE segment_id = $1 AND partner_id = ANY ($2)`
)

// Evidence calls yield with each snapshot that a segment has of the partners.
// It streams: no more than one snapshot is held here. The order is not defined.
func (s *Store) Evidence(ctx context.Context, segment authoring.Segment, partners []int64, yield func(int64, []byte)) error {
	statement := evidenceOfPartners
	if segment.Kind != authoring.Partner {
		statement = evidenceOfOthers
	}
	rows, err := s.pool.Query(ctx, statement, int64(segment.ID), partners)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var partner int64
		var snapshot []byte
		if err := rows.Scan(&partner, &snapshot); err != nil {
			return explain(err)
		}
		yield(partner, snapshot)
	}
	return explain(rows.Err())
}

// SegmentPartners counts the partners that a segment is of.
func (s *Store) SegmentPartners(ctx context.Context, segment authoring.Segment) (n int, err error) {
	if segment.Kind == authoring.Partner {
		return segment.TargetCount, nil
	}
	err = s.pool.QueryRow(ctx, `SELECT count(DISTINCT partner_id) FROM authoring.segment_targets WHERE segment_id = $1`,
		int64(segment.ID)).Scan(&n)
	return n, explain(err)
}
