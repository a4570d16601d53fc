package reviewcontrol

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/suppression"
)

const (
	// recordFor is how long the outcome of a hand-over is tried to be kept: losing it makes
	// the mail Unknown. stopFor is how long once the process is stopping.
	recordFor = 60 * time.Second
	stopFor   = 3 * time.Second
	// awayFor is the wait while authoring cannot be asked for the mail.
	awayFor = 15 * time.Second
	// WaitInLine is how near a mail's turn has to be for its job to wait for it.
	WaitInLine = 10 * time.Second
)

// DeliveryStore keeps the line of mails that wait, and what authoring knows of reviews.
type DeliveryStore interface {
	// Finish makes approved targets wait for their delivery; doing it again changes nothing. While
	// their review can be undone it does nothing, and tells how long to wait.
	Finish(ctx context.Context, id ID, now time.Time) (wait time.Duration, err error)
	// Turn gives a target's mail its place in the line of all mails, one each interval; it
	// keeps those that are further away than near. It is false when there is nothing to send.
	Turn(ctx context.Context, id ID, index int, now time.Time, interval, near time.Duration) (time.Time, bool, error)
	// TakeSync returns a review whose changes authoring may not have heard of, with how many of its targets are rejected for
	// which reason, and the last rejected, at most 50; changes that come later ask for another job. Synced keeps what
	// authoring knows, Unsynced that it does not.
	TakeSync(ctx context.Context, id ID) (Review, map[Reason]int, []Target, error)
	Synced(ctx context.Context, id ID, version int64) error
	Unsynced(ctx context.Context, id ID) error
}

// Lease is how long a mail that is being handed over belongs to who began it.
func (s *Service) Lease() time.Duration { return 2*s.c.SendTimeout + recordFor + 15*time.Second }

// DeliveryTakes is the longest time that Turn, WaitInLine and Deliver take together.
func (s *Service) DeliveryTakes() time.Duration { return s.Lease() + WaitInLine + awayFor }

// Turn is when a target's mail may be handed over; false when there is nothing to send.
func (s *Service) Turn(ctx context.Context, id ID, index int) (at time.Time, due bool, err error) {
	return s.c.Store.Turn(ctx, id, index, s.c.Now(), time.Minute/time.Duration(s.c.PerMinute), WaitInLine)
}

// Abandon records that a hand-over broke off without an outcome: whoever was in it has died.
func (s *Service) Abandon(ctx context.Context, id ID, index int) error {
	return s.end(itself(ctx), id, index, func(tx *Transaction, t *Target) (bool, error) { return tx.abandon(t, s.now()) })
}

// end lets how judge a mail whose hand-over was begun, and counts it when it is Unknown since.
func (s *Service) end(ctx context.Context, id ID, index int, how func(*Transaction, *Target) (unknown bool, err error)) error {
	unknown := false
	_, err := s.c.Store.Update(ctx, id, []int{index}, func(tx *Transaction) (err error) {
		unknown, err = how(tx, &tx.Targets[0])
		return err
	})
	if err == nil && unknown {
		s.metrics.Delivered(ctx, string(Unknown))
	}
	return err
}

// errStopped ends a hand-over that must not begin.
var errStopped = errors.New("the mail is not to be sent now")

// Deliver hands a target's mail over, at most once, and records what became of it. again is
// when to call it again; 0 is never. It may be called at any time, and twice at once.
func (s *Service) Deliver(ctx context.Context, id ID, index int) (again time.Duration, err error) {
	ctx = itself(ctx)
	r, err := s.c.Store.Review(ctx, id)
	if err != nil {
		return 0, err
	}
	t, err := s.c.Store.Target(ctx, id, index)
	if err != nil {
		return 0, err
	}
	if r.Status != Approved || t.Delivery.State != Queued && t.Delivery.State != Sending {
		return 0, nil
	}
	if t.Delivery.State == Sending {
		return s.endLease(ctx, id, index)
	}
	message, err := s.message(ctx, r, t)
	switch {
	case errors.Is(err, errChanged):
		return 0, s.refuse(ctx, id, index, err)
	case fault.From(err) != nil && fault.From(err).Retryable():
		return awayFor, nil
	case err != nil:
		return 0, err
	}
	attempt, begun := t.Delivery.Attempts, false
	sending, cancel := context.WithTimeout(ctx, 2*s.c.SendTimeout)
	defer cancel()
	start := time.Now()
	err = s.c.Sender.Send(sending, message, func(ctx context.Context) (err error) {
		attempt, again, err = s.begin(ctx, r.DraftID, index, message)
		begun = err == nil
		return err
	})
	s.metrics.HandedOver(ctx, time.Since(start))
	var sent *mailer.SendError
	switch {
	case errors.Is(err, errStopped):
		return again, nil
	case err != nil && !errors.As(err, &sent):
		if !begun {
			return 0, err
		}
		// Not one of the sender's own errors, so nothing is known of the mail.
		sent = &mailer.SendError{Verdict: mailer.Perhaps, Reason: "The hand-over broke off.", Cause: err}
	}
	return s.record(ctx, r, t, attempt, begun, sent)
}

