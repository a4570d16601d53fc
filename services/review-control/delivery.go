package reviewcontrol

import (
	"context"
	"fmt"
	"hub.internal/services/review-control/mailer"
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
func (tx *Transaction) begin(t *Target, suppressed bool, now time.Time, lease time.Duration) (begun bool, wait time.Duration, err error) {
	r := &tx.Review
	d := &t.Delivery
	switch {
	case r.Status != Approved || d.State != Queued && d.State != Sending:
		return false, 0, nil
	case d.State == Sending:
		wait, _, err = tx.endLease(t, now, lease)
		return false, wait, err
	case suppressed:
		return false, 0, tx.settle(t, Suppressed, now, "The recipient is on the suppression list.")
	}
	if tx.happened(Begun, t); !r.Attempted {
		r.Attempted = true
		tx.happened(Started, nil)
	}
	d.State, d.At, d.Problem = Sending, &now, ""
	d.Attempts++
	if d.Since == nil {
		d.Since = &now
	}
	return true, 0, nil
}

// endLease makes a mail Unknown that was taken longer than lease ago, with no outcome since. Before that left is how long it belongs
// to who took it; a mail that is not being handed over is nobody's.
func (tx *Transaction) endLease(t *Target, now time.Time, lease time.Duration) (left time.Duration, unknown bool, err error) {
	if t.Delivery.State != Sending {
		return 0, false, nil
	}
	if left = lease - now.Sub(*t.Delivery.At); left > 0 {
		return left, false, nil
	}
	unknown, err = tx.abandon(t, now)
	return 0, unknown, err
}

// abandon makes a mail that was being handed over Unknown.
func (tx *Transaction) abandon(t *Target, now time.Time) (unknown bool, err error) {
	if t.Delivery.State != Sending {
		return false, nil
	}
	return true, tx.settle(t, Unknown, now, "Hub stopped while the mail was handed over; it may have arrived, and is not sent again.")
}

// refuse ends a mail that waits, since what would be handed over is not what was approved. It tells
// whether it did.
func (tx *Transaction) refuse(t *Target, now time.Time) (refused bool, err error) {
	r := &tx.Review
	if r.Status != Approved || t.Delivery.State != Queued {
		return false, nil
	}
	problem := "Not sent: content changed after approval. What was approved cannot be had any more. " +
		"Have the draft saved and queued again, and decide on it as it is then."
	if t.Decision.Hash == "" {
		problem = "Not sent: it was approved in an earlier release of Hub, which did not keep what was shown. " +
			"Have the draft saved and queued again, and decide on it."
	}
	return true, tx.settle(t, Changed, now, problem)
}

// settle records what became of an approved target's mail.
func (tx *Transaction) settle(t *Target, p DeliveryState, at time.Time, problem string) error {
	r := &tx.Review
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
	r.Counts = counts
	t.Delivery.State, t.Delivery.At, t.Delivery.Problem = p, &at, problem
	tx.happened(Settled, t)
	tx.move(next)
	return nil
}

// record is what a hand-over's end means for the mail whose attempt it was: the wait before
// another try, 0 when there is none. reached tells that the hand-over began. A mail whose
// state has moved on is left as it is, except that a lost one may still be found.
func (tx *Transaction) record(
	t *Target, attempt int, reached bool, sent *mailer.SendError, now time.Time, p mailer.Pace,
) (wait time.Duration, err error) {
	r := &tx.Review
	d := &t.Delivery
	switch {
	case d.Attempts != attempt:
		return 0, nil
	case reached && d.State == Unknown && (sent == nil || sent.Verdict == mailer.Never):
	case reached && d.State == Sending, !reached && d.State == Queued && r.Status == Approved:
	default:
		return 0, nil
	}
	switch {
	case sent == nil:
		return 0, tx.settle(t, Delivered, now, "")
	case sent.Verdict == mailer.Never:
		return 0, tx.settle(t, Failed, now, sent.Reason)
	case sent.Verdict == mailer.Perhaps:
		return 0, tx.settle(t, Unknown, now, sent.Reason)
	}
	if d.Since == nil {
		d.Since = &now
	}
	if now.Sub(*d.Since) >= p.GiveUp {
		return 0, tx.settle(t, Failed, now, fmt.Sprintf("Given up after %s: %s", p.GiveUp, sent.Reason))
	}
	d.Delays++
	d.State, d.At, d.Problem = Queued, &now, sent.Reason
	tx.happened(PutOff, t)
	return p.Wait(d.Delays, reached), nil
}

// Sender hands mails to an SMTP server.
type Sender interface {
	// Send connects, calls begin when all is ready for the hand-over, and hands the mail
	// over. An error of begin ends it, with nothing sent, and is returned as it is; any other
	// error is a *SendError.
	Send(ctx context.Context, m mailer.Message, begin func(context.Context) error) error
}
