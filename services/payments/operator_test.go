package payments_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/payments"
	"hub.internal/services/payments/console"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/pgsim"
	"hub.internal/services/payments/provider"
)

// desk is the operators' pages before a shop; seen is all that they have answered.
type desk struct {
	*shop
	mux  *http.ServeMux
	mu   sync.Mutex
	seen strings.Builder
}

const operator = "ada@example.com"

func newDesk(t *testing.T, o options) *desk {
	t.Helper()
	d := &desk{shop: newShop(t, o), mux: http.NewServeMux()}
	c, err := console.New(
		console.Config{
			Service: d.service,
			Trusted: callertest.Keys(t, "payments", "gateway"),
			Now:     o.now,
			Logger:  slog.New(slog.NewTextHandler(d.logs, nil)),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	c.Mount(d.mux)
	return d
}

func ada(roles ...string) caller.Caller {
	return caller.Caller{
		Kind:           caller.User,
		Service:        "console",
		ExternalUserID: operator,
		CredentialID:   "ses_1",
		HubUser:        "usr_1",
		Email:          operator,
		Name:           "Ada",
		Roles:          roles,
		RequestID:      "req_ada",
	}
}

func (d *desk) send(who caller.Caller, method, path string, form url.Values) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header = callertest.Header(d.t, "payments", who)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.WriteString(w.Body.String())
	return w
}

var (
	markup = regexp.MustCompile(`<[^>]*>`)
	blank  = regexp.MustCompile(`\s+`)
	inline = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son[a-z]+=|style=|javascript:`)
)

// page opens a page, which has to be there and to have the texts, but for those that begin with "!".
func (d *desk) page(path string, texts ...string) string {
	d.t.Helper()
	w := d.send(ada("admin"), "GET", path, nil)
	if w.Code != http.StatusOK {
		d.t.Fatalf("GET %s: %d\n%s", path, w.Code, d.logs)
	}
	if loose := inline.FindString(w.Body.String()); loose != "" {
		d.t.Errorf("%s has something inline: %s", path, loose)
	}
	d.has(w, texts...)
	return w.Body.String()
}

func (d *desk) has(w *httptest.ResponseRecorder, texts ...string) {
	d.t.Helper()
	_, main, _ := strings.Cut(w.Body.String(), "<main")
	page := blank.ReplaceAllString(html.UnescapeString(markup.ReplaceAllString(main, "")), " ")
	for _, text := range texts {
		if bare, without := strings.CutPrefix(text, "!"); strings.Contains(page, bare) == without {
			d.t.Errorf("%q is not so: %s", text, page[:min(len(page), 900)])
		}
	}
}

// post sends a form, has to be sent on to a page, and returns what that will say.
func (d *desk) post(path string, form url.Values) string {
	d.t.Helper()
	w := d.send(ada("admin"), "POST", path, form)
	if w.Code != http.StatusSeeOther {
		d.t.Fatalf("POST %s: %d\n%s", path, w.Code, d.logs)
	}
	to := httptest.NewRequestWithContext(d.t.Context(), "GET", w.Header().Get("Location"), nil)
	to.Header = callertest.Header(d.t, "payments", ada("admin"))
	for _, c := range w.Result().Cookies() {
		to.AddCookie(c)
	}
	next := httptest.NewRecorder()
	d.mux.ServeHTTP(next, to)
	m := regexp.MustCompile(`<p class="notice (?:done|wrong)" role="(?:status|alert)">([^<]*)</p>`).FindStringSubmatch(next.Body.String())
	if m == nil {
		d.t.Fatalf("POST %s says nothing: %s", path, next.Body)
	}
	return html.UnescapeString(m[1])
}

// says posts a form, and wants the next page to say so.
func (d *desk) says(path string, form url.Values, want string) {
	d.t.Helper()
	if said := d.post(path, form); !strings.Contains(said, want) {
		d.t.Errorf("POST %s says %q, want %q\n%s", path, said, want, d.logs)
	}
}

var versionField = regexp.MustCompile(`name="version" value="(\d+)"`)

// form is what a page that asks sends, with what is typed.
func (d *desk) form(path string, typed ...string) url.Values {
	d.t.Helper()
	m := versionField.FindStringSubmatch(d.page(path))
	if m == nil {
		d.t.Fatalf("%s has no version", path)
	}
	v := url.Values{"version": {m[1]}}
	for i := 0; i+1 < len(typed); i += 2 {
		v.Set(typed[i], typed[i+1])
	}
	return v
}

// book is an order with its deposits.
func (d *desk) book(code string) *order.Aggregate {
	d.t.Helper()
	a, err := d.store.Order(d.t.Context(), code)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// depositPath is the address of the newest deposit of an order.
func (d *desk) depositPath(code string) string {
	d.t.Helper()
	a := d.book(code)
	return fmt.Sprintf("/admin/orders/%s/deposits/%s", code, a.Deposits[len(a.Deposits)-1].ID)
}

func (d *desk) count(sql string, args ...any) (n int) {
	d.t.Helper()
	if err := d.super.QueryRow(d.t.Context(), sql, args...).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// late makes an order that was given up, and to which money comes after.
func (d *desk) late(amount int64) order.View {
	d.t.Helper()
	o := d.order("")
	d.must("pay.orders.cancel", "", `{"code":"`+o.Code+`"}`)
	d.deposit(o.Code, amount, 1)
	hubtest.Eventually(d.t, "the deposit is seen", func() bool { return d.show(o.Code).Attention != nil })
	return d.show(o.Code)
}

// twice makes an order that was paid two times.
func (d *desk) twice() order.View {
	d.t.Helper()
	o := d.paid()
	d.deposit(o.Code, 11000, 1)
	hubtest.Eventually(d.t, "the second deposit is seen", func() bool { return d.show(o.Code).Attention != nil })
	return d.show(o.Code)
}

// paidBack holds the provider to have paid so much back of an order, at once.
func (d *desk) paidBack(code string, amount int64) {
	d.t.Helper()
	truth, _ := d.sim.Payment(code)
	returns := 0
	for _, c := range truth.Cancels {
		if !c.Unpaid {
			returns++
		}
	}
	if truth.Cancelled != amount || returns != 1 {
		d.t.Errorf("the provider has paid back %+v", truth)
	}
}

var payersAccount = []string{"bankCode", "004", "accountNumber", accountNumber, "holder", "Kim"}

func TestLateDepositIsApplied(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(11000)
	path := d.depositPath(o.Code)
	d.page("/admin/orders/"+o.Code, "Late deposit", "Apply", "Pay back", "I have paid it back", "!Resolve the case")
	form := d.form(path+"/apply", "note", "Kim has called <b>")
	// Twice at once, as a double click does: one applies.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { d.send(ada("admin"), "POST", path+"/apply", form) })
	}
	both.Wait()
	d.says(path+"/apply", form, "has changed since you looked")
	a := d.book(o.Code)
	if a.Order.Status != order.Paid || a.Order.Attention != "" || a.Order.PaidAmount != 11000 ||
		a.Deposits[0].State != order.DepositStateApplied {
		t.Errorf("%+v %+v", a.Order, a.Deposits)
	}
	if n := d.count(
		`SELECT count(*) FROM audit.calls WHERE tool = 'pay.deposits.apply' AND external_user_id = $1 AND detail->>'order' = $2 `+
			`AND detail->>'note' LIKE 'Kim%'`,
		operator,
		o.Code,
	); n != 1 {
		t.Errorf("%d rows of the audit log", n)
	}
	d.page("/admin/orders/"+o.Code, "A late deposit was applied", "operator:"+operator, "req_ada", "“Kim has called <b>”",
		"!Late deposit ")
	d.settled()
	told := d.events(o.Code).Notifications
	if last := told[len(told)-1]; last.Type != order.NotifyPaid {
		t.Errorf("the app was told %s last", last.Type)
	}
	d.says(
		"/admin/orders/"+o.Code+"/deposits/"+a.Deposits[0].ID.String()+"/apply",
		url.Values{"version": {fmt.Sprint(a.Order.Version)}},
		"nothing is to be decided",
	)
}

func TestDepositOfAnotherAmountIsNotApplied(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(10999)
	path := d.depositPath(o.Code)
	if page := d.page("/admin/orders/"+o.Code, "Pay back"); strings.Contains(page, path+"/apply") {
		t.Error("the page offers to apply it")
	}
	d.says(path+"/apply", d.form(path+"/apply"), "not of the order's amount")
	if a := d.book(o.Code); a.Order.Status != order.Canceled || a.Order.PaidAmount != 0 || !a.Deposits[0].NeedsDecision() {
		t.Errorf("%+v %+v", a.Order, a.Deposits)
	}
	// By hand: the amount has to be typed, and why.
	for _, wrong := range []string{"", "10998", "11,000", "x", "-10999"} {
		if w := d.send(
			ada("admin"),
			"POST",
			path+"/returned",
			d.form(path+"/returned", "amount", wrong, "note", "by bank transfer"),
		); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d", wrong, w.Code)
		} else {
			d.has(w, "This must be the deposit's amount, 10999.")
		}
	}
	if w := d.send(
		ada("admin"),
		"POST",
		path+"/returned",
		d.form(path+"/returned", "amount", "10999", "note", " "),
	); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a note: %d", w.Code)
	}
	form := d.form(path+"/returned", "amount", "₩10,999", "note", "by bank transfer")
	d.says(path+"/returned", form, "₩10,999 was paid back")
	d.says(path+"/returned", form, "has changed since you looked")
	if truth, _ := d.sim.Payment(o.Code); truth.Cancelled != 0 {
		t.Errorf("Hub has moved money: %+v", truth)
	}
	if a := d.book(o.Code); a.Deposits[0].State != order.DepositStateReturned || a.Order.Attention != "" {
		t.Errorf("%+v %+v", a.Order, a.Deposits)
	}
}

// needy is a provider that pays back to an account alone.
type needy struct{ provider.Port }

func (n needy) Capabilities(m provider.PayMethod) provider.Capabilities {
	c := n.Port.Capabilities(m)
	c.NeedsRefundAccount = m == provider.VBank
	return c
}

func TestDepositIsPaidBackOnce(t *testing.T) {
	t.Parallel()
	clock := hubtest.NewClock(time.Now())
	d := newDesk(t, options{now: clock.Now, change: func(c *payments.Config) { c.Provider = needy{c.Provider} }})
	o := d.twice()
	path := d.depositPath(o.Code)
	for field, value := range map[string]string{"bankCode": "4", "accountNumber": "12345678901234567", "holder": "",
		"note": strings.Repeat("x", 501)} {
		form := d.form(path+"/return", payersAccount...)
		form.Set(field, value)
		if w := d.send(
			ada("admin"),
			"POST",
			path+"/return",
			form,
		); w.Code != http.StatusUnprocessableEntity ||
			!strings.Contains(w.Body.String(), `id="`+field+`-error"`) {
			t.Errorf("%s %q: %d", field, value, w.Code)
		}
	}
	if w := d.send(ada("admin"), "POST", path+"/return", d.form(path+"/return")); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without an account: %d", w.Code)
	}
	// The answers are lost, and it is asked for twice at once: it is paid back once.
	for range 3 {
		if err := d.sim.Arm(pgsim.Fault{Kind: pgsim.TimeoutAfter, On: "cancel"}); err != nil {
			t.Fatal(err)
		}
	}
	form := d.form(path+"/return", payersAccount...)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { d.send(ada("admin"), "POST", path+"/return", form) })
	}
	both.Wait()
	for range 3 { // what a job does later
		if _, err := d.service.Resolve(t.Context(), o.Code); err != nil {
			t.Fatal(err)
		}
	}
	a := d.book(o.Code)
	last := a.Deposits[len(a.Deposits)-1]
	if last.State != order.DepositStateReturned || last.Return.TID == "" || a.Order.Attention != "" || a.Order.Status != order.Paid ||
		len(a.Refunds) != 0 ||
		a.Order.Refundable() != 11000 {
		t.Errorf("%+v %+v %+v", a.Order, a.Deposits, a.Refunds)
	}
	d.paidBack(o.Code, 11000)
	d.says(path+"/return", form, "has changed since you looked")
	d.page("/admin/orders/"+o.Code, "Paid back", "004 ****5443322"[:8], "A deposit was paid back", "!"+accountNumber)
	if page := d.send(ada("admin"), "GET", path+"/return", nil); page.Code != http.StatusSeeOther {
		t.Errorf("a page asks about a deposit that is back: %d", page.Code)
	}
	d.sim.Heal()
	// The payout comes back: the deposit is open again, and can be paid back again.
	if err := d.sim.FailRefundLater(last.Return.Code); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	if err := d.sim.Tell(o.Code); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, "the deposit is open", func() bool { return d.book(o.Code).Order.Attention == order.DuplicateDeposit })
	d.says(path+"/return", d.form(path+"/return", payersAccount...), "₩11,000 is paid back")
	d.noCanary()
}

func TestProviderDeclinesToPayADepositBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(11000)
	path := d.depositPath(o.Code)
	if err := d.sim.Arm(pgsim.Fault{Kind: pgsim.Decline, On: "cancel", Code: "2016"}); err != nil {
		t.Fatal(err)
	}
	d.says(path+"/return", d.form(path+"/return", payersAccount...), "does not pay it back")
	a := d.book(o.Code)
	if !a.Deposits[0].NeedsDecision() || a.Order.Attention != order.LateDeposit {
		t.Errorf("%+v %+v", a.Order, a.Deposits)
	}
	d.page("/admin/orders/"+o.Code, "A deposit was not paid back", "2016")
	d.says(path+"/apply", d.form(path+"/apply"), "the order is paid")
}

func TestUnknownReturnsAreFoundOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(11000)
	path := d.depositPath(o.Code)
	if err := d.sim.Arm(pgsim.Fault{Kind: pgsim.TimeoutBefore, On: "cancel"}); err != nil {
		t.Fatal(err)
	}
	d.says(path+"/return", d.form(path+"/return", payersAccount...), "not known yet")
	d.page("/admin/orders/"+o.Code, "Being paid back", "!I have paid it back")
	if n := d.count(`SELECT count(*) FROM payments.orders WHERE look_at IS NOT NULL AND code = $1`, o.Code); n != 1 {
		t.Error("nobody looks at it again")
	}
	if _, err := d.service.Resolve(t.Context(), o.Code); err != nil {
		t.Fatal(err)
	}
	if a := d.book(o.Code); a.Deposits[0].State != order.DepositStateReturned {
		t.Errorf("%+v", a.Deposits)
	}
	d.paidBack(o.Code, 11000)
}

func TestCaseIsResolved(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(10999)
	resolve := "/admin/orders/" + o.Code + "/resolve"
	d.says(resolve, d.form(resolve, "note", "no"), "neither applied nor paid back")
	// A balance that drifts is the case that a note ends.
	p := d.paid()
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET attention = 'BALANCE_DRIFT' WHERE code = $1`, p.Code); err != nil {
		t.Fatal(err)
	}
	resolve = "/admin/orders/" + p.Code + "/resolve"
	d.page("/admin/orders/"+p.Code, "Balance drift", "Resolve the case")
	stale := url.Values{"version": {"1"}, "note": {"x"}}
	d.says(resolve, stale, "has changed since you looked")
	if w := d.send(ada("admin"), "POST", resolve, d.form(resolve)); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a note: %d", w.Code)
	}
	if w := d.send(ada("admin"), "POST", resolve, url.Values{"note": {"x"}}); w.Code != http.StatusBadRequest {
		t.Errorf("without a version: %d", w.Code)
	}
	form := d.form(resolve, "note", "settled with the provider")
	d.says(resolve, form, "The case is resolved")
	d.says(resolve, form, "has changed since you looked")
	d.page("/admin/orders/"+p.Code, "“settled with the provider”", "!Balance drift")
	if n := d.count(`SELECT count(*) FROM audit.calls WHERE tool = 'pay.cases.resolve' AND external_user_id = $1`, operator); n != 1 {
		t.Errorf("%d rows of the audit log", n)
	}
	d.says(resolve, d.form(resolve, "note", "again"), "needs no attention")
	if strings.Contains(d.must("pay.orders.events", "", `{"code":"`+p.Code+`"}`).Raw, "settled with") {
		t.Error("the app sees the note")
	}
}

func TestOperatorAsksAndTellsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	d.app.answer(http.StatusInternalServerError)
	o := d.paid()
	d.settled()
	page := d.page("/admin/orders/"+o.Code, "Given up", "500", "Paid", "₩11,000", "Moved the order", `"status": "paid"`)
	id := regexp.MustCompile(`/notifications/(msg_[0-9A-Z]+)"`).FindStringSubmatch(page)[1]
	d.page("/admin/orders?show=undelivered", o.Code)
	d.app.answer(http.StatusOK)
	d.says("/admin/orders/"+o.Code+"/notifications/"+id, url.Values{}, "on its way again")
	d.settled()
	d.says("/admin/orders/"+o.Code+"/reconcile", url.Values{}, "The provider was asked. The order is Paid.")
	if n := d.count(
		`SELECT count(*) FROM audit.calls WHERE tool IN ('pay.notifications.redeliver', 'pay.orders.reconcile') AND external_user_id = $1`,
		operator,
	); n != 2 {
		t.Errorf("%d rows of the audit log", n)
	}
	for _, f := range []int{1, 2} {
		if err := d.sim.Arm(pgsim.Fault{Kind: pgsim.ServerError, On: "get"}); err != nil {
			t.Fatal(f, err)
		}
	}
	d.says("/admin/orders/"+o.Code+"/reconcile", url.Values{}, "does not answer right now")
	d.noCanary()
}

