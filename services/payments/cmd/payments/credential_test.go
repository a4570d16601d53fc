package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/service"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/seal"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

// terminal runs commands on a store of its own.
type terminal struct {
	db      hubtest.WriteStoreDB
	environ []string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	db := hubtest.WriteStore(t)
	x := &terminal{db, []string{"HUB_WRITE_STORE_URL=" + db.URL("payments"), "HUB_MIGRATE_URL=" + db.OwnerURL}}
	x.ok(t, "", "migrate")
	return x
}

func (x *terminal) with(environ ...string) *terminal {
	return &terminal{x.db, append(slices.Clone(x.environ), environ...)}
}

// run returns what a command printed and its exit code; typed is its standard input.
func (x *terminal) run(typed string, args ...string) (out, errs string, code int) {
	var stdout, stderr bytes.Buffer
	c := root(x.environ)
	c.SetArgs(args)
	c.SetIn(strings.NewReader(typed))
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	code = service.Execute(c)
	return stdout.String(), stderr.String(), code
}

func (x *terminal) ok(t *testing.T, typed string, args ...string) string {
	t.Helper()
	out, errs, code := x.run(typed, args...)
	if code != service.ExitOK {
		t.Fatalf("payments %s: exit %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

func parsed[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

const (
	clientID = "S2_af4543a0be4d49a98122e01ec2059a56"
	secret   = "9eb85607103646da9f9c02b128f2e5ee"
)

func TestCredentialCommands(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	keyset := strings.TrimSpace(x.ok(t, "", "keyring", "new"))
	x = x.with("HUB_SECRETS_KEYSET=" + keyset)
	first := parsed[credentialRecord](
		t,
		x.ok(t, secret+"\n", "credential", "add", "--env", "sandbox", "--client-id", clientID, "--actor", "ada", "--json"),
	)
	if first.ID != "1" || first.Provider != "nicepay" || first.Env != "sandbox" || first.ClientID != "S2_a****9a56" || !first.Active ||
		first.CreatedBy != "ada" {
		t.Errorf("%+v", first)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("another-"+secret+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := x.ok(t, "", "credential", "rotate", "1", "--client-id", "S2_another_client_id", "--secret-file", file)
	if said != "2 (nicepay sandbox, client id S2_a****t_id) replaces 1.\n" {
		t.Errorf("%s", said)
	}
	for _, c := range []struct {
		typed string
		args  []string
		code  int
		want  string
	}{
		{secret, []string{"credential", "add", "--env", "sandbox", "--client-id", clientID}, service.ExitFailed, "already"},
		{secret, []string{"credential", "add", "--env", "live", "--client-id", clientID}, service.ExitUsage, "env must be one of"},
		{secret, []string{"credential", "add", "--client-id", clientID}, service.ExitUsage, "env"},
		{"", []string{"credential", "add", "--env", "production", "--client-id", clientID}, service.ExitUsage, "secret must be"},
		{secret + "\nmore", []string{"credential", "add", "--env", "production", "--client-id", clientID}, service.ExitUsage, "secret must be"},
		{"", []string{"credential", "add", "--env", "production", "--client-id", clientID, "--secret-file", file + "x"}, service.ExitFailed,
			"--secret-file"},
		{secret, []string{"credential", "rotate", "1", "--client-id", clientID}, service.ExitFailed, "already"},
		{secret, []string{"credential", "rotate", "x", "--client-id", clientID}, service.ExitFailed, "no credential"},
		{"", []string{"credential", "activate", "1"}, service.ExitFailed, "active credential"},
		{"", []string{"credential", "deactivate", "2"}, service.ExitUsage, "confirm"},
		{"", []string{"credential", "deactivate", "2", "--confirm", "sandbox"}, service.ExitUsage, "nicepay sandbox"},
		{"", []string{"credential", "deactivate", "9", "--confirm", "nicepay sandbox"}, service.ExitFailed, "no credential"},
		{secret, []string{"credential", "add", "--env", "sandbox", "--client-id", clientID, "--secret", secret}, service.ExitUsage,
			"unknown flag"},
	} {
		if _, errs, code := x.run(
			c.typed,
			c.args...); code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 ||
			strings.Contains(errs, secret[:12]) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
	if _, errs, code := x.with(
		"HUB_SECRETS_KEYSET=",
	).run(
		secret,
		"credential",
		"add",
		"--env",
		"production",
		"--client-id",
		clientID,
	); code != service.ExitFailed ||
		!strings.Contains(errs, "HUB_SECRETS_KEYSET") {
		t.Errorf("no keyset: %d %s", code, errs)
	}
	x.ok(t, "", "credential", "deactivate", "2", "--confirm", "nicepay sandbox")
	x.ok(t, "", "credential", "activate", "1")
	list := x.ok(t, "", "credential", "list") + x.ok(t, "", "credential", "list", "--json")
	if !strings.Contains(list, "S2_a****9a56") || strings.Count(list, "sandbox") != 4 {
		t.Errorf("%s", list)
	}
	added := strings.TrimSpace(x.ok(t, "", "keyring", "add"))
	if said := x.with("HUB_SECRETS_KEYSET="+added).ok(t, "", "keyring", "reseal"); said != "2 credentials are sealed again.\n" {
		t.Errorf("%s", said)
	}
	x.ok(t, "", "keyring", "reseal") // still opens
	rotated := strings.TrimSpace(x.with("HUB_SECRETS_KEYSET="+added).ok(t, "", "keyring", "promote"))
	if _, err := seal.Open(rotated); err != nil || rotated == keyset {
		t.Errorf("%v", err)
	}
	if said := x.with("HUB_SECRETS_KEYSET="+rotated).ok(t, "", "keyring", "reseal"); said != "2 credentials are sealed again.\n" {
		t.Errorf("%s", said)
	}
	if _, _, code := x.run("", "keyring", "reseal"); code != service.ExitFailed {
		t.Error("the old keyset opens what was sealed again")
	}
	for _, bad := range []string{"", "hunter2"} {
		if out, errs, code := x.with(
			"HUB_SECRETS_KEYSET="+bad,
		).run(
			"",
			"keyring",
			"add",
		); code != service.ExitFailed || out != "" || !strings.Contains(errs, "HUB_SECRETS_KEYSET") ||
			strings.Contains(errs, "hunter2") {
			t.Errorf("%q: exit %d: %s%s", bad, code, out, errs)
		}
	}
	conn, err := pgx.Connect(t.Context(), x.db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var audited, rows string
	if err := conn.QueryRow(
		t.Context(),
		`SELECT string_agg(tool, ',' ORDER BY tool), string_agg(c::text, '') || (SELECT string_agg(p::text, '') FROM payments.credentials p)
		FROM audit.calls c WHERE service = 'payments-cli' AND external_user_id <> ''`,
	).Scan(
		&audited,
		&rows,
	); err != nil ||
		audited != "credential.activate,credential.add,credential.deactivate,credential.rekey,credential.rekey,credential.rekey,"+
			"credential.rotate" {
		t.Errorf("audit: %s, %v", audited, err)
	}
	for _, part := range []string{secret[:12], clientID[4:20]} {
		if strings.Contains(list+rows, part) {
			t.Errorf("%s shows", part)
		}
	}
}
