// Package authoring is review-control's client of the authoring service, the keeper of drafts. It
// refuses to judge what that says: it only holds it to the form that was agreed.
//
// Its types are its own, and not authoring's: they hold the members that review-control reads, so that each of the two services
// can be released without the other. A contract test holds them to what authoring answers.
package authoring

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	reviewcontrol "hub.internal/services/review-control"
)

// Drafts are those of the authoring service.
type Drafts struct{ client *remote.Client }

var _ reviewcontrol.Drafts = Drafts{}

// New returns the drafts behind a client of the authoring service.
func New(client *remote.Client) Drafts { return Drafts{client} }

// mostContent is what an agent can put into one call, 32 MiB, where JSON escapes each byte of it as six.
const mostContent = 6*32<<20 + 1<<20

// What authoring does, as this client calls it. Each may be repeated: the first four read, a transition
// is done once for its operation, and progress is no news when it is old. A transition is shown who has
// asked for it.
var (
	getDraft    = remote.Operation[draftRequest, draftResponse]{Path: "/internal/drafts/get", Most: mostContent, Repeatable: true}
	listDrafts  = remote.Operation[draftListRequest, draftListResponse]{Path: "/internal/drafts/list", Repeatable: true}
	listTargets = remote.Operation[draftTargetsRequest, draftTargetsResponse]{
		Path: "/internal/drafts/targets", Most: mostContent, Repeatable: true,
	}
	recipients = remote.Operation[recipientsRequest, recipientsResponse]{Path: "/internal/drafts/recipients", Most: mostContent,
		Repeatable: true}
	transition = remote.Operation[transitionRequest, nothing]{Path: "/internal/drafts/transition", Repeatable: true, ForCaller: true}
	progress   = remote.Operation[progressRequest, nothing]{Path: "/internal/drafts/progress", Repeatable: true}
)

// Contracts are what this client takes for granted of authoring.
func Contracts() []remote.Contract {
	return []remote.Contract{
		getDraft.Contract(), listDrafts.Contract(), listTargets.Contract(), recipients.Contract(), transition.Contract(), progress.Contract(),
	}
}

