package hubtest_test

import (
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestImportRules checks rules 1 to 3 of the architecture on the whole repository: inside a
// workspace a forbidden import compiles without a word.
func TestImportRules(t *testing.T) {
	rules := []hubtest.Rule{
		{
			Packages: []string{"services/$service/..."}, Except: []string{"services/e2e/..."},
			Never: []string{"services/..."}, Allow: []string{"services/$service/..."}, Tests: true,
			Reason: "a service builds and deploys alone; call a neighbour with a remote.Operation and small types of your own",
		},
		{
			Packages: []string{"pkg/..."}, Never: []string{"services/...", "scripts/..."}, Tests: true,
			Reason: "pkg is mechanism; nothing in it knows a service",
		},
		{
			Packages: []string{"pkg/fault"}, Only: []string{"std"},
			Reason: "every package may return a fault, so fault depends on nothing",
		},
		{
			Packages: []string{"pkg/schema", "pkg/caller"}, Never: []string{"hub/..."}, Allow: []string{"pkg/fault"},
			Reason: "the packages that tool is made of stay leaves: of Hub's they import fault only",
		},
		{
			Packages: []string{"pkg/tool"}, Never: []string{"hub/..."}, Allow: []string{"pkg/fault", "pkg/schema", "pkg/caller"},
			Reason: "a tool's declaration must not pull in servers, stores or telemetry",
		},
		{
			Packages: []string{"pkg/markup"}, Never: []string{"hub/..."},
			Reason: "what of a text stays depends on the text and the policy alone",
		},
		{
			Packages: []string{"pkg/web"}, Never: []string{"hub/..."}, Allow: []string{"pkg/fault", "pkg/schema", "pkg/caller", "pkg/tool", "pkg/hop"},
			Reason: "pages are rendered from what a handler hands over; they reach for no store and no neighbour",
		},
		{
			Packages: []string{"pkg/...", "services/..."}, Except: []string{"pkg/hubtest/...", "services/e2e/..."}, Never: []string{"pkg/hubtest/..."},
			Reason: "test support has no place in a program",
		},
	}
	for _, d := range []struct {
		driver, reason string
		homes          []string
	}{
		{"github.com/jackc/pgx/...", "SQL for PostgreSQL lives in a postgres package, beside its migrations", []string{"pkg/postgres", "pkg/audit", "pkg/write", "pkg/jobs", "services/*/postgres", "pkg/hubtest/...", "scripts/..."}},
		{"github.com/riverqueue/...", "jobs are added and run through pkg/jobs", []string{"pkg/jobs"}},
		{"github.com/pressly/goose/...", "migrations run through pkg/postgres", []string{"pkg/postgres"}},
		{"github.com/go-sql-driver/...", "only the query service talks to the source database", []string{"services/query/mysql", "pkg/hubtest/...", "scripts/..."}},
		{"github.com/redis/...", "Redis is behind the gateway's and auth's redis package", []string{"services/gateway/redis", "services/auth/redis", "scripts/..."}},
		{"github.com/hashicorp/consul/...", "Consul is behind pkg/discover", []string{"pkg/discover", "scripts/consul"}},
		{"github.com/alexedwards/argon2id", "passwords are auth's alone", []string{"services/auth"}},
		{"github.com/coreos/go-oidc/...", "single sign-on is auth's alone", []string{"services/auth/oidc"}},
		{"golang.org/x/oauth2/...", "single sign-on is auth's alone", []string{"services/auth/oidc"}},
		{"github.com/golang-jwt/...", "tokens are made and verified at the edge: caller, gateway, auth", []string{"pkg/caller/...", "services/gateway/...", "services/auth/..."}},
		{"github.com/tdewolff/...", "what of a style stays is judged in one place", []string{"pkg/markup"}},
		{"net/smtp", "mail leaves through one place", []string{"services/review-control/smtp"}},
		{"github.com/wneessen/...", "mail leaves through one place", []string{"services/review-control/smtp"}},
	} {
		rules = append(rules, hubtest.Rule{
			Packages: []string{"pkg/...", "services/...", "scripts/..."}, Except: append(d.homes, "services/e2e/..."),
			Never: []string{d.driver}, Reason: d.reason,
		})
	}
	hubtest.Imports(t, hubtest.Root(t), rules...)
}
