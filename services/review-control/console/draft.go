package console

import (
	"net/http"
	"strings"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

// targetsOnPage is how many targets a page lists.
const targetsOnPage = 20

type draftPage struct {
	Draft reviewcontrol.Draft
	// From is whom recipients see the mails come from.
	From  reviewcontrol.Address
	Bars  bars
	Query targetQuery
	Cards []card
	// First is the address of the first page.
	First string
	Pager web.Pager
	// Mine tells that the user made the draft, May that they may decide on it now.
	Mine, May bool
	// Cancels tells that the draft can be cancelled.
	Cancels    bool
	Filters    []choiceLink
	Deliveries []web.Option
	Refusal    refusal
	// Undecided are the targets of the page that nobody has decided on; Together are those of them
	// that Approve shown may take, Apart the others.
	Undecided, Together, Apart int
}

// Behind is for whom the draft was made, when that is somebody else than who made it. A call
// with an API key alone is for nobody, and has the key's id there.
func (p draftPage) Behind() string {
	m := p.Draft.Maker
	if m.ExternalUser == m.CreatedBy || strings.HasPrefix(m.ExternalUser, "ak_") {
		return ""
	}
	return m.ExternalUser
}

// Closed is the review when somebody has ended it.
func (p draftPage) Closed() *reviewcontrol.Review {
	if p.Draft.Review == nil || p.Draft.Review.ClosedAt == nil {
		return nil
	}
	return p.Draft.Review
}

// keysOf are a page's keys: those to move by, and those to decide with for whoever may.
func keysOf(may bool, move ...web.Key) []web.Key {
	if !may {
		return move
	}
	return append(move, web.Key{Press: "a", Does: "Approve the current target"}, web.Key{Press: "r", Does: "Reject the current target"})
}

func (c *Console) draft(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	return c.renderDraft(w, r, by, id, queryOf(r.URL.Query()), 0, noRefusal)
}

func (c *Console) renderDraft(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	q targetQuery, status int, refused refusal) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	page, err := c.service.Targets(r.Context(), d, reviewcontrol.TargetFilter{
		Choice: q.Choice, State: q.State, Search: q.Search, After: q.After, Limit: targetsOnPage,
	})
	if err != nil {
		return err
	}
	p := draftPage{
		Draft: d, From: c.service.From(reviewcontrol.Address{Name: d.SenderName, Email: d.SenderEmail}), Bars: barsOf(d.Status, d.Counts),
		Query: q, First: q.first(id), Mine: d.Maker.Is(by), Cancels: d.MayCancel() == nil, Refusal: refused, Filters: filtersOf(d, q),
		Pager: web.Pager{Label: "More targets", Key: "n"},
	}
	p.May = d.Status == reviewcontrol.InReview && !p.Mine
	opened := openedBy(r, id)
	for _, t := range page.Targets {
		x := newCard(d, t, q, p.May)
		x.Opened = opened.has(t.Index, x.Hash())
		if t.Index == refused.Index {
			x.Refusal, p.Refusal.Message = refused, ""
		}
		if p.May && t.Decision.Choice == reviewcontrol.Pending {
			p.Undecided++
		}
		if x.Together() {
			p.Together++
		}
		p.Cards = append(p.Cards, x)
	}
	p.Apart = p.Undecided - p.Together
	if q.After >= 0 {
		p.Pager.Back = web.Link{Text: "First page", Href: p.First}
	}
	if page.Next >= 0 {
		next := q
		next.After = page.Next
		p.Pager.Next = web.Link{Text: "Next page", Href: next.page(id, -1)}
	}
	if p.Bars.Delivers {
		p.Deliveries = []web.Option{{Value: "", Text: "Any delivery"}}
		for _, at := range deliveryStates {
			p.Deliveries = append(p.Deliveries, web.Option{Value: string(at), Text: state(at).Text})
		}
	}
	lead := web.Number(d.TargetCount) + " mails to "
	if d.TargetCount == 1 {
		lead = "1 mail to "
	}
	keys := keysOf(p.May,
		web.Key{Press: "j", Does: "Next target"}, web.Key{Press: "k", Does: "Target before"}, web.Key{Press: "n", Does: "Next page"})
	if p.Cancels {
		keys = append(keys, web.Key{Press: "c", Does: "Cancel the draft, after a question"})
	}
	return c.site.Render(w, r, "draft", web.Page{
		Title: d.Name, Lead: lead + d.SegmentName, Crumbs: []web.Link{{Text: "Drafts", Href: "/drafts"}}, Status: status, Data: p, Keys: keys,
	})
}

// filtersOf are the filters by decision, with what each leaves.
func filtersOf(d reviewcontrol.Draft, q targetQuery) []choiceLink {
	if d.Review == nil {
		return nil
	}
	var out []choiceLink
	for _, f := range []struct {
		text   string
		choice reviewcontrol.Choice
		count  int
	}{
		{"All", "", d.Counts.Total()}, {"To decide", reviewcontrol.Pending, d.Counts.Pending},
		{"Approved", reviewcontrol.Approve, d.Counts.Approved}, {"Rejected", reviewcontrol.Reject, d.Counts.Rejected},
	} {
		link := targetQuery{Choice: f.choice, Search: q.Search, After: -1}
		out = append(out, choiceLink{f.text, link.page(d.ID, -1), q.Choice == f.choice, f.count})
	}
	return out
}

// progress answers the part of a draft's page that changes while its mails are sent.
func (c *Console) progress(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	if !partial(r) {
		return web.Go(w, r, "/drafts/"+id.String())
	}
	if d.Status != reviewcontrol.Approved {
		w.Header().Set("HX-Refresh", "true")
	}
	p := draftPage{Draft: d, Bars: barsOf(d.Status, d.Counts), Mine: d.Maker.Is(by)}
	return c.site.RenderPart(w, r, "draft", "progress", web.Page{Data: p})
}
