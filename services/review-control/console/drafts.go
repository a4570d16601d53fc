package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
)

// draftsOnPage is how many drafts a page lists.
const draftsOnPage = 20

// anyStatus is the filter that leaves all drafts; without one the list has what waits for the reader.
const anyStatus = "all"

// draftsQuery is what the address of the list says.
type draftsQuery struct {
	// Show is a status, anyStatus, or empty for what waits for the reader.
	Show   string
	Search string
	After  reviewcontrol.ID
}

// draftsQueryOf reads the address of the list. A status that is none shows what waits for the reader.
func draftsQueryOf(v url.Values) draftsQuery {
	q := draftsQuery{Show: v.Get("status"), Search: strings.TrimSpace(v.Get("q"))}
	if q.Show != anyStatus && !slices.Contains(reviewcontrol.Statuses(), reviewcontrol.Status(q.Show)) {
		q.Show = ""
	}
	q.After, _ = schema.ParseID(v.Get("after"))
	return q
}

// href is the address of the list.
func (q draftsQuery) href() string {
	v := url.Values{}
	if q.Show != "" {
		v.Set("status", q.Show)
	}
	if q.Search != "" {
		v.Set("q", q.Search)
	}
	if q.After != 0 {
		v.Set("after", q.After.String())
	}
	return withQuery("/drafts", v)
}

// first is the first page of the list.
func (q draftsQuery) first() draftsQuery {
	q.After = 0
	return q
}

// filter is the query as the Service takes it.
func (q draftsQuery) filter(by reviewcontrol.Reviewer) reviewcontrol.DraftFilter {
	f := reviewcontrol.DraftFilter{Waiting: q.Show == "", For: by, Search: q.Search, After: q.After, Limit: draftsOnPage}
	if q.Show != "" && q.Show != anyStatus {
		f.Status = reviewcontrol.Status(q.Show)
	}
	return f
}

// draftsPage is a page of the list of drafts.
type draftsPage struct {
	Query   draftsQuery
	Drafts  []draftRow
	Filters []web.Choice
	Empty   emptyList
	// Clear is the address without the search.
	Clear string
	Pager web.Pager
	At    time.Time
}

// emptyList says why a list has nothing, and what to do.
type emptyList struct{ Title, Text, Href, Action string }

// draftRow is a draft in the list.
type draftRow struct {
	reviewcontrol.ListedDraft
	Bar web.Bar
	// Left says how far the draft is.
	Left string
	// Before, Since and Behind say for how long it is there.
	Before, Behind string
	Since          time.Time
	Here           string
}

// drafts lists drafts: without a filter those that wait for who is signed in, the longest waiting first.
func (c *Console) drafts(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer) error {
	q := draftsQueryOf(r.URL.Query())
	ctx := r.Context()
	page, err := c.service.Drafts(ctx, q.filter(by))
	if err != nil {
		return err
	}
	p := draftsPage{Query: q, Filters: draftFilters(ctx, q, page.Counts), Clear: draftsQuery{Show: q.Show}.href(),
		Pager: web.Pager{Label: i18n.T(ctx, "More drafts"), Key: "n"}, At: page.At}
	for _, d := range page.Drafts {
		row := draftRow{ListedDraft: d, Here: openWith(ctx, d.Here)}
		row.Before, row.Since, row.Behind = sinceOf(d.Draft)
		row.Bar, row.Left = doneOf(ctx, d.Draft)
		p.Drafts = append(p.Drafts, row)
	}
	if len(p.Drafts) == 0 {
		p.Empty = q.empty(ctx, page.Counts)
	}
	if q.After != 0 {
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: q.first().href()}
	}
	if page.Next != 0 {
		next := q
		next.After = page.Next
		p.Pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: next.href()}
	}
	return c.site.Render(w, r, "drafts", web.Page{
		Title: i18n.T(ctx, "Drafts"), Data: p,
		Lead: i18n.T(ctx, "Mails that agents have prepared. Nothing is sent before a person has approved it."),
		Keys: []web.Key{
			{Press: "j", Does: i18n.T(ctx, "Next draft")}, {Press: "k", Does: i18n.T(ctx, "Draft before")},
			{Press: "o", Does: i18n.T(ctx, "Open the draft")}, {Press: "n", Does: i18n.T(ctx, "Next page")},
		},
	})
}

