package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "TestStoreOfTheHouse|TestWhatTheRoleMayNotDo|"+
		"TestFindUsesTheIndex|TestListsUseAnIndex|TestTokensUseIndexes")
}

func migrated(t *testing.T) hubtest.WriteStoreDB {
	t.Helper()
	db := hubtest.MigratedStore(t, "auth", postgres.Migrate)
	return db
}

func open(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s := postgres.New(hubtest.Pool(t, url))
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func sealed(n int) auth.HashedKey {
	hash := auth.Hash(sha256.Sum256(fmt.Append(nil, n)))
	return auth.HashedKey{
		Hash: hash,
		Key: auth.Key{
			ID:       fmt.Sprintf("ak_%026d", n),
			Name:     "n",
			Service:  "s",
			Head:     "crm_abcd",
			Tail:     "wxyz",
			PepperID: "p",
			Scopes: []string{
				"query",
			},
			Limits:    auth.DefaultLimits(),
			CreatedBy: "ada",
			CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
		},
	}
}

func entry() audit.Entry { return audit.Entry{At: time.Now(), Tool: "test", Outcome: audit.OK} }

func TestStoreOfTheHouse(t *testing.T) {
	hubtest.ExerciseStore(t, "auth", postgres.Migrate, postgres.New)
}

func TestWhatTheRoleMayNotDo(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	s := open(t, db.URL("auth"))
	if err := s.Add(t.Context(), sealed(1), entry()); err != nil {
		t.Fatal(err)
	}
	owner, role := connect(t, db.OwnerURL), connect(t, db.URL("auth"))
	if _, err := owner.Exec(
		t.Context(),
		`CREATE SCHEMA authoring; CREATE TABLE authoring.drafts (id int); CREATE TABLE public.t (id int)`,
	); err != nil {
		t.Fatal(err)
	}
	const denied = "42501"
	for name, c := range map[string]struct {
		conn *pgx.Conn
		sql  string
	}{
		"delete audit rows":          {role, `DELETE FROM audit.calls`},
		"change audit rows":          {role, `UPDATE audit.calls SET outcome = 'x'`},
		"empty the audit log":        {role, `TRUNCATE audit.calls`},
		"drop the audit log":         {role, `DROP TABLE audit.calls`},
		"read the audit log":         {role, `SELECT * FROM audit.calls`},
		"drop its trigger":           {role, `ALTER TABLE audit.calls DISABLE TRIGGER ALL`},
		"delete keys":                {role, `DELETE FROM auth.api_keys`},
		"empty the keys":             {role, `TRUNCATE auth.api_keys`},
		"change a hash":              {role, `UPDATE auth.api_keys SET hash = hash`},
		"change who made a key":      {role, `UPDATE auth.api_keys SET created_by = 'x'`},
		"change a key's service":     {role, `UPDATE auth.api_keys SET service = 'x'`},
		"delete an app":              {role, `DELETE FROM auth.connected_apps`},
		"rename an app's code":       {role, `UPDATE auth.connected_apps SET service_code = 'x'`},
		"give a secret to an app":    {role, `UPDATE auth.app_secrets SET service_code = 'x'`},
		"give a webhook secret away": {role, `UPDATE auth.app_webhook_secrets SET service_code = 'x'`},
		"unburn a token":             {role, `UPDATE auth.jwt_replay SET exp = now()`},
		"delete a secret's trace":    {role, `DELETE FROM auth.app_secrets`},
		"give a link to another":     {role, `UPDATE auth.identity_links SET hub_user_id = 'x'`},
		"link another's user":        {role, `UPDATE auth.identity_links SET external_user_id = 'x'`},
		"delete a link":              {role, `DELETE FROM auth.identity_links`},
		"change a consent":           {role, `UPDATE auth.link_consents SET scopes = '{}'`},
		"delete a consent":           {role, `DELETE FROM auth.link_consents`},
		"prolong a ticket's trace":   {role, `UPDATE auth.connect_nonces SET expires_at = now()`},
		"prolong a grant":            {role, `UPDATE auth.connect_grants SET expires_at = now()`},
		"change the schema":          {role, `ALTER TABLE auth.api_keys ADD COLUMN x int`},
		"make a table":               {role, `CREATE TABLE auth.x (a int)`},
		"make a public table":        {role, `CREATE TABLE public.x (a int)`},
		"make a schema":              {role, `CREATE SCHEMA x`},
		"read a neighbour":           {role, `SELECT * FROM authoring.drafts`},
		"write to a neighbour":       {role, `INSERT INTO authoring.drafts VALUES (1)`},
		"read an ungranted table":    {role, `SELECT * FROM public.t`},
		"become the owner":           {role, `SET ROLE hub`},
		"delete audit rows as owner": {owner, `DELETE FROM audit.calls`},
		"change audit rows as owner": {owner, `UPDATE audit.calls SET outcome = 'x'`},
		"empty audit log as owner":   {owner, `TRUNCATE audit.calls`},
	} {
		_, err := c.conn.Exec(t.Context(), c.sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	var rows int
	if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM audit.calls`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d audit rows, %v", rows, err)
	}
}

// TestLanguages: the store takes each language of the console, and no other.
func TestLanguages(t *testing.T) {
	t.Parallel()
	s := open(t, migrated(t).URL("auth"))
	u := auth.User{ID: "usr_1", Email: "ada@example.com", Name: "Ada", Roles: []string{}, CreatedBy: "test", CreatedAt: time.Now()}
	if err := s.AddUser(t.Context(), u, nil, entry()); err != nil {
		t.Fatal(err)
	}
	for _, l := range i18n.Languages {
		err := s.SetLanguage(t.Context(), u.ID, l.Code())
		kept, _, unread := s.UserByID(t.Context(), u.ID)
		if err != nil || unread != nil || kept.Language != l.Code() {
			t.Errorf("%s: %q, %v, %v", l.Code(), kept.Language, err, unread)
		}
	}
	if err := s.SetLanguage(t.Context(), u.ID, "xx"); err == nil {
		t.Error("a language that the console does not have was taken")
	}
	if err := s.SetLanguage(t.Context(), "usr_2", "ko"); err != nil {
		t.Errorf("of nobody: %v", err)
	}
}

// TestFindUsesTheIndex asks the server for the plan of the query that Verify runs, with and
// without knowledge of its parameters.
func TestFindUsesTheIndex(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	owner := connect(t, db.OwnerURL)
	_, err := owner.Exec(
		t.Context(),
		`INSERT INTO auth.api_keys (id, name, service, hash, pepper_id, head, tail, scopes, user_per_minute, user_burst, service_per_minute,
			service_burst, created_by, created_at)
		SELECT 'ak_' || n, 'n', 's', sha256(n::text::bytea), 'p', 'crm_abcd', 'wxyz', '{query}', 1, 1, 1, 1, 'ada', now()
			FROM generate_series(1, 5000) n; ANALYZE auth.api_keys`,
	)
	if err != nil {
		t.Fatal(err)
	}
	role := connect(t, db.URL("auth"))
	hash := sha256.Sum256([]byte("77"))
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := role.Exec(t.Context(), `SET plan_cache_mode = `+mode); err != nil {
			t.Fatal(err)
		}
		var plans []map[string]any
		var text []byte
		if err := role.QueryRow(
			t.Context(),
			`EXPLAIN (ANALYZE, FORMAT JSON) `+postgres.Find,
			[][]byte{hash[:], make([]byte, 32)},
		).Scan(
			&text,
		); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &plans); err != nil {
			t.Fatal(err)
		}
		if plan := string(
			text,
		); !strings.Contains(plan, `"Index Name": "api_keys_hash"`) || strings.Contains(plan, "Seq Scan") ||
			plans[0]["Plan"].(map[string]any)["Actual Rows"].(float64) != 1 {
			t.Errorf("%s: %s", mode, plan)
		}
	}
}

func TestHashesAreUnique(t *testing.T) {
	t.Parallel()
	s := open(t, migrated(t).URL("auth"))
	a, b := sealed(1), sealed(2)
	b.Hash = a.Hash
	if err := s.Add(t.Context(), a, entry()); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), b, entry()); err == nil {
		t.Error("two keys have one hash")
	}
}

func TestChangeIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := open(t, migrated(t).URL("auth"))
	a := sealed(1)
	if err := s.Add(t.Context(), a, entry()); err != nil {
		t.Fatal(err)
	}
	taken := sealed(2)
	taken.Hash, taken.RotatedFrom = a.Hash, a.ID // refused by the unique index
	err := s.Change(t.Context(), a.ID, func(k auth.Key) (auth.Change, error) {
		k.RotatedTo, k.RevokeReason = taken.ID, "x"
		return auth.Change{Key: k, Successor: &taken, Audit: entry()}, nil
	})
	if err == nil {
		t.Fatal("the change went through")
	}
	if k, err := s.Get(t.Context(), a.ID, entry()); err != nil || k.RotatedTo != "" || k.RevokeReason != "" {
		t.Errorf("%+v, %v", k, err)
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	s := open(t, migrated(t).URL("auth"))
	for _, id := range []string{"ak_none", "", "\x00", "\xff"} {
		if _, err := s.Get(t.Context(), id, entry()); !fault.Is(err, fault.NotFound) {
			t.Errorf("get %q: %v", id, err)
		}
	}
	if _, found, err := s.Find(t.Context(), nil); found || err != nil {
		t.Errorf("found a key without a hash: %v", err)
	}
}

// TestReadyNoticesAStoppedStore takes a server of its own.
func TestReadyNoticesAStoppedStore(t *testing.T) {
	t.Parallel()
	server := hubtest.NewPostgres(t)
	db := hubtest.WriteStoreOn(t, server)
	if err := postgres.Migrate(t.Context(), db.OwnerURL); err != nil {
		t.Fatal(err)
	}
	s := open(t, db.URL("auth"))
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	hubtest.Eventually(t, "not ready", func() bool { return fault.Is(s.Ready(t.Context()), fault.DB) })
	if _, _, err := s.Find(t.Context(), []auth.Hash{{}}); !fault.Is(err, fault.DB) {
		t.Errorf("find: %v", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "ready again", func() bool { return s.Ready(t.Context()) == nil })
}
