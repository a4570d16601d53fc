package reviewcontrol

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/web"
)

const (
	draftsOnPage  = 20
	targetsOnPage = 20
	// maxShown is how much of a mail's body, and of what lies beside it, a list shows; a mail
	// with more shows its begin there, and everything on a page of its own.
	maxShown, maxBegin = 64 << 10, 8 << 10
	// maxValues is how many values of the evidence a list shows, maxValuesAlone a page of its own.
	maxValues, maxValuesAlone = 300, 20_000
)

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
	Status  Status
	Next    string
	// Begun tells that there is a page before this one.
	Begun bool
}

type draftRow struct {
	Draft
	Bars bars
}

// bars are what is done of a draft: its review, and the sending of what was approved.
type bars struct {
	Status           Status
	Counts           Counts
	Review, Delivery web.Bar
	// Delivers tells that mails are, or were, on their way.
	Delivers bool
}

func barsOf(status Status, c Counts) bars {
	return bars{Status: status, Counts: c,
		Review: web.Bar{Total: c.Total(), Label: fmt.Sprintf("%s of %s decided: %s approved, %s rejected", web.Number(c.Decided()), web.Number(c.Total()), web.Number(c.Approved), web.Number(c.Rejected)),
			Parts: []web.Part{{Kind: "good", Count: c.Approved}, {Kind: "bad", Count: c.Rejected}}},
		Delivery: web.Bar{Total: c.Approved, Label: fmt.Sprintf("%s of %s mails: %s sent, %s failed, %s suppressed, %s unknown", web.Number(c.Approved-c.Waiting()), web.Number(c.Approved),
			web.Number(c.Sent), web.Number(c.Failed), web.Number(c.Suppressed), web.Number(c.Unknown)),
			Parts: []web.Part{{Kind: "good", Count: c.Sent}, {Kind: "bad", Count: c.Failed}, {Kind: "warn", Count: c.Suppressed + c.Unknown}}},
		Delivers: status == Approved || status == Sent || c.Sent+c.Failed+c.Suppressed+c.Unknown > 0}
}

func (c *Console) drafts(w http.ResponseWriter, r *http.Request, _ Reviewer) error {
	q := r.URL.Query()
	p := draftsPage{Status: Status(q.Get("status"))}
	if !slices.Contains(Statuses(), p.Status) {
		p.Status = ""
	}
	below, _ := ParseID(q.Get("below"))
	page, err := c.service.Drafts(r.Context(), DraftFilter{Status: p.Status, Below: below, Limit: draftsOnPage})
	if err != nil {
		return err
	}
	address := func(status Status, below ID) string {
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
	for _, s := range Statuses() {
		p.Filters = append(p.Filters, choiceLink{state(s).Text, address(s, 0), p.Status == s, -1})
	}
	for _, d := range page.Drafts {
		p.Drafts = append(p.Drafts, draftRow{d, barsOf(d.Status, d.Counts)})
	}
	if page.Next != 0 {
		p.Next = address(p.Status, page.Next)
	}
	p.Begun = below != 0
	return c.site.Render(w, r, "drafts", web.Page{Title: "Drafts", Lead: "Mails that agents have prepared. Nothing is sent before a person has approved it.", Data: p,
		Keys: []web.Key{{Press: "j", Does: "Next draft"}, {Press: "k", Does: "Draft before"}, {Press: "o", Does: "Open the draft"}}})
}

func withQuery(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// targetQuery is what of a draft a page shows, as its address has it.
type targetQuery struct {
	Choice   Choice
	Progress Progress
	Search   string
	After    int
	// Alone is the page of one target: only forms say so.
	Alone bool
}

// queryOf reads an address or the field of a form; what it does not know is left out.
func queryOf(v url.Values) targetQuery {
	q := targetQuery{Choice: Choice(v.Get("decision")), Progress: Progress(v.Get("delivery")), Search: strings.TrimSpace(v.Get("q")), After: -1, Alone: v.Get("alone") == "1"}
	if !slices.Contains([]Choice{Pending, Approve, Reject}, q.Choice) {
		q.Choice = ""
	}
	if !slices.Contains(progresses, q.Progress) {
		q.Progress = NotDue
	}
	q.Search = shorten(q.Search, 200)
	if n, err := strconv.Atoi(v.Get("after")); err == nil && n >= 0 {
		q.After = n
	}
	return q
}

var progresses = []Progress{Queued, Sending, Delivered, Failed, Changed, Suppressed, Unknown}

func (q targetQuery) values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"decision": string(q.Choice), "delivery": string(q.Progress), "q": q.Search} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.After >= 0 {
		v.Set("after", strconv.Itoa(q.After))
	}
	return v
}

