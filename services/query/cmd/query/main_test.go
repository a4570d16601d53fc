package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/tool"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, main) }

func TestManifest(t *testing.T) {
	var out bytes.Buffer
	c := program.Command(nil)
	c.SetOut(&out)
	c.SetArgs([]string{"manifest"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	var m tool.Manifest
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, spec := range m.Tools {
		names = append(names, spec.Name)
		if len(spec.Examples) == 0 || len(spec.Errors) == 0 || spec.Write {
			t.Errorf("%s: %d examples, %d errors, write %t", spec.Name, len(spec.Examples), len(spec.Errors), spec.Write)
		}
	}
	if got, want := strings.Join(
		names,
		" ",
	), "describe_schema get_ddl execute_read_sql list_categories search_brands get_brand search_campaigns search_partner_contacts "+
		"get_campaign_performance"; m.Service != "query" ||
		got != want {
		t.Errorf("%s owns %s, want query and %s", m.Service, got, want)
	}
}

func run(t *testing.T, command string, environ ...string) *hubtest.Program {
	t.Helper()
	return hubtest.Launch(t, append(callertest.Environ("query", caller.Gateway, "authoring"), environ...), command)
}

func call(t *testing.T, p *hubtest.Program, h http.Header, name, input string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		"http://"+p.Addr(t)+rpc.ToolPath(name),
		strings.NewReader(input),
	)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = h
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

func TestServe(t *testing.T) {
	adminDSN, readerDSN := hubtest.SourceDB(t)
	store := hubtest.WriteStore(t)
	environ := []string{"HUB_SOURCE_DSN=" + readerDSN, "HUB_WRITE_STORE_URL=" + store.URL("query"), "HUB_MIGRATE_URL=" + store.OwnerURL}
	if p := run(t, "migrate", environ...); p.Wait(t) != 0 {
		t.Fatalf("migrate: %s", p.Log)
	}
	agent := callertest.Header(t, "query", caller.Caller{Kind: caller.Key, Service: "crm", CredentialID: "key1", RequestID: "req_1"})

	t.Run("calls", func(t *testing.T) {
		p := run(t, "serve", environ...)
		p.Ready(t)
		if r, body := call(t, p, http.Header{}, "list_categories", `{}`); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a token: %s %s", r.Status, body)
		}
		if r, body := call(
			t,
			p,
			agent,
			"list_categories",
			`{}`,
		); r.StatusCode != http.StatusOK || body != `{"categories":[]}` ||
			r.Header.Get(rpc.CountHeader) != "0" {
			t.Errorf("list_categories: %s %s", r.Status, body)
		}
		if r, body := call(
			t,
			p,
			agent,
			"execute_read_sql",
			`{"sql": "SELECT 1 AS one"}`,
		); r.StatusCode != http.StatusOK ||
			!strings.Contains(body, `"rows":[[1]]`) {
			t.Errorf("execute_read_sql: %s %s", r.Status, body)
		}
		if r, body := call(t, p, agent, "get_brand", `{"brandId": 1}`); r.Header.Get(rpc.FaultHeader) != string(fault.NotFound) {
			t.Errorf("get_brand: %s %s", r.Status, body)
		}
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit %d\n%s", code, p.Log)
		}
		if strings.Contains(p.Log.String(), "reader-password") {
			t.Error("the log shows the source's password")
		}
		// What was queued is in the log once the process has ended.
		got := map[string]string{}
		for _, row := range rows(t, store.SuperuserURL, `SELECT tool, outcome || ' ' || count || ' ' || request_id || ' ' || `+
			`length(input_hash) FROM audit.calls`) {
			got[row[0]] = row[1]
		}
		want := map[string]string{
			"list_categories":  "ok 0 req_1 32",
			"execute_read_sql": "ok 1 req_1 32",
			"get_brand":        "E_NOT_FOUND 0 req_1 32",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the audit log holds %v, want %v", got, want)
		}
	})
	t.Run("an account that may write", func(t *testing.T) {
		p := run(t, "serve", append(environ, "HUB_SOURCE_DSN="+adminDSN)...)
		if code := p.Wait(t); code != 1 || !strings.Contains(p.Log.String(), "HUB_SOURCE_DSN: the source account may do more than read") {
			t.Errorf("exit %d\n%s", code, p.Log)
		}
	})
	t.Run("no source yet", func(t *testing.T) {
		p := run(t, "serve", append(environ, "HUB_SOURCE_DSN=u:p@tcp(127.0.0.1:1)/d")...)
		p.Ready(t)
		for _, name := range []string{"describe_schema", "list_categories"} {
			if r, body := call(t, p, agent, name, `{}`); r.Header.Get(rpc.FaultHeader) != string(fault.DB) {
				t.Errorf("%s: %s %s", name, r.Status, body)
			}
		}
	})
	for setting, bad := range map[string]string{
		"HUB_SOURCE_DSN": "nonsense", "HUB_WRITE_STORE_URL": "nonsense://", "MCP_MAX_ROW_LIMIT": "0", "MCP_QUERY_TIMEOUT_MS": "-5",
		"HUB_MAX_RESULT_BYTES": "x", "HUB_SOURCE_POOL": "0", "HUB_SQL_TMP_BYTES": "0", "HUB_SQL_FUNCTIONS": "f_net, load_file",
		"HUB_SIGNING_KEY": "short", "HUB_TRUSTED_KEYS": "short",
	} {
		t.Run("bad "+setting, func(t *testing.T) {
			p := run(t, "serve", append(environ, "HUB_LOG_LEVEL=error", setting+"="+bad)...)
			if code := p.Wait(t); code != 1 || strings.Count(strings.TrimSpace(p.Log.String()), "\n") != 0 {
				t.Errorf("exit %d\n%s", code, p.Log)
			}
		})
	}
}

