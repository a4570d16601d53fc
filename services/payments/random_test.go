package payments_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// years is a clock that goes on from one run to the next, by months, so that each begins at the same time of a day. From zero it is the
// machine's, and as far ahead as it was moved.
type years struct {
	mu    sync.Mutex
	now   time.Time
	ahead time.Duration
}

func (y *years) Now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.now.IsZero() {
		return time.Now().Add(y.ahead)
	}
	return y.now
}

func (y *years) advance(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.now.IsZero() {
		y.ahead += d
		return
	}
	y.now = y.now.Add(d)
}

func (y *years) nextRun() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = time.Date(y.now.Year(), y.now.Month()+4, 15, 9, 0, 0, 0, time.UTC)
}

// play is one run of the machine.
type play struct {
	*shop
	r     *rapid.T
	clock *years
	codes []string
	kept  []keyed
	n     int
}

// keyed is a call with a key that was answered.
type keyed struct{ route, key, input, raw string }

func (p *play) fatal(format string, args ...any) {
	log := p.logs.String()
	fail := p.t.Fatalf
	if p.r != nil {
		fail = p.r.Fatalf
	}
	fail(format+"\nlog: %s", append(args, log[max(0, len(log)-4000):])...)
}

// allowed are the refusals that a caller can be given; anything else is a defect.
func (p *play) allowed(what string, err error) {
	if err == nil || fault.Is(err, fault.Conflict) || fault.Is(err, fault.DB) {
		return
	}
	p.fatal("%s: %v", what, err)
}

func (p *play) send(route, key, input string) {
	a, err := p.call(route, key, input)
	p.allowed(route+" "+input, err)
	if err != nil {
		return
	}
	if key != "" && route != pull {
		p.kept = append(p.kept, keyed{route, key, input, a.Raw})
	}
	if route == create && !slices.Contains(p.codes, a.Order.Code) {
		p.codes = append(p.codes, a.Order.Code)
	}
}

func (p *play) key() string {
	if p.n++; rapid.IntRange(0, 2).Draw(p.r, "keyed") == 0 {
		return ""
	}
	return fmt.Sprint("k-", p.n)
}

func (p *play) order() string {
	if len(p.codes) == 0 {
		p.create()
	}
	if len(p.codes) == 0 {
		p.r.Skip("no order")
	}
	return p.codes[rapid.IntRange(0, len(p.codes)-1).Draw(p.r, "order")]
}

func (p *play) create() {
	input := rapid.SampledFrom(
		[]string{`"amount":11000,"payMethod":"vbank"`, `"amount":11000,"payMethod":"vbank","vbank":{"validHours":2}`, `"amount":11000`},
	).Draw(
		p.r,
		"what",
	)
	if rapid.IntRange(0, 3).Draw(p.r, "own id") == 0 {
		input += fmt.Sprintf(`,"clientOrderId":"c-%d"`, rapid.IntRange(1, 3).Draw(p.r, "id"))
	}
	p.send(create, p.key(), `{`+input+`,"payment_notify_url":"`+p.app.url+`"}`)
}

func (p *play) refund() {
	amount := rapid.SampledFrom([]int64{1, 4000, 6600, 11000}).Draw(p.r, "amount")
	p.send(refund, p.key(), refundOf(p.order(), amount))
}

func (p *play) one(route string) {
	p.send(route, p.key(), `{"code":"`+p.order()+`"}`)
}

// work looks into what has come, and tells what is to be told.
func (p *play) work() {
	ctx := context.Background()
	if err := p.sim.Settle(ctx); err != nil {
		p.fatal("%v", err)
	}
	for _, key := range p.texts(`SELECT event_key FROM payments.webhooks WHERE outcome IN ('', 'UNMATCHED') ORDER BY tid, ctid`) {
		_, err := p.service.ProcessWebhook(ctx, "nicepay", credentials.Sandbox, key)
		p.allowed("webhook", err)
	}
	for _, id := range p.texts(`SELECT id FROM payments.notices WHERE state = 'PENDING' ORDER BY order_id, seq`) {
		_, err := p.service.Notify(ctx, id)
		p.allowed("message", err)
	}
}

func (p *play) look(code string) {
	_, err := p.service.Resolve(context.Background(), code)
	p.allowed("resolve", err)
}