type (
	draftRequest struct {
		DraftID string `json:"draft_id"`
	}
	draftListRequest struct {
		Status  []reviewcontrol.Status `json:"status,omitempty"`
		AfterID string                 `json:"after_id,omitempty"`
		Limit   int                    `json:"limit"`
		Search  string                 `json:"search,omitempty"`
		Order   string                 `json:"order,omitempty"`
		Makers  []maker                `json:"makers,omitempty"`
		Others  bool                   `json:"others,omitempty"`
		Ahead   []statusAhead          `json:"ahead,omitempty"`
		Count   bool                   `json:"count,omitempty"`
	}
	maker struct {
		CreatedBy      string `json:"created_by"`
		HubUser        string `json:"hub_user"`
		ExternalUserID string `json:"external_user_id"`
	}
	statusAhead struct {
		DraftID string               `json:"draft_id"`
		Status  reviewcontrol.Status `json:"status"`
	}
	draftListResponse struct {
		Drafts       []draftSummary               `json:"drafts"`
		NextAfterID  *string                      `json:"next_after_id"`
		Counts       map[reviewcontrol.Status]int `json:"counts,omitzero"`
		CountsOthers map[reviewcontrol.Status]int `json:"counts_others,omitzero"`
	}
	// draftSummary is a draft in a list, without what it says.
	draftSummary struct {
		ID          string               `json:"id"`
		Name        string               `json:"name"`
		Status      reviewcontrol.Status `json:"status"`
		SegmentID   string               `json:"segment_id"`
		SegmentName string               `json:"segment_name"`
		SegmentKind string               `json:"segment_kind"`
		TargetCount int                  `json:"target_count"`
		Decisions   decisions            `json:"decisions"`
		Delivery    delivery             `json:"delivery"`
		CreatedBy   *string              `json:"created_by"`
		Origin      struct {
			ExternalUserID string `json:"external_user_id"`
			HubUser        string `json:"hub_user"`
		} `json:"origin"`
		CreatedAt time.Time  `json:"created_at"`
		QueuedAt  *time.Time `json:"queued_at"`
	}
	draftResponse struct {
		draftSummary
		SubjectTemplate string  `json:"subject_template"`
		BodyTemplate    string  `json:"body_template"`
		SenderName      *string `json:"sender_name"`
		SenderEmail     *string `json:"sender_email"`
	}
	decisions struct {
		Pending  int `json:"pending"`
		Approved int `json:"approved"`
		Rejected int `json:"rejected"`
	}
	delivery struct {
		Sent       int `json:"sent"`
		Failed     int `json:"failed"`
		Suppressed int `json:"suppressed"`
		Unknown    int `json:"unknown"`
	}
	draftTargetsRequest struct {
		draftRequest
		After *int  `json:"after,omitempty"`
		Limit int   `json:"limit,omitempty"`
		IDs   []int `json:"ids,omitempty"`
	}
	draftTargetsResponse struct {
		Targets   []targetResponse `json:"targets"`
		NextAfter *int             `json:"next_after"`
	}
	recipientsRequest struct {
		draftRequest
		After *int `json:"after,omitempty"`
		Limit int  `json:"limit"`
	}
	recipientsResponse struct {
		Recipients []recipient `json:"recipients"`
		NextAfter  *int        `json:"next_after"`
	}
	recipient struct {
		Index      int    `json:"index"`
		ExternalID int64  `json:"external_id"`
		ToEmail    string `json:"to_email"`
		ToName     string `json:"to_name"`
		// Repeats is absent where nothing is repeated, and from an earlier release.
		Repeats string `json:"repeats,omitempty"`
	}
	targetResponse struct {
		recipient
		Subject string `json:"subject"`
		Body    string `json:"body"`
		HTML    bool   `json:"html"`
		// SubjectTemplate and BodyTemplate are absent where the draft's are meant.
		SubjectTemplate *string         `json:"subject_template,omitempty"`
		BodyTemplate    *string         `json:"body_template,omitempty"`
		Context         json.RawMessage `json:"context"`
		Snapshot        json.RawMessage `json:"snapshot"`
		// Doubts are absent where there are none, and from an earlier release.
		Doubts []string `json:"doubts,omitempty"`
	}
	transitionRequest struct {
		draftRequest
		From        []reviewcontrol.Status `json:"from"`
		To          reviewcontrol.Status   `json:"to"`
		QueuedAt    *time.Time             `json:"queued_at,omitempty"`
		OperationID string                 `json:"operation_id"`
		Version     int64                  `json:"version,omitempty"`
	}
	progressRequest struct {
		draftRequest
		Version    int64                        `json:"version"`
		Decisions  decisions                    `json:"decisions"`
		Delivery   delivery                     `json:"delivery"`
		Rejections map[reviewcontrol.Reason]int `json:"rejections"`
		// Rejected is nothing to a release of authoring that keeps none.
		Rejected []rejectedTarget `json:"rejected,omitempty"`
	}
	rejectedTarget struct {
		Index      int                  `json:"index"`
		ExternalID int64                `json:"external_id"`
		ToEmail    string               `json:"to_email"`
		Subject    string               `json:"subject"`
		Reason     reviewcontrol.Reason `json:"reason"`
		Note       string               `json:"note"`
		DecidedAt  time.Time            `json:"decided_at"`
	}
	nothing struct{}
)