// endLease looks at a mail whose hand-over was begun before, and tells how long it belongs to who began it; without an outcome by
// then it is Unknown. Nothing is rendered or asked for that: neither what the mail would be now, nor authoring, nor the mail server
// may keep it from its end.
func (s *Service) endLease(ctx context.Context, id ID, index int) (left time.Duration, err error) {
	err = s.end(ctx, id, index, func(tx *Transaction, t *Target) (unknown bool, err error) {
		left, unknown, err = tx.endLease(t, s.now(), s.Lease())
		return unknown, err
	})
	return left, err
}

// From is the mailbox that recipients see: the draft's own, or Hub's under the draft's name.
func (s *Service) From(draft mailer.Address) mailer.Address {
	from := s.c.From
	if draft.Name != "" {
		from.Name = draft.Name
	}
	if draft.Email != "" {
		from = draft
	}
	return from
}

// errChanged is that of a mail which is not the one that was approved.
var errChanged = errors.New("content changed after approval")

// message is the mail of a target, if it is the one that was approved: rendered again from what
// authoring has now, and held to the decision as it is handed over.
func (s *Service) message(ctx context.Context, r Review, t Target) (mailer.Message, error) {
	m := mailer.Message{Date: s.now(), Unsubscribe: s.c.PublicURL + "/unsubscribe/" + base64.RawURLEncoding.EncodeToString(t.Token)}
	err := s.renderings(ctx, r, []Target{t}, func(v TargetView) error {
		m.Content = v.Rendering.Content
		return nil
	})
	m.ID = rand.Text() + "@" + suppression.Domain(m.From.Email)
	switch {
	case fault.Is(err, fault.NotFound):
		return mailer.Message{}, fmt.Errorf("%w: %w", errChanged, err)
	case err != nil:
		return mailer.Message{}, err
	case !t.Decision.approves(m.Content):
		return mailer.Message{}, fmt.Errorf("%w: %s was approved, and it is %s", errChanged, t.Decision.Hash, m.Hash())
	}
	return m, nil
}

// approves tells that the decision lets the content leave.
func (d Decision) approves(c mailer.Content) bool { return d.Choice == Approve && d.Hash == c.Hash() }

// refuse ends a mail that is not the one that was approved, for everybody to see.
func (s *Service) refuse(ctx context.Context, id ID, index int, why error) error {
	refused := false
	_, err := s.c.Store.Update(ctx, id, []int{index}, func(tx *Transaction) (err error) {
		if refused, err = tx.refuse(&tx.Targets[0], s.now()); refused {
			entry := s.entry(ctx, "review.refuse", 1, map[string]any{"draft_id": id.String(), "index": index, "reason": why.Error()})
			entry.Outcome = string(fault.Conflict)
			tx.Entry = &entry
		}
		return err
	})
	if err == nil && refused {
		s.metrics.Delivered(ctx, string(Changed))
		s.c.Logger.WarnContext(ctx, "a mail was not sent: it is not the one that was approved", "draft_id", id, "index", index, "reason", why)
	}
	return err
}

// begin is the record before the hand-over: whoever commits it is the only one to send.
func (s *Service) begin(ctx context.Context, id ID, index int, m mailer.Message) (attempt int, again time.Duration, err error) {
	begun := false
	var outcome DeliveryState
	_, err = s.c.Store.Update(ctx, id, []int{index}, func(tx *Transaction) error {
		t := &tx.Targets[0]
		if !t.Decision.approves(m.Content) { // it was decided on again
			again = time.Second
			return nil
		}
		listed, err := tx.IsListed(t.ToEmail)
		if err != nil {
			return err
		}
		if begun, again, err = tx.begin(t, listed, s.now(), s.Lease()); begun {
			t.Delivery.MessageID = m.ID
		}
		attempt, outcome = t.Delivery.Attempts, t.Delivery.State
		return err
	})
	switch {
	case err != nil:
		return 0, 0, err
	case begun:
		return attempt, 0, nil
	case again == 0 && (outcome == Suppressed || outcome == Unknown):
		s.metrics.Delivered(ctx, string(outcome))
	}
	return attempt, again, errStopped
}