func (p *play) money() {
	code := p.order()
	truth, _ := p.sim.Payment(code)
	does := []string{"deposit", "deposit", "deposit", "other", "reverse", "console", "return"}
	if truth.Method != "vbank" {
		does = []string{"card", "card", "fail", "console", "return"}
	}
	var err error
	switch rapid.SampledFrom(does).Draw(p.r, "money") {
	case "deposit":
		p.pays(code, 11000, rapid.IntRange(1, 3).Draw(p.r, "times"))
	case "other":
		p.pays(code, 5000, 1)
	case "card":
		err = p.sim.Pay(code)
	case "fail":
		err = p.sim.Fail(code)
	case "reverse":
		if truth.Status != "cancelled" { // nothing is left to take back
			err = p.sim.Reverse(code)
		}
	case "console":
		err = p.sim.ConsoleCancel(code, rapid.SampledFrom([]int64{0, 1000, 5000}).Draw(p.r, "amount"))
	case "return":
		if refunds := p.texts(
			`SELECT r.code FROM payments.refunds r JOIN payments.orders o ON o.id = r.order_id WHERE o.code = $1 ORDER BY r.created_at, r.amount`,
			code,
		); len(
			refunds,
		) > 0 {
			err = p.sim.FailRefundLater(rapid.SampledFrom(refunds).Draw(p.r, "refund"))
		}
	}
	_ = err // what nobody could do is not done
}

// pays moves money to an account, unless a part of what was there went back both ways: no bank's books are like that.
func (p *play) pays(code string, amount int64, times int) {
	if truth, _ := p.sim.Payment(
		code,
	); truth.Method == "vbank" &&
		(truth.Status != "ready" && truth.Status != "expired" || len(truth.Cancels) == 0) {
		_ = p.sim.Deposit(code, amount, time.Time{}, times)
	}
}

func (p *play) breaks() {
	on := rapid.SampledFrom([]string{"issue", "cancel", "cancel", "get", "webhook"}).Draw(p.r, "on")
	kinds := []string{
		pgsim.TimeoutBefore,
		pgsim.TimeoutAfter,
		pgsim.ServerError,
		pgsim.Duplicate,
		pgsim.Garbage,
		pgsim.WrongOrder,
		pgsim.Decline,
	}
	switch on {
	case "webhook":
		kinds = []string{pgsim.Duplicate, pgsim.Drop, pgsim.Garbage, pgsim.WrongOrder}
	case "issue", "cancel":
		kinds = append(kinds, pgsim.WebhookFirst)
	}
	f := pgsim.Fault{Kind: rapid.SampledFrom(kinds).Draw(p.r, "kind"), On: on, Times: rapid.IntRange(1, 2).Draw(p.r, "times")}
	if on == "cancel" && f.Kind == pgsim.Decline {
		f.Code = rapid.SampledFrom([]string{"2016", "2026", "9999"}).Draw(p.r, "code")
	}
	if err := p.sim.Arm(f); err != nil {
		p.fatal("%v", err)
	}
}

// pair does two things at once.
func (p *play) pair() {
	code := p.order()
	does := []func() error{
		func() error { _, err := p.call(refund, "", refundOf(code, 6600)); return err },
		func() error { _, err := p.call(refund, "", refundOf(code, 4000)); return err },
		func() error { _, err := p.call(cancel, "", `{"code":"`+code+`"}`); return err },
		func() error { _, err := p.call(pull, "", `{"code":"`+code+`"}`); return err },
		func() error { _ = p.sim.Pay(code); return nil },
		func() error { p.pays(code, 11000, 1); return nil },
		func() error { _ = p.sim.ConsoleCancel(code, 1000); return nil },
		func() error { _, err := p.service.Resolve(context.Background(), code); return err },
		func() error { return p.service.Complete(context.Background()) },
	}
	i, j := rapid.IntRange(0, len(does)-1).Draw(p.r, "one"), rapid.IntRange(0, len(does)-1).Draw(p.r, "other")
	for _, err := range together(2, func(k int) error { return does[[]int{i, j}[k]]() }) {
		p.allowed("at once", err)
	}
}

// rest lets everything come to its end: nothing breaks any more, everything is told, and the jobs have run.
func (p *play) rest() {
	ctx := context.Background()
	p.sim.Heal()
	p.app.answer(http.StatusOK)
	for range 2 {
		for _, code := range p.codes {
			if truth, known := p.sim.Payment(code); known {
				for _, m := range truth.Payments { // what was lost is told again
					p.acked(p.hook(m, code, m.Status))
				}
			}
		}
		p.clock.advance(6 * time.Minute)
		p.work()
		p.allowed("complete", p.service.Complete(ctx))
		for _, code := range p.codes {
			p.look(code)
		}
		p.clock.advance(21 * time.Hour)
		p.allowed("sweep", p.service.Sweep(ctx))
		p.work()
	}
	for _, code := range p.codes {
		p.look(code)
	}
	p.work()
}

