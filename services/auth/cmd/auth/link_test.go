package main

import (
	"strings"
	"testing"

	"hub.internal/pkg/service"
)

func TestLinkCommands(t *testing.T) {
	t.Parallel()
	x := newTerminal(t).with("HUB_KEY_PEPPER=") // no command on links needs it
	x.ok(t, "app", "put", "shop", "--name", "The shop", "--scopes", "pay:read,pay:write", "--link-mode", "confirm")
	x.ok(t, "user", "add", "ada@example.com", "--name", "Ada", "--no-password")
	x.ok(t, "user", "add", "bob@example.com", "--name", "Bob", "--no-password")
	add := []string{"link", "add", "--app", "shop", "--external-user", "u-77", "--user", "ADA@example.com", "--scopes"}
	first := parsed[linkRecord](t, x.ok(t, append(add, "pay:read", "--json")...))
	if !strings.HasPrefix(first.ID, "lnk_") || first.Status != "ACTIVE" || strings.Join(first.Scopes, ",") != "pay:read" ||
		!strings.HasPrefix(first.HubUser, "usr_") {
		t.Errorf("%+v", first)
	}
	for range 2 { // as a stack that is started again does
		if again := parsed[linkRecord](
			t,
			x.ok(t, append(add, "pay:write,pay:read", "--json")...),
		); again.ID != first.ID || len(again.Scopes) != 2 ||
			again.Version != 2 {
			t.Errorf("%+v", again)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"link", "add", "--app", "shop", "--external-user", "u-77", "--user", "bob@example.com"}, service.ExitFailed,
			"linked to another Hub account"},
		{append(add, "pay:refund"), service.ExitUsage, "pay:refund"},
		{[]string{"link", "add", "--app", "nobody", "--external-user", "u-77", "--user", "ada@example.com"}, service.ExitFailed, "no app"},
		{[]string{"link", "add", "--app", "shop", "--external-user", "u-77", "--user", "eve@example.com"}, service.ExitFailed, "no user"},
		{[]string{"link", "add", "--app", "shop", "--external-user", "", "--user", "ada@example.com"}, service.ExitUsage, "external_user"},
		{[]string{"link", "add", "--app", "shop"}, service.ExitUsage, "external-user"},
		{[]string{"link", "revoke", "lnk_x"}, service.ExitFailed, "no such link"},
		{[]string{"link", "list", "--user", "eve@example.com"}, service.ExitFailed, "no user"},
	} {
		if _, errs, code := x.run(c.args...); code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
	if out := x.ok(
		t,
		"link",
		"list",
		"--app",
		"shop",
		"--user",
		"ada@example.com",
	); !strings.Contains(out, first.ID) ||
		!strings.Contains(out, "pay:read,pay:write") {
		t.Errorf("%s", out)
	}
	x.ok(t, "link", "revoke", first.ID)
	if out := x.ok(t, "link", "list", "--json"); strings.Contains(out, first.ID) || !strings.Contains(out, `"links": []`) {
		t.Errorf("%s", out)
	}
	if got := x.query(
		t,
		`SELECT string_agg(tool, ',' ORDER BY at, id) FROM audit.calls WHERE tool LIKE 'link.%' AND service = 'auth-cli'`,
	); got != "link.add,link.add,link.revoke" {
		t.Errorf("audit: %s", got)
	}
}
