package payments_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
)

// account is where refunds of the tests go.
const account = `"refundAccount":{"bankCode":"004","accountNumber":"` + accountNumber + `","holder":"Kim"}`

// idleShop has no jobs of its own, and a clock that a test moves.
func idleShop(t testing.TB, o options) (*shop, *hubtest.Clock) {
	t.Helper()
	clock := hubtest.NewClock(time.Time{})
	o.idle, o.now = true, clock.Now
	s := newShop(t, o)
	s.still = true
	return s, clock
}

// rows reads one number.
func (s *shop) rows(sql string, args ...any) (n int64) {
	s.t.Helper()
	if err := s.super.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (s *shop) texts(sql string, args ...any) (out []string) {
	s.t.Helper()
	rows, err := s.super.Query(s.t.Context(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, text)
	}
	if rows.Err() != nil {
		s.t.Fatal(rows.Err())
	}
	return out
}

// tried runs a step of a job; what the provider does not answer now is asked again later.
func (s *shop) tried(err error) {
	s.t.Helper()
	if err != nil && !fault.Is(err, fault.DB) && !fault.Is(err, fault.Conflict) {
		s.t.Fatalf("%v\n%s", err, s.logs)
	}
}

// round does once what waits in the store, in an order that does not change.
func (s *shop) round() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, key := range s.texts(`SELECT event_key FROM payments.webhooks WHERE outcome IN ('', 'UNMATCHED') ORDER BY received_at, event_key`) {
		_, err := s.service.ProcessWebhook(ctx, "nicepay", credentials.Sandbox, key)
		s.tried(err)
	}
	for _, id := range s.texts(`SELECT n.id FROM payments.notices n WHERE state = 'PENDING' ORDER BY order_id, seq`) {
		_, err := s.service.Notify(ctx, id)
		s.tried(err)
	}
}

// drain lets the simulator tell what it has to tell, and works on it.
func (s *shop) drain() {
	s.t.Helper()
	if err := s.sim.Settle(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.round()
}

func (s *shop) resolve(code string) {
	s.t.Helper()
	_, err := s.service.Resolve(s.t.Context(), code)
	s.tried(err)
}

func (s *shop) truth(code string) pgsim.Truth {
	s.t.Helper()
	truth, found := s.sim.Payment(code)
	if !found {
		s.t.Fatalf("the provider knows no %s", code)
	}
	return truth
}

func (s *shop) arm(kind, on string, times int) {
	s.t.Helper()
	if err := s.sim.Arm(pgsim.Fault{Kind: kind, On: on, Times: times}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// told is how often the app was told of something, by message.
func (s *shop) told(code, kind string) int64 {
	s.t.Helper()
	return s.rows(
		`SELECT count(*) FROM payments.notices n JOIN payments.orders o ON o.id = n.order_id WHERE o.code = $1 AND n.type = $2`,
		code,
		kind,
	)
}

func (s *shop) happened(code string, trigger order.Trigger) int64 {
	s.t.Helper()
	return s.rows(
		`SELECT count(*) FROM payments.order_events e JOIN payments.orders o ON o.id = e.order_id WHERE o.code = $1 AND e.trigger = $2`,
		code,
		string(trigger),
	)
}

// refundOf is the input of a refund.
func refundOf(code string, amount int64) string {
	return fmt.Sprintf(`{"code":%q,"amount":%d,%s}`, code, amount, account)
}

// patiently is do, done again as long as it answers E_DB, which says so: on a busy machine a row is waited for longer than a call may.
func patiently(do func(i int) error) func(i int) error {
	return func(i int) error {
		for until := time.Now().Add(hubtest.Patience); ; {
			if err := do(i); !fault.Is(err, fault.DB) || time.Now().After(until) {
				return err
			}
		}
	}
}

// together runs the same at once, and returns how it ended each time.
func together(n int, do func(i int) error) []error {
	out := make([]error, n)
	ready := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-ready
			out[i] = do(i)
		})
	}
	close(ready)
	all.Wait()
	return out
}

// detail is details.code of a refusal.
func detail(err error) string {
	if err == nil {
		return ""
	}
	var d struct{ Code string }
	said, _ := json.Marshal(fault.From(err).Details)
	_ = json.Unmarshal(said, &d)
	return d.Code
}

// hook is a webhook of a payment as the provider signs it, of this status and about this order.
func (s *shop) hook(p pgsim.Money, orderID, status string) []byte {
	at := p.PaidAt.Format("2006-01-02T15:04:05.000-0700")
	if p.PaidAt.IsZero() {
		at = "0"
	}
	body, err := json.Marshal(
		map[string]any{
			"resultCode": "0000",
			"tid":        p.TID,
			"orderId":    orderID,
			"status":     status,
			"payMethod":  "vbank",
			"amount":     p.Amount,
			"ediDate":    "2026-01-15T18:00:00.000+0900",
			"paidAt":     at,
			"signature":  pgsim.Signature(p.TID, p.Amount, "2026-01-15T18:00:00.000+0900", secretKey),
		},
	)
	s.do(err)
	return body
}

// acked posts a webhook and tells whether the provider takes it for received.
func (s *shop) acked(body []byte) bool {
	status, kind, text := s.tell(s.t.Context(), "application/json;charset=utf-8", body)
	return status == http.StatusOK && kind == "text/html;charset=utf-8" && text == "OK"
}
