package console

import (
	"context"
	"embed"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
)

//go:embed pages/*.html pages/*.json assets
var Files embed.FS

const (
	// searchPath is where the field of the header leads.
	searchPath = "/search"
	// maxSearch is how much of what was typed counts, in characters.
	maxSearch = 200
	// findPatience is how long a search waits for a service; the page goes on without one that takes longer.
	findPatience = time.Second
	// maxHits bounds what one service may say.
	maxHits = 100
)

// askFinder asks a service for what the user of a request may see of what they look for.
var askFinder = remote.Operation[web.FindRequest, web.FindResponse]{Path: web.FindPath, Most: 1 << 20, Repeatable: true}

// searchView is the page of a search.
type searchView struct {
	Text  string
	Kinds []kindView
	// Away are the services that did not answer.
	Away []string
}

// kindView is what was found of one kind.
type kindView struct {
	Name string
	Hits []web.Hit
	// More tells that there are others.
	More bool
}

// search shows what was found, or leads to it where that is one thing.
func (k *Console) search(v *visit) error {
	v.r = k.Own.Speak(v.r)
	ctx := v.r.Context()
	view := searchView{Text: text.Head(text.OneLine(text.Storable(v.r.URL.Query().Get("q"))), maxSearch)}
	if view.Text != "" {
		view.add(web.FindResponse{Hits: pagesNamed(ctx, k.tabs(v), view.Text)})
		k.ask(ctx, v, &view)
		if to := view.only(); to != "" {
			return web.Go(v.w, v.r, to)
		}
	}
	r := v.r.WithContext(caller.With(ctx, v.Caller))
	r.Header.Set(web.NavigationHeader, web.EncodeNavigation(k.tabs(v), r.URL.Path))
	return k.Own.Render(v.w, r, "search", web.Page{Title: i18n.T(ctx, "Search"), Search: view.Text, Data: view, Keys: []web.Key{
		{Press: "j", Does: i18n.T(ctx, "Next")}, {Press: "k", Does: i18n.T(ctx, "The one before")},
		{Press: "o", Does: i18n.T(ctx, "Open it")}}})
}

// only is the page of the one thing that was found; empty where there are others, or may be, and for a link to another site: nobody is
// sent there unasked.
func (s *searchView) only() string {
	if len(s.Kinds) != 1 || len(s.Kinds[0].Hits) != 1 || len(s.Away) > 0 {
		return ""
	}
	return web.LocalPath(s.Kinds[0].Hits[0].Href, "")
}

// ask asks all services that know things, at the same time, in the name of who looks: each judges what they may see.
func (k *Console) ask(ctx context.Context, v *visit, view *searchView) {
	finders := k.Edge.Catalog.Finders()
	answers, failures := make([]web.FindResponse, len(finders)), make([]error, len(finders))
	ctx, cancel := context.WithTimeout(caller.With(ctx, v.Caller), findPatience)
	defer cancel()
	question := web.FindRequest{Text: view.Text, Language: i18n.From(ctx).Code()}
	var all sync.WaitGroup
	for i, name := range finders {
		if client := k.Edge.Services.Client(name); client != nil {
			all.Go(func() { answers[i], failures[i] = askFinder.Call(ctx, client, question) })
		}
	}
	all.Wait()
	for i, name := range finders {
		if failures[i] != nil {
			k.Edge.Logger.WarnContext(ctx, "search without a service", "request_id", v.RequestID, "service", name, "error", failures[i])
			view.Away = append(view.Away, name)
			continue
		}
		view.add(answers[i])
	}
}

// add adds what one service has found. What is no page of the console is left out.
func (s *searchView) add(found web.FindResponse) {
	for _, h := range found.Hits[:min(len(found.Hits), maxHits)] {
		if web.LocalPath(h.Href, "") == "" && !isLink(h.Href) {
			continue
		}
		i := slices.IndexFunc(s.Kinds, func(k kindView) bool { return k.Name == h.Kind })
		if i < 0 {
			i, s.Kinds = len(s.Kinds), append(s.Kinds, kindView{Name: h.Kind, More: slices.Contains(found.More, h.Kind)})
		}
		s.Kinds[i].Hits = append(s.Kinds[i].Hits, h)
	}
}

// pagesNamed are the pages of the navigation whose name or whose group's has the text, whatever its case, in the reader's language or in
// English.
func pagesNamed(ctx context.Context, tabs []web.Tab, text string) (hits []web.Hit) {
	text = strings.ToLower(text)
	for n, t := range web.NamesIn(ctx, tabs) {
		for m, i := range t.Items {
			names := strings.ToLower(strings.Join([]string{i.Name, t.Name, tabs[n].Items[m].Name, tabs[n].Name}, "\n"))
			if strings.Contains(names, text) {
				hits = append(hits, web.Hit{Kind: i18n.T(ctx, "Pages"), Title: i.Name, Note: t.Name, Href: i.Href})
			}
		}
	}
	return hits
}
