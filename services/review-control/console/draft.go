package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/triage"
)

// targetsOnPage is how many targets a page lists, rowsAbove how many of them before the one that is shown
// where the address does not say where the list begins.
const targetsOnPage, rowsAbove = 50, 5

// draftPage is a draft with the list of its targets and one of them. It works without scripts: each filter, target and page of
// the list is an address, and scripts only save the loading of a whole page.
type draftPage struct {
	Draft reviewcontrol.Draft
	// From is whom recipients see the mails come from.
	From  mailer.Address
	Bars  bars
	Query targetQuery
	Rows  []row
	Pager web.Pager
	// Card is the target that is shown; nil when none matches.
	Card    *card
	History []reviewcontrol.Decision
	// Back and Next are the addresses of the targets before and after it in the list.
	Back, Next string
	// Mine tells that the user made the draft, May that they may decide on it now.
	Mine, May bool
	// Cancels tells that the draft can be cancelled.
	Cancels bool
	Filters []web.Choice
	// Order leads to the list with what has a flag first, or back; nil where nothing has one.
	Order *web.Choice
	// Flags are filters by what reviewers should look at, those that find something.
	Flags []web.Choice
	// Variants are filters by the mails that differ in placeholders alone, List leads to their pages.
	Variants []web.Choice
	List     *variantList
	// Inspected is how many targets have been looked through for flags, of all.
	Inspected  int
	Deliveries []web.Option
	// Undo is what the user could undo now, if anything.
	Undo *undo
	// Presence says who else has the draft open.
	Presence presence
	// Pending is how many mails of what is asked for nobody has decided on: what can be rejected as a whole.
	Pending int
	// Selected asks why the mails that were chosen are rejected, ShownRejects those that were shown.
	Selected, ShownRejects rejects
	// Undecided and Flagged lead to the next mail that nobody has decided on, and to the next of these with a flag.
	Undecided, Flagged string
	// Waiting is another draft that waits for the user, when this one does not.
	Waiting *web.Link
}

