package orders

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// operation is something that an operator does to an order, after a page has asked.
type operation struct {
	title string
	// onDeposit tells that it is about the deposit in the address.
	onDeposit bool
	// confirm fills the page that asks.
	confirm func(p *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field)
	// run does it, and tells what was done.
	run func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error)
}

// confirmPage is the page that asks before an act.
func (p *Pages) confirmPage(op operation) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, d, err := p.load(r, op)
		if err != nil {
			return err
		}
		if op.onDeposit && !d.NeedsDecision() {
			web.Wrong(w, r, "The deposit is "+strings.ToLower(depositBadge(d.State).Text)+": nothing is to be decided about it.")
			return web.Go(w, r, ordersPath+"/"+a.Order.Code)
		}
		return p.renderConfirmation(w, r, op, a, d, strconv.FormatInt(a.Order.Version, 10), nil, nil)
	}
}

// load is the order, and the deposit, that the address names.
func (p *Pages) load(r *http.Request, op operation) (a *order.Aggregate, d order.Deposit, err error) {
	if a, err = p.service.Reports().Order(r.Context(), r.PathValue("code")); err == nil && op.onDeposit {
		d, err = depositOf(r, a)
	}
	return a, d, err
}

// renderConfirmation answers the page that asks, with what was typed before and what is wrong with it.
func (p *Pages) renderConfirmation(w http.ResponseWriter, r *http.Request, op operation, a *order.Aggregate, d order.Deposit,
	version string, form url.Values,
	wrong error) error {
	c, fields := op.confirm(p, a, d)
	c.Hidden = map[string]string{"version": version}
	return p.ask(w, r, op.title, a.Order.Code, c, fields, form, wrong)
}

// ask answers a page that asks about an order, with what was typed into its fields before and what is wrong with it.
func (p *Pages) ask(w http.ResponseWriter, r *http.Request, title, code string, c web.Confirmation, fields []*web.Field,
	form url.Values, wrong error) error {
	status := 0
	for _, f := range fields {
		if f.Name != "accountNumber" { // no page shows one, not even this
			f.Value = form.Get(f.Name)
		}
	}
	if wrong != nil {
		rest, _ := web.Mark(wrong, fields...)
		c.Warning = cmp.Or(rest, c.Warning)
		status = http.StatusUnprocessableEntity
	}
	for _, f := range fields {
		c.Fields = append(c.Fields, *f)
	}
	page := ordersPath + "/" + code
	c.Action = r.URL.Path
	if c.Keep.Href == "" {
		c.Keep = web.Link{Text: "Leave it", Href: page}
	}
	return p.site.Confirm(w, r, web.Page{Title: title, Lead: code, Status: status,
		Crumbs: []web.Link{{Text: "Orders", Href: ordersPath}, {Text: code, Href: page}}}, c)
}

// runPage does what was asked about.
func (p *Pages) runPage(op operation) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		form, err := web.Form(r)
		if err != nil {
			return err
		}
		a, d, err := p.load(r, op)
		if err != nil {
			return err
		}
		version, err := strconv.ParseInt(form.Get("version"), 10, 64)
		if err != nil {
			return fault.New(fault.Validation, "The form does not say which state of the order it is about. Open the order again.")
		}
		done, err := op.run(r.Context(), p.service, payments.OrderVersion{Code: a.Order.Code, Version: version}, d, form)
		if fault.Is(err, fault.Validation) {
			return p.renderConfirmation(w, r, op, a, d, form.Get("version"), form, err)
		}
		return back(w, r, a.Order.Code, done, err)
	}
}

// noteField asks for a note. It is required where no event of the provider will ever explain what was done.
func noteField(needed bool) *web.Field {
	return &web.Field{Name: "note", Label: "Note", Type: "textarea", Rows: 3, MaxLength: payments.MaxNote, Required: needed,
		Hint: "It is kept with the order and in the audit log. Apps do not see it. Write no account numbers."}
}

// depositFacts is what an operator sees of a deposit and its order before deciding about it.
func depositFacts(a *order.Aggregate, d order.Deposit) []web.Fact {
	return []web.Fact{
		{Label: "Deposit", Value: won(d.Amount)},
		{Label: "Deposited", At: d.At},
		{Label: "Provider’s id", Value: d.TID},
		{Label: "Order", Value: won(a.Order.Amounts.Amount) + ", " + statusBadge(a.Order.Status).Text},
	}
}

