package pgsim

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// bodyLimit bounds what a caller sends.
const bodyLimit = 64 << 10

// api wraps a call of the wire: it authenticates, keeps the call, and lets happen to it what was asked for.
// A refusal is 200 with a resultCode, as the vendor's are; only the credential is 401, and a session or payment that is
// asked for and does not exist 404.
func (s *Sim) api(on string, handle func(*http.Request, []byte) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
		if err != nil {
			write(w, http.StatusOK, refuse("U302", "요청전문 최대 길이 초과."))
			return
		}
		id, secret, _ := r.BasicAuth()
		if !same(id, s.c.ClientID) || !same(secret, s.c.Secret) {
			write(w, http.StatusUnauthorized, refuse("U104", "사용자 인증에 실패하였습니다."))
			return
		}
		// A call is remembered before anything is done about it, so that a test sees also those that a fault has cut off.
		call := s.keep(on, r, body)
		if s.c.OnCall != nil {
			s.c.OnCall(call)
		}
		f := s.takeFault(on)
		s.fulfil(w, r, f, call, func() any { return handle(r, body) })
	}
}

// fulfil answers a call, with the fault that was asked for.
// http.ErrAbortHandler makes net/http cut the connection without an answer and without a log entry: the caller cannot tell
// whether the call was done, which SPEC.md 8.1 calls unknown.
func (s *Sim) fulfil(w http.ResponseWriter, r *http.Request, f fault, call Call, handle func() any) {
	switch f.Kind {
	case TimeoutBefore, Drop:
		s.settleCall(call, f.Kind, nil)
		panic(http.ErrAbortHandler) // the connection breaks, as far as the caller sees
	case ServerError:
		s.settleCall(call, f.Kind, nil)
		http.Error(w, "<html><body>Internal Server Error</body></html>", http.StatusInternalServerError)
		return
	case Decline:
		no := refuse(f.code(), "거절되었습니다.")
		s.settleCall(call, f.Kind, no)
		write(w, http.StatusOK, no)
		return
	case Delay:
		select {
		case <-time.After(f.pause()):
		case <-r.Context().Done():
		}
	// As of a proxy that repeats a request: the caller hears of the second one, which the first has made a duplicate.
	case Duplicate:
		handle()
	}
	out := handle()
	if f.Kind == WrongOrder {
		s.lie(out)
	}
	s.settleCall(call, f.Kind, out)
	switch f.Kind {
	// The webhook overtakes the answer: the receiver hears of a payment whose issue it still waits for.
	case WebhookFirst:
		s.awaitAttempts(r.Context(), call.OrderID)
	case TimeoutAfter:
		panic(http.ErrAbortHandler)
	case Garbage:
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
		// The code says that it was done, the amount is no int64, and the text ends in the middle.
		_, _ = io.WriteString(w, `{"resultCode":"0000","resultMsg":"정상 처리되었습니다.","amount":99999999999999999999,"tid":`)
		return
	}
	status := http.StatusOK
	if no, refused := out.(*refusal); refused && no.status != 0 {
		status = no.status
	}
	write(w, status, out)
}

// lie makes an answer that belongs to another order, signed as well as any.
// The signature holds, since it does not cover the orderId: a caller that does not compare the ids books it for the wrong
// order.
func (s *Sim) lie(out any) {
	switch a := out.(type) {
	case *answer:
		a.OrderID, a.TID = "po_00000000000000000000000000", "simhub001m0301000000000000"+"0000"
		s.sign(a)
	case *checkoutAnswer:
		a.OrderID, a.SessionID = "po_00000000000000000000000000", "po_00000000000000000000000000"
	}
}

// checkoutRequest is the body of a checkout, as the manual has it.
// Amounts are won. Pointers tell what was not sent from 0.
type checkoutRequest struct {
	SessionID   string `json:"sessionId"`
	OrderID     string `json:"orderId"`
	Method      string `json:"method"`
	Amount      int64  `json:"amount"`
	GoodsName   string `json:"goodsName"`
	ReturnURL   string `json:"returnUrl"`
	TaxFreeAmt  *int64 `json:"taxFreeAmt"`
	VBankHolder string `json:"vbankHolder"`
	ValidHours  *int   `json:"vbankValidHours"`
	BuyerName   string `json:"buyerName"`
	BuyerTel    string `json:"buyerTel"`
	BuyerEmail  string `json:"buyerEmail"`
}

// problem is what the vendor would refuse of the request.
// Lengths are counted in bytes, three for a Korean letter. The order of the checks decides which code is answered.
func (c checkoutRequest) problem() *refusal {
	target, err := url.Parse(c.ReturnURL)
	switch {
	case c.SessionID == "" || c.OrderID == "" || c.Method == "" || c.GoodsName == "" || c.ReturnURL == "":
		return refuse("U100", "필수입력항목이 누락되었습니다.")
	case c.Method == methodVBank && c.VBankHolder == "":
		return refuse("U100", "vbankHolder 필수입력항목이 누락되었습니다.")
	case len(c.OrderID) > 64 || len(c.SessionID) > 64 || len(c.GoodsName) > 40 || len(c.ReturnURL) > 500 || len(c.VBankHolder) > 40 ||
		len(c.BuyerName) > 30 || len(c.BuyerTel) > 40 || len(c.BuyerEmail) > 60:
		return refuse("U105", "필드 최대길이 초과")
	case strings.ContainsAny(c.GoodsName, `"|`) || !utf8.ValidString(c.GoodsName):
		return refuse("U131", "허용된 Data형식이 아닙니다.")
	case c.Method != methodCard && c.Method != methodVBank:
		return refuse("U110", "지원하지 않는 지불수단 입니다.")
	case c.Amount < 1 || c.Amount > 999_999_999_999:
		return refuse("U127", "요청 금액이 올바르지 않습니다.")
	case c.TaxFreeAmt != nil && (*c.TaxFreeAmt < 0 || *c.TaxFreeAmt > c.Amount):
		return refuse("U321", "면세금액이 결제금액 보다 큼.")
	case c.ValidHours != nil && (*c.ValidHours < 1 || *c.ValidHours > 9999):
		return refuse("P031", "가상계좌 유효시간 지정 오류 입니다.")
	case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
		return refuse("U125", "잘못된 요청 입니다.")
	}
	return nil
}

