package postgres_test

import (
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
	"hub.internal/services/auth/postgres"
)

// TestListsUseAnIndex looks at the plans of the lists with 10,000 keys, users and apps, and at how long they take:
// begun, gone on with, and by a state that few are in. A search for a part of a text has to look at each row.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	owner := connect(t, db.OwnerURL)
	_, err := owner.Exec(
		t.Context(),
		`INSERT INTO auth.api_keys (id, name, service, hash, pepper_id, head, tail, scopes, user_per_minute, user_burst, service_per_minute,
			service_burst, created_by, created_at, expires_at, revoked_at)
			SELECT 'ak_' || lpad(n::text, 26, '0'), 'agent ' || n, 's', sha256(n::text::bytea), 'p', 'crm_abcd', 'wxyz', '{query}', 1, 1, 1, 1,
				'ada', now(),
				CASE WHEN n % 3 = 0 THEN now() - interval '1 day' END, CASE WHEN n = 1 THEN now() END FROM generate_series(1, 10000) n;
		INSERT INTO auth.users (id, email, name, roles, password_hash, created_by, created_at, disabled_at)
			SELECT 'usr_' || n, 'User' || n || '@example.com', 'User ' || n, '{reviewer}', 'x', 'ada', now(), CASE WHEN n = 9999 THEN now() END
				FROM generate_series(1, 10000) n;
		INSERT INTO auth.connected_apps SELECT 'app-' || n, 'App ' || n, CASE WHEN n = 9999 THEN 'REVOKED' ELSE 'ACTIVE' END, '', '{}', '{}',
			'{pay:read}', 'consent', 1, 1, 1, 1, 1, 'ada', now(), now() FROM generate_series(1, 10000) n;
		INSERT INTO auth.app_secrets SELECT 's_' || n, 'app-' || n, 'x', 'ada', now(), NULL, NULL FROM generate_series(1, 10000) n;
		INSERT INTO auth.identity_links SELECT 'lnk_' || lpad(n::text, 26, '0'), 'app-' || 1 + n % 10, 'u-' || n, 'usr_' || 1 + n % 1000,
			'{pay:read}', 1,
			CASE WHEN n % 4 = 0 THEN 'REVOKED' WHEN n % 1000 = 1 THEN 'PENDING' ELSE 'ACTIVE' END, now(), NULL, '', '' FROM generate_series(1,
				50000) n;
		INSERT INTO auth.link_consents SELECT id, 1, '{pay:read}', now(), '', '' FROM auth.identity_links;
		ANALYZE auth.api_keys, auth.users, auth.connected_apps, auth.app_secrets, auth.identity_links, auth.link_consents`,
	)
	if err != nil {
		t.Fatal(err)
	}
	role, now := connect(t, db.URL("auth")), time.Now()
	plan := func(name, index, search, sql string, args ...any) {
		t.Helper()
		if search != "" {
			return
		}
		var text string
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if _, err := role.Exec(t.Context(), `SET plan_cache_mode = `+mode); err != nil {
				t.Fatal(err)
			}
			if err := role.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+sql, args...).Scan(&text); err != nil {
				t.Fatal(name, err)
			}
			if !strings.Contains(text, `"Index Name": "`+index) || strings.Contains(text, "Seq Scan") || strings.Contains(text, `"Sort"`) {
				t.Errorf("%s, %s: %s", name, mode, text)
			}
		}
	}
	s := open(t, db.URL("auth"))
	timed := func(list string, do func() error) {
		t.Helper()
		hubtest.Within(t, 150*time.Millisecond, list, func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, f := range map[string]auth.KeyFilter{
		"first page": {Status: auth.Active}, "far below": {After: "ak_" + strings.Repeat("0", 24) + "99"}, "in vain": {Search: "nobody"},
		"by id": {Search: "ak_" + strings.Repeat("0", 25) + "1"}, "the revoked one": {Status: auth.Revoked},
		"expired": {Status: auth.Expired, Search: "agent 9"},
	} {
		f.Limit, f.At = 26, now
		sql, args := postgres.ListKeys(f)
		plan("keys, "+name, "api_keys_", f.Search, sql, args)
		timed("keys, "+name, func() error {
			_, err := s.List(t.Context(), f, audit.Entry{At: now, Tool: "test", Outcome: audit.OK})
			return err
		})
	}
	for name, f := range map[string]auth.UserFilter{
		"first page": {}, "far below": {After: "user99@example.com"}, "in vain": {Search: "nobody"},
		"the disabled one": {State: auth.UserDisabled}, "no administrator": {Administrators: true}, "pending": {State: auth.UserPending},
		"active": {State: auth.UserActive},
	} {
		f.Limit = 26
		sql, args := postgres.ListUsers(f)
		plan("users, "+name, "users_", f.Search, sql, args)
		timed("users, "+name, func() error { _, err := s.Users(t.Context(), f); return err })
	}
	for name, f := range map[string]apps.Filter{
		"first page": {}, "far below": {After: "app-99"}, "in vain": {Search: "nobody"}, "the revoked one": {Status: apps.Revoked},
		"five hundred": {Limit: 501},
	} {
		f.Limit, f.At = max(f.Limit, 26), now
		sql, args := postgres.ListApps(f)
		if f.Limit == 26 { // for hundreds of apps the secrets of all are read at once
			plan("apps, "+name, "connected_apps_", f.Search, sql, args)
		}
		timed("apps, "+name, func() error { _, err := s.Apps(t.Context(), f); return err })
	}
	for name, f := range map[string]links.Filter{"all": {}, "far below": {After: "lnk_" + strings.Repeat("0", 23) + "999"},
		"of a user": {HubUser: "usr_2"}, "of an app": {Service: "app-2"}, "of both": {Service: "app-2", HubUser: "usr_2"},
		"of nobody": {HubUser: "x"}} {
		f.Limit = 26
		sql, args := postgres.ListLinks(f)
		plan(
			"links, "+name,
			"identity_links_",
			map[bool]string{true: "sorts the few of a user"}[f.Service != "" && f.HubUser != ""],
			sql,
			args,
		)
		timed("links, "+name, func() error { _, err := s.ListLinks(t.Context(), f); return err })
	}
	plan("one link", "identity_links_pair", "", postgres.LinkOf, "app-2", "u-11")
	timed("one link", func() error { _, _, err := s.LinkOf(t.Context(), "app-2", "u-11"); return err })
}
