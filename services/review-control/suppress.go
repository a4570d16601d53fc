package reviewcontrol

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// address is an e-mail address as a form or a file has it.
func address(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !schema.IsEmail(text) {
		return "", schema.Invalid("/email", "format", "must be one bare e-mail address such as name@example.com")
	}
	return text, nil
}

// Suppressions returns entries of the list in alphabetical order: those whose address begins
// with search, or whose domain begins with what follows an @ in search. after is next of the
// page before; next is empty on the last. limit is between 1 and 100; 0 is 50.
func (s *Service) Suppressions(ctx context.Context, search, after string, limit int) (list []Suppression, next string, err error) {
	limit = pageSize(limit)
	prefix, byDomain := strings.CutPrefix(EmailKey(strings.TrimSpace(search)), "@")
	if !utf8.ValidString(prefix+after) || strings.ContainsFunc(prefix+after, schema.Unprintable) {
		return nil, "", nil // no address has those
	}
	list, err = s.c.Store.Suppressions(ctx, prefix, byDomain, EmailKey(after), limit+1)
	if len(list) > limit {
		list = list[:limit]
		next = EmailKey(list[limit-1].Email)
	}
	return list, next, err
}

// Suppress adds an address to the list; added is false when it was there. E_SCOPE for
// anybody but a person, E_VALIDATION.
func (s *Service) Suppress(ctx context.Context, by Reviewer, email, reason string) (added bool, err error) {
	if err := person(ctx); err != nil {
		return false, err
	}
	if email, err = address(email); err != nil {
		return false, err
	}
	if reason, err = prose("reason", reason, false); err != nil {
		return false, err
	}
	return s.c.Store.Suppress(ctx, Suppression{Email: email, Reason: reason, Source: FromConsole, By: by.Email, At: s.now()},
		s.entry(ctx, "suppression.add", 1, map[string]any{"email": email, "reason": reason}))
}

// Unsuppress removes an address from the list; a reason is needed. E_SCOPE for anybody but a
// person, E_VALIDATION, E_NOT_FOUND.
func (s *Service) Unsuppress(ctx context.Context, by Reviewer, email, reason string) error {
	if err := person(ctx); err != nil {
		return err
	}
	email, err := address(email)
	if err != nil {
		return err
	}
	if reason, err = prose("reason", reason, true); err != nil {
		return err
	}
	return s.c.Store.Unsuppress(ctx, email, by.Email, reason, s.now(), s.entry(ctx, "suppression.remove", 1, map[string]any{"email": email, "reason": reason}))
}

// maxFileName bounds the name of an imported file, in characters.
const maxFileName = 200

// StartImport keeps a CSV file of addresses, at most 16 MiB, for the import that follows. A
// column "email" has the addresses, without one the first column; a column "reason" goes
// before the reason given. E_SCOPE for anybody but a person, E_VALIDATION.
func (s *Service) StartImport(ctx context.Context, by Reviewer, name, reason string, data []byte) (Import, error) {
	if err := person(ctx); err != nil {
		return Import{}, err
	}
	reason, err := prose("reason", reason, false)
	if err != nil {
		return Import{}, err
	}
	refuse := func(rule, message string) (Import, error) {
		return Import{}, schema.Invalid("/file", rule, "%s", message)
	}
	switch {
	case len(data) > MaxImport:
		return refuse("maxBytes", fmt.Sprintf("must have at most %d bytes", MaxImport))
	case strings.IndexByte(string(data[:min(len(data), 4096)]), 0) >= 0:
		return refuse("csv", "must be a CSV file in UTF-8; this looks like another kind of file")
	}
	lines := 0
	for range rows(data) {
		lines++
	}
	if lines == 0 {
		return refuse("csv", "must have at least one address")
	}
	name = shorten(name, maxFileName)
	return s.c.Store.AddImport(ctx, Import{Name: name, Reason: reason, By: by.Email, At: s.now(), Status: ImportWaiting, Lines: lines}, data,
		s.entry(ctx, "suppression.import", lines, map[string]any{"name": name, "reason": reason, "bytes": len(data)}))
}

// Import returns an import.
func (s *Service) Import(ctx context.Context, id ID) (Import, error) {
	return s.c.Store.Import(ctx, id)
}

