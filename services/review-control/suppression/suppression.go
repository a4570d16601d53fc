// Package suppression is the list of addresses that no mail goes to, whoever approves it: with the entries that people and
// files bring, and those that recipients make by unsubscribing. It refuses to let anybody but a person change the list, and
// to know of reviews, and where anything is kept.
package suppression

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// ID is the identity of an import, and of a draft.
type ID = schema.ID

// Store keeps the list and the files on their way to it. Its errors are faults.
type Store interface {
	// Listed returns those of the addresses that are on the list, by Key.
	Listed(ctx context.Context, emails []string) (map[string]bool, error)
	// Suppressions returns entries in their order, those of a domain when byDomain is set;
	// prefix is what the address or the domain starts with.
	Suppressions(ctx context.Context, prefix string, byDomain bool, after string, limit int) ([]Entry, error)
	// Suppress adds an entry with its audit row. One that is there already is left as it is, and nothing is stored.
	Suppress(ctx context.Context, x Entry, entry audit.Entry) (added bool, err error)
	// Unsuppress returns E_NOT_FOUND for an address that is not on the list.
	Unsuppress(ctx context.Context, email, by, reason string, at time.Time, entry audit.Entry) error
	// TokenMail returns the mail whose link has a token; E_NOT_FOUND when none has.
	TokenMail(ctx context.Context, token []byte) (Mail, error)
	Imports
}

// Mail is one that was sent to an address: the target of a draft.
type Mail struct {
	DraftID ID
	Index   int
	Email   string
}

// Imports keeps files on their way to the list. E_NOT_FOUND for an import that there is not.
type Imports interface {
	AddImport(ctx context.Context, in Import, data []byte, entry audit.Entry) (Import, error)
	Import(ctx context.Context, id ID) (Import, error)
	Imports(ctx context.Context, limit int) ([]Import, error)
	ImportData(ctx context.Context, id ID) ([]byte, error)
	// ImportBatch stores a batch behind those done before, and nothing when another has been.
	ImportBatch(ctx context.Context, in Import, b Batch) (Import, error)
	// EndImport ends an import; its file is needed no more.
	EndImport(ctx context.Context, id ID, at time.Time) error
	BadLines(ctx context.Context, id ID, after, limit int) ([]BadLine, error)
}

// List is the suppression list.
type List struct {
	store Store
	clock func() time.Time
}

// New returns the list that a store keeps. It touches no database. now is the clock; nil means time.Now.
func New(store Store, now func() time.Time) *List {
	if now == nil {
		now = time.Now
	}
	return &List{store, now}
}

// now is the time as it is stored.
func (l *List) now() time.Time { return l.clock().UTC().Truncate(time.Millisecond) }

// entry is the audit row of what somebody asked for.
func (l *List) entry(ctx context.Context, name string, count int, detail map[string]any) audit.Entry {
	return audit.Entry{At: l.now(), Caller: caller.From(ctx), Tool: name, Outcome: audit.OK, Count: count, Detail: detail}
}

// MaxReason bounds a reason, in characters.
const MaxReason = 2000

// pageSize is a limit between 1 and 100; 0 is 50.
func pageSize(limit int) int { return min(cmp.Or(max(limit, 0), 50), 100) }

