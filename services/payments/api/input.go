package api

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hub.internal/pkg/schema"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// createIn is the body of POST /v1/pay/orders. Amounts are raw, since encoding/json would accept 1e3 or 1.0 for an
// integer; see readWon.
type createIn struct {
	Amount        json.RawMessage `json:"amount"`
	SupplyAmount  json.RawMessage `json:"supplyAmount"`
	VAT           json.RawMessage `json:"vat"`
	PayMethod     string          `json:"payMethod"`
	NotifyURL     *string         `json:"payment_notify_url"`
	ClientOrderID *string         `json:"clientOrderId"`
	OrderName     *string         `json:"orderName"`
	ReturnURL     *string         `json:"returnUrl"`
	VBank         *vbankIn        `json:"vbank"`
	Buyer         *buyerIn        `json:"buyer"`
	Metadata      json.RawMessage `json:"metadata"`
}

// vbankIn says how long a virtual account waits for its deposit, and whose name it has.
type vbankIn struct {
	ValidHours *int64  `json:"validHours"`
	Holder     *string `json:"holder"`
}

// buyerIn is who pays. It is handed to the provider, and shown on no page of Hub.
type buyerIn struct {
	Name  *string `json:"name"`
	Email *string `json:"email"`
	Tel   *string `json:"tel"`
}

// Bounds of texts. Those of holder and buyer count bytes, as the provider does, and those of metadata characters.
const (
	maxHolder    = 40
	maxBuyerName = 30
	maxPairs     = 20
	maxPairKey   = 40
	maxPairValue = 500
)

// input is the input as the service wants it.
func (in createIn) input() (payments.CreateInput, error) {
	var v schema.Violations
	w := payments.CreateInput{Amount: readWon(&v, "/amount", in.Amount), SupplyAmount: readWon(&v, "/supplyAmount", in.SupplyAmount),
		VAT: readWon(&v,
			"/vat", in.VAT),
		PayMethod: provider.PayMethod(in.PayMethod), NotifyURL: readText(&v, "/payment_notify_url", in.NotifyURL, 0),
		ClientOrderID: readText(&v, "/clientOrderId", in.ClientOrderID, 0), Name: readText(&v, "/orderName", in.OrderName, 0),
		ReturnURL: readText(&v, "/returnUrl", in.ReturnURL, 0), Metadata: readMetadata(&v, in.Metadata)}
	if in.VBank != nil {
		w.VirtualAccount = &payments.VirtualAccountInput{Holder: readText(&v, "/vbank/holder", in.VBank.Holder, maxHolder)}
		if in.VBank.ValidHours != nil {
			w.VirtualAccount.ValidHours = int(*in.VBank.ValidHours)
		}
	}
	if in.Buyer != nil {
		w.Buyer = provider.Buyer{Name: readText(&v, "/buyer/name", in.Buyer.Name, maxBuyerName), Email: readText(&v, "/buyer/email",
			in.Buyer.Email, 0),
			Tel: readText(&v, "/buyer/tel", in.Buyer.Tel, 0)}
		if w.Buyer.Email != "" && !schema.IsEmail(w.Buyer.Email) {
			v.Add("/buyer/email", "email", "must be an e-mail address")
		}
	}
	return w, v.Err()
}

// digits is the one form of an amount: no sign but a minus, no leading zero, no fraction, no exponent.
var digits = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// readWon reads an amount: digits alone, for an amount that is written in any other way may be meant in another way, too. It may be left
// out; null is no amount, though elsewhere it is what is left out: a program that has lost its amount must not pay back everything.
func readWon(v *schema.Violations, at string, raw json.RawMessage) *int64 {
	if len(raw) == 0 {
		return nil
	}
	if string(raw) == "null" {
		v.Add(at, "type", "must be a whole number of won, not null: leave it out when none is meant")
		return nil
	}
	var n int64
	ok := digits.Match(raw)
	if ok {
		n, ok = schema.Int64(raw)
	}
	if !ok {
		v.Add(at, "integer", "must be a whole number of won, written in digits alone")
		return nil
	}
	return &n
}

// readText reads a line of at most so many bytes; 0 leaves that to the schema.
func readText(v *schema.Violations, at string, s *string, most int) string {
	if s == nil {
		return ""
	}
	if strings.ContainsFunc(*s, unicode.IsControl) || !utf8.ValidString(*s) {
		v.Add(at, "line", "must be one line of text")
	}
	if most > 0 && len(*s) > most {
		v.Add(at, "bytes", "must have at most %d bytes in UTF-8", most)
	}
	return *s
}

