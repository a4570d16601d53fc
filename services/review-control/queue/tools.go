package queue

import (
	"embed"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	reviewcontrol "hub.internal/services/review-control"
)

const (
	queueForReview = "queue_for_review"
	scopeControl   = "control"
	maxActor       = 200
)

// Tools declares what agents can ask of review-control. Deciding and sending are not among
// them, whatever a credential holds.
func Tools(q *Queue) []tool.Tool {
	return []tool.Tool{queueForReviewTool(q)}
}

// queueForReviewIn is the input of queue_for_review.
type queueForReviewIn struct {
	DraftID string `json:"draftId"`
	Actor   string `json:"actor"`
	Note    string `json:"note"`
}

// check judges the texts, which people read.
func (in queueForReviewIn) check() error {
	var v schema.Violations
	v.Line("/actor", in.Actor, maxActor)
	v.Prose("/note", in.Note)
	return v.Err()
}

// queueForReviewTool declares queue_for_review, the one tool of review-control.
func queueForReviewTool(q *Queue) tool.Tool {
	return tool.New(tool.Declaration{
		Name: queueForReview, Position: 15, Category: tool.Control, Scope: scopeControl, Write: true,
		Description: "Hand a draft over to people, the last step after save_message_draft. A reviewer opens review_url in a browser and " +
			"approves or rejects each target; approved mails are then sent. No tool approves, rejects, cancels or sends. The suppression list is " +
			"checked now and again before each mail. Follow it with list_drafts.",
		Input: schema.Object(
			schema.Required("draftId", schema.String("Id of a draft in status draft: draft_id of save_message_draft.")),
			schema.Optional("actor", schema.String("Who asks for the review, as a label; the audit log keeps the credential.",
				schema.Length(0, maxActor))),
			schema.Optional("note", schema.String("What reviewers should know.", schema.Length(0, reviewcontrol.MaxNote))),
		),
		Output: schema.Of[ReviewQueued](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, or a text has control characters; details.violations lists every violation."},
			{Code: fault.NotFound, Reason: "There is no draft of that id."},
			{Code: fault.Conflict,
				Reason: "The draft is not in status draft: details.from is where it is, details.to is in_review. Or another call is queueing it, " +
					"with this Idempotency-Key (details.code is REQUEST_IN_PROGRESS) or another."},
			{Code: fault.Suppressed,
				Reason: "Targets are on the suppression list: details.targets lists each as {index, externalId, toEmail}. The draft is unchanged; " +
					"save it again without them."},
			{Code: fault.DB,
				Reason: "The write store, or the authoring service, cannot be reached right now. Try again in a moment, " +
					"with the same Idempotency-Key."},
		},
		Limits:   map[string]int64{"max_actor_chars": maxActor, "max_note_chars": reviewcontrol.MaxNote},
		Examples: tool.Examples(exampleFiles, queueForReview),
	}, q.ForReview)
}

// The examples' answers are as TestExamples gets them; `go test -run TestExamples -update`
// writes them.
//
//go:embed examples/*.json
var exampleFiles embed.FS
