package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/triage"
)

// variantsShown bounds the variants that a page offers as filters, variantsListed those that it leads to.
const variantsShown, variantsListed = 12, 50

// variantList is how many kinds of mail a draft has.
type variantList struct {
	// Text says so, Links lead to the pages of the largest; More is how many others there are.
	Text  string
	Links []variantLink
	More  int
	// Alone are the mails like no other, AloneHref lists them.
	Alone     int
	AloneHref string
	// Key unfolds the list.
	Key string
}

// variantLink leads to a variant.
type variantLink struct {
	web.Link
	Subject string
	// Says is what is left of it to decide.
	Says    string
	Current bool
}

// variantsOf lists the variants of a draft, nil where none is known.
func variantsOf(ctx context.Context, d reviewcontrol.Draft, list []reviewcontrol.Variant, current int) *variantList {
	if len(list) == 0 {
		return nil
	}
	v := variantList{Text: web.PluralIn(ctx, len(list), "variant", "variants"), Alone: d.Review.Inspected}
	for i, x := range list {
		v.Alone -= x.Targets
		if i >= variantsListed && x.Number != current {
			v.More++
			continue
		}
		says := web.PluralIn(ctx, x.Targets, "mail", "mails")
		switch {
		case x.Pending == 0:
			says = i18n.T(ctx, "%s, decided", says)
		case d.Status == reviewcontrol.InReview:
			says = i18n.T(ctx, "%s, %s to decide", says, web.Number(x.Pending))
		}
		to := web.Link{Text: i18n.T(ctx, "Variant %d", x.Number), Href: variantAt(d.ID, x.Number, anywhere)}
		v.Links = append(v.Links, variantLink{to, x.Subject, says, x.Number == current})
	}
	v.Alone = max(0, v.Alone)
	v.AloneHref = targetQuery{Variant: reviewcontrol.NoVariant, After: -1}.page(d.ID)
	return &v
}

// anywhere opens a variant where something of it is left to decide.
const anywhere = -2

// variantAt is the address of a variant's page that begins behind a target; -1 is its begin.
func variantAt(id reviewcontrol.ID, number, after int) string {
	path := fmt.Sprintf("/drafts/%s/variants/%d", id, number)
	if after == anywhere {
		return path
	}
	return path + "?after=" + strconv.Itoa(after)
}

// variantPage is a variant: one mail of it, and what of it differs.
type variantPage struct {
	Draft     reviewcontrol.Draft
	Bars      bars
	Mine, May bool
	Undo      *undo
	Presence  presence
	List      *variantList
	Variant   reviewcontrol.Variant
	// Mail is the mail that stands for all on the page, Page what is said of its templates.
	Mail *card
	Page reviewcontrol.VariantPage
	// Columns are the placeholders that the rows differ in; Same are those with one value on all of them.
	Columns []string
	Same    []valueCell
	Rows    []variantRow
	// After is where the page begins, Last the index of its last row.
	After, Last int
	Pager       web.Pager
	// Together is how many Approve takes, Own how many undecided ones it leaves, and OwnHref leads to the first of those.
	Together, Own int
	OwnHref       string
	// Rejects asks why all undecided mails of the variant are rejected.
	Rejects rejects
	// Ends tells what Approve brings where it ends the review.
	Ends string
	// Onward leads to the next variant with something to decide.
	Onward *web.Link
}

// variantRow is a target in the table.
type variantRow struct {
	reviewcontrol.VariantRow
	Flags       []flagged
	Href        string
	Name, Email valueCell
	Cells       []valueCell
	// Shown names what the row shows, where Approve takes it.
	Shown string
}

// Own tells that the target has to be decided on by itself.
func (r variantRow) Own() bool {
	return r.Decision.Choice == reviewcontrol.Pending && !r.Together()
}

// valueCell is a placeholder's value in the table.
type valueCell struct {
	Name string
	triage.Value
	// Start is what is there of a long value until it is unfolded.
	Start []triage.Part
	Signs []flagged
	// Token names what all rows have in common, for whoever remembers that it was in view.
	Token string
}

