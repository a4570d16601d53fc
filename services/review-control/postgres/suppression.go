package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/services/review-control/suppression"
)

// Listed returns those of the addresses that are on the list, by suppression.Key.
func (s *Store) Listed(ctx context.Context, emails []string) (map[string]bool, error) {
	keys := make([]string, len(emails))
	for i, email := range emails {
		keys[i] = suppression.Key(email)
	}
	list, err := collect(ctx, s.pool, pgx.RowTo[string], `SELECT email_key FROM review_control.suppressions WHERE email_key = ANY ($1)`, keys)
	found := make(map[string]bool, len(list))
	for _, key := range list {
		found[key] = true
	}
	return found, err
}

// suppressionColumns reads entries as suppression.Entry has them.
const suppressionColumns = `SELECT email, reason, source, by, at FROM review_control.suppressions`

// The statements of the list. A pattern that is a parameter finds its index because each
// call is planned for itself.
const (
	listSuppressions         = suppressionColumns + ` WHERE email_key LIKE $1 AND email_key > $2 ORDER BY email_key LIMIT $3`
	listSuppressionsOfDomain = suppressionColumns + ` WHERE domain LIKE $1 AND (domain, email_key) > ($2, $3)
		ORDER BY domain, email_key LIMIT $4`
)

// Suppressions returns entries in their order.
func (s *Store) Suppressions(ctx context.Context, prefix string, byDomain bool, after string,
	limit int) ([]suppression.Entry, error) {
	pattern := postgres.LikePattern(prefix) + "%"
	sql, args := listSuppressions, []any{pgx.QueryExecModeExec, pattern, after, limit}
	if byDomain {
		sql, args = listSuppressionsOfDomain, []any{pgx.QueryExecModeExec, pattern, suppression.Domain(after), after, limit}
	}
	return collect(ctx, s.pool, pgx.RowToStructByName[suppression.Entry], sql, args...)
}

// addSuppressions adds those that are not on the list, the first of each address, and what is
// kept of that for ever.
const addSuppressions = `WITH given AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS g (email_key, domain, email, reason, place)
), added AS (
	INSERT INTO review_control.suppressions (email_key, domain, email, reason, source, by, at)
	SELECT DISTINCT ON (email_key) email_key, domain, email, reason, $5, $6, $7 FROM given ORDER BY email_key, place
	ON CONFLICT DO NOTHING RETURNING email_key, source, reason, by, at
)
INSERT INTO review_control.suppression_events (email_key, event, source, reason, by, import_id, at)
SELECT email_key, 'add', source, reason, by, $8, at FROM added`

// suppress adds entries to the list, and tells how many were new. An address is on it under its suppression.Key, in whatever
// case it was written.
// It returns how many rows the second INSERT has written: an event for each address that was added.
func suppress(ctx context.Context, q postgres.Querier, list []suppression.Entry, source, by string, at time.Time,
	importID *int64) (added int, err error) {
	n := len(list)
	keys, domains, emails, reasons := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, x := range list {
		keys[i], domains[i], emails[i], reasons[i] = suppression.Key(x.Email), suppression.Domain(x.Email), x.Email, x.Reason
	}
	tag, err := q.Exec(ctx, addSuppressions, keys, domains, emails, reasons, source, by, at, importID)
	return int(tag.RowsAffected()), err
}

// Suppress adds an address to the list. One that is there already is left as it is, and nothing is
// stored, no audit entry either: a link to unsubscribe may be followed without end, by anybody.
func (s *Store) Suppress(ctx context.Context, x suppression.Entry, entry audit.Entry) (added bool, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		n, err := suppress(ctx, tx, []suppression.Entry{x}, x.Source, x.By, x.At, nil)
		if added = n == 1; err != nil || !added {
			return err
		}
		return audit.Append(ctx, tx, entry)
	})
	return added && err == nil, err
}

// Unsuppress removes an address from the list.
// E_NOT_FOUND for an address that is not on it. The event stays for ever, so why it was there can still be read.
func (s *Store) Unsuppress(ctx context.Context, email, by, reason string, at time.Time, entry audit.Entry) error {
	return s.atomically(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `WITH removed AS (DELETE FROM review_control.suppressions WHERE email_key = $1 RETURNING email_key)
			INSERT INTO review_control.suppression_events (email_key, event, source, reason, by, at)
			SELECT email_key, 'remove', 'console', $2, $3, $4 FROM removed`, suppression.Key(email), reason, by, at)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "%s is not on the suppression list.", email)
		}
		return audit.Append(ctx, tx, entry)
	})
}

const importColumns = `id, name, reason, by, at, status, lines, done, added, known, bad, finished_at AS finished`