// Entry is an address that no mail goes to.
type Entry struct {
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

// Key is what an address is matched by.
func Key(email string) string { return strings.ToLower(email) }

// Domain is the domain of an address, in lower case.
func Domain(email string) string {
	return Key(email[strings.LastIndexByte(email, '@')+1:])
}

// address is an e-mail address as a form or a file has it.
func address(text string) (string, error) {
	text = strings.TrimSpace(text)
	if !schema.IsEmail(text) {
		return "", schema.Invalid("/email", "format", "must be one bare e-mail address such as name@example.com")
	}
	return text, nil
}

// Entries returns entries of the list in alphabetical order: those whose address begins
// with search, or whose domain begins with what follows an @ in search. after is next of the
// page before; next is empty on the last. limit is between 1 and 100; 0 is 50.
func (l *List) Entries(ctx context.Context, search, after string, limit int) (list []Entry, next string, err error) {
	limit = pageSize(limit)
	prefix, byDomain := strings.CutPrefix(Key(strings.TrimSpace(search)), "@")
	if !utf8.ValidString(prefix+after) || strings.ContainsFunc(prefix+after, schema.Unprintable) {
		return nil, "", nil // no address has those
	}
	list, err = l.store.Suppressions(ctx, prefix, byDomain, Key(after), limit+1)
	if len(list) > limit {
		list = list[:limit]
		next = Key(list[limit-1].Email)
	}
	return list, next, err
}

// Add adds an address to the list; added is false when it was there. E_SCOPE for
// anybody but a person, E_VALIDATION.
func (l *List) Add(ctx context.Context, by, email, reason string) (added bool, err error) {
	if err := caller.RequirePerson(ctx); err != nil {
		return false, err
	}
	if email, err = address(email); err != nil {
		return false, err
	}
	if reason, err = schema.Note("reason", reason, MaxReason, false); err != nil {
		return false, err
	}
	return l.store.Suppress(ctx, Entry{Email: email, Reason: reason, Source: FromConsole, By: by, At: l.now()},
		l.entry(ctx, "suppression.add", 1, map[string]any{"email": email, "reason": reason}))
}

// Remove removes an address from the list; a reason is needed. E_SCOPE for anybody but a
// person, E_VALIDATION, E_NOT_FOUND.
func (l *List) Remove(ctx context.Context, by, email, reason string) error {
	if err := caller.RequirePerson(ctx); err != nil {
		return err
	}
	email, err := address(email)
	if err != nil {
		return err
	}
	if reason, err = schema.Note("reason", reason, MaxReason, true); err != nil {
		return err
	}
	return l.store.Unsuppress(ctx, email, by, reason, l.now(),
		l.entry(ctx, "suppression.remove", 1, map[string]any{"email": email, "reason": reason}))
}

// Listed returns those of the addresses that are on the list, by Key.
func (l *List) Listed(ctx context.Context, emails []string) (map[string]bool, error) {
	return l.store.Listed(ctx, emails)
}

// tokenSize is the length of a token in bytes.
const tokenSize = 16

// ofToken is the mail whose link has a token.
func (l *List) ofToken(ctx context.Context, token string) (Mail, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != tokenSize {
		return Mail{}, MissingToken()
	}
	return l.store.TokenMail(ctx, raw)
}

// MissingToken is E_NOT_FOUND for a token that no mail has.
func MissingToken() error {
	return fault.New(fault.NotFound, "This link is not valid. Use the one in the mail, whole.")
}

// Unsubscription tells whose address the token of a mail's link is for, and whether that is
// on the list. E_NOT_FOUND for a token that no mail has.
func (l *List) Unsubscription(ctx context.Context, token string) (email string, done bool, err error) {
	m, err := l.ofToken(ctx, token)
	if err != nil {
		return "", false, err
	}
	listed, err := l.Listed(ctx, []string{m.Email})
	return m.Email, listed[Key(m.Email)], err
}

// Unsubscribe puts the address that a mail's link is for on the list; doing it
// again stores nothing. E_NOT_FOUND for a token that no mail has.
func (l *List) Unsubscribe(ctx context.Context, token string) (email string, err error) {
	m, err := l.ofToken(ctx, token)
	if err != nil {
		return "", err
	}
	_, err = l.store.Suppress(ctx, Entry{Email: m.Email, Reason: fmt.Sprintf("Unsubscribed from draft %s.", m.DraftID),
		Source: FromUnsubscribe, At: l.now()},
		l.entry(ctx, "review.unsubscribe", 1, map[string]any{"draft_id": m.DraftID.String(), "index": m.Index, "email": m.Email}))
	return m.Email, err
}

// MissingImport is E_NOT_FOUND for an id that names no import.
func MissingImport(id string) error { return fault.New(fault.NotFound, "There is no import %q.", id) }
