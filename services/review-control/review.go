package reviewcontrol

import (
	"cmp"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
)

// Status is where a draft is on its way to its recipients.
type Status string

// The states of a draft (CONTRACT.md 10.1).
const (
	Drafted   Status = "draft"
	InReview  Status = "in_review"
	Approved  Status = "approved"
	Rejected  Status = "rejected"
	Sent      Status = "sent"
	Cancelled Status = "cancelled"
)

// Statuses lists them.
func Statuses() []Status {
	return []Status{Drafted, InReview, Approved, Rejected, Sent, Cancelled}
}

// Trigger is what can happen to a draft.
type Trigger string

// The triggers of CONTRACT.md 10.1.
const (
	// Queue is queue_for_review with no target suppressed.
	Queue Trigger = "queue_for_review"
	// Decide is a decision on a target; the last undecided one ends the review.
	Decide Trigger = "decide"
	// Deliver is an outcome of an approved target's mail; the last one ends the sending.
	Deliver Trigger = "deliver"
	// Cancel is a person's.
	Cancel Trigger = "cancel"
	// Undo takes back what one person decided last.
	Undo Trigger = "undo"
)

// transitions is the whole of what may happen to a draft, and when. Of those with the same
// from and trigger the first whose condition holds is taken.
var transitions = []struct {
	from    Status
	trigger Trigger
	when    func(Counts, bool) bool
	to      Status
}{
	{Drafted, Queue, always, InReview},
	{Drafted, Cancel, always, Cancelled},
	{InReview, Cancel, always, Cancelled},
	{InReview, Decide, func(c Counts, _ bool) bool { return c.Pending > 0 }, InReview},
	{InReview, Decide, func(c Counts, _ bool) bool { return c.Approved > 0 }, Approved},
	{InReview, Decide, always, Rejected},
	{Approved, Deliver, func(c Counts, _ bool) bool { return c.Waiting() > 0 }, Approved},
	{Approved, Deliver, always, Sent},
	{Approved, Cancel, unattempted, Cancelled},
	{InReview, Undo, always, InReview},
	{Approved, Undo, unattempted, InReview},
}

// unattempted is before the first hand-over.
func unattempted(_ Counts, attempted bool) bool { return !attempted }

// always is the condition that holds.
func always(Counts, bool) bool { return true }

// Counts are a review's targets by decision, and the approved ones by what became of their mail.
type Counts struct {
	Pending, Approved, Rejected int
	// Sent, Failed, Suppressed and Unknown are final. Failed counts those whose content has
	// changed, too. Unknown mails were being handed over when Hub stopped: they may have arrived,
	// and are not sent again.
	Sent, Failed, Suppressed, Unknown int
}

// Waiting is the number of approved targets whose mail has no outcome yet.
func (c Counts) Waiting() int { return c.Approved - c.Sent - c.Failed - c.Suppressed - c.Unknown }

// Decided is the number of targets with a decision.
func (c Counts) Decided() int { return c.Approved + c.Rejected }

// Total is the number of targets.
func (c Counts) Total() int { return c.Pending + c.Approved + c.Rejected }

// of is the counter of a choice.
func (c *Counts) of(choice Choice) *int {
	switch choice {
	case Approve:
		return &c.Approved
	case Reject:
		return &c.Rejected
	}
	return &c.Pending
}

// outcome is the counter of a final progress, nil for any other.
func (c *Counts) outcome(p DeliveryState) *int {
	switch p {
	case Delivered:
		return &c.Sent
	case Failed, Changed:
		return &c.Failed
	case Suppressed:
		return &c.Suppressed
	case Unknown:
		return &c.Unknown
	}
	return nil
}

// Next is the status after a trigger, given what the counts are then and whether a delivery
// was ever attempted. E_CONFLICT with details={from,to} for what CONTRACT.md 10.1 does not have.
func Next(from Status, t Trigger, c Counts, attempted bool) (Status, error) {
	for _, known := range transitions {
		if known.from == from && known.trigger == t && known.when(c, attempted) {
			return known.to, nil
		}
	}
	return "", refused(from, t)
}

