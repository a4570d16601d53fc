package hubtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// TestImportRules holds each package of the repository to what it may import, and says why. Inside a workspace a
// forbidden import compiles without a word.
func TestImportRules(t *testing.T) {
	// What the root of a service may be made of beside itself: each is about one thing, and imports no other room.
	leaves := []string{
		"services/query/sqlguard/...", "services/query/bulkhead", "services/query/known", "services/query/keyword",
		"services/query/marketplace", "services/query/recipients",
		"services/review-control/body", "services/review-control/mailer", "services/review-control/metrics",
		"services/review-control/suppression", "services/review-control/triage", "services/review-control/console/evidence",
		"services/auth/apps", "services/auth/links", "services/auth/bulkhead",
		"services/payments/credentials", "services/payments/provider", "services/payments/order",
		"services/authoring/evidence", "services/authoring/lookalike", "services/authoring/repeat", "services/authoring/lint",
		"services/authoring/template", "services/authoring/preview",
		"services/client/output", "services/admin/auditlog",
	}
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
			Packages: []string{"pkg/fault", "pkg/text", "pkg/jsontree"}, Only: []string{"std"},
			Reason: "every package may use them, so they depend on nothing",
		},
		{
			Packages: []string{"pkg/netguard"}, Only: []string{"std"},
			Reason: "which addresses are public is a list, with its sources",
		},
		{
			Packages: []string{"pkg/redis"}, Never: []string{"hub/..."},
			Reason: "a client of Redis depends on its URL and options alone",
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
			Packages: []string{"pkg/markup"}, Never: []string{"hub/..."}, Allow: []string{"pkg/text"},
			Reason: "what of a text stays depends on the text and the policy alone",
		},
		{
			Packages: []string{
				"pkg/web",
			},
			Never:  []string{"hub/..."},
			Allow:  []string{"pkg/fault", "pkg/schema", "pkg/caller", "pkg/tool", "pkg/rpc", "pkg/csvguard", "pkg/text", "pkg/web/i18n"},
			Reason: "pages are rendered from what a handler hands over; they reach for no store and no neighbour",
		},
		// The rooms of a service: cmd → rooms → root → leaves, and no room into another.
		{
			Packages: []string{
				"services/$service",
			},
			Except: []string{"services/gateway"},
			Never:  []string{"services/$service/..."},
			Allow:  leaves,
			Reason: "the domain knows no room but leaves: declare what it needs as an interface, and let cmd put them together; " +
				"a room that is new and imports none is a leaf once it is in the list leaves (pkg/hubtest/house_test.go)",
		},
		{
			// Payments' provider and order stand on the leaves below them: TestFloors has their order.
			Packages: leaves, Except: []string{"services/payments/provider", "services/payments/order"},
			Never: []string{"services/..."}, Allow: []string{"services/query/sqlguard/..."},
			Reason: "a leaf knows nothing of its service; the SQL guard is one of several packages",
		},
		{
			Packages: []string{
				"services/$service/$room/...",
			},
			Except: slices.Concat([]string{"services/*/cmd/...", "services/*/jobs"}, leaves, []string{"services/gateway/..."}),
			Never:  []string{"services/$service/*/..."},
			Allow:  append([]string{"services/$service/$room/..."}, leaves...),
			Reason: "a room calls the Service, not another room: pages and clients reach for no store, and a store for neither",
		},
		{
			Packages: []string{"services/$service/jobs"}, Never: []string{"services/$service/*/..."},
			Allow:  append([]string{"services/$service/postgres"}, leaves...),
			Reason: "jobs know the store, which has put them there, the Service and its leaves",
		},
		{
			Packages: []string{"pkg/...", "services/..."}, Except: []string{"pkg/hubtest/...", "pkg/localstack", "services/e2e/..."},
			Never:  []string{"pkg/hubtest/...", "pkg/localserver", "pkg/localstack", "pkg/inventory"},
			Reason: "test support, servers of this machine and the list of services have no place in a program of a release",
		},
		{
			Packages: []string{"pkg/localserver", "pkg/inventory"}, Never: []string{"hub/..."}, Allow: []string{"pkg/postgres"},
			Reason: "make up, bench, release and tests share them, so they know none of those",
		},
		{
			Packages: []string{
				"pkg/localstack",
			},
			Never:  []string{"hub/..."},
			Allow:  []string{"pkg/postgres", "pkg/localserver", "pkg/inventory"},
			Reason: "it starts services by the list and knows none of them",
		},
	}
	for _, d := range []struct {
		driver, reason string
		homes          []string
	}{
		{"github.com/jackc/pgx/...", "SQL for PostgreSQL lives in a postgres package, beside its migrations",
			[]string{"pkg/postgres", "pkg/audit", "pkg/write", "pkg/jobs", "services/*/postgres", "pkg/hubtest/...", "pkg/localserver",
				"scripts/..."}},
		{"github.com/riverqueue/...", "jobs are added and run through pkg/jobs", []string{"pkg/jobs"}},
		{"github.com/pressly/goose/...", "migrations run through pkg/postgres", []string{"pkg/postgres"}},
		{"github.com/go-sql-driver/...", "only the query service talks to the source database",
			[]string{"services/query/mysql/...", "pkg/hubtest/...", "pkg/localserver", "scripts/..."}},
		{"github.com/redis/...", "Redis is behind the gateway's and auth's redis package",
			[]string{"pkg/redis", "services/gateway/redis", "services/auth/redis", "scripts/..."}},
		{"github.com/hashicorp/consul/...", "Consul is behind pkg/discover", []string{"pkg/discover", "scripts/consul"}},
		{"github.com/alexedwards/argon2id", "passwords are auth's alone", []string{"services/auth"}},
		{"github.com/coreos/go-oidc/...", "single sign-on is auth's alone", []string{"services/auth/oidc"}},
		{"golang.org/x/oauth2/...", "single sign-on is auth's alone", []string{"services/auth/oidc"}},
		{"github.com/tink-crypto/...", "what is kept sealed is sealed in one place", []string{"pkg/seal"}},
		{"github.com/golang-jwt/...", "tokens are verified by caller and auth; the client makes those of its app",
			[]string{"pkg/caller/...", "services/auth/...", "services/client/cmd/hub"}},
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

// floors are the rooms of the services that have many, from the ground up. "" is the service's root. The gateway has no domain there:
// its root puts the rooms together.
var floors = map[string][][]string{
	"gateway": {
		{"reference", "cache"},
		{"catalog"},
		{"edge"},
		{"lease"},
		{"rest", "v1", "mcp", "console", "redis"},
		{""},
		{"cmd/gateway"},
	},
	"review-control": {
		{"body", "mailer", "metrics", "suppression", "triage"},
		{""}, // the Service, and the interfaces of what it needs
		{"console/evidence", "console/suppressions", "queue"},
		{"auth", "authoring", "backlog", "console", "postgres", "smtp"},
		{"jobs"},
		{"cmd/review-control"},
	},
	"payments": {
		{"credentials"},
		{"provider"}, // the port to a payment provider
		{"order"},    // the aggregate with its state machine
		{""},         // the Service, and the interfaces of what it needs
		{"api", "auth", "console/orders", "metrics", "nicepay", "notify", "pgsim", "postgres"},
		{"console", "jobs"},
		{"cmd/payments", "cmd/pgsim"},
	},
}

// TestFloors holds rooms to their order: a room imports those of lower floors, and none beside or above it.
func TestFloors(t *testing.T) {
	for name, order := range floors {
		service := "services/" + name
		var rules []hubtest.Rule
		var below []string
		for _, floor := range order {
			var rooms []string
			for _, room := range floor {
				rooms = append(rooms, strings.TrimSuffix(service+"/"+room, "/"))
			}
			rules = append(rules, hubtest.Rule{Packages: rooms, Never: []string{service + "/..."}, Allow: below,
				Reason: "a room refers to those of lower floors alone"})
			below = slices.Concat(below, rooms)
		}
		rules = append(rules, hubtest.Rule{Packages: []string{service + "/..."}, Except: below, Never: []string{service + "/..."},
			Reason: "a new room has to be given its floor here"})
		hubtest.Imports(t, hubtest.Root(t), rules...)
	}
}

// A room has at most so many files of production code, and so many lines that are neither blank nor a comment.
const (
	roomFiles = 12
	roomLines = 2000
)

// TestRoomsAreSmall: whoever opens a room sees at a glance what is in it.
func TestRoomsAreSmall(t *testing.T) {
	crowded, err := crowdedRooms(filepath.Join(hubtest.Root(t), "services"))
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range crowded {
		t.Errorf("services/%s; a room has at most %d of %d lines: give what belongs together a room of its own", room, roomFiles, roomLines)
	}
}

// crowdedRooms lists the folders below root with more than a room may have, as "folder: count".
func crowdedRooms(root string) (crowded []string, err error) {
	files, lines := map[string]int{}, map[string]int{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		room = filepath.ToSlash(room)
		files[room]++
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[room]++
			}
		}
		return err
	})
	for room, n := range files {
		if n > roomFiles || lines[room] > roomLines {
			crowded = append(crowded, fmt.Sprintf("%s: %d files, %d lines", room, n, lines[room]))
		}
	}
	slices.Sort(crowded)
	return crowded, err
}