// TestWhateverHappens plays apps, payers, banks, faults and time at random; when everything has come to rest, what Hub holds is what the
// provider holds, and SPEC.md 11 is true of it. -rapid.checks asks for more runs than fit into its time.
func TestWhateverHappens(t *testing.T) {
	t.Parallel()
	const least = 15 * time.Second
	clock := &years{now: time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)}
	s := newShop(t, options{idle: true, now: clock.Now, lease: time.Minute})
	s.still = true
	bounded, began, runs, seen := flag.Lookup(
		"rapid.checks",
	).Value.String() == flag.Lookup(
		"rapid.checks",
	).DefValue, time.Now(), 0, map[string]int64{}
	rapid.Check(t, func(r *rapid.T) {
		if bounded && time.Since(began) > least {
			return
		}
		defer func() {
			if failed := recover(); failed != nil {
				bounded = false // it is made smaller now, whatever time that takes
				panic(failed)
			}
		}()
		runs++
		p := &play{shop: s, r: r, clock: clock}
		p.forget()
		r.Repeat(map[string]func(*rapid.T){
			"create":    func(r *rapid.T) { p.r = r; p.create() },
			"refund":    func(r *rapid.T) { p.r = r; p.refund() },
			"cancel":    func(r *rapid.T) { p.r = r; p.one(cancel) },
			"reconcile": func(r *rapid.T) { p.r = r; p.one(pull) },
			"money":     func(r *rapid.T) { p.r = r; p.money() },
			"money 2":   func(r *rapid.T) { p.r = r; p.money() },
			"break":     func(r *rapid.T) { p.r = r; p.breaks() },
			"work":      func(r *rapid.T) { p.r = r; p.work() },
			"pair":      func(r *rapid.T) { p.r = r; p.pair() },
			"return": func(r *rapid.T) {
				p.r = r
				_, _, err := s.service.Return(context.Background(), p.order())
				p.allowed("return", err)
			},
			"app": func(r *rapid.T) { p.r = r; s.app.answer(rapid.SampledFrom([]int{200, 200, 500}).Draw(r, "app")) },
			"time": func(r *rapid.T) {
				p.r = r
				clock.advance(
					rapid.SampledFrom(
						[]time.Duration{time.Second, 3 * time.Minute, 15 * time.Minute, 3 * time.Hour, 25 * time.Hour},
					).Draw(
						r,
						"time",
					),
				)
				for _, code := range p.codes {
					p.look(code)
				}
				p.allowed("sweep", s.service.Sweep(context.Background()))
			},
			"again": func(r *rapid.T) {
				if p.r = r; len(p.kept) > 0 {
					p.replay(p.kept[rapid.IntRange(0, len(p.kept)-1).Draw(r, "call")])
				}
			},
		})
		p.r = r
		p.rest()
		p.sound()
		for _, state := range s.texts(`SELECT status || ' ' || attention FROM payments.orders`) {
			seen[state]++
		}
	})
	s.verified()
	s.private()
	t.Logf("%d runs in %v, ends: %v", runs, time.Since(began).Round(time.Second), seen)
}

// forget begins with nothing.
func (p *play) forget() {
	p.sim.Heal()
	p.clock.nextRun()
	p.app.answer(http.StatusOK)
	if _, err := p.super.Exec(
		context.Background(),
		`TRUNCATE payments.orders, payments.webhooks, payments.sweeps, payments.idempotency_keys, payments.river_job CASCADE`,
	); err != nil {
		p.fatal("%v", err)
	}
}

func (p *play) replay(k keyed) {
	if a, err := p.call(k.route, k.key, k.input); err != nil || !a.Replayed || a.Raw != k.raw {
		p.fatal("%s %s is answered otherwise: %v\n%s\n%s", k.route, k.input, err, k.raw, a.Raw)
	}
}

// sound holds the store to SPEC.md 11, and to what the provider holds.
func (p *play) sound() {
	for what, sql := range faultsInStore() {
		if found := p.texts(sql); len(found) > 0 {
			p.fatal("%s: %v", what, found)
		}
	}
	for _, k := range p.kept {
		p.replay(k)
	}
	for _, code := range p.codes {
		p.agrees(code)
	}
}

