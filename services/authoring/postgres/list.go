package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/authoring"
)

// statement is SQL that grows with its arguments.
// Values go in as arguments alone, so nothing that somebody typed becomes SQL.
type statement struct{ args []any }

// arg adds an argument and returns its name.
func (s *statement) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// searchCondition is the condition of a search behind an AND.
// No index serves a part of a text: a search reads the drafts in the order of the list until its page is full.
func (s *statement) searchCondition(search string) string {
	if search == "" {
		return ""
	}
	// A name has no NUL, and the store takes none.
	search = text.Storable(search)
	pattern := s.arg("%" + postgres.LikePattern(search) + "%")
	return ` AND (d.name ILIKE ` + pattern + ` OR d.id::text = ` + s.arg(search) +
		` OR d.segment_id IN (SELECT id FROM authoring.segments WHERE name ILIKE ` + pattern + `))`
}

// makerCondition is the condition of who made a draft.
// All three have to be equal, as they were stored: the label, the user of Hub and the app's own user.
func (s *statement) makerCondition(makers []authoring.Maker) string {
	labels, users, externals := make([]string, len(makers)), make([]string, len(makers)), make([]string, len(makers))
	for i, m := range makers {
		labels[i], users[i], externals[i] = m.CreatedBy, m.HubUser, m.ExternalUserID
	}
	return `(coalesce(d.created_by, ''), d.hub_user, d.external_user_id) IN (SELECT * FROM unnest(` +
		s.arg(labels) + `::text[], ` + s.arg(users) + `::text[], ` + s.arg(externals) + `::text[]))`
}

// statusCondition is the condition of one of the statuses: a single one is in the order of an index.
func (s *statement) statusCondition(statuses []authoring.Status) string {
	if len(statuses) == 1 {
		return `d.status = ` + s.arg(string(statuses[0]))
	}
	names := make([]string, len(statuses))
	for i, name := range statuses {
		names[i] = string(name)
	}
	return `d.status = ANY (` + s.arg(names) + `::text[])`
}

// ahead are the drafts whose status is another one than is stored, with those of them that are in one of the statuses.
// review-control decides and tells authoring a moment later (SyncDraft); until then it sends along which drafts are ahead.
func ahead(f authoring.DraftFilter) (ids []int64, statuses []string, listed []int64) {
	for _, a := range f.Ahead {
		id, _ := schema.ParseID(a.DraftID)
		ids, statuses = append(ids, int64(id)), append(statuses, string(a.Status))
		for _, status := range f.Statuses {
			if status == a.Status {
				listed = append(listed, int64(id))
			}
		}
	}
	return ids, statuses, listed
}

// listDrafts is the query of a filter. A page is cut before it is joined; drafts whose status is another one
// than is stored are a part of their own, so that an index gives the rest in its order.
// After is keyset pagination; an offset goes with the newest first alone.
func listDrafts(f authoring.DraftFilter) (string, []any) {
	var s statement
	where, order := "", `d.id DESC`
	// The index is drafts_queued; the other order walks along the primary key, or drafts_status for a single status.
	if f.ByQueue {
		where, order = ` AND d.queued_at IS NOT NULL`, `d.queued_at, d.id`
	}
	if f.After != 0 {
		last := s.arg(int64(f.After))
		if f.ByQueue { // which never changes once it is there
			where += ` AND (d.queued_at, d.id) > (SELECT queued_at, id FROM authoring.drafts WHERE id = ` + last + `)`
		} else {
			where += ` AND d.id < ` + last
		}
	}
	where += s.searchCondition(f.Search)
	if f.Others && len(f.Makers) > 0 {
		where += ` AND NOT ` + s.makerCondition(f.Makers)
	}
	if f.ID != 0 {
		where += ` AND d.id = ` + s.arg(int64(f.ID))
	}
	limit := s.arg(f.Limit)
	page := func(condition string) string {
		from := `authoring.drafts d WHERE ` + condition + where
		if f.Offset > 0 { // where the page begins is found in the index alone
			from += ` AND d.id < (SELECT d.id FROM ` + from + ` ORDER BY d.id DESC OFFSET ` + s.arg(f.Offset-1) + ` LIMIT 1)`
		}
		return `(SELECT d.* FROM ` + from + ` ORDER BY ` + order + ` LIMIT ` + limit + `)`
	}
	var parts string
	if len(f.Statuses) == 0 {
		parts = page("true")
	} else {
		status := s.statusCondition(f.Statuses)
		if ids, _, listed := ahead(f); len(ids) > 0 {
			parts = page(status+` AND d.id <> ALL (`+s.arg(ids)+`::bigint[])`) + ` UNION ALL ` + page(`d.id = ANY (`+s.arg(listed)+`::bigint[])`)
		} else {
			parts = page(status)
		}
	}
	return `SELECT ` + draftColumns + ` FROM (` + parts + `) d JOIN authoring.segments s ON s.id = d.segment_id
		ORDER BY ` + order + ` LIMIT ` + limit, s.args
}

