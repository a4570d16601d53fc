package reviewcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
)

// Neighbour is the authoring service as the keeper of drafts.
type Neighbour struct{ Client *remote.Client }

var _ Drafts = Neighbour{}

// Where authoring serves drafts.
const (
	draftGetPath        = "/internal/drafts/get"
	draftListPath       = "/internal/drafts/list"
	draftTargetsPath    = "/internal/drafts/targets"
	draftRecipientsPath = "/internal/drafts/recipients"
	draftTransitionPath = "/internal/drafts/transition"
	draftProgressPath   = "/internal/drafts/progress"
)

type (
	draftRequest struct {
		DraftID string `json:"draft_id"`
	}
	draftListRequest struct {
		Status  []Status `json:"status,omitempty"`
		AfterID string   `json:"after_id,omitempty"`
		Limit   int      `json:"limit"`
	}
	draftListResponse struct {
		Drafts      []draftResponse `json:"drafts"`
		NextAfterID *string         `json:"next_after_id"`
	}
	draftResponse struct {
		ID          string    `json:"id"`
		Name        string    `json:"name"`
		Status      Status    `json:"status"`
		SegmentID   string    `json:"segment_id"`
		SegmentName string    `json:"segment_name"`
		SegmentKind string    `json:"segment_kind"`
		TargetCount int       `json:"target_count"`
		Decisions   decisions `json:"decisions"`
		Delivery    delivery  `json:"delivery"`
		CreatedBy   *string   `json:"created_by"`
		Origin      struct {
			ExternalUserID string `json:"external_user_id"`
			HubUser        string `json:"hub_user"`
		} `json:"origin"`
		CreatedAt       time.Time  `json:"created_at"`
		QueuedAt        *time.Time `json:"queued_at"`
		SubjectTemplate string     `json:"subject_template"`
		BodyTemplate    string     `json:"body_template"`
		SenderName      *string    `json:"sender_name"`
		SenderEmail     *string    `json:"sender_email"`
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
		Recipients []targetResponse `json:"recipients"`
		NextAfter  *int             `json:"next_after"`
	}
	targetResponse struct {
		Index      int             `json:"index"`
		ExternalID int64           `json:"external_id"`
		ToEmail    string          `json:"to_email"`
		ToName     string          `json:"to_name"`
		Subject    string          `json:"subject"`
		Body       string          `json:"body"`
		HTML       bool            `json:"html"`
		Context    json.RawMessage `json:"context"`
		Snapshot   json.RawMessage `json:"snapshot"`
	}
	transitionRequest struct {
		draftRequest
		From        []Status   `json:"from"`
		To          Status     `json:"to"`
		QueuedAt    *time.Time `json:"queued_at,omitempty"`
		OperationID string     `json:"operation_id"`
	}
	progressRequest struct {
		draftRequest
		Version   int64     `json:"version"`
		Decisions decisions `json:"decisions"`
		Delivery  delivery  `json:"delivery"`
	}
	nothing struct{}
)

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (d draftResponse) draft() (Draft, error) {
	id, ok := ParseID(d.ID)
	if !ok {
		return Draft{}, fmt.Errorf("authoring answers a draft with the id %q", d.ID)
	}
	return Draft{ID: id, Name: d.Name, Status: d.Status, SegmentID: d.SegmentID, SegmentName: d.SegmentName, SegmentKind: d.SegmentKind, TargetCount: d.TargetCount,
		Counts: Counts{Pending: d.Decisions.Pending, Approved: d.Decisions.Approved, Rejected: d.Decisions.Rejected, Sent: d.Delivery.Sent, Failed: d.Delivery.Failed, Suppressed: d.Delivery.Suppressed},
		Maker:  Maker{CreatedBy: text(d.CreatedBy), HubUser: d.Origin.HubUser, ExternalUser: d.Origin.ExternalUserID}, CreatedAt: d.CreatedAt, QueuedAt: d.QueuedAt,
		SubjectTemplate: d.SubjectTemplate, BodyTemplate: d.BodyTemplate, SenderName: text(d.SenderName), SenderEmail: text(d.SenderEmail)}, nil
}

func (t targetResponse) target() Target {
	return Target{Index: t.Index, ExternalID: t.ExternalID, ToEmail: t.ToEmail, ToName: t.ToName, Decision: Decision{Choice: Pending}}
}

func (t targetResponse) mail() Mail {
	return Mail{Subject: t.Subject, Body: t.Body, HTML: t.HTML, Context: some(t.Context), Snapshot: some(t.Snapshot)}
}

