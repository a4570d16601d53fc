package console

import (
	"net/http"

	"hub.internal/pkg/web"
)

// PagesNamed are the pages of the navigation that are found for a request.
func PagesNamed(r *http.Request, tabs []web.Tab, text string) ([]web.Hit, error) {
	site, err := web.New(web.Options{Service: "gateway", Folder: "console", Files: Files})
	if err != nil {
		return nil, err
	}
	return pagesNamed(site.Speak(r).Context(), tabs, text), nil
}

// Found is what the page of a search shows of what services have found: how many hits of which kind, and where it leads to at once.
func Found(away []string, found ...web.FindResponse) (kinds map[string]int, more []string, to string) {
	s, kinds := searchView{Away: away}, map[string]int{}
	for _, f := range found {
		s.add(f)
	}
	for _, k := range s.Kinds {
		if kinds[k.Name] = len(k.Hits); k.More {
			more = append(more, k.Name)
		}
	}
	return kinds, more, s.only()
}