// Imports returns the newest imports. limit is between 1 and 100; 0 is 50.
func (s *Service) Imports(ctx context.Context, limit int) ([]Import, error) {
	return s.c.Store.Imports(ctx, pageSize(limit))
}

// BadLines returns lines of an import that are no addresses, from behind a line (0 begins).
// limit is between 1 and 100; 0 is 50.
func (s *Service) BadLines(ctx context.Context, id ID, after, limit int) ([]BadLine, error) {
	return s.c.Store.BadLines(ctx, id, min(max(after, 0), MaxImport), pageSize(limit))
}

// Batch is a part of an import.
type Batch struct {
	// Entries is the number of entries that it is made of.
	Entries int
	Found   []Suppression
	Bad     []BadLine
	At      time.Time
}

// RunImport is the job of an import. Each batch commits with how far the import is, so it
// may break off anywhere and go on there.
func (s *Service) RunImport(ctx context.Context, id ID) error {
	in, err := s.c.Store.Import(ctx, id)
	if err != nil || in.Status == ImportDone {
		return err
	}
	data, err := s.c.Store.ImportData(ctx, id)
	if err != nil {
		return err
	}
	at := 0
	b := Batch{}
	commit := func() (err error) {
		b.At = s.now()
		in, err = s.c.Store.ImportBatch(ctx, in, b)
		b = Batch{}
		return err
	}
	for row, columns := range rows(data) {
		if at++; at <= in.Done {
			continue
		}
		b.add(row, columns, in)
		if b.Entries == importBatch {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	if b.Entries > 0 {
		if err := commit(); err != nil {
			return err
		}
	}
	return s.c.Store.EndImport(ctx, id, s.now())
}

// add reads a row of an import.
func (b *Batch) add(row entry, c columns, in Import) {
	b.Entries++
	email := row.at(c.email)
	switch {
	case row.problem != "":
		b.Bad = append(b.Bad, row.bad(row.problem))
	case email == "":
		b.Bad = append(b.Bad, row.bad("there is no address"))
	case !schema.IsEmail(email):
		b.Bad = append(b.Bad, row.bad("this is no e-mail address"))
	default:
		reason := shorten(row.at(c.reason), maxNote)
		if reason == "" {
			reason = in.Reason
		}
		b.Found = append(b.Found, Suppression{Email: email, Reason: reason, Source: FromImport, By: in.By})
	}
}

// rows are the entries of a file behind its header.
func rows(data []byte) func(yield func(entry, columns) bool) {
	return func(yield func(entry, columns) bool) {
		c, first := columns{0, -1}, true
		for e := range entries(data) {
			if first {
				first = false
				var isHeader bool
				if c, isHeader = header(e.fields); isHeader {
					continue
				}
			}
			if !yield(e, c) {
				return
			}
		}
	}
}

// tokenSize is the length of a token in bytes.
const tokenSize = 16

func (s *Service) ofToken(ctx context.Context, token string) (ID, Target, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != tokenSize {
		return 0, Target{}, fault.New(fault.NotFound, "This link is not valid. Use the one in the mail, whole.")
	}
	return s.c.Store.TokenTarget(ctx, raw)
}

// Unsubscription tells whose address the token of a mail's link is for, and whether that is
// on the suppression list. E_NOT_FOUND for a token that no mail has.
func (s *Service) Unsubscription(ctx context.Context, token string) (email string, done bool, err error) {
	_, t, err := s.ofToken(ctx, token)
	if err != nil {
		return "", false, err
	}
	listed, err := s.c.Store.Suppressed(ctx, []string{t.ToEmail})
	return t.ToEmail, listed[EmailKey(t.ToEmail)], err
}

// Unsubscribe puts the address that a mail's link is for on the suppression list; doing it
// again stores nothing. E_NOT_FOUND for a token that no mail has.
func (s *Service) Unsubscribe(ctx context.Context, token string) (email string, err error) {
	id, t, err := s.ofToken(ctx, token)
	if err != nil {
		return "", err
	}
	_, err = s.c.Store.Suppress(ctx, Suppression{Email: t.ToEmail, Reason: fmt.Sprintf("Unsubscribed from draft %s.", id), Source: FromUnsubscribe, At: s.now()},
		s.entry(ctx, "review.unsubscribe", 1, map[string]any{"draft_id": id.String(), "index": t.Index, "email": t.ToEmail}))
	return t.ToEmail, err
}
