package reviewcontrol

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
)

const (
	suppressionsOnPage = 25
	importsOnPage      = 5
	badLinesOnPage     = 50
	// formOverhead is what a form with a file holds beside the file.
	formOverhead = 64 << 10
	maxEmail     = 254
)

type suppressionsPage struct {
	List                []Suppression
	Search, Next        string
	Begun               bool
	Email, Reason       web.Field
	File, DefaultReason web.Field
	Imports             []importRow
	Problem             string
}

// importRow is an import with its bar.
type importRow struct {
	Import
	Bar web.Bar
	// Runs tells that it goes on by itself.
	Runs bool
}

func rowOf(in Import) importRow {
	return importRow{in, web.Bar{Total: max(in.Lines, in.Done), Label: web.Number(in.Done) + " of " + web.Number(in.Lines) + " entries read",
		Parts: []web.Part{{Kind: "good", Count: in.Added}, {Kind: "info", Count: in.Known}, {Kind: "bad", Count: in.Bad}}},
		in.Status == ImportWaiting || in.Status == ImportRunning}
}

// forms sets the page's fields; their values and errors come with the refusal of one.
func (p *suppressionsPage) forms() {
	p.Email = web.Field{Name: "email", Label: "E-mail", Type: "email", Required: true, MaxLength: maxEmail, Autocomplete: "off", Placeholder: "name@example.com"}
	p.Reason = web.Field{Name: "reason", Label: "Reason", MaxLength: maxNote, Autocomplete: "off"}
	p.File = web.Field{Name: "file", Label: "CSV file", Type: "file", Required: true, Accept: ".csv,.txt,text/csv,text/plain",
		Hint: "Up to " + web.Size(MaxImport) + ". One address a line, or columns named email and reason."}
	p.DefaultReason = web.Field{Name: "default_reason", Label: "Reason for lines without one", MaxLength: maxNote, Autocomplete: "off"}
}

func (c *Console) suppressions(w http.ResponseWriter, r *http.Request, _ Reviewer) error {
	var p suppressionsPage
	p.forms()
	return c.renderSuppressions(w, r, 0, p)
}

func (c *Console) renderSuppressions(w http.ResponseWriter, r *http.Request, status int, p suppressionsPage) error {
	q := r.URL.Query()
	p.Search = shorten(strings.TrimSpace(q.Get("q")), maxEmail)
	after := shorten(q.Get("after"), 2*maxEmail)
	var err error
	if p.List, p.Next, err = c.service.Suppressions(r.Context(), p.Search, after, suppressionsOnPage); err != nil {
		return err
	}
	p.Begun = after != ""
	if p.Next != "" {
		v := url.Values{"after": {p.Next}}
		if p.Search != "" {
			v.Set("q", p.Search)
		}
		p.Next = withQuery("/admin/suppressions", v)
	}
	imports, err := c.service.Imports(r.Context(), importsOnPage)
	if err != nil {
		return err
	}
	for _, in := range imports {
		p.Imports = append(p.Imports, rowOf(in))
	}
	return c.site.Render(w, r, "suppressions", web.Page{Title: "Suppression list", Lead: "No mail goes to these addresses, whoever approves it.", Status: status, Data: p,
		Keys: []web.Key{{Press: "j", Does: "Next address"}, {Press: "k", Does: "Address before"}}})
}

func (c *Console) suppress(w http.ResponseWriter, r *http.Request, by Reviewer) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	email := strings.TrimSpace(form.Get("email"))
	added, err := c.service.Suppress(r.Context(), by, email, form.Get("reason"))
	if problems := web.Problems(err); problems != nil {
		var p suppressionsPage
		p.forms()
		p.Email.Value, p.Reason.Value = form.Get("email"), form.Get("reason")
		p.Email.Error, p.Reason.Error, p.Problem = problems["email"], problems["reason"], problems[""]
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if added {
		web.Done(w, r, email+" is on the list now.")
	} else {
		web.Done(w, r, email+" was on the list already; nothing changed.")
	}
	return web.Go(w, r, "/admin/suppressions")
}

type removalPage struct {
	Entry  Suppression
	Reason web.Field
}

// removal is the page on which an administrator says why an address leaves the list.
func (c *Console) removal(w http.ResponseWriter, r *http.Request, _ Reviewer) error {
	return c.renderRemoval(w, r, 0, r.URL.Query().Get("email"), "", "")
}