// refused is E_CONFLICT with a message that a person or an agent can act on.
func refused(from Status, t Trigger) error {
	var message string
	to := map[Trigger]Status{Queue: InReview, Decide: Approved, Deliver: Sent, Cancel: Cancelled, Undo: InReview}[t]
	switch t {
	case Queue:
		message = cmp.Or(map[Status]string{ // saved again, what has left would leave twice
			InReview: "The draft is in_review already: reviewers have it, and list_drafts tells how far they are.",
			Approved: "The draft is approved already: its mails are about to leave. Nothing is to do; list_drafts tells how they go.",
			Sent:     "The draft is sent already: its mails have left. Nothing is to do; list_drafts tells how they went.",
		}[from], "The draft is "+string(from)+", so it cannot be queued for review; only a draft in status draft can: "+
			"save it again with save_message_draft, and queue that.")
	case Decide:
		switch from {
		case Drafted, InReview: // in review at authoring, and about to be here
			message = "The draft is not in review yet; its mails can be decided on once it is."
		default:
			message = "The review has ended: the draft is " + string(from) + ", so its mails can no longer be decided on."
		}
	case Cancel:
		message = "The draft is " + string(from) + ", so it cannot be cancelled."
		if from == Approved {
			message = "Its mails are being sent already, so the draft cannot be cancelled any more."
		}
	case Undo:
		message = "The draft is " + string(from) + ", so its decisions can no longer be undone."
		if from == Approved {
			message = "Its mails are being sent already, so nothing can be undone any more."
		}
	default:
		message = "The draft is " + string(from) + ", so nothing of it is sent."
	}
	return fault.New(fault.Conflict, "%s", message).With(map[string]Status{"from": from, "to": to})
}

// Review is a draft under review: what review-control keeps of it.
type Review struct {
	DraftID ID
	Status  Status
	Counts  Counts
	// QueuedAt, Actor and Note are those of queue_for_review.
	QueuedAt    time.Time
	Actor, Note string
	// Attempted tells that a mail was on its way: it is too late to cancel then.
	Attempted bool
	// ClosedBy and ClosedAt tell who cancelled the draft, or decided on its last target.
	ClosedBy string
	ClosedAt *time.Time
	// Maker is who made the draft, Sender whom its mails are from, or "" for Hub's own mailbox.
	Maker  Maker
	Sender mailer.Address
	// Layout is that of its mails.
	Layout body.Layout
	// Version grows with each change: authoring tells by it which counts are newer.
	Version int64
	// Actions is the number of the newest action: what one person decided at once, numbered from 1.
	Actions int
	// Reopened is how often an undo has brought the review back.
	Reopened int
	// Inspected is how many of the targets have been inspected.
	Inspected int
	// LeavesAt is when the mails of an approved draft may leave; until then, and until the first is handed
	// over, the last action can be undone. It is nil before, and where an earlier release approved.
	LeavesAt *time.Time
}

// Transaction is the aggregate of a review with some of its targets, while nobody else changes them: what its methods do
// is kept as steps, and the store writes exactly these.
type Transaction struct {
	Review Review
	// Targets are those asked for, by index.
	Targets []Target
	// Earlier are the decisions that held before those on the targets of an action, in their order.
	Earlier []Decision
	// IsListed tells whether an address is on the suppression list.
	IsListed func(email string) (bool, error)
	// Entry is the audit row, for what somebody asked for.
	Entry *audit.Entry
	// Steps are what has happened, in order.
	Steps []Step
}

// Step is one thing that has happened to a review.
type Step struct {
	Kind StepKind
	// Target is whom it has happened to, as it is since; nil for what happened to the review itself.
	Target *Target
	// From and To are the statuses of a step Moved.
	From, To Status
}

// StepKind says what has happened.
type StepKind string

// The kinds of steps.
const (
	// Decided: another decision holds on the target, a reviewer's or one that an undo has brought back.
	Decided StepKind = "decided"
	// Begun: the hand-over of the target's mail has begun. Started: it is the first of the review.
	Begun   StepKind = "begun"
	Started StepKind = "started"
	// PutOff: the target's mail waits for another try.
	PutOff StepKind = "put off"
	// Settled: the target's mail has come to its outcome, or a better-known one.
	Settled StepKind = "settled"
	// Moved: the review has another status.
	Moved StepKind = "moved"
)