// Encode is the query for the field of a form.
func (q targetQuery) Encode() string {
	v := q.values()
	if q.Alone {
		v.Set("alone", "1")
	}
	return v.Encode()
}

// page is the address of the page with that query.
func (q targetQuery) page(id ID, index int) string {
	if q.Alone && index >= 0 {
		return fmt.Sprintf("/drafts/%s/targets/%d", id, index)
	}
	return withQuery("/drafts/"+id.String(), q.values())
}

// at is the address of the page where it shows the target.
func (q targetQuery) at(id ID, index int) string {
	return q.page(id, index) + "#t-" + strconv.Itoa(index)
}

// Filtered tells that not all targets are asked for.
func (q targetQuery) Filtered() bool { return q.Choice != "" || q.Progress != "" || q.Search != "" }

// refusal is why a decision was not taken, beside the target it was for.
type refusal struct {
	Index         int
	Message, Note string
}

// card is a target as a page shows it.
type card struct {
	TargetView
	Draft ID
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
	Context, Snapshot value
}

// Shown names what the card shows, for Approve shown.
func (c card) Shown() string {
	return fmt.Sprintf("%d:%s:%d", c.Index, c.Hash(), c.Decision.Revision)
}

// Hash is that of the content which the card shows.
func (c card) Hash() string { return c.Rendering.Hash() }

// Together tells that Approve shown may take the target, as soon as it was shown.
func (c card) Together() bool {
	return c.May && c.Decision.Choice == Pending && !c.Cut && c.Rendering.Alone() == ""
}

// Outdated tells of an approval on which nothing is sent: it was for other content.
func (c card) Outdated() bool {
	return c.Decision.Choice == Approve && c.Delivery.Progress == NotDue && c.Decision.Hash != c.Hash()
}

// Frames are the classes of the preview: its height in a wide window and in a narrow one.
func (c card) Frames() string {
	room := c.Rendering.View.Room
	height := func(room int) int {
		if n := frameOf(room); n > 0 {
			return n
		}
		return len(frames)
	}
	return fmt.Sprintf("w%d n%d", height(room[1]), height(room[0]))
}

// Size is that of what is read first, in bytes.
func (c card) Size() int { return max(len(c.Rendering.HTML), len(c.Rendering.Text)) }

// Source is the mail's HTML, and Text its plain text; a list shows the begin of what is too long for it.
func (c card) Source() string { return c.beginOf(c.Rendering.HTML) }

// Text is the mail's plain text.
func (c card) Text() string { return c.beginOf(c.Rendering.Text) }