// TestOrdersPagesAreForAdministrators: nobody else sees or does anything.
func TestOrdersPagesAreForAdministrators(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	o := d.late(11000)
	path := d.depositPath(o.Code)
	before := d.book(o.Code).Order.Version
	for _, at := range []string{"GET /admin/orders", "GET /admin/orders/export", "GET /admin/orders/conservation",
		"GET /admin/orders/conservation/export", "GET /admin/orders/" + o.Code,
		"GET " + path + "/apply", "POST " + path + "/apply", "POST " + path + "/return", "POST " + path + "/returned", "POST /admin/orders/" +
			o.Code + "/resolve",
		"POST /admin/orders/" + o.Code + "/reconcile", "POST /admin/orders/" + o.Code + "/notifications/msg_1"} {
		method, path, _ := strings.Cut(at, " ")
		for _, who := range []caller.Caller{ada("reviewer"), ada(), {Kind: caller.Visitor, RequestID: "req_1"}} {
			w := d.send(who, method, path, url.Values{"version": {fmt.Sprint(before)}, "note": {"x"}, "amount": {"11000"}})
			if w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "11,000") {
				t.Errorf("%s as %v: %d %s", at, who.Roles, w.Code, w.Body)
			}
		}
	}
	// A link does nothing, whoever follows it.
	for _, what := range []string{"/apply", "/return", "/returned"} {
		d.page(path + what)
	}
	for _, what := range []string{"/reconcile", "/notifications/msg_1"} {
		if w := d.send(
			ada("admin"),
			"GET",
			"/admin/orders/"+o.Code+what,
			nil,
		); w.Code != http.StatusMethodNotAllowed &&
			w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", what, w.Code)
		}
	}
	for _, nothing := range []string{"/admin/orders/po_nothing", path + "0", path + "0/apply", "/admin/orders/" + o.Code +
		"/deposits/x/apply"} {
		if w := d.send(ada("admin"), "GET", nothing, nil); w.Code != http.StatusNotFound {
			t.Errorf("GET %s: %d", nothing, w.Code)
		}
	}
	if after := d.book(o.Code).Order.Version; after != before {
		t.Errorf("the order was moved from %d to %d", before, after)
	}
}

