// Package queue takes drafts into review: queue_for_review, the one tool of review-control. It refuses a draft with a target
// on the suppression list, and to queue one twice.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/suppression"
	"hub.internal/services/review-control/triage"
)

// operation names the transition at authoring: a repeated call has the same.
func operation(in reviewcontrol.Intent) string {
	sum := sha256.Sum256([]byte(in.DraftID.String() + "\x00" + in.Key.Principal + "\x00" + in.Key.Operation + "\x00" + in.Key.Key))
	return "queue:" + hex.EncodeToString(sum[:])
}

// Queue takes drafts into review.
type Queue struct {
	service *reviewcontrol.Service
	c       reviewcontrol.Config
	store   Store
}

// New returns the queue of a service. It touches no database.
func New(s *reviewcontrol.Service, store Store) *Queue { return &Queue{s, s.Config(), store} }

// Store keeps what queue_for_review makes.
type Store interface {
	// Answered returns the answer of an earlier call with the key, if there is one.
	Answered(ctx context.Context, key write.Key) (tool.Result, bool, error)
	// Intend keeps that a draft is about to be queued, with a job that ends it should nobody
	// else; it returns what was kept before under the same key, E_CONFLICT when another
	// call has the draft, and E_IDEMPOTENCY when the key has another draft.
	Intend(ctx context.Context, in reviewcontrol.Intent, targets []reviewcontrol.Target) (reviewcontrol.Intent, error)
	// Intent returns what is kept of a draft about to be queued, if it is.
	Intent(ctx context.Context, id reviewcontrol.ID) (reviewcontrol.Intent, bool, error)
	// Enqueue makes the intent a review, once for its key.
	Enqueue(ctx context.Context, in reviewcontrol.Intent, answer tool.Result, entry audit.Entry) (tool.Result, error)
	// Withdraw forgets an intent whose draft cannot be queued.
	Withdraw(ctx context.Context, in reviewcontrol.Intent) error
}

// ReviewQueued is the answer of queue_for_review.
type ReviewQueued struct {
	DraftID     string               `json:"draft_id" jsonschema:"Id of the draft"`
	ID          string               `json:"id" jsonschema:"The same, as list_drafts names it"`
	Status      reviewcontrol.Status `json:"status" jsonschema:"in_review"`
	QueuedAt    string               `json:"queuedAt" jsonschema:"When it was queued, UTC"`
	TargetCount int                  `json:"targetCount" jsonschema:"Number of targets to decide on"`
	ReviewURL   string               `json:"review_url" jsonschema:"Page on which a person decides; agents cannot"`
	From        Mailbox              `json:"from" jsonschema:"Whom recipients see the mails come from: the draft's sender, or else Hub's own"`
	// Warnings are about recipients, and about what the operator wants of each mail.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"Targets that repeat an earlier mail, and what mails lack that they have to have here; absent without any"`
}

// Mailbox is whom a mail comes from, as recipients see it.
type Mailbox struct {
	Name  string `json:"name" jsonschema:"Name; empty without one"`
	Email string `json:"email" jsonschema:"Address"`
}

