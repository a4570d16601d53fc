package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

// state is the badge of whatever has one; "Unknown" for what the table does not have, such as a state of a later release.
func state(of any) web.Badge {
	if badge, known := stateBadges[of]; known {
		return badge
	}
	return web.Badge{Text: "Unknown"}
}

// stateBadges has the word and the colour of each status of a draft, choice about a mail and state of a delivery.
var stateBadges = map[any]web.Badge{
	reviewcontrol.Drafted:    {Text: "Draft"},
	reviewcontrol.InReview:   {Kind: "info", Text: "In review"},
	reviewcontrol.Approved:   {Kind: "good", Text: "Approved"},
	reviewcontrol.Rejected:   {Kind: "bad", Text: "Rejected"},
	reviewcontrol.Sent:       {Kind: "good", Text: "Sent"},
	reviewcontrol.Cancelled:  {Text: "Cancelled"},
	reviewcontrol.Pending:    {Text: "To decide"},
	reviewcontrol.Approve:    {Kind: "good", Text: "Approved"},
	reviewcontrol.Reject:     {Kind: "bad", Text: "Rejected"},
	reviewcontrol.NotDue:     {Text: "Not sent"},
	reviewcontrol.Queued:     {Kind: "info", Text: "Waiting to be sent"},
	reviewcontrol.Sending:    {Kind: "info", Text: "Being sent"},
	reviewcontrol.Delivered:  {Kind: "good", Text: "Sent"},
	reviewcontrol.Failed:     {Kind: "bad", Text: "Failed"},
	reviewcontrol.Changed:    {Kind: "bad", Text: "Not sent: content changed"},
	reviewcontrol.Suppressed: {Kind: "warn", Text: "Suppressed"},
	reviewcontrol.Unknown:    {Kind: "warn", Text: "Unknown"},
}

// flagged is a flag as people see it.
type flagged struct {
	Name  string
	Badge web.Badge
	// Says is a sentence about the mail.
	Says string
}

// flaggedOf are flags as people see them, the gravest first.
func flaggedOf(f triage.Flag) (list []flagged) {
	for _, one := range f.Each() {
		says := one.Says()
		list = append(list, flagged{one.Name(), flagBadges[one], strings.ToUpper(says[:1]) + says[1:] + "."})
	}
	return list
}

// flagBadges name the flags, by how grave they are.
var flagBadges = map[triage.Flag]web.Badge{
	triage.Misleading: {Kind: "bad", Text: "Misleading link"},
	triage.Suppressed: {Kind: "bad", Text: "Suppressed since"},
	triage.Warned:     {Kind: "warn", Text: "Look closely"},
	triage.Unmarked:   {Kind: "bad", Text: "No mark"},
	triage.NoFooter:   {Kind: "bad", Text: "No footer"},
	triage.Stray:      {Kind: "bad", Text: "Another's context"},
	triage.Misnamed:   {Kind: "warn", Text: "Another's name"},
	triage.Unfinished: {Kind: "warn", Text: "Unfinished text"},
	triage.Forged:     {Kind: "warn", Text: "Private sender"},
	triage.Repeated:   {Kind: "warn", Text: "Repeated"},
	triage.PromptLike: {Kind: "warn", Text: "Prompt-like text"},
	triage.Outside:    {Kind: "warn", Text: "Not in the segment"},
	triage.Duplicate:  {Kind: "warn", Text: "Address twice"},
	triage.Removed:    {Kind: "warn", Text: "Markup taken out"},
	triage.Large:      {Kind: "", Text: "May need scrolling"},
	triage.Recent:     {Kind: "", Text: "Recent mail"},
}

// reasons are those to choose from when a mail is rejected.
func reasons() []web.Option {
	list := []web.Option{{Value: "", Text: "No reason given"}}
	for _, r := range reviewcontrol.Reasons() {
		list = append(list, web.Option{Value: string(r), Text: reasonText(r)})
	}
	return list
}

// reasonText is a reason in words; one of a later release is shown as it is.
func reasonText(r reviewcontrol.Reason) string { return cmp.Or(reasonTexts[r], string(r)) }

// reasonTexts has the words for each reason to reject a mail.
var reasonTexts = map[reviewcontrol.Reason]string{
	reviewcontrol.WrongRecipient: "Wrong person or company",
	reviewcontrol.WrongContent:   "Wrong or untrue content",
	reviewcontrol.WrongTone:      "Tone or language",
	reviewcontrol.WrongTime:      "Not now",
	reviewcontrol.AlreadyAsked:   "Asked already",
	reviewcontrol.OtherReason:    "Another reason",
}

// bars are what is done of a draft: its review, and the sending of what was approved.
type bars struct {
	Status           reviewcontrol.Status
	Counts           reviewcontrol.Counts
	Review, Delivery web.Bar
	// Delivers tells that mails are, or were, on their way.
	Delivers bool
}

// barsOf are the bars of a draft with these counts.
func barsOf(status reviewcontrol.Status, c reviewcontrol.Counts) bars {
	n := web.Number
	return bars{
		Status: status, Counts: c,
		Review: web.Bar{
			Total: c.Total(),
			Label: fmt.Sprintf("%s of %s decided: %s approved, %s rejected", n(c.Decided()), n(c.Total()), n(c.Approved), n(c.Rejected)),
			Parts: []web.Part{{Kind: "good", Count: c.Approved}, {Kind: "bad", Count: c.Rejected}},
		},
		Delivery: web.Bar{
			Total: c.Approved,
			Label: fmt.Sprintf("%s of %s mails: %s sent, %s failed, %s suppressed, %s unknown",
				n(c.Approved-c.Waiting()), n(c.Approved), n(c.Sent), n(c.Failed), n(c.Suppressed), n(c.Unknown)),
			Parts: []web.Part{{Kind: "good", Count: c.Sent}, {Kind: "bad", Count: c.Failed}, {Kind: "warn", Count: c.Suppressed + c.Unknown}},
		},
		Delivers: status == reviewcontrol.Approved || status == reviewcontrol.Sent || c.Sent+c.Failed+c.Suppressed+c.Unknown > 0,
	}
}

// Last tells what the last decision brings, while there is one mail left.
func (b bars) Last() string {
	switch {
	case b.Status != reviewcontrol.InReview || b.Counts.Pending != 1:
		return ""
	case b.Counts.Approved == 0:
		return "One mail is left. Your decision ends the review: if you approve it, it is sent; if you reject it, nothing is."
	case b.Counts.Approved == 1:
		return "One mail is left. Your decision ends the review: if you approve it, 2 mails are sent; if you reject it, 1."
	}
	return fmt.Sprintf("One mail is left. Your decision ends the review: if you approve it, %s mails are sent; if you reject it, %s.",
		web.Number(b.Counts.Approved+1), web.Number(b.Counts.Approved))
}

// instant is a time as scripts read it, clock as people do.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// clock is a time of the day in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