// Counts tells that the step changes the review's own row, which authoring hears of. One mail's tries do not.
func (s Step) Counts() bool { return s.Kind != Begun && s.Kind != PutOff }

// happened records a step.
func (tx *Transaction) happened(kind StepKind, t *Target) {
	tx.Steps = append(tx.Steps, Step{Kind: kind, Target: t})
}

// move gives the review another status, if it is one.
func (tx *Transaction) move(to Status) {
	if from := tx.Review.Status; from != to {
		tx.Review.Status = to
		tx.Steps = append(tx.Steps, Step{Kind: Moved, From: from, To: to})
	}
}

// decide records a decision on a target of the review. revision is that of the decision
// which the reviewer saw. It tells whether anything changed: the same choice on the same content
// is no change, unless it comes with another note or reason.
func (tx *Transaction) decide(t *Target, d Decision, revision int) (changed bool, err error) {
	r := &tx.Review
	now := t.Decision
	// Mails that were rejected together before they were looked through have no hash.
	same := now.Hash == d.Hash || d.Choice == Reject && now.Hash == ""
	if now.Choice == d.Choice && same && (d.Note == "" || d.Note == now.Note) && (d.Reason == "" || d.Reason == now.Reason) {
		return false, nil
	}
	if r.Status != InReview {
		return false, refused(r.Status, Decide)
	}
	if now.Choice != d.Choice && now.Revision != revision {
		return false, stale(*t)
	}
	counts := r.Counts
	*counts.of(now.Choice)--
	*counts.of(d.Choice)++
	next, err := Next(r.Status, Decide, counts, r.Attempted)
	if err != nil {
		return false, err
	}
	d.Revision, d.Previous = now.Revision+1, now.Revision
	t.Decision, r.Counts = d, counts
	tx.happened(Decided, t)
	tx.move(next)
	if next != InReview {
		r.ClosedBy, r.ClosedAt = d.By, d.At
	}
	return true, nil
}

// leave sets when the mails of a review that has just been approved may leave.
func (tx *Transaction) leave(delay time.Duration) {
	r := &tx.Review
	if r.Status == Approved && r.ClosedAt != nil {
		at := r.ClosedAt.Add(delay)
		r.LeavesAt = &at
	}
}

// undo takes back the newest decisions of one action: what held before them holds again. earlier are the
// decisions that held before those on the targets, in their order.
func (tx *Transaction) undo(targets []Target, earlier []Decision, by Reviewer) error {
	r := &tx.Review
	next, err := Next(r.Status, Undo, r.Counts, r.Attempted)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fault.New(fault.Conflict, "There is nothing to undo: what was decided then has been decided again since.")
	}
	newest := targets[0].Decision.Action
	if r.Status == Approved && newest != r.Actions {
		return fault.New(fault.Conflict, "The review has ended since. Undo what ended it, the last decision, first.")
	}
	for i := range targets {
		t := &targets[i]
		if r.Status == InReview && t.Decision.By != by.Email {
			return fault.New(fault.Scope, "%s decided that; while the review goes on nobody else can undo it.", t.Decision.By)
		}
		d := earlier[i]
		*r.Counts.of(t.Decision.Choice)--
		*r.Counts.of(d.Choice)++
		d.Revision, d.UndoneBy = t.Decision.Revision+1, by.Email
		t.Decision = d
		tx.happened(Decided, t)
	}
	if r.Status == Approved {
		// Nothing was handed over: what became of mails before that was for the approvals of then.
		r.Counts = Counts{Pending: r.Counts.Pending, Approved: r.Counts.Approved, Rejected: r.Counts.Rejected}
		r.ClosedBy, r.ClosedAt, r.LeavesAt = "", nil, nil
		r.Reopened++
	}
	tx.move(next)
	return nil
}

// stale is E_CONFLICT for a target on which somebody else has decided since it was shown.
func stale(t Target) error {
	message := fmt.Sprintf("This mail was %s by %s in the meantime; look at it again.", t.Decision.Choice, t.Decision.By)
	if t.Decision.Choice == Pending {
		message = "What was decided on this mail has been undone in the meantime; look at it again."
	}
	return fault.New(fault.Conflict, "%s", message).
		With(map[string]any{"index": t.Index, "choice": t.Decision.Choice, "by": t.Decision.By})
}