// Empty tells that there is nothing to read.
func (c valueCell) Empty() bool {
	return slices.Contains(c.Value.Signs, triage.EmptyValue) && len(c.Parts) == 0
}

// cellOf is a placeholder's value with the signs that make it worth a look.
func cellOf(name, text string) valueCell {
	c := valueCell{Name: strings.TrimPrefix(name, "context."), Value: triage.ReadValue(text)}
	for _, sign := range c.Value.Signs {
		c.Signs = append(c.Signs, flagged{Name: string(sign), Badge: web.Badge{Kind: "warn", Text: signTexts[sign]}})
	}
	if slices.Contains(c.Value.Signs, triage.LongValue) {
		c.Start = startOf(c.Parts, triage.LongText/2)
	}
	return c
}

// startOf is the begin of a text, at most so many characters.
func startOf(parts []triage.Part, most int) (start []triage.Part) {
	for _, p := range parts {
		text := []rune(p.Text)
		if !p.Named && len(text) > most {
			p.Text = string(text[:most])
		}
		start = append(start, p)
		if most -= len(text); most <= 0 {
			break
		}
	}
	return start
}

// signTexts has the words for each sign of a value.
var signTexts = map[triage.Sign]string{
	triage.PromptLikeValue:  i18n.N("Prompt-like"),
	triage.LinkValue:        i18n.N("Link"),
	triage.MarkupValue:      i18n.N("Markup, as text"),
	triage.InvisibleValue:   i18n.N("Unseen characters"),
	triage.RightToLeftValue: i18n.N("Right to left"),
	triage.LinesValue:       i18n.N("Several lines"),
	triage.LongValue:        i18n.N("Long"),
	triage.EmptyValue:       i18n.N("Empty"),
}

// variantNumber is the number of a variant in the address of a page.
func variantNumber(r *http.Request, id reviewcontrol.ID) (int, error) {
	typed := r.PathValue("n")
	n, err := strconv.Atoi(typed)
	if err != nil || n < 1 || n > reviewcontrol.MaxIndex || strconv.Itoa(n) != typed {
		return 0, fault.New(fault.NotFound, "Draft %s has no variant %q.", id, text.Shown(typed, 20))
	}
	return n, nil
}

// afterOf is where a variant's page begins, as an address or a form says.
func afterOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= -1 {
		return min(n, reviewcontrol.MaxIndex)
	}
	return anywhere
}

