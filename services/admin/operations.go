package admin

import (
	"context"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/text"
)

// Operations declares what admin does for its neighbours. The JSON of these only grows.
func Operations(s *Service) []rpc.Operation {
	return []rpc.Operation{
		rpc.New(rpc.Declaration{Path: NavigationPath, Takes: caller.Neighbour(caller.Gateway)}, s.navigation),
	}
}

// NavigationPath is where the gateway reads the tabs that every console page has.
const NavigationPath = "/internal/menus/navigation"

// NavigationRequest asks for all of it.
type NavigationRequest struct{}

// NavigationResponse has the groups that are shown, in the order of the tabs: none without an item.
type NavigationResponse struct {
	Groups []NavigationGroup `json:"groups"`
}

// NavigationGroup is a tab.
type NavigationGroup struct {
	Slug  string           `json:"slug"`
	Name  string           `json:"name"`
	Icon  string           `json:"icon"`
	Items []NavigationItem `json:"items"`
}

// NavigationItem is a line of a sidebar. Href is a path of the console, or an https address elsewhere.
type NavigationItem struct {
	Name string `json:"name"`
	Icon string `json:"icon"`
	Href string `json:"href"`
}

// navigation tells the gateway the tabs that are shown, in their order.
func (s *Service) navigation(ctx context.Context, _ NavigationRequest) (NavigationResponse, error) {
	groups, err := s.c.Store.Menus(ctx)
	out := NavigationResponse{Groups: []NavigationGroup{}}
	for _, g := range groups {
		tab := NavigationGroup{Slug: g.Slug, Name: g.Name, Icon: text.OrEmpty(g.Icon)}
		for _, i := range g.Items {
			if !i.Hidden {
				tab.Items = append(tab.Items, NavigationItem{Name: i.Name, Icon: text.OrEmpty(i.Icon), Href: i.Address(g.Slug)})
			}
		}
		if !g.Hidden && len(tab.Items) > 0 {
			out.Groups = append(out.Groups, tab)
		}
	}
	return out, err
}