// some is nil for a JSON null.
func some(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Draft implements Drafts.
func (n Neighbour) Draft(ctx context.Context, id ID) (Draft, error) {
	d, err := remote.Operation[draftRequest, draftResponse]{Path: draftGetPath, Repeatable: true}.Call(ctx, n.Client, draftRequest{id.String()})
	if err != nil {
		return Draft{}, err
	}
	return d.draft()
}

// Drafts implements Drafts.
func (n Neighbour) Drafts(ctx context.Context, status Status, below ID, limit int) ([]Draft, ID, error) {
	in := draftListRequest{Limit: limit}
	if status != "" {
		in.Status = []Status{status}
	}
	if below != 0 {
		in.AfterID = below.String()
	}
	page, err := remote.Operation[draftListRequest, draftListResponse]{Path: draftListPath, Repeatable: true}.Call(ctx, n.Client, in)
	if err != nil {
		return nil, 0, err
	}
	drafts := make([]Draft, len(page.Drafts))
	for i, d := range page.Drafts {
		if drafts[i], err = d.draft(); err != nil {
			return nil, 0, err
		}
	}
	next, _ := ParseID(text(page.NextAfterID))
	return drafts, next, nil
}

const (
	// The largest pages that authoring gives: of recipients, and of mails.
	recipientPage = 5000
	mailPage      = 500
)

// Recipients implements Drafts.
func (n Neighbour) Recipients(ctx context.Context, id ID) ([]Target, error) {
	var targets []Target
	in := recipientsRequest{draftRequest: draftRequest{id.String()}, Limit: recipientPage}
	for {
		page, err := remote.Operation[recipientsRequest, recipientsResponse]{Path: draftRecipientsPath, Repeatable: true}.Call(ctx, n.Client, in)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Recipients {
			targets = append(targets, t.target())
		}
		if page.NextAfter == nil {
			return targets, nil
		}
		if len(targets) > maxIndex || len(page.Recipients) == 0 {
			return nil, fmt.Errorf("authoring names the recipients of draft %s without an end", id)
		}
		in.After = page.NextAfter
	}
}

// Page implements Drafts.
func (n Neighbour) Page(ctx context.Context, id ID, after, limit int) ([]TargetView, int, error) {
	page, err := remote.Operation[draftTargetsRequest, draftTargetsResponse]{Path: draftTargetsPath, Repeatable: true}.Call(ctx, n.Client, draftTargetsRequest{draftRequest: draftRequest{id.String()}, After: &after, Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	views := make([]TargetView, len(page.Targets))
	for i, t := range page.Targets {
		views[i] = TargetView{Target: t.target(), Mail: t.mail()}
	}
	if page.NextAfter == nil {
		return views, -1, nil
	}
	return views, *page.NextAfter, nil
}

// Mails implements Drafts. Authoring cuts a page by its size, so there may be several.
func (n Neighbour) Mails(ctx context.Context, id ID, indexes []int, each func(int, Mail) error) error {
	left := slices.Sorted(slices.Values(indexes))
	for len(left) > 0 {
		page, err := remote.Operation[draftTargetsRequest, draftTargetsResponse]{Path: draftTargetsPath, Repeatable: true}.Call(ctx, n.Client, draftTargetsRequest{draftRequest: draftRequest{id.String()}, IDs: left[:min(len(left), mailPage)]})
		if err != nil {
			return err
		}
		if len(page.Targets) == 0 {
			return missingTarget(id, left[0])
		}
		for _, t := range page.Targets {
			if len(left) == 0 {
				return fmt.Errorf("authoring answers target %d of draft %s unasked", t.Index, id)
			}
			if t.Index != left[0] {
				return missingTarget(id, left[0])
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
func (n Neighbour) Transition(ctx context.Context, id ID, from []Status, to Status, queuedAt *time.Time, operation string) error {
	_, err := remote.Operation[transitionRequest, nothing]{Path: draftTransitionPath, Repeatable: true, ForCaller: true}.Call(ctx, n.Client, transitionRequest{draftRequest: draftRequest{id.String()}, From: from, To: to, QueuedAt: queuedAt, OperationID: operation})
	return err
}

// Progress implements Drafts. What authoring calls failed has no proof of its arrival.
func (n Neighbour) Progress(ctx context.Context, r Review) error {
	c := r.Counts
	_, err := remote.Operation[progressRequest, nothing]{Path: draftProgressPath, Repeatable: true}.Call(ctx, n.Client, progressRequest{draftRequest: draftRequest{r.DraftID.String()}, Version: r.Version, Decisions: decisions{c.Pending, c.Approved, c.Rejected},
		Delivery: delivery{c.Sent, c.Failed + c.Unknown, c.Suppressed}})
	return err
}

// Elsewhere is where a draft is that a transition did not find in any status it may leave;
// "" when err is something else.
func Elsewhere(err error) Status {
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
