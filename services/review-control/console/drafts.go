package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
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
	page, err := c.service.Drafts(r.Context(), q.filter(by))
	if err != nil {
		return err
	}
	p := draftsPage{Query: q, Filters: draftFilters(q, page.Counts), Clear: draftsQuery{Show: q.Show}.href(),
		Pager: web.Pager{Label: "More drafts", Key: "n"}, At: page.At}
	for _, d := range page.Drafts {
		row := draftRow{ListedDraft: d, Here: openWith(d.Here)}
		row.Before, row.Since, row.Behind = sinceOf(d.Draft)
		row.Bar, row.Left = doneOf(d.Draft)
		p.Drafts = append(p.Drafts, row)
	}
	if len(p.Drafts) == 0 {
		p.Empty = q.empty(page.Counts)
	}
	if q.After != 0 {
		p.Pager.Back = web.Link{Text: "First page", Href: q.first().href()}
	}
	if page.Next != 0 {
		next := q
		next.After = page.Next
		p.Pager.Next = web.Link{Text: "Next page", Href: next.href()}
	}
	return c.site.Render(w, r, "drafts", web.Page{
		Title: "Drafts", Lead: "Mails that agents have prepared. Nothing is sent before a person has approved it.", Data: p,
		Keys: []web.Key{
			{Press: "j", Does: "Next draft"}, {Press: "k", Does: "Draft before"}, {Press: "o", Does: "Open the draft"},
			{Press: "n", Does: "Next page"},
		},
	})
}

// draftFilters are the chips, with what each leaves of the search.
func draftFilters(q draftsQuery, n reviewcontrol.DraftCounts) []web.Choice {
	link := func(text, show string, count int) web.Choice {
		if !n.Known {
			count = -1
		}
		return web.Choice{Text: text, Href: draftsQuery{Show: show, Search: q.Search}.href(), Active: q.Show == show, Count: count}
	}
	list := []web.Choice{link("Waiting for me", "", n.Waiting)}
	for _, s := range reviewcontrol.Statuses() {
		list = append(list, link(state(s).Text, string(s), n.ByStatus[s]))
	}
	return append(list, link("All", anyStatus, n.All))
}

// empty says why the list has nothing, and what to do.
func (q draftsQuery) empty(n reviewcontrol.DraftCounts) emptyList {
	own := n.ByStatus[reviewcontrol.InReview] - n.Waiting
	switch {
	case q.After != 0:
		return emptyList{"There are no more drafts", "You have reached the end of the list.", q.first().href(), "Back to the first page"}
	case q.Search != "" && q.Show != anyStatus && n.All > 0:
		return emptyList{"No draft here matches",
			"The search looks at names of drafts and segments, and at ids. " + matches(n.All) + " elsewhere.",
			draftsQuery{Show: anyStatus, Search: q.Search}.href(), "Search all drafts"}
	case q.Search != "":
		return emptyList{"No draft matches", "The search looks at names of drafts and segments, and at ids. Try a part of a name.",
			draftsQuery{Show: q.Show}.href(), "Clear the search"}
	case q.Show == "" && own > 0:
		return emptyList{"Nothing waits for you", "What is in review was made by you, so that somebody else has to decide on it.",
			draftsQuery{Show: string(reviewcontrol.InReview)}.href(), "Show what is in review"}
	case q.Show == anyStatus:
		return emptyList{Title: "No drafts yet",
			Text: "A draft is listed here when an agent has saved it with save_message_draft, and is decided on after queue_for_review."}
	}
	title, text, instead, action := wayOn(q.Show)
	return emptyList{title, text, draftsQuery{Show: instead}.href(), action}
}

// wayOn says why nothing has a status, and where to look instead; "" is what waits for the reader.
func wayOn(show string) (title, text, instead, action string) {
	switch reviewcontrol.Status(show) {
	case reviewcontrol.Drafted:
		return "No draft is being prepared", "A draft is listed here when an agent has saved it with save_message_draft.",
			"", "Show what waits for me"
	case reviewcontrol.InReview:
		return "Nothing is in review", "An agent queues a draft with queue_for_review. What is being prepared is under Draft.",
			string(reviewcontrol.Drafted), "Show drafts being prepared"
	case reviewcontrol.Approved:
		return "No mails are on their way", "A draft is approved from its last decision until its last mail has left; then it is sent.",
			string(reviewcontrol.Sent), "Show what was sent"
	case reviewcontrol.Rejected:
		return "No draft was rejected", "A draft is rejected when none of its mails was approved.", "", "Show what waits for me"
	case reviewcontrol.Sent:
		return "Nothing was sent yet", "A draft is sent when its last approved mail has left, or could not be delivered.",
			string(reviewcontrol.Approved), "Show what is on its way"
	case reviewcontrol.Cancelled:
		return "No draft was cancelled", "A reviewer can cancel a draft on its page until its first mail leaves.", "", "Show what waits for me"
	}
	return "Nothing waits for you", "A draft is listed here once an agent has queued it with queue_for_review. Come back later.",
		anyStatus, "Show all drafts"
}

// matches says how many drafts a search finds.
func matches(n int) string {
	if n == 1 {
		return "1 draft matches"
	}
	return web.Number(n) + " drafts match"
}

// doneOf is how far a draft is: its review, then its delivery.
func doneOf(d reviewcontrol.Draft) (web.Bar, string) {
	n, b := web.Number, barsOf(d.Status, d.Counts)
	switch c := d.Counts; {
	case d.Status == reviewcontrol.Drafted:
		return web.Bar{}, "Not queued yet"
	case d.Review == nil && d.Status == reviewcontrol.Cancelled:
		return web.Bar{}, "Never queued"
	case d.Status == reviewcontrol.InReview:
		return b.Review, fmt.Sprintf("%s of %s left", n(c.Pending), n(c.Total()))
	case d.Status == reviewcontrol.Cancelled:
		return b.Review, fmt.Sprintf("%s of %s undecided", n(c.Pending), n(c.Total()))
	case d.Status == reviewcontrol.Rejected:
		return b.Review, fmt.Sprintf("%s rejected", n(c.Rejected))
	default:
		return b.Delivery, fmt.Sprintf("%s of %s sent", n(c.Sent), n(c.Approved))
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

// openBy says who else has a draft open.
func openBy(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " has this draft open"
	case 2:
		return names[0] + " and " + names[1] + " have this draft open"
	}
	return fmt.Sprintf("%s, %s and %d more have this draft open", names[0], names[1], len(names)-2)
}

// openWith says it in a list.
func openWith(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "Open: " + strings.Join(names, ", ")
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
	p := presence{id, openBy(names)}
	if !partial(r) || r.PostFormValue("shown") == p.Text {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return c.site.RenderPart(w, r, "drafts", "presence", web.Page{Data: p})
}
