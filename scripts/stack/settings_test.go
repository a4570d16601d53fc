package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localstack"
)

// three are enough to see how services are told of one another.
func three() inventory.Inventory { return pick("gateway", "auth", "query") }

func pick(names ...string) inventory.Inventory {
	list, err := inventory.Load(filepath.Join("..", ".."))
	if err == nil {
		list, err = list.Pick(names...)
	}
	if err != nil {
		panic(err)
	}
	return list
}

func testEnvironment(variables map[string]string) environment {
	st := &state{
		Secrets: map[string]string{},
		Signing: map[string]signingKey{},
		Ports:   map[string]int{},
		Keys:    map[string]localstack.APIKey{},
	}
	e := environment{layout: layout{"/repo"}, state: st, options: upOptions{source: sampleMariaDB, discovery: "static"},
		services: three(), caller: variables}
	if err := st.choosePorts(portNames(e), func(int) bool { return true }); err != nil {
		panic(err)
	}
	return e
}

func TestSettingsOfServices(t *testing.T) {
	e := testEnvironment(nil)
	gateway, auth, query := e.settings(e.services[0]), e.settings(e.services[1]), e.settings(e.services[2])
	for _, c := range []struct{ what, got, want string }{
		{"gateway's address", gateway["HUB_ADDR"], "127.0.0.1:8080"},
		{"gateway's catalog", gateway["HUB_CATALOG"], "/repo/deploy/catalog.json"},
		{"the list of neighbours", gateway["HUB_STATIC"], "auth=" + auth["HUB_ADDR"] + ",query=" + query["HUB_ADDR"]},
		{"whom they believe", auth["HUB_TRUSTED_KEYS"], query["HUB_TRUSTED_KEYS"]},
		{"gateway's own name", gateway["HUB_PUBLIC_URL"], "http://127.0.0.1:8080"},
		{"gateway's pepper", gateway["HUB_KEY_PEPPER"], ""},
		{"auth's source", auth["HUB_SOURCE_DSN"], ""},
		{"gateway's URL", e.gatewayURL(), "http://127.0.0.1:8080"},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.what, c.got, c.want)
		}
	}
	if auth["HUB_SIGNING_KEY"] == query["HUB_SIGNING_KEY"] || strings.Count(query["HUB_TRUSTED_KEYS"], "=MCow") != 3 {
		t.Errorf("query believes %s", query["HUB_TRUSTED_KEYS"])
	}
	for i, env := range []map[string]string{gateway, auth, query} {
		var signing caller.SigningKey
		var trusted caller.TrustedKeys
		if err := errors.Join(
			signing.UnmarshalText([]byte(env["HUB_SIGNING_KEY"])),
			trusted.UnmarshalText([]byte(env["HUB_TRUSTED_KEYS"])),
		); err != nil {
			t.Fatal(err)
		}
		if _, err := caller.NewKeys(e.services[i].Name, signing, trusted, time.Now); err != nil {
			t.Error(err)
		}
	}
	if url := query["HUB_WRITE_STORE_URL"]; !strings.HasPrefix(url, "postgres://hub_query:") {
		t.Errorf("query's store URL = %s: not its own role", url)
	}
	if key := auth["HUB_KEY_PEPPER"]; len(key) < 32 {
		t.Errorf("pepper %q is too short", key)
	}
}

func TestMailGoesToTheSinkUnlessTheCallerNamesAServer(t *testing.T) {
	row := service{Name: "query", Needs: []string{inventory.Mail, inventory.Links}}
	e := testEnvironment(nil)
	env := e.settings(row)
	if env["HUB_SMTP_ADDR"] != e.state.addr(mailSink+"-smtp") || env["HUB_SMTP_TLS"] != "none" ||
		env["HUB_PUBLIC_URL"] != "http://127.0.0.1:8080" ||
		env["HUB_MAIL_FROM"] == "" {
		t.Errorf("%v", env)
	}
	if e.settings(e.services[1])["HUB_SMTP_ADDR"] != "" || devEnv(e)["HUB_MAIL_DIR"] != "/repo/.hub/mail" {
		t.Error("auth is told of mail, or the shell is not")
	}
	env = testEnvironment(
		map[string]string{"HUB_SMTP_ADDR": "mx.example:587", "HUB_MAIL_FROM": "me@my.example", "HUB_MAIL_DIR": "stale"},
	).settings(
		row,
	)
	if env["HUB_SMTP_ADDR"] != "mx.example:587" || env["HUB_SMTP_TLS"] != "" || env["HUB_MAIL_FROM"] != "me@my.example" ||
		env["HUB_MAIL_DIR"] != "" {
		t.Errorf("%v", env)
	}
}