// row is a target in the list.
type row struct {
	reviewcontrol.Target
	Flags   []flagged
	Href    string
	Current bool
	// Shown names what Approve shown takes, for whoever has no scripts: the target was opened, nobody has
	// decided on it, and it has no flag.
	Shown string
	// Pick names the target for who chooses it to be rejected with others; empty where that cannot be.
	Pick string
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

// Inspecting tells that flags and variants are not all known yet.
func (p draftPage) Inspecting() bool {
	return p.Draft.Status == reviewcontrol.InReview && p.Inspected < p.Draft.TargetCount
}

// InspectionHref is where the page asks how far the inspection is.
func (p draftPage) InspectionHref() string {
	v := p.Query.values()
	if p.Card != nil {
		v.Set("at", strconv.Itoa(p.Card.Index))
	}
	return withQuery(fmt.Sprintf("/drafts/%s/inspection", p.Draft.ID), v)
}

// ProgressHref is where the page asks how far the mails are.
func (p draftPage) ProgressHref() string {
	return withQuery(fmt.Sprintf("/drafts/%s/progress", p.Draft.ID), p.Query.values())
}

// draft shows a draft at the first target that is left to decide.
func (c *Console) draft(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	return c.renderDraft(w, r, by, id, queryOf(r.URL.Query()), -1, 0, noRefusal)
}

// target shows a draft at the target that the address names.
func (c *Console) target(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	return c.renderDraft(w, r, by, id, queryOf(r.URL.Query()), index, 0, noRefusal)
}

// renderDraft shows a draft at one of its targets; -1 is the first that is left to decide.
func (c *Console) renderDraft(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	q targetQuery, index, status int, refused refusal) error {
	p, err := c.draftPage(r, by, id, q, index, refused)
	if err != nil {
		return err
	}
	if partial(r) && status == 0 && p.Card != nil { // the address of what is shown, wherever a form has led to
		w.Header().Set("HX-Push-Url", q.at(id, p.Card.Index))
	}
	ctx := r.Context()
	return c.site.Render(w, r, "draft", web.Page{
		Title: p.Draft.Name, Lead: i18n.T(ctx, "%s to %s", web.PluralIn(ctx, p.Draft.TargetCount, "mail", "mails"), p.Draft.SegmentName),
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Drafts"), Href: "/drafts"}}, Status: status, Data: p, Keys: p.keys(ctx), Desk: true,
	})
}

// draftPage is the page of a draft at one of its targets; -1 is the first that is left to decide.
func (c *Console) draftPage(r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID, q targetQuery, index int,
	refused refusal) (draftPage, error) {
	ctx := r.Context()
	d, err := c.service.Draft(ctx, id)
	if err != nil {
		return draftPage{}, err
	}
	p := draftPage{
		Draft: d, From: c.service.From(mailer.Address{Name: d.SenderName, Email: d.SenderEmail}), Bars: barsOf(ctx, d.Status, d.Counts),
		Query: q, Mine: d.Maker.Is(by), Cancels: d.MayCancel() == nil, Inspected: d.TargetCount,
		Pager:        web.Pager{Label: i18n.T(ctx, "More mails"), Key: "N"},
		Selected:     rejectsOf(ctx, i18n.T(ctx, "Reject selected"), "r", "selected"),
		ShownRejects: rejectsOf(ctx, i18n.T(ctx, "Reject…"), "R", "shown"),
	}
	p.May = d.Status == reviewcontrol.InReview && !p.Mine
	if index < 0 {
		if index, err = c.first(ctx, d, q, p.May); err != nil {
			return p, err
		}
	}
	if err := c.list(ctx, r, d, q, index, &p); err != nil {
		return p, err
	}
	if d.Review != nil {
		if err := c.reviewed(ctx, by, d, q, &p); err != nil {
			return p, err
		}
	}
	if index >= 0 {
		if err := c.show(ctx, d, index, refused, &p); err != nil {
			return p, err
		}
		p.Card.Mailbox = by.Email
		if err := c.ahead(ctx, d, &p); err != nil {
			return p, err
		}
	}
	p.Presence.ID = id // who else is there the page asks for itself
	if !p.May || d.Counts.Pending == 0 {
		if p.Waiting, err = c.waiting(ctx, by, id); err != nil {
			return p, err
		}
	}
	if p.Bars.Delivers {
		p.Deliveries = []web.Option{{Value: "", Text: i18n.T(ctx, "Any delivery")}}
		for _, at := range deliveryStates {
			p.Deliveries = append(p.Deliveries, web.Option{Value: string(at), Text: stateText(ctx, at)})
		}
	}
	return p, nil
}

// reviewed puts on the page what a draft in review, or beyond, has: filters, variants, and what can be undone.
func (c *Console) reviewed(ctx context.Context, by reviewcontrol.Reviewer, d reviewcontrol.Draft, q targetQuery, p *draftPage) error {
	p.Inspected = d.Review.Inspected
	variants, err := c.service.Variants(ctx, d.ID)
	if err != nil {
		return err
	}
	if p.List = variantsOf(ctx, d, variants, 0); p.List != nil {
		p.List.Key = "v"
	}
	if p.Filters, p.Flags, p.Variants, err = c.filters(ctx, d, q, variants); err != nil {
		return err
	}
	if p.May && (q.Choice == "" || q.Choice == reviewcontrol.Pending) {
		p.Pending = p.Filters[1].Count
	}
	if len(p.Flags) > 0 || q.FlaggedFirst {
		link := q
		link.FlaggedFirst, link.After = !q.FlaggedFirst, -1
		p.Order = &web.Choice{Text: i18n.T(ctx, "Flagged first"), Href: link.page(d.ID), Active: q.FlaggedFirst, Count: -1}
	}
	p.Undo, err = c.undoable(ctx, by, d)
	return err
}

// inspection answers how far the mails have been looked through, and when all have been, what can be approved together
// and the list with its flags.
func (c *Console) inspection(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	q, index := queryOf(r.URL.Query()), -1
	if at := r.URL.Query().Get("at"); at != "" {
		var err error
		if index, err = pathIndex(id, at); err != nil {
			return err
		}
	}
	if !partial(r) {
		return web.Go(w, r, q.page(id))
	}
	p, err := c.draftPage(r, by, id, q, index, noRefusal)
	if err != nil {
		return err
	}
	return c.site.RenderPart(w, r, "draft", "inspection", web.Page{Data: p})
}

// keys are those of the page.
func (p draftPage) keys(ctx context.Context) []web.Key {
	keys := []web.Key{{Press: "j", Does: i18n.T(ctx, "Next")}, {Press: "k", Does: i18n.T(ctx, "Previous")},
		{Press: "N", Does: i18n.T(ctx, "Next page of the list")}}
	if p.List != nil {
		keys = append(keys, web.Key{Press: "v", Does: i18n.T(ctx, "List the variants")})
	}
	keys = append(keys, web.Key{Press: "w", Does: i18n.T(ctx, "The preview as on a desk")},
		web.Key{Press: "p", Does: i18n.T(ctx, "As on a phone")},
		web.Key{Press: "d", Does: i18n.T(ctx, "As in the dark")})
	if p.Card != nil && p.Card.Marks() != "" {
		keys = append(keys, web.Key{Press: "m", Does: i18n.T(ctx, "Mark what is particular to the mail; it is not read by that")})
	}
	if p.May {
		keys = append(keys, web.Key{Press: "n", Does: i18n.T(ctx, "Next undecided")},
			web.Key{Press: "s", Does: i18n.T(ctx, "Later: the same, and the mail is marked")},
			web.Key{Press: "f", Does: i18n.T(ctx, "Next undecided with a flag")},
			web.Key{Press: "a", Does: i18n.T(ctx, "Approve the mail")},
			web.Key{Press: "r", Does: i18n.T(ctx, "Reject the mail, or those that are selected")},
			web.Key{Press: "R", Does: i18n.T(ctx, "Reject those that you have read")},
			web.Key{Press: "0–6", Does: i18n.T(ctx, "The reason, where several are rejected")},
			web.Key{Press: "e", Does: i18n.T(ctx, "Write a note; Ctrl+Enter rejects with it")},
			web.Key{Press: "x", Does: i18n.T(ctx, "Select the mail; in the list Space, and Shift with an arrow or a click for a range")})
	}
	if p.May || p.Undo != nil {
		keys = append(keys, web.Key{Press: "u", Does: i18n.T(ctx, "Undo what was decided last")})
	}
	if p.Cancels {
		keys = append(keys, web.Key{Press: "c", Does: i18n.T(ctx, "Cancel the draft, after a question")})
	}
	return keys
}

// first is the target that a draft opens at: the first that is left to decide, else the first; -1 when none
// matches.
func (c *Console) first(ctx context.Context, d reviewcontrol.Draft, q targetQuery, may bool) (int, error) {
	f := q.filter()
	f.Limit = 1
	if may && f.Choice == "" {
		f.Choice = reviewcontrol.Pending
		if index, err := c.service.Next(ctx, d, f); err != nil || index >= 0 {
			return index, err
		}
		f.Choice = ""
	}
	return c.service.Next(ctx, d, f)
}

// list is the part of the list that the target is in.
func (c *Console) list(ctx context.Context, r *http.Request, d reviewcontrol.Draft, q targetQuery, index int, p *draftPage) error {
	f := q.filter()
	targets, next, err := c.service.List(ctx, d, f)
	if err != nil {
		return err
	}
	onPage := slices.ContainsFunc(targets, func(t reviewcontrol.TargetView) bool { return t.Index == index })
	if index >= 0 && !onPage {
		if f.After, err = c.service.Above(ctx, d, f, index, 1+rowsAbove); err != nil {
			return err
		}
		if targets, next, err = c.service.List(ctx, d, f); err != nil {
			return err
		}
	}
	q.After = f.After
	p.Query = q
	opened := openedBy(r, d.ID)
	for i, t := range targets {
		x := row{Target: t.Target, Flags: flaggedOf(ctx, t.Flags), Href: q.at(d.ID, t.Index), Current: t.Index == index}
		if p.May && t.Decision.Choice == reviewcontrol.Pending {
			x.Pick = shownText(t.Target, t.Inspection.Hash)
			if !t.Flags.Alone() && opened.has(t.Index, t.Inspection.Hash) {
				x.Shown = x.Pick
			}
		}
		p.Rows = append(p.Rows, x)
		if x.Current && i > 0 {
			p.Back = p.Rows[i-1].Href
		}
		if i > 0 && p.Rows[i-1].Current {
			p.Next = x.Href
		}
	}
	if f.After >= 0 {
		back := q
		back.After = -1
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: back.at(d.ID, 0)}
		if q.Filtered() || q.FlaggedFirst {
			p.Pager.Back.Href = back.page(d.ID)
		}
	}
	if next >= 0 {
		onward := q
		onward.After = next
		following, err := c.service.Next(ctx, d, onward.filter())
		if err != nil {
			return err
		}
		if following >= 0 {
			p.Pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: onward.at(d.ID, following)}
			if n := len(p.Rows); n > 0 && p.Rows[n-1].Current {
				p.Next = p.Pager.Next.Href
			}
		}
	}
	return nil
}