func TestOrdersAreListed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{})
	empty := d.page("/admin/orders", "No orders in the last 30 days")
	if strings.Contains(empty, "<figure") {
		t.Error("a plot of nothing")
	}
	d.page("/admin/orders?show=attention", "No order needs attention")
	d.page("/admin/orders?q=nothing", "Nothing matches")
	p := d.paid()
	refund := d.must(
		"pay.orders.refund",
		"",
		`{"code":"`+p.Code+`","amount":4000,"refundAccount":{"bankCode":"004","accountNumber":"`+accountNumber+`","holder":"Kim"}}`,
	).Refund
	l := d.late(11000)
	card := d.must(
		"pay.orders.create",
		"",
		`{"amount":5000,"payMethod":"card","clientOrderId":"c-1","orderName":"=cmd|' /C calc'!A0"}`,
	).Order
	d.page("/admin/orders", p.Code, l.Code, card.Code, "1 order needs attention", "Late deposit", "₩11,000", "₩4,000", "Paid and refunded")
	tid := d.book(p.Code).Order.TID
	for _, q := range []string{p.Code, tid, p.VirtualAccount.AccountNumber, refund.Code} {
		d.page("/admin/orders?q="+url.QueryEscape(q), p.Code, "!"+card.Code)
	}
	// The form as it comes with the list finds what is older than the list.
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET created_at = created_at - interval '40 days' WHERE code = $1`,
		card.Code); err != nil {
		t.Fatal(err)
	}
	if d.page("/admin/orders", "!"+card.Code); strings.Contains(d.page("/admin/orders"), `value="30d" selected`) {
		t.Error("the form asks for 30 days by itself")
	}
	d.page("/admin/orders?q=c-1", card.Code)
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET created_at = created_at + interval '40 days' WHERE code = $1`,
		card.Code); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{"q=c-1": card.Code, "show=attention": l.Code, "status=PAID": p.Code, "method=card": card.Code,
		"app=svc&status=CANCELED": l.Code,
		"within=24h&status=READY": card.Code, "from=2020-01-01&to=2099-01-01&method=card": card.Code} {
		page := d.page("/admin/orders?"+at, want)
		for _, other := range []string{p.Code, l.Code, card.Code} {
			if other != want && strings.Contains(page, other) {
				t.Errorf("%s shows %s", at, other)
			}
		}
	}
	d.page("/admin/orders?app=svc2", "Nothing matches")
	for _, strange := range []string{"q=%00", "q=%ff", "after=x", "after=2026-01-01T00:00:00Z_%00", "status=nonsense", "within=%27",
		"show=%27"} {
		d.send(ada("admin"), "GET", "/admin/orders?"+strange, nil)
		if w := d.send(ada("admin"), "GET", "/admin/orders?"+strange, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", strange, w.Code)
		}
	}
	if w := d.send(ada("admin"), "GET", "/admin/orders?from=yesterday", nil); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d", w.Code)
	}
	w := d.send(ada("admin"), "GET", "/admin/orders/export?from=yesterday&zone=Asia%2FSeoul", nil)
	if d.has(w, "in UTC or in the zone of the address"); w.Code == http.StatusOK {
		t.Errorf("%d", w.Code)
	}
	if w := d.send(
		ada("admin"),
		"GET",
		"/admin/orders?q=&status=PAID",
		nil,
	); w.Code != http.StatusSeeOther ||
		w.Header().Get("Location") != "/admin/orders?status=PAID" {
		t.Errorf("%d %s", w.Code, w.Header())
	}
	w = d.send(ada("admin"), "GET", "/admin/orders/export?within=all", nil)
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != 4 || len(rows[0]) != len(rows[1]) {
		t.Fatalf("%v %v", rows, err)
	}
	for _, row := range rows[1:] {
		if row[0] == card.Code && row[6] != `'=cmd|' /C calc'!A0` {
			t.Errorf("a spreadsheet runs %s", row[6])
		}
	}
	if n := d.count(`SELECT count(*) FROM audit.calls WHERE tool = 'pay.orders.export' AND detail->>'within' = 'all'`); n != 1 {
		t.Errorf("%d rows of the audit log", n)
	}
	d.noCanary()
}

