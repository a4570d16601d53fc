package postgres_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/hubtest"
	pgkit "hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/services/admin/auditlog"
)

// catalog is the committed one.
func catalog(t testing.TB) (c tool.Catalog) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRowsOfOthersAreForeign: each service's role records each name that there is, and some that there are not. What it owns is its
// own, whatever the outcome; the edge refuses under any name; the rest is foreign. The log's search, its gauge and the mark agree.
func TestRowsOfOthersAreForeign(t *testing.T) {
	t.Parallel()
	s, c := migrated(t), catalog(t)
	owner := map[string]string{
		"no_such_tool":    "",
		"no.such.act":     "",
		"review":          "",
		"review.approve":  "review-control",
		"session.refused": "auth",
		"calls.refused":   "gateway",
	}
	for _, m := range c.Manifests {
		for _, tool := range m.Tools {
			owner[tool.Name] = m.Service
		}
		for _, route := range m.Routes {
			owner[route.Name] = m.Service
		}
	}
	var names []string
	for name := range owner {
		names = append(names, name)
	}
	var writers []string
	for _, m := range c.Manifests {
		writers = append(writers, m.Service)
	}
	writers = append(writers, "gateway")
	want := map[string]bool{}
	for _, service := range writers {
		role := pgkit.ServiceRole(service)
		for _, outcome := range []string{audit.OK, "E_NOT_FOUND"} {
			if _, err := connect(t, s.URL(service)).Exec(t.Context(), `INSERT INTO audit.calls (at, request_id, tool, outcome)
				SELECT clock_timestamp(), 'owners', name, $2 FROM unnest($1::text[]) name`, names, outcome); err != nil {
				t.Fatal(err)
			}
			for name, of := range owner {
				if of != "" && of != service && (service != "gateway" || outcome == audit.OK) {
					want[role+" "+name+" "+outcome] = true
				}
			}
		}
	}
	if _, err := s.super.Exec(
		t.Context(),
		`INSERT INTO audit.calls (at, request_id, tool, outcome, writer) VALUES (clock_timestamp(), 'old', 'get_brand', 'ok', '')`,
	); err != nil {
		t.Fatal(err)
	}

	owners, now := auditlog.OwnersIn(c), time.Now()
	r := reader(t, s, func() time.Time { return now })
	all, err := r.Search(t.Context(), auditlog.Filter{}, auditlog.Position{}, 10_000)
	if err != nil || len(all.Calls) != 1+2*len(writers)*len(names) {
		t.Fatalf("%d rows, %v", len(all.Calls), err)
	}
	for _, call := range all.Calls {
		if key := call.Writer + " " + call.Tool + " " + call.Outcome; owners.Foreign(call) != want[key] {
			t.Errorf("%s is foreign: %v", key, !want[key])
		}
	}
	found, err := r.Search(t.Context(), auditlog.Filter{Foreign: owners}, auditlog.Position{}, 10_000)
	if err != nil || len(found.Calls) != len(want) ||
		slices.ContainsFunc(found.Calls, func(c auditlog.Call) bool { return !owners.Foreign(c) }) {
		t.Errorf("the search finds %d rows of %d, %v", len(found.Calls), len(want), err)
	}

	watch := r.Watch(owners)
	for _, look := range []struct {
		after time.Duration
		rows  int
	}{{0, 0}, {8 * time.Minute, len(want)}, {0, len(want)}, {40 * time.Minute, len(want)}, {30 * time.Minute, 0}, {24 * time.Hour, 0}} {
		now = now.Add(look.after)
		if rows, err := watch.Foreign(t.Context()); err != nil || rows != int64(look.rows) {
			t.Errorf("%s later there are %d foreign rows, want %d, %v", look.after, rows, look.rows, err)
		}
	}
}
