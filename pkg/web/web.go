// Package web is what the console's pages have in common: layout, assets, forms, flash
// messages, security headers, and the user of the session as the gateway's internal token
// names them. Pages are html/template and work without JavaScript. It refuses to have a page
// of its own, and to authenticate: a request without the gateway's word for a user or a visitor
// gets nothing.
package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web/i18n"
)

//go:embed layout
var layouts embed.FS

// maxLogged bounds what a visitor can put into a line of the log, in bytes.
const maxLogged = 200

// maxForm bounds the body of a page's request, unless the page says otherwise.
const maxForm = 1 << 20

// Options are what a Site is made of.
type Options struct {
	// Service is the discovery name: it says where the assets are.
	Service string
	// Folder is where the assets are of a service's second site, below those of its first; empty for that one.
	Folder string
	// Files holds what a service embeds; may be nil. pages/*.html: each is a page, named by its base
	// name without .html, that defines "main", and perhaps "head"; those that begin with "_" are parts
	// that every page may use. assets/: files of its own beside those of the layout; a page that needs
	// one names it in "head".
	Files fs.FS
	// English keeps the pages in English, without a choice: those of a program that is no service of the console.
	English bool
	// Funcs are the service's own template functions.
	Funcs  template.FuncMap
	Keys   *caller.Keys
	Logger *slog.Logger
}

// Site is the console pages of one service, in each of the console's languages.
type Site struct {
	o        Options
	assets   *assets
	editions map[string]*edition // by the language's code
}

// edition is the pages of a site in one language.
type edition struct {
	catalogue *i18n.Catalogue
	// pages are made when one is first shown, as each holds a copy of the layout: most of the memory of a service that is idle.
	pages map[string]func() (*template.Template, error)
}

// New parses every page in every language: one that is broken stops the start.
func New(o Options) (*Site, error) {
	s := &Site{o: o, editions: map[string]*edition{}}
	var err error
	if s.assets, err = loadAssets(path.Join(o.Service, o.Folder), o.Files); err != nil {
		return nil, err
	}
	for _, l := range i18n.Languages {
		if s.editions[l.Code()], err = s.edition(l); err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
	}
	return s, nil
}

// edition parses the pages in a language.
func (s *Site) edition(l i18n.Language) (*edition, error) {
	files, err := s.templates()
	if err != nil {
		return nil, err
	}
	e := &edition{pages: map[string]func() (*template.Template, error){}}
	if e.catalogue, err = i18n.Load(l, folders(s.o.Files)...); err != nil {
		return nil, err
	}
	base := template.New("").Funcs(functions).Funcs(speaking(e.catalogue)).
		Funcs(template.FuncMap{"asset": s.assets.url, "messages": s.messages(e.catalogue)}).Funcs(s.o.Funcs)
	for _, f := range files {
		if f.part {
			if base, err = e.parse(base, f); err != nil {
				return nil, err
			}
		}
	}
	// What the layout has itself, so that each service has it: the page of errors, and the one that asks before something is done.
	pages := []source{{name: errorPage + ".html"},
		{name: confirmationPage + ".html", text: `{{define "main"}}{{template "confirmation" .Data}}{{end}}`}}
	trial, err := base.Clone()
	for _, f := range append(pages, slices.DeleteFunc(files, func(f source) bool { return f.part })...) {
		if err == nil {
			_, err = e.parse(trial, f)
		}
		e.pages[strings.TrimSuffix(f.name, ".html")] = sync.OnceValues(func() (*template.Template, error) {
			page, err := base.Clone()
			if err != nil {
				return nil, err
			}
			return e.parse(page, f)
		})
	}
	return e, err
}

// page is one of the pages by its name.
func (e *edition) page(name string) (*template.Template, error) {
	if made, ok := e.pages[name]; ok {
		return made()
	}
	return nil, fmt.Errorf("web: there is no page %q", name)
}

// source is a template's.
type source struct {
	name, text string
	// part is none of a page's own.
	part bool
}

// folders are those with templates and catalogues: the layout's, and the site's.
func folders(files fs.FS) (list []fs.FS) {
	sub := func(files fs.FS, folder string) {
		f, err := fs.Sub(files, folder)
		if err != nil {
			panic(err) // the names are constants
		}
		list = append(list, f)
	}
	sub(layouts, "layout")
	if files != nil {
		sub(files, "pages")
	}
	return list
}