// TestPaymentsAreSimulated: payments finds the simulated provider, unless the caller names another one, and no service has
// the keyset of another.
func TestPaymentsAreSimulated(t *testing.T) {
	withPayments := func(variables map[string]string) (environment, map[string]string) {
		e := testEnvironment(variables)
		e.services = pick("gateway", "auth", "payments")
		if err := e.state.choosePorts(portNames(e), func(int) bool { return true }); err != nil {
			t.Fatal(err)
		}
		e.state.Secrets["secrets-keyset"], e.state.Secrets["payments-keyset"] = "auth's", "payments'"
		return e, e.settings(e.services[2])
	}
	e, env := withPayments(map[string]string{"HUB_SECRETS_KEYSET": "stale"})
	if env["HUB_PG_BASE_URL"] != "http://127.0.0.1:8090" || env["HUB_PAY_ENV"] != "sandbox" || env["HUB_SECRETS_KEYSET"] != "payments'" ||
		env["HUB_PUBLIC_URL"] != "http://127.0.0.1:8080" || env["HUB_NOTIFY_ALLOW_CIDRS"] != "127.0.0.0/8,::1/128" ||
		env["HUB_STATIC"] != "auth="+e.state.addr("auth") {
		t.Errorf("%v", env)
	}
	if auth := e.settings(e.services[1]); auth["HUB_SECRETS_KEYSET"] != "auth's" || auth["HUB_PG_BASE_URL"] != "" {
		t.Errorf("%v", auth)
	}
	if sim := e.providerSettings(); sim["HUB_PGSIM_WEBHOOK_URL"] != "http://127.0.0.1:8080/v1/pay/webhooks/nicepay" ||
		sim["HUB_PGSIM_OPEN_CONTROL"] != "true" ||
		sim["HUB_PGSIM_SECRET"] == "" {
		t.Errorf("%v", sim)
	}
	if _, env := withPayments(
		map[string]string{"HUB_PG_BASE_URL": "https://sandbox-api.nicepay.co.kr", "HUB_PGSIM_URL": "stale"},
	); env["HUB_PG_BASE_URL"] != "https://sandbox-api.nicepay.co.kr" ||
		env["HUB_PGSIM_URL"] != "" {
		t.Errorf("%v", env)
	}
	var out strings.Builder
	summary(&out, e)
	if text := out.String(); !strings.Contains(text, "http://127.0.0.1:8090") || !strings.Contains(text, "http://127.0.0.1:8091") ||
		!strings.Contains(text, devApp) {
		t.Errorf("%s", text)
	}
}

func TestTheCallersVariablesWin(t *testing.T) {
	e := testEnvironment(map[string]string{
		"HUB_LOG_LEVEL": "debug", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "MCP_MAX_ROW_LIMIT": "5",
		"HUB_ADDR": "0.0.0.0:9000", "HUB_KEY_PEPPER_FILE": "/pepper", "HUB_SIGNING_KEY_FILE": "stale", "HUB_TRUSTED_KEYS": "stale",
		"HUB_WRITE_STORE_URL": "stale", "HUB_REDIS_URL": "stale", "HUB_SOURCE_DSN": "stale", "HUB_URL": "stale", // from an old dev.env
		"EDITOR": "vi",
	})
	gateway, query := e.settings(e.services[0]), e.settings(e.services[2])
	for name, want := range map[string]string{
		"HUB_LOG_LEVEL": "debug", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "MCP_MAX_ROW_LIMIT": "5", "HUB_KEY_PEPPER_FILE": "/pepper",
		"HUB_KEY_PEPPER": "",
	} {
		if gateway[name] != want || query[name] != want {
			t.Errorf("%s = %q and %q, want %q", name, gateway[name], query[name], want)
		}
	}
	if gateway["HUB_ADDR"] != "0.0.0.0:9000" || query["HUB_ADDR"] == "0.0.0.0:9000" {
		t.Errorf("HUB_ADDR: gateway %s, query %s", gateway["HUB_ADDR"], query["HUB_ADDR"])
	}
	if e.gatewayURL() != "http://127.0.0.1:9000" {
		t.Errorf("URL = %s", e.gatewayURL())
	}
	for _, env := range []map[string]string{gateway, query} {
		for name, value := range env {
			if value == "stale" || name == "EDITOR" {
				t.Errorf("%s=%s reached a service", name, value)
			}
		}
	}
}

func TestPortsStayAndGiveWay(t *testing.T) {
	names := []string{"gateway", "auth", "query", "redis"}
	s := &state{Ports: map[string]int{}}
	busy := map[int]bool{8080: true}
	free := func(p int) bool { return !busy[p] }
	if err := s.choosePorts(names, free); err != nil {
		t.Fatal(err)
	}
	if s.Ports["gateway"] != 8081 || s.Ports["redis"] != 16379 || s.Ports["auth"] == s.Ports["query"] {
		t.Fatalf("ports: %v", s.Ports)
	}
	before := fmt.Sprint(s.Ports)
	delete(busy, 8080) // a better one is free again: no reason to move
	if err := s.choosePorts(names, free); err != nil || fmt.Sprint(s.Ports) != before {
		t.Errorf("ports moved from %s to %v (%v)", before, s.Ports, err)
	}
	query := s.Ports["query"]
	busy[query] = true
	if err := s.choosePorts(names, free); err != nil || s.Ports["query"] == query || s.Ports["query"] == s.Ports["auth"] {
		t.Errorf("query's port %d is taken, and the new one is %d (%v)", query, s.Ports["query"], err)
	}
}

