package authoring

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/authoring/evidence"
	"hub.internal/services/authoring/template"
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
func Statuses() []string {
	return []string{string(Drafted), string(InReview), string(Approved), string(Rejected), string(Sent), string(Cancelled)}
}

// transitions is the whole of what may happen to a draft once it is stored. Conditions on
// targets, decisions and deliveries are review-control's, which owns those rows.
var transitions = []struct {
	from, to Status
	// agent tells that a call with an agent's credential may bring it about: an agent may
	// ask for a review and decide nothing.
	agent bool
}{
	{Drafted, InReview, true},
	{Drafted, Cancelled, false},
	{InReview, Cancelled, false},
	{InReview, Approved, false},
	{InReview, Rejected, false},
	{Approved, Sent, false},
	{Approved, Cancelled, false},
	{Approved, InReview, false},
}

// Transition asks a draft to change its status.
type Transition struct {
	// Operation names the wish: the same one again answers the same.
	Operation string
	// From is where the caller believes the draft to be, one of them.
	From []Status
	To   Status
	// QueuedAt is set by the transition from Drafted to InReview and by no other.
	QueuedAt *time.Time
	// Version is that of the counts which the caller knows of; 0 for none.
	Version int64
	// ByAgent tells that an agent's credential is behind it.
	ByAgent bool
}

// MaxOperation bounds the name of a transition's wish, in characters.
const MaxOperation = 200

// check judges a transition without looking at the draft. Its errors are E_VALIDATION with each violation.
func (t Transition) check() error {
	var v schema.Violations
	if t.Operation == "" {
		v.Add("/operation_id", "required", "is required")
	}
	v.Line("/operation_id", t.Operation, MaxOperation)
	if len(t.From) == 0 {
		v.Add("/from", "minItems", "must name at least one status")
	}
	for i, s := range append(slices.Clone(t.From), t.To) {
		if path := fmt.Sprintf("/from/%d", i); !slices.Contains(Statuses(), string(s)) {
			if i == len(t.From) {
				path = "/to"
			}
			v.Add(path, "enum", "must be one of %s", strings.Join(Statuses(), ", "))
		}
	}
	if t.QueuedAt != nil && t.To != InReview {
		v.Add("/queued_at", "queuedAt", "is set by the transition to in_review alone")
	}
	return v.Err()
}

// judge judges the transition of a draft whose status is now.
func (t Transition) judge(now Status) error {
	refused := fault.New(fault.Conflict, "The draft is %s, so it cannot become %s.", now, t.To).
		With(map[string]Status{"from": now, "to": t.To})
	if !slices.Contains(t.From, now) {
		return refused
	}
	for _, known := range transitions {
		if known.from == now && known.to == t.To {
			if t.ByAgent && !known.agent {
				return fault.New(fault.Scope, "An agent cannot make a draft %s.", t.To)
			}
			return nil
		}
	}
	return refused
}

// StatusChange is what a transition has done to a draft; it is kept under the name of its operation.
type StatusChange struct {
	DraftID  ID
	From, To Status
	QueuedAt *time.Time
	At       time.Time
	// Replayed tells that the same operation has done it before, so that nothing is left to be stored.
	Replayed bool
}

// Change says what the transition does to the draft at a time: the store writes exactly that. before is what was kept under the
// same operation, nil when there is none. It is answered again for the same wish, and E_IDEMPOTENCY for another one. A status that
// the draft cannot take, and counts older than the draft's, are E_CONFLICT; what an agent may not bring about is E_SCOPE.
func (d Draft) Change(t Transition, before *StatusChange, at time.Time) (StatusChange, error) {
	if before != nil {
		if before.DraftID != d.ID || before.To != t.To || !slices.Contains(t.From, before.From) {
			return StatusChange{}, OperationReused(t.Operation)
		}
		again := *before
		again.Replayed = true
		return again, nil
	}
	if err := t.judge(d.Status); err != nil {
		return StatusChange{}, err
	}
	if t.Version > 0 && t.Version < d.Progress.Version {
		return StatusChange{}, fault.New(fault.Conflict, "The draft has counts of version %d, so what is asked at version %d is out of date.",
			d.Progress.Version, t.Version).
			With(map[string]Status{"from": d.Status, "to": t.To})
	}
	queuedAt := d.QueuedAt
	if d.Status == Drafted && t.To == InReview {
		queuedAt = t.QueuedAt
	}
	return StatusChange{DraftID: d.ID, From: d.Status, To: t.To, QueuedAt: queuedAt, At: at}, nil
}

