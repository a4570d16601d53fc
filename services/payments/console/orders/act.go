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
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// operation is something that an operator does to an order, after a page has asked.
// Its GET and its POST are made by confirmPage and runPage, so that each act has the same checks.
type operation struct {
	// title is translated where it is shown.
	title string
	// onDeposit tells that it is about the deposit in the address.
	onDeposit bool
	// confirm fills the page that asks.
	// It warns of what will be refused, but the form can be sent: the Service decides.
	confirm func(ctx context.Context, p *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field)
	// run does it, and tells what was done.
	// seen is the version that the first page has shown (optimistic locking); the Service answers E_CONFLICT for another one.
	run func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error)
}

// confirmPage is the page that asks before an act.
// A deposit about which nothing is to be decided leads back to the order, with a message.
func (p *Pages) confirmPage(op operation) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		a, d, err := p.load(r, op)
		if err != nil {
			return err
		}
		if op.onDeposit && !d.NeedsDecision() {
			web.Wrong(w, r, i18n.T(r.Context(), "The deposit is %s: nothing is to be decided about it.",
				strings.ToLower(said(r.Context(), depositBadge(d.State)))))
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
// version is text, because it is sent back as it came, also when the form is shown once more.
func (p *Pages) renderConfirmation(w http.ResponseWriter, r *http.Request, op operation, a *order.Aggregate, d order.Deposit,
	version string, form url.Values,
	wrong error) error {
	c, fields := op.confirm(r.Context(), p, a, d)
	c.Hidden = map[string]string{"version": version}
	return p.ask(w, r, i18n.From(r.Context()).Text(op.title), a.Order.Code, c, fields, form, wrong)
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
		// What is wrong and belongs to no field stands above the form.
		c.Warning = cmp.Or(rest, c.Warning)
		status = http.StatusUnprocessableEntity
	}
	for _, f := range fields {
		c.Fields = append(c.Fields, *f)
	}
	page := ordersPath + "/" + code
	c.Action = r.URL.Path
	if c.Keep.Href == "" {
		c.Keep = web.Link{Text: i18n.T(r.Context(), "Leave it"), Href: page}
	}
	return p.site.Confirm(w, r, web.Page{Title: title, Lead: code, Status: status,
		Crumbs: []web.Link{{Text: i18n.T(r.Context(), "Orders"), Href: ordersPath}, {Text: code, Href: page}}}, c)
}

// runPage does what was asked about.
// E_VALIDATION shows the form again with its problems; any other answer leads to the order's page.
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
// MaxNote is in characters and is the Service's to check.
func noteField(ctx context.Context, needed bool) *web.Field {
	return &web.Field{Name: "note", Label: i18n.T(ctx, "Note"), Type: "textarea", Rows: 3, MaxLength: payments.MaxNote, Required: needed,
		Hint: i18n.T(ctx, "It is kept with the order and in the audit log. Apps do not see it. Write no account numbers.")}
}

// depositFacts is what an operator sees of a deposit and its order before deciding about it.
func depositFacts(ctx context.Context, a *order.Aggregate, d order.Deposit) []web.Fact {
	return []web.Fact{
		{Label: i18n.T(ctx, "Deposit"), Value: won(d.Amount)},
		{Label: i18n.T(ctx, "Deposited"), At: d.At},
		{Label: i18n.T(ctx, "Provider’s id"), Value: d.TID},
		orderFact(ctx, a.Order),
	}
}

// orderFact is what an order costs, and how it stands.
func orderFact(ctx context.Context, o order.Order) web.Fact {
	return web.Fact{Label: i18n.T(ctx, "Order"), Value: won(o.Amounts.Amount) + ", " + said(ctx, statusBadge(o.Status))}
}

// applying lets a late deposit pay its order.
// Only the exact amount can: see order.Aggregate.CanApplyDeposit.
var applying = operation{
	title: i18n.N("Apply this deposit?"), onDeposit: true,
	confirm: func(ctx context.Context, _ *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Facts: depositFacts(ctx, a, d), Button: i18n.T(ctx, "Apply the deposit"),
			Text: i18n.T(ctx, "The order is paid then, and its app is told so. That cannot be taken back, but the order can be refunded.")}
		if !a.CanApplyDeposit(d) {
			c.Warning = i18n.T(ctx, "This will be refused: a deposit is applied that is of exactly the order’s amount, "+
				"to an order that has ended unpaid.")
		}
		return c, []*web.Field{noteField(ctx, false)}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		return i18n.T(ctx, "The deposit is applied: the order is paid."), s.ApplyDeposit(ctx, seen, d.ID, form.Get("note"))
	},
}

