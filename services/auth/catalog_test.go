package auth_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

// TestScopesAndRolesAreThoseOfTheCatalog: a key can be given each scope that a tool asks for, an app each that a route
// asks for which takes its token, a user each role that a page asks for, and none one that opens nothing.
func TestScopesAndRolesAreThoseOfTheCatalog(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	var catalog tool.Catalog
	if err := json.Unmarshal(b, &catalog); err != nil {
		t.Fatal(err)
	}
	// admin:write is of tools that the committed catalog may not have yet.
	scopes, roles := map[string]bool{"admin:write": true}, map[string]bool{}
	// And these for the routes of payments.
	appScopes := map[string]bool{"pay:read": true, "pay:write": true, "pay:refund": true}
	for _, m := range catalog.Manifests {
		for _, t := range m.Tools {
			scopes[t.Scope] = true
		}
		for _, r := range m.Routes {
			switch {
			case r.Scope == "": // any credential of the kind will do
			case r.Credential == tool.AppCredential, r.Credential == tool.AppUnlinkedCredential:
				appScopes[r.Scope] = true
			default:
				scopes[r.Scope] = true
			}
		}
		for _, r := range m.Console {
			if r.Role != "" {
				roles[r.Role] = true
			}
		}
	}
	for what, c := range map[string]struct {
		given []string
		asked map[string]bool
	}{"scope": {auth.Scopes(), scopes}, "role": {auth.Roles(), roles}, "scope of apps": {apps.Scopes(), appScopes}} {
		for _, name := range c.given {
			if !c.asked[name] {
				t.Errorf("nothing asks for the %s %s", what, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.asked)) {
			if !slices.Contains(c.given, name) {
				t.Errorf("the %s %s can be given to nobody", what, name)
			}
		}
	}
}
