package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/scripts/standin"
)

//go:embed pages/*.html
var embedded embed.FS

// pages shows an inbox.
type pages struct {
	inbox *inbox
	site  *web.Site
}

// newPages are the receiver, its pages and the list as JSON.
func newPages(i *inbox, logger *slog.Logger) (http.Handler, error) {
	mux, err := standin.Pages("echo", embedded, logger, func(site *web.Site) map[string]web.Handler {
		p := pages{i, site}
		return map[string]web.Handler{"GET /{$}": p.list, "GET /message/{number}": p.message, "GET /return": p.back}
	})
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("POST /", i.take)
	mux.HandleFunc("GET /messages", i.json)
	return mux, nil
}

// json answers the messages, newest first; ?order= keeps to one order.
func (i *inbox) json(w http.ResponseWriter, r *http.Request) {
	b, err := json.MarshalIndent(map[string]any{"messages": i.newest(r.URL.Query().Get("order"))}, "", "  ")
	if err != nil {
		http.Error(w, "the messages cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(b, '\n'))
}

// list is the page of all messages, or of one order's.
func (p pages) list(w http.ResponseWriter, r *http.Request) error {
	order := r.URL.Query().Get("order")
	return p.site.Render(w, r, "list", web.Page{Title: "Notifications", Lead: "What the app was told, newest first.",
		Data: map[string]any{"Messages": p.inbox.newest(order), "Order": order, "Kept": kept}})
}

// message is the page of one: what it says, and the bytes that are signed. A number that is not kept any more is
// E_NOT_FOUND.
func (p pages) message(w http.ResponseWriter, r *http.Request) error {
	m, found := p.inbox.find(r.PathValue("number"))
	if !found {
		return fault.New(fault.NotFound, "There is no message %q any more: the newest %d are kept.", r.PathValue("number"), kept)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(m.Body), "", "  ") != nil {
		pretty.Reset()
	}
	title := m.Type
	if title == "" {
		title = "A message"
	}
	return p.site.Render(w, r, "message", web.Page{Title: title, Crumbs: []web.Link{{Text: "Notifications", Href: "/"}},
		Data: map[string]any{"Message": m, "Pretty": pretty.String()}})
}

// back is where a payer's browser comes back to.
func (p pages) back(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var said []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "code" && name != "status" {
			said = append(said, name+" = "+strings.Join(query[name], ", "))
		}
	}
	return p.site.Render(w, r, "return", web.Page{Title: "Back in the shop", Lead: "Where the payer's browser goes on.",
		Data: map[string]any{"Order": query.Get("code"), "Status": query.Get("status"), "More": said}})
}
