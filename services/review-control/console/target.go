package console

import (
	"fmt"
	"net/http"
	"strings"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/console/evidence"
)

const (
	// maxShown is how much of a mail's body, and of what lies beside it, a list shows; a mail
	// with more shows its first part there, and everything on a page of its own.
	maxShown, maxPrefix = 64 << 10, 8 << 10
	// maxValues is how many values of the evidence a list shows, maxValuesAlone a page of its own.
	maxValues, maxValuesAlone = 300, 20_000
)

// refusal is why a decision was not taken, beside the target it was for.
type refusal struct {
	Index   int
	Message string
	// Note is what was typed, and NoteProblem what is wrong with it.
	Note, NoteProblem string
}

// noRefusal is that of a page which shows what there is.
var noRefusal = refusal{Index: -1}

// card is a target as a page shows it.
type card struct {
	reviewcontrol.TargetView
	Draft reviewcontrol.ID
	Query string
	// Queued tells that there is a review, May that the user can decide now.
	Queued, May bool
	// Alone is set on the target's own page, which shows everything.
	Alone bool
	// Cut tells that the mail, or what lies beside it, is too long for the list.
	Cut bool
	// Opened tells that the user has had the target's own page with this content.
	Opened            bool
	Refusal           refusal
	Context, Snapshot evidence.Value
}

// Shown names what the card shows, for Approve shown.
func (c card) Shown() string {
	return fmt.Sprintf("%d:%s:%d", c.Index, c.Hash(), c.Decision.Revision)
}

// Hash is that of the content which the card shows.
func (c card) Hash() string { return c.Rendering.Hash() }

// Together tells that Approve shown may take the target, as soon as it was shown.
func (c card) Together() bool {
	return c.May && c.Decision.Choice == reviewcontrol.Pending && !c.Cut && c.Rendering.Alone() == ""
}

// Outdated tells of an approval on which nothing is sent: it was for other content.
func (c card) Outdated() bool {
	return c.Decision.Choice == reviewcontrol.Approve && c.Delivery.State == reviewcontrol.NotDue && c.Decision.Hash != c.Hash()
}

// Frames are the classes of the preview: its height in a wide window and in a narrow one.
func (c card) Frames() string {
	narrow, wide := c.Rendering.Frames()
	return fmt.Sprintf("w%d n%d", wide, narrow)
}

// Size is that of what is read first, in bytes.
func (c card) Size() int { return max(len(c.Rendering.HTML), len(c.Rendering.Text)) }

// Source is the mail's HTML, and Text its plain text; a list shows the first part of what is too long for it.
func (c card) Source() string { return c.prefixOf(c.Rendering.HTML) }

// Text is the mail's plain text.
func (c card) Text() string { return c.prefixOf(c.Rendering.Text) }

func (c card) prefixOf(text string) string {
	if c.Cut && !c.Alone {
		text = evidence.Prefix(text, maxPrefix)
	}
	return strings.ReplaceAll(text, "\r\n", "\n")
}

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

// NoteField is where the reviewer says why.
func (c card) NoteField() web.Field {
	return web.Field{
		ID: fmt.Sprintf("note-%d", c.Index), Name: "note", Label: "Note", Type: "textarea", Rows: 3, MaxLength: reviewcontrol.MaxNote,
		Value: c.Refusal.Note, Error: c.Refusal.NoteProblem,
	}
}

// Misleading are the links that name another host than they lead to.
func (c card) Misleading() int {
	n := 0
	for _, l := range c.Rendering.View.Links {
		if l.Misleading {
			n++
		}
	}
	return n
}

func newCard(d reviewcontrol.Draft, t reviewcontrol.TargetView, q targetQuery, may bool) card {
	x := card{TargetView: t, Draft: d.ID, Query: q.Encode(), Queued: d.Review != nil, May: may, Alone: q.Alone}
	values := maxValues
	if q.Alone {
		values = maxValuesAlone
	}
	var cutContext, cutSnapshot bool
	x.Context, cutContext = evidence.Read(t.Mail.Context, values)
	x.Snapshot, cutSnapshot = evidence.Read(t.Mail.Snapshot, values)
	beside := len(t.Mail.Context) + len(t.Mail.Snapshot)
	x.Cut = cutContext || cutSnapshot || !q.Alone && (x.Size() > maxShown || beside > maxShown)
	return x
}

type targetPage struct {
	Draft   reviewcontrol.Draft
	Card    card
	Bars    bars
	Mine    bool
	History []reviewcontrol.Decision
	Pager   web.Pager
}

func (c *Console) target(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	return c.renderTarget(w, r, by, id, index, 0, noRefusal)
}

func (c *Console) renderTarget(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	index, status int, refused refusal) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	t, err := c.service.Target(r.Context(), id, index)
	if err != nil {
		return err
	}
	p := targetPage{Draft: d, Mine: d.Maker.Is(by), Bars: barsOf(d.Status, d.Counts)}
	p.Card = newCard(d, t, targetQuery{After: -1, Alone: true}, d.Status == reviewcontrol.InReview && !p.Mine)
	if refused.Index == index {
		p.Card.Refusal = refused
	}
	if p.Card.Together() {
		openedBy(r, id).add(w, r, index, p.Card.Hash())
	}
	if d.Review != nil {
		if p.History, err = c.service.History(r.Context(), id, index); err != nil {
			return err
		}
	}
	p.Pager = web.Pager{Label: "Other targets", Key: "n"}
	if index > 0 {
		p.Pager.Back = web.Link{Text: "Target before", Href: fmt.Sprintf("/drafts/%s/targets/%d", id, index-1)}
	}
	if index+1 < d.TargetCount {
		p.Pager.Next = web.Link{Text: "Next target", Href: fmt.Sprintf("/drafts/%s/targets/%d", id, index+1)}
	}
	return c.site.Render(w, r, "target", web.Page{
		Title: nameOf(t.Target), Lead: fmt.Sprintf("Target %s of %s", web.Number(index+1), web.Number(d.TargetCount)),
		Crumbs: []web.Link{{Text: "Drafts", Href: "/drafts"}, {Text: d.Name, Href: "/drafts/" + id.String()}},
		Status: status, Data: p, Keys: keysOf(p.Card.May, web.Key{Press: "n", Does: "Next target"}),
	})
}

func nameOf(t reviewcontrol.Target) string {
	if t.ToName != "" {
		return t.ToName
	}
	return t.ToEmail
}