// TestListPages: each order is on one page, however many were made at once.
func TestListPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{idle: true})
	d.many(120)
	seen := map[string]int{}
	next := "/admin/orders?within=all"
	for range 3 {
		page := d.page(next)
		for _, m := range regexp.MustCompile(`class="id" href="/admin/orders/(po_\w+)"`).FindAllStringSubmatch(page, -1) {
			seen[m[1]]++
		}
		if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(page); m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	for code, n := range seen {
		if n != 1 {
			t.Errorf("%s is on %d pages", code, n)
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d orders", len(seen))
	}
}

// many makes orders of all kinds in the store, as they are after years.
func (d *desk) many(n int) {
	d.t.Helper()
	if _, err := d.super.Exec(d.t.Context(), manyOrders, n); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.super.Exec(d.t.Context(), manyMoves); err != nil {
		d.t.Fatal(err)
	}
}

const manyOrders = `INSERT INTO payments.orders (code, service_code, external_user_id, hub_user, env, provider, credential_id, tid,
	status, version, amount, supply_amount, vat,
	tax_free, paid_amount, refunded_amount, pay_method, client_order_id, name, notify_url, return_url, valid_hours, holder, buyer,
		metadata, bank_code, bank_name, account_number,
	account_holder, expires_at, attention, created_at, issued_at, paid_at)
SELECT 'po_' || lpad(upper(to_hex(n)), 26, '0'), (ARRAY['liter', 'brandhub', 'mailshop', 'svc'])[1 + n % 4], 'u-' || n % 500, 'usr_1',
	'sandbox', 'nicepay', 1,
	CASE WHEN s <> 'READY' THEN 'UT' || lpad(n::text, 26, '0') END, s, 3, a, a - a / 11, a / 11, false, CASE WHEN s IN ('PAID',
		'REFUNDED') THEN a ELSE 0 END,
	CASE WHEN s = 'REFUNDED' THEN a WHEN s = 'PAID' AND n % 10 = 0 THEN a / 2 ELSE 0 END, CASE WHEN n % 3 = 0 THEN 'card' ELSE 'vbank' END,
	CASE WHEN n % 2 = 0 THEN 'inv-2026-' || n END, (ARRAY['Liter top-up', '봄 캠페인 발송 10,000건', 'Brand report',
		''])[1 + n % 4], '', '', 168, 'Hub', '{}', '{}',
	'004', '국민은행', CASE WHEN n % 3 <> 0 AND s <> 'READY' THEN lpad((31000000000 + n)::text, 14, '7') ELSE '' END, 'Hub',
		now() - n * interval '7 minutes' + interval '7 days',
	CASE WHEN s = 'EXPIRED' AND n % 40 = 9 THEN 'LATE_DEPOSIT' WHEN s = 'PAID' AND n % 90 = 1 THEN 'DUPLICATE_DEPOSIT' ELSE '' END,
	now() - n * interval '7 minutes', now() - n * interval '7 minutes', CASE WHEN s IN ('PAID',
		'REFUNDED') THEN now() - n * interval '7 minutes' + interval '3 minutes' END
FROM (SELECT n, (1 + (n::bigint * 7919) % 400) * 1100 + CASE WHEN n % 37 = 0 THEN 9900000 ELSE 0 END AS a,
	CASE WHEN n % 20 < 12 THEN 'PAID' WHEN n % 20 < 14 THEN 'REFUNDED' WHEN n % 20 = 14 THEN 'AWAITING_DEPOSIT' WHEN n % 20 = 15 THEN
		'CANCELED'
	WHEN n % 20 = 16 THEN 'FAILED' WHEN n % 20 = 17 THEN 'READY' ELSE 'EXPIRED' END AS s FROM generate_series(1, $1::int) AS n) AS x`

const manyMoves = `WITH d AS (INSERT INTO payments.deposits (order_id, tid, amount, deposited_at, state)
	SELECT id, tid, amount, paid_at, 'APPLIED' FROM payments.orders WHERE paid_amount > 0
	UNION ALL SELECT id, tid || 'x', amount, created_at + interval '9 days', 'UNAPPLIED' FROM payments.orders WHERE attention <> '')
	INSERT INTO payments.refunds (code, order_id, amount, status, source, tid, reason, created_at, settled_at)
	SELECT 'rf_' || code, id, refunded_amount, 'SUCCEEDED', 'api', 'c' || tid, 'requested', paid_at + interval '1 hour',
		paid_at + interval '1 hour'
	FROM payments.orders WHERE refunded_amount > 0`

func TestBooksAddUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{idle: true}) // the jobs begin with a sweep, which might end before the first page is read
	d.page("/admin/orders/conservation", "There is no order yet", "No sweep has ended yet")
	o := d.paidIdle()
	d.deposit(o.Code, 11000, 1)
	late := d.order("")
	d.must("pay.orders.cancel", "", `{"code":"`+late.Code+`"}`)
	d.deposit(late.Code, 10999, 1)
	d.drain()
	path := d.depositPath(o.Code)
	d.says(path+"/return", d.form(path+"/return", payersAccount...), "is paid back")
	if err := d.service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	// 11,000 are applied, 11,000 paid back, and 10,999 open.
	d.page("/admin/orders/conservation", "Everything adds up.", "₩32,999", "₩10,999", "svc", "Compared")
	ledger, err := d.store.Ledger(t.Context())
	if err != nil || len(ledger) != 1 || !ledger[0].Balanced() || ledger[0].Received != 32999 || ledger[0].Applied != 11000 ||
		ledger[0].Open != 10999 ||
		ledger[0].Returned != 11000 {
		t.Fatalf("%+v %v", ledger, err)
	}
	for _, broken := range []string{`UPDATE payments.deposits SET amount = 10000 WHERE state = 'APPLIED'`, `INSERT INTO payments.refunds
		(code, order_id, amount, status, source, reason, created_at)
		SELECT 'rf_x', id, 5, 'PENDING', 'api', 'x', now() FROM payments.orders WHERE status = 'PAID'`} {
		if _, err := d.super.Exec(t.Context(), broken); err != nil {
			t.Fatal(err)
		}
		d.page("/admin/orders/conservation", "1 order does not add up", o.Code, "!Everything adds up", "orders say")
	}
	w := d.send(ada("admin"), "GET", "/admin/orders/conservation/export", nil)
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != 4 || rows[1][1] != o.Code || rows[1][3] != "false" || rows[3][0] != "(all)" {
		t.Errorf("%v %v", rows, err)
	}
}