// record keeps the outcome of a hand-over. It goes on trying while the store is away: who
// finds the mail without an outcome can only call it lost.
func (s *Service) record(ctx context.Context, r Review, t Target, attempt int, begun bool, sent *mailer.SendError) (
	again time.Duration, err error) {
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	defer context.AfterFunc(ctx, func() { // the process stops, or the job has had its time
		select {
		case <-time.After(stopFor):
			cancel()
		case <-recording.Done():
		}
	})()
	var outcome DeliveryState
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		_, err = s.c.Store.Update(recording, r.DraftID, []int{t.Index}, func(tx *Transaction) (err error) {
			before := tx.Targets[0].Delivery.State
			again, err = tx.record(&tx.Targets[0], attempt, begun, sent, s.now(), s.c.Pace)
			if outcome = tx.Targets[0].Delivery.State; outcome == before && outcome != Queued {
				outcome = NotDue
			}
			return err
		})
		if err == nil || IsRefusal(err) {
			break
		}
		s.c.Logger.WarnContext(ctx, "the outcome of a hand-over could not be kept yet", "draft_id", r.DraftID, "index", t.Index, "error", err)
		select {
		case <-time.After(pause):
		case <-recording.Done():
			return 0, fmt.Errorf("outcome of draft %s, target %d: %w", r.DraftID, t.Index, err)
		}
	}
	if err != nil {
		return 0, err
	}
	if outcome != NotDue {
		s.metrics.Delivered(ctx, string(outcome))
	}
	if sent != nil {
		s.c.Logger.WarnContext(ctx, "a mail was not handed over", "draft_id", r.DraftID, "index", t.Index, "state", outcome,
			"again", again, "reason", sent.Reason, "error", sent.Cause)
	}
	return mailer.Jitter(again), nil
}

// Finish is the job of an approved draft: its approved targets wait for their delivery. It tells how
// long to wait while the last decision can still be undone in peace.
func (s *Service) Finish(ctx context.Context, id ID) (wait time.Duration, err error) {
	return s.c.Store.Finish(ctx, id, s.now())
}

// Sync is the job that tells authoring what became of a review: its counts, then its status.
// What it tells is what holds when it runs, so it may run at any time, and twice.
func (s *Service) Sync(ctx context.Context, id ID) error {
	ctx = itself(ctx)
	r, rejections, rejected, err := s.c.Store.TakeSync(ctx, id)
	if err != nil {
		return err
	}
	if err := s.tell(ctx, r, rejections, rejected); err != nil {
		// The job that tries again stands for all changes until then.
		return errors.Join(err, s.c.Store.Unsynced(context.WithoutCancel(ctx), id))
	}
	return s.c.Store.Synced(ctx, id, r.Version)
}

// steps are the transitions that lead authoring to a status of ours from any that it may have been left in: what was decided, undone
// and decided again may never have been told.
var steps = map[Status][]struct {
	from []Status
	to   Status
}{
	InReview:  {{[]Status{Approved}, InReview}},
	Approved:  {{[]Status{InReview}, Approved}},
	Rejected:  {{[]Status{Approved}, InReview}, {[]Status{InReview}, Rejected}},
	Sent:      {{[]Status{InReview}, Approved}, {[]Status{Approved}, Sent}},
	Cancelled: {{[]Status{InReview, Approved}, Cancelled}},
}

// tell tells the counts first: whoever reads a status there finds the counts that go with it. A step that is refused is passed over
// where authoring is at its end already, or at the end of all of them: a status that was told is told again.
func (s *Service) tell(ctx context.Context, r Review, rejections map[Reason]int, rejected []Target) error {
	if err := s.c.Drafts.Progress(ctx, r, rejections, rejected); err != nil {
		return err
	}
	for _, step := range steps[r.Status] {
		if step.to == InReview && r.Reopened == 0 { // nothing leads back from an approval that there never was
			continue
		}
		operation := "review:" + r.DraftID.String() + ":" + string(step.to)
		if r.Reopened > 0 { // the same wish as before an undo is another one
			operation += ":" + strconv.Itoa(r.Reopened)
		}
		err := s.c.Drafts.Transition(ctx, r.DraftID, Transition{From: step.from, To: step.to, Operation: operation, Version: r.Version})
		if at := statusInConflict(err); err != nil && at != step.to && at != r.Status {
			return err
		}
	}
	return nil
}

// statusInConflict is where a draft is that a transition did not find in any status it may leave;
// "" when err is something else.
func statusInConflict(err error) Status {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Conflict {
		return ""
	}
	raw, isRaw := f.Details.(json.RawMessage)
	if !isRaw {
		return ""
	}
	var details struct {
		From Status `json:"from"`
	}
	_ = json.Unmarshal(raw, &details) // other details name no status
	return details.From
}

// IsRefusal tells that a neighbour or a rule said no, in contrast to a failure that may pass.
func IsRefusal(err error) bool {
	f := fault.From(err)
	return err != nil && !f.Retryable() &&
		slices.Contains([]fault.Code{fault.Conflict, fault.NotFound, fault.Idempotency, fault.Scope, fault.Validation}, f.Code)
}
