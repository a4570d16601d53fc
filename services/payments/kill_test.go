package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/nicepay"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/postgres"
)

// The environment of the program.
const (
	storeVariable  = "HUB_TEST_STORE"
	wireVariable   = "HUB_TEST_PROVIDER"
	keysetVariable = "HUB_TEST_KEYSET"
	// killedLease is how long a key is claimed in the processes that are killed: a slow call may be taken over while it runs.
	killedLease = 400 * time.Millisecond
)

// asked is a call of an app on its way to the program, and told what became of it.
type asked struct{ Route, User, Key, Input string }

type told struct {
	Status       int
	Replayed     bool
	Data         json.RawMessage
	Code, Detail string
}

// program is the service with its jobs behind a door of its own, in a process that can be killed.
func program() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := serve(logger); err != nil {
		logger.Error("the program has ended", "error", err)
		os.Exit(1)
	}
}

func serve(logger *slog.Logger) error {
	pool, err := pgstore.Open(pgstore.Config{URL: os.Getenv(storeVariable), MaxConns: 12})
	if err != nil {
		return err
	}
	provider, err := nicepay.New(nicepay.Config{BaseURL: os.Getenv(wireVariable), Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	store := postgres.NewWith(pool, postgres.Options{Lease: killedLease})
	config, err := configOf(store, provider, os.Getenv(keysetVariable), time.Now, logger)
	if err != nil {
		return err
	}
	s := &shop{pool: pool, store: store, service: payments.New(config), routes: map[string]tool.APIRoute{}}
	for _, r := range api.Routes(s.service) {
		s.routes[r.Spec.Name] = r
	}
	r := s.runner(logger, time.Now)
	r.Instance = "the one that is killed"
	go func() { _ = r.Run(context.Background()) }()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", s.webhook)
	mux.HandleFunc("POST /call", s.answers)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	logger.Info("serving", "addr", listener.Addr().String())
	return http.Serve(listener, mux)
}

func (s *shop) answers(w http.ResponseWriter, r *http.Request) {
	var in asked
	var out told
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer, err := s.routes[in.Route].Tool.Endpoint(
		as(r.Context(), "svc", in.User),
		&tool.Call{Tool: in.Route, Input: []byte(in.Input), IdempotencyKey: in.Key},
	)
	if err != nil {
		out.Code, out.Detail = string(fault.From(err).Code), detail(err)
	} else {
		result := answer.(*tool.Result)
		out = told{Status: result.Status, Replayed: result.Replayed, Data: result.Data}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// killed is the program that is killed again and again, behind an address that stays.
type killed struct {
	*shop
	t       *testing.T
	clock   *years
	front   *httptest.Server
	addr    atomic.Value
	program *hubtest.Program
	logs    bytes.Buffer
}

func newKilled(t *testing.T) *killed {
	clock := &years{}
	k := &killed{t: t, clock: clock, shop: newShop(t, options{idle: true, now: clock.Now, lease: killedLease})}
	k.addr.Store("")
	k.still = true // in the end it is moved
	k.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		response, err := http.Post("http://"+k.addr.Load().(string)+r.URL.Path, r.Header.Get("Content-Type"), bytes.NewReader(body))
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		text, err := io.ReadAll(response.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(text)
	}))
	t.Cleanup(k.front.Close)
	k.do(k.sim.SetWebhookURL(k.front.URL + "/webhook"))
	return k
}

func (k *killed) start() {
	k.program = hubtest.Launch(
		k.t,
		[]string{storeVariable + "=" + k.db.URL("payments"), wireVariable + "=" + k.wire, keysetVariable + "=" + k.keyset},
	)
	k.addr.Store(k.program.Addr(k.t))
}

func (k *killed) kill() {
	k.program.Kill()
	k.logs.WriteString(k.program.Log.String())
}

// ask sends a call; false when nobody has answered.
func (k *killed) ask(in asked) (out told, ok bool) {
	body, _ := json.Marshal(in)
	response, err := http.Post(k.front.URL+"/call", "application/json", bytes.NewReader(body))
	if err != nil {
		return out, false
	}
	defer response.Body.Close()
	return out, response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(&out) == nil
}

// insist sends a call with its key until it is answered, as an app does.
func (k *killed) insist(in asked, tries *atomic.Int64) told {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		tries.Add(1)
		out, ok := k.ask(in)
		if ok && out.Code != "E_DB" && out.Detail != "REQUEST_IN_PROGRESS" {
			return out
		}
		time.Sleep(pause)
	}
}

// TestKilledAgainAndAgain: the process is killed with SIGKILL at any point, while apps create, refund and cancel, and money comes. Once
// the jobs have run, what Hub holds is what the provider holds, each call was done once, and its key still answers what it answered
// first (SPEC.md 11, row 10; SPEC.md 12). HUB_KILLS says how often.
func TestKilledAgainAndAgain(t *testing.T) {
	kills := 25
	if n, err := strconv.Atoi(os.Getenv("HUB_KILLS")); err == nil {
		kills = n
	}
	k := newKilled(t)
	began := time.Now()
	var done atomic.Bool
	var tries, answered atomic.Int64
	var mu sync.Mutex
	var kept []keyed
	p := &play{shop: k.shop}
	keep := func(in asked, out told) {
		mu.Lock()
		defer mu.Unlock()
		if out.Code == "" {
			kept = append(kept, keyed{in.Route, in.Key, in.Input, string(out.Data)})
		}
		answered.Add(1)
	}
	var apps sync.WaitGroup
	for app := range 12 {
		apps.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(app), 1))
			for n := 0; !done.Load(); n++ {
				name := fmt.Sprintf("%d-%d", app, n)
				if chance.IntN(6) == 0 {
					_ = k.sim.Arm(
						pgsim.Fault{
							Kind: []string{pgsim.TimeoutBefore, pgsim.TimeoutAfter, pgsim.ServerError, pgsim.Duplicate}[chance.IntN(4)],
							On:   []string{"issue", "cancel", "get"}[chance.IntN(3)],
						},
					)
				}
				in := asked{
					create,
					"u-77",
					"create-" + name,
					fmt.Sprintf(`{"amount":11000,"payMethod":"vbank","clientOrderId":%q,"payment_notify_url":%q}`, name, k.app.url),
				}
				out := k.insist(in, &tries)
				var a answer
				if err := json.Unmarshal(out.Data, &a); err != nil || out.Code != "" {
					t.Errorf("%+v: %+v", in, out)
					return
				}
				keep(in, out)
				mu.Lock()
				p.codes = append(p.codes, a.Order.Code)
				mu.Unlock()
				if chance.IntN(4) == 0 {
					in = asked{cancel, "u-77", "cancel-" + name, `{"code":"` + a.Order.Code + `"}`}
					keep(in, k.insist(in, &tries))
					continue
				}
				_ = k.sim.Deposit(a.Order.Code, 11000, time.Time{}, 1+chance.IntN(2)) // one whose account is not there yet stays unpaid
				k.insist(asked{pull, "u-77", "", `{"code":"` + a.Order.Code + `"}`}, &tries)
				for part := range 1 + chance.IntN(3) {
					in = asked{refund, "u-77", fmt.Sprintf("refund-%s-%d", name, part), refundOf(a.Order.Code, 4000)}
					keep(in, k.insist(in, &tries))
				}
			}
		})
	}
	chance := rand.New(rand.NewPCG(7, 7))
	for range kills {
		k.start()
		time.Sleep(time.Duration(50+chance.IntN(350)) * time.Millisecond)
		k.kill()
	}
	took := time.Since(began)
	k.start()
	done.Store(true)
	apps.Wait()
	if t.Failed() {
		return
	}
	k.do(k.sim.Settle(t.Context()))
	k.kill()
	left := k.rows(`SELECT count(*) FROM payments.idempotency_keys WHERE state = 'running'`)
	waiting := k.rows(
		`SELECT (SELECT count(*) FROM payments.webhooks WHERE outcome = '') + (SELECT count(*) FROM payments.notices WHERE state = 'PENDING')
		+ (SELECT count(*) FROM payments.refunds WHERE status = 'PENDING') + (SELECT count(*) FROM payments.orders WHERE status = 'READY')`,
	)
	time.Sleep(killedLease)
	p.clock, p.kept = k.clock, kept
	p.rest()
	p.sound()
	made := map[string]int64{}
	for _, c := range kept {
		made[c.route]++
	}
	for route, n := range made {
		if rows := k.rows(
			`SELECT count(*) FROM audit.calls WHERE tool = $1 AND outcome = 'ok' AND service = 'svc' AND external_user_id = 'u-77' `+
				`AND credential_id = 'app:svc'`,
			route,
		); rows != n {
			t.Errorf("%s: %d were answered, and the audit log has %d", route, n, rows)
		}
	}
	if orders := k.rows(`SELECT count(*) FROM payments.orders`); orders != made[create] {
		t.Errorf("%d orders of %d calls", orders, made[create])
	}
	if refunds := k.rows(`SELECT count(*) FROM payments.refunds WHERE status <> 'FAILED'`); refunds != made[refund] {
		t.Errorf("%d refunds of %d calls", refunds, made[refund])
	}
	k.verified()
	k.private()
	for _, canary := range []string{clientID, secretKey, accountNumber} {
		if bytes.Contains(k.logs.Bytes(), []byte(canary)) {
			t.Errorf("a log holds %s", canary)
		}
	}
	sent := map[string]int{}
	for _, got := range k.app.all() {
		sent[got.ID]++
	}
	t.Logf(
		"%d kills in %v: %d calls answered after %d tries (%v), %d keys and %d other things were left to the jobs, "+
			"%d messages were sent %d times",
		kills,
		took.Round(time.Millisecond),
		answered.Load(),
		tries.Load(),
		made,
		left,
		waiting,
		len(sent),
		len(k.app.all()),
	)
}

