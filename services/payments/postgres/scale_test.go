package postgres_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/hubtest"
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/services/payments"
	"hub.internal/services/payments/postgres"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

func TestOnNewerStores(t *testing.T) {
	t.Parallel()
	hubtest.NewerStores(t, "")
}

// TestStatementsAtScale: with 100,000 orders, most of which wait with a job each, whatever is asked for all day is done by an index, and
// what looks for missing jobs is done in a moment.
func TestStatementsAtScale(t *testing.T) {
	t.Parallel()
	const orders = 100_000
	db := hubtest.MigratedStore(t, "payments", postgres.Migrate)
	super, err := pgxpool.New(t.Context(), db.SuperuserURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(super.Close)
	// The one clock of what is written and of what is asked: how long the machine takes to write it makes nothing older.
	now := time.Now().Truncate(time.Microsecond)
	at := strings.NewReplacer("now()", "timestamptz '"+now.UTC().Format(time.RFC3339Nano)+"'")
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO payments.orders (code, service_code, external_user_id, hub_user, env, provider, credential_id, tid, status,
			version, amount,
			supply_amount, vat, tax_free, paid_amount, pay_method, client_order_id, name, notify_url, return_url, valid_hours, holder, buyer,
				metadata,
			account_number, expires_at, created_at, paid_at, look_at)
			SELECT 'po_' || lpad(n::text, 26, '0'), 'svc-' || n %% 20, 'u-' || n %% 1000, 'u', 'sandbox', 'nicepay', 1, 't-' || n,
			CASE WHEN n %% 4 = 0 THEN 'PAID' ELSE 'AWAITING_DEPOSIT' END, 3, 11000, 10000, 1000, false,
				CASE WHEN n %% 4 = 0 THEN 11000 ELSE 0 END, 'vbank', 'c-' || n,
			'', 'https://svc.example', '', 168, 'Hub', '{}', '{}', '95' || n, now() + interval '7 days', now() - n * interval '10 seconds',
			CASE WHEN n %% 4 = 0 THEN now() - n * interval '9 seconds' END, CASE WHEN n %% 4 > 0 THEN now() + n * interval '1 second' END
			FROM generate_series(1, %d) n`, orders),
		`INSERT INTO payments.river_job (args, kind, max_attempts, state, scheduled_at, queue, priority)
			SELECT jsonb_build_object('code', code), 'resolve_order', 25, 'scheduled', look_at, 'default', 1 FROM payments.orders
				WHERE look_at IS NOT NULL`,
		`INSERT INTO payments.refunds SELECT 'rf_' || id, id, 1000, 'SUCCEEDED', 'api', 'rt-' || id, '', NULL, NULL, NULL, now(), now() ` +
			`FROM payments.orders WHERE id % 4 = 0`,
		`INSERT INTO payments.deposits (order_id, tid, amount, deposited_at, state) SELECT id, tid, 11000, now(), 'APPLIED' ` +
			`FROM payments.orders WHERE id % 4 = 0`,
		`INSERT INTO payments.order_events SELECT id, s, '', status, 'create', '', '', '', now() FROM payments.orders, generate_series(1, 1) s`,
		`INSERT INTO payments.notices SELECT 'msg_' || id, id, 2, 'x', '{}', CASE WHEN id % 2 = 0 THEN 'PENDING' ELSE 'DELIVERED' END, 0, ` +
			`now() - interval '1 hour', now() FROM payments.orders`,
		`INSERT INTO payments.river_job (args, kind, max_attempts, state, scheduled_at, queue, priority)
			SELECT jsonb_build_object('id', id), 'notify', 25, 'scheduled', now(), 'notify', 1 FROM payments.notices WHERE state = 'PENDING'`,
		`INSERT INTO payments.webhooks SELECT 'nicepay', 'sandbox', 'k-' || id, tid, code, 'paid', '', now() - interval '1 hour', ` +
			`CASE WHEN id % 10 = 0 THEN '' ELSE 'APPLIED' END FROM payments.orders`,
		`INSERT INTO payments.river_job (args, kind, max_attempts, state, scheduled_at, queue, priority)
			SELECT jsonb_build_object('key', event_key), 'look_into_webhook', 25, 'available', now(), 'webhook', 1 FROM payments.webhooks
				WHERE outcome = ''`,
		`ANALYZE`,
	} {
		if _, err := super.Exec(t.Context(), at.Replace(sql)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	// So little memory stands for many more jobs: what would fit into it at this size no longer does.
	pool, err := pgstore.Open(pgstore.Config{URL: db.URL("payments") + "&options=-c%20work_mem%3D256kB", MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store := postgres.New(pool)
	code := "po_" + strings.Repeat("0", 20) + "050000"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, do := range map[string]func(){
		"a book":    func() { _, err := store.Order(t.Context(), code); must(err) },
		"a history": func() { _, err := store.History(t.Context(), code); must(err) },
		"a refund":  func() { _, err := store.OrderOfRefund(t.Context(), "rf_50000"); must(err) },
		"a look":    func() { _, err := store.CheckedSince(t.Context(), code, now, now); must(err) },
		"a page of one user's": func() {
			_, err := store.Orders(t.Context(), payments.Filter{ServiceCode: "svc-1", ExternalUserID: "u-1", Limit: 21})
			must(err)
		},
		"a page of all": func() { _, err := store.Orders(t.Context(), payments.Filter{Limit: 51}); must(err) },
		"a later page": func() {
			_, err := store.Orders(t.Context(), payments.Filter{Limit: 51,
				Before: payments.Position{At: now.Add(-50_000 * 10 * time.Second), Code: code}})
			must(err)
		},
		"a search":              func() { _, err := store.Orders(t.Context(), payments.Filter{Search: "rt-50000", Limit: 51}); must(err) },
		"those with attention":  func() { _, err := store.Orders(t.Context(), payments.Filter{Attention: true, Limit: 51}); must(err) },
		"a page of the sweep":   func() { _, err := store.Unsettled(t.Context(), code, now.Add(-7*24*time.Hour), 200); must(err) },
		"calls that are left":   func() { _, err := store.AbandonedClaims(t.Context(), 100); must(err) },
		"the end of the sweeps": func() { _, _, err := store.LastSweep(t.Context()); must(err) },
	} {
		hubtest.Within(t, 100*time.Millisecond, what, do)
	}
	hubtest.Within(t, time.Second, "what the gauges show", func() { // statements for each of nine gauges, on a busy machine
		readings, err := store.Sample(slog.New(slog.DiscardHandler), func() time.Time { return now }).Ask(t.Context())
		must(err)
		got := map[string]float64{}
		for _, r := range readings {
			name := r.Gauge
			for _, a := range r.Attributes {
				name += a.Value.AsString()
			}
			got[name] = r.Value
		}
		for gauge, want := range map[string]float64{"hub.payments.webhooks.waitingnew": 10_000, "hub.payments.webhooks.waitingunmatched": 0,
			"hub.payments.webhooks.lag": 3600, "hub.payments.orders.attention": 0,
			"hub.payments.orders.lag": 0, "hub.payments.notices.waiting": 10_000, "hub.payments.notices.lag": 3600,
			"hub.payments.deposits.open": 0, "hub.payments.sweep.age": 0} {
			if value, there := got[gauge]; !there || value != want {
				t.Errorf("%s is %v, %v, and not %v: %v", gauge, value, there, want, got)
			}
		}
	})
	hubtest.Within(t, 3*time.Second, "a look for missing jobs", func() { must(store.AddMissing(t.Context(), now)) })
	if _, err := super.Exec(
		t.Context(),
		at.Replace(`DELETE FROM payments.river_job WHERE args ->> 'id' = 'msg_2' OR args ->> 'key' = 'k-10';
		UPDATE payments.orders SET look_at = now() - interval '1 hour' WHERE look_at IS NOT NULL; DELETE FROM payments.river_job
			WHERE kind = 'resolve_order' AND args ->> 'code' = 'po_`+fmt.Sprintf("%026d", 3)+`'`),
	); err != nil {
		t.Fatal(err)
	}
	// All of them are late now: those that have their jobs get no other.
	var before, after int
	must(super.QueryRow(t.Context(), `SELECT count(*) FROM payments.river_job`).Scan(&before))
	hubtest.Within(t, 5*time.Second, "a look for missing jobs, when all are late", func() { must(store.AddMissing(t.Context(), now)) })
	must(
		super.QueryRow(
			t.Context(),
			`SELECT count(*) FROM payments.river_job WHERE args ->> 'id' = 'msg_2' OR args ->> 'key' = 'k-10' OR kind = 'resolve_order' `+
				`AND args ->> 'code' = 'po_`+fmt.Sprintf(
				"%026d",
				3,
			)+`'`,
		).Scan(
			&after,
		),
	)
	if after != 3 {
		t.Errorf("%d of 3 jobs are there again", after)
	}
	t.Logf("%d jobs before", before)
}
