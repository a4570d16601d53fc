package pgsim

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// answer is how the wire tells of a payment, in an answer and in a webhook.
// Amounts are won; times are wireTime, and those that have not been are "0". null stands for what there is not, as on the
// wire.
type answer struct {
	ResultCode   string       `json:"resultCode"`
	ResultMsg    string       `json:"resultMsg"`
	TID          string       `json:"tid"`
	CancelledTID *string      `json:"cancelledTid"`
	OrderID      string       `json:"orderId"`
	EdiDate      string       `json:"ediDate"`
	Signature    string       `json:"signature,omitempty"`
	Status       string       `json:"status"`
	PaidAt       string       `json:"paidAt"`
	FailedAt     string       `json:"failedAt"`
	CancelledAt  string       `json:"cancelledAt"`
	PayMethod    string       `json:"payMethod"`
	Amount       int64        `json:"amount"`
	BalanceAmt   int64        `json:"balanceAmt"`
	GoodsName    string       `json:"goodsName"`
	Currency     string       `json:"currency"`
	Channel      string       `json:"channel"`
	BuyerName    *string      `json:"buyerName"`
	BuyerTel     *string      `json:"buyerTel"`
	BuyerEmail   *string      `json:"buyerEmail"`
	Card         *wireCard    `json:"card"`
	VBank        *account     `json:"vbank"`
	Cancels      []wireCancel `json:"cancels"`
}

// wireCard is the card of a payment; the simulator has one card for all.
type wireCard struct {
	Code       string `json:"cardCode"`
	Name       string `json:"cardName"`
	Number     string `json:"cardNum"`
	Type       string `json:"cardType"`
	PartCancel bool   `json:"canPartCancel"`
}

// account is a virtual account.
type account struct {
	Code    string `json:"vbankCode"`
	Name    string `json:"vbankName"`
	Number  string `json:"vbankNumber"`
	ExpDate string `json:"vbankExpDate"`
	Holder  string `json:"vbankHolder"`
}

// wireCancel is an entry of what went back.
type wireCancel struct {
	TID         string `json:"tid"`
	Amount      int64  `json:"amount"`
	CancelledAt string `json:"cancelledAt"`
	Reason      string `json:"reason"`
	// ReturnedAt is this simulator's own: the vendor's manual does not say how it tells of a payout that came back.
	ReturnedAt string `json:"returnedAt,omitempty"`
}

// checkoutAnswer is how the wire tells of a checkout.
type checkoutAnswer struct {
	ResultCode    string `json:"resultCode"`
	ResultMsg     string `json:"resultMsg"`
	MessageSource string `json:"messageSource"`
	SessionID     string `json:"sessionId"`
	URL           string `json:"url,omitempty"`
	IsExpire      bool   `json:"isExpire"`
	ExpireDate    string `json:"expireDate"`
	ExpireAt      string `json:"expireAt,omitempty"`
	Status        string `json:"status"`
	TID           string `json:"tid,omitempty"`
	ClientID      string `json:"clientId"`
	Method        string `json:"method"`
	OrderID       string `json:"orderId"`
	Amount        int64  `json:"amount"`
	GoodsName     string `json:"goodsName"`
	ReturnURL     string `json:"returnUrl,omitempty"`
}

// refusal is how the wire says no.
// status is that of HTTP; 0 is 200.
type refusal struct {
	ResultCode string `json:"resultCode"`
	ResultMsg  string `json:"resultMsg"`
	status     int
}

// refuse says no with one of the vendor's codes.
func refuse(code, message string) *refusal { return &refusal{ResultCode: code, ResultMsg: message} }

// kst is where the wire's times and dates are.
var kst = time.FixedZone("KST", 9*60*60)

// wireTime is how the wire writes a time; "0" is none.
func wireTime(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return t.In(kst).Format("2006-01-02T15:04:05.000-0700")
}

// Signature is what the vendor signs of an answer and of a webhook: not its status, and not its orderId.
// It is the hex of SHA-256 over tid, amount, ediDate and the secret, without separators. A receiver that trusts the status
// for the signature's sake can be told a lie (SPEC.md 8.2).
func Signature(tid string, amount int64, ediDate, secret string) string {
	sum := sha256.Sum256([]byte(tid + strconv.FormatInt(amount, 10) + ediDate + secret))
	return hex.EncodeToString(sum[:])
}

// sign signs an answer with the merchant's secret.
func (s *Sim) sign(a *answer) { a.Signature = Signature(a.TID, a.Amount, a.EdiDate, s.c.Secret) }

// optional is a text of the wire: an empty one is null.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