// ListedTarget is a target that keeps its draft from review.
type ListedTarget struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"externalId"`
	ToEmail    string `json:"toEmail"`
}

// ForReview takes a draft into review, once for the call's Idempotency-Key.
//
// The draft's status is authoring's and the review is ours, and no transaction holds both.
// So the intent is kept first; then authoring is asked, which is what decides; then the
// review, the audit row and the answer are committed. Wherever that breaks off, the same call
// or the intent's own job goes on from there.
func (q *Queue) ForReview(ctx context.Context, in queueForReviewIn) (tool.Result, error) {
	w, err := write.NewCall(ctx, queueForReview, q.c.Now())
	if err != nil {
		return tool.Result{}, err
	}
	key := w.Key
	if earlier, found, err := q.store.Answered(ctx, key); err != nil || found {
		return earlier, err
	}
	if err := in.check(); err != nil {
		return tool.Result{}, err
	}
	id, ok := schema.ParseID(in.DraftID)
	if !ok {
		return tool.Result{}, noDraft(in.DraftID)
	}
	kept, found, err := q.store.Intent(ctx, id)
	if err != nil {
		return tool.Result{}, err
	}
	if found && kept.Key.Same(key) && kept.Key != key { // as Intend says too: this saves asking authoring
		return tool.Result{}, write.Reused()
	}
	if !found || kept.Key != key {
		intent := reviewcontrol.Intent{DraftID: id, QueuedAt: w.At, Actor: in.Actor, Note: in.Note, Key: key, Caller: w.Caller,
			InputHash: w.InputHash}
		if kept, err = q.intend(ctx, intent); fault.Is(err, fault.Conflict) {
			return q.ahead(ctx, id, key, err)
		}
		if fault.Is(err, fault.NotFound) {
			return tool.Result{}, noDraft(in.DraftID)
		}
		if err != nil {
			return tool.Result{}, err
		}
	}
	return q.end(ctx, kept)
}

// noDraft is E_NOT_FOUND for an agent.
func noDraft(id string) error {
	return fault.New(fault.NotFound, "There is no draft %q: send a draft_id that save_message_draft or list_drafts has answered.",
		text.Shown(id, 40))
}

// intend judges the draft and keeps the intent to queue it.
func (q *Queue) intend(ctx context.Context, in reviewcontrol.Intent) (reviewcontrol.Intent, error) {
	draft, err := q.c.Drafts.Draft(ctx, in.DraftID)
	if err != nil {
		return reviewcontrol.Intent{}, err
	}
	if _, err := reviewcontrol.Next(draft.Status, reviewcontrol.Queue, reviewcontrol.Counts{}, false); err != nil {
		return reviewcontrol.Intent{}, err
	}
	targets, err := q.recipients(ctx, draft)
	if err != nil {
		return reviewcontrol.Intent{}, err
	}
	in.Warnings = append(repeats(targets), q.service.PolicyWarnings(draft)...)
	in.TargetCount, in.Maker, in.Sender = len(targets), draft.Maker, mailer.Address{Name: draft.SenderName, Email: draft.SenderEmail}
	return q.store.Intend(ctx, in, targets)
}

// ahead answers a call that found its draft taken. The same call, sent twice at once, may be
// what took it: then both have one answer. An intent becomes an answer in one transaction,
// so whoever looks for them in this order misses neither.
func (q *Queue) ahead(ctx context.Context, id reviewcontrol.ID, key write.Key, refused error) (tool.Result, error) {
	kept, found, err := q.store.Intent(ctx, id)
	if err == nil && found && kept.Key == key {
		return q.end(ctx, kept)
	}
	if err != nil {
		return tool.Result{}, err
	}
	if earlier, found, err := q.store.Answered(ctx, key); err != nil || found {
		return earlier, err
	}
	return tool.Result{}, refused
}

// recipients are a draft's targets, none of which is on the suppression list, with their Mailings.
func (q *Queue) recipients(ctx context.Context, draft reviewcontrol.Draft) ([]reviewcontrol.Target, error) {
	targets, err := q.c.Drafts.Recipients(ctx, draft.ID)
	if err != nil {
		return nil, err
	}
	if len(targets) != draft.TargetCount || len(targets) == 0 {
		return nil, fmt.Errorf("draft %s has %d targets, and authoring names %d", draft.ID, draft.TargetCount, len(targets))
	}
	for i, t := range targets {
		if t.Index != i || !schema.IsEmail(t.ToEmail) {
			return nil, fmt.Errorf("authoring names %d, to %q, as target %d of draft %s", t.Index, t.ToEmail, i, draft.ID)
		}
	}
	emails, mailings := make([]string, len(targets)), map[string]int{}
	for i, t := range targets {
		emails[i] = t.ToEmail
		mailings[suppression.Key(t.ToEmail)]++
	}
	listed, err := q.c.Suppressions.Listed(ctx, emails)
	if err != nil {
		return nil, err
	}
	refused := []ListedTarget{}
	for i, t := range targets {
		targets[i].Mailings = mailings[suppression.Key(t.ToEmail)]
		if listed[suppression.Key(t.ToEmail)] {
			refused = append(refused, ListedTarget{t.Index, t.ExternalID, t.ToEmail})
		}
	}
	if len(refused) > 0 {
		return nil, fault.New(fault.Suppressed,
			"%d of %d targets are on the suppression list, the first of them target %d (%s). Save the draft again without them.",
			len(refused), len(targets), refused[0].Index, refused[0].ToEmail).With(map[string]any{"targets": refused})
	}
	return targets, nil
}

// end brings an intent to its end: for its own caller, or, in the intent's job, for nobody
// but review-control, which has the caller's word no more.
func (q *Queue) end(ctx context.Context, in reviewcontrol.Intent) (tool.Result, error) {
	wish := reviewcontrol.Transition{From: []reviewcontrol.Status{reviewcontrol.Drafted}, To: reviewcontrol.InReview,
		QueuedAt: &in.QueuedAt, Operation: operation(in)}
	err := q.c.Drafts.Transition(ctx, in.DraftID, wish)
	if reviewcontrol.IsRefusal(err) {
		if err := q.store.Withdraw(ctx, in); err != nil {
			return tool.Result{}, err
		}
	}
	if err != nil {
		return tool.Result{}, err
	}
	from := q.service.Mailbox(in.Sender) // as it is with every mail
	answer, err := write.Answer(ReviewQueued{
		DraftID: in.DraftID.String(), ID: in.DraftID.String(), Status: reviewcontrol.InReview, QueuedAt: schema.Moment(in.QueuedAt),
		TargetCount: in.TargetCount, ReviewURL: q.c.PublicURL + "/drafts/" + in.DraftID.String(), From: Mailbox(from),
		Warnings: q.warnings(ctx, in),
	}, in.TargetCount)
	if err != nil {
		return tool.Result{}, err
	}
	return q.store.Enqueue(ctx, in, answer, audit.Entry{At: in.QueuedAt, Caller: in.Caller, Tool: queueForReview, Outcome: audit.OK,
		Count: in.TargetCount, InputHash: in.InputHash, Took: max(q.c.Now().Sub(in.QueuedAt), 0),
		Detail: map[string]any{"draft_id": in.DraftID.String(), "targets": in.TargetCount, "actor": in.Actor, "note": in.Note}})
}

// repeats warns of targets that repeat an earlier mail.
func repeats(targets []reviewcontrol.Target) []tool.Warning {
	return triage.Repeats(len(targets), func(i int) (email, says string) { return targets[i].ToEmail, targets[i].Repeats })
}

// againTimeout bounds the wait for authoring's second word about repeats: the draft is queued without it.
const againTimeout = 2 * time.Second

// warnings are the intent's, with the repeats that authoring knows of now: of two drafts that are queued at once neither has seen the
// other before, and whichever authoring has moved last sees it now. Without an answer those stay that were known before.
func (q *Queue) warnings(ctx context.Context, in reviewcontrol.Intent) []tool.Warning {
	ctx, cancel := context.WithTimeout(ctx, againTimeout)
	defer cancel()
	targets, err := q.c.Drafts.Recipients(ctx, in.DraftID)
	if err != nil {
		q.c.Logger.WarnContext(ctx, "authoring does not say what a queued draft repeats", "draft_id", in.DraftID, "error", err)
		return in.Warnings
	}
	others := slices.DeleteFunc(slices.Clone(in.Warnings), func(w tool.Warning) bool { return w.Rule == triage.RepeatRule })
	return append(repeats(targets), others...)
}

// Complete is the job of an intent: it ends what its call did not.
func (q *Queue) Complete(ctx context.Context, id reviewcontrol.ID) error {
	in, found, err := q.store.Intent(ctx, id)
	if err != nil || !found {
		return err
	}
	_, err = q.end(ctx, in)
	if reviewcontrol.IsRefusal(err) {
		q.c.Logger.InfoContext(ctx, "a draft was not queued after all", "draft_id", id, "error", err)
		return nil // its caller was told, or will be
	}
	return err
}