// OperationReused is E_IDEMPOTENCY for an operation that was used for another transition.
func OperationReused(operation string) error {
	return fault.New(fault.Idempotency, "The operation_id %q was used before for another transition.", operation)
}

const (
	// MaxDraftTargets is how many targets a draft may have.
	MaxDraftTargets = 10_000
	// maxToName and maxSenderName bound names, in characters.
	maxToName     = 200
	maxSenderName = 200
	// maxSubject bounds a subject with its values, in characters: RFC 5322's longest line.
	maxSubject = 998
	// MaxBody bounds a body with its values, in bytes. A few placeholders in a long template
	// could otherwise make terabytes of a request.
	MaxBody = 4 << 20
)

// Draft is a mail to many, as it was saved. Only Status, QueuedAt and Progress change.
type Draft struct {
	ID          ID
	Name        string
	Status      Status
	SegmentID   ID
	SegmentName string
	SegmentKind Kind
	// SubjectTemplate and BodyTemplate hold for each target without its own.
	SubjectTemplate, BodyTemplate string
	SenderName, SenderEmail       *string
	CreatedBy                     *string
	Origin                        Origin
	CreatedAt                     time.Time
	QueuedAt                      *time.Time
	TargetCount                   int
	Progress                      Progress
}

// DraftTarget is one recipient.
type DraftTarget struct {
	ExternalID int64
	ToEmail    string
	ToName     string
	// Subject and Body override the templates unless they are empty.
	Subject, Body string
	// Context is a JSON object, byte for byte as it was sent; nil without one.
	Context []byte
	// Doubts are what was doubted of whom it is for when it was saved: some of Context and Name.
	Doubts []string
	// TextHash is that of its texts and values; nil for targets of earlier releases.
	TextHash *int64
}

// DraftTargets are read one by one, and more than once. An error ends them.
type DraftTargets = iter.Seq2[DraftTarget, error]

// Mail is what one target receives.
type Mail struct {
	ToEmail, ToName string
	Subject, Body   string
	// HTML tells how Body is meant.
	HTML bool
}

