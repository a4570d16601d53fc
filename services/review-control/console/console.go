// Package console is review-control's pages: drafts for reviewers, and those of its room suppressions. It speaks HTML and
// HTTP to people, and refuses to judge: what may happen is the Service's to say.
package console

import (
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/console/suppressions"
	"hub.internal/services/review-control/suppression"
)

//go:embed pages/*.html pages/*.json assets
var files embed.FS

// Console is review-control's pages. It holds no state: what a page shows is read for each request, and what a form is about
// stands in the form.
type Console struct {
	service    *reviewcontrol.Service
	suppressed *suppressions.Pages
	site       *web.Site
}

// New returns the pages.
func New(s *reviewcontrol.Service, list *suppression.List, keys *caller.Keys, logger *slog.Logger) (*Console, error) {
	site := func(o web.Options) (*web.Site, error) {
		o.Service, o.Keys, o.Logger = "review-control", keys, logger
		return web.New(o)
	}
	own, err := site(web.Options{Files: files,
		Funcs: template.FuncMap{"state": state, "add": func(a, b int) int { return a + b }, "instant": instant, "clock": clock}})
	if err != nil {
		return nil, err
	}
	suppressed, err := suppressions.New(list, site)
	if err != nil {
		return nil, err
	}
	return &Console{s, suppressed, own}, nil
}

// Routes are the parts of the console that are review-control's.
func Routes() []tool.Route {
	return web.Routes("review-control", append([]tool.Route{
		{Prefix: "/drafts", Role: reviewer, Tab: "System", Title: "Drafts", Position: 10}}, suppressions.Routes()...)...)
}

// Operations declares what the gateway asks of the console beside its pages.
func Operations(c *Console) []rpc.Operation {
	return []rpc.Operation{web.FindOperation(func() *web.Site { return c.site }, c.find)}
}

// Routes implements service.Console.
func (c *Console) Routes() []tool.Route { return Routes() }

// Mount serves the pages and their assets.
func (c *Console) Mount(mux *http.ServeMux) {
	c.site.Mount(mux)
	c.site.Handle(mux, "GET /drafts", web.Role(reviewer), by(c.drafts))
	c.site.Handle(mux, "GET /drafts/{id}", web.Role(reviewer), onDraft(c.draft))
	c.site.Handle(mux, "GET /drafts/{id}/progress", web.Role(reviewer), onDraft(c.progress))
	c.site.Handle(mux, "GET /drafts/{id}/inspection", web.Role(reviewer), onDraft(c.inspection))
	c.site.Handle(mux, "POST /drafts/{id}/here", web.Role(reviewer), onDraft(c.here))
	c.site.Handle(mux, "POST /drafts/{id}/decide", web.Role(reviewer), draftForm(c.decide))
	c.site.Handle(mux, "POST /drafts/{id}/approve-shown", web.Role(reviewer), draftForm(c.approveShown))
	c.site.Handle(mux, "POST /drafts/{id}/reject", web.Role(reviewer), draftForm(c.reject))
	c.site.Handle(mux, "POST /drafts/{id}/undo", web.Role(reviewer), draftForm(c.undo))
	c.site.Handle(mux, "GET /drafts/{id}/cancel", web.Role(reviewer), onDraft(c.cancellation))
	c.site.Handle(mux, "POST /drafts/{id}/cancel", web.Role(reviewer), draftForm(c.cancel))
	c.site.Handle(mux, "GET /drafts/{id}/targets/{index}", web.Role(reviewer), onDraft(c.target))
	c.site.Handle(mux, "GET /drafts/{id}/targets/{index}/preview", web.Role(reviewer), framed(onDraft(c.preview)))
	c.site.Handle(mux, "POST /drafts/{id}/targets/{index}/test", web.Role(reviewer), draftForm(c.test))
	c.site.Handle(mux, "GET /drafts/{id}/variants/{n}", web.Role(reviewer), onDraft(c.variant))
	c.site.Handle(mux, "POST /drafts/{id}/variants/{n}/approve", web.Role(reviewer), draftForm(c.approveVariant))
	c.suppressed.Mount(mux)
}

// by is a page that needs to know who is signed in.
func by(h func(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		u, _ := web.UserOf(r.Context())
		return h(w, r, reviewcontrol.Reviewer{ID: u.ID, Email: u.Email, Name: u.Name})
	}
}

// onDraft is a page of one draft, for reviewers.
func onDraft(h func(w http.ResponseWriter, r *http.Request, by reviewcontrol.Reviewer, id reviewcontrol.ID) error) web.Handler {
	return by(func(w http.ResponseWriter, r *http.Request, who reviewcontrol.Reviewer) error {
		id, ok := schema.ParseID(r.PathValue("id"))
		if !ok {
			return reviewcontrol.Missing("draft", r.PathValue("id"))
		}
		return h(w, r, who, id)
	})
}

// draftForm is a form of the page of one draft.
func draftForm(h func(http.ResponseWriter, *http.Request, reviewcontrol.Reviewer, reviewcontrol.ID, url.Values) error) web.Handler {
	return onDraft(func(w http.ResponseWriter, r *http.Request, who reviewcontrol.Reviewer, id reviewcontrol.ID) error {
		form, err := web.Form(r)
		if err != nil {
			return err
		}
		return h(w, r, who, id, form)
	})
}

// answer goes to a page and says there what was done, or why it was not. An error that is not the person's to deal with is returned.
func answer(w http.ResponseWriter, r *http.Request, path, done string, err error) error {
	switch {
	case err == nil:
		web.Done(w, r, done)
	case answerable(err):
		web.Wrong(w, r, sentence(err))
	default:
		return err
	}
	return web.Go(w, r, path)
}

// reviewer is the role that every page needs.
const reviewer = "reviewer"

// pathIndex is the index of a target in the address of a page, or in a field of a form.
func pathIndex(id reviewcontrol.ID, typed string) (int, error) {
	n, err := strconv.Atoi(typed)
	if err != nil || n < 0 || strconv.Itoa(n) != typed {
		return 0, fault.New(fault.NotFound, "Draft %s has no target %q.", id, text.Shown(typed, 20))
	}
	return n, nil
}

// partial tells whether htmx asks for a part of the page.
func partial(r *http.Request) bool { return r.Header.Get("HX-Request") != "" }