// applying lets a late deposit pay its order.
var applying = operation{
	title: "Apply this deposit?", onDeposit: true,
	confirm: func(_ *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Text: "The order is paid then, and its app is told so. That cannot be taken back, but the order can be refunded.",
			Facts: depositFacts(a, d), Button: "Apply the deposit"}
		if !a.CanApplyDeposit(d) {
			c.Warning = "This will be refused: a deposit is applied that is of exactly the order’s amount, to an order that has ended unpaid."
		}
		return c, []*web.Field{noteField(false)}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		return "The deposit is applied: the order is paid.", s.ApplyDeposit(ctx, seen, d.ID, form.Get("note"))
	},
}

// returning has the provider pay a deposit back. It asks for an account only where the provider needs one.
var returning = operation{
	title: "Pay this deposit back?", onDeposit: true,
	confirm: func(p *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Text: "Hub asks the payment provider to pay " + won(d.Amount) + " back.", Facts: depositFacts(a, d),
			Button: "Pay " + won(d.Amount) + " back"}
		if !a.CanReturnDeposit(d) {
			c.Warning = "This will be refused: the provider has the deposit under the payment that the order is paid with."
		}
		var fields []*web.Field
		if a.Order.PayMethod == provider.VBank {
			fields = accountFields(p.service.Capabilities(a.Order).NeedsRefundAccount)
		}
		return c, append(fields, noteField(false))
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		var account *provider.RefundAccount
		if form.Get("bankCode")+form.Get("accountNumber")+form.Get("holder") != "" {
			account = accountOf(form)
		}
		after, err := s.ReturnDeposit(ctx, seen, d.ID, account, form.Get("note"))
		if err == nil && after.State == order.DepositStateReturning {
			return "The provider was asked, and its answer is not known yet. Hub goes on asking; nothing is paid back twice.", nil
		}
		return won(d.Amount) + " is paid back.", err
	},
}

// accountFields ask for the account that money goes back to.
func accountFields(needed bool) []*web.Field {
	return []*web.Field{
		{Name: "bankCode", Label: "Bank code", Required: needed, MaxLength: 3, Autocomplete: "off", Placeholder: "004", Hint: "Three digits."},
		{Name: "accountNumber", Label: "Account number", Required: needed, MaxLength: 16, Autocomplete: "off",
			Hint: "Of the payer, digits alone. It is kept sealed, and only its last four digits are shown."},
		{Name: "holder", Label: "Account holder", Required: needed, MaxLength: 10, Autocomplete: "off"},
	}
}

// accountOf is what was typed into accountFields.
func accountOf(form url.Values) *provider.RefundAccount {
	return &provider.RefundAccount{BankCode: strings.TrimSpace(form.Get("bankCode")), Holder: strings.TrimSpace(form.Get("holder")),
		AccountNumber: strings.NewReplacer("-", "", " ", "").Replace(form.Get("accountNumber"))}
}

// returned records that an operator has paid a deposit back without Hub. The amount has to be typed, so that nobody
// records the wrong one by a click.
var returned = operation{
	title: "You have paid this deposit back yourself?", onDeposit: true,
	confirm: func(_ *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		return web.Confirmation{Text: "Hub moves no money: it only keeps that you have. That cannot be taken back.", Facts: depositFacts(a, d),
				Button: "I have paid it back"},
			[]*web.Field{
				{Name: "amount", Label: "Amount that you have paid back", Required: true, MaxLength: 15, Autocomplete: "off",
					Hint: "Type " + web.Number(d.Amount) + " to confirm."},
				noteField(true),
			}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		return "It is kept that " + won(d.Amount) + " was paid back.", s.RecordManualReturn(ctx, seen, d.ID, form.Get("amount"), form.Get("note"))
	},
}

// resolving ends the attention that an order needs. No money moves.
var resolving = operation{
	title: "Resolve this case?",
	confirm: func(_ *Pages, a *order.Aggregate, _ order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Text: "The order no longer needs attention then. No money moves.", Button: "Resolve the case", Facts: []web.Fact{
			{Label: "Case", Value: attentionBadge(a.Order.Attention).Text}, {Label: "Order",
				Value: won(a.Order.Amounts.Amount) + ", " + statusBadge(a.Order.Status).Text}}}
		if a.Order.Attention == "" {
			c.Warning, c.Facts = "The order needs no attention.", c.Facts[1:]
		}
		return c, []*web.Field{noteField(true)}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, _ order.Deposit, form url.Values) (string, error) {
		return "The case is resolved.", s.ResolveAttention(ctx, seen, form.Get("note"))
	},
}
