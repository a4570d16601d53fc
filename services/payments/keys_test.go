package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
	"hub.internal/services/payments"
	"hub.internal/services/payments/api"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/postgres"
)

// twin is the same service in another process, as far as its pool is one of its own.
func (s *shop) twin(config payments.Config, lease time.Duration) *shop {
	s.t.Helper()
	pool, err := pgstore.Open(pgstore.Config{URL: s.db.URL("payments"), MaxConns: 20})
	s.do(err)
	s.t.Cleanup(pool.Close)
	other := *s
	other.pool, other.store, other.routes = pool, postgres.NewWith(pool, postgres.Options{Lease: lease}), map[string]tool.APIRoute{}
	config.Store = other.store
	other.service = payments.New(config)
	for _, r := range api.Routes(other.service) {
		other.routes[r.Spec.Name] = r
	}
	return &other
}

// TestOneKeyTwoProcesses: the same call at once, over two pools, is made once and answered alike (SPEC.md 12, row 23; SPEC.md 11, row 7).
func TestOneKeyTwoProcesses(t *testing.T) {
	t.Parallel()
	var config payments.Config
	s, _ := idleShop(t, options{change: func(c *payments.Config) { config = *c }})
	shops := []*shop{s, s.twin(config, 0)}
	input := `{"amount":11000,"payMethod":"vbank","payment_notify_url":"` + s.app.url + `"}`
	same := func(route, input string) answer {
		t.Helper()
		answers := make([]answer, 20)
		for i, err := range together(len(answers), patiently(func(i int) (err error) {
			answers[i], err = shops[i%2].call(route, "one", input)
			return err
		})) {
			if err != nil {
				t.Errorf("%s %d: %v", route, i, err)
			}
		}
		first := 0
		for _, a := range answers {
			if !a.Replayed {
				first++
			}
			if a.Raw != answers[0].Raw || a.Status != answers[0].Status {
				t.Errorf("%s\nand\n%s", a.Raw, answers[0].Raw)
			}
		}
		if first != 1 {
			t.Errorf("%s: %d were made", route, first)
		}
		return answers[0]
	}
	o := same(create, input).Order
	if n := s.rows(`SELECT count(*) FROM payments.orders`); n != 1 {
		t.Errorf("%d orders", n)
	}
	s.deposit(o.Code, 11000, 1)
	s.drain()
	s.refused(refund, "one", refundOf(o.Code, 1000), fault.Conflict, "IDEMPOTENCY_KEY_CONFLICT") // a key is one for all routes (25)
	s.refused(cancel, "one", `{"code":"`+o.Code+`"}`, fault.Conflict, "IDEMPOTENCY_KEY_CONFLICT")
	if _, err := s.super.Exec(t.Context(), `DELETE FROM payments.idempotency_keys`); err != nil {
		t.Fatal(err)
	}
	same(refund, refundOf(o.Code, 4000))
	asked := 0
	for _, c := range s.sim.Calls() {
		if c.On == "cancel" || c.On == "issue" && c.Method == "POST" {
			asked++
		}
	}
	if asked != 2 || s.truth(o.Code).Cancelled != 4000 {
		t.Errorf("the provider heard %d requests, %d went back", asked, s.truth(o.Code).Cancelled)
	}
}

