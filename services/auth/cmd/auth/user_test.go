package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/service"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/auth"
	"hub.internal/services/auth/postgres"
)

// signIn tries a password as the log-in page would.
func (x *terminal) signIn(t *testing.T, email, password string) error {
	t.Helper()
	store := postgres.New(hubtest.Pool(t, x.db.URL("auth")))
	people, err := auth.NewPeople(auth.PeopleConfig{Store: store, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, err = people.SignIn(t.Context(), email, password, auth.Browser{Address: "test"})
	return err
}

func (x *terminal) userJSON(t *testing.T, args ...string) userRecord {
	t.Helper()
	var r userRecord
	if err := json.Unmarshal([]byte(x.ok(t, append(args, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	x := newTerminal(t).with("HUB_KEY_PEPPER=") // no command on users needs it
	u := x.userJSON(t, "user", "add", "ada@example.com", "--name", "Ada Lovelace", "--roles", "admin, reviewer")
	if !strings.HasPrefix(u.ID, "usr_") || strings.Join(u.Roles, ",") != "reviewer,admin" || len(u.Password) != 24 || !u.HasPassword ||
		u.Status != "active" {
		t.Fatalf("%+v", u)
	}
	if err := x.signIn(t, "ADA@example.com", u.Password); err != nil {
		t.Error(err)
	}
	if _, errs, code := x.run(
		"user",
		"add",
		"Ada@Example.com",
		"--name",
		"x",
	); code != service.ExitFailed ||
		!strings.Contains(errs, "already") {
		t.Errorf("twice: %d %s", code, errs)
	}
	if _, errs, code := x.run(
		"user",
		"add",
		"nonsense",
		"--name",
		"x",
		"--roles",
		"root",
	); code != service.ExitUsage || !strings.Contains(errs, "unknown role") || !strings.Contains(errs, "e-mail") ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("nonsense: %d %s", code, errs)
	}
	next := x.userJSON(t, "user", "passwd", "ada@example.com")
	if next.Password == u.Password || x.signIn(t, "ada@example.com", u.Password) == nil ||
		x.signIn(t, "ada@example.com", next.Password) != nil {
		t.Error("the password did not change")
	}
	if r := x.userJSON(
		t,
		"user",
		"disable",
		"ada@example.com",
	); r.Status != "disabled" ||
		x.signIn(t, "ada@example.com", next.Password) == nil {
		t.Errorf("%+v", r)
	}
	if out := x.ok(
		t,
		"user",
		"enable",
		"ada@example.com",
	); !strings.Contains(out, "may sign in again") ||
		x.signIn(t, "ada@example.com", next.Password) != nil {
		t.Errorf("%s", out)
	}
	if r := x.userJSON(
		t,
		"user",
		"add",
		"sso@example.com",
		"--name",
		"S",
		"--no-password",
	); r.HasPassword || r.Password != "" ||
		x.signIn(t, "sso@example.com", "") == nil {
		t.Errorf("%+v", r)
	}
	out := x.ok(t, "user", "list")
	if !strings.Contains(out, "ada@example.com") || !strings.Contains(out, "sso@example.com") || strings.Contains(out, "argon2") {
		t.Errorf("%s", out)
	}
	if out := x.ok(t, "user", "list", "--json"); strings.Contains(out, "argon2") || strings.Contains(out, next.Password) {
		t.Errorf("%s", out)
	}
	if _, errs, code := x.run("user", "passwd", "nobody@example.com"); code != service.ExitFailed || !strings.Contains(errs, "no user") {
		t.Errorf("nobody: %d %s", code, errs)
	}
	if got := x.query(
		t,
		`SELECT string_agg(tool, ',' ORDER BY at, id) FROM audit.calls WHERE tool LIKE 'user.%' AND external_user_id <> ''`,
	); strings.Count(
		got,
		",",
	) != 4 {
		t.Errorf("audit: %s", got)
	}
}

func TestPasswordFromStandardInput(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	for input, want := range map[string]int{"a password of mine\nmore\n": service.ExitOK, "a password of mine": service.ExitOK,
		"": service.ExitFailed, "\n": service.ExitFailed, "short\n": service.ExitUsage} {
		var out, errs bytes.Buffer
		c := root(x.environ)
		c.SetArgs([]string{"user", "add", strings.ToLower(auth.Passphrase()) + "@example.com", "--name", "x", "--password-stdin"})
		c.SetIn(strings.NewReader(input))
		c.SetOut(&out)
		c.SetErr(&errs)
		if code := service.Execute(c); code != want || strings.Contains(out.String()+errs.String(), "password of mine") {
			t.Errorf("%q: exit %d, want %d; %s%s", input, code, want, &out, &errs)
		}
	}
}