// returning has the provider pay a deposit back. It asks for an account only where the provider needs one.
var returning = operation{
	title: i18n.N("Pay this deposit back?"), onDeposit: true,
	confirm: func(ctx context.Context, p *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Text: i18n.T(ctx, "Hub asks the payment provider to pay %s back.", won(d.Amount)),
			Facts: depositFacts(ctx, a, d), Button: i18n.T(ctx, "Pay %s back", won(d.Amount))}
		if !a.CanReturnDeposit(d) {
			c.Warning = i18n.T(ctx, "This will be refused: the provider has the deposit under the payment that the order is paid with.")
		}
		var fields []*web.Field
		if a.Order.PayMethod == provider.VBank {
			fields = accountFields(ctx, p.service.Capabilities(a.Order).NeedsRefundAccount)
		}
		return c, append(fields, noteField(ctx, false))
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		var account *provider.RefundAccount
		if form.Get("bankCode")+form.Get("accountNumber")+form.Get("holder") != "" {
			account = accountOf(form)
		}
		after, err := s.ReturnDeposit(ctx, seen, d.ID, account, form.Get("note"))
		// No answer is no failure: the job of the deposit asks the provider what became of it.
		if err == nil && after.State == order.DepositStateReturning {
			return i18n.T(ctx, "The provider was asked, and its answer is not known yet. Hub goes on asking; nothing is paid back twice."), nil
		}
		return i18n.T(ctx, "%s is paid back.", won(d.Amount)), err
	},
}

// accountFields ask for the account that money goes back to.
// needed makes the browser ask for all of them; the Service judges what was typed (provider.RefundAccount.Check).
func accountFields(ctx context.Context, needed bool) []*web.Field {
	return []*web.Field{
		{Name: "bankCode", Label: i18n.T(ctx, "Bank code"), Required: needed, MaxLength: 3, Autocomplete: "off", Placeholder: "004",
			Hint: i18n.T(ctx, "Three digits.")},
		{Name: "accountNumber", Label: i18n.T(ctx, "Account number"), Required: needed, MaxLength: 16, Autocomplete: "off",
			Hint: i18n.T(ctx, "Of the payer, digits alone. It is kept sealed, and only its last four digits are shown.")},
		{Name: "holder", Label: i18n.T(ctx, "Account holder"), Required: needed, MaxLength: 10, Autocomplete: "off"},
	}
}

// accountOf is what was typed into accountFields.
// People type account numbers with dashes and spaces, and the provider wants digits.
func accountOf(form url.Values) *provider.RefundAccount {
	return &provider.RefundAccount{BankCode: strings.TrimSpace(form.Get("bankCode")), Holder: strings.TrimSpace(form.Get("holder")),
		AccountNumber: strings.NewReplacer("-", "", " ", "").Replace(form.Get("accountNumber"))}
}

// returned records that an operator has paid a deposit back without Hub. The amount has to be typed, so that nobody
// records the wrong one by a click.
// A note is required: no event of the provider explains it later.
var returned = operation{
	title: i18n.N("You have paid this deposit back yourself?"), onDeposit: true,
	confirm: func(ctx context.Context, _ *Pages, a *order.Aggregate, d order.Deposit) (web.Confirmation, []*web.Field) {
		return web.Confirmation{Text: i18n.T(ctx, "Hub moves no money: it only keeps that you have. That cannot be taken back."),
				Facts: depositFacts(ctx, a, d), Button: i18n.T(ctx, "I have paid it back")},
			[]*web.Field{
				{Name: "amount", Label: i18n.T(ctx, "Amount that you have paid back"), Required: true, MaxLength: 15, Autocomplete: "off",
					Hint: i18n.T(ctx, "Type %s to confirm.", web.Number(d.Amount))},
				noteField(ctx, true),
			}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, d order.Deposit, form url.Values) (string, error) {
		done := i18n.T(ctx, "It is kept that %s was paid back.", won(d.Amount))
		return done, s.RecordManualReturn(ctx, seen, d.ID, form.Get("amount"), form.Get("note"))
	},
}

// resolving ends the attention that an order needs. No money moves.
// A case that has an open deposit cannot be resolved before that is decided about.
var resolving = operation{
	title: i18n.N("Resolve this case?"),
	confirm: func(ctx context.Context, _ *Pages, a *order.Aggregate, _ order.Deposit) (web.Confirmation, []*web.Field) {
		c := web.Confirmation{Text: i18n.T(ctx, "The order no longer needs attention then. No money moves."),
			Button: i18n.T(ctx, "Resolve the case"),
			Facts:  []web.Fact{{Label: i18n.T(ctx, "Case"), Value: said(ctx, attentionBadge(a.Order.Attention))}, orderFact(ctx, a.Order)}}
		if a.Order.Attention == "" {
			c.Warning, c.Facts = i18n.T(ctx, "The order needs no attention."), c.Facts[1:]
		}
		return c, []*web.Field{noteField(ctx, true)}
	},
	run: func(ctx context.Context, s *payments.Service, seen payments.OrderVersion, _ order.Deposit, form url.Values) (string, error) {
		return i18n.T(ctx, "The case is resolved."), s.ResolveAttention(ctx, seen, form.Get("note"))
	},
}
