package reviewcontrol

import (
	"context"
	"crypto/rand"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/suppression"
)

const (
	// testEvery is how often a person may send themself a test, and testsAtOnce how many of these may come at once.
	testEvery   = time.Minute
	testsAtOnce = 5
	// testFor bounds a test from the connection to the server's answer: somebody waits for it.
	testFor = 20 * time.Second
	// testSubject stands before the subject of a test.
	testSubject = "[Test] "
)

// TestStore bounds and records the tests that people send themselves.
type TestStore interface {
	// TakeTest counts a test of a person's and keeps its audit row, in one transaction. Where they have sent as many as they may, it
	// keeps nothing and tells when the next one may be sent.
	TakeTest(ctx context.Context, user string, now time.Time, every time.Duration, atOnce int, entry audit.Entry) (again time.Time, err error)
}

// SendTest hands a target's mail over to who asks for it, and to nobody else: as it would leave, but for its recipient, a mark in its
// subject and the headers to unsubscribe. It is no delivery: nothing of the target changes, and no count has it. It is E_CONFLICT for
// other content than that of the hash and for an address that nobody may send to, E_VALIDATION for a user without an address,
// E_RATE_LIMIT for too many of them, and a *mailer.SendError where the mail server did not take it.
func (s *Service) SendTest(ctx context.Context, by Reviewer, id ID, index int, hash string) error {
	if by.Email == "" {
		return fault.New(fault.Validation, "Your user has no e-mail address, so this mail cannot be sent to you.")
	}
	t, err := s.Target(ctx, id, index)
	if err != nil {
		return err
	}
	if t.Rendering.Hash() != hash {
		return changed(index)
	}
	listed, err := s.c.Suppressions.Listed(ctx, []string{by.Email})
	if err != nil {
		return err
	}
	if listed[suppression.Key(by.Email)] {
		return fault.New(fault.Conflict, "Your address is on the suppression list, so nothing is sent to it.")
	}
	m := mailer.Message{Content: t.Rendering.Content, Date: s.now()}
	m.To, m.Subject = mailer.Address{Name: by.Name, Email: by.Email}, testSubject+m.Subject
	m.ID = rand.Text() + "@" + suppression.Domain(m.From.Email)
	sending, cancel := context.WithTimeout(ctx, testFor)
	defer cancel()
	return s.c.Sender.Send(sending, m, func(ctx context.Context) error {
		now := s.now()
		again, err := s.c.Store.TakeTest(ctx, by.ID, now, testEvery, testsAtOnce,
			s.entry(ctx, "review.test", 1, map[string]any{"draft_id": id.String(), "index": index, "hash": hash}))
		if err == nil && again.After(now) {
			wait := again.Sub(now).Round(time.Second)
			return fault.New(fault.RateLimit, "You have sent yourself many mails. Try again in %s.", wait).After(wait)
		}
		return err
	})
}
