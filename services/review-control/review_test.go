package reviewcontrol

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/mailer"
)

// TestNext holds every status, trigger and condition to CONTRACT.md 10.1, and every other to
// E_CONFLICT.
func TestNext(t *testing.T) {
	t.Parallel()
	counts := map[string]Counts{
		"undecided":     {Pending: 1, Approved: 1},
		"none approved": {Rejected: 2},
		"waiting":       {Approved: 2, Sent: 1},
		"all out":       {Approved: 4, Sent: 1, Failed: 1, Suppressed: 1, Unknown: 1},
	}
	want := map[string]Status{}
	for name := range counts {
		for _, attempted := range []bool{false, true} {
			at := func(s Status, tr Trigger) string { return fmt.Sprint(s, tr, name, attempted) }
			want[at(Drafted, Queue)] = InReview
			want[at(Drafted, Cancel)], want[at(InReview, Cancel)] = Cancelled, Cancelled
			want[at(InReview, Decide)] = map[string]Status{"undecided": InReview, "none approved": Rejected, "waiting": Approved,
				"all out": Approved}[name]
			want[at(Approved, Deliver)] = map[string]Status{"undecided": Approved, "none approved": Sent, "waiting": Approved, "all out": Sent}[name]
			if !attempted {
				want[at(Approved, Cancel)] = Cancelled
			}
		}
	}
	for _, from := range Statuses() {
		for _, tr := range []Trigger{Queue, Decide, Deliver, Cancel} {
			for name, c := range counts {
				for _, attempted := range []bool{false, true} {
					got, err := Next(from, tr, c, attempted)
					to, allowed := want[fmt.Sprint(from, tr, name, attempted)]
					if allowed != (err == nil) || got != to || err != nil && !fault.Is(err, fault.Conflict) {
						t.Errorf("%s %s (%s, attempted %v): %q, %v", from, tr, name, attempted, got, err)
					}
					if err != nil {
						if d := fault.From(err).Details.(map[string]Status); d["from"] != from || d["to"] == "" {
							t.Errorf("%v", d)
						}
					}
				}
			}
		}
	}
}

// TestRecord: what a hand-over's end means depends on what the mail has become since it began.
func TestRecord(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pace := mailer.Pace{Retry: 30 * time.Second, GiveUp: time.Hour}
	ended := func(v mailer.Verdict) *mailer.SendError {
		return &mailer.SendError{Verdict: v, Reason: "the server's words"}
	}
	for name, c := range map[string]struct {
		status  Status
		was     DeliveryState
		attempt int
		reached bool
		sent    *mailer.SendError
		// tried is how long ago the first try was.
		tried time.Duration
		want  DeliveryState
		wait  time.Duration
	}{
		"taken":                        {Approved, Sending, 2, true, nil, time.Minute, Delivered, 0},
		"refused":                      {Approved, Sending, 2, true, ended(mailer.Never), time.Minute, Failed, 0},
		"in doubt":                     {Approved, Sending, 2, true, ended(mailer.Perhaps), time.Minute, Unknown, 0},
		"put off":                      {Approved, Sending, 2, true, ended(mailer.Later), time.Minute, Queued, 30 * time.Second},
		"put off once more":            {Approved, Sending, 2, true, ended(mailer.Later), time.Hour - 1, Queued, 30 * time.Second},
		"given up":                     {Approved, Sending, 2, true, ended(mailer.Later), time.Hour, Failed, 0},
		"no connection":                {Approved, Queued, 2, false, ended(mailer.Later), time.Minute, Queued, 30 * time.Second},
		"not what was approved":        {Approved, Queued, 2, false, ended(mailer.Never), time.Minute, Failed, 0},
		"taken, as is known late":      {Approved, Unknown, 2, true, nil, time.Minute, Delivered, 0},
		"refused, as is known late":    {Approved, Unknown, 2, true, ended(mailer.Never), time.Minute, Failed, 0},
		"sent, then taken late":        {Sent, Unknown, 2, true, nil, time.Minute, Delivered, 0},
		"in doubt, and late":           {Approved, Unknown, 2, true, ended(mailer.Perhaps), time.Minute, Unknown, -1},
		"put off, and late":            {Approved, Unknown, 2, true, ended(mailer.Later), time.Minute, Unknown, -1},
		"the attempt before":           {Approved, Sending, 1, true, ended(mailer.Later), time.Minute, Sending, -1},
		"the attempt before, taken":    {Approved, Sending, 1, true, nil, time.Minute, Sending, -1},
		"known already":                {Approved, Delivered, 2, true, ended(mailer.Never), time.Minute, Delivered, -1},
		"put off already":              {Approved, Queued, 2, true, ended(mailer.Later), time.Minute, Queued, -1},
		"cancelled before it began":    {Cancelled, Queued, 2, false, ended(mailer.Never), time.Minute, Queued, -1},
		"no connection, begun by then": {Approved, Sending, 2, false, ended(mailer.Later), time.Minute, Sending, -1},
	} {
		at, since := now.Add(-time.Second), now.Add(-c.tried)
		r, target := Review{Status: c.status, Counts: Counts{Approved: 2, Sent: 1}},
			Target{Delivery: Delivery{State: c.was, Attempts: 2, At: &at, Since: &since}}
		if c.status == Approved {
			r.Counts.Sent = 0
		}
		if counter := r.Counts.outcome(c.was); counter != nil {
			*counter++
		}
		review, before := r, target
		tx := Transaction{Review: r}
		wait, err := tx.record(&target, c.attempt, c.reached, c.sent, now, pace)
		r = tx.Review
		if got := target.Delivery; err != nil || got.State != c.want || wait != max(c.wait, 0) || r.Status != c.status {
			t.Errorf("%s: %+v, %s, %+v, %v", name, got, wait, r, err)
		}
		// What was counted before moves, and is not counted twice.
		want := review.Counts
		if counter := want.outcome(c.was); counter != nil {
			*counter--
		}
		if counter := want.outcome(c.want); counter != nil {
			*counter++
		}
		if r.Counts != want {
			t.Errorf("%s is counted as %+v", name, r.Counts)
		}
		if changed := target.Delivery != before.Delivery; changed != (c.wait >= 0) || changed && !target.Delivery.At.Equal(now) {
			t.Errorf("%s: %+v", name, target.Delivery)
		} else if changed != (len(tx.Steps) > 0) || changed && tx.Steps[0].Target != &target {
			t.Errorf("%s: %+v happened", name, tx.Steps)
		}
	}
}

