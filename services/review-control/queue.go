package reviewcontrol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

// QueueTakes is when a call of queue_for_review should long have ended.
const QueueTakes = 10 * time.Second

// Intent is a call of queue_for_review that was found right, before authoring was asked:
// whoever finds it can bring it to its end.
type Intent struct {
	DraftID     ID
	TargetCount int
	Maker       Maker
	Sender      Address
	QueuedAt    time.Time
	Actor, Note string
	Key         postgres.OnceKey
	Caller      caller.Caller
	InputHash   []byte
}

// operation names the transition at authoring: a repeated call has the same.
func (in Intent) operation() string {
	sum := sha256.Sum256([]byte(in.DraftID.String() + "\x00" + in.Key.Credential + "\x00" + in.Key.Tool + "\x00" + in.Key.Key))
	return "queue:" + hex.EncodeToString(sum[:])
}

// SameKey tells whether the intent is of a call with this key, whatever its input.
func (in Intent) SameKey(key postgres.OnceKey) bool {
	key.Fingerprint = in.Key.Fingerprint
	return in.Key == key
}

// KeyReused is E_IDEMPOTENCY for a key whose first call has not ended.
func KeyReused() error {
	return fault.New(fault.Idempotency, "This Idempotency-Key was used before with another input. Send a new key for a new call.")
}

// ReviewQueued is the answer of queue_for_review.
type ReviewQueued struct {
	DraftID     string `json:"draft_id" jsonschema:"Id of the draft"`
	Status      Status `json:"status" jsonschema:"in_review"`
	QueuedAt    string `json:"queuedAt" jsonschema:"When it was queued, UTC"`
	TargetCount int    `json:"targetCount" jsonschema:"Number of targets to decide on"`
	ReviewURL   string `json:"review_url" jsonschema:"Page on which a person decides; agents cannot"`
}