// text is a text that may be null on the wire.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// draft is the draft as the domain has it. An id that is none is an error of authoring's, and nothing that a caller could
// mend.
func (d draftSummary) draft() (reviewcontrol.Draft, error) {
	id, ok := schema.ParseID(d.ID)
	if !ok {
		return reviewcontrol.Draft{}, fmt.Errorf("authoring answers a draft with the id %q", d.ID)
	}
	return reviewcontrol.Draft{
		ID: id, Name: d.Name, Status: d.Status,
		SegmentID: d.SegmentID, SegmentName: d.SegmentName, SegmentKind: d.SegmentKind, TargetCount: d.TargetCount,
		Counts: reviewcontrol.Counts{
			Pending: d.Decisions.Pending, Approved: d.Decisions.Approved, Rejected: d.Decisions.Rejected,
			Sent: d.Delivery.Sent, Failed: d.Delivery.Failed, Suppressed: d.Delivery.Suppressed, Unknown: d.Delivery.Unknown,
		},
		Maker:     reviewcontrol.Maker{CreatedBy: text(d.CreatedBy), HubUser: d.Origin.HubUser, ExternalUser: d.Origin.ExternalUserID},
		CreatedAt: d.CreatedAt, QueuedAt: d.QueuedAt,
	}, nil
}

// target is the recipient as the domain has it, with nothing decided.
func (t recipient) target() reviewcontrol.Target {
	return reviewcontrol.Target{
		Index: t.Index, ExternalID: t.ExternalID, ToEmail: t.ToEmail, ToName: t.ToName, Repeats: t.Repeats,
		Decision: reviewcontrol.Decision{Choice: reviewcontrol.Pending},
	}
}

// mail is what authoring has for the target.
func (t targetResponse) mail() reviewcontrol.Mail {
	return reviewcontrol.Mail{Subject: t.Subject, Body: t.Body, HTML: t.HTML,
		SubjectTemplate: text(t.SubjectTemplate), BodyTemplate: text(t.BodyTemplate), Context: some(t.Context), Snapshot: some(t.Snapshot),
		Doubts: t.Doubts, Repeats: t.Repeats}
}

