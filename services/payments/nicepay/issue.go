package nicepay

import (
	"context"
	"errors"
	"net/url"
	"strings"

	json "github.com/go-json-experiment/json"

	"hub.internal/pkg/text"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// checkoutRequest begins an order.
type checkoutRequest struct {
	SessionID   string `json:"sessionId"`
	OrderID     string `json:"orderId"`
	Method      string `json:"method"`
	Amount      int64  `json:"amount"`
	GoodsName   string `json:"goodsName"`
	ReturnURL   string `json:"returnUrl"`
	TaxFreeAmt  int64  `json:"taxFreeAmt,omitzero"`
	VBankHolder string `json:"vbankHolder,omitzero"`
	ValidHours  int    `json:"vbankValidHours,omitzero"`
	BuyerName   string `json:"buyerName,omitzero"`
	BuyerTel    string `json:"buyerTel,omitzero"`
	BuyerEmail  string `json:"buyerEmail,omitzero"`
}

// checkout is what the vendor says of one.
type checkout struct {
	ResultCode string `json:"resultCode"`
	// ResulCode is how the manual spells it for a checkout.
	ResulCode string `json:"resulCode"`
	ResultMsg string `json:"resultMsg"`
	SessionID string `json:"sessionId"`
	OrderID   string `json:"orderId"`
	URL       string `json:"url"`
	TID       string `json:"tid"`
	Status    string `json:"status"`
	Amount    int64  `json:"amount"`
	IsExpire  bool   `json:"isExpire"`
}

// code is the result code, under whichever of its two names the vendor has sent it.
func (c checkout) code() string {
	if c.ResultCode == "" {
		return c.ResulCode
	}
	return c.ResultCode
}

// Bounds of the vendor's fields, in bytes.
const (
	maxGoodsName  = 40
	maxHolder     = 40
	maxBuyerName  = 30
	maxBuyerTel   = 40
	maxBuyerEmail = 60
	maxReason     = 100
)

// Issue implements provider.Port. The code is the orderId and the session of a checkout, each of which the vendor
// takes once, so that to ask again finds what was begun. The amount of a checkout has to be the one that was asked for;
// that of a payment within it is answered as it is, for the caller to compare.
func (p *Provider) Issue(ctx context.Context, c credentials.Unsealed, in provider.IssueRequest) (provider.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	begun, err := p.begin(ctx, c, in)
	if err != nil {
		return provider.Snapshot{}, err
	}
	s, err := p.get(ctx, c, provider.PaymentRef{Code: in.Code, CreatedAt: in.CreatedAt})
	if err != nil { // nobody has begun to pay, or it is not known yet: the page is there
		s = provider.Snapshot{Code: in.Code, Status: provider.PaymentIssued, Amount: in.Amount, Balance: in.Amount}
		if begun.IsExpire && errors.Is(err, provider.ErrNotFound) {
			s.Status = provider.PaymentExpired
		}
	}
	s.CheckoutURL = begun.URL
	return s, nil
}

// begin makes the checkout, or finds the one that was made.
func (p *Provider) begin(ctx context.Context, c credentials.Unsealed, in provider.IssueRequest) (checkout, error) {
	made, err := p.checkout(ctx, c, "POST", "/v1/checkout", requestOf(in))
	if err != nil {
		return checkout{}, err
	}
	switch checkoutKind(made.code()) {
	case kindDone:
	case kindDuplicate:
		if made, err = p.checkout(ctx, c, "GET", "/v1/checkout/"+url.PathEscape(in.Code), nil); err != nil {
			return checkout{}, unknown("the order was begun before: %s", err)
		}
		if checkoutKind(made.code()) != kindDone {
			return checkout{}, unknown("the order was begun before, and the provider answers %s", printable(made.code()))
		}
	case kindUnknown:
		return checkout{}, unknown("the provider answers %s", printable(made.code()))
	default:
		return checkout{}, &provider.DeclinedError{Code: printable(made.code()), Message: printable(made.ResultMsg)}
	}
	if made.OrderID != in.Code || made.SessionID != in.Code || made.Amount != in.Amount {
		return checkout{}, unknown("the checkout is about another order")
	}
	if !p.payable(made.URL) {
		return checkout{}, unknown("the checkout has no page")
	}
	return made, nil
}

// checkout sends a request about a checkout, and reads its answer.
func (p *Provider) checkout(ctx context.Context, c credentials.Unsealed, method, path string, body any) (out checkout, err error) {
	raw, err := p.call(ctx, c, method, path, body)
	if err == nil && json.Unmarshal(raw, &out) != nil {
		err = unknown("the answer cannot be read")
	}
	return out, err
}

// payable tells whether a page may be shown to a payer: one of the vendor's, or of what stands in for it, in production on no
// other host than that.
func (p *Provider) payable(page string) bool {
	u, err := url.Parse(page)
	if err != nil || u.Hostname() == "" || u.User != nil || len(page) > 500 || strings.ContainsFunc(page, unsafeInURL) {
		return false
	}
	if p.base != nil && p.base.Scheme == "http" {
		return u.Scheme == "http" || u.Scheme == "https"
	}
	standsIn := p.base != nil && (!p.production || strings.EqualFold(u.Host, p.base.Host))
	return u.Scheme == "https" && (standsIn || strings.HasSuffix(u.Hostname(), ".nicepay.co.kr"))
}

// unsafeInURL tells whether a character has no place in an address as it is (RFC 3986, 2): apps put it into pages, where a quote
// or a bracket may end what it stands in, and a backslash is a slash to some readers.
func unsafeInURL(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune("\"'<>\\^`{|}", c)
}

// requestOf is an order as the wire has it. The vendor takes neither quotes nor bars in a name. taxFreeAmt is sent
// only for an order that was stated to hold no tax: otherwise the vendor reckons the tax itself.
func requestOf(in provider.IssueRequest) checkoutRequest {
	out := checkoutRequest{SessionID: in.Code, OrderID: in.Code, Method: string(in.PayMethod), Amount: in.Amount, ReturnURL: in.ReturnURL,
		GoodsName: trimmed(strings.NewReplacer(`"`, "-", "|", "-").Replace(in.Name), maxGoodsName),
		BuyerName: trimmed(in.Buyer.Name, maxBuyerName), BuyerTel: trimmed(in.Buyer.Tel, maxBuyerTel),
		BuyerEmail: trimmed(in.Buyer.Email, maxBuyerEmail)}
	if out.GoodsName == "" {
		out.GoodsName = in.Code
	}
	if in.TaxFree {
		out.TaxFreeAmt = in.Amount
	}
	if in.PayMethod == provider.VBank {
		out.VBankHolder, out.ValidHours = trimmed(in.Holder, maxHolder), in.ValidHours
	}
	return out
}

// trimmed is a text of at most so many bytes, whole characters of UTF-8, on one line.
func trimmed(s string, limit int) string {
	return strings.TrimSpace(text.HeadBytes(text.OneLine(strings.ToValidUTF8(s, "")), limit))
}