// TestKeyOfAnotherCall: another input, another order, another user: refused, done nothing, and nothing of the first answer is told
// (SPEC.md 12, rows 24 and 25; SPEC.md 11, row 8).
func TestKeyOfAnotherCall(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.order("k")
	before := s.rows(`SELECT count(*) FROM payments.orders`)
	calls := len(s.sim.Calls())
	for what, input := range map[string]string{
		"amount": `{"amount":12000,"payMethod":"vbank","payment_notify_url":"` + s.app.url + `"}`,
		"method": `{"supplyAmount":10000,"vat":1000,"payment_notify_url":"` + s.app.url + `"}`,
		"name":   `{"supplyAmount":10000,"vat":1000,"payMethod":"vbank","orderName":"x","payment_notify_url":"` + s.app.url + `"}`,
	} {
		_, err := s.call(create, "k", input)
		said, _ := json.Marshal(fault.From(err))
		if detail(err) != "IDEMPOTENCY_KEY_CONFLICT" || strings.Contains(string(said), o.Code) || strings.Contains(err.Error(), o.Code) {
			t.Errorf("%s: %v %s", what, err, said)
		}
	}
	same := `{"supplyAmount":10000,"vat":1000,"payMethod":"vbank","payment_notify_url":"` + s.app.url + `"}`
	if _, err := s.callAs("svc", "u-78", create, "k", same); detail(err) != "IDEMPOTENCY_KEY_CONFLICT" {
		t.Errorf("another user: %v", err)
	}
	// The order of members and spaces make no other call.
	a, err := s.call(create, "k", `{ "payment_notify_url":"`+s.app.url+`","vat":1000,  "payMethod":"vbank","supplyAmount":10000}`)
	if err != nil || !a.Replayed || a.Order.Code != o.Code {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := s.callAs(
		"svc-b",
		"u-77",
		create,
		"k",
		same,
	); err != nil || a.Replayed ||
		a.Order.Code == o.Code { // another app's keys are its own
		t.Errorf("%+v, %v", a, err)
	}
	if n := s.rows(`SELECT count(*) FROM payments.orders`); n != before+1 || len(s.sim.Calls()) <= calls {
		t.Errorf("%d orders", n-before)
	}
}

// TestDefaultsMakeNoOtherCall: a default that is written out is the default, in either order (SPEC.md 7.1), and anything else is another
// call.
func TestDefaultsMakeNoOtherCall(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	const vbank = `{"amount":11000,"payMethod":"vbank"}`
	paid := s.paidIdle()
	refunded := `{"code":"` + paid.Code + `","amount":100,` + account + `}`
	for i, c := range []struct {
		route, left, written string
		other                bool
	}{
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":null}`, false},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":{}}`, false},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":{"validHours":168}}`, false},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":{"validHours":168,"holder":"Hub"},"buyer":{},"metadata":{}}`, false},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":{"validHours":167}}`, true},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","vbank":{"holder":"hub"}}`, true},
		{create, vbank, `{"amount":11000,"payMethod":"vbank","metadata":{"a":""}}`, true},
		{create, `{"amount":11000}`, `{"amount":11000,"payMethod":"card","orderName":null,"metadata":{}}`, false},
		{create, `{"supplyAmount":10000}`, `{"supplyAmount":10000,"vat":0}`, false},
		{create, `{"amount":11000}`, `{"amount":11000,"vat":0}`, true}, // which holds a tax of 1/11 where it says nothing
		{refund, refunded, refunded[:len(refunded)-1] + `,"reason":"requested"}`, false},
		{refund, refunded, refunded[:len(refunded)-1] + `,"reason":"asked"}`, true},
	} {
		for turn, pair := range [][2]string{{c.left, c.written}, {c.written, c.left}} {
			key := fmt.Sprint("k", i, "-", turn)
			a := s.must(c.route, key, pair[0])
			b, err := s.call(c.route, key, pair[1])
			if c.other && detail(err) != "IDEMPOTENCY_KEY_CONFLICT" || !c.other && (err != nil || !b.Replayed || b.Raw != a.Raw) {
				t.Errorf("%s after %s: %v, replayed %v", pair[1], pair[0], err, b.Replayed)
			}
		}
	}
}

