package console

import (
	"context"

	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

// mostFound is how many things of one kind the search in the header shows.
const mostFound = 5

// Operations declares what the gateway asks of the console beside its pages.
func Operations(c *Console) []rpc.Operation {
	return []rpc.Operation{web.FindOperation(func() *web.Site { return c.site }, c.find)}
}

// find returns the keys, apps and users that an administrator may mean, as their lists search for them.
// Anybody else finds nothing, which is no refusal: the gateway asks for everybody who is signed in.
func (c *Console) find(ctx context.Context, u web.User, text string) (found web.FindResponse, err error) {
	if !u.Is(admin) {
		return found, nil
	}
	// One more than is shown tells FindResponse.Add that there is more of this kind.
	keys, _, err := c.Service.List(ctx, auth.KeyFilter{Search: text, Limit: mostFound + 1})
	if err != nil {
		return found, err
	}
	listed, _, err := c.Apps.List(ctx, apps.Filter{Search: text, Limit: mostFound + 1})
	if err != nil {
		return found, err
	}
	users, _, err := c.People.Users(ctx, auth.UserFilter{Search: text, Limit: mostFound + 1})
	if err != nil {
		return found, err
	}
	found.Add(mostFound, hits(keys, func(k auth.Key) web.Hit {
		row := c.row(k)
		return web.Hit{Kind: i18n.T(ctx, "API keys"), Title: k.Name, At: &k.CreatedAt,
			Note: row.Hint() + " · " + k.Service + " · " + i18n.From(ctx).Text(row.Badge().Text), Href: keysPath + "/" + k.ID}
	})...)
	found.Add(mostFound, hits(listed, func(a apps.Listed) web.Hit {
		return web.Hit{Kind: i18n.T(ctx, "Apps"), Title: a.Name, Note: a.Code + " · " + i18n.From(ctx).Text(appBadge(a.Status).Text),
			Href: appsPath + "/" + a.Code}
	})...)
	found.Add(mostFound, hits(users, func(u auth.User) web.Hit {
		return web.Hit{Kind: i18n.T(ctx, "Users"), Title: u.Email, Note: u.Name, Href: usersPath + "/" + u.ID}
	})...)
	return found, nil
}

// hits are what was found as lines of the search.
func hits[T any](list []T, hit func(T) web.Hit) []web.Hit {
	out := make([]web.Hit, len(list))
	for i, one := range list {
		out[i] = hit(one)
	}
	return out
}
