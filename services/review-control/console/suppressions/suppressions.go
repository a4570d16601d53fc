// Package suppressions is the pages of the suppression list, for administrators, and the one on which a recipient
// unsubscribes. It refuses to judge: what may happen is the list's to say.
package suppressions

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/suppression"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

const (
	admin         = "admin"
	importsOnPage = 5
	maxEmail      = 254
)

// Pages are the pages of the list.
type Pages struct {
	suppressed *suppression.List
	site       *web.Site
}

// New returns the pages; site makes their site, below the service's own.
func New(list *suppression.List, site func(web.Options) (*web.Site, error)) (*Pages, error) {
	s, err := site(web.Options{Files: files, Folder: "suppressions", Funcs: template.FuncMap{"state": state}})
	if err != nil {
		return nil, err
	}
	return &Pages{list, s}, nil
}

// Routes are the parts of the console that these pages are. Their assets are below the service's own.
func Routes() []tool.Route {
	return []tool.Route{
		{Prefix: "/admin/suppressions", Role: admin, Tab: "Admin", Title: "Suppressions", Position: 40},
		{Prefix: "/unsubscribe", Public: true},
	}
}

// Mount serves the pages and their assets.
func (c *Pages) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /admin/suppressions", web.Role(admin), c.suppressions)
	c.site.Handle(mux, "POST /admin/suppressions", web.Role(admin), web.Posted(c.suppress))
	c.site.Handle(mux, "GET /admin/suppressions/remove", web.Role(admin), c.removal)
	c.site.Handle(mux, "POST /admin/suppressions/remove", web.Role(admin), web.Posted(c.unsuppress))
	c.site.HandleUpTo(mux, "POST /admin/suppressions/imports", web.Role(admin), suppression.MaxImport+formOverhead, c.startImport)
	// Where a refused import leaves the browser, for whoever opens that address again.
	c.site.Handle(mux, "GET /admin/suppressions/imports", web.Role(admin), func(w http.ResponseWriter, r *http.Request) error {
		return web.Go(w, r, "/admin/suppressions")
	})
	c.site.Handle(mux, "GET /admin/suppressions/imports/{id}", web.Role(admin), c.importPage)
	c.site.Handle(mux, "GET /unsubscribe/{token}", web.Anybody, c.unsubscribePage)
	c.site.Handle(mux, "POST /unsubscribe/{token}", web.Anybody, c.unsubscribe)
}

// state is the badge of an import; "Unknown" for one of a later release.
func state(of string) web.Badge {
	switch of {
	case suppression.ImportWaiting:
		return web.Badge{Text: i18n.N("Waiting")}
	case suppression.ImportRunning:
		return web.Badge{Kind: "info", Text: i18n.N("Running")}
	case suppression.ImportDone:
		return web.Badge{Kind: "good", Text: i18n.N("Done")}
	}
	return web.Badge{Text: i18n.N("Unknown")}
}

// What imports have against lines, as the page says it in its reader's language.
var _ = []string{
	i18n.N("there is no address"), i18n.N("this is no e-mail address"), i18n.N("the entry is too long"),
	i18n.N("a quotation mark is not closed"), i18n.N("there is text behind a closing quotation mark"),
}

// suppressionsPage is the list with its two forms: one address, or a file of them.
type suppressionsPage struct {
	List                []suppression.Entry
	Search              string
	Pager               web.Pager
	Email, Reason       web.Field
	File, DefaultReason web.Field
	Imports             []importRow
	Problem             string
}

// forms sets the page's fields; their values and errors come with the refusal of one.
func (p *suppressionsPage) forms(ctx context.Context) {
	p.Email = web.Field{
		Name: "email", Label: i18n.T(ctx, "E-mail"), Type: "email", Required: true, MaxLength: maxEmail, Autocomplete: "off",
		Placeholder: "name@example.com",
	}
	p.Reason = web.Field{Name: "reason", Label: i18n.T(ctx, "Reason"), MaxLength: suppression.MaxReason, Autocomplete: "off"}
	p.File = web.Field{
		Name: "file", Label: i18n.T(ctx, "CSV file"), Type: "file", Required: true, Accept: ".csv,.txt,text/csv,text/plain",
		Hint: i18n.T(ctx, "Up to %s. One address a line, or columns named email and reason.", web.Size(suppression.MaxImport)),
	}
	p.DefaultReason = web.Field{
		Name: "default_reason", Label: i18n.T(ctx, "Reason for lines without one"), MaxLength: suppression.MaxReason, Autocomplete: "off",
	}
}

// suppressions shows the list.
func (c *Pages) suppressions(w http.ResponseWriter, r *http.Request) error {
	var p suppressionsPage
	p.forms(r.Context())
	return c.renderSuppressions(w, r, 0, p)
}

