// Package overview is the administrator's pages about what happens in Hub: the overview, and the audit log with its
// search, its calls and its export. It refuses to change anything, and to be slow because a neighbour is.
package overview

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"sync"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	"hub.internal/services/admin"
	"hub.internal/services/admin/auditlog"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

// Log is the audit log's reader.
type Log interface {
	Summary(ctx context.Context, r auditlog.Range) (auditlog.Summary, error)
	Search(ctx context.Context, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error)
	Call(ctx context.Context, p auditlog.Position) (auditlog.Call, error)
	Export(ctx context.Context, f auditlog.Filter, limit int, row func(auditlog.Call) error) (next auditlog.Position, more bool, err error)
	Retention(ctx context.Context) (days int, err error)
}

// Records keeps who has read what of the log.
type Records interface {
	Write(ctx context.Context, e audit.Entry) error
	Queue(e audit.Entry)
}

// Config is what the pages are made of.
type Config struct {
	Log     Log
	Records Records
	// Owners say whose the names in the log are.
	Owners auditlog.Owners
	// Backlog, Source and Names ask neighbours; a page goes on without those that do not answer in time.
	Backlog func(ctx context.Context, since time.Time) (admin.Backlog, error)
	Source  func(ctx context.Context) (admin.SourceHealth, error)
	Names   func(ctx context.Context, ids []string) (map[string]string, error)
	// TraceURL is where the spans of a trace are shown, with TracePlace in place of its id; empty for nowhere.
	TraceURL string
	// Draw draws the line of a card, whose gaps are no numbers; nil where there is too little to draw, and without Draw none is drawn.
	Draw func(values []float64) Line
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Line is a list of numbers as a line, for a drawing of 120 by 28: its path, and what tells in words what it shows.
type Line interface {
	Path() string
	Count() int
	Low() string
	High() string
	First() string
	Last() string
}

// TracePlace stands for the id of a trace in Config.TraceURL.
const TracePlace = "{trace}"

// Overview is the pages.
type Overview struct {
	c    Config
	site *web.Site
}

// neighbourTimeout is how long a page waits for neighbours.
const neighbourTimeout = time.Second

// New returns the pages; site makes their site.
func New(c Config, site func(web.Options) (*web.Site, error)) (*Overview, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	s, err := site(web.Options{Files: files, Folder: "overview", Funcs: template.FuncMap{
		"milliseconds": milliseconds, "outcome": outcome}})
	if err != nil {
		return nil, err
	}
	return &Overview{c, s}, nil
}

const administrator = "admin"

// Routes are the parts of the console that these pages are. Their assets are below the service's own.
func Routes() []tool.Route {
	return []tool.Route{
		{Prefix: "/admin", Role: administrator, Tab: "Admin", Title: "Overview", Position: 1},
		{Prefix: "/admin/audit", Role: administrator, Tab: "Admin", Title: "Audit log", Position: 5},
	}
}

// Routes implements service.Console.
func (o *Overview) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (o *Overview) Mount(mux *http.ServeMux) {
	o.site.Mount(mux)
	o.site.Handle(mux, "GET /admin", web.Role(administrator), o.home)
	o.site.Handle(mux, "GET /admin/audit", web.Role(administrator), o.search)
	o.site.Handle(mux, "GET /admin/audit/export", web.Role(administrator), o.export)
	o.site.Handle(mux, "GET /admin/audit/{call}", web.Role(administrator), o.call)
}

// entry is the audit row of what a person has read here.
func (o *Overview) entry(ctx context.Context, name string, count int, detail any) audit.Entry {
	return audit.Entry{At: o.c.Now(), Caller: caller.From(ctx), Tool: name, Outcome: audit.OK, Count: count, Detail: detail,
		TraceID: audit.TraceID(ctx)}
}

// named is a credential with its name, where it has one.
type named struct{ ID, Name string }

// names asks what credentials are called. A page that is not told shows their ids.
func (o *Overview) names(ctx context.Context, ids map[string]bool) map[string]string {
	delete(ids, "")
	if len(ids) == 0 {
		return nil
	}
	// auth takes a hundred ids at a time: a page has fewer callers than that.
	list := make([]string, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	ctx, cancel := context.WithTimeout(ctx, neighbourTimeout/2)
	defer cancel()
	found, err := o.c.Names(ctx, list[:min(len(list), 100)])
	if err != nil {
		return nil
	}
	return found
}

// neighbours asks those that the overview shows, at the same time; what did not answer is nil.
func (o *Overview) neighbours(ctx context.Context, since time.Time) (b *admin.Backlog, s *admin.SourceHealth) {
	ctx, cancel := context.WithTimeout(ctx, neighbourTimeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if got, err := o.c.Backlog(ctx, since); err == nil {
			b = &got
		}
	})
	both.Go(func() {
		if got, err := o.c.Source(ctx); err == nil {
			s = &got
		}
	})
	both.Wait()
	return b, s
}