// TestOthersOrdersAreNotThere: of another app, or another user of the same app, on every route (SPEC.md 1).
func TestOthersOrdersAreNotThere(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	o := s.must(create, "", `{"amount":11000,"payMethod":"vbank","clientOrderId":"c-1","payment_notify_url":"`+s.app.url+`"}`).Order
	s.deposit(o.Code, 11000, 1)
	s.drain()
	id := s.events(o.Code).Notifications[0].ID
	inputs := map[string]string{
		"pay.orders.show":             `{"code":"` + o.Code + `"}`,
		refund:                        refundOf(o.Code, 1),
		cancel:                        `{"code":"` + o.Code + `"}`,
		pull:                          `{"code":"` + o.Code + `"}`,
		"pay.orders.events":           `{"code":"` + o.Code + `"}`,
		"pay.notifications.redeliver": `{"code":"` + o.Code + `","id":"` + id + `"}`,
	}
	for name, r := range s.routes {
		if strings.Contains(r.Spec.Path, "{code}") && !strings.Contains(r.Spec.Path, "/return/") && inputs[name] == "" {
			t.Errorf("%s is not tried", name)
		}
	}
	calls, version := len(s.sim.Calls()), s.show(o.Code).Version
	for route, input := range inputs {
		for _, who := range [][2]string{{"svc-b", "u-77"}, {"svc", "u-78"}, {"svc", ""}} {
			_, err := s.callAs(who[0], who[1], route, "k", input)
			missing, none := fault.From(err), fault.From(payments.NoSuchOrder(o.Code))
			if missing.Code != fault.NotFound || missing.Error() != none.Error() ||
				fmt.Sprint(missing.Details) != fmt.Sprint(none.Details) {
				t.Errorf("%s by %v: %v", route, who, err)
			}
		}
	}
	for _, who := range [][2]string{{"svc-b", "u-77"}, {"svc", "u-78"}} {
		if a, err := s.callAs(who[0], who[1], "pay.orders.list", "", `{}`); err != nil || len(a.Orders.Orders) != 0 {
			t.Errorf("%v: %s, %v", who, a.Raw, err)
		}
	}
	if n := len(s.sim.Calls()); n != calls || s.show(o.Code).Version != version {
		t.Errorf("the provider was asked %d times", n-calls)
	}
	// An id that another user of the app has taken says no more than that.
	_, err := s.callAs("svc", "u-78", create, "k", `{"amount":11000,"clientOrderId":"c-1"}`)
	said, _ := json.Marshal(fault.From(err).Details)
	if detail(err) != "CLIENT_ORDER_ID_TAKEN" || bytes.Contains(said, []byte("po_")) || strings.Contains(err.Error(), "po_") ||
		strings.Contains(err.Error(), "11000") {
		t.Errorf("%v %s", err, said)
	}
	if a, err := s.callAs("svc-b", "u-77", create, "k", `{"amount":11000,"clientOrderId":"c-1"}`); err != nil || a.Order.Code == o.Code {
		t.Errorf("%s, %v", a.Raw, err)
	}
}

// TestAClientOrderIDIsOfOneEnvironment: an order that was made for another environment than that of new orders is no answer to a call, so
// that what was paid in the sandbox is not taken for paid (SPEC.md 4.2).
func TestAClientOrderIDIsOfOneEnvironment(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	const input = `{"amount":11000,"payMethod":"vbank","clientOrderId":"c-1"}`
	o := s.must(create, "", input).Order
	move := func(env credentials.Env) {
		t.Helper()
		_, err := s.super.Exec(t.Context(), `UPDATE payments.orders SET env = $2 WHERE code = $1`, o.Code, env)
		s.do(err)
	}
	move(credentials.Production)
	s.refused(create, "", input, fault.Conflict, "CLIENT_ORDER_ID_OTHER_ENV")
	s.refused(create, "k", input, fault.Conflict, "CLIENT_ORDER_ID_OTHER_ENV")
	move(credentials.Sandbox)
	if a := s.must(create, "k", input); a.Status != http.StatusOK || a.Order.Code != o.Code {
		t.Errorf("%d %s", a.Status, a.Raw)
	}
}

