package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
	"hub.internal/pkg/tool"
	"hub.internal/services/admin/auditlog"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, orders, chromium.close) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

const (
	allScopes = "explore,sql,query,author,control,admin:read,admin:write"
	pepper    = "a pepper that only tests know 0123456789abcdef"
	// payKeyset is payments' own: no service opens what another one has sealed.
	payKeyset = "CNqRgtIKEmQKWAowdHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUuY3J5cHRvLnRpbmsuQWVzR2NtS2V5EiIaIFto9lmuckWgvgLWeB7Fe7f4FU8pZ5jS" +
		"3kBP12oLBU2NGAEQARjakYLSCiAB"
	keyset = "CNWKzNANEmQKWAowdHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUuY3J5cHRvLnRpbmsuQWVzR2NtS2V5EiIaIJxUo2hSKvtv5jSdnpJrdc" +
		"ykPjP9t2jl3jW0rIbKc3BmGAEQARjViszQDSAB"
)

// programs are what a suite runs, built once per test binary.
type programs struct {
	once sync.Once
	dir  string
	err  error
}

// checked have the race detector; asReleased are those that a release would build.
var checked, asReleased programs

func (p *programs) build(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		// Beside the stack's own things, where nothing has to be cleaned up.
		p.dir = filepath.Join(hubtest.Root(t), ".hub", "e2e", "bin")
		flags := []string{"-ldflags=-s -w"} // nobody debugs them, and links take longest
		if p == &checked {
			p.dir, flags = p.dir+"-race", append(flags, "-race")
		}
		packages := append(localstack.Programs(house), inventory.ClientProgram, "./scripts/gen", "./scripts/mailsink", "./scripts/echo")
		p.err = localstack.Build(context.Background(), hubtest.Root(t), p.dir, packages, flags...)
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.dir
}

// mailFrom is the address that mails are from.
const mailFrom = "hub@company.example"

// suite is the services over servers, with a key of all scopes.
type suite struct {
	t   testing.TB
	bin string
	// commands are where the programs are that do a thing and end: those of a release, which start in a third of the time.
	commands string
	env      map[string][]string
	process  map[string]*localserver.Process
	addr     map[string]string
	ops      map[string]string // where metrics and profiles answer
	logs     *logs
	url      string
	key      string
	redis    *localserver.Redis
	smtp     *hubtest.SMTP
	store    hubtest.WriteStoreDB
	distance *hubtest.Distance // with options.far
	calls    atomic.Int64
	// drafts are how many were saved by draft.
	drafts atomic.Int64
	// runs are programs in place of those that were built, by the process.
	runs map[string]program
}

type options struct {
	env []string
	// gateways is how many replicas of the edge run, replicas how many of each other service; 1 by default.
	gateways, replicas int
	// twice names a service that has a second replica, name-2.
	twice string
	// without leaves services out, for a test that puts one of its own into their place.
	without []string
	// raced has the suite run programs with the race detector, where much happens at once; elsewhere they are those of a release,
	// which take a third of the time.
	raced bool
	// shop starts a simulated payment provider and the receiver of an app (newShop).
	shop *shop
	// postgres is a server of the test's own.
	postgres *localserver.Postgres
	// runs are programs in place of those that were built, by the service; they migrate too.
	runs map[string]program
	// managed has the roles and the database made by somebody who is no superuser.
	managed bool
	// pooled has the services reach the store through a pooler in transaction mode.
	pooled bool
	// far has the services reach the store over a line.
	far bool
	// smtp changes what the mail server does.
	smtp localserver.SMTPHooks
}