// checkout begins an order. Its orderId can be used once.
// With AutoIssue a virtual account is there before the answer, and the webhook of it is on its way.
func (s *Sim) checkout(r *http.Request, body []byte) any {
	var in checkoutRequest
	if json.Unmarshal(body, &in) != nil {
		return refuse("U125", "잘못된 요청 입니다.")
	}
	if no := in.problem(); no != nil {
		return no
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The vendor takes an id once: the second call of a checkout is a duplicate, by which Hub finds what it had begun.
	if s.orders[in.OrderID] != nil || s.sessions[in.SessionID] != nil {
		return refuse("A127", "주문번호 중복 오류")
	}
	now := s.c.Now()
	o := &order{OrderID: in.OrderID, SessionID: in.SessionID, Method: in.Method, Amount: in.Amount, GoodsName: in.GoodsName,
		ReturnURL: in.ReturnURL, BuyerName: in.BuyerName, BuyerTel: in.BuyerTel, BuyerEmail: in.BuyerEmail,
		VBankHolder: in.VBankHolder, ValidHours: 7 * 24, ClosesAt: now.Add(24 * time.Hour)}
	if in.ValidHours != nil {
		o.ValidHours = *in.ValidHours
	}
	if in.TaxFreeAmt != nil {
		o.TaxFreeAmt = *in.TaxFreeAmt
	}
	s.orders[o.OrderID], s.sessions[o.SessionID] = o, o
	var out *checkoutAnswer
	if s.c.AutoIssue && o.Method == methodVBank {
		p := s.issueAccount(o)
		s.kept(o)
		out = s.tellCheckout(r, o)
		s.notify(s.tell(o, p))
	} else {
		s.kept(o)
		out = s.tellCheckout(r, o)
	}
	return out
}

// tellCheckout is what the wire says of a checkout. The page's address is within PublicURL, or on the host that the
// request came to.
func (s *Sim) tellCheckout(r *http.Request, o *order) *checkoutAnswer {
	base := strings.TrimSuffix(s.c.PublicURL, "/")
	if base == "" {
		base = "http://" + r.Host
	}
	out := &checkoutAnswer{ResultCode: "0000", ResultMsg: "정상 처리되었습니다.", MessageSource: "nicepay", SessionID: o.SessionID,
		URL: base + "/v1/checkout/pay/" + s.token() + "/" + url.PathEscape(o.SessionID), ExpireDate: wireTime(o.ClosesAt),
		IsExpire: s.isClosed(o), Status: ready, ClientID: s.c.ClientID, Method: o.Method,
		OrderID: o.OrderID, Amount: o.Amount, GoodsName: o.GoodsName, ReturnURL: o.ReturnURL}
	if !o.Expired.IsZero() {
		out.ExpireAt = wireTime(o.Expired)
	}
	if p := o.payment(); p != nil {
		out.TID, out.Status = p.TID, p.status(s.c.Now())
	}
	return out
}

// checkoutState tells of a checkout session.
func (s *Sim) checkoutState(r *http.Request, _ []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.sessions[r.PathValue("sessionId")]
	if o == nil {
		return &refusal{"P040", "세션키에 해당하는 주문정보가 존재하지 않습니다.", http.StatusNotFound}
	}
	return s.tellCheckout(r, o)
}

// expire closes the page of a checkout.
// What was issued before stays payable: the page is closed, and not the account.
func (s *Sim) expire(r *http.Request, _ []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.sessions[r.PathValue("sessionId")]
	switch {
	case o == nil:
		return &refusal{"P040", "세션키에 해당하는 주문정보가 존재하지 않습니다.", http.StatusNotFound}
	case !o.Expired.IsZero():
		return refuse("U325", "이미 만료된 세션아이디 입니다.")
	}
	o.Expired = s.c.Now()
	s.kept(o)
	return s.tellCheckout(r, o)
}

// payment tells of a payment by its tid.
func (s *Sim) payment(r *http.Request, _ []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.payments[r.PathValue("tid")]
	if p == nil {
		return &refusal{"U107", "거래내역이 존재 하지 않습니다.", http.StatusNotFound}
	}
	return s.tell(s.orders[p.OrderID], p)
}

// find tells of the payment of an order that was made on a day of Korea.
// The day is part of the question, so that a caller who looks around midnight has to ask for two days. Of several payments
// it tells of the one that counts.
func (s *Sim) find(r *http.Request, _ []byte) any {
	day := r.URL.Query().Get("orderDate")
	if _, err := time.Parse("20060102", day); err != nil {
		return refuse("U130", "허용된 Date형식이 아닙니다.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[r.PathValue("orderId")]
	if o == nil || o.payment() == nil || o.payment().CreatedAt.In(kst).Format("20060102") != day {
		return &refusal{"U126", "orderId가 존재 하지 않습니다.", http.StatusNotFound}
	}
	return s.tell(o, o.payment())
}

// write answers in JSON.
// HTML is not escaped: & in a name stays &.
func write(w http.ResponseWriter, status int, out any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		http.Error(w, "cannot write the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// same compares without telling by its time how much of it was right.
// Hashes of equal length are compared, because ConstantTimeCompare tells texts of different lengths apart at once.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
