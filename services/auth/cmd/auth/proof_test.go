package main

import (
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

const otherPepper = "another pepper that only tests know 0123456789"

// TestServeStopsWithASecretThatIsNotTheStores: a pepper or keyset that opens nothing of what is there ends the start with a line that
// names it, and the doctor says the same; one that opens a part of it is told in the log, and an empty store takes any.
func TestServeStopsWithASecretThatIsNotTheStores(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	keyset, other := strings.TrimSpace(x.ok(t, "keyset", "new")), strings.TrimSpace(x.ok(t, "keyset", "new"))
	own := x.with("HUB_SECRETS_KEYSET=" + keyset)
	own.issue(t)
	own.ok(t, "app", "put", "shop", "--name", "The shop", "--redirect-url", "https://shop.example/back", "--scopes", "pay:read")
	own.ok(t, "app", "issue-secret", "shop")
	changed := strings.TrimSpace(own.ok(t, "keyset", "add"))
	changed = strings.TrimSpace(own.with("HUB_SECRETS_KEYSET="+changed).ok(t, "keyset", "promote"))
	starts := func(t *testing.T, x *terminal, warning string, environ ...string) {
		t.Helper()
		p := x.serve(t, environ...)
		p.Ready(t)
		hubtest.Eventually(t, "the log has "+warning, func() bool { return strings.Contains(p.Log.String(), warning) })
		if code := p.Stop(t); code != 0 || warning == "" && strings.Contains(p.Log.String(), "WARN") {
			t.Errorf("exit %d, with a warning: %s", code, p.Log)
		}
	}
	for name, c := range map[string]struct {
		environ []string
		setting string // that is wrong; "" for none
	}{
		"as it was":          {nil, ""},
		"a new pepper":       {[]string{"HUB_KEY_PEPPER=" + otherPepper, "HUB_KEY_PEPPER_PREVIOUS=" + pepper}, ""},
		"a new key":          {[]string{"HUB_SECRETS_KEYSET=" + changed}, ""},
		"another pepper":     {[]string{"HUB_KEY_PEPPER=" + otherPepper}, "HUB_KEY_PEPPER"},
		"another keyset":     {[]string{"HUB_SECRETS_KEYSET=" + other}, "HUB_SECRETS_KEYSET"},
		"no keyset any more": {[]string{"HUB_SECRETS_KEYSET="}, "HUB_SECRETS_KEYSET"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.setting == "" {
				starts(t, own, "", c.environ...)
				return
			}
			p := own.serve(t, c.environ...)
			code, line := p.Wait(t), "configuration: "+c.setting+": it "
			before := strings.Contains(p.Log.String(), "auth: "+line) && !strings.Contains(p.Log.String(), "serving")
			later := strings.Contains(p.Log.String(), "auth: proof: "+line) // a store that took two seconds to answer was asked again
			if code != 1 || !before && !later {
				t.Errorf("exit %d: %s", code, p.Log)
			}
			d := hubtest.Launch(t, slices.Concat(own.environ, callertest.Environ("auth", "auth", caller.Gateway), c.environ), "doctor")
			if code := d.Wait(t); code != 1 || strings.Count(d.Out.String(), ": "+c.setting+": it ") != 1 {
				t.Errorf("the doctor: exit %d: %s", code, d.Out)
			}
		})
	}
	// A part of what is there belongs to others.
	own.with("HUB_KEY_PEPPER=" + otherPepper).issue(t)
	own.with("HUB_SECRETS_KEYSET="+other).ok(t, "app", "rotate-secret", "shop")
	starts(t, own, `"keys":1`)
	starts(t, own, `"secrets":1,"tried":3`)
	empty := newTerminal(t)
	starts(t, empty, "", "HUB_KEY_PEPPER="+otherPepper, "HUB_SECRETS_KEYSET="+other)
}

// TestTheDoctorMissesThePageForLinks: where there is an app and no HUB_PUBLIC_URL, a line names the setting and what does not work.
func TestTheDoctorMissesThePageForLinks(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	asks := func(code int, line string, environ ...string) {
		t.Helper()
		d := hubtest.Launch(t, slices.Concat(x.environ, callertest.Environ("auth", "auth", caller.Gateway), environ), "doctor")
		if got := d.Wait(t); got != code || !strings.Contains(d.Out.String(), line) {
			t.Errorf("exit %d: %s", got, d.Out)
		}
	}
	asks(0, "ok     page for links\n")
	x.ok(t, "app", "put", "shop", "--name", "The shop", "--redirect-url", "https://shop.example/back", "--scopes", "pay:read")
	asks(1, "wrong  page for links: HUB_PUBLIC_URL: it is not set; calls of apps for users without a link are E_INTERNAL")
	asks(0, "ok     page for links\n", "HUB_PUBLIC_URL=https://hub.example.com")
}