// house are Hub's services.
var house = func() inventory.Inventory {
	list, err := inventory.Load(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return list
}()

// services are those behind the gateway.
var services = house.Inner().Names()

// everyProcess has a signing key that all believe.
var everyProcess = house.Names()

type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t testing.TB, o options) *suite {
	t.Helper()
	built := &asReleased
	if o.raced {
		built = &checked
	}
	s := &suite{
		t:        t,
		bin:      built.build(t),
		commands: asReleased.build(t),
		process:  map[string]*localserver.Process{},
		addr:     map[string]string{},
		ops:      map[string]string{},
		env:      map[string][]string{},
		runs:     map[string]program{},
		logs:     &logs{},
		redis:    hubtest.NewRedis(t),
		smtp:     hubtest.NewSMTP(t, localserver.SMTPOptions{Hooks: o.smtp}),
	}
	ready := o.postgres == nil && o.runs == nil && o.without == nil && !o.managed
	switch {
	case o.managed:
		s.store = hubtest.ManagedStore(t)
	case ready:
		s.store = s.migratedStore()
	case o.postgres == nil:
		s.store = hubtest.WriteStore(t)
	default:
		s.store = hubtest.WriteStoreOn(t, o.postgres)
	}
	if o.pooled {
		s.store = s.store.Pooled(t)
	}
	if o.far {
		s.store, s.distance = s.store.Far(t)
	}
	readonly := hubtest.FilledSource(t, func(adminDSN string) { s.run("gen", nil, "--dsn", adminDSN, "--scale", "0.02") })
	inner, gateways := slices.DeleteFunc(
		slices.Clone(services),
		func(name string) bool { return slices.Contains(o.without, name) },
	), []string{
		"gateway",
	}
	single := slices.Clone(inner)
	for i := 2; i <= o.replicas; i++ {
		for _, name := range single {
			inner = append(inner, fmt.Sprint(name, "-", i))
		}
	}
	if o.twice != "" {
		inner = append(inner, o.twice+"-2")
	}
	for i := 2; i <= o.gateways; i++ {
		gateways = append(gateways, fmt.Sprint("gateway-", i))
	}
	for _, name := range append(slices.Clone(inner), gateways...) {
		for _, addrs := range []map[string]string{s.addr, s.ops} {
			port, err := localserver.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			addrs[name] = fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	s.url = "http://" + s.addr["gateway"]
	stack := localstack.Stack{
		Root: hubtest.Root(t), Bin: s.bin, Services: house, Processes: inner,
		Addr:    func(process string) string { return s.addr[process] },
		OpsAddr: func(process string) string { return s.ops[process] },
		Signing: func(service string) (key, trusted string) {
			return callertest.Signing(service).Reveal(), callertest.Trusted(service)
		},
		Keyset: func(service inventory.Service) string {
			if service.Has(inventory.Provider) {
				return payKeyset
			}
			return keyset
		},
		Pepper: pepper, StoreURL: s.store.RoleURL, RedisURL: func(string) string { return s.redis.URL(0) }, SourceDSN: readonly,
		SMTPAddr: s.smtp.Addr(), MailFrom: mailFrom, PublicURL: s.url,
	}
	if o.shop != nil {
		o.shop.open(s)
		stack.ProviderURL = o.shop.sim
	}
	common := append([]string{"HUB_SEND_PER_MINUTE=60000", "HUB_SEND_DELAY=0s", "HUB_SEND_RETRY=1s", "HUB_SEND_TIMEOUT=20s",
		"HUB_MIGRATE_URL=" + s.store.OwnerURL, "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), atOnce}, o.env...)
	for name := range s.addr {
		service, err := house.Find(programOf(name))
		if err != nil {
			t.Fatal(err)
		}
		s.env[name] = append(localstack.Environ(stack.Settings(service, name)), common...)
	}
	for name := range s.env {
		if p, found := o.runs[programOf(name)]; found {
			s.runs[name] = p
		}
	}
	if !ready {
		for _, name := range append(single, "gateway") {
			s.run(name, s.env[name], "migrate")
		}
	}
	t.Cleanup(func() {
		for _, p := range s.process {
			p.Kill()
		}
		s.recordedByOwners()
		if strings.Contains(s.logs.String(), "WARNING: DATA RACE") {
			t.Errorf("a service has a data race:\n%s", s.logs)
		}
		if t.Failed() && testing.Verbose() {
			t.Logf("logs of the services:\n%s", s.logs)
		}
	})
	for _, name := range append(slices.Clone(inner), gateways...) {
		s.start(name)
	}
	s.key = s.issue(
		"--scopes",
		allScopes,
		"--user-per-minute",
		"6000000",
		"--user-burst",
		"100000",
		"--service-per-minute",
		"6000000",
		"--service-burst",
		"100000",
	).Key
	for _, name := range append(inner, gateways...) {
		s.ready(name)
	}
	return s
}

// migratedStore is what the migrations of all services make, once for all suites of the binary.
func (s *suite) migratedStore() hubtest.WriteStoreDB {
	s.t.Helper()
	return hubtest.MigratedStore(s.t, "suite", func(_ context.Context, ownerURL string) error {
		for _, name := range everyProcess {
			s.run(name, []string{"HUB_MIGRATE_URL=" + ownerURL}, "migrate")
		}
		return nil
	})
}

// recordedByOwners holds what the services have recorded to the catalog: each name is known there, and its owner has recorded it. A
// store that is away has nothing to say.
func (s *suite) recordedByOwners() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.store.SuperuserURL)
	if err != nil {
		return
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(
		ctx,
		`SELECT DISTINCT tool, writer, outcome FROM audit.calls WHERE tool <> 'a_rather_long_name_that_an_agent_has_made_up'`,
	)
	calls, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[auditlog.Call])
	if err != nil {
		s.t.Errorf("the audit log: %v", err)
	}
	owners := auditlog.OwnersIn(catalog(s.t))
	for _, c := range calls {
		unknown := c.Outcome == audit.OK && !owners.Foreign(auditlog.Call{Tool: c.Tool, Outcome: c.Outcome, Writer: "nobody"})
		if owners.Foreign(c) || unknown {
			s.t.Errorf("%s has recorded %s (%s): it is not its own by deploy/catalog.json", c.Writer, c.Tool, c.Outcome)
		}
	}
}

// atOnce lets programs with the race detector end without the second that they wait for reports.
const atOnce = "GORACE=atexit_sleep_ms=0"

// run runs a program to its end and returns what it printed.
func (s *suite) run(program string, env []string, args ...string) string {
	s.t.Helper()
	out, err := localstack.Run(context.Background(), s.path(s.commands, program), "", env, "", args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// programOf is the program of a process: gateway-2 is one of gateway's.
func programOf(name string) string { return localstack.ServiceOf(name) }

// path is where the program of a process is, of those that were built.
func (s *suite) path(built, name string) string {
	if p, found := s.runs[name]; found {
		return p.path
	}
	return filepath.Join(built, programOf(name))
}

func (s *suite) start(name string) {
	s.t.Helper()
	env := slices.Concat(s.env[name], s.runs[name].environ)
	p, err := localstack.Serve(s.path(s.bin, name), env, s.t.TempDir(), s.logs)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process[name] = p
}

func (s *suite) ready(name string) {
	s.t.Helper()
	hubtest.Eventually(s.t, name+" is ready", func() bool {
		return localstack.Ready(context.Background(), "http://"+s.addr[name]+"/readyz") == nil
	})
}

type issued struct{ ID, Key string }

// issue makes an API key with auth's own command.
func (s *suite) issue(args ...string) issued {
	s.t.Helper()
	var k issued
	out := s.run("auth", s.env["auth"], append([]string{"apikey", "issue", "--name", "test", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &k); err != nil || k.Key == "" {
		s.t.Fatalf("apikey issue: %v: %s", err, out)
	}
	return k
}

// reply is an answered envelope.
type reply struct {
	status int
	header http.Header
	raw    string
	took   time.Duration

	OK    bool            `json:"ok"`
	Data  json.RawMessage `json:"data"`
	Count int             `json:"count"`
	Error struct {
		Code      string          `json:"code"`
		Message   string          `json:"message"`
		Details   json.RawMessage `json:"details"`
		Retryable bool            `json:"retryable"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

func (s *suite) call(tool string, input any, headers ...string) reply {
	s.t.Helper()
	body, isText := input.(string)
	if !isText {
		b, err := json.Marshal(input)
		if err != nil {
			s.t.Fatal(err)
		}
		body = string(b)
	}
	r, err := s.send(context.Background(), s.url, "POST", "/api/tools/"+tool, body, headers...)
	if err != nil {
		s.t.Errorf("%s: %v", tool, err)
	}
	return r
}

// send speaks for the suite's key unless a header says otherwise.
func (s *suite) send(ctx context.Context, url, method, path, body string, headers ...string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, hubtest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if req.Header.Del(headers[i]); headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: resp.StatusCode, header: resp.Header, raw: string(b), took: time.Since(began)}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &r); err != nil {
			return r, fmt.Errorf("%s answers no envelope: %w: %.300s", path, err, b)
		}
	}
	return r, nil
}

// running counts the statements of the source's server whose text begins like this, seen by its administrator.
func running(t testing.TB, text string) int {
	t.Helper()
	db, err := hubtest.MariaDB(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow(
		`SELECT COUNT(*) FROM information_schema.processlist WHERE LEFT(info, ?) = ?`,
		len(text),
		text,
	).Scan(
		&n,
	); err != nil {
		t.Fatal(err)
	}
	return n
}

// audited returns detail of the rows with this request id, oldest first.
func (s *suite) audited(requestID string) []auditRow {
	s.t.Helper()
	conn, err := pgx.Connect(context.Background(), s.store.OwnerURL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(
		context.Background(),
		`SELECT tool, outcome, credential_id, count, coalesce(detail::text, '') FROM audit.calls WHERE request_id = $1 ORDER BY at`,
		requestID,
	)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[auditRow])
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// tools is how many the committed catalog holds.
func tools(t testing.TB) int {
	t.Helper()
	n := 0
	for _, m := range manifests(t) {
		n += len(m.Tools)
	}
	return n
}

// manifests are those of the committed catalog.
func manifests(t testing.TB) []tool.Manifest {
	t.Helper()
	return catalog(t).Manifests
}

func catalog(t testing.TB) (catalog tool.Catalog) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(hubtest.Root(t), "deploy/catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &catalog); err != nil {
		t.Fatal(err)
	}
	return catalog
}

type auditRow struct {
	Tool, Outcome, Credential string
	Count                     int
	Detail                    string
}