func (c card) beginOf(text string) string {
	if c.Cut && !c.Alone {
		text = begin(text, maxBegin)
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

func newCard(d Draft, t TargetView, q targetQuery, may bool) card {
	x := card{TargetView: t, Draft: d.ID, Query: q.Encode(), Queued: d.Review != nil, May: may, Alone: q.Alone}
	values := maxValues
	if q.Alone {
		values = maxValuesAlone
	}
	var cutContext, cutSnapshot bool
	x.Context, cutContext = evidence(t.Mail.Context, values)
	x.Snapshot, cutSnapshot = evidence(t.Mail.Snapshot, values)
	x.Cut = cutContext || cutSnapshot || !q.Alone && (x.Size() > maxShown || len(t.Mail.Context)+len(t.Mail.Snapshot) > maxShown)
	return x
}

type draftPage struct {
	Draft Draft
	// From is whom recipients see the mails come from.
	From  Address
	Bars  bars
	Query targetQuery
	Cards []card
	// First and Next are the addresses of the first page and of the next.
	First, Next string
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

// Last tells what the last decision brings, while there is one target left.
func (b bars) Last() string {
	switch {
	case b.Status != InReview || b.Counts.Pending != 1:
		return ""
	case b.Counts.Approved == 0:
		return "One target is left. Your decision ends the review: if you approve it, its mail is sent; if you reject it, nothing is."
	case b.Counts.Approved == 1:
		return "One target is left. Your decision ends the review: if you approve it, 2 mails are sent; if you reject it, 1."
	}
	return fmt.Sprintf("One target is left. Your decision ends the review: if you approve it, %s mails are sent; if you reject it, %s.", web.Number(b.Counts.Approved+1), web.Number(b.Counts.Approved))
}

// Closed is the review when somebody has ended it.
func (p draftPage) Closed() *Review {
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

func (c *Console) draft(w http.ResponseWriter, r *http.Request, by Reviewer, id ID) error {
	return c.renderDraft(w, r, by, id, queryOf(r.URL.Query()), 0, refusal{Index: -1})
}

func (c *Console) renderDraft(w http.ResponseWriter, r *http.Request, by Reviewer, id ID, q targetQuery, status int, refused refusal) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	page, err := c.service.Targets(r.Context(), d, TargetFilter{Choice: q.Choice, Progress: q.Progress, Search: q.Search, After: q.After, Limit: targetsOnPage})
	if err != nil {
		return err
	}
	p := draftPage{Draft: d, From: c.service.From(Address{d.SenderName, d.SenderEmail}), Bars: barsOf(d.Status, d.Counts), Query: q, Mine: d.Maker.Is(by), Refusal: refused, Filters: filtersOf(d, q),
		Cancels: d.Status == Drafted || d.Status == InReview || d.Status == Approved && d.Review != nil && !d.Review.Attempted}
	p.May = d.Status == InReview && !p.Mine
	opened := openedBy(r, id)
	for _, t := range page.Targets {
		x := newCard(d, t, q, p.May)
		x.Opened = opened.has(t.Index, x.Hash())
		if t.Index == refused.Index {
			x.Refusal, p.Refusal.Message = refused, ""
		}
		if p.May && t.Decision.Choice == Pending {
			p.Undecided++
		}
		if x.Together() {
			p.Together++
		}
		p.Cards = append(p.Cards, x)
	}
	p.Apart = p.Undecided - p.Together
	other := q
	if other.After = -1; q.After >= 0 {
		p.First = other.page(id, -1)
	}
	if other.After = page.Next; page.Next >= 0 {
		p.Next = other.page(id, -1)
	}
	if p.Bars.Delivers {
		p.Deliveries = []web.Option{{Value: "", Text: "Any delivery"}}
		for _, state := range progresses {
			p.Deliveries = append(p.Deliveries, web.Option{Value: string(state), Text: deliveryOption(state)})
		}
	}
	lead := web.Number(d.TargetCount) + " mails to "
	if d.TargetCount == 1 {
		lead = "1 mail to "
	}
	return c.site.Render(w, r, "draft", web.Page{Title: d.Name, Lead: lead + d.SegmentName, Crumbs: []web.Link{{Text: "Drafts", Href: "/drafts"}}, Status: status, Data: p,
		Keys: keysOf(p.May, web.Key{Press: "j", Does: "Next target"}, web.Key{Press: "k", Does: "Target before"}, web.Key{Press: "n", Does: "Next page"})})
}

func deliveryOption(p Progress) string { return state(p).Text }

// filtersOf are the filters by decision, with what each leaves.
func filtersOf(d Draft, q targetQuery) []choiceLink {
	if d.Review == nil {
		return nil
	}
	var out []choiceLink
	for _, f := range []struct {
		text   string
		choice Choice
		count  int
	}{{"All", "", d.Counts.Total()}, {"To decide", Pending, d.Counts.Pending}, {"Approved", Approve, d.Counts.Approved}, {"Rejected", Reject, d.Counts.Rejected}} {
		link := targetQuery{Choice: f.choice, Search: q.Search, After: -1}
		out = append(out, choiceLink{f.text, link.page(d.ID, -1), q.Choice == f.choice, f.count})
	}
	return out
}

// progress answers the part of a draft's page that changes while its mails are sent.
func (c *Console) progress(w http.ResponseWriter, r *http.Request, _ Reviewer, id ID) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	if !partial(r) {
		return web.Go(w, r, "/drafts/"+id.String())
	}
	if d.Status != Approved {
		w.Header().Set("HX-Refresh", "true")
	}
	return c.site.RenderPart(w, r, "draft", "progress", web.Page{Data: draftPage{Draft: d, Bars: barsOf(d.Status, d.Counts)}})
}

type targetPage struct {
	Draft         Draft
	Card          card
	Bars          bars
	Mine          bool
	History       []Decision
	Before, After string
}

func (c *Console) target(w http.ResponseWriter, r *http.Request, by Reviewer, id ID) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	return c.renderTarget(w, r, by, id, index, 0, refusal{Index: -1})
}

func (c *Console) renderTarget(w http.ResponseWriter, r *http.Request, by Reviewer, id ID, index, status int, refused refusal) error {
	d, err := c.service.Draft(r.Context(), id)
	if err != nil {
		return err
	}
	t, err := c.service.Target(r.Context(), id, index)
	if err != nil {
		return err
	}
	p := targetPage{Draft: d, Mine: d.Maker.Is(by), Bars: barsOf(d.Status, d.Counts)}
	p.Card = newCard(d, t, targetQuery{After: -1, Alone: true}, d.Status == InReview && !p.Mine)
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
	if index > 0 {
		p.Before = fmt.Sprintf("/drafts/%s/targets/%d", id, index-1)
	}
	if index+1 < d.TargetCount {
		p.After = fmt.Sprintf("/drafts/%s/targets/%d", id, index+1)
	}
	return c.site.Render(w, r, "target", web.Page{Title: nameOf(t.Target), Lead: fmt.Sprintf("Target %s of %s", web.Number(index+1), web.Number(d.TargetCount)),
		Crumbs: []web.Link{{Text: "Drafts", Href: "/drafts"}, {Text: d.Name, Href: "/drafts/" + id.String()}}, Status: status, Data: p, Keys: keysOf(p.Card.May, web.Key{Press: "n", Does: "Next target"})})
}

func nameOf(t Target) string {
	if t.ToName != "" {
		return t.ToName
	}
	return t.ToEmail
}

// previewPolicy keeps a mail from running, loading and submitting anything, whatever it holds.
const previewPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// framed is a page that another of ours may show in a sandboxed frame, its errors included.
func framed(h web.Handler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Security-Policy", previewPolicy)
		return h(w, r)
	}
}

// preview answers a target's mail alone, as the frame in its card shows it: of a mail in HTML the very
// bytes that are sent. What keeps it in bounds are the policy and the frame's sandbox; that
// nothing harmful is left in it comes on top. The query `of` is the hash of the content that the page
// was made for: another one is not shown in its place.
func (c *Console) preview(w http.ResponseWriter, r *http.Request, _ Reviewer, id ID) error {
	index, err := pathIndex(id, r.PathValue("index"))
	if err != nil {
		return err
	}
	t, err := c.service.Target(r.Context(), id, index)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	hash, content := t.Rendering.Hash(), t.Rendering.HTML
	if content == "" {
		content = documentHead + `<pre style="margin:0;font:inherit;white-space:pre-wrap">` +
			html.EscapeString(t.Rendering.Text) + `</pre>` + documentFoot
	}
	if of := r.URL.Query().Get("of"); of != "" && of != hash {
		w.WriteHeader(http.StatusConflict)
		content = documentHead + "<p><strong>This mail has changed since the page was opened. Reload the page.</strong></p>" + documentFoot
	} else {
		http.SetCookie(w, shownCookie(r, id, index, hash))
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(content)) // a browser that has gone away
	}
	return nil
}