// countDrafts is the query of the drafts that a search finds, by status.
// It reads all drafts that the search finds: the filter's statuses and its page are left out.
func countDrafts(f authoring.DraftFilter) (string, []any) {
	var s statement
	status, from := `d.status`, ` FROM authoring.drafts d`
	if ids, statuses, _ := ahead(f); len(ids) > 0 {
		status = `coalesce(a.status, d.status)`
		from += ` LEFT JOIN unnest(` + s.arg(ids) + `::bigint[], ` + s.arg(statuses) + `::text[]) a (id, status) ON a.id = d.id`
	}
	others := `count(*)`
	if len(f.Makers) > 0 {
		others = `count(*) FILTER (WHERE NOT ` + s.makerCondition(f.Makers) + `)`
	}
	return `SELECT ` + status + `, count(*), ` + others + from + ` WHERE true` + s.searchCondition(f.Search) + ` GROUP BY 1`, s.args
}

// Drafts returns a page of drafts.
func (s *Store) Drafts(ctx context.Context, f authoring.DraftFilter) ([]authoring.Draft, error) {
	list, err := drafts(ctx, s.pool, f)
	return list, explain(err)
}

// drafts reads a page within a transaction or without one.
func drafts(ctx context.Context, q postgres.Querier, f authoring.DraftFilter) ([]authoring.Draft, error) {
	sql, args := listDrafts(f)
	rows, err := postgres.All(ctx, q, pgx.RowToStructByNameLax[draftRow], sql, args...)
	list := make([]authoring.Draft, len(rows))
	for i, row := range rows {
		list[i] = row.draft()
	}
	return list, err
}

// rejectedOf reads what is kept of the rejected targets of drafts.
const rejectedOf = `SELECT id, rejected_targets FROM authoring.drafts WHERE id = ANY ($1)`

// Rejected returns what is kept of the rejected targets of drafts, the newest of each first.
func (s *Store) Rejected(ctx context.Context, drafts []authoring.ID) (map[authoring.ID][]authoring.RejectedTarget, error) {
	ids := make([]int64, len(drafts))
	for i, id := range drafts {
		ids[i] = int64(id)
	}
	of := make(map[authoring.ID][]authoring.RejectedTarget, len(drafts))
	rows, err := s.pool.Query(ctx, rejectedOf, ids)
	if err != nil {
		return of, explain(err)
	}
	var id int64
	var targets []authoring.RejectedTarget
	_, err = pgx.ForEachRow(rows, []any{&id, &targets}, func() error {
		// nil, because the next row is decoded into a slice of its own.
		of[authoring.ID(id)], targets = targets, nil
		return nil
	})
	return of, explain(err)
}

// CountedDrafts is Drafts with the counts, both of one snapshot.
// REPEATABLE READ gives both statements one snapshot, so the counts fit the page.
func (s *Store) CountedDrafts(ctx context.Context, f authoring.DraftFilter) (list []authoring.Draft, n authoring.DraftCounts, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if list, err = drafts(ctx, tx, f); err != nil {
			return err
		}
		sql, args := countDrafts(f)
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		n = authoring.DraftCounts{All: map[authoring.Status]int{}, Others: map[authoring.Status]int{}}
		var status authoring.Status
		var all, others int
		_, err = pgx.ForEachRow(rows, []any{&status, &all, &others}, func() error {
			n.All[status], n.Others[status] = all, others
			return nil
		})
		return err
	})
	return list, n, explain(err)
}
