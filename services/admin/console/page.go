package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console/charts"
	"hub.internal/services/admin/console/table"
)

// wideFrom is how many columns make a page use the whole window.
const wideFrom = 8

// pageView is a version of a page as it is shown.
type pageView struct {
	Path     string
	Page     admin.Page
	Sections []sectionView
	// Versions tells that the reader may see them.
	Versions bool
}

// sectionView is a section; Number counts from 1.
type sectionView struct {
	// Number is part of the addresses of its table.
	Number int
	// Type says which of Text, Cards, Table, Chart and Goals is there: none for a type of a later release.
	Type    string
	Title   string
	Text    template.HTML
	Cards   []cardView
	Table   *table.Table
	Chart   *charts.Chart
	Goals   []charts.Goal
	Caption string
	// Path is that of the page that it is on; CSV is where the table is to be had as a file, if it is.
	Path, CSV string
}

// cardView is a card as the page shows it.
type cardView struct {
	// Value and Delta are numbers as people read them, or texts.
	Label, Value, Unit, Delta, Hint string
	// Number tells that the value is a short number, which is shown large.
	Number bool
	// Up is 1 where the value has grown, -1 where it has shrunk.
	Up int
}

// index lists what the menus lead to, for whoever has a role.
func (c *Console) index(w http.ResponseWriter, r *http.Request) error {
	var shown []menuRow
	// The page opens for every user; without a role it lists nothing.
	if u, _ := web.UserOf(r.Context()); len(u.Roles) > 0 {
		_, groups, err := c.service.Menus(r.Context())
		if err != nil {
			return err
		}
		for _, g := range groups {
			row := menuRow{Group: g.Slug, Name: g.Name, Icon: text.OrEmpty(g.Icon)}
			for _, i := range g.Items {
				if !i.Hidden {
					row.Items = append(row.Items, menuRow{Name: i.Name, Icon: text.OrEmpty(i.Icon), Detail: i.Address(g.Slug)})
				}
			}
			if !g.Hidden && len(row.Items) > 0 {
				shown = append(shown, row)
			}
		}
	}
	return c.site.Render(w, r, "index", web.Page{Title: i18n.T(r.Context(), "Pages"), Data: shown,
		Lead: i18n.T(r.Context(), "What agents have written for you, by the tabs of the console.")})
}

// page is what agents have written at an address.
func (c *Console) page(w http.ResponseWriter, r *http.Request) error {
	p, err := c.service.Place(r.Context(), r.PathValue("group"), r.PathValue("item"), 0)
	if err != nil {
		return err
	}
	switch {
	case p.Href != nil:
		return fault.New(fault.NotFound, "%s has no page here: it leads to %s.", p.Name, *p.Href)
	// An item that nobody has written a page for yet.
	case p.Newest == 0:
		return c.site.Render(w, r, "page", web.Page{Title: p.Name, Status: http.StatusNotFound, Data: pageView{Path: p.Path()}})
	}
	view := viewOf(r.Context(), p, p.Path())
	for n, s := range view.Sections {
		view.Sections[n].CSV = p.Path() + "/tables/" + strconv.Itoa(s.Number)
	}
	sorted(view.Sections, r.URL.Query().Get("sort"))
	u, _ := web.UserOf(r.Context())
	view.Versions = u.Is(administrator)
	return c.site.Render(w, r, "page", web.Page{Title: p.Page.Title, Lead: text.OrEmpty(p.Page.Description),
		Wide: wide(p.Page.Sections), Data: view})
}

// viewOf is a version as it is shown at an address.
func viewOf(ctx context.Context, p admin.Place, at string) pageView {
	view := pageView{Path: p.Path(), Page: p.Page}
	for n, s := range p.Page.Sections {
		view.Sections = append(view.Sections, sectionOf(ctx, at, n+1, s))
	}
	return view
}

// sectionOf lays out a section; path is the page's, number the section's place in it, from 1.
func sectionOf(ctx context.Context, path string, number int, s admin.Section) sectionView {
	v := sectionView{Number: number, Type: s.Type, Title: text.OrEmpty(s.Title), Caption: text.OrEmpty(s.Caption), Path: path}
	switch s.Type {
	case admin.Text:
		// Headings in the text continue those of the page, so that screen readers find one outline.
		level := 2
		if v.Title != "" {
			level = 3
		}
		v.Text = prose(text.OrEmpty(s.Body), level)
	case admin.Stats:
		for _, c := range s.Cards {
			v.Cards = append(v.Cards, cardOf(c))
		}
	case admin.Table:
		t := table.Of(ctx, s)
		v.Table = &t
	case admin.Bar, admin.Line:
		chart := charts.Of(ctx, s)
		v.Chart = &chart
	case admin.Progress:
		v.Goals = charts.Goals(s)
	}
	return v
}

// cardOf lays out a card.
func cardOf(c admin.Card) cardView {
	v := cardView{Label: c.Label, Value: figure(c.Value), Unit: text.OrEmpty(c.Unit), Delta: figure(c.Delta), Hint: text.OrEmpty(c.Hint)}
	v.Number = strings.Trim(v.Value, "-0123456789.,") == "" && len(v.Value) < 16
	sign := strings.TrimLeft(v.Delta, " ")
	switch {
	case strings.HasPrefix(sign, "-"), strings.HasPrefix(sign, "−"):
		v.Up = -1
	case strings.HasPrefix(sign, "+"):
		v.Up = 1
	case len(c.Delta) > 0 && c.Delta[0] != '"' && strings.Trim(v.Delta, "0.") != "": // a number above zero
		v.Up, v.Delta = 1, "+"+v.Delta
	}
	return v
}

// figure is a number, grouped, or a text.
func figure(raw json.RawMessage) string {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return ""
	}
	if raw[0] != '"' {
		return charts.Number(string(raw))
	}
	var s string
	_ = json.Unmarshal(raw, &s) // what is stored was read before
	return s
}

// sorted puts one table in the order that a query asks for: section.column.direction, such as 3.0.desc.
func sorted(sections []sectionView, query string) {
	parts := strings.Split(query, ".")
	if len(parts) != 3 {
		return
	}
	section, err := strconv.Atoi(parts[0])
	column, columnErr := strconv.Atoi(parts[1])
	if err != nil || columnErr != nil || section < 1 || section > len(sections) || sections[section-1].Table == nil {
		return
	}
	sections[section-1].Table.Sort(column, parts[2] == "desc")
}

// wide tells that a table has many columns: then the page uses the whole window.
func wide(sections []admin.Section) bool {
	for _, s := range sections {
		if len(s.Columns) >= wideFrom {
			return true
		}
	}
	return false
}

// csv is a table of a page as a file.
func (c *Console) csv(w http.ResponseWriter, r *http.Request) error {
	p, err := c.service.Place(r.Context(), r.PathValue("group"), r.PathValue("item"), 0)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(r.PathValue("section"))
	if err != nil || number < 1 || number > len(p.Page.Sections) || p.Page.Sections[number-1].Type != admin.Table {
		return fault.New(fault.NotFound, "The page %s has no such table.", p.Path())
	}
	b, err := table.CSV(p.Page.Sections[number-1])
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	// Slugs have no character that a header or a file name cannot have.
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%s-%d.csv"`, p.Group, p.Item, number))
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // a browser that has gone away
	}
	return nil
}
