package reviewcontrol

import (
	"context"
	"fmt"
	"time"
)

// DeliveryState is where an approved target's mail is.
type DeliveryState string

// The states of a delivery. NotDue is that of a target without approval, or whose review goes on.
const (
	NotDue DeliveryState = ""
	// Queued mails wait for their turn, or for another try.
	Queued DeliveryState = "queued"
	// Sending mails are being handed over: the record is there before the hand-over.
	Sending DeliveryState = "sending"
	// Delivered mails were taken by the SMTP server.
	Delivered DeliveryState = "sent"
	// Failed mails were refused for good, or given up.
	Failed DeliveryState = "failed"
	// Changed mails were not sent: their content is not the one that was approved.
	Changed DeliveryState = "changed"
	// Suppressed mails were not sent: the recipient is on the suppression list.
	Suppressed DeliveryState = "suppressed"
	// Unknown mails may have been taken: Hub or the connection broke in the middle.
	Unknown DeliveryState = "unknown"
)

// Final tells that nothing more will happen to the mail.
func (p DeliveryState) Final() bool {
	return p == Delivered || p == Failed || p == Changed || p == Suppressed || p == Unknown
}

// Delivery is what became of an approved target's mail.
type Delivery struct {
	State DeliveryState
	// Attempts counts the hand-overs that were begun.
	Attempts int
	At       *time.Time
	// Problem is what the SMTP server, or Hub, said last; for people.
	Problem string
	// MessageID is that of the mail's header.
	MessageID string
	// Delays counts how often the mail was put off, since the first try at Since.
	Delays int
	Since  *time.Time
}

// begin takes an approved mail for its hand-over, and tells whether that may begin. If not,
// wait tells when to look again because somebody else has the mail in hand; 0 is never. A
// mail that was taken longer than lease ago, with no outcome since, is Unknown.
func (r *Review) begin(t *Target, suppressed bool, now time.Time, lease time.Duration) (begun bool, wait time.Duration, err error) {
	d := &t.Delivery
	switch {
	case r.Status != Approved || d.State != Queued && d.State != Sending:
		return false, 0, nil
	case d.State == Sending:
		if left := lease - now.Sub(*d.At); left > 0 {
			return false, left, nil
		}
		_, err = r.abandon(t, now)
		return false, 0, err
	case suppressed:
		return false, 0, r.settle(t, Suppressed, now, "The recipient is on the suppression list.")
	}
	r.Attempted = true
	d.State, d.At, d.Problem = Sending, &now, ""
	d.Attempts++
	if d.Since == nil {
		d.Since = &now
	}
	return true, 0, nil
}

// abandon makes a mail that was being handed over Unknown.
func (r *Review) abandon(t *Target, now time.Time) (unknown bool, err error) {
	if t.Delivery.State != Sending {
		return false, nil
	}
	return true, r.settle(t, Unknown, now, "Hub stopped while the mail was handed over; it may have arrived, and is not sent again.")
}

// refuse ends a mail that waits, since what would be handed over is not what was approved. It tells
// whether it did.
func (r *Review) refuse(t *Target, now time.Time) (refused bool, err error) {
	if r.Status != Approved || t.Delivery.State != Queued {
		return false, nil
	}
	problem := "Not sent: content changed after approval. What was approved cannot be had any more. " +
		"Have the draft saved and queued again, and decide on it as it is then."
	if t.Decision.Hash == "" {
		problem = "Not sent: it was approved in an earlier release of Hub, which did not keep what was shown. " +
			"Have the draft saved and queued again, and decide on it."
	}
	return true, r.settle(t, Changed, now, problem)
}

// settle records what became of an approved target's mail.
func (r *Review) settle(t *Target, p DeliveryState, at time.Time, problem string) error {
	counts := r.Counts
	if before := counts.outcome(t.Delivery.State); before != nil {
		*before--
	}
	*counts.outcome(p)++
	next := r.Status
	if !t.Delivery.State.Final() { // a better-known outcome of a mail that had one moves nothing
		var err error
		if next, err = Next(r.Status, Deliver, counts, r.Attempted); err != nil {
			return err
		}
	}
	r.Counts, r.Status = counts, next
	t.Delivery.State, t.Delivery.At, t.Delivery.Problem = p, &at, problem
	return nil
}

