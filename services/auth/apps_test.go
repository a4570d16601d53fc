package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/tool"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/postgres"
)

var update = flag.Bool("update", false, "write the answers of the examples instead of comparing them")

// fleet is apps on a store of their own, with a clock.
type fleet struct {
	*apps.Service
	store *postgres.Store
	box   *seal.Box
	owner *pgx.Conn
	clock *hubtest.Clock
	ctx   context.Context
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	db := hubtest.MigratedStore(t, "auth", postgres.Migrate)
	f := &fleet{store: postgres.New(hubtest.Pool(t, db.URL("auth"))), clock: hubtest.NewClock(time.Now().UTC().Truncate(time.Millisecond))}
	keyset, err := seal.NewKeyset()
	if err == nil {
		f.box, err = seal.Open(keyset)
	}
	if err == nil {
		f.owner, err = pgx.Connect(t.Context(), db.OwnerURL)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.owner.Close(context.Background()) })
	f.Service = apps.New(apps.Config{Store: f.store, Sealer: f.box, Now: f.clock.Now})
	f.ctx = caller.With(
		t.Context(),
		caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: "ada@example.com", Email: "ada@example.com", HubUser: "usr_1"},
	)
	return f
}

// failing is a test, rapid's too.
type failing interface {
	Helper()
	Fatal(args ...any)
}