// faultsInStore are questions whose answers have to be empty once everything has come to rest.
func faultsInStore() map[string]string {
	var pairs []string
	for _, row := range order.Transitions() {
		pairs = append(pairs, fmt.Sprintf("('%s', '%s', '%s', '%s')", row.From, row.Trigger, row.To, row.Notification))
	}
	table := `(VALUES ` + strings.Join(pairs, ", ") + `) AS m (from_status, trigger, to_status, tells)`
	return map[string]string{
		"amounts (1, 2)": `SELECT code FROM payments.orders WHERE amount <> supply_amount + vat OR amount NOT BETWEEN 1 AND 100000000
			OR refunded_amount + pending_refund > paid_amount OR paid_amount > amount`,
		"refunds do not add up (3)": `SELECT o.code FROM payments.orders o LEFT JOIN payments.refunds r ON r.order_id = o.id GROUP BY o.id
			HAVING coalesce(sum(r.amount) FILTER (WHERE r.status = 'SUCCEEDED'), 0) <> o.refunded_amount
			OR coalesce(sum(r.amount) FILTER (WHERE r.status = 'PENDING'), 0) <> o.pending_refund`,
		"PAID without its deposit (4)": `SELECT o.code FROM payments.orders o LEFT JOIN payments.deposits d ON d.order_id = o.id
			AND d.state = 'APPLIED' GROUP BY o.id
			HAVING (o.status IN ('PAID', 'REFUNDED')) <> (count(d.id) = 1 AND min(d.amount) = o.amount) OR count(d.id) > 1`,
		"events that are not in the table (5)": `SELECT o.code || ' ' || e.from_status || ' ' || e.trigger || ' ' || e.to_status
			FROM payments.order_events e
			JOIN payments.orders o ON o.id = e.order_id LEFT JOIN ` + table + ` USING (from_status, trigger, to_status) WHERE m.tells IS NULL`,
		"versions with gaps (5)": `SELECT o.code FROM payments.orders o JOIN payments.order_events e ON e.order_id = o.id GROUP BY o.id
			HAVING count(*) <> o.version OR max(e.seq) <> o.version OR min(e.seq) <> 1`,
		"events that do not follow one another (5)": `SELECT code || ' ' || seq FROM (SELECT o.code, e.seq, e.from_status, lag(e.to_status, 1,
			'') OVER (PARTITION BY o.id ORDER BY e.seq) AS was,
			e.to_status, o.status, o.version FROM payments.order_events e JOIN payments.orders o ON o.id = e.order_id) s
			WHERE from_status <> was OR seq = version AND to_status <> status`,
		"messages, one for each event that tells (6)": `SELECT o.code || ' ' || e.seq FROM payments.order_events e JOIN payments.orders o
			ON o.id = e.order_id
			JOIN ` + table + ` USING (from_status, trigger, to_status) LEFT JOIN payments.notices n ON n.order_id = e.order_id AND n.seq = e.seq
			WHERE (m.tells <> '') <> (n.id IS NOT NULL) OR n.type <> m.tells`,
		"messages of no event (6)": `SELECT n.id FROM payments.notices n WHERE NOT EXISTS (SELECT FROM payments.order_events e ` +
			`WHERE e.order_id = n.order_id AND e.seq = n.seq)`,
		"messages that were not delivered (6)": `SELECT n.id || ' ' || n.state FROM payments.notices n WHERE n.state NOT IN ('DELIVERED', 'DEAD')
			OR n.state = 'DELIVERED' AND NOT EXISTS (SELECT FROM payments.notice_attempts a WHERE a.notice_id = n.id AND a.delivered)`,
		"REFUNDED with a balance (15)": `SELECT code FROM payments.orders WHERE status = 'REFUNDED' AND paid_amount <> refunded_amount`,
		"what waits still":             `SELECT code FROM payments.orders WHERE pending_refund > 0 OR status = 'READY' AND pay_method = 'vbank'`,
		"keys that nobody ends":        `SELECT key FROM payments.idempotency_keys WHERE state = 'running'`,
		"webhooks that wait":           `SELECT event_key FROM payments.webhooks WHERE outcome = ''`,
	}
}

