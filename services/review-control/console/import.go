package console

import (
	"errors"
	"net/http"
	"strconv"

	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
)

const (
	badLinesOnPage = 50
	// formOverhead is what a form with a file holds beside the file.
	formOverhead = 64 << 10
)

// importRow is an import with its bar.
type importRow struct {
	reviewcontrol.Import
	Bar web.Bar
	// Runs tells that it goes on by itself.
	Runs bool
}

func rowOf(in reviewcontrol.Import) importRow {
	bar := web.Bar{
		Total: max(in.Lines, in.Done), Label: web.Number(in.Done) + " of " + web.Number(in.Lines) + " entries read",
		Parts: []web.Part{{Kind: "good", Count: in.Added}, {Kind: "info", Count: in.Known}, {Kind: "bad", Count: in.Bad}},
	}
	return importRow{in, bar, in.Status == reviewcontrol.ImportWaiting || in.Status == reviewcontrol.ImportRunning}
}

func (c *Console) startImport(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer) error {
	var p suppressionsPage
	p.forms()
	file, form, err := web.Upload(r, "file")
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || len(file.Data) > reviewcontrol.MaxImport {
		p.File.Error = "The file is larger than " + web.Size(reviewcontrol.MaxImport) + ". Split it."
		return c.renderSuppressions(w, r, http.StatusRequestEntityTooLarge, p)
	} else if err != nil {
		return err
	}
	p.DefaultReason.Value = form.Get("default_reason")
	if len(file.Data) == 0 {
		p.File.Error = "Choose a file that is not empty."
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	in, err := c.service.StartImport(r.Context(), by, file.Name, p.DefaultReason.Value, file.Data)
	if rest, marked := web.Mark(err, &p.File, &p.DefaultReason); marked {
		p.Problem = rest
		return c.renderSuppressions(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return web.Go(w, r, "/admin/suppressions/imports/"+in.ID.String())
}

type importPage struct {
	importRow
	BadLines []reviewcontrol.BadLine
	Pager    web.Pager
}

// Kept is how many bad lines there are to see.
func (p importPage) Kept() int { return min(p.Bad, reviewcontrol.MaxBadLines) }

func (c *Console) importPage(w http.ResponseWriter, r *http.Request, _ reviewcontrol.Reviewer) error {
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
		next := "/admin/suppressions/imports/" + id.String() + "?after=" + strconv.Itoa(p.BadLines[badLinesOnPage-1].Line)
		p.Pager = web.Pager{Label: "More bad lines", Next: web.Link{Text: "Next page", Href: next}}
	}
	page := web.Page{
		Title: "Import", Lead: in.Name, Crumbs: []web.Link{{Text: "Suppression list", Href: "/admin/suppressions"}}, Data: p,
	}
	if partial(r) {
		return c.site.RenderPart(w, r, "suppression_import", "import", page)
	}
	return c.site.Render(w, r, "suppression_import", page)
}