// TestExportOfAccountsIsCut: one that has not all that does not add up says so, as that of orders does.
func TestExportOfAccountsIsCut(t *testing.T) {
	t.Parallel()
	d := newDesk(t, options{idle: true})
	d.many(101)
	if _, err := d.super.Exec(t.Context(), `INSERT INTO payments.refunds (code, order_id, amount, status, source, reason, created_at)
		SELECT 'rf_y' || id, id, 5, 'PENDING', 'api', 'x', now() FROM payments.orders`); err != nil {
		t.Fatal(err)
	}
	text := d.send(ada("admin"), "GET", "/admin/orders/conservation/export", nil).Body.String()
	if n := strings.Count(text, ",false,"); n < 100 || !strings.Contains(text, "\nNOT COMPLETE: an export has the newest 100 ") {
		t.Errorf("%d accounts that do not add up, and the end is %s", n, text[len(text)-300:])
	}
}

// TestEnvironmentsAreApart: money of another environment is in no sum, of a list or of the ledger, and is called so where it is shown.
func TestEnvironmentsAreApart(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	tried, sold := d.paidIdle(), d.paidIdle()
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET env = 'production', attention = 'LATE_DEPOSIT' WHERE code = $1`,
		sold.Code); err != nil {
		t.Fatal(err)
	}
	d.page("/admin/orders?within=24h", tried.Code, "!"+sold.Code, "Totals Sandbox", "All1₩11,000", "!22,000")
	d.page("/admin/orders?env=production", sold.Code, "!"+tried.Code, "Totals Production", "All1₩11,000", "!22,000")
	for _, at := range []string{"env=both", "app=svc&env=both"} {
		d.page("/admin/orders?"+at, tried.Code, sold.Code, "Totals Sandbox", "All1₩11,000", "Paid Late deposit Production", "!22,000")
	}
	for _, at := range []string{"q=" + sold.Code, "show=attention"} { // what is looked for is found
		d.page("/admin/orders?"+at, sold.Code, "!"+tried.Code, "Paid Late deposit Production", "!Totals")
	}
	page := d.page("/admin/orders/conservation", "svcYes1", "svc ProductionYes1", "AllYes1", "All ProductionYes1", "!22,000")
	if strings.Count(page, "₩11,000") < 4 {
		t.Error(page)
	}
	for path, want := range map[string]string{"/admin/orders/export": "1", "/admin/orders/export?env=both": "2",
		"/admin/orders/conservation/export": "4"} {
		rows, err := csv.NewReader(d.send(ada("admin"), "GET", path, nil).Body).ReadAll()
		if err != nil || fmt.Sprint(len(rows)-1) != want {
			t.Errorf("%s: %v, %v", path, rows, err)
		}
		if strings.Contains(path, "conservation") && (rows[0][len(rows[0])-1] != "env" || rows[4][0] != "(all)" || rows[4][4] != "11000") {
			t.Errorf("%v", rows)
		}
	}
}

// TestTheOrderSaysWhatHolds: a resolved drift comes back with news alone (SPEC.md 4.5), and a webhook that was given up, as one that the
// provider does not explain, may be about an order that is there.
func TestTheOrderSaysWhatHolds(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	o := d.paidIdle()
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.orders SET attention = 'BALANCE_DRIFT';
		UPDATE payments.webhooks SET outcome = 'ABANDONED'`); err != nil {
		t.Fatal(err)
	}
	d.page("/admin/orders/"+o.Code, "resolve the case. It shows again when the provider says something new.", "Given up", "!No such order")
}

