package nicepay

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"time"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/text"
	"hub.internal/services/payments/provider"
)

// answer is what the vendor says of a payment. Members that Hub does not use are ignored; a number is an integer, and a
// name occurs once, or nothing is believed.
type answer struct {
	ResultCode   string   `json:"resultCode"`
	ResultMsg    string   `json:"resultMsg"`
	TID          string   `json:"tid"`
	CancelledTID string   `json:"cancelledTid"`
	OrderID      string   `json:"orderId"`
	EdiDate      string   `json:"ediDate"`
	Signature    string   `json:"signature"`
	Status       string   `json:"status"`
	PayMethod    string   `json:"payMethod"`
	PaidAt       string   `json:"paidAt"`
	FailedAt     string   `json:"failedAt"`
	CancelledAt  string   `json:"cancelledAt"`
	Currency     string   `json:"currency"`
	Amount       int64    `json:"amount"`
	BalanceAmt   int64    `json:"balanceAmt"`
	VBank        *vbank   `json:"vbank"`
	Cancels      []cancel `json:"cancels"`
}

// vbank is a virtual account on the wire.
type vbank struct {
	Code    string `json:"vbankCode"`
	Name    string `json:"vbankName"`
	Number  string `json:"vbankNumber"`
	ExpDate string `json:"vbankExpDate"`
	Holder  string `json:"vbankHolder"`
}

// cancel is an entry of what went back. Hub's own code stands at the end of the reason, in brackets: it is the only
// member that comes back unchanged, and by it a refund is found again after an unknown outcome.
type cancel struct {
	TID         string `json:"tid"`
	Amount      int64  `json:"amount"`
	CancelledAt string `json:"cancelledAt"`
	Reason      string `json:"reason"`
	// ReturnedAt is when the payout came back. The manual says nothing of such a case; the simulator tells it so.
	ReturnedAt string `json:"returnedAt"`
}

// maxWireAmount is the most that the vendor's 12 digits hold.
const maxWireAmount = 999_999_999_999

// The forms of what the vendor's answers name, and of Hub's code at the end of a reason.
var (
	tidForm     = regexp.MustCompile(`^[0-9A-Za-z_-]{1,30}$`)
	accountForm = regexp.MustCompile(`^[0-9-]{1,20}$`)
	codeForm    = regexp.MustCompile(`\[((?:rf|po)_[0-9A-Za-z_-]{1,60})\]`)
)

// readAnswer reads what the vendor says of a payment.
func readAnswer(raw []byte) (a answer, err error) {
	if err := json.Unmarshal(raw, &a); err != nil {
		return answer{}, unknown("the answer cannot be read")
	}
	return a, nil
}

// expectation is what an answer has to be about.
type expectation struct {
	tid    string // any, when it is empty
	codes  []string
	secret string
}

// snapshot is the payment that an answer tells of, once all of it holds: it is about what was asked for, signed where
// money was paid, and whole. ErrUnknown otherwise.
func (a answer) snapshot(q expectation, raw []byte) (provider.Snapshot, error) {
	none := provider.Snapshot{}
	status, known := statuses[a.Status]
	switch {
	case !known:
		return none, unknown("the payment has a status that nobody knows")
	case !tidForm.MatchString(a.TID) || q.tid != "" && a.TID != q.tid || !slices.Contains(q.codes, a.OrderID):
		return none, unknown("the answer is about another payment")
	case a.Currency != "" && a.Currency != "KRW":
		return none, unknown("the currency is not KRW")
	case a.Amount < 1 || a.Amount > maxWireAmount || a.BalanceAmt < 0 || a.BalanceAmt > a.Amount:
		return none, unknown("the amounts do not hold")
	case a.Signature == "" && status == provider.PaymentPaid:
		return none, unknown("the answer claims money, and is not signed")
	case a.Signature != "" && !a.signed(q.secret):
		return none, unknown("the answer is not signed with the credential")
	}
	// From here on the answer is about the payment that was asked for, and signed by who knows the secret.
	s := provider.Snapshot{TID: a.TID, Code: q.codes[0], Status: status, Amount: a.Amount, Balance: a.BalanceAmt, Raw: redacted(raw)}
	if status == provider.PaymentCanceled {
		s.Balance = 0
	}
	var ok bool
	if s.PaidAt, ok = readTime(a.PaidAt); !ok || status == provider.PaymentPaid && s.PaidAt.IsZero() {
		return none, unknown("the time of the payment cannot be read")
	}
	if status == provider.PaymentIssued || status == provider.PaymentExpired { // what waits and was cancelled has had a deposit
		if s.ReversedAt, ok = readTime(a.CancelledAt); !ok {
			return none, unknown("the time of the reversal cannot be read")
		}
	}
	var err error
	if s.Cancellations, err = a.cancels(); err == nil && a.VBank != nil && a.VBank.Number != "" {
		s.Account, err = a.VBank.account()
	}
	if err != nil {
		return none, err
	}
	return s, nil
}