// show puts the target itself on the page.
func (c *Console) show(ctx context.Context, d reviewcontrol.Draft, index int, refused refusal, p *draftPage) error {
	t, err := c.service.Target(ctx, d.ID, index)
	if err != nil {
		return err
	}
	x := newCard(ctx, d, t, p.Query, p.May, refused)
	x.Place, x.Of = index+1, d.TargetCount
	if x.Listed = d.Review != nil && (p.Query.Filtered() || p.Query.FlaggedFirst); x.Listed {
		if x.Place, err = c.service.Place(ctx, d.ID, p.Query.filter(), index); err != nil {
			return err
		}
		for _, f := range p.Filters {
			if f.Active {
				x.Of = f.Count
			}
		}
	}
	if d.Review != nil {
		if p.History, err = c.service.History(ctx, d.ID, index); err != nil {
			return err
		}
	}
	p.Card = &x
	return nil
}

// ahead finds what lies before who decides: the next mail that is left, and the next with a flag.
func (c *Console) ahead(ctx context.Context, d reviewcontrol.Draft, p *draftPage) error {
	if !p.May {
		return nil
	}
	for href, flagged := range map[*string]bool{&p.Undecided: false, &p.Flagged: true} {
		next, err := c.onward(ctx, d, p.Query, p.Card.Index, flagged)
		if err != nil {
			return err
		}
		if next != p.Card.Index {
			*href = p.Query.at(d.ID, next)
		}
	}
	return nil
}

