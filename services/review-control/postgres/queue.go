package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
)

// Intend keeps that a draft is about to be queued.
// The row is a review in status draft, and the job CompleteQueue comes for it after reviewcontrol.QueueTakes, should the process die. An
// intent that is there already is returned when it is the same call's (a retry). Another call's is E_CONFLICT, and another input under
// the same key is write.Reused.
func (s *Store) Intend(ctx context.Context, in reviewcontrol.Intent,
	targets []reviewcontrol.Target) (kept reviewcontrol.Intent, err error) {
	caller, err := json.Marshal(in.Caller)
	if err != nil {
		return reviewcontrol.Intent{}, err
	}
	warnings := append([]tool.Warning{}, in.Warnings...)
	kept = in
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO review_control.reviews
				(draft_id, status, target_count, pending, queued_at, actor, note, created_by, hub_user, external_user,
				sender_name, sender_email, credential_id, tool, key, fingerprint, caller, input_hash, layout, warnings)
			VALUES ($1, 'draft', $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) ON CONFLICT DO NOTHING`,
			int64(in.DraftID), in.TargetCount, in.QueuedAt, in.Actor, in.Note, in.Maker.CreatedBy, in.Maker.HubUser, in.Maker.ExternalUser,
			in.Sender.Name, in.Sender.Email, in.Key.Principal, in.Key.Operation, in.Key.Key, in.Key.Fingerprint[:], string(caller), in.InputHash,
			body.Newest, warnings)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			// ON CONFLICT: the draft has a row, or the key has an intent for another draft (reviews_intent).
			kept, err = s.earlier(ctx, tx, in)
			return err
		}
		// Another call with this key may have ended while we waited for its row.
		if _, _, err := s.keys.StoredIn(ctx, tx, in.Key); err != nil {
			return err
		}
		columns := []string{"draft_id", "position", "external_id", "to_email", "to_name", "mailings"}
		// COPY, because a draft has thousands of targets.
		err = postgres.Copy(ctx, tx, pgx.Identifier{schema, "targets"}, columns,
			pgx.CopyFromSlice(len(targets), func(i int) ([]any, error) {
				t := targets[i]
				return []any{int64(in.DraftID), int32(t.Index), t.ExternalID, t.ToEmail, t.ToName, int32(t.Mailings)}, nil
			}))
		if err != nil {
			return err
		}
		return s.jobs.AddAt(ctx, tx, time.Now().Add(reviewcontrol.QueueTakes), CompleteQueue{in.DraftID})
	})
	if err != nil {
		return reviewcontrol.Intent{}, err
	}
	return kept, nil
}

// earlier is what kept an intent out: the same call's own, or another.
func (s *Store) earlier(ctx context.Context, tx pgx.Tx, in reviewcontrol.Intent) (reviewcontrol.Intent, error) {
	kept, found, err := intent(ctx, tx, in.DraftID)
	switch {
	case err != nil:
		return reviewcontrol.Intent{}, err
	case found && kept.Key == in.Key:
		return kept, nil
	case found && kept.Key.Same(in.Key):
		return reviewcontrol.Intent{}, write.Reused()
	case found:
		return reviewcontrol.Intent{}, queueing()
	}
	var draft int64
	err = tx.QueryRow(ctx, `SELECT draft_id FROM review_control.reviews
		WHERE credential_id = $1 AND tool = $2 AND key = $3 AND status = 'draft'`,
		in.Key.Principal, in.Key.Operation, in.Key.Key).Scan(&draft)
	if err == nil {
		return reviewcontrol.Intent{}, write.Reused() // for another draft, and that call has not ended
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return reviewcontrol.Intent{}, err
	}
	// What kept the intent out may have ended between our two statements.
	if _, _, err := s.keys.StoredIn(ctx, tx, in.Key); err != nil {
		return reviewcontrol.Intent{}, err
	}
	return reviewcontrol.Intent{}, queueing()
}

// queueing is E_CONFLICT for a draft that another call has.
func queueing() error {
	return fault.New(fault.Conflict, "Another call has just queued this draft for review, or is about to.").
		With(map[string]reviewcontrol.Status{"from": reviewcontrol.InReview, "to": reviewcontrol.InReview})
}

// intentRow is the row of a review whose draft is about to be queued.
// The key is three columns, as idempotency_keys has it; the caller is JSON, for the job that speaks for them later.
type intentRow struct {
	DraftID     reviewcontrol.ID
	TargetCount int
	QueuedAt    time.Time
	Actor, Note string
	reviewcontrol.Maker
	SenderName, SenderEmail string
	CredentialID, Tool, Key string
	Fingerprint, Caller     []byte
	InputHash               []byte
	Warnings                []tool.Warning
}

// intent is the row as the domain has it.
func (r intentRow) intent() (reviewcontrol.Intent, error) {
	in := reviewcontrol.Intent{DraftID: r.DraftID, TargetCount: r.TargetCount, QueuedAt: r.QueuedAt, Actor: r.Actor, Note: r.Note,
		Maker: r.Maker, Sender: mailer.Address{Name: r.SenderName, Email: r.SenderEmail},
		Key: write.Key{Principal: r.CredentialID, Operation: r.Tool, Key: r.Key}, InputHash: r.InputHash, Warnings: r.Warnings}
	copy(in.Key.Fingerprint[:], r.Fingerprint)
	return in, json.Unmarshal(r.Caller, &in.Caller)
}

// intent reads the intent of a draft; false without one.
func intent(ctx context.Context, q postgres.Querier, id reviewcontrol.ID) (in reviewcontrol.Intent, found bool, err error) {
	row, err := postgres.One(ctx, q, pgx.RowToStructByName[intentRow], `SELECT draft_id, target_count, queued_at, actor, note,
		created_by, hub_user, external_user,
				sender_name, sender_email, credential_id, tool, key, fingerprint, caller, input_hash, warnings
		FROM review_control.reviews WHERE draft_id = $1 AND status = 'draft'`, int64(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return reviewcontrol.Intent{}, false, nil
	}
	if err == nil {
		in, err = row.intent()
	}
	return in, err == nil, err
}

// Intent returns what is kept of a draft about to be queued, if it is.
func (s *Store) Intent(ctx context.Context, id reviewcontrol.ID) (reviewcontrol.Intent, bool, error) {
	in, found, err := intent(ctx, s.pool, id)
	return in, found, explain(err)
}

// sameIntent finds the intent of one call: another may have taken its place meanwhile.
const sameIntent = ` WHERE draft_id = $1 AND status = 'draft' AND credential_id = $2 AND tool = $3 AND key = $4`

// Queueing tells that a draft is about to be queued for review.
func (s *Store) Queueing(ctx context.Context, id reviewcontrol.ID) (bool, error) {
	_, found, err := s.Intent(ctx, id)
	return found, err
}

// Enqueue makes the intent a review, once for its key.
// Keys.Once keeps the answer with the key, in the transaction that changes the row; a replay gets that answer. E_CONFLICT when the
// intent is gone.
func (s *Store) Enqueue(ctx context.Context, in reviewcontrol.Intent, answer tool.Result, entry audit.Entry) (tool.Result, error) {
	answer, err := s.keys.Once(ctx, in.Key, func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		tag, err := tx.Exec(ctx, `UPDATE review_control.reviews SET status = 'in_review', synced = version, changed_at = now()`+sameIntent,
			int64(in.DraftID), in.Key.Principal, in.Key.Operation, in.Key.Key)
		if err != nil {
			return tool.Result{}, audit.Entry{}, err
		}
		if tag.RowsAffected() == 0 {
			return tool.Result{}, audit.Entry{}, queueing()
		}
		return answer, entry, s.jobs.Add(ctx, tx, InspectDraft{in.DraftID})
	})
	return answer, explain(err)
}

// Withdraw forgets an intent whose draft cannot be queued.
// An intent that is gone is no failure. Triggers of the tables refuse to delete anything else than an intent.
func (s *Store) Withdraw(ctx context.Context, in reviewcontrol.Intent) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `SELECT draft_id FROM review_control.reviews`+sameIntent+` FOR UPDATE`,
			int64(in.DraftID), in.Key.Principal, in.Key.Operation, in.Key.Key).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM review_control.targets WHERE draft_id = $1`, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM review_control.reviews WHERE draft_id = $1`, id)
		return err
	})
}