// some is nil for a JSON null.
func some(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Draft implements Drafts.
func (d Drafts) Draft(ctx context.Context, id reviewcontrol.ID) (reviewcontrol.Draft, error) {
	answer, err := getDraft.Call(ctx, d.client, draftRequest{id.String()})
	if err != nil {
		return reviewcontrol.Draft{}, err
	}
	draft, err := answer.draft()
	draft.SubjectTemplate, draft.BodyTemplate = answer.SubjectTemplate, answer.BodyTemplate
	draft.SenderName, draft.SenderEmail = text(answer.SenderName), text(answer.SenderEmail)
	return draft, err
}

// Drafts implements Drafts.
func (d Drafts) Drafts(ctx context.Context, q reviewcontrol.DraftQuery) (reviewcontrol.DraftsFound, error) {
	in := draftListRequest{Limit: q.Limit, Search: q.Search, Others: q.Others, Count: !q.Uncounted}
	if q.Status != "" {
		in.Status = []reviewcontrol.Status{q.Status}
	}
	if q.ByQueue {
		in.Order = "queued"
	}
	if q.After != 0 {
		in.AfterID = q.After.String()
	}
	for _, m := range q.Makers {
		in.Makers = append(in.Makers, maker{m.CreatedBy, m.HubUser, m.ExternalUser})
	}
	for id, status := range q.Ahead {
		in.Ahead = append(in.Ahead, statusAhead{id.String(), status})
	}
	page, err := listDrafts.Call(ctx, d.client, in)
	if err != nil {
		return reviewcontrol.DraftsFound{}, err
	}
	found := reviewcontrol.DraftsFound{Drafts: make([]reviewcontrol.Draft, len(page.Drafts)), Counts: page.Counts, Others: page.CountsOthers}
	for i, x := range page.Drafts {
		if found.Drafts[i], err = x.draft(); err != nil {
			return reviewcontrol.DraftsFound{}, err
		}
	}
	found.Next, _ = schema.ParseID(text(page.NextAfterID))
	return found, nil
}

const (
	// The largest pages that authoring gives: of recipients, and of mails.
	recipientPage = 5000
	mailPage      = 500
)

// Recipients implements Drafts.
func (d Drafts) Recipients(ctx context.Context, id reviewcontrol.ID) ([]reviewcontrol.Target, error) {
	var targets []reviewcontrol.Target
	in := recipientsRequest{draftRequest: draftRequest{id.String()}, Limit: recipientPage}
	for {
		page, err := recipients.Call(ctx, d.client, in)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Recipients {
			targets = append(targets, t.target())
		}
		if page.NextAfter == nil {
			return targets, nil
		}
		if len(targets) > reviewcontrol.MaxIndex || len(page.Recipients) == 0 {
			return nil, fmt.Errorf("authoring names the recipients of draft %s without an end", id)
		}
		in.After = page.NextAfter
	}
}

// Page implements Drafts.
func (d Drafts) Page(ctx context.Context, id reviewcontrol.ID, after, limit int) ([]reviewcontrol.TargetView, int, error) {
	page, err := listTargets.Call(ctx, d.client, draftTargetsRequest{draftRequest: draftRequest{id.String()}, After: &after, Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	views := make([]reviewcontrol.TargetView, len(page.Targets))
	for i, t := range page.Targets {
		views[i] = reviewcontrol.TargetView{Target: t.target(), Mail: t.mail()}
	}
	if page.NextAfter == nil {
		return views, -1, nil
	}
	return views, *page.NextAfter, nil
}

// Mails implements Drafts. Authoring cuts a page by its size, so there may be several.
func (d Drafts) Mails(ctx context.Context, id reviewcontrol.ID, indexes []int, each func(int, reviewcontrol.Mail) error) error {
	left := slices.Sorted(slices.Values(indexes))
	for len(left) > 0 {
		page, err := listTargets.Call(ctx, d.client, draftTargetsRequest{
			draftRequest: draftRequest{id.String()}, IDs: left[:min(len(left), mailPage)],
		})
		if err != nil {
			return err
		}
		if len(page.Targets) == 0 {
			return reviewcontrol.MissingTarget(id, left[0])
		}
		for _, t := range page.Targets {
			if len(left) == 0 {
				return fmt.Errorf("authoring answers target %d of draft %s unasked", t.Index, id)
			}
			if t.Index != left[0] {
				return reviewcontrol.MissingTarget(id, left[0])
			}
			left = left[1:]
			if err := each(t.Index, t.mail()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Transition implements Drafts. Authoring is shown who has asked for it.
func (d Drafts) Transition(ctx context.Context, id reviewcontrol.ID, t reviewcontrol.Transition) error {
	_, err := transition.Call(ctx, d.client, transitionRequest{
		draftRequest: draftRequest{id.String()}, From: t.From, To: t.To, QueuedAt: t.QueuedAt, OperationID: t.Operation, Version: t.Version,
	})
	return err
}

// Progress implements Drafts.
func (d Drafts) Progress(ctx context.Context, r reviewcontrol.Review, rejections map[reviewcontrol.Reason]int,
	last []reviewcontrol.Target) error {
	c := r.Counts
	rejected := make([]rejectedTarget, len(last))
	for i, t := range last {
		rejected[i] = rejectedTarget{Index: t.Index, ExternalID: t.ExternalID, ToEmail: t.ToEmail, Subject: t.Inspection.Subject,
			Reason: t.Decision.Reason, Note: t.Decision.Note, DecidedAt: *t.Decision.At}
	}
	_, err := progress.Call(ctx, d.client, progressRequest{
		draftRequest: draftRequest{r.DraftID.String()}, Version: r.Version,
		Decisions: decisions{c.Pending, c.Approved, c.Rejected}, Delivery: delivery{c.Sent, c.Failed, c.Suppressed, c.Unknown},
		Rejections: rejections, Rejected: rejected,
	})
	return err
}