// renderSuppressions shows the list with the forms as they were filled in, and the newest imports.
func (c *Pages) renderSuppressions(w http.ResponseWriter, r *http.Request, status int, p suppressionsPage) error {
	ctx, q := r.Context(), r.URL.Query()
	p.Search = text.Head(text.Storable(strings.TrimSpace(q.Get("q"))), maxEmail)
	after := text.Head(text.Storable(q.Get("after")), 2*maxEmail)
	list, next, err := c.suppressed.Entries(ctx, p.Search, after, web.RowsOnPage)
	if err != nil {
		return err
	}
	address := func(after string) string {
		v := url.Values{}
		if after != "" {
			v.Set("after", after)
		}
		if p.Search != "" {
			v.Set("q", p.Search)
		}
		return strings.TrimSuffix("/admin/suppressions?"+v.Encode(), "?")
	}
	p.List, p.Pager = list, web.Pager{Label: i18n.T(ctx, "More addresses"), Key: "n"}
	if after != "" {
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "First page"), Href: address("")}
	}
	if next != "" {
		p.Pager.Next = web.Link{Text: i18n.T(ctx, "Next page"), Href: address(next)}
	}
	imports, err := c.suppressed.Imports(ctx, importsOnPage)
	if err != nil {
		return err
	}
	for _, in := range imports {
		p.Imports = append(p.Imports, rowOf(ctx, in))
	}
	return c.site.Render(w, r, "suppressions", web.Page{
		Title: i18n.T(ctx, "Suppression list"), Lead: i18n.T(ctx, "No mail goes to these addresses, whoever approves it."),
		Status: status, Data: p,
		Keys: []web.Key{{Press: "j", Does: i18n.T(ctx, "Next address")}, {Press: "k", Does: i18n.T(ctx, "Address before")},
			{Press: "n", Does: i18n.T(ctx, "Next page")}},
	})
}

