package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	pkgjobs "hub.internal/pkg/jobs"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/seal"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/jobs"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/notify"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/postgres"
	"hub.internal/services/payments/provider"
)

func TestMain(m *testing.M) { hubtest.ProgramMain(m, program) }

const (
	clientID      = "CANARY-client-id-0001"
	secretKey     = "CANARY-secret-key-0001"
	webhookSecret = "whsec_Q0FOQVJZLXdlYmhvb2stc2VjcmV0LTAwMDAwMDE="
	accountNumber = "9988776655443322"
)

// shop is the service on a store of its own, with its jobs, the real adapter before a simulator, and an app that takes
// notifications.
type shop struct {
	t       testing.TB
	db      hubtest.WriteStoreDB
	pool    *pgstore.Pool
	super   *pgxpool.Pool
	store   *postgres.Store
	service *payments.Service
	routes  map[string]tool.APIRoute
	sim     *pgsim.Sim
	app     *app
	logs    *hubtest.Buffer
	stop    func()
	// distance is that of the store, where it is far away.
	distance *hubtest.Distance
	still    bool // its clock is a test's
	// wire is where the simulator is, and keyset seals accounts: for the same service in another process.
	wire, keyset string
}

// app takes notifications, and answers what it is told to.
type app struct {
	mu     sync.Mutex
	status int
	took   []took
	url    string
}

type took struct {
	ID     string
	Header http.Header
	Body   []byte
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, took{r.Header.Get("Webhook-Id"), r.Header, body})
	w.WriteHeader(a.status)
}

func (a *app) all() []took {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]took(nil), a.took...)
}

func (a *app) answer(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

// apps knows the apps whose names begin with svc.
type apps struct{}

func (apps) App(_ context.Context, code string) (payments.App, error) {
	if !strings.HasPrefix(code, "svc") {
		return payments.App{}, fault.New(fault.NotFound, "no app")
	}
	return payments.App{Active: true, RedirectURLs: []string{"https://svc.example/done"}, Secrets: []string{webhookSecret}}, nil
}

type creds struct{}

var cred = credentials.NewUnsealed(1, credentials.Sandbox, clientID, secretKey)

func (creds) Active(context.Context, string, credentials.Env) (credentials.Unsealed, error) {
	return cred, nil
}
func (creds) ByID(context.Context, schema.ID) (credentials.Unsealed, error) { return cred, nil }
func (creds) Verifying(context.Context, string) ([]credentials.Unsealed, error) {
	return []credentials.Unsealed{cred}, nil
}

// options change a shop before it opens.
type options struct {
	manual bool // the payer completes the provider's page
	idle   bool // no jobs
	far    bool // with distance
	now    func() time.Time
	change func(*payments.Config)
	lease  time.Duration    // of a claimed key
	onCall func(pgsim.Call) // hears each call before the simulator does anything about it
}

func newShop(t testing.TB, o options) *shop {
	t.Helper()
	s := &shop{
		t:      t,
		db:     hubtest.MigratedStore(t, "payments", postgres.Migrate),
		app:    &app{status: http.StatusOK},
		logs:   new(hubtest.Buffer),
		routes: map[string]tool.APIRoute{},
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.far {
		s.db, s.distance = s.db.Far(t)
	}
	var err error
	if s.pool, err = pgstore.Open(pgstore.Config{URL: s.db.URL("payments"), MaxConns: 40}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	if s.super, err = pgxpool.New(t.Context(), s.db.SuperuserURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.super.Close)
	s.store = postgres.NewWith(s.pool, postgres.Options{Lease: o.lease})
	logger := slog.New(slog.NewTextHandler(s.logs, nil))
	echo := httptest.NewServer(s.app)
	t.Cleanup(echo.Close)
	s.app.url = echo.URL
	hooks := httptest.NewServer(http.HandlerFunc(s.webhook))
	t.Cleanup(hooks.Close)
	s.sim, err = pgsim.New(
		pgsim.Config{ClientID: clientID, Secret: secretKey, WebhookURL: hooks.URL, AutoIssue: !o.manual, Now: o.now, OnCall: o.onCall,
			Retries: []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, time.Second}},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.sim.Close() })
	wire := httptest.NewServer(s.sim)
	t.Cleanup(wire.Close)
	provider, err := nicepay.New(nicepay.Config{BaseURL: wire.URL, Now: o.now, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	s.wire = wire.URL
	if s.keyset, err = seal.NewKeyset(); err != nil {
		t.Fatal(err)
	}
	config, err := configOf(s.store, provider, s.keyset, o.now, logger)
	if err != nil {
		t.Fatal(err)
	}
	if o.change != nil {
		o.change(&config)
	}
	s.service = payments.New(config)
	for _, r := range api.Routes(s.service) {
		s.routes[r.Spec.Name] = r
	}
	s.stop = func() {}
	if !o.idle {
		s.work(logger, o.now)
	}
	return s
}

// configOf is the service as a test has it.
func configOf(
	store payments.Store,
	provider provider.Port,
	keyset string,
	now func() time.Time,
	logger *slog.Logger,
) (payments.Config, error) {
	box, err := seal.Open(keyset)
	if err != nil {
		return payments.Config{}, err
	}
	var schedule notify.Schedule
	err = schedule.UnmarshalText([]byte("0s,0s,0s,0s,0s,0s,0s,0s,0s,0s"))
	return payments.Config{
		Store:       store,
		Apps:        apps{},
		Credentials: creds{},
		Provider:    provider,
		Sealer:      box,
		Env:         credentials.Sandbox,
		Notifier: notify.New(
			notify.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true, Schedule: schedule, Now: now},
		),
		PublicURL: "https://hub.example",
		Now:       now,
		Logger:    logger,
	}, err
}

func (s *shop) runner(logger *slog.Logger, now func() time.Time) pkgjobs.Runner {
	r := jobs.Runner(s.service, s.store, now)
	r.Pool, r.Service, r.Schema, r.Logger = s.pool, "payments", "payments", logger
	return r
}

// work runs the jobs until the test ends, or stop is called.
func (s *shop) work(logger *slog.Logger, now func() time.Time) {
	r := s.runner(logger, now)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = r.Run(ctx) })
	s.stop = func() { cancel(); done.Wait() }
	s.t.Cleanup(s.stop)
}