// TestSaidNo: what may pass is not taken for a no, which would end an intent.
func TestSaidNo(t *testing.T) {
	t.Parallel()
	for _, no := range []fault.Code{fault.Conflict, fault.NotFound, fault.Idempotency, fault.Scope, fault.Validation} {
		if !IsRefusal(fault.New(no, "no")) {
			t.Errorf("%s is a no", no)
		}
	}
	for _, err := range []error{nil, errors.New("broken"), fault.New(fault.DB, "away"), fault.New(fault.AuthInvalid, "key"),
		fault.New(fault.Conflict, "in progress").After(time.Second)} {
		if IsRefusal(err) {
			t.Errorf("%v is a no", err)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	p := mailer.Pace{Retry: 30 * time.Second}
	for delays, want := range map[int][2]time.Duration{1: {30 * time.Second, 30 * time.Second}, 2: {time.Minute, time.Minute},
		5: {8 * time.Minute, 5 * time.Minute}, 8: {time.Hour, 5 * time.Minute}, 1 << 30: {time.Hour, 5 * time.Minute}} {
		if reached, away := p.Wait(delays, true), p.Wait(delays, false); reached != want[0] || away != want[1] {
			t.Errorf("%d: %s, %s, want %v", delays, reached, away, want)
		}
	}
	if got := (mailer.Pace{Retry: 2 * time.Hour}).Wait(1, true); got != time.Hour {
		t.Error(got)
	}
}

func TestMaker(t *testing.T) {
	t.Parallel()
	ada := Reviewer{ID: "usr_1", Email: "ada@hub.example", Name: "Ada"}
	for _, m := range []Maker{{CreatedBy: "ADA@hub.example"}, {CreatedBy: " ada "}, {CreatedBy: "Somebody <ADA@hub.example>"},
		{HubUser: "usr_1"}, {ExternalUser: "ada@hub.example"}} {
		if !m.Is(ada) {
			t.Errorf("%+v is not Ada", m)
		}
	}
	for _, m := range []Maker{{}, {CreatedBy: "Adam"}, {CreatedBy: "ada@hub.example <bob@hub.example>"}, {HubUser: "usr_2"},
		{CreatedBy: " "}} {
		if m.Is(ada) || m.Is(Reviewer{}) {
			t.Errorf("%+v is Ada", m)
		}
	}
}
