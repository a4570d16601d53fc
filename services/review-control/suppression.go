package reviewcontrol

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/review-control/csv"
)

// Suppression is an address that no mail goes to.
type Suppression struct {
	// Email is the address as it was given; it matches without regard to case.
	Email, Reason, Source string
	// By is who added it: a console user's address, empty for an unsubscription.
	By string
	At time.Time
}

// The sources of a suppression.
const (
	FromConsole     = "console"
	FromImport      = "import"
	FromUnsubscribe = "unsubscribe"
)

// EmailKey is what an address is matched by.
func EmailKey(email string) string { return strings.ToLower(email) }

// EmailDomain is the domain of an address, in lower case.
func EmailDomain(email string) string {
	return EmailKey(email[strings.LastIndexByte(email, '@')+1:])
}

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
	return s.c.Store.Unsuppress(ctx, email, by.Email, reason, s.now(),
		s.entry(ctx, "suppression.remove", 1, map[string]any{"email": email, "reason": reason}))
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
	listed, err := s.c.Store.Listed(ctx, []string{t.ToEmail})
	return t.ToEmail, listed[EmailKey(t.ToEmail)], err
}

// Unsubscribe puts the address that a mail's link is for on the suppression list; doing it
// again stores nothing. E_NOT_FOUND for a token that no mail has.
func (s *Service) Unsubscribe(ctx context.Context, token string) (email string, err error) {
	id, t, err := s.ofToken(ctx, token)
	if err != nil {
		return "", err
	}
	reason := fmt.Sprintf("Unsubscribed from draft %s.", id)
	_, err = s.c.Store.Suppress(ctx, Suppression{Email: t.ToEmail, Reason: reason, Source: FromUnsubscribe, At: s.now()},
		s.entry(ctx, "review.unsubscribe", 1, map[string]any{"draft_id": id.String(), "index": t.Index, "email": t.ToEmail}))
	return t.ToEmail, err
}

// Import is a file of addresses on its way to the suppression list.
type Import struct {
	ID               ID
	Name, Reason, By string
	At               time.Time
	// Status is one of the states of an import.
	Status string
	// Lines is the number of entries in the file, Done how many were read; these were Added
	// to the list, Known on it before, or Bad.
	Lines, Done, Added, Known, Bad int
	Finished                       *time.Time
}

// The states of an import.
const (
	ImportWaiting = "waiting"
	ImportRunning = "running"
	ImportDone    = "done"
)

const (
	// MaxImport bounds a file, in bytes.
	MaxImport = 16 << 20
	// MaxBadLines is how many of an import's bad lines are kept; all are counted.
	MaxBadLines = 1000
	// maxBadText bounds what is kept of a bad line, in characters.
	maxBadText = 200
	// importBatch is how many entries are stored at once.
	importBatch = 1000
)

// BadLine is an entry of a file that is no address.
type BadLine struct {
	Line         int
	Text, Reason string
}

// badLine is a row of a file as an entry that is no address.
func badLine(row csv.Row, reason string) BadLine {
	return BadLine{Line: row.Line, Text: text.Head(text.Printable(row.Text), maxBadText), Reason: reason}
}

// maxFileName bounds the name of an imported file, in characters.
const maxFileName = 200

// StartImport keeps a CSV file of addresses, at most 16 MiB, for the import that follows. A
// column "email" has the addresses, without one the first column; a column "reason" goes
// before defaultReason. E_SCOPE for anybody but a person, E_VALIDATION.
func (s *Service) StartImport(ctx context.Context, by Reviewer, name, defaultReason string, data []byte) (Import, error) {
	if err := person(ctx); err != nil {
		return Import{}, err
	}
	defaultReason, err := prose("default_reason", defaultReason, false)
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
	name = text.Shown(name, maxFileName)
	in := Import{Name: name, Reason: defaultReason, By: by.Email, At: s.now(), Status: ImportWaiting, Lines: lines}
	return s.c.Store.AddImport(ctx, in, data,
		s.entry(ctx, "suppression.import", lines, map[string]any{"name": name, "reason": defaultReason, "bytes": len(data)}))
}

// Import returns an import.
func (s *Service) Import(ctx context.Context, id ID) (Import, error) {
	return s.c.Store.Import(ctx, id)
}

// Imports returns the newest imports. limit is between 1 and 100; 0 is 50.
func (s *Service) Imports(ctx context.Context, limit int) ([]Import, error) {
	return s.c.Store.Imports(ctx, pageSize(limit))
}

// BadLines returns lines of an import that are no addresses, from behind a line (0 for the first page).
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
func (b *Batch) add(row csv.Row, c columns, in Import) {
	b.Entries++
	email := row.At(c.email)
	switch {
	case row.Problem != "":
		b.Bad = append(b.Bad, badLine(row, row.Problem))
	case email == "":
		b.Bad = append(b.Bad, badLine(row, "there is no address"))
	case !schema.IsEmail(email):
		b.Bad = append(b.Bad, badLine(row, "this is no e-mail address"))
	default:
		reason := text.Shown(row.At(c.reason), MaxNote)
		if reason == "" {
			reason = in.Reason
		}
		b.Found = append(b.Found, Suppression{Email: email, Reason: reason, Source: FromImport, By: in.By})
	}
}

// rows are the entries of a file behind its header.
func rows(data []byte) iter.Seq2[csv.Row, columns] {
	return func(yield func(csv.Row, columns) bool) {
		c, first := columns{0, -1}, true
		for row := range csv.Rows(data) {
			if first {
				first = false
				var isHeader bool
				if c, isHeader = header(row.Fields); isHeader {
					continue
				}
			}
			if !yield(row, c) {
				return
			}
		}
	}
}

// columns are where a file has what is imported; reason is -1 without one.
type columns struct{ email, reason int }

// header tells whether the first row of a file names its columns, and which they are.
func header(fields []string) (c columns, isHeader bool) {
	c = columns{0, -1}
	for i, f := range fields {
		switch strings.ToLower(strings.TrimSpace(f)) {
		case "email", "e-mail":
			if !isHeader {
				c.email, isHeader = i, true
			}
		case "reason":
			c.reason = i
		}
	}
	if !isHeader {
		c.reason = -1
	}
	return c, isHeader
}
