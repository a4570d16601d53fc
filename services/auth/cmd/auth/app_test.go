package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/service"

	"hub.internal/pkg/seal"
	"hub.internal/services/auth/apps"
)

var (
	secretForm  = regexp.MustCompile(`hss_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}`)
	webhookForm = regexp.MustCompile(`whsec_[A-Za-z0-9+/]{43}=`)
)

func parsed[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestAppCommands(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	x = x.with("HUB_KEY_PEPPER=", "HUB_SECRETS_KEYSET="+strings.TrimSpace(x.ok(t, "keyset", "new")))
	a := parsed[appRecord](
		t,
		x.ok(
			t,
			"app",
			"put",
			"shop",
			"--name",
			"The shop",
			"--redirect-url",
			"https://shop.example/back",
			"--redirect-url",
			"http://localhost:3000/back",
			"--origin",
			"https://shop.example",
			"--scopes",
			"pay:write,pay:read",
			"--user-burst",
			"7",
			"--actor",
			"ada",
			"--json",
		),
	)
	if a.Code != "shop" || a.Status != apps.Active || len(a.RedirectURLs) != 2 || strings.Join(a.Scopes, ",") != "pay:read,pay:write" ||
		a.Limits.UserBurst != 7 ||
		a.HasSecret ||
		*a.Links != 0 ||
		a.CreatedBy != "ada" {
		t.Errorf("%+v", a)
	}
	a = parsed[appRecord](t, x.ok(t, "app", "put", "shop", "--scopes", "pay:read", "--origin", "", "--json"))
	if a.Name != "The shop" || len(a.RedirectURLs) != 2 || len(a.Origins) != 0 || strings.Join(a.Scopes, ",") != "pay:read" ||
		a.Limits.UserBurst != 7 {
		t.Errorf("what was not named has changed: %+v", a)
	}
	out := x.ok(t, "app", "issue-secret", "shop")
	first := secretForm.FindString(out)
	if first == "" || !strings.Contains(out, "not shown again") {
		t.Fatalf("%s", out)
	}
	webhook := webhookForm.FindString(out)
	if webhook == "" {
		t.Fatalf("no webhook secret: %s", out)
	}
	rotated := parsed[secretRecord](t, x.ok(t, "app", "rotate-webhook-secret", "shop", "--json"))
	if !webhookForm.MatchString(rotated.Secret) || rotated.Secret == webhook || rotated.Old == nil || rotated.Old.ExpiresAt == nil ||
		!strings.HasPrefix(rotated.ID, "w_") {
		t.Errorf("%+v", rotated)
	}
	next := parsed[secretRecord](t, x.ok(t, "app", "rotate-secret", "shop", "--overlap", "7d", "--json"))
	if !secretForm.MatchString(next.Secret) || next.Secret == first || next.Old == nil || next.Old.ExpiresAt == nil ||
		next.ExpiresAt != nil {
		t.Errorf("%+v", next)
	}
	if out := x.ok(t, "app", "revoke-secret", "shop", next.Old.ID); !strings.Contains(out, "is destroyed") {
		t.Errorf("%s", out)
	}
	if out := x.ok(
		t,
		"app",
		"suspend",
		"shop",
		"--reason",
		"complaints",
	); !strings.Contains(out, "SUSPENDED: complaints") || !strings.Contains(out, next.ID) || !strings.Contains(out, rotated.ID) ||
		strings.Contains(out, "whsec_") {
		t.Errorf("%s", out)
	}
	resumed := x.ok(t, "app", "resume", "shop", "--json")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"app", "suspend", "shop"}, service.ExitUsage, "reason"},
		{[]string{"app", "resume", "shop"}, service.ExitFailed, "cannot become"},
		{[]string{"app", "put", "nobody"}, service.ExitUsage, "name"},
		{[]string{"app", "create", "shop", "--name", "Another"}, service.ExitFailed, "shop"},
		{[]string{"app", "edit", "nobody", "--name", "Nobody"}, service.ExitFailed, "nobody"},
		{[]string{"app", "issue-secret", "shop"}, service.ExitFailed, "Rotate it"},
		{[]string{"app", "rotate-webhook-secret", "shop"}, service.ExitFailed, "two secrets"},
		{[]string{"app", "put", "Shop", "--name", "x", "--redirect-url", "http://x"}, service.ExitUsage, "service_code"},
		{[]string{"app", "rotate-secret", "shop", "--overlap", "31d"}, service.ExitUsage, "overlap"},
	} {
		if _, errs, code := x.run(c.args...); code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
	list := x.ok(t, "app", "list")
	if !strings.Contains(list, "ACTIVE") {
		t.Errorf("%s", list)
	}
	everything := list + x.ok(
		t,
		"app",
		"list",
		"--json",
	) + resumed + x.query(
		t,
		`SELECT string_agg(s::text, ' ') FROM auth.app_secrets s`,
	) + x.query(
		t,
		`SELECT string_agg(s::text, ' ') FROM auth.app_webhook_secrets s`,
	) + x.query(
		t,
		`SELECT string_agg(c::text, ' ') FROM audit.calls c`,
	)
	for _, secret := range []string{first, next.Secret, webhook, rotated.Secret} {
		if strings.Contains(everything, secret[8:40]) {
			t.Errorf("a secret shows again: %s", everything)
		}
	}
	if got := x.query(
		t,
		`SELECT string_agg(tool, ',' ORDER BY at, id) FROM audit.calls WHERE tool LIKE 'app.%' AND service = 'auth-cli' `+
			`AND external_user_id <> ''`,
	); got != "app.create,app.edit,app.issue_secret,app.rotate_webhook_secret,app.rotate_secret,app.revoke_secret,app.suspend,app.resume" {
		t.Errorf("audit: %s", got)
	}
}

func TestKeysets(t *testing.T) {
	t.Parallel()
	x := &terminal{}
	first := strings.TrimSpace(x.ok(t, "keyset", "new"))
	second := strings.TrimSpace(x.with("HUB_SECRETS_KEYSET="+first).ok(t, "keyset", "add"))
	third := strings.TrimSpace(x.with("HUB_SECRETS_KEYSET="+second).ok(t, "keyset", "promote"))
	for _, keyset := range []string{first, second, third} {
		if _, err := seal.Open(keyset); err != nil {
			t.Error(err)
		}
	}
	if first == second || second == third || first == strings.TrimSpace(x.ok(t, "keyset", "new")) {
		t.Error("two keysets are one")
	}
	for _, bad := range []string{"", "hunter2"} {
		if out, errs, code := x.with(
			"HUB_SECRETS_KEYSET="+bad,
		).run(
			"keyset",
			"add",
		); code != service.ExitFailed || out != "" || !strings.Contains(errs, "HUB_SECRETS_KEYSET") ||
			strings.Contains(errs, "hunter2") {
			t.Errorf("%q: exit %d: %s%s", bad, code, out, errs)
		}
	}
}