// TestReturnsAreLookedFor: by Hub's code and by the provider's id of the return of a deposit, as of a refund.
func TestReturnsAreLookedFor(t *testing.T) {
	t.Parallel()
	d, _ := idleDesk(t, false, nil)
	other, o := d.paidIdle(), d.paidIdle()
	d.deposit(o.Code, 11000, 1)
	d.drain()
	path := d.depositPath(o.Code)
	d.says(path+"/return", d.form(path+"/return", payersAccount...), "is paid back")
	// That of a part is another one than the payment's.
	if _, err := d.super.Exec(t.Context(), `UPDATE payments.deposits SET return_tid = 'back-1' WHERE return_tid IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{d.book(o.Code).Deposits[1].Return.Code, "back-1"} {
		d.page("/admin/orders?q="+q, o.Code, "!"+other.Code)
	}
}

// TestPagesAtScale: the pages come soon among 100,000 orders.
func TestPagesAtScale(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 100,000 orders")
	}
	d := newDesk(t, options{idle: true})
	d.many(100_000)
	if _, err := d.super.Exec(t.Context(), `VACUUM ANALYZE payments.orders, payments.deposits, payments.refunds`); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/admin/orders", "/admin/orders?q=inv-2026-50000", "/admin/orders?status=FAILED&within=all",
		"/admin/orders?app=liter",
		"/admin/orders?show=attention", "/admin/orders?within=all", "/admin/orders/conservation"} {
		// Tens of milliseconds, and under one second for the books, on a machine that does nothing else.
		hubtest.Within(t, 5*time.Second, path, func() { d.page(path) })
	}
}

// noCanary holds what was shown, logged and kept in clear free of what nobody may see.
func (d *desk) noCanary() {
	d.t.Helper()
	var kept string
	if err := d.super.QueryRow(
		d.t.Context(),
		`SELECT coalesce((SELECT string_agg(c::text, ' ') FROM audit.calls c), '') || coalesce((SELECT string_agg(d::text, ' ')
			FROM payments.deposits d), '')
		|| coalesce((SELECT string_agg(e::text, ' ') FROM payments.order_events e), '')`,
	).Scan(
		&kept,
	); err != nil {
		d.t.Fatal(err)
	}
	for name, text := range map[string]string{"pages": d.seen.String(), "logs": d.logs.String(), "store": kept} {
		for _, canary := range []string{accountNumber, clientID, secretKey, webhookSecret, `"signature": "`} {
			if i := strings.Index(text, canary); i >= 0 && !strings.HasPrefix(text[i:], `"signature": "…`) {
				d.t.Errorf("%s have %s: …%s…", name, canary, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}
