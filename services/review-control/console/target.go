package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/console/evidence"
)

// maxValues is how many values of the evidence a page shows.
const maxValues = 20_000

// refusal is why a decision was not taken, beside the target it was for.
type refusal struct {
	Index   int
	Message string
	// Note is what was typed, and NoteProblem what is wrong with it; Reason is what was chosen.
	Note, NoteProblem string
	Reason            reviewcontrol.Reason
}

// noRefusal is that of a page which shows what there is.
var noRefusal = refusal{Index: -1}

// card is a target as a page shows it.
type card struct {
	reviewcontrol.TargetView
	Draft reviewcontrol.ID
	Query string
	// Place is which one it is of as many as are Of the list, 0 when it is not there; Listed tells that the list is
	// not simply all of them in their order.
	Place, Of int
	Listed    bool
	// Queued tells that there is a review, May that the user can decide now.
	Queued, May bool
	// Cut tells that what lies beside the mail is too long for a page.
	Cut               bool
	Refusal           refusal
	Context, Snapshot evidence.Value
	// Own are the placeholders of the templates that make the mail with its own values, Why is what the agent says of its reason.
	Own []valueCell
	Why []evidence.Member
	// FlagList is what of the mail a reviewer should look at.
	FlagList []flagged
	// ReasonField is why the mail is rejected, for whoever learns from it; NoteField is where the reviewer says why.
	ReasonField, NoteField web.Field
	// Mailbox is where the mail can be sent to as a test: the reader's own.
	Mailbox string
}

// shownText names what a page shows of a target, for forms.
func shownText(t reviewcontrol.Target, hash string) string {
	return fmt.Sprintf("%d:%s:%d", t.Index, hash, t.Decision.Revision)
}

// Shown names what the card shows.
func (c card) Shown() string { return shownText(c.Target, c.Hash()) }

// Hash is that of the content which the card shows.
func (c card) Hash() string { return c.Rendering.Hash() }

// Open tells that the user may decide on the target, and nobody has.
func (c card) Open() bool { return c.May && c.Decision.Choice == reviewcontrol.Pending }

// Together tells that Approve shown may take the target, once it was shown.
func (c card) Together() bool { return c.Open() && !c.Cut && !c.Flags.Alone() }

// Outdated tells of an approval on which nothing is sent: it was for other content.
func (c card) Outdated() bool {
	return c.Decision.Choice == reviewcontrol.Approve && c.Delivery.State == reviewcontrol.NotDue && c.Decision.Hash != c.Hash()
}

// Language is the code of the language of the recipient's name, where its letters tell it, or the country in the evidence how Chinese
// characters are written there; otherwise it is empty.
func (c card) Language() string {
	if language := text.Language(c.ToName); language != "" || !strings.ContainsFunc(c.ToName, isHan) {
		return language
	}
	var of struct {
		Country string `json:"country_code"`
	}
	_ = json.Unmarshal(c.Mail.Snapshot, &of) // a snapshot may be anything
	return writtenIn[of.Country]
}

// writtenIn are languages with Chinese characters, by the code of the country.
var writtenIn = map[string]string{"CN": "zh-Hans", "SG": "zh-Hans", "TW": "zh-Hant", "HK": "zh-Hant", "JP": "ja", "KR": "ko"}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// Size is that of what is read first, in bytes.
func (c card) Size() int { return max(len(c.Rendering.HTML), len(c.Rendering.Text)) }

// Source is the mail's HTML.
func (c card) Source() string { return strings.ReplaceAll(c.Rendering.HTML, "\r\n", "\n") }

// Text is the mail's plain text.
func (c card) Text() string { return strings.ReplaceAll(c.Rendering.Text, "\r\n", "\n") }

// TakenOut is how many things were taken out of the mail.
func (c card) TakenOut() int {
	n := 0
	for _, r := range c.Rendering.Removed {
		n += r.Count
	}
	return n
}

// OnBehalf tells that the mail names Hub's own mailbox beside the one that it is from.
func (c card) OnBehalf() bool {
	return !strings.EqualFold(c.Rendering.From.Email, c.Rendering.Sender.Email)
}

// ReasonText is why the mail was rejected, in English; empty without a reason.
func (c card) ReasonText() string { return reasonText(c.Decision.Reason) }

// Marks is the address of the preview with its own values marked; empty where no template makes the mail.
func (c card) Marks() string {
	if len(c.Own) == 0 {
		return ""
	}
	return fmt.Sprintf("/drafts/%s/targets/%d/preview?of=%s&marks=1", c.Draft, c.Index, c.Hash())
}

// Preheader is what an inbox shows of the mail's text behind its subject.
func (c card) Preheader() string { return text.Head(text.OneLine(c.Rendering.Text), preheader) }

// preheader is how many characters of a text an inbox has room for.
const preheader = 120

// whyNames are the names under which agents give the reason for a mail in its context.
var whyNames = []string{"why", "reason", "rationale"}

// newCard is the card of a target, with what was refused of it. Evidence that is too large is cut, and the target is decided on by
// itself then.
func newCard(ctx context.Context, d reviewcontrol.Draft, t reviewcontrol.TargetView, q targetQuery, may bool, refused refusal) card {
	x := card{TargetView: t, Draft: d.ID, Query: q.Encode(), Queued: d.Review != nil, May: may, FlagList: flaggedOf(ctx, t.Flags)}
	if refused.Index == t.Index {
		x.Refusal = refused
	}
	x.ReasonField = web.Field{
		ID: fmt.Sprintf("reason-%d", x.Index), Name: "reason", Label: i18n.T(ctx, "Reason to reject"), Type: "select",
		Options: reasons(ctx), Value: string(cmp.Or(x.Refusal.Reason, x.Decision.Reason)),
	}
	x.NoteField = web.Field{
		ID: fmt.Sprintf("note-%d", x.Index), Name: "note", Label: i18n.T(ctx, "Note"), Type: "textarea", Rows: 2,
		MaxLength: reviewcontrol.MaxNote, Hint: i18n.T(ctx, "Agents read the note of a rejection."),
		Value: x.Refusal.Note, Error: x.Refusal.NoteProblem,
	}
	var cutContext, cutSnapshot bool
	x.Context, cutContext = evidence.Read(t.Mail.Context, maxValues)
	x.Snapshot, cutSnapshot = evidence.Read(t.Mail.Snapshot, maxValues)
	x.Cut = cutContext || cutSnapshot
	placeholders, values := t.Own(d)
	for _, name := range placeholders {
		own := cellOf(name, values[name])
		own.Name = evidence.Member{Name: own.Name}.Label()
		x.Own = append(x.Own, own)
	}
	x.Why = x.Context.Take(func(name string) bool { return slices.Contains(whyNames, strings.ToLower(name)) })
	x.Context.Take(func(name string) bool { return slices.Contains(placeholders, "context."+name) }) // they stand there already
	return x
}