// draftFilters are the chips, with what each leaves of the search.
func draftFilters(ctx context.Context, q draftsQuery, n reviewcontrol.DraftCounts) []web.Choice {
	link := func(text, show string, count int) web.Choice {
		if !n.Known {
			count = -1
		}
		return web.Choice{Text: text, Href: draftsQuery{Show: show, Search: q.Search}.href(), Active: q.Show == show, Count: count}
	}
	list := []web.Choice{link(i18n.T(ctx, "Waiting for me"), "", n.Waiting)}
	for _, s := range reviewcontrol.Statuses() {
		list = append(list, link(stateText(ctx, s), string(s), n.ByStatus[s]))
	}
	return append(list, link(i18n.T(ctx, "All"), anyStatus, n.All))
}

// empty says why the list has nothing, and what to do.
func (q draftsQuery) empty(ctx context.Context, n reviewcontrol.DraftCounts) emptyList {
	own := n.ByStatus[reviewcontrol.InReview] - n.Waiting
	switch {
	case q.After != 0:
		return emptyList{i18n.T(ctx, "There are no more drafts"), i18n.T(ctx, "You have reached the end of the list."),
			q.first().href(), i18n.T(ctx, "Back to the first page")}
	case q.Search != "" && q.Show != anyStatus && n.All > 0:
		return emptyList{i18n.T(ctx, "No draft here matches"),
			i18n.T(ctx, "The search looks at names of drafts and segments, and at ids. %s elsewhere.",
				web.PluralIn(ctx, n.All, "draft matches", "drafts match")),
			draftsQuery{Show: anyStatus, Search: q.Search}.href(), i18n.T(ctx, "Search all drafts")}
	case q.Search != "":
		return emptyList{i18n.T(ctx, "No draft matches"),
			i18n.T(ctx, "The search looks at names of drafts and segments, and at ids. Try a part of a name."),
			draftsQuery{Show: q.Show}.href(), i18n.T(ctx, "Clear the search")}
	case q.Show == "" && own > 0:
		return emptyList{i18n.T(ctx, "Nothing waits for you"),
			i18n.T(ctx, "What is in review was made by you, so that somebody else has to decide on it."),
			draftsQuery{Show: string(reviewcontrol.InReview)}.href(), i18n.T(ctx, "Show what is in review")}
	case q.Show == anyStatus:
		return emptyList{Title: i18n.T(ctx, "No drafts yet"),
			Text: i18n.T(ctx,
				"A draft is listed here when an agent has saved it with save_message_draft, and is decided on after queue_for_review.")}
	}
	title, text, instead, action := wayOn(q.Show)
	say := i18n.From(ctx).Text
	return emptyList{say(title), say(text), draftsQuery{Show: instead}.href(), say(action)}
}

