package order

import (
	"bytes"
	"encoding/json"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// View is an order as its app sees it, in answers and in messages.
type View struct {
	Code                string              `json:"code"`
	Status              Status              `json:"status"`
	Amount              int64               `json:"amount"`
	SupplyAmount        int64               `json:"supplyAmount"`
	VAT                 int64               `json:"vat"`
	Currency            string              `json:"currency"`
	PayMethod           provider.PayMethod  `json:"payMethod"`
	Env                 credentials.Env     `json:"env"`
	Version             int64               `json:"version"`
	PaidAmount          int64               `json:"paidAmount"`
	RefundedAmount      int64               `json:"refundedAmount"`
	PendingRefundAmount int64               `json:"pendingRefundAmount"`
	RefundableAmount    int64               `json:"refundableAmount"`
	ClientOrderID       *string             `json:"clientOrderId"`
	OrderName           *string             `json:"orderName"`
	CheckoutURL         *string             `json:"checkoutUrl"`
	VirtualAccount      *VirtualAccountView `json:"vbank"`
	Attention           *Attention          `json:"attention"`
	Failure             *Failure            `json:"failure"`
	Refunds             []RefundView        `json:"refunds"`
	NotifyURL           *string             `json:"payment_notify_url"`
	ReturnURL           *string             `json:"returnUrl"`
	Metadata            map[string]string   `json:"metadata"`
	CreatedAt           string              `json:"createdAt"`
	IssuedAt            *string             `json:"issuedAt"`
	PaidAt              *string             `json:"paidAt"`
	ClosedAt            *string             `json:"closedAt"`
}

// VirtualAccountView is the account that a payer pays into.
type VirtualAccountView struct {
	BankCode      string `json:"bankCode"`
	BankName      string `json:"bankName"`
	AccountNumber string `json:"accountNumber"`
	Holder        string `json:"holder"`
	ExpiresAt     string `json:"expiresAt"`
}

// SchemaTitle implements schema.Titled.
func (VirtualAccountView) SchemaTitle() string { return "VirtualAccount" }

// RefundView is a refund as the order's app sees it. The account is masked.
type RefundView struct {
	Code          string                  `json:"code"`
	Amount        int64                   `json:"amount"`
	Status        RefundStatus            `json:"status"`
	Source        string                  `json:"source"`
	Reason        string                  `json:"reason"`
	RefundAccount *provider.RefundAccount `json:"refundAccount"`
	Failure       *Failure                `json:"failure"`
	CreatedAt     string                  `json:"createdAt"`
	SettledAt     *string                 `json:"settledAt"`
}

// View is the order as its app sees it, with all of its refunds.
func (a *Aggregate) View() View { return a.viewWith(a.Refunds) }

// viewWith shows the order with these of its refunds.
func (a *Aggregate) viewWith(refunds []Refund) View {
	o := a.Order
	v := View{Code: o.Code, Status: o.Status, Amount: o.Amount, SupplyAmount: o.Supply, VAT: o.VAT, Currency: "KRW",
		PayMethod: o.PayMethod, Env: o.Env, Version: o.Version, PaidAmount: o.PaidAmount, RefundedAmount: o.RefundedAmount,
		PendingRefundAmount: o.PendingRefund, RefundableAmount: o.Refundable(), ClientOrderID: optional(o.ClientOrderID),
		OrderName:   optional(o.Name),
		CheckoutURL: optional(o.CheckoutURL), Attention: optional(o.Attention), Failure: o.Failure, Refunds: []RefundView{},
		NotifyURL: optional(o.NotifyURL), ReturnURL: optional(o.ReturnURL), Metadata: o.Metadata, CreatedAt: schema.Moment(o.CreatedAt),
		IssuedAt: moment(o.IssuedAt), PaidAt: moment(o.PaidAt), ClosedAt: moment(o.ClosedAt)}
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	if o.Status != Ready {
		v.CheckoutURL = nil // nothing is left to do there
	}
	if a := o.Account; a != nil {
		v.VirtualAccount = &VirtualAccountView{a.BankCode, a.BankName, a.Number, a.Holder, schema.Moment(a.ExpiresAt)}
	}
	for _, r := range refunds {
		v.Refunds = append(v.Refunds, r.View())
	}
	return v
}

// View is the refund as the order's app sees it.
func (r Refund) View() RefundView {
	return RefundView{Code: r.Code, Amount: r.Amount, Status: r.Status, Source: r.Source, Reason: r.Reason, RefundAccount: r.Masked,
		Failure: r.Failure, CreatedAt: schema.Moment(r.CreatedAt), SettledAt: moment(r.SettledAt)}
}

// optional is a text as JSON has it: an empty one is null.
func optional[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// moment is a time as JSON has it; nil is null.
func moment(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(schema.Moment(*t))
}

// SchemaTitle implements schema.Titled.
func (View) SchemaTitle() string { return "Order" }

// SchemaTitle implements schema.Titled.
func (RefundView) SchemaTitle() string { return "Refund" }

// Message is what an app is told of an event (SPEC.md 9).
type Message struct {
	Type      string      `json:"type" jsonschema:"What has happened; ignore a type that you do not know"`
	Timestamp string      `json:"timestamp" jsonschema:"When it happened, RFC 3339; the same at each attempt"`
	Data      MessageData `json:"data"`
}

// MessageData is the order, as the event has left it.
type MessageData struct {
	Code           string      `json:"code" jsonschema:"The code of the order"`
	Status         string      `json:"status" jsonschema:"Its state; VBANK_ISSUED when an account was issued"`
	Seq            int64       `json:"seq" jsonschema:"The version of the order: leave out a lower one than you know"`
	ExternalUserID string      `json:"externalUserId" jsonschema:"Whose order it is, in the app"`
	Order          View        `json:"order" jsonschema:"The order as it was then, with its newest 20 refunds"`
	Refund         *RefundView `json:"refund" jsonschema:"The refund that it is about; null for none"`
}

// SchemaTitle implements schema.Titled.
func (Message) SchemaTitle() string { return "Notification" }

// notification is the body of the message about an event.
func (a *Aggregate) notification(s Event) ([]byte, error) {
	d := MessageData{Code: a.Order.Code, Status: string(s.To), Seq: s.Seq, ExternalUserID: a.Order.ExternalUserID,
		Order: a.viewWith(a.Refunds[max(0, len(a.Refunds)-notifiedRefunds):])}
	if s.Notification == NotifyIssued {
		d.Status = VBankIssued
	}
	if r := a.Refund(s.Subject); r != nil {
		d.Refund = new(r.View())
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(Message{s.Notification, schema.Moment(a.Now), d})
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// notifiedRefunds is how many of an order's refunds a message has, the newest: it stays small, however many there are.
const notifiedRefunds = 20