// statuses is what the vendor's words mean. One that was paid back in part is still paid; how much is in its cancels.
var statuses = map[string]provider.PaymentStatus{
	"ready": provider.PaymentIssued, "paid": provider.PaymentPaid, "partialCancelled": provider.PaymentPaid,
	"cancelled": provider.PaymentCanceled, "failed": provider.PaymentFailed, "expired": provider.PaymentExpired,
}

// cancels reads what went back: each once, and together not more than there was.
func (a answer) cancels() (out []provider.Cancellation, err error) {
	var sum int64
	seen := map[string]bool{}
	for _, c := range a.Cancels {
		at, ok := readTime(c.CancelledAt)
		back, readable := readTime(c.ReturnedAt)
		if !ok || !readable || !tidForm.MatchString(c.TID) || seen[c.TID] || c.Amount < 1 || c.Amount > a.Amount {
			return nil, unknown("what was paid back does not hold")
		}
		if seen[c.TID] = true; back.IsZero() {
			sum += c.Amount
		}
		if sum > a.Amount {
			return nil, unknown("more was paid back than there was")
		}
		out = append(out, provider.Cancellation{TID: c.TID, RefundCode: codeIn(c.Reason), Amount: c.Amount, Reason: printable(c.Reason),
			At: at, Returned: !back.IsZero()})
	}
	return out, nil
}

// codeIn finds Hub's code in a reason; it stands at the end.
func codeIn(reason string) string {
	found := codeForm.FindAllStringSubmatch(reason, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}

// account is the virtual account as Hub keeps it; ErrUnknown when a member of it is not as the manual says.
func (v vbank) account() (*provider.VirtualAccount, error) {
	due, ok := readTime(v.ExpDate)
	if !ok || due.IsZero() || !accountForm.MatchString(v.Number) || len(v.Code) > 3 {
		return nil, unknown("the virtual account cannot be read")
	}
	return &provider.VirtualAccount{BankCode: printable(v.Code), BankName: printable(v.Name), Number: v.Number, Holder: printable(v.Holder),
		ExpiresAt: due}, nil
}

// signed verifies the vendor's signature in constant time. An empty secret verifies nothing.
func (a answer) signed(secret string) bool {
	// What is signed and in which order is the manual's: neither the status nor the orderId is covered.
	sum := sha256.Sum256([]byte(a.TID + strconv.FormatInt(a.Amount, 10) + a.EdiDate + secret))
	return secret != "" && subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(a.Signature)) == 1
}

// readTime reads a time of the vendor's; "0" and nothing are none.
func readTime(text string) (time.Time, bool) {
	if text == "" || text == "0" {
		return time.Time{}, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05.000-0700", "2006-01-02T15:04:05-0700", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), t.Year() >= 2000 && t.Year() < 2200
		}
	}
	return time.Time{}, false
}

// redacted is an answer as an operator may see it: without its signature, and without the payer.
func redacted(raw []byte) []byte {
	var members map[string]jsontext.Value
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for _, name := range []string{"signature", "buyerName", "buyerTel", "buyerEmail", "mallReserved", "mallUserId", "clientId"} {
		delete(members, name)
	}
	out, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return out
}

// printable is a text of the vendor's as people may see it.
func printable(s string) string { return text.Shown(s, 100) }