// wayOn says in English why nothing has a status, and where to look instead; "" is what waits for the reader.
func wayOn(show string) (title, text, instead, action string) {
	switch reviewcontrol.Status(show) {
	case reviewcontrol.Drafted:
		return i18n.N("No draft is being prepared"), i18n.N("A draft is listed here when an agent has saved it with save_message_draft."),
			"", i18n.N("Show what waits for me")
	case reviewcontrol.InReview:
		return i18n.N("Nothing is in review"), i18n.N("An agent queues a draft with queue_for_review. What is being prepared is under Draft."),
			string(reviewcontrol.Drafted), i18n.N("Show drafts being prepared")
	case reviewcontrol.Approved:
		return i18n.N("No mails are on their way"),
			i18n.N("A draft is approved from its last decision until its last mail has left; then it is sent."),
			string(reviewcontrol.Sent), i18n.N("Show what was sent")
	case reviewcontrol.Rejected:
		return i18n.N("No draft was rejected"), i18n.N("A draft is rejected when none of its mails was approved."),
			"", i18n.N("Show what waits for me")
	case reviewcontrol.Sent:
		return i18n.N("Nothing was sent yet"), i18n.N("A draft is sent when its last approved mail has left, or could not be delivered."),
			string(reviewcontrol.Approved), i18n.N("Show what is on its way")
	case reviewcontrol.Cancelled:
		return i18n.N("No draft was cancelled"), i18n.N("A reviewer can cancel a draft on its page until its first mail leaves."),
			"", i18n.N("Show what waits for me")
	}
	return i18n.N("Nothing waits for you"),
		i18n.N("A draft is listed here once an agent has queued it with queue_for_review. Come back later."),
		anyStatus, i18n.N("Show all drafts")
}

// doneOf is how far a draft is: its review, then its delivery.
func doneOf(ctx context.Context, d reviewcontrol.Draft) (web.Bar, string) {
	n, b := web.Number, barsOf(ctx, d.Status, d.Counts)
	switch c := d.Counts; {
	case d.Status == reviewcontrol.Drafted:
		return web.Bar{}, i18n.T(ctx, "Not queued yet")
	case d.Review == nil && d.Status == reviewcontrol.Cancelled:
		return web.Bar{}, i18n.T(ctx, "Never queued")
	case d.Status == reviewcontrol.InReview:
		return b.Review, i18n.T(ctx, "%s of %s left", n(c.Pending), n(c.Total()))
	case d.Status == reviewcontrol.Cancelled:
		return b.Review, i18n.T(ctx, "%s of %s undecided", n(c.Pending), n(c.Total()))
	case d.Status == reviewcontrol.Rejected:
		return b.Review, i18n.T(ctx, "%s rejected", n(c.Rejected))
	default:
		return b.Delivery, i18n.T(ctx, "%s of %s sent", n(c.Sent), n(c.Approved))
	}
}

// sinceOf is since when a draft is as it is, with what to say around that.
func sinceOf(d reviewcontrol.Draft) (before string, since time.Time, behind string) {
	switch {
	case d.Status == reviewcontrol.InReview && d.QueuedAt != nil:
		return "waiting", *d.QueuedAt, ""
	case d.Review != nil && d.Review.ClosedAt != nil:
		return "", *d.Review.ClosedAt, "ago"
	}
	return "", d.CreatedAt, "ago"
}

// What sinceOf says, with the time in it: the page makes one message of them.
var _ = []string{i18n.N("waiting {1}"), i18n.N("{1} ago")}

// openBy says who else has a draft open.
func openBy(ctx context.Context, names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return i18n.T(ctx, "%s has this draft open", names[0])
	case 2:
		return i18n.T(ctx, "%s and %s have this draft open", names[0], names[1])
	}
	return i18n.T(ctx, "%s, %s and %d more have this draft open", names[0], names[1], len(names)-2)
}

// openWith says it in a list.
func openWith(ctx context.Context, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return i18n.T(ctx, "Open: %s", strings.Join(names, ", "))
}

// presence is a part of a page that says who else has its draft open, and tells others that the reader has:
// {{template "here" .Data.Presence}}.
type presence struct {
	ID reviewcontrol.ID
	// Text is empty while nobody else has.
	Text string
}

// here keeps that the reader has a draft open, and answers who else has, when that is something else than the page says.
func (c *Console) here(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	names, err := c.service.Here(r.Context(), by, id)
	if err != nil {
		return err
	}
	p := presence{id, openBy(r.Context(), names)}
	if !partial(r) || r.PostFormValue("shown") == p.Text {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.site.RenderPart(w, r, "drafts", "presence", web.Page{Data: p})
}
