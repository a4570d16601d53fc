package catalog

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// consoleRoots are the parts of the console (CONTRACT.md 9.1), and whether one may be
// used without a session: a manifest cannot open what is closed, nor claim the API's paths.
var consoleRoots = map[string]bool{
	"drafts": false, "p": false, "admin": false, "account": false,
	"login": true, "logout": true, "language": true, "connect": true, "unsubscribe": true, "assets": true,
}

// ConsoleRoute is a part of the console, with its owner.
type ConsoleRoute struct {
	tool.Route
	Service string
}

// Allows tells whether a user with these roles may see it. One without a role is for everybody who is signed in.
func (r *ConsoleRoute) Allows(roles []string) bool {
	return r.Role == "" || slices.Contains(roles, r.Role)
}

// checkConsoleRoute holds a part of the console to what a manifest may claim.
func checkConsoleRoute(service string, r tool.Route) error {
	root, _, _ := strings.Cut(strings.TrimPrefix(r.Prefix, "/"), "/")
	public, known := consoleRoots[root]
	switch {
	case !strings.HasPrefix(r.Prefix, "/") || path.Clean(r.Prefix) != r.Prefix || !known:
		return fmt.Errorf("console route %q of %s is none of the console's", r.Prefix, service)
	case r.Public != public:
		return fmt.Errorf("console route %q of %s must say public: %t", r.Prefix, service, public)
	case r.Public && r.Role != "":
		return fmt.Errorf("console route %q of %s is public and asks for a role", r.Prefix, service)
	case root == "assets" && r.Prefix != "/assets/"+service:
		return fmt.Errorf("console route %q of %s has to be /assets/%s", r.Prefix, service, service)
	}
	return nil
}

// ConsoleRoute finds the owner of a path: the longest prefix has it; nil when nobody does.
func (c *Catalog) ConsoleRoute(p string) *ConsoleRoute {
	for _, r := range c.ConsoleRoutes() {
		if web.Below(p, r.Prefix) {
			return r
		}
	}
	return nil
}

// Finders are the services that know things which people look for in the console, by name.
func (c *Catalog) Finders() []string { return c.current.Load().finders }

// ConsoleRoutes are all parts of the console, the longest prefix first.
func (c *Catalog) ConsoleRoutes() []*ConsoleRoute { return c.current.Load().console }
