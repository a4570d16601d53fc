package authoring

import (
	"embed"
	"encoding/json"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

const (
	createSegment    = "create_segment"
	saveMessageDraft = "save_message_draft"

	// scopeQuery lists what is stored, and scopeAuthor stores.
	scopeQuery  = "query"
	scopeAuthor = "author"

	// maxWrite bounds the body of the two writes.
	maxWrite = 32 << 20
	// defaultList and maxList are how many entries a list has without a limit, and at most.
	defaultList = 20
	maxList     = 100
)

// Manifest is what authoring owns.
func Manifest() tool.Manifest {
	s := New(Config{})
	return rpc.Manifest("authoring", Tools(s), Operations(s))
}

// Tools declares what agents can ask of authoring.
func Tools(s *Service) []tool.Tool {
	return []tool.Tool{listSegmentsTool(s), listDraftsTool(s), createSegmentTool(s), saveMessageDraftTool(s)}
}

// listSegmentsIn is the input of list_segments; the schema below declares its bounds.
type listSegmentsIn struct {
	Limit     int64  `json:"limit"`
	Kind      string `json:"kind"`
	SegmentID string `json:"segmentId"`
	Offset    int64  `json:"offset"`
}

// listSegmentsTool declares list_segments.
func listSegmentsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "list_segments", Position: 10, Category: tool.Query, Scope: scopeQuery,
		Description: "The stored segments (named lists of targets), newest first, with their number of targets and who made them.",
		Input: schema.Object(
			schema.Optional("limit", schema.Integer("", schema.Range(1, maxList), schema.Default(defaultList))),
			schema.Optional("kind", schema.String("Only segments of this kind.", schema.Enum(Kinds()...))),
			schema.Optional("segmentId", schema.String("", schema.Length(1, 0))),
			schema.Optional("offset", schema.Integer("", schema.Min(0), schema.Default(0))),
		),
		Errors:   readErrors(),
		Limits:   map[string]int64{"default_limit": defaultList, "max_limit": maxList},
		Examples: examples("list_segments"),
	}, s.ListSegments)
}

// listDraftsIn is the input of list_drafts.
type listDraftsIn struct {
	Limit   int64  `json:"limit"`
	Status  string `json:"status"`
	DraftID string `json:"draftId"`
	Offset  int64  `json:"offset"`
}

// listDraftsTool declares list_drafts.
func listDraftsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "list_drafts", Position: 11, Category: tool.Query, Scope: scopeQuery,
		Description: "The stored drafts, newest first: status, segment, how far the review is (decisions) and the sending (delivery). " +
			"rejected lists what people rejected, with their note and reason, to write exactly those again: recipient (the wrong one), " +
			"content (wrong or untrue), tone (or language), timing (not now), duplicate (asked already), other. A draft goes draft → " +
			"in_review (queue_for_review) → approved (→ sent) or rejected by people, who may cancel or undo.",
		Input: schema.Object(
			schema.Optional("limit", schema.Integer("", schema.Range(1, maxList), schema.Default(defaultList))),
			schema.Optional("status", schema.String("Only drafts in this status.", schema.Enum(Statuses()...))),
			schema.Optional("draftId", schema.String("", schema.Length(1, 0))),
			schema.Optional("offset", schema.Integer("", schema.Min(0), schema.Default(0))),
		),
		Errors:   readErrors(),
		Limits:   map[string]int64{"default_limit": defaultList, "max_limit": maxList},
		Examples: examples("list_drafts"),
	}, s.ListDrafts)
}

// createSegmentIn is the input of create_segment. Targets stay as they were sent: they are read one by one (targets.go), since a body
// of 32 MiB is not to be held in a second form.
type createSegmentIn struct {
	Name        string          `json:"name"`
	Kind        string          `json:"kind"`
	Description *string         `json:"description"`
	CreatedBy   *string         `json:"createdBy"`
	Targets     json.RawMessage `json:"targets"`
}

// createSegmentTool declares create_segment.
func createSegmentTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: createSegment, Position: 13, Category: tool.Author, Scope: scopeAuthor, Write: true, MaxBody: maxWrite,
		Description: "Store a named list of targets, the second step after search_brands. Each target is an id of the source and a snapshot, " +
			"kept unchanged as evidence for reviewers and audit: {} takes the source's row now, or send the row that a search tool " +
			"answered. Name each externalId once. Use the segment_id with save_message_draft.",
		Input: schema.Object(
			schema.Required("name", schema.String("Name of the segment.", schema.Length(1, maxName))),
			schema.Required("kind", schema.String("What externalId is the id of. partner and brand mean a corporate unit.",
				schema.Enum(Kinds()...))),
			schema.Optional("description", schema.String("What the segment is for.", schema.Length(0, maxDescription))),
			schema.Optional("createdBy", schema.String("Who makes it, as a label; the audit log keeps the credential.",
				schema.Length(0, maxCreatedBy))),
			schema.Required("targets", schema.Array("The targets.", schema.Object(
				schema.Required("externalId", schema.Integer("Primary key of the partner, brand or campaign in the source.", schema.Min(0))),
				schema.Required("snapshot", schema.FreeObject("{}, or the row as a search tool answered it.")),
			), schema.Items(0, MaxSegmentTargets))),
		),
		Output: schema.Of[SegmentCreated](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, names a target twice, has more than 50,000 targets or 32 MiB; details.violations lists every " +
					"violation, up to 50."},
			{Code: fault.DB, Reason: storeAway + " Or rows for empty snapshots could not be read; nothing is stored."},
		},
		Limits:   map[string]int64{"max_targets": MaxSegmentTargets, "max_body_bytes": maxWrite},
		Examples: examples(createSegment),
	}, s.CreateSegment)
}