// AddImport keeps a file, with the job that reads it.
func (s *Store) AddImport(ctx context.Context, in suppression.Import, data []byte, entry audit.Entry) (suppression.Import, error) {
	err := s.atomically(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO review_control.imports (name, reason, by, at, status, lines, data)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`, in.Name, in.Reason, in.By, in.At, in.Status, in.Lines, data).Scan(&in.ID)
		if err != nil {
			return err
		}
		if detail, ok := entry.Detail.(map[string]any); ok {
			detail["import_id"] = in.ID.String()
		}
		if err := audit.Append(ctx, tx, entry); err != nil {
			return err
		}
		return s.jobs.Add(ctx, tx, ReadImport{in.ID})
	})
	return in, err
}

// Import returns an import without its file.
func (s *Store) Import(ctx context.Context, id suppression.ID) (suppression.Import, error) {
	in, err := oneImport(ctx, s.pool, id, "")
	return in, explain(err)
}

// oneImport reads an import, with a lock or without; E_NOT_FOUND without one.
func oneImport(ctx context.Context, q postgres.Querier, id suppression.ID, lock string) (suppression.Import, error) {
	in, err := postgres.One(ctx, q, pgx.RowToStructByName[suppression.Import],
		`SELECT `+importColumns+` FROM review_control.imports WHERE id = $1`+lock, int64(id))
	if errors.Is(err, pgx.ErrNoRows) {
		err = suppression.MissingImport(id.String())
	}
	return in, err
}

// Imports returns the newest imports.
func (s *Store) Imports(ctx context.Context, limit int) ([]suppression.Import, error) {
	return collect(ctx, s.pool, pgx.RowToStructByName[suppression.Import],
		`SELECT `+importColumns+` FROM review_control.imports ORDER BY id DESC LIMIT $1`, limit)
}

// ImportData returns the file of an import.
func (s *Store) ImportData(ctx context.Context, id suppression.ID) (data []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT data FROM review_control.imports WHERE id = $1`, int64(id)).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		err = suppression.MissingImport(id.String())
	}
	return data, explain(err)
}

// ImportBatch stores a batch behind those done before.
// in is the import as the caller has read it: one that another job has moved on is an error, because its lines would be counted twice.
// The first suppression.MaxBadLines bad lines are kept.
func (s *Store) ImportBatch(ctx context.Context, in suppression.Import, b suppression.Batch) (now suppression.Import, err error) {
	err = s.atomically(ctx, func(tx pgx.Tx) error {
		if now, err = oneImport(ctx, tx, in.ID, ` FOR NO KEY UPDATE`); err != nil {
			return err
		}
		if now.Done != in.Done || now.Finished != nil {
			return fmt.Errorf("import %s is read twice at once", in.ID)
		}
		added := 0
		if len(b.Found) > 0 {
			if added, err = suppress(ctx, tx, b.Found, suppression.FromImport, in.By, b.At, new(int64(in.ID))); err != nil {
				return err
			}
		}
		if kept := b.Bad[:min(len(b.Bad), max(suppression.MaxBadLines-now.Bad, 0))]; len(kept) > 0 {
			err := postgres.Copy(ctx, tx, pgx.Identifier{schema, "import_problems"}, []string{"import_id", "line", "text", "reason"},
				pgx.CopyFromSlice(len(kept), func(i int) ([]any, error) {
					return []any{int64(in.ID), int32(kept[i].Line), kept[i].Text, kept[i].Reason}, nil
				}))
			if err != nil {
				return err
			}
		}
		now.Status = suppression.ImportRunning
		now.Done, now.Added, now.Known, now.Bad = now.Done+b.Entries, now.Added+added, now.Known+len(b.Found)-added, now.Bad+len(b.Bad)
		_, err = tx.Exec(ctx, `UPDATE review_control.imports SET status = $2, done = $3, added = $4, known = $5, bad = $6 WHERE id = $1`,
			int64(in.ID), now.Status, now.Done, now.Added, now.Known, now.Bad)
		return err
	})
	return now, err
}

// EndImport ends an import; its file is needed no more.
func (s *Store) EndImport(ctx context.Context, id suppression.ID, at time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE review_control.imports SET status = $2, finished_at = $3, data = ''
		WHERE id = $1 AND finished_at IS NULL`, int64(id), suppression.ImportDone, at)
	return explain(err)
}

// BadLines returns lines of an import that are no addresses.
func (s *Store) BadLines(ctx context.Context, id suppression.ID, after, limit int) ([]suppression.BadLine, error) {
	return collect(ctx, s.pool, pgx.RowToStructByName[suppression.BadLine],
		`SELECT line, text, reason FROM review_control.import_problems WHERE import_id = $1 AND line > $2 ORDER BY line LIMIT $3`,
		int64(id), after, limit)
}

// TokenMail returns the mail whose link to unsubscribe has a token.
// The token is looked up by the unique index targets_token; E_NOT_FOUND for one that no mail has.
func (s *Store) TokenMail(ctx context.Context, token []byte) (suppression.Mail, error) {
	m, err := postgres.One(ctx, s.pool, pgx.RowToStructByName[suppression.Mail], `SELECT draft_id, position AS index, to_email AS email
		FROM review_control.targets WHERE unsubscribe_token = $1`, token)
	if errors.Is(err, pgx.ErrNoRows) {
		err = suppression.MissingToken()
	}
	return m, explain(err)
}