// agrees holds one order to what the provider holds of it (SPEC.md 11, rows 3, 9 and 13).
func (p *play) agrees(code string) {
	a, err := p.call("pay.orders.show", "", `{"code":"`+code+`"}`)
	if err != nil {
		p.fatal("%v", err)
	}
	o := a.Order
	truth, _ := p.sim.Payment(code)
	wrong := func(what string) { p.fatal("%s\n%+v\n%+v", what, o, truth) }
	attention := order.Attention("")
	if o.Attention != nil {
		attention = *o.Attention
	}
	reversed := attention == order.ReversedAfterRefund || p.happenedNow(code, order.ReverseTooLate)
	if reversed {
		return // what went back after a refund is an operator's
	}
	back := map[string]pgsim.Return{}
	asked := map[string]int{}
	for _, c := range truth.Cancels {
		back[c.TID] = c
		if asked[c.Code]++; c.Code != "" && asked[c.Code] > 1 {
			wrong("a refund was made twice")
		}
	}
	known := map[string]bool{}
	for _, tid := range p.texts(`SELECT r.tid FROM payments.refunds r JOIN payments.orders o ON o.id = r.order_id WHERE o.code = $1 `+
		`AND r.status = 'SUCCEEDED'`, code) {
		if c, ok := back[tid]; !ok || c.Failed {
			wrong("a refund succeeded that the provider does not hold: " + tid)
		}
		known[tid] = true
	}
	if len(truth.Payments) > 1 {
		return // so is which of several payments counts
	}
	ended := o.Status == order.Expired || o.Status == order.Canceled || o.Status == order.Failed
	if o.Status == order.Paid || o.Status == order.Refunded {
		for _, c := range truth.Cancels {
			if !c.Failed && !known[c.TID] {
				wrong("the provider has paid back what Hub does not know: " + c.TID)
			}
		}
		if truth.Paid != o.PaidAmount || truth.Cancelled != o.RefundedAmount {
			wrong("the sums differ")
		}
	}
	good := false
	switch truth.Status {
	case "", "failed":
		good = ended || o.Status == order.Ready && o.PayMethod == provider.Card && truth.Status == ""
	case "ready":
		good = o.Status == order.AwaitingDeposit
	case "expired":
		good = ended
	case "cancelled":
		good = o.Status == order.Refunded || ended || truth.Amount != o.Amount
		if truth.Paid == 0 {
			good = ended
		}
		if truth.Paid > 0 && truth.Payments[0].Amount != o.Amount {
			good = attention == order.AmountMismatch || ended
		}
	case "paid", "partialCancelled":
		good = o.Status == order.Paid || ended && attention != ""
		if truth.Payments[0].Amount != o.Amount {
			good = attention != "" && o.PaidAmount == 0
		}
	}
	if !good {
		wrong("it is not what the provider holds")
	}
	for _, m := range truth.Payments {
		if m.Status != "paid" && m.Status != "partialCancelled" {
			continue
		}
		if n := p.rows(
			`SELECT count(*) FROM payments.deposits d JOIN payments.orders o ON o.id = d.order_id WHERE o.code = $1 AND d.tid = $2 AND d.amount = $3
			AND d.state IN ('APPLIED', 'MISMATCH', 'UNAPPLIED')`,
			code,
			m.TID,
			m.Amount,
		); n < 1 {
			wrong("money has come that nobody keeps")
		}
	}
}

func (p *play) happenedNow(code string, trigger order.Trigger) bool {
	return p.happened(code, trigger) > 0
}

// private holds everything that is kept, logged or told to what must not be in it (SPEC.md 11, row 12).
func (s *shop) private() {
	s.t.Helper()
	for _, canary := range []string{clientID, secretKey, accountNumber, webhookSecret} {
		if strings.Contains(s.logs.String(), canary) {
			s.t.Errorf("the log holds %s", canary)
		}
		for _, got := range s.app.all() {
			if strings.Contains(string(got.Body), canary) {
				s.t.Errorf("a message holds %s", canary)
			}
		}
		for _, table := range s.texts(`SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables ` +
			`WHERE schemaname IN ('payments', 'audit')`) {
			if n := s.rows(`SELECT count(*) FROM ` + table + ` t WHERE position('` + canary + `' in to_jsonb(t)::text) > 0
				OR position(encode('` + canary + `', 'hex') in to_jsonb(t)::text) > 0`); n > 0 {
				s.t.Errorf("%d rows of %s hold %s", n, table, canary)
			}
		}
	}
}
