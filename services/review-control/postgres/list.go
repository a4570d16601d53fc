package postgres

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/postgres"
	"hub.internal/pkg/text"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

const (
	// openMakers reads the partial index reviews_open, whatever number of reviews has ended.
	openMakers = `SELECT DISTINCT created_by, hub_user, external_user FROM review_control.reviews
		WHERE status IN ('draft', 'in_review')`
	// aheadOf reads the partial index reviews_unsynced, and flagged the index targets_flagged.
	aheadOf = `SELECT draft_id, status FROM review_control.reviews
		WHERE synced < version AND status <> 'draft' ORDER BY draft_id DESC LIMIT $1`
	flagged = `SELECT draft_id, count(*), bit_or(flags) FROM review_control.targets
		WHERE draft_id = ANY ($1) AND flags <> 0 AND choice = 'pending' GROUP BY draft_id`

	// The index has addresses in the order of their bytes, so that a beginning is a range of it.
	mailsTo = `SELECT draft_id, ` + targetColumns + ` FROM review_control.targets
		WHERE lower(to_email) COLLATE "C" >= $1 AND lower(to_email) COLLATE "C" < $2
		ORDER BY lower(to_email) COLLATE "C", draft_id DESC, position LIMIT $3`

	// The primary key of presence begins with draft_id; a draft has few rows.
	presentAt = `SELECT draft_id, name, email FROM review_control.presence
		WHERE draft_id = ANY ($1) AND seen_at > $2 AND email <> $3 ORDER BY draft_id, name, email`
	// SKIP LOCKED, so that reviewers who look at the same moment do not wait for each other's tidying.
	forgetPresence = `DELETE FROM review_control.presence WHERE (draft_id, email) IN (
		SELECT draft_id, email FROM review_control.presence WHERE seen_at < $1 ORDER BY seen_at LIMIT 100 FOR UPDATE SKIP LOCKED)`
	// The SELECT makes nothing of a draft that has no review; the WHERE at the end spares the row a write more often than needed.
	seePresence = `INSERT INTO review_control.presence AS p (draft_id, email, name, seen_at)
		SELECT draft_id, $2, $3, $4 FROM review_control.reviews WHERE draft_id = $1 AND status <> 'draft'
		ON CONFLICT (draft_id, email) DO UPDATE SET name = excluded.name, seen_at = excluded.seen_at WHERE p.seen_at <= $5`
)

// OpenMakers returns who has made the drafts that are in review, or about to be.
func (s *Store) OpenMakers(ctx context.Context) ([]reviewcontrol.Maker, error) {
	return collect(ctx, s.pool, func(row pgx.CollectableRow) (m reviewcontrol.Maker, err error) {
		err = row.Scan(&m.CreatedBy, &m.HubUser, &m.ExternalUser)
		return m, err
	}, openMakers)
}

// Ahead returns the status of at most so many drafts of which authoring may know another one, the newest first.
func (s *Store) Ahead(ctx context.Context, limit int) (map[reviewcontrol.ID]reviewcontrol.Status, error) {
	ahead := map[reviewcontrol.ID]reviewcontrol.Status{}
	_, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (id reviewcontrol.ID, err error) {
		var status reviewcontrol.Status
		err = row.Scan(&id, &status)
		ahead[id] = status
		return id, err
	}, aheadOf, limit)
	return ahead, err
}

// Flagged sums up what a reviewer should look at among the undecided mails of drafts.
// A draft without a flag is absent.
func (s *Store) Flagged(ctx context.Context, ids []reviewcontrol.ID) (map[reviewcontrol.ID]reviewcontrol.Flagged, error) {
	sums := map[reviewcontrol.ID]reviewcontrol.Flagged{}
	_, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (id reviewcontrol.ID, err error) {
		var sum reviewcontrol.Flagged
		var flags int32
		err = row.Scan(&id, &sum.Mails, &flags)
		sum.Flags = triage.Flag(flags)
		sums[id] = sum
		return id, err
	}, flagged, drafts(ids))
	return sums, err
}

// MailsTo returns the mails whose address begins with a text in small letters.
// A range of the index targets_address: from the text itself to the text with the last character of Unicode behind it.
func (s *Store) MailsTo(ctx context.Context, begin string, limit int) ([]reviewcontrol.AddressedMail, error) {
	rows, err := postgres.All(ctx, s.pool, pgx.RowToStructByNameLax[mailRow], mailsTo, begin, begin+string(utf8.MaxRune), limit)
	mails := make([]reviewcontrol.AddressedMail, len(rows))
	for i, row := range rows {
		mails[i] = reviewcontrol.AddressedMail{Draft: row.DraftID, Target: row.target()}
	}
	return mails, explain(err)
}

// mailRow is a row of targetColumns with the draft.
type mailRow struct {
	targetRow
	DraftID reviewcontrol.ID
}

// drafts are ids as the driver takes them.
func drafts(ids []reviewcontrol.ID) []int64 {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = int64(id)
	}
	return numbers
}

// See keeps that a reviewer has a draft open, unless that was kept since; it forgets who was seen before old.
func (s *Store) See(ctx context.Context, id reviewcontrol.ID, by reviewcontrol.Reviewer, at, since, old time.Time) error {
	tag, err := s.pool.Exec(ctx, seePresence, int64(id), by.Email, text.Storable(by.Name), at, since)
	if err == nil && tag.RowsAffected() > 0 {
		_, err = s.pool.Exec(ctx, forgetPresence, old)
	}
	return explain(err)
}

// Present returns the others who were seen at the drafts after a moment, by name.
// Somebody without a name is there by their address.
func (s *Store) Present(ctx context.Context, ids []reviewcontrol.ID, but reviewcontrol.Reviewer, after time.Time) (
	map[reviewcontrol.ID][]string, error) {
	present := map[reviewcontrol.ID][]string{}
	_, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (id reviewcontrol.ID, err error) {
		var name, email string
		err = row.Scan(&id, &name, &email)
		if name == "" {
			name = email
		}
		present[id] = append(present[id], name)
		return id, err
	}, presentAt, drafts(ids), after, but.Email)
	return present, err
}
