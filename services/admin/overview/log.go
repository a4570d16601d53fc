package overview

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin/auditlog"
)

const (
	rowsOnPage = 50
	// momentLayout is a moment as the log has it, in UTC.
	momentLayout = "2006-01-02T15:04:05.000000Z"
)

// logPage is the log, or what of it was looked for.
type logPage struct {
	// Filter is the search, which is in the address as well.
	Filter filter
	Rows   []row
	Pager  web.Pager
	// Back is how far there was time to look, and Further goes on from there.
	Back    auditlog.Position
	Further string
	Export  string
	Limit   int
	Days    int
	Status  int
}

// row is a call as the log's page lists it.
type row struct {
	auditlog.Call
	// Name is that of the caller's API key, where it has one; Href leads to the row.
	Name, Href string
	Foreign    bool
	// About is what it was about, Told what its caller was told of a refusal.
	About web.Link
	Told  string
}

// foreign is what an export says of a row that its writer had no business to record; the pages say it in the reader's language.
func foreign(writer string) string { return "Recorded by " + writer + ", which does not own this" }

// search shows the rows that were looked for. What somebody looks for is itself in the log.
func (o *Overview) search(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	f := filterOf(ctx, q, o.c.Now(), o.c.Owners)
	// A form sends its empty fields too; the address without them is the one to keep.
	for name := range q {
		if q.Get(name) == "" {
			return web.Go(w, r, f.Address(logPath, "after", q.Get("after")))
		}
	}
	after, ok := auditlog.ParsePosition(q.Get("after"))
	p := logPage{Filter: f, Export: f.Address(exportPath, "after", ""), Limit: exportLimit}
	p.Pager = web.Pager{Label: i18n.T(ctx, "More of the log"), Key: "n"}
	if ok {
		p.Pager.Back = web.Link{Text: i18n.T(ctx, "Newest"), Href: f.Address(logPath, "after", "")}
	}
	status := 0
	if f.Wrong {
		status = http.StatusUnprocessableEntity
	} else if err := o.fill(r, &p, after); err != nil {
		return err
	}
	return o.site.Render(w, r, "log", web.Page{Title: i18n.T(ctx, "Audit log"), Wide: true, Status: status, Data: p,
		Lead: i18n.T(ctx, "Every call of a tool and every act in the console, newest first."),
		Keys: []web.Key{{Press: "j", Does: i18n.T(ctx, "Next row")}, {Press: "k", Does: i18n.T(ctx, "Row before")},
			{Press: "o", Does: i18n.T(ctx, "Open the row")}, {Press: "n", Does: i18n.T(ctx, "Next page")}}})
}

// fill looks for the rows of a page.
func (o *Overview) fill(r *http.Request, p *logPage, after auditlog.Position) (err error) {
	ctx := r.Context()
	if p.Days, err = o.c.Log.Retention(ctx); err != nil {
		return err
	}
	page, err := o.c.Log.Search(ctx, p.Filter.Filter, after, rowsOnPage)
	if err != nil {
		return err
	}
	if p.Filter.Searches() {
		o.c.Records.Queue(o.entry(ctx, "audit.search", len(page.Calls), p.Filter.Detail()))
	}
	next := p.Filter.Address(logPath, "after", page.Next.String())
	switch {
	case page.Unfinished:
		p.Back, p.Further = page.Next, next
	case !page.Next.At.IsZero():
		p.Pager.Next = web.Link{Text: i18n.T(ctx, "Older"), Href: next}
	}
	ids := map[string]bool{}
	for _, c := range page.Calls {
		ids[keyID(c)] = true
	}
	names := o.names(ctx, ids)
	for _, c := range page.Calls {
		d := detailOf(c.Detail)
		p.Rows = append(p.Rows, row{c, names[keyID(c)], logPath + "/" + c.Position().String(), o.c.Owners.Foreign(c), d.about(ctx), d.told()})
	}
	return nil
}

// keyID is the id of the API key that made a call; empty for a session and for nobody.
func keyID(c auditlog.Call) string {
	if strings.HasPrefix(c.CredentialID, "ak_") {
		return c.CredentialID
	}
	return ""
}

// callPage is one row of the log.
type callPage struct {
	auditlog.Call
	Name, Hash string
	// SQL is the statement of execute_read_sql, JSON the detail, indented.
	SQL, JSON string
	// Draft is the id of the draft that it was about; About leads to what of it, or to something else, Told is what its caller was told.
	Draft, Told string
	About       web.Link
	// Trace is where the spans of the call are shown; empty where nobody has said that.
	Trace string
	// Same is the address of all rows of the request.
	Same string
	// Foreign tells that the writer does not own the name.
	Foreign bool
}

// Exact is the moment as the log has it.
func (p callPage) Exact() string { return p.At.UTC().Format(momentLayout) }

// call shows one row with all that is known of it.
func (o *Overview) call(w http.ResponseWriter, r *http.Request) error {
	at, ok := auditlog.ParsePosition(r.PathValue("call"))
	if !ok || at.ID == "" {
		return fault.New(fault.NotFound, "There is nothing at this address. Search the audit log for the call.")
	}
	c, err := o.c.Log.Call(r.Context(), at)
	if err != nil {
		return err
	}
	o.c.Records.Queue(o.entry(r.Context(), "audit.show", 1, map[string]string{"id": c.ID, "at": c.At.UTC().Format(momentLayout)}))
	p := callPage{Call: c, Hash: hex.EncodeToString(c.InputHash), Same: logPath + "?request=" + url.QueryEscape(c.RequestID),
		Foreign: o.c.Owners.Foreign(c)}
	if id := keyID(c); id != "" {
		p.Name = o.names(r.Context(), map[string]bool{id: true})[id]
	}
	if o.c.TraceURL != "" && c.TraceID != "" {
		p.Trace = strings.ReplaceAll(o.c.TraceURL, TracePlace, url.PathEscape(c.TraceID))
	}
	p.read(r.Context())
	return o.site.Render(w, r, "call", web.Page{Title: c.Tool, Data: p,
		Crumbs: []web.Link{{Text: i18n.T(r.Context(), "Audit log"), Href: logPath}}})
}

// read takes from the detail what the page shows by itself. Other writers of the log may have put anything there.
func (p *callPage) read(ctx context.Context) {
	if p.Detail == "" {
		return
	}
	d := detailOf(p.Detail)
	p.SQL, p.Draft, p.Told, p.About = d.SQL, d.Draft, d.told(), d.about(ctx)
	p.JSON = p.Detail
	var b bytes.Buffer
	if len(p.Detail) <= maxIndented && depth(p.Detail) <= maxDepth && json.Indent(&b, []byte(p.Detail), "", "  ") == nil {
		p.JSON = b.String()
	}
}

// maxIndented and maxDepth bound what is laid out, in bytes and brackets: each line of what lies deep begins with as many
// spaces, and so one row could take gigabytes. What is beyond them is shown as it is.
const maxIndented, maxDepth = 64 << 10, 20

// depth is that of the brackets in a text, those in strings too.
func depth(text string) (deepest int) {
	open := 0
	for _, c := range []byte(text) {
		switch c {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}