// saveMessageDraftIn is the input of save_message_draft. Targets stay as they were sent, as those of a segment.
type saveMessageDraftIn struct {
	SegmentID       string          `json:"segmentId"`
	Name            string          `json:"name"`
	SubjectTemplate string          `json:"subjectTemplate"`
	BodyTemplate    string          `json:"bodyTemplate"`
	SenderName      *string         `json:"senderName"`
	SenderEmail     *string         `json:"senderEmail"`
	CreatedBy       *string         `json:"createdBy"`
	Targets         json.RawMessage `json:"targets"`
}

// saveMessageDraftTool declares save_message_draft.
func saveMessageDraftTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: saveMessageDraft, Position: 14, Category: tool.Author, Scope: scopeAuthor, Write: true, MaxBody: maxWrite,
		Description: "Save a mail to many as a draft, the third step after create_segment. Nothing is sent: queue_for_review hands the draft " +
			"to people who decide on each target. Subjects and bodies may hold {{toName}}, {{toEmail}} and {{context.KEY}}, and every target " +
			"needs a value for each placeholder it gets; a target's own subject or body overrides the template. HTML keeps plain markup and " +
			"inline styles that every mail program shows alike; what recipients will not get (style sheets, scripts, forms, whatever hides or " +
			"moves text) is answered as removed. Each toEmail has to be a verified contact of the partner externalId with an active account " +
			"(search_partner_contacts lists them), and never a B2C member. Reviewers see when several mails of a draft go to one address.",
		Input: schema.Object(
			schema.Required("segmentId", schema.String("Id of an existing segment: segment_id of create_segment.")),
			schema.Required("name", schema.String("Name of the draft, for reviewers.", schema.Length(1, maxName))),
			schema.Required("subjectTemplate", schema.String("Subject for each target without its own: one line.", schema.Length(1, 0))),
			schema.Required("bodyTemplate",
				schema.String("Body for each target without its own: HTML, or plain text when it has no tags. Values are written as text.",
					schema.Length(1, 0))),
			schema.Optional("senderName", schema.String("Name of the sender: one line.")),
			schema.Optional("senderEmail", schema.String("Address of the sender.", schema.Format(schema.Email))),
			schema.Optional("createdBy", schema.String("Who makes it, as a label; the audit log keeps the credential.",
				schema.Length(0, maxCreatedBy))),
			schema.Required("targets", schema.Array("The recipients.", schema.Object(
				schema.Required("externalId", schema.Integer("Id of the partner (B2B only).", schema.Min(0))),
				schema.Required("toEmail", schema.String("Address of a verified contact of that partner.", schema.Format(schema.Email))),
				schema.Optional("toName", schema.String("Name of the recipient: one line. Empty is none.")),
				schema.Optional("subject", schema.String("Overrides subjectTemplate unless it is empty.")),
				schema.Optional("body", schema.String("Overrides bodyTemplate unless it is empty.")),
				schema.Optional("context", schema.FreeObject("What the reviewer sees beside the mail, and the values of {{context.KEY}}.")),
			), schema.Items(1, MaxDraftTargets))),
		),
		Output: schema.Of[DraftSaved](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, a text has control characters, a placeholder has no value or is unknown (details.violations " +
					"lists up to 50), or recipients may not be written to: details.targets lists each as {index, externalId, toEmail, reason}, reason " +
					"being unknown_partner, not_a_verified_contact or b2c_member."},
			{Code: fault.NotFound, Reason: "There is no segment of that id."},
			{Code: fault.DBTimeout,
				Reason: "The source database did not answer in time, so the recipients could not be checked; nothing is stored."},
			{Code: fault.DB, Reason: storeAway + " Or the recipients could not be checked; nothing is stored."},
		},
		Limits: map[string]int64{"max_targets": MaxDraftTargets, "max_body_bytes": maxWrite, "max_rendered_body_bytes": MaxBody,
			"max_rendered_subject_chars": maxSubject},
		Examples: examples(saveMessageDraft),
	}, s.SaveMessageDraft)
}

// storeAway is what a write answers while the store cannot be reached: the key makes it safe to send it again.
const storeAway = "The write store cannot be reached right now. Try again in a moment, with the same Idempotency-Key."

// readErrors are those of the tools that only read.
func readErrors() []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
		{Code: fault.DB, Reason: "The write store cannot be reached right now. Try again in a moment."},
	}
}

//go:embed examples/*.json
var exampleFiles embed.FS

// examples are a tool's requests with their answers, as TestExamples gets them;
// `go test -run TestExamples -update` writes the answers.
func examples(name string) []tool.Example { return tool.Examples(exampleFiles, name) }
