package main

import (
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/web"
	"hub.internal/scripts/standin"
)

//go:embed pages/*.html assets
var embedded embed.FS

// perPage is how many mails a page lists.
const perPage = 50

// framePolicy is the policy of a mail's HTML: nothing runs, nothing is loaded.
const framePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'self'"

// pages shows the mails of a directory.
type pages struct {
	// Where the mails are, as the SMTP side has kept them.
	dir  string
	site *web.Site
}

// newPages are the list of mails, one mail with its parts, and its source as it came.
func newPages(dir string, logger *slog.Logger) (http.Handler, error) {
	return standin.Pages("mailsink", embedded, logger, func(site *web.Site) map[string]web.Handler {
		p := pages{dir, site}
		return map[string]web.Handler{"GET /{$}": p.list, "GET /mail/{file}": p.mail, "GET /mail/{file}/html": p.html,
			"GET /mail/{file}/download": p.download}
	})
}

// line is a mail in the list.
// At is when it was taken.
type line struct {
	localserver.Mail
	At time.Time
}

// list is a page of mails. The next page begins before a name and not at a number, so that mails which come meanwhile
// move nothing.
func (p pages) list(w http.ResponseWriter, r *http.Request) error {
	names, err := localserver.MailFiles(p.dir)
	if err != nil {
		return err
	}
	total := len(names)
	if before := r.URL.Query().Get("before"); before != "" {
		at, _ := slices.BinarySearch(names, before)
		names = names[:at]
	}
	next := ""
	if len(names) > perPage {
		names = names[len(names)-perPage:]
		next = "/?before=" + url.QueryEscape(names[0])
	}
	slices.Reverse(names)
	lines := make([]line, 0, len(names))
	for _, name := range names {
		m, err := p.open(name)
		if fault.Is(err, fault.NotFound) {
			continue // taken away just now
		}
		if err != nil {
			return err
		}
		lines = append(lines, line{m, at(name)})
	}
	return p.site.Render(w, r, "list", web.Page{Title: "Mail", Lead: "What Hub has sent on this machine, newest first. Nothing here left it.",
		Data: map[string]any{"Mails": lines, "Total": total, "Next": next, "Dir": p.dir}})
}

// at is when a mail was taken: its name begins with it.
func at(name string) time.Time {
	stamp, _, _ := strings.Cut(name, "-")
	t, _ := time.Parse("20060102T150405.000000000Z", stamp)
	return t
}

// open reads a mail, or what can be read of it.
// A name that leads elsewhere, and one that is not there, is E_NOT_FOUND.
func (p pages) open(name string) (localserver.Mail, error) {
	if filepath.Base(name) != name || !strings.HasSuffix(name, localserver.MailSuffix) {
		return localserver.Mail{}, fault.New(fault.NotFound, "There is no mail %q.", name)
	}
	m, err := localserver.OpenMail(p.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fault.New(fault.NotFound, "There is no mail %q.", name)
	}
	if m.Raw == nil {
		return m, err
	}
	m.File = name
	return m, nil
}

// mail is the page of one mail: its parts, its header and its source.
func (p pages) mail(w http.ResponseWriter, r *http.Request) error {
	m, err := p.open(r.PathValue("file"))
	if err != nil {
		return err
	}
	head, source, _ := strings.Cut(string(m.Raw), "\r\n\r\n")
	title := m.Subject
	if title == "" {
		title = "(no subject)"
	}
	return p.site.Render(w, r, "mail", web.Page{Title: title, Crumbs: []web.Link{{Text: "Mail", Href: "/"}},
		Data: map[string]any{"Mail": m, "At": at(m.File), "Head": head, "Source": source}})
}

// html is the mail's own HTML for a frame. It is shown as it came, in a sandbox without scripts: framePolicy.
func (p pages) html(w http.ResponseWriter, r *http.Request) error {
	m, err := p.open(r.PathValue("file"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", framePolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, err = w.Write([]byte(m.HTML))
	return err
}

// download is the file itself, which mail programs open.
func (p pages) download(w http.ResponseWriter, r *http.Request) error {
	m, err := p.open(r.PathValue("file"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "message/rfc822")
	h.Set("Content-Disposition", `attachment; filename="`+m.File+`"`)
	_, err = w.Write(m.Raw)
	return err
}