// TestTheFirstCallsCanBeAnswered: a schema of one's own has no brands.
func TestTheFirstCallsCanBeAnswered(t *testing.T) {
	for dsn, want := range map[string][]string{"": {"search_brands"}, "u:p@tcp(db:3306)/shop": {"get_ddl", "execute_read_sql"}} {
		e := testEnvironment(nil)
		e.options.sourceDSN = dsn
		var out strings.Builder
		summary(&out, e)
		var got []string
		for line := range strings.Lines(out.String()) {
			if _, tool, found := strings.Cut(strings.TrimSpace(line), "$HUB_URL/api/tools/"); found {
				got = append(got, tool)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("with SOURCE_DSN=%s: %v, want %v in\n%s", dsn, got, want, &out)
		}
	}
}

// TestOnePersonCanSeeEverything: whoever tries Hub out alone signs in once.
func TestOnePersonCanSeeEverything(t *testing.T) {
	held := map[string]string{}
	for _, u := range devUsers {
		held[u.name] = u.roles
	}
	if roles := strings.Split(
		held["admin"],
		",",
	); !slices.Contains(roles, "admin") || !slices.Contains(roles, "reviewer") ||
		held["reviewer"] != "reviewer" {
		t.Errorf("roles %v", held)
	}
}

func TestDevEnvCanBeSourced(t *testing.T) {
	values := map[string]string{
		"HUB_URL":        "http://x",
		"HUB_API_KEY":    `it's $HOME "quoted" \n` + "`id`",
		"HUB_SOURCE_DSN": "a:b@tcp(h:1)/d?x=1&y=2",
	}
	path := t.TempDir() + "/dev.env"
	if err := writeFile(path, shellFile(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(
		"sh",
		"-c",
		`set -eu; . "$0"; sh -c 'printf "%s\n" "$HUB_URL" "$HUB_API_KEY" "$HUB_SOURCE_DSN"'`,
		path,
	).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	want := []string{values["HUB_URL"], values["HUB_API_KEY"], values["HUB_SOURCE_DSN"], ""}
	if got := strings.Split(string(out), "\n"); !slices.Equal(got, want) {
		t.Errorf("sh reads %q, want %q", got, want)
	}
}

func TestSecretsStay(t *testing.T) {
	l := newCheckout(t).layout
	s, err := loadState(l)
	if err != nil {
		t.Fatal(err)
	}
	first, signing := s.secret("pepper"), s.signing("query")
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	again, err := loadState(l)
	if err != nil {
		t.Fatal(err)
	}
	if again.secret("pepper") != first || again.secret("other") == first || again.signing("query") != signing ||
		again.signing("auth") == signing {
		t.Error("a secret changed over a restart, or two are the same")
	}
}

// TestContainersFindTheirKeys holds docker-compose.yml to the files that DOCKER=1 makes for it.
func TestContainersFindTheirKeys(t *testing.T) {
	compose, err := os.ReadFile(filepath.Join("..", "..", "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	l := newCheckout(t).layout
	services, err := inventory.Load(l.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := composeKeys(l); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.keys()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(l.keys(), name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var trusted caller.TrustedKeys
	if err := trusted.UnmarshalText(
		read("trusted"),
	); err != nil ||
		!strings.Contains(string(compose), `trusted-keys: { file: "${HUB_KEYS_DIR:-.hub/keys}/trusted" }`) {
		t.Error(err)
	}
	for _, s := range services {
		var signing caller.SigningKey
		if err := signing.UnmarshalText(read(s.Name)); err != nil {
			t.Error(err)
		}
		if _, err := caller.NewKeys(s.Name, signing, trusted, time.Now); err != nil {
			t.Error(err)
		}
		for _, line := range []string{s.Name + `-key: { file: "${HUB_KEYS_DIR:-.hub/keys}/` + s.Name + `" }`, "secrets: [{ source: " +
			s.Name + "-key, target: signing-key }, trusted-keys]"} {
			if !strings.Contains(string(compose), line) {
				t.Errorf("docker-compose.yml lacks %s", line)
			}
		}
	}
	before := string(read("trusted"))
	if err := composeKeys(l); err != nil || string(read("trusted")) != before {
		t.Errorf("the keys of another start are others: %v", err)
	}
}
