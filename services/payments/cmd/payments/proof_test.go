package main

import (
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

// TestServeStopsWithAKeysetThatIsNotTheStores: one that opens no active credential ends the start with a line that names it, and the
// doctor says the same; of one that opens some of those that verify webhooks the doctor says how many it does not open.
func TestServeStopsWithAKeysetThatIsNotTheStores(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	keyset, other := strings.TrimSpace(x.ok(t, "", "keyring", "new")), strings.TrimSpace(x.ok(t, "", "keyring", "new"))
	own := x.with("HUB_SECRETS_KEYSET=" + keyset)
	own.ok(t, secret+"\n", "credential", "add", "--env", "sandbox", "--client-id", clientID)
	added := strings.TrimSpace(own.ok(t, "", "keyring", "add"))
	promoted := strings.TrimSpace(own.with("HUB_SECRETS_KEYSET="+added).ok(t, "", "keyring", "promote"))
	launch := func(keyset, command string) *hubtest.Program {
		return hubtest.Launch(
			t,
			slices.Concat(x.environ, callertest.Environ("payments", "payments", "auth", caller.Gateway), []string{
				"HUB_SECRETS_KEYSET=" + keyset,
				"HUB_ADDR=127.0.0.1:0",
				"HUB_OPS_ADDR=127.0.0.1:0",
				"HUB_STATIC=auth=127.0.0.1:1",
				"HUB_PUBLIC_URL=https://hub.example",
				"HUB_PAY_ENV=sandbox",
			}),
			command,
		)
	}
	for _, keyset := range []string{keyset, added, promoted} {
		p := launch(keyset, "serve")
		p.Ready(t)
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit %d: %s", code, p.Log)
		}
	}
	p := launch(other, "serve")
	if code := p.Wait(
		t,
	); code != 1 ||
		!strings.Contains(p.Log.String(), "payments: configuration: HUB_SECRETS_KEYSET: it opens none of the 1 active credentials") {
		t.Errorf("exit %d: %s", code, p.Log)
	}
	d := launch(other, "doctor")
	if code := d.Wait(t); code != 1 || !strings.Contains(d.Out.String(), "wrong  credentials: HUB_SECRETS_KEYSET: it opens none") {
		t.Errorf("the doctor: exit %d: %s", code, d.Out)
	}
	// One that does not open beside one that does stops no start, and the doctor tells what it costs.
	x.with("HUB_SECRETS_KEYSET="+other).ok(t, secret+"\n", "credential", "add", "--env", "production", "--client-id", clientID)
	p = launch(keyset, "serve")
	p.Ready(t)
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit %d: %s", code, p.Log)
	}
	d = launch(keyset, "doctor")
	if code := d.Wait(t); code != 1 || !strings.Contains(d.Out.String(), "ok     credentials\n") ||
		!strings.Contains(d.Out.String(), "wrong  webhooks: HUB_SECRETS_KEYSET: it does not open 1 of the 2 credentials that verify webhooks") {
		t.Errorf("the doctor: exit %d: %s", code, d.Out)
	}
}