// webhook is the gateway's part of a webhook.
func (s *shop) webhook(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	status, kind, text := s.tell(r.Context(), r.Header.Get("Content-Type"), body)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (s *shop) tell(ctx context.Context, contentType string, body []byte) (int, string, string) {
	err := s.service.Receive(ctx, "nicepay", contentType, body)
	if fault.Is(err, fault.AuthInvalid) {
		return http.StatusUnauthorized, "text/plain", "no"
	}
	return s.service.Acknowledge(ctx, err)
}

// as is a context of an app's call for one of its users.
func as(ctx context.Context, service, user string) context.Context {
	return caller.With(ctx, caller.Caller{Kind: caller.App, Service: service, ExternalUserID: user, CredentialID: "app:" + service,
		HubUser: "u_1", Scopes: []string{"pay:read", "pay:write", "pay:refund"}, RequestID: "req_test"})
}

// answer is what an app gets.
type answer struct {
	Status   int
	Replayed bool
	Raw      string
	Order    order.View       `json:"order"`
	Refund   order.RefundView `json:"refund"`
	api.Events
	api.Orders
}

// call is a call of the app svc for its user u-77.
func (s *shop) call(route, key, input string) (answer, error) {
	return s.callAs("svc", "u-77", route, key, input)
}

func (s *shop) callAs(service, user, route, key, input string) (answer, error) {
	out, err := s.routes[route].Tool.Endpoint(
		as(s.t.Context(), service, user),
		&tool.Call{Tool: route, Input: []byte(input), IdempotencyKey: key},
	)
	if err != nil {
		return answer{}, err
	}
	r := out.(*tool.Result)
	a := answer{Status: r.Status, Replayed: r.Replayed, Raw: string(r.Data)}
	return a, json.Unmarshal(r.Data, &a)
}

// must is a call that has to succeed.
func (s *shop) must(route, key, input string) answer {
	s.t.Helper()
	a, err := s.call(route, key, input)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", route, input, err, s.logs)
	}
	return a
}

// refused is a call that has to be refused with a code, and with details.code where it is not empty.
func (s *shop) refused(route, key, input string, code fault.Code, details string) {
	s.t.Helper()
	a, err := s.call(route, key, input)
	if err == nil {
		s.t.Fatalf("%s %s: answered %s", route, input, a.Raw)
	}
	f := fault.From(err)
	said, _ := json.Marshal(f.Details)
	if f.Code != code || details != "" && !bytes.Contains(said, []byte(`"code":"`+details+`"`)) {
		s.t.Fatalf("%s %s: %v %s, want %s %s", route, input, err, said, code, details)
	}
	if details != "" && !slices.ContainsFunc(s.routes[route].Spec.Errors, func(e tool.ErrorDoc) bool {
		return e.Code == code && slices.Contains(e.DetailCodes, details)
	}) {
		s.t.Errorf("%s answers %s, and does not declare it", route, details)
	}
}

// order makes an order of 11,000 won to be paid by deposit.
func (s *shop) order(key string) order.View {
	s.t.Helper()
	return s.must(
		"pay.orders.create",
		key,
		`{"supplyAmount":10000,"vat":1000,"payMethod":"vbank","payment_notify_url":"`+s.app.url+`"}`,
	).Order
}

func (s *shop) show(code string) order.View {
	s.t.Helper()
	return s.must("pay.orders.show", "", `{"code":"`+code+`"}`).Order
}

// becomes waits until an order has this status.
func (s *shop) becomes(code string, want order.Status) order.View {
	s.t.Helper()
	var o order.View
	hubtest.Eventually(s.t, code+" is "+string(want), func() bool { o = s.show(code); return o.Status == want })
	return o
}

// paid makes an order and lets it be paid.
func (s *shop) paid() order.View {
	s.t.Helper()
	o := s.order("")
	s.deposit(o.Code, 11000, 1)
	return s.becomes(o.Code, order.Paid)
}

func (s *shop) deposit(code string, amount int64, times int) {
	s.t.Helper()
	if err := s.sim.Deposit(code, amount, time.Time{}, times); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) events(code string) api.Events {
	s.t.Helper()
	return s.must("pay.orders.events", "", `{"code":"`+code+`"}`).Events
}

// settled waits until nothing waits any more: no webhook on its way, no job to do now.
func (s *shop) settled() {
	s.t.Helper()
	if err := s.sim.Settle(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	hubtest.Eventually(s.t, "nothing waits", func() bool {
		var left int
		err := s.super.QueryRow(s.t.Context(), `SELECT (SELECT count(*) FROM payments.webhooks WHERE outcome = '')
			+ (SELECT count(*) FROM payments.notices WHERE state = 'PENDING')`).Scan(&left)
		return err == nil && left == 0
	})
}
