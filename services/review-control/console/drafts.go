package console

import (
	"net/http"
	"net/url"
	"slices"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

// draftsOnPage is how many drafts a page lists.
const draftsOnPage = 20

// choiceLink is a filter that can be chosen.
type choiceLink struct {
	Text, Href string
	Active     bool
	// Count is what the filter leaves; -1 is not known.
	Count int
}

type draftsPage struct {
	Drafts  []draftRow
	Filters []choiceLink
	Status  reviewcontrol.Status
	Pager   web.Pager
}

type draftRow struct {
	reviewcontrol.Draft
	Bars bars
}

func (c *Console) drafts(w http.ResponseWriter, r *http.Request, _ reviewcontrol.Reviewer) error {
	q := r.URL.Query()
	p := draftsPage{Status: reviewcontrol.Status(q.Get("status"))}
	if !slices.Contains(reviewcontrol.Statuses(), p.Status) {
		p.Status = ""
	}
	below, _ := schema.ParseID(q.Get("below"))
	page, err := c.service.Drafts(r.Context(), reviewcontrol.DraftFilter{Status: p.Status, Below: below, Limit: draftsOnPage})
	if err != nil {
		return err
	}
	address := func(status reviewcontrol.Status, below reviewcontrol.ID) string {
		v := url.Values{}
		if status != "" {
			v.Set("status", string(status))
		}
		if below != 0 {
			v.Set("below", below.String())
		}
		return withQuery("/drafts", v)
	}
	p.Filters = append(p.Filters, choiceLink{"All", address("", 0), p.Status == "", -1})
	for _, s := range reviewcontrol.Statuses() {
		p.Filters = append(p.Filters, choiceLink{state(s).Text, address(s, 0), p.Status == s, -1})
	}
	for _, d := range page.Drafts {
		p.Drafts = append(p.Drafts, draftRow{d, barsOf(d.Status, d.Counts)})
	}
	p.Pager = web.Pager{Label: "More drafts", Key: "n"}
	if below != 0 {
		p.Pager.Back = web.Link{Text: "Newest", Href: address(p.Status, 0)}
	}
	if page.Next != 0 {
		p.Pager.Next = web.Link{Text: "Next", Href: address(p.Status, page.Next)}
	}
	return c.site.Render(w, r, "drafts", web.Page{
		Title: "Drafts", Lead: "Mails that agents have prepared. Nothing is sent before a person has approved it.", Data: p,
		Keys: []web.Key{
			{Press: "j", Does: "Next draft"}, {Press: "k", Does: "Draft before"}, {Press: "o", Does: "Open the draft"},
			{Press: "n", Does: "Next page"},
		},
	})
}