// TestStopWithAStatementThatCannotBeStopped: the process ends all the same, and until then its
// metrics and its log tell.
func TestStopWithAStatementThatCannotBeStopped(t *testing.T) {
	_, readerDSN := hubtest.SourceDB(t)
	store := hubtest.WriteStore(t)
	environ := []string{
		"HUB_SOURCE_DSN=" + readerDSN,
		"HUB_WRITE_STORE_URL=" + store.URL("query"),
		"HUB_MIGRATE_URL=" + store.OwnerURL,
		"MCP_QUERY_TIMEOUT_MS=500",
	}
	if p := run(t, "migrate", environ...); p.Wait(t) != 0 {
		t.Fatalf("migrate: %s", p.Log)
	}
	agent := callertest.Header(t, "query", caller.Caller{Kind: caller.Key, Service: "crm", CredentialID: "key1", RequestID: "req_stuck"})
	p := run(t, "serve", environ...)
	p.Ready(t)
	metrics := func() string {
		r, err := http.Get("http://" + p.Listener(t, "operations") + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		return b.String()
	}
	alarm := func(value string) bool {
		return regexp.MustCompile(`(?m)^hub_sql_runaway\{.*\} `+value+`$`).MatchString(metrics()) &&
			regexp.MustCompile(`(?m)^hub_sql_runaways_total\{.*\} `+value+`$`).MatchString(metrics())
	}
	if !alarm("0") {
		t.Errorf("no series before the first: %s", metrics())
	}
	unstoppable := fmt.Sprintf(`{"sql": %q}`, hubtest.Unstoppable(t, 15*time.Second))
	if r, body := call(t, p, agent, "execute_read_sql", unstoppable); r.StatusCode != http.StatusGatewayTimeout {
		t.Fatalf("%s %s", r.Status, body)
	}
	hubtest.Eventually(t, "the alarm", func() bool { return alarm("1") })
	if r, body := call(
		t,
		p,
		agent,
		"execute_read_sql",
		`{"sql": "SELECT 1"}`,
	); r.StatusCode != http.StatusTooManyRequests ||
		!strings.Contains(body, `"scope":"source"`) {
		t.Errorf("%s %s", r.Status, body)
	}
	start := time.Now()
	if code := p.Stop(t); code != 0 || time.Since(start) > hubtest.Patience {
		t.Errorf("exit %d after %s\n%s", code, time.Since(start), p.Log)
	}
	for _, want := range []string{"a statement outlives its KILL on the source database",
		"a statement is left running on the source database", `"request_id":"req_stuck"`} {
		if !strings.Contains(p.Log.String(), want) || strings.Contains(p.Log.String(), "LOCATE") {
			t.Errorf("the log has no %q, or says what the statement was:\n%s", want, p.Log)
		}
	}
}

// TestASourceOnSeveralServers: here they are one server under two names, and one that is not there.
func TestASourceOnSeveralServers(t *testing.T) {
	_, readerDSN := hubtest.SourceDB(t)
	store := hubtest.WriteStore(t)
	list := strings.Join(
		[]string{
			readerDSN,
			strings.Replace(readerDSN, "127.0.0.1", "localhost", 1),
			strings.Replace(readerDSN, "127.0.0.1", "127.0.0.1.invalid", 1),
		},
		",",
	)
	environ := []string{"HUB_SOURCE_DSNS=" + list, "HUB_WRITE_STORE_URL=" + store.URL("query"), "HUB_MIGRATE_URL=" + store.OwnerURL}
	if p := run(t, "migrate", environ...); p.Wait(t) != 0 {
		t.Fatalf("migrate: %s", p.Log)
	}
	p := run(t, "serve", environ...)
	p.Ready(t)
	agent := callertest.Header(t, "query", caller.Caller{Kind: caller.Key, Service: "crm", CredentialID: "key1", RequestID: "req_1"})
	for range 6 {
		for name, input := range map[string]string{"list_categories": `{}`, "execute_read_sql": `{"sql": "SELECT 1"}`} {
			if r, body := call(t, p, agent, name, input); r.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s", name, r.Status, body)
			}
		}
	}
	r, err := http.Get("http://" + p.Listener(t, "operations") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var metrics bytes.Buffer
	_, _ = metrics.ReadFrom(r.Body)
	for _, series := range []string{`hub_source_replica_up\{.*server_address="localhost".*\} 1`,
		`hub_source_replica_asked\{.*server_address="127.0.0.1".*\} 1`,
		`hub_source_replica_up\{.*server_address="127.0.0.1.invalid".*\} 0`, `hub_source_replica_moves_total\{.*\} 0`,
		`hub_source_stale\{.*\} 0`} {
		if !regexp.MustCompile(`(?m)^` + series + `$`).MatchString(metrics.String()) {
			t.Errorf("no %s in\n%s", series, metrics.String())
		}
	}
	replicasAreListed(t, metrics.String())
	for _, want := range []string{"nobody can tell its lag", "a replica of the source does not answer"} {
		if !strings.Contains(p.Log.String(), want) || strings.Contains(p.Log.String(), "reader-password") {
			t.Errorf("the log has no %q, or shows the password:\n%s", want, p.Log)
		}
	}
	if code := p.Stop(t); code != 0 {
		t.Errorf("exit %d\n%s", code, p.Log)
	}
	for want, more := range map[string]string{"both HUB_SOURCE_DSN and HUB_SOURCE_DSNS are set": "HUB_SOURCE_DSN=" + readerDSN,
		"entry 2 of 2, names no database":                  "HUB_SOURCE_DSNS=" + readerDSN + ",u:p@tcp(h:1)/",
		"HUB_SOURCE_MAX_LAG has to be positive":            "HUB_SOURCE_MAX_LAG=0s",
		"HUB_SOURCE_DSN has to be set, or HUB_SOURCE_DSNS": "HUB_SOURCE_DSNS="} {
		p := run(t, "serve", append(environ, "HUB_LOG_LEVEL=error", more)...)
		if code := p.Wait(
			t,
		); code != 1 || !strings.Contains(p.Log.String(), want) ||
			strings.Count(strings.TrimSpace(p.Log.String()), "\n") != 0 {
			t.Errorf("%s: exit %d\n%s", more, code, p.Log)
		}
	}
}

func rows(t *testing.T, url, statement string) (out [][2]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	r, err := conn.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		var row [2]string
		if err := r.Scan(&row[0], &row[1]); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// replicasAreListed holds deploy/observe/metrics.json to what the program shows of replicas: the suite of all services has one source.
func replicasAreListed(t *testing.T, shown string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy", "observe", "metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	var listed map[string]struct {
		Type   string
		Labels map[string][]string
	}
	if err := json.Unmarshal(b, &listed); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{"hub_source_replica_lag_seconds": true} // absent: nobody can tell it here
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (hub_source_\w+) (\w+)$`).FindAllStringSubmatch(shown, -1) {
		found[m[1]] = true
		if listed[m[1]].Type != m[2] {
			t.Errorf("%s is a %s, and listed as %q", m[1], m[2], listed[m[1]].Type)
		}
	}
	for name, m := range listed {
		if strings.HasPrefix(name, "hub_source_") && !found[name] {
			t.Errorf("%s is listed, and not shown", name)
		}
		for label := range m.Labels {
			if strings.HasPrefix(name, "hub_source_") && name != "hub_source_replica_lag_seconds" &&
				!regexp.MustCompile(`(?m)^`+name+`\{.*`+label+`="`).MatchString(shown) {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
}