// templates are those of the layout, then the site's.
func (s *Site) templates() (list []source, err error) {
	for i, folder := range folders(s.o.Files) {
		names, err := fs.Glob(folder, "*.html")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := fs.ReadFile(folder, name)
			if err != nil {
				return nil, err
			}
			list = append(list, source{name, string(text), i == 0 || strings.HasPrefix(name, "_")})
		}
	}
	return list, nil
}

// parse adds a template in the language of the edition.
func (e *edition) parse(to *template.Template, f source) (*template.Template, error) {
	text, err := e.catalogue.Template(f.text)
	if err == nil {
		_, err = to.New(f.name).Parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", f.name, err)
	}
	return to, nil
}

// Handler is a page that leaves its failure to the site: a fault becomes the error page of
// its status. It must not have written anything then.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Handle serves a page at a pattern of http.ServeMux to those whom access names. What is sent to it
// may be 1 MiB long. It panics for a page that names nobody.
func (s *Site) Handle(mux *http.ServeMux, pattern string, access Access, h Handler) {
	s.HandleUpTo(mux, pattern, access, maxForm, h)
}

// HandleUpTo is Handle for a page that takes a body of up to limit bytes: an upload.
func (s *Site) HandleUpTo(mux *http.ServeMux, pattern string, access Access, limit int64, h Handler) {
	if access == (Access{}) {
		panic(fmt.Sprintf("web: the page %q does not say whom it is for", pattern))
	}
	mux.Handle(pattern, rpc.Authenticated(s.o.Keys, caller.Browsers(), s.o.Logger, s.page(access, limit, h)))
}

// Mount serves the assets. The gateway finds them by Routes.
func (s *Site) Mount(mux *http.ServeMux) {
	mux.Handle("GET "+s.assets.prefix, rpc.Authenticated(s.o.Keys, caller.Browsers(), s.o.Logger, s.assets))
}

// Assets serves the files of the layout without asking for a token.
func (s *Site) Assets() http.Handler { return s.assets }

// Routes is a service's part of the console with its assets, for its manifest.
func Routes(service string, routes ...tool.Route) []tool.Route {
	return append(routes, tool.Route{Prefix: strings.TrimSuffix(assetPrefix(service), "/"), Public: true})
}

// Speak has a request's context speak, in this site's words, the language that is settled for it, else that which its reader has chosen or
// the browser asks for. Whatever renders a page calls it; who says something of their own outside of Handle does so before.
func (s *Site) Speak(r *http.Request) *http.Request {
	code := i18n.From(r.Context()).Code()
	if !s.o.English && !i18n.Speaks(r.Context()) {
		code = i18n.Match(ReadCookie(r, LanguageCookie), r.Header.Get("Accept-Language")).Code()
	}
	return r.WithContext(i18n.With(r.Context(), s.editions[code].catalogue))
}

func (s *Site) page(access Access, limit int64, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Secure(w.Header())
		r = s.Speak(r)
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.o.Logger.ErrorContext(r.Context(), "panic", "request_id", caller.From(r.Context()).RequestID,
				"panic", p, "stack", string(debug.Stack()))
			s.Fail(w, r, fmt.Errorf("panic: %v", p))
		}()
		err := access.admit(r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			s.Fail(w, r, err)
		}
	})
}

// Render answers a page. The status is Page.Status, or 200.
func (s *Site) Render(w http.ResponseWriter, r *http.Request, name string, p Page) error {
	r = s.Speak(r)
	return s.execute(w, r, name, "layout", p, takeFlash(w, r))
}

// RenderPart answers one block of a page alone, for htmx. The flash is left to the next page.
func (s *Site) RenderPart(w http.ResponseWriter, r *http.Request, name, block string, p Page) error {
	r = s.Speak(r)
	return s.execute(w, r, name, block, p, Flash{})
}