// suppress puts an address on the list. One that is there already is no error: what was asked for holds.
func (c *Pages) suppress(w http.ResponseWriter, r *http.Request, form url.Values) error {
	email := strings.TrimSpace(form.Get("email"))
	var p suppressionsPage
	p.forms(r.Context())
	p.Email.Value, p.Reason.Value = form.Get("email"), form.Get("reason")
	added, err := c.suppressed.Add(r.Context(), emailOf(r), email, p.Reason.Value)
	if rest, marked := web.Mark(err, &p.Email, &p.Reason); marked {
		p.Problem = rest
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if added {
		web.Done(w, r, i18n.T(r.Context(), "%s is on the list now.", email))
	} else {
		web.Done(w, r, i18n.T(r.Context(), "%s was on the list already; nothing changed.", email))
	}
	return web.Go(w, r, "/admin/suppressions")
}

// removal is the page on which an administrator says why an address leaves the list.
func (c *Pages) removal(w http.ResponseWriter, r *http.Request) error {
	return c.renderRemoval(w, r, 0, r.URL.Query().Get("email"), removalReason(r.Context()))
}

// removalReason asks why an address leaves the list; it is required, because mails go there again.
func removalReason(ctx context.Context) web.Field {
	return web.Field{
		Name: "reason", Label: i18n.T(ctx, "Reason"), Type: "textarea", Rows: 3, Required: true,
		MaxLength: suppression.MaxReason, Autofocus: true, Hint: i18n.T(ctx, "It is kept in the audit log."),
	}
}

// renderRemoval asks before an address leaves the list, and warns of a person who has unsubscribed.
func (c *Pages) renderRemoval(w http.ResponseWriter, r *http.Request, status int, email string, reason web.Field) error {
	entry, err := c.entry(r, email)
	if err != nil {
		return err
	}
	ctx := r.Context()
	ask := web.Confirmation{
		Text:   i18n.T(ctx, "Once it is removed, approved mails go to this address again."),
		Facts:  []web.Fact{{Label: i18n.T(ctx, "Address"), Value: entry.Email}, {Label: i18n.T(ctx, "On the list since"), At: entry.At}},
		Action: "/admin/suppressions/remove", Hidden: map[string]string{"email": entry.Email}, Fields: []web.Field{reason},
		Button: i18n.T(ctx, "Remove"), Keep: web.Link{Text: i18n.T(ctx, "Keep it"), Href: "/admin/suppressions"},
	}
	for _, f := range []web.Fact{{Label: i18n.T(ctx, "Added by"), Value: entry.By}, {Label: i18n.T(ctx, "Why"), Value: entry.Reason}} {
		if f.Value != "" {
			ask.Facts = append(ask.Facts, f)
		}
	}
	if entry.Source == suppression.FromUnsubscribe {
		ask.Warning = i18n.T(ctx, "This person unsubscribed. Remove the address only if they asked for mails again.")
	}
	return c.site.Confirm(w, r, web.Page{
		Title: i18n.T(ctx, "Remove from the suppression list"), Status: status,
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Suppression list"), Href: "/admin/suppressions"}},
	}, ask)
}

// emailOf is the address of the administrator who asks.
func emailOf(r *http.Request) string {
	u, _ := web.UserOf(r.Context())
	return u.Email
}

// entry finds the entry of an address.
func (c *Pages) entry(r *http.Request, email string) (suppression.Entry, error) {
	missing := fault.New(fault.NotFound, "%s is not on the suppression list.", text.Shown(email, maxEmail))
	if email == "" || strings.HasPrefix(email, "@") {
		return suppression.Entry{}, missing
	}
	// An address may be the start of others; it comes before them.
	list, _, err := c.suppressed.Entries(r.Context(), email, "", 1)
	if err != nil {
		return suppression.Entry{}, err
	}
	if len(list) == 0 || suppression.Key(list[0].Email) != suppression.Key(email) {
		return suppression.Entry{}, missing
	}
	return list[0], nil
}

// unsuppress takes an address off the list.
func (c *Pages) unsuppress(w http.ResponseWriter, r *http.Request, form url.Values) error {
	email, reason := form.Get("email"), removalReason(r.Context())
	reason.Value = form.Get("reason")
	err := c.suppressed.Remove(r.Context(), emailOf(r), email, reason.Value)
	if rest, marked := web.Mark(err, &reason); marked {
		if reason.Error == "" {
			reason.Error = rest
		}
		return c.renderRemoval(w, r, http.StatusUnprocessableEntity, email, reason)
	}
	switch {
	case fault.Is(err, fault.NotFound):
		web.Wrong(w, r, fault.From(err).Message)
	case err != nil:
		return err
	default:
		web.Done(w, r, i18n.T(r.Context(), "%s is no longer on the list.", email))
	}
	return web.Go(w, r, "/admin/suppressions")
}

const (
	badLinesOnPage = 50
	// formOverhead is what a form with a file holds beside the file.
	formOverhead = 64 << 10
)

// importRow is an import with its bar.
type importRow struct {
	suppression.Import
	Bar web.Bar
	// Runs tells that it goes on by itself.
	Runs bool
}

// rowOf draws an import: added entries, those on the list before, and those that are no addresses.
func rowOf(ctx context.Context, in suppression.Import) importRow {
	bar := web.Bar{
		Total: max(in.Lines, in.Done), Label: i18n.T(ctx, "%s of %s entries read", web.Number(in.Done), web.Number(in.Lines)),
		Parts: []web.Part{{Kind: "good", Count: in.Added}, {Kind: "info", Count: in.Known}, {Kind: "bad", Count: in.Bad}},
	}
	return importRow{in, bar, in.Status == suppression.ImportWaiting || in.Status == suppression.ImportRunning}
}

// startImport keeps a file, which a job reads then; its page shows how far that is.
func (c *Pages) startImport(w http.ResponseWriter, r *http.Request) error {
	var p suppressionsPage
	p.forms(r.Context())
	file, form, err := web.Upload(r, "file")
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || len(file.Data) > suppression.MaxImport {
		p.File.Error = i18n.T(r.Context(), "The file is larger than %s. Split it.", web.Size(suppression.MaxImport))
		return c.renderSuppressions(w, r, http.StatusRequestEntityTooLarge, p)
	} else if err != nil {
		return err
	}
	p.DefaultReason.Value = form.Get("default_reason")
	if len(file.Data) == 0 {
		p.File.Error = i18n.T(r.Context(), "Choose a file that is not empty.")
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	in, err := c.suppressed.StartImport(r.Context(), emailOf(r), file.Name, p.DefaultReason.Value, file.Data)
	if rest, marked := web.Mark(err, &p.File, &p.DefaultReason); marked {
		p.Problem = rest
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return web.Go(w, r, "/admin/suppressions/imports/"+in.ID.String())
}

// importPage is one import: how far it is, and a page of the lines that it could not read.
type importPage struct {
	importRow
	BadLines []suppression.BadLine
	Pager    web.Pager
}

// Kept is how many bad lines there are to see.
func (p importPage) Kept() int { return min(p.Bad, suppression.MaxBadLines) }

func (c *Pages) importPage(w http.ResponseWriter, r *http.Request) error {
	id, ok := schema.ParseID(r.PathValue("id"))
	if !ok {
		return reviewcontrol.Missing("import", r.PathValue("id"))
	}
	ctx := r.Context()
	in, err := c.suppressed.Import(ctx, id)
	if err != nil {
		return err
	}
	p := importPage{importRow: rowOf(ctx, in)}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	if in.Bad > 0 {
		if p.BadLines, err = c.suppressed.BadLines(ctx, id, max(after, 0), badLinesOnPage+1); err != nil {
			return err
		}
	}
	if len(p.BadLines) > badLinesOnPage {
		p.BadLines = p.BadLines[:badLinesOnPage]
		next := "/admin/suppressions/imports/" + id.String() + "?after=" + strconv.Itoa(p.BadLines[badLinesOnPage-1].Line)
		p.Pager = web.Pager{Label: i18n.T(ctx, "More bad lines"), Next: web.Link{Text: i18n.T(ctx, "Next page"), Href: next}}
	}
	page := web.Page{
		Title: i18n.T(ctx, "Import"), Lead: in.Name, Data: p,
		Crumbs: []web.Link{{Text: i18n.T(ctx, "Suppression list"), Href: "/admin/suppressions"}},
	}
	if r.Header.Get("HX-Request") != "" {
		return c.site.RenderPart(w, r, "suppression_import", "import", page)
	}
	return c.site.Render(w, r, "suppression_import", page)
}