// TestDeliveryOutlivesItsWorker: the process is killed while an app reads a message; the next one sends the same bytes under the same
// id at once, and not after an hour (SPEC.md 12, row 31).
func TestDeliveryOutlivesItsWorker(t *testing.T) {
	k := newKilled(t)
	reads := make(chan took, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		first := len(reads) == 0
		reads <- took{r.Header.Get("Webhook-Id"), r.Header, body}
		if first {
			<-r.Context().Done() // until the process is gone
		}
	}))
	t.Cleanup(slow.Close)
	k.start()
	out, ok := k.ask(asked{create, "u-77", "", fmt.Sprintf(`{"amount":11000,"payMethod":"vbank","payment_notify_url":%q}`, slow.URL)})
	if !ok || out.Code != "" {
		t.Fatalf("%+v", out)
	}
	hubtest.Eventually(t, "the app reads", func() bool { return len(reads) == 1 })
	k.kill()
	began := time.Now()
	k.start()
	hubtest.Eventually(t, "the app reads again", func() bool { return len(reads) == 2 })
	first, again := <-reads, <-reads
	if first.ID != again.ID || first.ID == "" || !bytes.Equal(first.Body, again.Body) || time.Since(began) > 3*time.Minute {
		t.Errorf("%s and %s after %v", first.ID, again.ID, time.Since(began))
	}
	hubtest.Eventually(t, "it is delivered", func() bool {
		return k.rows(`SELECT count(*) FROM payments.notices WHERE state = 'DELIVERED'`) == 1
	})
	t.Logf("sent again after %v", time.Since(began).Round(time.Millisecond))
}