// variant shows one mail of a variant, and what the others have instead.
func (c *Console) variant(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error {
	ctx := r.Context()
	number, err := variantNumber(r, id)
	if err != nil {
		return err
	}
	d, err := c.service.Draft(ctx, id)
	if err != nil {
		return err
	}
	after := afterOf(r.URL.Query().Get("after"))
	if after == anywhere {
		left, err := c.service.Next(ctx, d, reviewcontrol.TargetFilter{Variant: number, Choice: reviewcontrol.Pending, After: -1})
		if err != nil {
			return err
		}
		after = max(left, 0) - 1
	}
	p := variantPage{Draft: d, Bars: barsOf(ctx, d.Status, d.Counts), Mine: d.Maker.Is(by), After: after, Last: after}
	p.May = d.Status == reviewcontrol.InReview && !p.Mine
	if p.Page, err = c.service.Variant(ctx, d, number, after); err != nil {
		return err
	}
	p.Variant = p.Page.Variant
	list, err := c.service.Variants(ctx, id)
	if err != nil {
		return err
	}
	p.List = variantsOf(ctx, d, list, number)
	if next := nextVariant(list, number); next != nil && p.May {
		p.Onward = &web.Link{Text: i18n.T(ctx, "Variant %d", next.Number), Href: variantAt(id, next.Number, anywhere)}
	}
	if p.Undo, err = c.undoable(ctx, by, d); err != nil {
		return err
	}
	p.Presence.ID = id
	p.fill(ctx)
	return c.site.Render(w, r, "variant", web.Page{
		Title: i18n.T(ctx, "Variant %d", number),
		Lead: i18n.T(ctx, "%s that differ in %s alone", web.PluralIn(ctx, p.Variant.Targets, "mail", "mails"),
			web.PluralIn(ctx, len(p.Variant.Placeholders), "placeholder", "placeholders")),
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Drafts"), Href: "/drafts"}, {Text: d.Name, Href: "/drafts/" + id.String()}},
		Data:   p, Keys: p.keys(ctx), Wide: true,
	})
}

// keys are those of the page.
func (p variantPage) keys(ctx context.Context) []web.Key {
	keys := []web.Key{{Press: "j", Does: i18n.T(ctx, "Next row")}, {Press: "k", Does: i18n.T(ctx, "Previous row")},
		{Press: "n", Does: i18n.T(ctx, "Next page of the variant")}}
	if p.Onward != nil {
		keys = append(keys, web.Key{Press: "v", Does: i18n.T(ctx, "Next variant with something to decide")})
	}
	if p.May {
		keys = append(keys,
			web.Key{Press: "a", Does: i18n.T(ctx, "Approve the rows, once all was in view; before that, what was not comes into view")},
			web.Key{Press: "r", Does: i18n.T(ctx, "Reject all that are left of the variant; 0–6 is the reason")})
	}
	if p.May || p.Undo != nil {
		keys = append(keys, web.Key{Press: "u", Does: i18n.T(ctx, "Undo what was decided last")})
	}
	return keys
}

// fill makes the table of what was found.
func (p *variantPage) fill(ctx context.Context) {
	q := targetQuery{Variant: p.Variant.Number, After: -1}
	if p.Page.Mail != nil {
		x := newCard(ctx, p.Draft, *p.Page.Mail, q, p.May, noRefusal)
		p.Mail = &x
	}
	differ := p.fold()
	for _, x := range p.Page.Rows {
		row := variantRow{VariantRow: x, Flags: flaggedOf(ctx, x.Flags), Href: q.at(p.Draft.ID, x.Index),
			Name: cellOf("toName", x.ToName), Email: cellOf("toEmail", x.ToEmail)}
		for _, i := range differ {
			if x.Made {
				row.Cells = append(row.Cells, cellOf(p.Variant.Placeholders[i], x.Values[i]))
			} else {
				row.Cells = append(row.Cells, valueCell{Name: p.Variant.Placeholders[i]})
			}
		}
		switch {
		case p.May && row.Together():
			p.Together++
			row.Shown = shownText(row.Target, row.Hash)
		case p.May && row.Own():
			if p.Own++; p.Own == 1 {
				p.OwnHref = fmt.Sprintf("#row-%d", row.Index)
			}
		}
		p.Last = row.Index
		p.Rows = append(p.Rows, row)
	}
	p.Pager = web.Pager{Label: i18n.T(ctx, "More of this variant"), Key: "n"}
	if p.After >= 0 {
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: variantAt(p.Draft.ID, p.Variant.Number, -1)}
	}
	if p.Page.Next >= 0 {
		p.Pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: variantAt(p.Draft.ID, p.Variant.Number, p.Page.Next)}
	}
	all := i18n.T(ctx, "Reject all %s", web.Number(p.Variant.Pending))
	if p.Variant.Pending == 1 {
		all = i18n.T(ctx, "Reject the one left")
	}
	p.Rejects = rejectsOf(ctx, all, "r", "variant")
	if p.Together > 0 && p.Together == p.Draft.Counts.Pending {
		p.Ends = i18n.T(ctx, "It ends the review: %s will leave, %s will not.",
			web.PluralIn(ctx, p.Draft.Counts.Approved+p.Together, "mail", "mails"), web.Number(p.Draft.Counts.Rejected))
	}
}

// fold finds the placeholders that need a column, and says of the others what all rows have. Name and address stand at the
// begin of each row.
func (p *variantPage) fold() (differ []int) {
	for i, name := range p.Variant.Placeholders {
		if name == "toName" || name == "toEmail" {
			continue
		}
		values := map[string]bool{}
		for _, row := range p.Page.Rows {
			if row.Made {
				values[row.Values[i]] = true
			}
		}
		if len(values) == 1 && len(p.Page.Rows) > 1 {
			for text := range values {
				c := cellOf(name, text)
				c.Token = fmt.Sprintf("%x", sha256.Sum256([]byte(p.Key()+name+"\x00"+text)))
				p.Same = append(p.Same, c)
			}
			continue
		}
		differ = append(differ, i)
		p.Columns = append(p.Columns, strings.TrimPrefix(name, "context."))
	}
	return differ
}