func (f *fleet) create(t failing, code string) apps.App {
	t.Helper()
	a, err := f.Create(
		f.ctx,
		code,
		apps.Settings{Name: "App " + code, RedirectURLs: []string{"https://" + code + ".example/back"}, Scopes: []string{"pay:read"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// opened is what the live secrets of an app are, by id, as who verifies its tokens will read them.
func (f *fleet) opened(t failing, code string) map[string]string {
	t.Helper()
	rows, err := f.owner.Query(context.Background(), `SELECT id, sealed FROM auth.app_secrets WHERE service_code = $1 AND sealed IS NOT NULL
		AND (expires_at IS NULL OR expires_at > $2)`, code, f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var id string
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &sealed}, func() error {
		text, err := f.box.Open(sealed, apps.Signing.SealName(apps.Secret{ID: id, Code: code}))
		found[id] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

// TestAppsLive lets an app go through random lives, and compares it with a model: what state it is in, and which
// secrets sign for it.
func TestAppsLive(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	lives := 0
	rapid.Check(t, func(rt *rapid.T) {
		lives++
		name := fmt.Sprint("app-", lives)
		status := f.create(rt, name).Status
		type held struct {
			text string
			end  *time.Time
		}
		secrets := map[string]held{}
		live := func() (ids []string) {
			for id, s := range secrets {
				if s.end == nil || f.clock.Now().Before(*s.end) {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			return ids
		}
		want := func(what string, err error, allowed bool) bool {
			if (err == nil) != allowed || err != nil && !fault.Is(err, fault.Conflict) {
				rt.Fatalf("%s of an app that is %s with %d secrets: %v", what, status, len(live()), err)
			}
			return err == nil
		}
		become := func(to apps.Status, do func() (apps.App, error)) func(*rapid.T) {
			return func(*rapid.T) {
				_, err := do()
				if want(string(to), err, status.May(to)) {
					status = to
					if to == apps.Revoked {
						clear(secrets)
					}
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"suspend": become(apps.Suspended, func() (apps.App, error) { return f.Suspend(f.ctx, name, "because") }),
			"resume":  become(apps.Active, func() (apps.App, error) { return f.Resume(f.ctx, name) }),
			"revoke": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "rarely") == 0 {
					become(apps.Revoked, func() (apps.App, error) { return f.Revoke(f.ctx, name, name, "because") })(rt)
				}
			},
			"issue": func(*rapid.T) {
				s, err := f.IssueSecret(f.ctx, name)
				if want("a first secret", err, status != apps.Revoked && len(live()) == 0) {
					secrets[s.ID] = held{s.Token.Reveal(), nil}
				}
			},
			"rotate": func(rt *rapid.T) {
				overlap := time.Duration(rapid.IntRange(0, 3).Draw(rt, "hours")) * time.Hour
				before := live()
				s, err := f.RotateSecret(f.ctx, name, overlap)
				if want("a rotation", err, status != apps.Revoked && len(before) == 1) {
					old := secrets[before[0]]
					if end := f.clock.Now().Add(overlap); old.end == nil || end.Before(*old.end) {
						old.end = &end
					}
					secrets[before[0]] = old
					secrets[s.ID] = held{s.Token.Reveal(), nil}
				}
			},
			"end one": func(rt *rapid.T) {
				if ids := live(); len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(rt, "secret")
					if _, err := f.RevokeSecret(f.ctx, name, id); err != nil {
						rt.Fatal(err)
					}
					delete(secrets, id)
				}
			},
			"time": func(rt *rapid.T) {
				f.clock.Advance(time.Duration(rapid.IntRange(1, 120).Draw(rt, "minutes")) * time.Minute)
			},
			"reap": func(rt *rapid.T) {
				if err := f.store.Reap(f.ctx, f.clock.Now().Add(-time.Hour), f.clock.Now()); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				a, err := f.Inspect(f.ctx, name)
				if err != nil || a.Status != status || a.HasSecret(f.clock.Now()) != (len(live()) > 0) || len(live()) > 2 {
					rt.Fatalf("%+v %v, want %s and %v", a, err, status, live())
				}
				opened := f.opened(rt, name)
				if len(opened) != len(live()) {
					rt.Fatalf("%d secrets open, want %v", len(opened), live())
				}
				for _, id := range live() {
					if opened[id] != secrets[id].text {
						rt.Fatalf("%s is another secret than was shown", id)
					}
				}
			},
		})
	})
}

func TestARevokedAppLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.create(t, "shop")
	f.create(t, "other")
	for _, c := range []string{"shop", "other"} {
		if _, err := f.IssueSecret(f.ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.owner.Exec(
		t.Context(),
		`INSERT INTO auth.users (id, email, name, roles, created_by, created_at) VALUES ('usr_1', 'a@b.example', 'A', '{}', 'x', now());
		INSERT INTO auth.identity_links SELECT 'l' || n, c, 'u' || n, 'usr_1', '{}', 1, s, now(), NULL, '', '' FROM (VALUES (1, 'shop',
			'ACTIVE'), (2, 'shop', 'ACTIVE'),
		(3, 'shop', 'PENDING'), (4, 'shop', 'REVOKED'), (5, 'other', 'ACTIVE')) v (n, c, s)`,
	)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := f.Inspect(f.ctx, "shop"); err != nil || a.Links != 2 {
		t.Errorf("%d links, %v", a.Links, err)
	}
	for typed, want := range map[string]fault.Code{"": fault.Validation, "Shop": fault.Validation, "other": fault.Validation} {
		if _, err := f.Revoke(f.ctx, "shop", typed, "over"); code(err) != want {
			t.Errorf("typed %q: %v", typed, err)
		}
	}
	if _, err := f.Revoke(f.ctx, "shop", "shop", ""); code(err) != fault.Validation {
		t.Errorf("no reason: %v", err)
	}
	if _, err := f.Revoke(f.ctx, "shop", "shop", "over"); err != nil {
		t.Fatal(err)
	}
	a, err := f.Inspect(f.ctx, "shop")
	if err != nil || a.Status != apps.Revoked || a.Reason != "over" || a.Links != 0 || len(a.Secrets) != 0 ||
		len(f.opened(t, "shop")) != 0 {
		t.Errorf("%+v %v", a, err)
	}
	if other, err := f.Inspect(f.ctx, "other"); err != nil || other.Links != 1 || len(f.opened(t, "other")) != 1 {
		t.Errorf("another app: %+v %v", other, err)
	}
	for what, err := range map[string]error{
		"edit":   second(f.Edit(f.ctx, "shop", a.Version, a.Settings)),
		"resume": second(f.Resume(f.ctx, "shop")),
		"issue":  second(f.IssueSecret(f.ctx, "shop")),
		"rotate": second(f.RotateSecret(f.ctx, "shop", 0)),
		"create": second(f.Create(f.ctx, "shop", a.Settings)),
	} {
		if code(err) != fault.Conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	var log string
	if err := f.owner.QueryRow(
		t.Context(),
		`SELECT string_agg(tool || ' ' || external_user_id, ',' ORDER BY at, tool) FROM audit.calls WHERE detail->>'service_code' = 'shop'`,
	).Scan(
		&log,
	); err != nil ||
		log != "app.create ada@example.com,app.issue_secret ada@example.com,app.revoke ada@example.com" {
		t.Errorf("audit log %s, %v", log, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNobodyUndoesWhatTheyHaveNotSeen(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a := f.create(t, "shop")
	mine, theirs := a.Settings, a.Settings
	mine.Name, theirs.Name = "Mine", "Theirs"
	if _, err := f.Edit(f.ctx, "shop", a.Version, theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Edit(f.ctx, "shop", a.Version, mine); code(err) != fault.Conflict {
		t.Errorf("%v", err)
	}
	if got, err := f.Inspect(f.ctx, "shop"); err != nil || got.Name != "Theirs" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestSealsAreBoundToTheirRows moves what is sealed to another row, as whoever can write to the store might.
func TestSealsAreBoundToTheirRows(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var issued []apps.Issued
	for _, c := range []string{"shop", "other"} {
		f.create(t, c)
		s, err := f.IssueSecret(f.ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		issued = append(issued, s)
	}
	var sealed []byte
	var everything string
	if err := f.owner.QueryRow(
		t.Context(),
		`SELECT sealed, (SELECT string_agg(s::text, '') FROM auth.app_secrets s) || (SELECT string_agg(c::text, '') FROM audit.calls c)
		FROM auth.app_secrets WHERE id = $1`,
		issued[0].ID,
	).Scan(
		&sealed,
		&everything,
	); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(everything, issued[0].Token.Reveal()[4:20]) {
		t.Error("the store holds the secret")
	}
	for _, row := range []apps.Secret{issued[1].Secret, {ID: issued[0].ID, Code: "other"}, {ID: issued[1].ID, Code: "shop"}} {
		if text, err := f.box.Open(sealed, apps.Signing.SealName(row)); err == nil {
			t.Errorf("opens as %+v: %s", row, text)
		}
	}
}

func TestWithoutAKeysetNoSecretIsIssued(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.create(t, "shop")
	bare := apps.New(apps.Config{Store: f.store, Now: f.clock.Now})
	if _, err := bare.IssueSecret(f.ctx, "shop"); code(err) != fault.Conflict || !strings.Contains(err.Error(), "HUB_SECRETS_KEYSET") {
		t.Errorf("%v", err)
	}
	if _, err := bare.Suspend(f.ctx, "shop", "x"); err != nil {
		t.Error(err)
	}
}

// TestExamples executes each example of each tool on a fresh store.
func TestExamples(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.clock.Advance(time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC).Sub(f.clock.Now()))
	// The audit log has no partition for that day, so the rows are the owner's.
	for _, sql := range []string{
		`INSERT INTO auth.users (id, email, name, roles, created_by, created_at) VALUES ('usr_1', 'a@b.example', 'A', '{}', 'x', now())`,
		`INSERT INTO auth.connected_apps SELECT code, name, status, '', redirects, origins, scopes, 'consent', 120, 60, 1200, 300, 1, 'ada',
			'2026-01-15T09:00:00Z', '2026-01-15T09:00:00Z'
			FROM (VALUES ('shop', 'The shop', 'ACTIVE', ARRAY['https://shop.example/back'], ARRAY['https://shop.example'], ARRAY['pay:read',
				'pay:write']),
			('tickets', 'Tickets', 'SUSPENDED', '{}', '{}', ARRAY['pay:read'])) v (code, name, status, redirects, origins, scopes)`,
		`INSERT INTO auth.app_secrets VALUES ('s_1', 'shop', '\x00', 'ada', '2026-01-15T09:00:00Z', NULL, NULL)`,
		`INSERT INTO auth.identity_links SELECT 'l' || n, 'shop', 'u' || n, 'usr_1', '{}', 1, 'ACTIVE', now(), NULL, '', '' ` +
			`FROM generate_series(1, 3) n`,
	} {
		if _, err := f.owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	tools := auth.Tools(f.Service)
	for _, declared := range tools {
		spec := declared.Spec
		var output jsonschema.Schema
		if err := json.Unmarshal(spec.Output, &output); err != nil {
			t.Fatal(err)
		}
		resolved, err := output.Resolve(nil)
		if err != nil || len(spec.Examples) == 0 {
			t.Fatalf("%s: %v", spec.Name, err)
		}
		for i, e := range spec.Examples {
			answer, err := declared.Endpoint(f.ctx, &tool.Call{Tool: spec.Name, Input: e.Request})
			if err != nil {
				t.Fatalf("%s: %v", spec.Name, err)
			}
			data, count := answer.(*tool.Result).Data, answer.(*tool.Result).Count
			var value any
			if err := errors.Join(json.Unmarshal(data, &value), resolved.Validate(value)); err != nil {
				t.Errorf("%s: %v in %s", spec.Name, err, data)
			}
			var want bytes.Buffer
			if err := json.Compact(&want, e.Data); err != nil {
				t.Fatal(err)
			}
			if spec.Examples[i].Data, spec.Examples[i].Count = data, count; !*update &&
				(want.String() != string(data) || count != e.Count) {
				t.Errorf(
					"%s: %s: got %d %s\nwant %d %s\n(go test -run TestExamples -update writes the answers)",
					spec.Name,
					e.Title,
					count,
					data,
					e.Count,
					&want,
				)
			}
		}
		if *update {
			b, err := json.MarshalIndent(spec.Examples, "", "  ")
			if err == nil {
				err = os.WriteFile(filepath.Join("examples", spec.Name+".json"), append(b, '\n'), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for body, want := range map[string]fault.Code{`{"service_code":"nobody"}`: fault.NotFound,
		`{"service_code":"a\u0000b"}`: fault.NotFound, `{"service_code":""}`: fault.Validation, `{}`: fault.Validation,
		`{"service_code":"` + strings.Repeat("x", 41) + `"}`: fault.Validation} {
		if _, err := tools[1].Endpoint(f.ctx, &tool.Call{Input: []byte(body)}); code(err) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, list := range []string{`{"limit":0}`, `{"limit":501}`, `{"status":"gone"}`, `{"offset":1}`} {
		if _, err := tools[0].Endpoint(f.ctx, &tool.Call{Input: []byte(list)}); code(err) != fault.Validation {
			t.Errorf("%s: %v", list, err)
		}
	}
	if one, err := tools[0].Endpoint(f.ctx, &tool.Call{Input: []byte(`{"limit":1}`)}); err != nil || one.(*tool.Result).Count != 1 {
		t.Errorf("%+v %v", one, err)
	}
}