// TestClientOrderID: the same one is the same order; another amount is a conflict (SPEC.md 4.2).
func TestClientOrderID(t *testing.T) {
	t.Parallel()
	s, _ := idleShop(t, options{})
	input := func(amount int) string {
		return fmt.Sprintf(`{"amount":%d,"payMethod":"vbank","clientOrderId":"c-1","payment_notify_url":%q}`, amount, s.app.url)
	}
	codes := make([]string, 20)
	created := atomic.Int64{}
	for i, err := range together(20, patiently(func(i int) error {
		key := ""
		if i%2 == 0 {
			key = fmt.Sprint("k-", i)
		}
		a, err := s.call(create, key, input(11000))
		codes[i] = a.Order.Code
		if a.Status == 201 {
			created.Add(1)
		}
		return err
	})) {
		if err != nil || codes[i] != codes[0] {
			t.Errorf("%s, %v", codes[i], err)
		}
	}
	if created.Load() != 1 || len(s.truth(codes[0]).Payments) != 1 {
		t.Errorf("%d were made", created.Load())
	}
	s.refused(create, "x", input(12000), fault.Conflict, "AMOUNT_MISMATCH")
	s.refused(
		create,
		"",
		`{"supplyAmount":11000,"payMethod":"vbank","clientOrderId":"c-1"}`,
		fault.Conflict,
		"AMOUNT_MISMATCH",
	) // the same sum, other tax
	if a := s.must(create, "x", input(11000)); a.Status != 200 || a.Order.Code != codes[0] {
		t.Errorf("%d %s", a.Status, a.Raw)
	}
	if n := s.rows(`SELECT count(*) FROM payments.orders`); n != 1 {
		t.Errorf("%d orders", n)
	}
}

// dies is a store whose process ends before a step of a call is kept.
type dies struct {
	payments.Store
	at atomic.Int64 // how many changes and releases are kept still
}

var errDead = fault.New(fault.DB, "the process has died")

func (d *dies) dead() bool { return d.at.Add(-1) < 0 }

func (d *dies) Change(
	ctx context.Context,
	code string,
	by payments.Actor,
	do func(*order.Aggregate) error,
	end *payments.Completion,
) (*order.Aggregate, error) {
	if d.dead() {
		return nil, errDead
	}
	return d.Store.Change(ctx, code, by, do, end)
}

func (d *dies) Order(ctx context.Context, code string) (*order.Aggregate, error) {
	if d.at.Load() < 0 {
		return nil, errDead
	}
	return d.Store.Order(ctx, code)
}

func (d *dies) Release(ctx context.Context, c write.Claim) error {
	if d.at.Load() < 0 {
		return errDead
	}
	return d.Store.Release(ctx, c)
}

