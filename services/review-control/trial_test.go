package reviewcontrol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

// TestSendTest: who asks for a mail gets it, and nothing else happens.
func TestSendTest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.queued(2)
	before, target := h.review(id), h.target(id, 1)
	ctx, hash := signedIn(t.Context(), ada), h.shown(id, 1).Hash
	test := func(by reviewcontrol.Reviewer) error { return h.service.SendTest(ctx, by, id, 1, hash) }
	if err := test(ada); err != nil {
		t.Fatal(err)
	}
	got := h.sender.mails()
	if len(got) != 1 || got[0].To != (mailer.Address{Name: ada.Name, Email: ada.Email}) || !strings.HasPrefix(got[0].Subject, "[Test] ") ||
		got[0].Unsubscribe != "" || got[0].Text == "" {
		t.Fatalf("%+v", got)
	}
	if after := h.review(id); after.Counts != before.Counts || after.Version != before.Version || h.target(id, 1).Delivery != target.Delivery {
		t.Errorf("%+v is %+v", before, after)
	}
	rows := `SELECT count(*) FROM audit.calls WHERE tool = 'review.test' AND detail @> '{"index": 1}' AND external_user_id = '` + ada.ID + `'`
	if n := one[int](h, rows); n != 1 {
		t.Errorf("%d rows in the audit log", n)
	}
	wants(t, h.service.SendTest(ctx, ada, id, 1, "x"), fault.Conflict)
	wants(t, h.service.SendTest(ctx, ada, id, 7, hash), fault.NotFound)
	wants(t, test(reviewcontrol.Reviewer{ID: "usr_9"}), fault.Validation)
	h.sender.to(ada.Email, answer{say: sendError(mailer.Never)})
	var failed *mailer.SendError
	if err := test(ada); !errors.As(err, &failed) || failed.Verdict != mailer.Never {
		t.Errorf("%v", err)
	}
	for range 3 {
		if err := test(ada); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, test(ada), fault.RateLimit)
	h.clock.Advance(time.Minute)
	if err := test(ada); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	wants(t, test(ada), fault.RateLimit)
	if n := one[int](h, rows); n != 6 || len(h.sender.mails()) != 6 {
		t.Errorf("%d rows in the audit log, %d mails", n, len(h.sender.mails()))
	}
	h.exec(`INSERT INTO review_control.suppressions VALUES ('ada@hub.example', 'hub.example', 'ada@hub.example', '', 'console', 'x', now())`)
	wants(t, test(ada), fault.Conflict)
}