// readMetadata reads what is echoed to the app.
func readMetadata(v *schema.Violations, raw json.RawMessage) map[string]string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	out := map[string]string{}
	if json.Unmarshal(raw, &out) != nil {
		v.Add("/metadata", "type", "must hold strings alone")
		return nil
	}
	if len(out) > maxPairs {
		v.Add("/metadata", "maxProperties", "must have at most %d members", maxPairs)
	}
	for key, value := range out {
		if utf8.RuneCountInString(key) > maxPairKey || utf8.RuneCountInString(value) > maxPairValue || strings.Contains(key+value, "\x00") {
			v.Add("/metadata", "maxLength", "has a name of more than %d, or a value of more than %d characters, or NUL", maxPairKey, maxPairValue)
			break
		}
	}
	return out
}

// refundIn is the body of a refund, with the order's code from the path.
type refundIn struct {
	Code          string          `json:"code"`
	Amount        json.RawMessage `json:"amount"`
	Reason        *string         `json:"reason"`
	RefundAccount *accountIn      `json:"refundAccount"`
	Expected      json.RawMessage `json:"expectedRefundable"`
}

// accountIn is the bank account that a refund goes to. A provider that pays a virtual account back needs it.
type accountIn struct {
	BankCode      string `json:"bankCode"`
	AccountNumber string `json:"accountNumber"`
	Holder        string `json:"holder"`
}

// input is the body as the service wants it; E_VALIDATION lists everything that is wrong with it at once.
func (in refundIn) input() (payments.RefundInput, error) {
	var v schema.Violations
	w := payments.RefundInput{Amount: readWon(&v, "/amount", in.Amount), Reason: readText(&v, "/reason", in.Reason, 0),
		ExpectedRefundable: readWon(&v, "/expectedRefundable", in.Expected)}
	if w.Amount != nil && (*w.Amount < 1 || *w.Amount > order.MaxAmount) {
		v.Add("/amount", "range", "must be between 1 and %d", order.MaxAmount)
	}
	if in.RefundAccount != nil {
		w.Account = &provider.RefundAccount{BankCode: in.RefundAccount.BankCode, AccountNumber: in.RefundAccount.AccountNumber,
			Holder: readText(&v, "/refundAccount/holder", &in.RefundAccount.Holder, 0)}
	}
	return w, v.Err()
}

// reconcileIn may state the amount that the caller expects: another one is E_CONFLICT with AMOUNT_MISMATCH.
type reconcileIn struct {
	Code   string          `json:"code"`
	Amount json.RawMessage `json:"amount"`
}

// amount is nil when the caller states none.
func (in reconcileIn) amount() (*int64, error) {
	var v schema.Violations
	return readWon(&v, "/amount", in.Amount), v.Err()
}

// listIn is the query of a list. Times are RFC 3339, and both bounds are exclusive.
type listIn struct {
	Status        string  `json:"status"`
	PayMethod     string  `json:"payMethod"`
	CreatedAfter  *string `json:"createdAfter"`
	CreatedBefore *string `json:"createdBefore"`
	Attention     bool    `json:"attention"`
	Limit         int64   `json:"limit"`
	Cursor        *string `json:"cursor"`
}

// filter is the query as the store wants it. The owner of the orders is not in it: the service puts the caller there.
func (in listIn) filter() (payments.Filter, error) {
	var v schema.Violations
	f := payments.Filter{PayMethod: provider.PayMethod(in.PayMethod), Attention: in.Attention, Limit: int(in.Limit),
		CreatedAfter: readTime(&v, "/createdAfter", in.CreatedAfter), CreatedBefore: readTime(&v, "/createdBefore", in.CreatedBefore)}
	if in.Status != "" {
		f.Status = []order.Status{order.Status(in.Status)}
	}
	if !f.CreatedAfter.IsZero() && !f.CreatedBefore.IsZero() && !f.CreatedAfter.Before(f.CreatedBefore) {
		v.Add("/createdAfter", "range", "must be before createdBefore")
	}
	if in.Cursor != nil && *in.Cursor != "" {
		var ok bool
		if f.Before, ok = readCursor(*in.Cursor); !ok {
			v.Add("/cursor", "cursor", "must be the cursor of an earlier answer")
		}
	}
	return f, v.Err()
}

// readTime reads an RFC 3339 time; the zero time when it is absent.
func readTime(v *schema.Violations, at string, s *string) time.Time {
	if s == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *s)
	if err != nil {
		v.Add(at, "time", "must be an RFC 3339 time such as 2026-01-01T03:00:00.000Z")
	}
	return t
}
