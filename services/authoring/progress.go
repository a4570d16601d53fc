package authoring

import (
	"strings"
	"time"

	"hub.internal/pkg/fault"
)

// Progress counts a draft's targets by decision and by delivery. review-control counts;
// the greatest Version is the newest.
type Progress struct {
	Version    int64
	Decisions  Decisions
	Delivery   Delivery
	Rejections Rejections
	// Rejected are the newest of the rejected targets, at most maxRejected. They are stored, and read by Store.Rejected alone.
	Rejected []RejectedTarget
}

// RejectedTarget is a target that a reviewer has rejected, with what they wrote for whoever writes the mail again.
type RejectedTarget struct {
	// Index is the place of the target in its draft.
	Index      int    `json:"index"`
	ExternalID int64  `json:"external_id"`
	ToEmail    string `json:"to_email"`
	// Subject is that of the mail as reviewers saw it; empty when nobody had looked through it yet.
	Subject string `json:"subject"`
	// Reason is one of those that Rejections counts; empty without one.
	Reason string `json:"reason"`
	// Note is the reviewer's; empty without one.
	Note      string    `json:"note"`
	DecidedAt time.Time `json:"decided_at"`
}

// maxRejected is how many rejected targets are kept of a draft.
const maxRejected = 50

// check judges what may not be stored.
func (t RejectedTarget) check(targets int) error {
	if t.Index < 0 || t.Index >= targets {
		return fault.New(fault.Validation, "A rejected target has an index below %d, not %d.", targets, t.Index)
	}
	if t.Reason != "" && !isReason(t.Reason) {
		return badReason()
	}
	if strings.Contains(t.ToEmail+t.Subject+t.Note, "\x00") {
		return fault.New(fault.Validation, "A rejected target's texts have no NUL.")
	}
	return nil
}

// isReason tells whether a text may name a reason.
func isReason(reason string) bool {
	return reason != "" && len(reason) <= maxReason && strings.Trim(reason, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// badReason refuses a text that isReason does not take.
func badReason() error {
	return fault.New(fault.Validation, "A reason is a name of at most %d small letters.", maxReason)
}

// Rejections counts rejected targets by the reason that their reviewer chose; those without one are not among them.
type Rejections map[string]int64

// Bounds of what review-control may tell of reasons.
const (
	// maxReasons is how many reasons there may be, of at most maxReason bytes.
	maxReasons, maxReason = 20, 40
)

// check holds the reasons to so many rejected targets.
func (r Rejections) check(rejected int64) error {
	sum := int64(0)
	for reason, n := range r {
		if !isReason(reason) {
			return badReason()
		}
		if n < 1 || n > rejected {
			return fault.New(fault.Validation, "The counter of a reason must be between 1 and the %d rejected targets, not %d.", rejected, n)
		}
		sum += n
	}
	if sum > rejected || len(r) > maxReasons {
		return fault.New(fault.Validation, "There may be %d reasons, of at most the %d rejected targets.", maxReasons, rejected)
	}
	return nil
}

// orEmpty is r, or empty where nothing is known.
func (r Rejections) orEmpty() Rejections {
	if r == nil {
		return Rejections{}
	}
	return r
}

// Decisions counts targets by what reviewers decided.
type Decisions struct {
	Pending  int64 `json:"pending" jsonschema:"Targets that nobody has decided on; list_drafts counts none before queue_for_review"`
	Approved int64 `json:"approved" jsonschema:"Approved targets"`
	Rejected int64 `json:"rejected" jsonschema:"Rejected targets"`
}

// Delivery counts approved targets by what became of their mail. Each is counted once. Releases of review-control that tell
// nothing of Unknown have those in Failed.
type Delivery struct {
	Sent       int64 `json:"sent" jsonschema:"Mails handed over"`
	Failed     int64 `json:"failed" jsonschema:"Mails that failed for good"`
	Suppressed int64 `json:"suppressed" jsonschema:"Mails not sent because the recipient is on the suppression list"`
	Unknown    int64 `json:"unknown" jsonschema:"Mails that may have arrived: the hand-over broke in the middle, and they are never sent again"`
}

// Count says which progress the draft has after it was told p: p itself, or what it has when that is as new. The store writes exactly
// what has changed. Counters that do not fit the draft are E_VALIDATION.
func (d Draft) Count(p Progress) (now Progress, changed bool, err error) {
	if err := p.check(d.TargetCount); err != nil {
		return Progress{}, false, err
	}
	if d.Progress.Version >= p.Version {
		return d.Progress, false, nil
	}
	return p, true, nil
}

// check holds the counters to a draft with so many targets.
func (p Progress) check(targets int) error {
	counts := []int64{p.Decisions.Pending, p.Decisions.Approved, p.Decisions.Rejected, p.Delivery.Sent, p.Delivery.Failed,
		p.Delivery.Suppressed, p.Delivery.Unknown}
	decided, delivered := int64(0), int64(0)
	for i, n := range counts {
		if n < 0 || n > MaxDraftTargets {
			return fault.New(fault.Validation, "A counter must be between 0 and %d, not %d.", MaxDraftTargets, n)
		}
		if i < 3 {
			decided += n
		} else {
			delivered += n
		}
	}
	if p.Version < 1 || decided != int64(targets) || delivered > p.Decisions.Approved {
		return fault.New(fault.Validation,
			"The version has to be positive, decisions have to add up to the draft's %d targets, and delivery to at most those approved.", targets)
	}
	if len(p.Rejected) > maxRejected || int64(len(p.Rejected)) > p.Decisions.Rejected {
		return fault.New(fault.Validation, "At most %d rejected targets are told, and at most those that are counted.", maxRejected)
	}
	for _, t := range p.Rejected {
		if err := t.check(targets); err != nil {
			return err
		}
	}
	return p.Rejections.check(p.Decisions.Rejected)
}