// ContentHash is what approvals of earlier releases of review-control are bound to: SHA-256 over
// everything of the mail that depends on its target, each part behind its length, so that no two
// mails share one. It goes when none of them runs any more.
func (m Mail) ContentHash() [sha256.Size]byte {
	form := "text"
	if m.HTML {
		form = "html"
	}
	h := sha256.New()
	for _, p := range []string{"hub mail 1", m.Subject, form, m.Body, m.ToName, m.ToEmail} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Templates are a draft's subject and body, read once for all of its targets.
type Templates struct{ subject, body template.Template }

// Templates reads the draft's templates.
func (d Draft) Templates() (Templates, error) {
	subject, subjectErr := template.Parse(d.SubjectTemplate)
	body, bodyErr := template.Parse(d.BodyTemplate)
	subject.HTML = false // a subject is never HTML
	return Templates{subject, body}, errors.Join(subjectErr, bodyErr)
}

// forTarget returns the templates of one target: its own where it has them.
func (t Templates) forTarget(target DraftTarget) (own Templates, subjectErr, bodyErr error) {
	if target.Subject != "" {
		t.subject, subjectErr = template.Parse(target.Subject)
		t.subject.HTML = false
	}
	if target.Body != "" {
		t.body, bodyErr = template.Parse(target.Body)
	}
	return t, subjectErr, bodyErr
}

// values are what the placeholders of the target's texts stand for. The context is read at the first need, and once.
func (t DraftTarget) values() template.Values {
	context := sync.OnceValues(func() (map[string]jsontext.Value, error) { return evidence.Map(t.Context) })
	return template.Values{ToName: t.ToName, ToEmail: t.ToEmail, Context: context}
}

// Render makes the mail of a target. It fails for nothing that checked has let through.
func Render(t Templates, target DraftTarget) (Mail, error) {
	own, subjectErr, bodyErr := t.forTarget(target)
	if err := errors.Join(subjectErr, bodyErr); err != nil {
		return Mail{}, err
	}
	v := target.values()
	subject, subjectErr := own.subject.Render(v)
	body, bodyErr := own.body.Render(v)
	return Mail{ToEmail: target.ToEmail, ToName: target.ToName, Subject: subject, Body: body, HTML: own.body.HTML},
		errors.Join(subjectErr, bodyErr)
}

// validate judges a draft that is about to be stored, all but what the source has to say
// of its recipients, and counts its targets.
func (d Draft) validate(targets DraftTargets) (Draft, error) {
	var v schema.Violations
	v.Line("/name", d.Name, maxName)
	checkLabel(&v, "/createdBy", d.CreatedBy)
	if d.SenderName != nil {
		v.Line("/senderName", *d.SenderName, maxSenderName)
	}
	v.Line("/subjectTemplate", d.SubjectTemplate, maxSubject)
	v.Prose("/bodyTemplate", d.BodyTemplate)
	t := Templates{}
	t.subject = parseTemplate(&v, "/subjectTemplate", d.SubjectTemplate)
	t.subject.HTML = false
	t.body = parseTemplate(&v, "/bodyTemplate", d.BodyTemplate)
	for target, err := range targets {
		if err != nil {
			return Draft{}, err
		}
		i := d.TargetCount
		checkTarget(&v, i, t, target)
		d.TargetCount++
	}
	d.Progress.Decisions.Pending = int64(d.TargetCount)
	return d, v.Err()
}

// parseTemplate reads a template; what is wrong with a placeholder is a violation at the path.
func parseTemplate(v *schema.Violations, path, text string) template.Template {
	t, err := template.Parse(text)
	if err != nil {
		v.Add(path, "placeholder", "%s", err)
	}
	return t
}

// checkTarget judges one target's texts and what the templates become for it. A text that is too long is not made to its end.
func checkTarget(v *schema.Violations, i int, t Templates, target DraftTarget) {
	if !isPlainLine(target.ToName, maxToName) {
		v.Line(targetPath(i, "toName"), target.ToName, maxToName)
	}
	if !isPlainLine(target.Subject, maxSubject) {
		v.Line(targetPath(i, "subject"), target.Subject, maxSubject)
	}
	if target.Body != "" {
		v.Prose(targetPath(i, "body"), target.Body)
	}
	own, subjectErr, bodyErr := t.forTarget(target)
	if subjectErr != nil {
		v.Add(targetPath(i, "subject"), "placeholder", "%s", subjectErr)
	}
	if bodyErr != nil {
		v.Add(targetPath(i, "body"), "placeholder", "%s", bodyErr)
	}
	values := target.values()
	missing := map[string]bool{} // each once: a placeholder may be there many times
	report := func(err error) {
		if !missing[err.Error()] {
			missing[err.Error()] = true
			v.Add(targetPath(i), "placeholder", "%s", err)
		}
	}
	subject, blank := 0, true
	for piece, err := range own.subject.Pieces(values) {
		if err != nil {
			report(err)
			continue
		}
		if j := strings.IndexFunc(piece.Text, schema.Unprintable); j >= 0 && piece.IsValue {
			v.Add(targetPath(i), "controlCharacters", "puts a value with %s into the subject, which must be one line without control characters",
				schema.CodePoint(piece.Text[j:]))
		}
		blank = blank && !strings.ContainsFunc(piece.Text, schema.Visible)
		if subject += utf8.RuneCountInString(piece.Text); subject > maxSubject {
			v.Add(targetPath(i), "maxLength", "gets a subject of more than the %d characters that are allowed", maxSubject)
			break
		}
	}
	if subjectErr == nil && blank && len(missing) == 0 && subject <= maxSubject && !own.subject.IsEmpty() {
		v.Add(targetPath(i), "minLength", "gets a subject without a visible character")
	}
	body := 0
	for piece, err := range own.body.Pieces(values) {
		if err != nil {
			report(err)
			continue
		}
		if piece.IsValue {
			if j := strings.IndexFunc(piece.Text, schema.Control); j >= 0 {
				v.Add(targetPath(i), "controlCharacters", "puts a value with %s into the body", schema.CodePoint(piece.Text[j:]))
			}
		}
		if body += len(piece.Text); body > MaxBody {
			v.Add(targetPath(i), "maxBytes", "gets a body of more than the %d bytes that are allowed", MaxBody)
			break
		}
	}
}