// Key names what this window remembers of the variant.
func (p variantPage) Key() string { return hex.EncodeToString(p.Variant.Digest) }

// nextVariant is the first behind a variant, or else from the begin, of which something can be approved together; nil when
// there is none.
func nextVariant(list []reviewcontrol.Variant, number int) *reviewcontrol.Variant {
	at := slices.IndexFunc(list, func(v reviewcontrol.Variant) bool { return v.Number == number })
	for i := range list {
		if v := &list[(at+1+i)%len(list)]; v.Together > 0 && v.Number != number {
			return v
		}
	}
	return nil
}

// approveVariant approves the rows of a variant's page that were in view.
func (c *Console) approveVariant(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID,
	form url.Values) error {
	number, err := variantNumber(r, id)
	if err != nil {
		return err
	}
	here := variantAt(id, number, afterOf(form.Get("after")))
	shown, err := shownIn(id, form)
	if err != nil {
		return err
	}
	unseen := len(shown) == 0
	if opened := form.Get("opened"); opened != "" { // of a browser without scripts
		mail, err := shownOf(id, opened)
		if err != nil {
			return err
		}
		unseen = unseen || !openedBy(r, id).has(mail.Index, mail.Hash)
	}
	if unseen {
		web.Wrong(w, r, i18n.T(r.Context(), "Nothing was approved: look through the mail and the whole table first."))
		return web.Go(w, r, here)
	}
	n, review, err := c.service.ApproveVariant(r.Context(), by, id, number, shown)
	if err != nil {
		return answer(w, r, here, "", err)
	}
	web.Done(w, r, together(r.Context(), n, review))
	if review.Status != reviewcontrol.InReview {
		return web.Go(w, r, "/drafts/"+id.String())
	}
	last, _ := strconv.Atoi(form.Get("last"))
	to, err := c.behind(r.Context(), id, number, last)
	if err != nil {
		return err
	}
	return web.Go(w, r, to)
}

// behind is where a reviewer goes from the page of a variant that ends with a target: to its next page with something to
// approve, to the next variant, or to what is left of the draft.
func (c *Console) behind(ctx context.Context, id reviewcontrol.ID, number, last int) (string, error) {
	list, err := c.service.Variants(ctx, id)
	if err != nil {
		return "", err
	}
	for _, v := range list {
		if v.Number == number && v.LastTogether > last {
			return variantAt(id, number, last), nil
		}
	}
	if v := nextVariant(list, number); v != nil {
		return variantAt(id, v.Number, anywhere), nil
	}
	return targetQuery{Choice: reviewcontrol.Pending, After: -1}.page(id), nil
}

// shownIn reads what a form says that was shown: a field for each, or one with commas between them for as many as a form has no fields for.
func shownIn(id reviewcontrol.ID, form url.Values) (shown []reviewcontrol.Shown, err error) {
	several := strings.FieldsFunc(form.Get("targets"), func(r rune) bool { return r == ',' })
	for _, text := range slices.Concat(form["target"], several) {
		x, err := shownOf(id, text)
		if err != nil {
			return nil, err
		}
		shown = append(shown, x)
	}
	return shown, nil
}

// together says what became of mails that were approved at once.
func together(ctx context.Context, n int, r reviewcontrol.Review) string {
	switch {
	case n == 0 && (r.Status == reviewcontrol.Approved || r.Status == reviewcontrol.Rejected):
		return i18n.T(ctx, "Nothing changed: all of them were decided on already, and %s has ended the review.", r.ClosedBy)
	case r.Status != reviewcontrol.InReview:
		return ended(ctx, r)
	case n == 0:
		return i18n.T(ctx, "Nothing changed: all of them were decided on already.")
	}
	return web.PluralIn(ctx, n, "mail is approved.", "mails are approved.")
}