// SuppressedTarget is a target that keeps its draft from review.
type SuppressedTarget struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"externalId"`
	ToEmail    string `json:"toEmail"`
}

// QueueForReview takes a draft into review, once for the call's Idempotency-Key.
//
// The draft's status is authoring's and the review is ours, and no transaction holds both.
// So the intent is kept first; then authoring is asked, which is what decides; then the
// review, the audit row and the answer are committed. Wherever that breaks off, the same call
// or the intent's own job goes on from there.
func (s *Service) QueueForReview(ctx context.Context, in queueForReviewIn) (tool.Written, error) {
	sent, c := tool.IdempotencyFrom(ctx), caller.From(ctx)
	fingerprint, err := postgres.Fingerprint(sent.Input)
	if err != nil {
		return tool.Written{}, err
	}
	key := postgres.OnceKey{Credential: c.CredentialID, Tool: queueForReview, Key: sent.Key, Fingerprint: fingerprint}
	if earlier, found, err := s.c.Store.Answered(ctx, key); err != nil || found {
		return written(earlier), err
	}
	if err := in.check(); err != nil {
		return tool.Written{}, err
	}
	id, ok := ParseID(in.DraftID)
	if !ok {
		return tool.Written{}, Missing("draft", in.DraftID)
	}
	kept, found, err := s.c.Store.Intent(ctx, id)
	if err != nil {
		return tool.Written{}, err
	}
	if found && kept.SameKey(key) && kept.Key != key {
		return tool.Written{}, KeyReused()
	}
	if !found || kept.Key != key {
		intent := Intent{DraftID: id, QueuedAt: s.now(), Actor: in.Actor, Note: in.Note, Key: key, Caller: c, InputHash: audit.HashInput(sent.Input)}
		if kept, err = s.intend(ctx, intent); fault.Is(err, fault.Conflict) {
			return s.ahead(ctx, id, key, err)
		}
		if err != nil {
			return tool.Written{}, err
		}
	}
	answer, err := s.complete(ctx, kept)
	return written(answer), err
}

// intend judges the draft and keeps the intent to queue it.
func (s *Service) intend(ctx context.Context, in Intent) (Intent, error) {
	draft, err := s.c.Drafts.Draft(ctx, in.DraftID)
	if err != nil {
		return Intent{}, err
	}
	if _, err := Next(draft.Status, Queue, Counts{}, false); err != nil {
		return Intent{}, err
	}
	targets, err := s.recipients(ctx, draft)
	if err != nil {
		return Intent{}, err
	}
	in.TargetCount, in.Maker, in.Sender = len(targets), draft.Maker, Address{draft.SenderName, draft.SenderEmail}
	return s.c.Store.Intend(ctx, in, targets)
}

// ahead answers a call that found its draft taken. The same call, sent twice at once, may be
// what took it: then both have one answer. An intent becomes an answer in one transaction,
// so whoever looks for them in this order misses neither.
func (s *Service) ahead(ctx context.Context, id ID, key postgres.OnceKey, refused error) (tool.Written, error) {
	kept, found, err := s.c.Store.Intent(ctx, id)
	if err == nil && found && kept.Key == key {
		answer, err := s.complete(ctx, kept)
		return written(answer), err
	}
	if err != nil {
		return tool.Written{}, err
	}
	if earlier, found, err := s.c.Store.Answered(ctx, key); err != nil || found {
		return written(earlier), err
	}
	return tool.Written{}, refused
}

// recipients are a draft's targets, none of which is on the suppression list, with their Mailings.
func (s *Service) recipients(ctx context.Context, draft Draft) ([]Target, error) {
	targets, err := s.c.Drafts.Recipients(ctx, draft.ID)
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
		mailings[EmailKey(t.ToEmail)]++
	}
	listed, err := s.c.Store.Suppressed(ctx, emails)
	if err != nil {
		return nil, err
	}
	refused := []SuppressedTarget{}
	for i, t := range targets {
		targets[i].Mailings = mailings[EmailKey(t.ToEmail)]
		if listed[EmailKey(t.ToEmail)] {
			refused = append(refused, SuppressedTarget{t.Index, t.ExternalID, t.ToEmail})
		}
	}
	if len(refused) > 0 {
		return nil, fault.New(fault.Suppressed, "%d of %d targets are on the suppression list, the first of them target %d (%s). Save the draft again without them.",
			len(refused), len(targets), refused[0].Index, refused[0].ToEmail).With(map[string]any{"targets": refused})
	}
	return targets, nil
}

// complete brings an intent to its end.
func (s *Service) complete(ctx context.Context, in Intent) (postgres.Answer, error) {
	err := s.c.Drafts.Transition(caller.With(ctx, in.Caller), in.DraftID, []Status{Drafted}, InReview, &in.QueuedAt, in.operation())
	if saidNo(err) {
		if err := s.c.Store.Withdraw(ctx, in); err != nil {
			return postgres.Answer{}, err
		}
	}
	if err != nil {
		return postgres.Answer{}, err
	}
	data, err := json.Marshal(ReviewQueued{DraftID: in.DraftID.String(), Status: InReview, QueuedAt: stamp(in.QueuedAt), TargetCount: in.TargetCount,
		ReviewURL: s.c.PublicURL + "/drafts/" + in.DraftID.String()})
	if err != nil {
		return postgres.Answer{}, err
	}
	return s.c.Store.Enqueue(ctx, in, postgres.Answer{Data: data, Count: in.TargetCount}, audit.Entry{At: in.QueuedAt, Caller: in.Caller, Tool: queueForReview, Outcome: audit.OK,
		Count: in.TargetCount, InputHash: in.InputHash, Took: max(s.now().Sub(in.QueuedAt), 0),
		Detail: map[string]any{"draft_id": in.DraftID.String(), "targets": in.TargetCount, "actor": in.Actor, "note": in.Note}})
}

// CompleteQueue is the job of an intent: it ends what its call did not.
func (s *Service) CompleteQueue(ctx context.Context, id ID) error {
	in, found, err := s.c.Store.Intent(ctx, id)
	if err != nil || !found {
		return err
	}
	_, err = s.complete(ctx, in)
	if saidNo(err) {
		s.c.Logger.InfoContext(ctx, "a draft was not queued after all", "draft_id", id, "error", err)
		return nil // its caller was told, or will be
	}
	return err
}

// saidNo tells that a neighbour or a rule said no, in contrast to a failure that may pass.
func saidNo(err error) bool {
	switch f := fault.From(err); {
	case err == nil, f.Retryable():
		return false
	default:
		return f.Code == fault.Conflict || f.Code == fault.NotFound || f.Code == fault.Idempotency || f.Code == fault.Scope || f.Code == fault.Validation
	}
}

func written(a postgres.Answer) tool.Written {
	return tool.Written{Data: a.Data, Rows: a.Count, Again: a.Replayed}
}
