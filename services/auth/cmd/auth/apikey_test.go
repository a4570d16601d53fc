package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/service"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

const pepper = "pepper-0123456789abcdef0123456789"

// terminal runs the real commands.
type terminal struct {
	db      hubtest.WriteStoreDB
	environ []string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	db := hubtest.WriteStore(t)
	term := &terminal{
		db:      db,
		environ: []string{"HUB_WRITE_STORE_URL=" + db.URL("auth"), "HUB_KEY_PEPPER=" + pepper, "HUB_MIGRATE_URL=" + db.OwnerURL},
	}
	term.ok(t, "migrate")
	return term
}

func (x *terminal) with(environ ...string) *terminal {
	return &terminal{x.db, append(slices.Clone(x.environ), environ...)}
}

// run returns what a command printed and its exit code.
func (x *terminal) run(args ...string) (out, errs string, code int) {
	var stdout, stderr bytes.Buffer
	c := root(x.environ)
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	code = service.Execute(c)
	return stdout.String(), stderr.String(), code
}

func (x *terminal) ok(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := x.run(args...)
	if code != service.ExitOK {
		t.Fatalf("auth %s: exit %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

func (x *terminal) json(t *testing.T, args ...string) record {
	t.Helper()
	out := x.ok(t, append(args, "--json")...)
	var r record
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func (x *terminal) issue(t *testing.T, args ...string) record {
	t.Helper()
	return x.json(t, append([]string{"apikey", "issue", "--name", "agent", "--scopes", "explore,query"}, args...)...)
}

// status asks the service about a key, as the gateway would.
func (x *terminal) status(t *testing.T, key string) auth.Status {
	t.Helper()
	store := postgres.New(hubtest.Pool(t, x.db.URL("auth")))
	peppers, err := auth.NewPeppers(pepper, "")
	if err != nil {
		t.Fatal(err)
	}
	k, err := auth.New(auth.Config{Store: store, Peppers: peppers, Now: time.Now}).Verify(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return k.Status(time.Now())
}

func (x *terminal) query(t *testing.T, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), x.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var text string
	if err := conn.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

var keyForm = regexp.MustCompile(`crm_[0-9A-Za-z]{42}`)

func TestKeyIsPrintedOnce(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	out := x.ok(t, "apikey", "issue", "--name", "my agent", "--scopes", "query", "--scopes", "explore")
	keys := keyForm.FindAllString(out, -1)
	if len(keys) != 1 || !strings.Contains(out, "not shown again") || !strings.Contains(out, "explore, query") {
		t.Fatalf("issue prints %s", out)
	}
	if got := x.status(t, keys[0]); got != auth.Active {
		t.Errorf("status %s", got)
	}
	list := x.ok(t, "apikey", "list")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(lines[1], "my agent") ||
		!strings.Contains(lines[1], keys[0][:8]+"…"+keys[0][42:]) {
		t.Errorf("list prints %s", list)
	}
	everything := list + x.ok(
		t,
		"apikey",
		"list",
		"--json",
	) + x.query(
		t,
		`SELECT string_agg(k::text, ' ') FROM auth.api_keys k`,
	) + x.query(
		t,
		`SELECT string_agg(c::text, ' ') FROM audit.calls c`,
	)
	if strings.Contains(everything, keys[0][8:42]) {
		t.Errorf("the key shows again: %s", everything)
	}
}

func TestIssueJSON(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	r := x.issue(
		t,
		"--service",
		"crm-bot",
		"--expires",
		"90d",
		"--user-per-minute",
		"6000000",
		"--user-burst",
		"100000",
		"--service-per-minute",
		"6000001",
		"--service-burst",
		"100001",
		"--actor",
		"ada",
	)
	created, err := time.Parse(time.RFC3339, *r.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	expires, err := time.Parse(time.RFC3339, *r.ExpiresAt)
	if err != nil {
		t.Fatal(err)
	}
	if !keyForm.MatchString(r.Key) || r.Service != "crm-bot" || r.Status != auth.Active || expires.Sub(created) != 90*24*time.Hour ||
		r.CreatedBy != "ada" ||
		r.Limits != (auth.Limits{UserPerMinute: 6_000_000, UserBurst: 100_000, ServicePerMinute: 6_000_001, ServiceBurst: 100_001}) ||
		r.RevokedAt != nil ||
		!strings.HasSuffix(*r.CreatedAt, "Z") {
		t.Errorf("issued %+v", r)
	}
	if plain := x.issue(t); plain.Service != plain.ID || plain.Limits != auth.DefaultLimits() || plain.ExpiresAt != nil {
		t.Errorf("issued %+v", plain)
	}
	actor := x.query(
		t,
		`SELECT external_user_id FROM audit.calls WHERE tool = 'apikey.issue' AND service = 'auth-cli' AND detail->>'id' = '`+r.ID+`'`,
	)
	if actor != "ada" {
		t.Errorf("actor %q", actor)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if got := x.query(
		t,
		`SELECT string_agg(DISTINCT external_user_id, ',') FROM audit.calls WHERE external_user_id <> 'ada'`,
	); got != u.Username {
		t.Errorf("default actor %q, want %q", got, u.Username)
	}
}

func TestRevokeRotate(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	a := x.issue(t, "--service", "crm-bot", "--user-burst", "7")
	b := x.json(t, "apikey", "rotate", a.ID, "--overlap", "24h")
	if b.Service != "crm-bot" || b.Limits != a.Limits || !slices.Equal(b.Scopes, a.Scopes) || *b.RotatedFrom != a.ID ||
		!slices.Equal(b.Chain, []string{a.ID, b.ID}) {
		t.Errorf("successor %+v", b)
	}
	if x.status(t, a.Key) != auth.Active || x.status(t, b.Key) != auth.Active {
		t.Error("both keys are good during the overlap")
	}
	out := x.ok(t, "apikey", "rotate", b.ID, "--overlap", "0")
	if x.status(t, b.Key) != auth.Expired {
		t.Error("an overlap of 0 ends the old key at once")
	}
	key := keyForm.FindString(out)
	if x.status(t, key) != auth.Active || !strings.Contains(out, a.ID+" → "+b.ID+" → ak_") || !strings.Contains(out, b.ID+" expires at") {
		t.Errorf("rotate prints %s", out)
	}
	if out := x.ok(
		t,
		"apikey",
		"revoke",
		a.ID,
		"--reason",
		"leaked",
	); !strings.Contains(out, a.ID+" is revoked since") ||
		!strings.Contains(out, b.ID) {
		t.Errorf("revoke prints %s", out)
	}
	if r := x.json(t, "apikey", "revoke", a.ID, "--reason", "once more"); *r.RevokeReason != "leaked" || r.Status != auth.Revoked {
		t.Errorf("revoked %+v", r)
	}
	if x.status(t, a.Key) != auth.Revoked || x.status(t, key) != auth.Active {
		t.Error("revoke ends one key and no other")
	}
}

func TestListIsWhole(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	var empty struct{ Keys []record }
	if err := json.Unmarshal([]byte(x.ok(t, "apikey", "list", "--json")), &empty); err != nil || empty.Keys == nil {
		t.Errorf("no keys: %+v, %v", empty, err)
	}
	x.query(
		t,
		`WITH made AS (INSERT INTO auth.api_keys (id, name, service, hash, pepper_id, head, tail, scopes, user_per_minute, user_burst,
			service_per_minute, service_burst, created_by, created_at)
		SELECT 'ak_' || lpad(n::text, 26, '0'), 'n', 's', sha256(n::text::bytea), 'p', 'crm_abcd', 'wxyz', '{query}', 1, 1, 1, 1, 'ada', now()
			FROM generate_series(1, 450) n RETURNING id) SELECT max(id) FROM made`,
	)
	var all struct{ Keys []record }
	if err := json.Unmarshal([]byte(x.ok(t, "apikey", "list", "--json")), &all); err != nil || len(all.Keys) != 450 {
		t.Fatalf("%d keys, %v", len(all.Keys), err)
	}
	for i, k := range all.Keys {
		if want := fmt.Sprintf("ak_%026d", 450-i); k.ID != want {
			t.Fatalf("key %d is %s, want %s", i, k.ID, want)
		}
	}
	if got := strings.Count(x.ok(t, "apikey", "list"), "\n"); got != 451 {
		t.Errorf("%d lines", got)
	}
	// These keys have a pepper of their own, and nobody here knows it.
	if _, errs, code := x.run(
		"apikey",
		"issue",
		"--name",
		"n",
		"--scopes",
		"query",
	); code != service.ExitOK ||
		!strings.Contains(errs, "warning: 450 active keys were issued under another pepper") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestErrorsAreOneLineThatNamesWhatToFix(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	k := x.issue(t)
	unreachable := "HUB_WRITE_STORE_URL=postgres://hub_auth:hunter2@127.0.0.1:1/hub"
	file := filepath.Join(t.TempDir(), "pepper")
	for name, c := range map[string]struct {
		environ []string
		args    []string
		code    int
		want    string
	}{
		"unknown command": {nil, []string{"apikeys"}, service.ExitUsage, "unknown command"},
		"unknown verb":    {nil, []string{"apikey", "delete"}, service.ExitUsage, "unknown command"},
		"unknown flag":    {nil, []string{"apikey", "issue", "--nam", "x"}, service.ExitUsage, "--nam"},
		"no name":         {nil, []string{"apikey", "issue", "--scopes", "query"}, service.ExitUsage, `"name" not set`},
		"no scopes":       {nil, []string{"apikey", "issue", "--name", "x"}, service.ExitUsage, `"scopes" not set`},
		"unknown scope": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query,root"}, service.ExitUsage,
			`unknown scope "root"; the scopes are explore, sql, query, author, control, admin:read, admin:write`},
		"empty scopes": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", ""}, service.ExitUsage, "at least one scope"},
		"bad expires": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--expires", "soon"}, service.ExitUsage,
			"such as 90d"},
		"zero expires": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--expires", "0"}, service.ExitUsage,
			"expires must be"},
		"negative expires": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--expires=-1d"}, service.ExitUsage,
			"such as 90d"},
		"endless expires": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--expires", "99999999999d"},
			service.ExitUsage, "such as 90d"},
		"bad limit": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--user-burst", "0"}, service.ExitUsage,
			"user-burst must be between 1 and"},
		"surplus argument": {nil, []string{"apikey", "issue", "x", "--name", "x", "--scopes", "query"}, service.ExitUsage, "x"},
		"no id":            {nil, []string{"apikey", "revoke", "--reason", "x"}, service.ExitUsage, "1 arg"},
		"unknown id":       {nil, []string{"apikey", "revoke", "ak_x", "--reason", "x"}, service.ExitFailed, `no API key with the id "ak_x"`},
		"no reason":        {nil, []string{"apikey", "revoke", k.ID}, service.ExitUsage, `"reason" not set`},
		"empty reason":     {nil, []string{"apikey", "revoke", k.ID, "--reason", ""}, service.ExitUsage, "reason must be"},
		"bad overlap":      {nil, []string{"apikey", "rotate", k.ID, "--overlap", "-1h"}, service.ExitUsage, "overlap must be"},
		"bad actor": {nil, []string{"apikey", "issue", "--name", "x", "--scopes", "query", "--actor", "a\nb"}, service.ExitUsage,
			"actor must be"},
		"no store": {[]string{"HUB_WRITE_STORE_URL="}, []string{"apikey", "list"}, service.ExitFailed, "HUB_WRITE_STORE_URL"},
		"bad store": {[]string{"HUB_WRITE_STORE_URL=postgres://hub:hunter2@h:x/"}, []string{"apikey", "list"}, service.ExitFailed,
			"HUB_WRITE_STORE_URL"},
		"store unreachable": {[]string{unreachable}, []string{"apikey", "list"}, service.ExitFailed, "HUB_WRITE_STORE_URL names cannot be used"},
		"another role":      {[]string{"HUB_WRITE_STORE_URL=" + x.db.URL("query")}, []string{"apikey", "list"}, service.ExitFailed, "hub_auth"},
		"no pepper": {[]string{"HUB_KEY_PEPPER="}, []string{"apikey", "issue", "--name", "x", "--scopes", "query"},
			service.ExitFailed, "HUB_KEY_PEPPER has 0 characters"},
		"short pepper": {[]string{"HUB_KEY_PEPPER=hunter2"}, []string{"apikey", "rotate", k.ID}, service.ExitFailed,
			"HUB_KEY_PEPPER has 7 characters"},
		"pepper file": {[]string{"HUB_KEY_PEPPER=", "HUB_KEY_PEPPER_FILE=" + file}, []string{"apikey", "rotate", k.ID},
			service.ExitFailed, "HUB_KEY_PEPPER_FILE"},
		"bad redis": {[]string{"HUB_REDIS_URL=http://:hunter2@x"}, []string{"apikey", "revoke", k.ID, "--reason", "x"},
			service.ExitFailed, "HUB_REDIS_URL"},
		"no migrate URL":     {[]string{"HUB_MIGRATE_URL="}, []string{"migrate"}, service.ExitFailed, "HUB_MIGRATE_URL"},
		"migrate as service": {[]string{"HUB_MIGRATE_URL=" + x.db.URL("auth")}, []string{"migrate"}, service.ExitFailed, "permission denied"},
		"serve, no settings": {[]string{"HUB_WRITE_STORE_URL=", "HUB_KEY_PEPPER="}, []string{"serve"}, service.ExitFailed, "HUB_SIGNING_KEY"},
		"serve, short key":   {[]string{"HUB_SIGNING_KEY=hunter2"}, []string{"serve"}, service.ExitFailed, "HUB_SIGNING_KEY"},
		"serve, pepper": {append(callertest.Environ("auth", caller.Gateway), "HUB_KEY_PEPPER=hunter2"), []string{"serve"},
			service.ExitFailed, "HUB_KEY_PEPPER"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := x.with(c.environ...).run(c.args...)
			if code != c.code || out != "" || !strings.HasPrefix(errs, "auth: ") || strings.Count(errs, "\n") != 1 ||
				!strings.Contains(errs, c.want) ||
				strings.Contains(errs, "hunter2") {
				t.Errorf("exit %d, out %q, want %q: %s", code, out, c.want, errs)
			}
		})
	}
	if x.status(t, k.Key) != auth.Active {
		t.Error("a refused command changed the key")
	}
	if errs := x.query(t, `SELECT count(*)::text FROM auth.api_keys`); errs != "1" {
		t.Errorf("%s keys", errs)
	}
	fresh := hubtest.WriteStore(t)
	if _, errs, code := x.with(
		"HUB_WRITE_STORE_URL="+fresh.URL("auth"),
	).run(
		"apikey",
		"list",
	); code != service.ExitFailed ||
		!strings.Contains(errs, "run `auth migrate`") {
		t.Errorf("not migrated: exit %d: %s", code, errs)
	}
}

func TestRevokeNeedsNoPepper(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	k := x.issue(t)
	y := x.with("HUB_KEY_PEPPER=")
	y.ok(t, "apikey", "list")
	y.ok(t, "apikey", "revoke", k.ID, "--reason", "leaked")
	if x.status(t, k.Key) != auth.Revoked {
		t.Error("the key is not revoked")
	}
}

func TestGatewaysAreTold(t *testing.T) {
	t.Parallel()
	server := hubtest.NewRedis(t)
	x := newTerminal(t).with("HUB_REDIS_URL=" + server.URL(0))
	client := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	gateway := client.Subscribe(t.Context(), "hub:apikeys")
	if _, err := gateway.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	notices := gateway.Channel()
	next := func(want string) {
		t.Helper()
		select {
		case m := <-notices:
			if m.Payload != want {
				t.Errorf("told %q, want %q", m.Payload, want)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s was not told", want)
		}
	}
	quiet := func(args ...string) record {
		t.Helper()
		out, errs, code := x.run(append(args, "--json")...)
		var r record
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != service.ExitOK || errs != "" {
			t.Fatalf("%v: exit %d: %s: %v", args, code, errs, err)
		}
		return r
	}
	a := x.issue(t)
	b := quiet("apikey", "rotate", a.ID)
	next(a.ID)
	c := quiet("apikey", "rotate", b.ID, "--overlap", "0")
	next(b.ID)
	quiet("apikey", "revoke", c.ID, "--reason", "over")
	next(c.ID)

	d := x.issue(t)
	server.Kill()
	for name, y := range map[string]*terminal{"redis is gone": x, "no redis": x.with("HUB_REDIS_URL=")} {
		out, errs, code := y.run("apikey", "revoke", d.ID, "--reason", "over")
		if code != service.ExitOK || !strings.Contains(out, "is revoked") || !strings.HasPrefix(errs, "warning: ") ||
			!strings.Contains(errs, "the key stops within 2 s anyway") ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, out %s, errors %s", name, code, out, errs)
		}
	}
	if x.status(t, d.Key) != auth.Revoked {
		t.Error("the key is not revoked")
	}
}

func TestManifest(t *testing.T) {
	x := &terminal{}
	var m tool.Manifest
	if out := x.ok(
		t,
		"manifest",
	); json.Unmarshal([]byte(out), &m) != nil || m.Service != "auth" || len(m.Tools) != 2 || len(m.Console) != 10 ||
		len(m.Routes) == 0 {
		t.Errorf("manifest %s", out)
	}
}