// execute renders into memory first: a page that fails in the middle must not look whole.
func (s *Site) execute(w http.ResponseWriter, r *http.Request, name, block string, p Page, flash Flash) error {
	t, err := s.edited(r.Context()).page(name)
	if err != nil {
		return err
	}
	v := pageView{Page: p, Path: r.URL.Path, Here: "/", RequestID: caller.From(r.Context()).RequestID, Flash: flash}
	v.User, v.SignedIn = UserOf(r.Context())
	v.Tabs = NamesIn(r.Context(), navigationOf(r, p))
	switch at := r.URL.RequestURI(); {
	case s.o.English:
		v.Here = ""
	case r.Method != http.MethodGet || len(at) > maxNext:
	case p.Status >= http.StatusBadRequest: // what was asked for may be a secret, and was not what it should be
		v.Here = r.URL.EscapedPath()
	default:
		v.Here = at
	}
	var b bytes.Buffer
	if err = t.ExecuteTemplate(&b, block, v); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	h := w.Header()
	for _, origin := range p.FormActions {
		allowForm(h, origin)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	Write(w, r, p.Status, b.Bytes())
	return nil
}

// edited is the edition in the language of a request.
func (s *Site) edited(ctx context.Context) *edition { return s.editions[i18n.From(ctx).Code()] }

// RenderStatic makes a page that is the same for everybody who asks for this path, with tabs of its own, in English. It has neither a user
// nor a flash; where several paths lead to it, they share it.
func (s *Site) RenderStatic(name, path string, tabs []Tab, p Page) (*Static, error) {
	t, err := s.editions[i18n.Languages[0].Code()].page(name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout", pageView{Page: p, Path: path, Tabs: activated(tabs, path, p)}); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return NewStatic("text/html; charset=utf-8", b.Bytes()), nil
}

const (
	errorPage        = "error"
	confirmationPage = "confirmation"
)

// Fail answers the page of an error, and logs what is a failure of ours.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	f := faultOf(err)
	if f.Status() >= 500 {
		s.o.Logger.ErrorContext(r.Context(), "page failed", "request_id", caller.From(r.Context()).RequestID,
			"path", r.URL.Path[:min(len(r.URL.Path), maxLogged)], "error", err)
	}
	s.FailAs(w, r, f, f.Status())
}

// FailAs answers the page of an error with a status of its own.
func (s *Site) FailAs(w http.ResponseWriter, r *http.Request, f *fault.Error, status int) {
	r = s.Speak(r)
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(max(1, int(f.RetryAfter.Seconds()+0.999))))
	}
	// A part of a page that does not come must not cost the page.
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Retarget", "#toast")
		w.Header().Set("HX-Reswap", "innerHTML")
		w.Header().Set("HX-Reselect", ".notice") // and not what the part was to be taken from
		w.Header().Set("HX-Push-Url", "false")
		if err := s.execute(w, r, errorPage, "refusal", Page{Status: status, Data: f.Message}, Flash{}); err != nil {
			s.o.Logger.ErrorContext(r.Context(), "error part not rendered", "error", err)
			http.Error(w, f.Message, status)
		}
		return
	}
	heading := i18n.T(r.Context(), "That did not work")
	if h := headings[status]; h != "" {
		heading = i18n.T(r.Context(), h)
	}
	_, signedIn := UserOf(r.Context())
	page := Page{Title: heading, Status: status, Plain: !signedIn,
		Data: map[string]any{"Message": f.Message, "Status": status, "Code": f.Code,
			"Sent": r.Method != http.MethodGet && r.Method != http.MethodHead}}
	if err := s.execute(w, r, errorPage, "layout", page, takeFlash(w, r)); err != nil {
		s.o.Logger.ErrorContext(r.Context(), "error page not rendered", "error", err)
		http.Error(w, f.Message, status)
	}
}

var headings = map[int]string{
	http.StatusBadRequest:            i18n.N("The request was not understood"),
	http.StatusUnauthorized:          i18n.N("Please sign in"),
	http.StatusForbidden:             i18n.N("You may not see this page"),
	http.StatusNotFound:              i18n.N("Nothing is here"),
	http.StatusMethodNotAllowed:      i18n.N("That cannot be done here"),
	http.StatusConflict:              i18n.N("Somebody was faster"),
	http.StatusRequestEntityTooLarge: i18n.N("That is too much at once"),
	http.StatusUnprocessableEntity:   i18n.N("That cannot be done"),
	http.StatusTooManyRequests:       i18n.N("Please wait a moment"),
	http.StatusInternalServerError:   i18n.N("Something went wrong on our side"),
	http.StatusBadGateway:            i18n.N("A part of Hub is not available"),
	http.StatusServiceUnavailable:    i18n.N("A part of Hub is not available"),
	http.StatusGatewayTimeout:        i18n.N("That took too long"),
}

func faultOf(err error) *fault.Error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.New(fault.Validation, "What was sent is larger than %s.", Size(int(tooLarge.Limit)))
	}
	return fault.From(err)
}
