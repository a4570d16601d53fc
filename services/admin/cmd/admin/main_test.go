package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

// TestServe: migrate and serve as the stack does; before its tables are there it is not ready.
func TestServe(t *testing.T) {
	t.Parallel()
	db, keys := hubtest.WriteStore(t), callertest.Environ("admin", caller.Gateway)
	catalog := "HUB_CATALOG=" + filepath.Join(hubtest.Root(t), "deploy", "catalog.json")
	environ := slices.Concat(keys, []string{"HUB_WRITE_STORE_URL=" + db.URL("admin"), "HUB_AUDIT_URL=" + db.AuditURL(), catalog})
	early := hubtest.Launch(t, environ, "serve")
	hubtest.Eventually(t, "it says that it is not ready", func() bool { return early.Get("/readyz") == 503 })
	if p := hubtest.Launch(t, []string{"HUB_MIGRATE_URL=" + db.OwnerURL}, "migrate"); p.Wait(t) != 0 {
		t.Fatalf("%s", p.Log)
	}
	p := hubtest.Launch(t, environ, "serve")
	p.Ready(t)
	store := hubtest.Pool(t, db.SuperuserURL)
	hubtest.Eventually(t, "the audit log is rolled up", func() bool {
		var done bool
		return store.QueryRow(
			t.Context(),
			`SELECT until > now() - interval '1 hour' FROM audit.watermarks WHERE grain = '5m'`,
		).Scan(
			&done,
		) == nil &&
			done
	})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, rpc.ManifestPath: 401, "/admin/menus": 401,
		"/admin": 401, "/admin/audit": 401, "/admin/audit/export": 401, "/p/a/b": 401, "/internal/menus/navigation": 405, "/": 404} {
		if got := p.Get(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	for name, c := range map[string]struct{ setting, says string }{
		"no audit log": {"HUB_AUDIT_URL=", "HUB_AUDIT_URL"}, "a broken address of it": {"HUB_AUDIT_URL=x y:z", "HUB_AUDIT_URL"},
		"a password as it is": {"HUB_AUDIT_URL=postgres://hub_audit:p@ss#word@127.0.0.1/hub", "HUB_AUDIT_URL: percent-encode the password"},
		"no such file":        {"HUB_CATALOG=/nowhere/catalog.json", "HUB_CATALOG"}, "no catalog": {"HUB_CATALOG=" + broken(t), "HUB_CATALOG"},
	} {
		p := hubtest.Launch(t, append(slices.Clone(environ), c.setting), "serve")
		if code := p.Wait(t); code != 1 || !strings.Contains(p.Log.String(), c.says) {
			t.Errorf("%s: exit %d, %s", name, code, p.Log)
		}
	}
}

// TestRetention: migrate tells the store for how long the audit log is kept, and says so when that changes. Who is told nothing changes
// nothing, and what it is told again holds.
func TestRetention(t *testing.T) {
	t.Parallel()
	db := hubtest.WriteStore(t)
	days := func() (n int) {
		if err := hubtest.Pool(t, db.SuperuserURL).QueryRow(t.Context(), `SELECT days FROM audit.policy`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		setting    string
		code, days int
		says       string
	}{
		{"", 0, 400, ""},
		{"HUB_AUDIT_RETENTION=62d", 0, 62, "kept for 62d, by HUB_AUDIT_RETENTION; it was 400d"},
		{"HUB_AUDIT_RETENTION=61d", 1, 62, "HUB_AUDIT_RETENTION"},
		{"HUB_AUDIT_RETENTION=0d", 1, 62, "HUB_AUDIT_RETENTION"},
		{"HUB_AUDIT_RETENTION=9600h", 1, 62, "HUB_AUDIT_RETENTION"},
		{"HUB_AUDIT_RETENTION=800d", 0, 800, "kept for 800d, by HUB_AUDIT_RETENTION; it was 62d"},
		{"HUB_AUDIT_RETENTION=800d", 0, 800, ""},
		{"", 0, 800, ""},
		{"HUB_AUDIT_RETENTION=", 0, 800, ""},
	} {
		p := hubtest.Launch(t, []string{"HUB_MIGRATE_URL=" + db.OwnerURL, c.setting}, "migrate")
		code, says := p.Wait(t), p.Log.String()
		if code != c.code || !strings.Contains(says, c.says) || c.says == "" && says != "" || strings.Contains(says, "hub-test") {
			t.Errorf("%q: exit %d, %s", c.setting, code, says)
		}
		if n := days(); n != c.days {
			t.Errorf("%q: kept for %d days, want %d", c.setting, n, c.days)
		}
	}
}

func broken(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestManifest is the part of deploy/catalog.json that is admin's.
func TestManifest(t *testing.T) {
	committed, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	var catalog tool.Catalog
	if err := json.Unmarshal(committed, &catalog); err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(catalog.Manifests, func(m tool.Manifest) bool { return m.Service == "admin" })
	if n < 0 {
		t.Fatal("admin is not in the catalog")
	}
	want, err := json.Marshal(catalog.Manifests[n])
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(manifest())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(compacted(t, got), compacted(t, want)) {
		t.Error("deploy/catalog.json is out of date: run make catalog")
	}
}

func compacted(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