// TestCallsWhoseProcessHasGone: wherever it ends, the same key, or the job, brings the call to the end that it would have had, with one
// effect and one row of the audit log (SPEC.md 7.2; SPEC.md 11, row 10).
func TestCallsWhoseProcessHasGone(t *testing.T) {
	t.Parallel()
	const lease = 50 * time.Millisecond
	var config payments.Config
	s, clock := idleShop(t, options{lease: lease, change: func(c *payments.Config) { config = *c }})
	n := 0
	for _, kind := range []string{"", pgsim.TimeoutAfter, pgsim.Decline} {
		for step := range 4 {
			for _, byJob := range []bool{true, false} {
				if kind != "" && byJob == (step%2 == 0) {
					continue
				}
				for _, route := range []string{create, refund, cancel} {
					n++
					name := fmt.Sprintf("%s, %q, dead before change %d, ended by the job %v", route, kind, step, byJob)
					key := fmt.Sprint("k-", n)
					var o order.View
					input := fmt.Sprintf(
						`{"amount":11000,"payMethod":"vbank","clientOrderId":"c-%d","payment_notify_url":%q}`,
						n,
						s.app.url,
					)
					on := "cancel"
					switch route {
					case create:
						on = "issue"
					case refund:
						o = s.paidIdle()
						input = refundOf(o.Code, 4000)
					case cancel:
						o = s.order("")
						s.drain()
						input = `{"code":"` + o.Code + `"}`
					}
					if kind != "" {
						s.arm(kind, on, 1)
					}
					store := &dies{Store: s.store}
					store.at.Store(int64(step))
					c := config
					c.Store, c.Logger = store, slog.New(slog.DiscardHandler)
					dying := *s
					dying.service, dying.routes = payments.New(c), map[string]tool.APIRoute{}
					for _, r := range api.Routes(dying.service) {
						dying.routes[r.Spec.Name] = r
					}
					audited := s.rows(`SELECT count(*) FROM audit.calls`)
					first, firstErr := dying.call(route, key, input)
					s.sim.Heal()
					time.Sleep(lease + 10*time.Millisecond)
					clock.Advance(3 * time.Minute)
					if byJob {
						s.do(s.service.Complete(t.Context()))
						if left := s.rows(`SELECT count(*) FROM payments.idempotency_keys WHERE state = 'running'`); left != 0 {
							t.Errorf("%s: %d calls are left", name, left)
						}
					}
					a, err := s.call(route, key, input)
					declined := detail(err) == "PROVIDER_DECLINED" || detail(err) == "ORDER_NOT_CANCELABLE" ||
						detail(err) == "AMOUNT_MISMATCH"
					if err != nil && !declined {
						t.Fatalf("%s: %v, after %v", name, err, firstErr)
					}
					if firstErr == nil && (err != nil || a.Raw != first.Raw || !a.Replayed) {
						t.Fatalf("%s: the answer has changed: %v\n%s\n%s", name, err, first.Raw, a.Raw)
					}
					code := o.Code
					if route == create && err == nil {
						code = a.Order.Code
					}
					if code != "" {
						s.resolve(code)
						s.drain()
					}
					switch route {
					case create:
						if n := s.rows(`SELECT count(*) FROM payments.orders WHERE client_order_id = $1`, fmt.Sprintf("c-%d", n)); n != 1 {
							t.Errorf("%s: %d orders", name, n)
						}
						if kind != pgsim.Decline && (s.show(code).Status != order.AwaitingDeposit || len(s.truth(code).Payments) != 1) {
							t.Errorf("%s: %+v", name, s.show(code))
						}
					case refund:
						got := s.show(code)
						if truth := s.truth(
							code,
						); truth.Cancelled != got.RefundedAmount || got.PendingRefundAmount != 0 ||
							err == nil && got.RefundedAmount != 4000 {
							t.Errorf("%s: %+v of %+v", name, got, truth)
						}
					case cancel:
						if got := s.show(code); err == nil && (got.Status != order.Canceled || s.truth(code).Status != "cancelled") {
							t.Errorf("%s: %+v", name, got)
						}
					}
					if rows := s.rows(`SELECT count(*) FROM audit.calls`) - audited; err == nil && rows != 1 || rows > 1 {
						t.Errorf("%s: %d rows in the audit log, %v", name, rows, err)
					}
				}
			}
		}
	}
	if wrong := s.texts(
		`SELECT to_json(c)::text FROM audit.calls c WHERE service <> 'svc' OR external_user_id <> 'u-77' OR credential_id <> 'app:svc'
		OR tool NOT IN ('pay.orders.create', 'pay.orders.refund', 'pay.orders.cancel')`,
	); len(
		wrong,
	) > 0 {
		t.Errorf("%d rows of the audit log do not say whose call it was, such as %s", len(wrong), wrong[0])
	}
}

// TestLeftCallIsNotAnsweredWithAnothersOrder: a call with a clientOrderId that another user has taken tells its caller nothing, also
// when its process has gone before that was found out, and the job comes first.
func TestLeftCallIsNotAnsweredWithAnothersOrder(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Millisecond
	var config payments.Config
	s, _ := idleShop(t, options{lease: lease, change: func(c *payments.Config) { config = *c }})
	o := s.must(create, "", `{"amount":11000,"payMethod":"vbank","clientOrderId":"c-1"}`).Order
	store := &dies{Store: s.store}
	store.at.Store(-1)
	config.Store = store
	dying := *s
	dying.service, dying.routes = payments.New(config), map[string]tool.APIRoute{}
	for _, r := range api.Routes(dying.service) {
		dying.routes[r.Spec.Name] = r
	}
	for name, row := range map[string]struct{ user, input, want string }{
		"another user":   {"u-78", `{"amount":11000,"payMethod":"vbank","clientOrderId":"c-1"}`, "CLIENT_ORDER_ID_TAKEN"},
		"another amount": {"u-77", `{"amount":12000,"payMethod":"vbank","clientOrderId":"c-1"}`, "AMOUNT_MISMATCH"},
	} {
		_, _ = dying.callAs("svc", row.user, create, name, row.input)
		time.Sleep(2 * lease)
		s.do(s.service.Complete(t.Context()))
		if a, err := s.callAs("svc", row.user, create, name, row.input); detail(err) != row.want || strings.Contains(a.Raw, o.Code) {
			t.Errorf("%s: %v %s", name, err, a.Raw)
		}
	}
}