// cancel ends the review for good.
func (tx *Transaction) cancel(by string, at time.Time) error {
	r := &tx.Review
	next, err := Next(r.Status, Cancel, r.Counts, r.Attempted)
	if err != nil {
		return err
	}
	r.ClosedBy, r.ClosedAt = by, &at
	tx.move(next)
	return nil
}

// Judgement is what a reviewer says of a mail. A reason goes with a rejection alone.
type Judgement struct {
	Choice Choice
	Reason Reason
	Note   string
}

// Choice is what a reviewer decided on a target.
type Choice string

// The choices; an undecided target has Pending.
const (
	Pending Choice = "pending"
	Approve Choice = "approved"
	Reject  Choice = "rejected"
)

// Target is a draft's target as review-control keeps it.
type Target struct {
	Index      int
	ExternalID int64
	ToEmail    string
	ToName     string
	// Mailings is how many targets of the draft have this address.
	Mailings int
	// Repeats says which earlier mail it repeats, as authoring knew when the draft was queued; empty when none. It is not kept.
	Repeats  string
	Decision Decision
	Delivery Delivery
	// Inspection is what lists say of its mail.
	Inspection Inspection
	// Token names the target in the unsubscription link of its mail; nil until it is approved.
	Token []byte
}

// Decision is the newest decision on a target.
type Decision struct {
	Choice Choice
	// By is the reviewer's address; empty while Pending.
	By   string
	At   *time.Time
	Note string
	// Hash is that of the content that was decided on; empty for a decision of a release that did
	// not render it itself: nothing is sent on such an approval.
	Hash string
	// Revision counts the decisions on the target: a form that knows an older one is stale.
	Revision int
	// Previous is the revision of the decision that held before, 0 without one.
	Previous int
	// Action is that of the review's actions which the decision was a part of; 0 for one of a release that
	// knew none.
	Action int
	// Reason is why the mail was rejected, where the reviewer chose one.
	Reason Reason
	// UndoneBy is who brought the decision back, by undoing what was decided after it.
	UndoneBy string
}

// Reason is why a mail is rejected: what an agent can learn from.
type Reason string

// The reasons; a rejection may have none.
const (
	WrongRecipient Reason = "recipient"
	WrongContent   Reason = "content"
	WrongTone      Reason = "tone"
	WrongTime      Reason = "timing"
	AlreadyAsked   Reason = "duplicate"
	OtherReason    Reason = "other"
)

// Reasons lists them, in the order in which a person is asked.
func Reasons() []Reason {
	return []Reason{WrongRecipient, WrongContent, WrongTone, WrongTime, AlreadyAsked, OtherReason}
}

// Action is what one person decided at once, as far as nobody has decided on it since.
type Action struct {
	Number, Targets int
	Choice          Choice
}

// Reviewer is the console user who decides.
type Reviewer struct{ ID, Email, Name string }

// Shown is a target as a reviewer's page showed it.
type Shown struct {
	Index int
	// Hash is that of the content.
	Hash string
	// Revision is that of the decision that was shown.
	Revision int
}

// Maker is who made a draft: the label it was given, and who was behind the call.
type Maker struct {
	CreatedBy string
	// HubUser and ExternalUser are the identity that the gateway established.
	HubUser, ExternalUser string
	// KeyName is what the API key that is the ExternalUser is called; only pages have it, and it names nobody.
	KeyName string `db:"-"`
}

// Key is the id of the API key behind a call that was for nobody else, or "".
func (m Maker) Key() string {
	if strings.HasPrefix(m.ExternalUser, "ak_") {
		return m.ExternalUser
	}
	return ""
}

// Is tells whether the reviewer made the draft, under any name that says so: nobody decides
// on their own draft.
func (m Maker) Is(r Reviewer) bool {
	named := func(label string) bool {
		// Ada <ada@example.com> is who the address says.
		if box, err := mail.ParseAddress(label); err == nil {
			label = box.Address
		}
		label = strings.TrimSpace(label)
		return label != "" && slices.ContainsFunc([]string{r.ID, r.Email, r.Name},
			func(own string) bool { return strings.EqualFold(label, strings.TrimSpace(own)) })
	}
	return named(m.CreatedBy) || named(m.HubUser) || named(m.ExternalUser)
}