func TestCrowdedRoomsAreFound(t *testing.T) {
	root := t.TempDir()
	for room, has := range map[string]struct{ files, lines int }{
		"a": {roomFiles, 1}, "a/console": {roomFiles + 1, 1}, "b": {1, roomLines}, "c": {1, roomLines + 1},
	} {
		if err := os.MkdirAll(filepath.Join(root, room), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range has.files {
			for _, kind := range []string{".go", "_test.go", ".html"} {
				text := strings.Repeat("x\n\n// y\n", has.lines)
				if err := os.WriteFile(filepath.Join(root, room, fmt.Sprint("f", i, kind)), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want := []string{"a/console: 13 files, 13 lines", "c: 1 files, 2001 lines"}
	if crowded, err := crowdedRooms(root); err != nil || !slices.Equal(crowded, want) {
		t.Errorf("%q, %v", crowded, err)
	}
}

// byHand is what a template must leave to pkg/web's kit.
var byHand = regexp.MustCompile(`class="(?:pager|badge|field)\b[^"]*"|\{\{-? *define "(?:pager|badge|field|confirmation|bar|empty)"`)

// TestPagesUseTheKit: a pager, a badge, a field and a confirmation look and work alike everywhere.
func TestPagesUseTheKit(t *testing.T) {
	root, found := hubtest.Root(t), 0
	err := filepath.WalkDir(filepath.Join(root, "services"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") || strings.Contains(path, "testdata") {
			return err
		}
		found++
		page, err := os.ReadFile(path)
		for _, at := range byHand.FindAllIndex(page, -1) {
			t.Errorf("%s:%d: %s is the kit's: pkg/web/kit.go", path, 1+strings.Count(string(page[:at[0]]), "\n"), page[at[0]:at[1]])
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d pages, %v", found, err)
	}
}

// TestUnracedTestsAreFound: what make test leaves out of its run with the race detector is one test each, where the run without it looks.
func TestUnracedTestsAreFound(t *testing.T) {
	root := hubtest.Root(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		of := regexp.MustCompile(`(?m)^` + name + `\s*:=\s*((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
		if of == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return regexp.MustCompile(`\$?\\\n\s*`).ReplaceAllString(string(of[1]), "")
	}
	rooms := strings.Fields(value("UNRACED_IN"))
	found := map[string][]string{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			room, _ := filepath.Rel(root, filepath.Dir(path))
			found[string(name[1])] = append(found[string(name[1])], room)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(value("UNRACED_TESTS"), "|") {
		if in := found[name]; len(in) != 1 || !slices.Contains(rooms, in[0]) {
			t.Errorf("%s is in %v, and has to be one test of %v", name, in, rooms)
		}
	}
}