func (c *Console) renderRemoval(w http.ResponseWriter, r *http.Request, status int, email, reason, problem string) error {
	entry, err := c.suppressed(r, email)
	if err != nil {
		return err
	}
	p := removalPage{entry, web.Field{Name: "reason", Label: "Reason", Type: "textarea", Rows: 3, Required: true, MaxLength: maxNote, Value: reason, Error: problem, Autofocus: true,
		Hint: "It is kept in the audit log."}}
	return c.site.Render(w, r, "suppression_remove", web.Page{Title: "Remove from the suppression list", Crumbs: []web.Link{{Text: "Suppression list", Href: "/admin/suppressions"}},
		Status: status, Data: p})
}

// suppressed finds the entry of an address.
func (c *Console) suppressed(r *http.Request, email string) (Suppression, error) {
	missing := fault.New(fault.NotFound, "%s is not on the suppression list.", shorten(email, maxEmail))
	if email == "" || strings.HasPrefix(email, "@") {
		return Suppression{}, missing
	}
	// An address may be the begin of others; it comes before them.
	list, _, err := c.service.Suppressions(r.Context(), email, "", 1)
	if err != nil {
		return Suppression{}, err
	}
	if len(list) == 0 || EmailKey(list[0].Email) != EmailKey(email) {
		return Suppression{}, missing
	}
	return list[0], nil
}

func (c *Console) unsuppress(w http.ResponseWriter, r *http.Request, by Reviewer) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	email, reason := form.Get("email"), form.Get("reason")
	err = c.service.Unsuppress(r.Context(), by, email, reason)
	switch problems := web.Problems(err); {
	case problems != nil:
		problem := problems["reason"]
		if problem == "" {
			problem = sentence(err)
		}
		return c.renderRemoval(w, r, http.StatusUnprocessableEntity, email, reason, problem)
	case fault.Is(err, fault.NotFound):
		web.Wrong(w, r, fault.From(err).Message)
	case err != nil:
		return err
	default:
		web.Done(w, r, email+" is no longer on the list.")
	}
	return web.Go(w, r, "/admin/suppressions")
}

func (c *Console) startImport(w http.ResponseWriter, r *http.Request, by Reviewer) error {
	var p suppressionsPage
	p.forms()
	file, form, err := web.Upload(r, "file")
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || len(file.Data) > MaxImport {
		p.File.Error = "The file is larger than " + web.Size(MaxImport) + ". Split it."
		return c.renderSuppressions(w, r, http.StatusRequestEntityTooLarge, p)
	} else if err != nil {
		return err
	}
	p.DefaultReason.Value = form.Get("default_reason")
	if len(file.Data) == 0 {
		p.File.Error = "Choose a file that is not empty."
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	in, err := c.service.StartImport(r.Context(), by, file.Name, form.Get("default_reason"), file.Data)
	if problems := web.Problems(err); problems != nil {
		p.DefaultReason.Error, p.File.Error, p.Problem = problems["reason"], problems["file"], problems[""]
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return web.Go(w, r, "/admin/suppressions/imports/"+in.ID.String())
}

type importPage struct {
	importRow
	BadLines []BadLine
	Next     string
}

// Kept is how many bad lines there are to see.
func (p importPage) Kept() int { return min(p.Bad, MaxBadLines) }

func (c *Console) importPage(w http.ResponseWriter, r *http.Request, _ Reviewer) error {
	id, err := pathID(r, "import")
	if err != nil {
		return err
	}
	in, err := c.service.Import(r.Context(), id)
	if err != nil {
		return err
	}
	p := importPage{importRow: rowOf(in)}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	if in.Bad > 0 {
		if p.BadLines, err = c.service.BadLines(r.Context(), id, max(after, 0), badLinesOnPage+1); err != nil {
			return err
		}
	}
	if len(p.BadLines) > badLinesOnPage {
		p.BadLines = p.BadLines[:badLinesOnPage]
		p.Next = "/admin/suppressions/imports/" + id.String() + "?after=" + strconv.Itoa(p.BadLines[badLinesOnPage-1].Line)
	}
	page := web.Page{Title: "Import", Lead: in.Name, Crumbs: []web.Link{{Text: "Suppression list", Href: "/admin/suppressions"}}, Data: p}
	if partial(r) {
		return c.site.RenderPart(w, r, "suppression_import", "import", page)
	}
	return c.site.Render(w, r, "suppression_import", page)
}
