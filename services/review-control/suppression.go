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