// Pace is how mails are tried again.
type Pace struct {
	// Retry is the wait after the first failure; it doubles up to an hour.
	Retry time.Duration
	// GiveUp is how long after its first try a mail is given up.
	GiveUp time.Duration
}

const (
	// longestWait bounds the wait for another try, and reachWait the one when the server
	// could not be reached: that says nothing about the recipient.
	longestWait = time.Hour
	reachWait   = 5 * time.Minute
)

// wait is the time to the next try of a mail that was put off so many times.
func (p Pace) wait(delays int, reached bool) time.Duration {
	longest := longestWait
	if !reached {
		longest = reachWait
	}
	wait := min(p.Retry, longest)
	for range min(delays-1, 30) {
		wait = min(2*wait, longest)
	}
	return wait
}

// record is what a hand-over's end means for the mail whose attempt it was: the wait before
// another try, 0 when there is none. reached tells that the hand-over began. A mail whose
// state has moved on is left as it is, except that a lost one may still be found.
func (r *Review) record(t *Target, attempt int, reached bool, sent *SendError, now time.Time, p Pace) (wait time.Duration, err error) {
	d := &t.Delivery
	switch {
	case d.Attempts != attempt:
		return 0, nil
	case reached && d.State == Unknown && (sent == nil || sent.Verdict == Never):
	case reached && d.State == Sending, !reached && d.State == Queued && r.Status == Approved:
	default:
		return 0, nil
	}
	switch {
	case sent == nil:
		return 0, r.settle(t, Delivered, now, "")
	case sent.Verdict == Never:
		return 0, r.settle(t, Failed, now, sent.Reason)
	case sent.Verdict == Perhaps:
		return 0, r.settle(t, Unknown, now, sent.Reason)
	}
	if d.Since == nil {
		d.Since = &now
	}
	if now.Sub(*d.Since) >= p.GiveUp {
		return 0, r.settle(t, Failed, now, fmt.Sprintf("Given up after %s: %s", p.GiveUp, sent.Reason))
	}
	d.Delays++
	d.State, d.At, d.Problem = Queued, &now, sent.Reason
	return p.wait(d.Delays, reached), nil
}

// Address is a mailbox with the name to show.
type Address struct{ Name, Email string }

// Message is a mail as it leaves.
type Message struct {
	Content
	// ID is the Message-ID without its angle brackets.
	ID   string
	Date time.Time
	// Unsubscribe is the one-click address of RFC 8058.
	Unsubscribe string
}

// Sender hands mails to an SMTP server.
type Sender interface {
	// Send connects, calls begin when all is ready for the hand-over, and hands the mail
	// over. An error of begin ends it, with nothing sent, and is returned as it is; any other
	// error is a *SendError.
	Send(ctx context.Context, m Message, begin func(context.Context) error) error
}

// Verdict says what a failed hand-over means for the mail.
type Verdict string

// The verdicts.
const (
	// Later: the mail was certainly not taken, and may be tried again (4xx, no connection).
	Later Verdict = "later"
	// Never: the mail was refused for good (5xx).
	Never Verdict = "never"
	// Perhaps: the connection broke when the mail was handed over whole, and before the answer.
	Perhaps Verdict = "perhaps"
)

// SendError is why a mail was not, or perhaps not, taken.
type SendError struct {
	Verdict Verdict
	// Reason is the server's answer or what broke, in one line for people.
	Reason string
	Cause  error
}

func (e *SendError) Error() string { return fmt.Sprintf("%s (%s)", e.Reason, e.Verdict) }

func (e *SendError) Unwrap() error { return e.Cause }

// Backlog is what waits for people and for the mail server.
type Backlog struct {
	// Drafts are in review, with Mails that nobody has decided on; Oldest is when the first of them was queued.
	Drafts, Mails int
	Oldest        *time.Time
	// ToSend are approved mails on which nothing was tried yet or that are tried again, those of Sending among them.
	ToSend, Sending int
	// Failed and Unknown are mails of drafts that have changed since the moment that was asked about.
	Failed, Unknown int
}