// waiting is another draft that waits for the user, nil when none does.
func (c *Console) waiting(ctx context.Context, by reviewcontrol.Reviewer, but reviewcontrol.ID) (*web.Link, error) {
	d, found, err := c.service.Waiting(ctx, by, but)
	if err != nil || !found {
		return nil, err
	}
	return &web.Link{Text: i18n.T(ctx, "Next draft in review"), Href: "/drafts/" + d.String()}, nil
}

// filters are those by decision, flag and variant, with how many targets each leaves beside what else is
// asked for.
func (c *Console) filters(ctx context.Context, d reviewcontrol.Draft, q targetQuery, list []reviewcontrol.Variant) (
	choices, flags, variants []web.Choice, err error) {
	tally, err := c.service.Tally(ctx, d.ID, q.filter())
	if err != nil {
		return nil, nil, nil, err
	}
	q.After = -1
	all := 0
	for _, n := range tally.Choices {
		all += n
	}
	for _, f := range []struct {
		text   string
		choice reviewcontrol.Choice
		count  int
	}{
		{i18n.T(ctx, "All"), "", all}, {i18n.T(ctx, "To decide"), reviewcontrol.Pending, tally.Choices[reviewcontrol.Pending]},
		{i18n.T(ctx, "Approved"), reviewcontrol.Approve, tally.Choices[reviewcontrol.Approve]},
		{i18n.T(ctx, "Rejected"), reviewcontrol.Reject, tally.Choices[reviewcontrol.Reject]},
	} {
		link := q
		link.Choice = f.choice
		choices = append(choices, web.Choice{Text: f.text, Href: link.page(d.ID), Active: q.Choice == f.choice, Count: f.count})
	}
	for _, f := range triage.Flags() {
		if tally.Flags[f] == 0 && q.Flag != f {
			continue
		}
		link := q
		if link.Flag = f; q.Flag == f { // whoever chooses it again takes it away
			link.Flag = 0
		}
		flags = append(flags, web.Choice{
			Text: i18n.From(ctx).Text(flagBadges[f].Text), Href: link.page(d.ID), Active: q.Flag == f, Count: tally.Flags[f],
		})
	}
	if len(list) < 2 && q.Variant == 0 {
		return choices, flags, nil, nil
	}
	for _, v := range list[:min(len(list), variantsShown)] {
		if tally.Variants[v.Number] == 0 && q.Variant != v.Number {
			continue
		}
		link := q
		if link.Variant = v.Number; q.Variant == v.Number {
			link.Variant = 0
		}
		variants = append(variants, web.Choice{
			Text: i18n.T(ctx, "Variant %d", v.Number), Href: link.page(d.ID), Active: q.Variant == v.Number, Count: tally.Variants[v.Number],
		})
	}
	return choices, flags, variants, nil
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
	undoes, err := c.undoable(r.Context(), by, d)
	if err != nil {
		return err
	}
	p := draftPage{Draft: d, Bars: barsOf(r.Context(), d.Status, d.Counts), Mine: d.Maker.Is(by), Undo: undoes,
		Query: queryOf(r.URL.Query())}
	return c.site.RenderPart(w, r, "draft", "progress", web.Page{Data: p})
}
