package pgsim

import (
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"
)

// cancelRequest is the body of a cancel, as the manual has it. Without an amount all that is left goes back.
// The account is where money goes that was paid into a virtual account: a card needs none.
type cancelRequest struct {
	Reason    string `json:"reason"`
	OrderID   string `json:"orderId"`
	CancelAmt *int64 `json:"cancelAmt"`
	Account   string `json:"refundAccount"`
	BankCode  string `json:"refundBankCode"`
	Holder    string `json:"refundHolder"`
	TaxFree   int64  `json:"taxFreeAmt"`
}

// problem is what the vendor would refuse of the form of the request.
// The reason has 100 bytes at most, the account 16, the holder 10 characters.
func (c cancelRequest) problem() *refusal {
	switch {
	case c.Reason == "" || c.OrderID == "":
		return refuse("U100", "필수입력항목이 누락되었습니다.")
	case len(c.Reason) > 100 || len(c.OrderID) > 64 || len(c.Account) > 16 || len(c.BankCode) > 3 || utf8.RuneCountInString(c.Holder) > 10:
		return refuse("U105", "필드 최대길이 초과")
	case c.CancelAmt != nil && *c.CancelAmt <= 0:
		return refuse("2010", "취소 요청금액 0원 이하")
	}
	return nil
}

// cancel gives a payment back, all of it or a part, or gives up one that was not paid. The orderId can be used once.
// The orderId of a cancel is not that of the order but the caller's own for this refund, by which a repetition is found
// out: the vendor's idempotency key. 2001 is the success of a cancel, 2211 that of a refund of a paid virtual account.
func (s *Sim) cancel(r *http.Request, body []byte) any {
	var in cancelRequest
	if json.Unmarshal(body, &in) != nil {
		return refuse("U125", "잘못된 요청 입니다.")
	}
	if no := in.problem(); no != nil {
		return no
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.payments[r.PathValue("tid")]
	if p == nil {
		return refuse("2012", "취소 해당거래 없음")
	}
	o := s.orders[p.OrderID]
	amount, no := s.cancellable(p, in)
	if no != nil {
		return no
	}
	// What is tax-free of a refund comes out of what is tax-free of the order, less what went back before.
	if in.TaxFree < 0 || in.TaxFree > min(amount, o.TaxFreeAmt-p.taxFree()) {
		return refuse("U319", "요청하신 면세금액이 취소가능한 면세금액을 초과 오류")
	}
	wasPaid := p.Status == paid
	c := s.takeBack(p, amount, in.OrderID, in.Reason)
	c.TaxFreeAmt = in.TaxFree
	s.kept(o)
	s.notify(s.tellCancel(o, p, c))
	out := s.tellCancel(o, p, c)
	if out.ResultCode, out.ResultMsg = "2001", "취소 성공"; wasPaid && p.Method == methodVBank {
		out.ResultCode, out.ResultMsg = "2211", "환불 성공"
	}
	return out
}

// cancellable is how much of a payment the request takes back, or why it may not.
// A payment that nobody has paid is given up as a whole: another amount than its own is 2011. A payment that is cancelled
// answers every request with 2013, a repetition of the request that cancelled it among them.
func (s *Sim) cancellable(p *payment, in cancelRequest) (int64, *refusal) {
	balance := p.Amount - p.cancelled()
	switch status := p.status(s.c.Now()); {
	case status == cancelled:
		return 0, refuse("2013", "취소 완료 거래")
	case s.refunds[in.OrderID] != nil:
		return 0, refuse("2015", "기 취소 요청")
	case status == failed:
		return 0, refuse("2014", "취소 불가능 거래")
	case status == expired:
		return 0, refuse("2016", "취소 기한 초과")
	case status == ready && in.CancelAmt != nil && *in.CancelAmt != balance:
		return 0, refuse("2011", "취소 금액 불일치")
	case status == ready:
		return balance, nil
	case in.CancelAmt == nil:
		return balance, nil
	case *in.CancelAmt > p.Amount && p.Method == methodVBank:
		return 0, refuse("2026", "입금액보다 취소금액이 큽니다.")
	case *in.CancelAmt > balance:
		return 0, refuse("2032", "취소금액이 취소가능금액보다 큼")
	}
	return *in.CancelAmt, nil
}

// netCancel undoes what was approved for an order within the last hour.
// It is the vendor's way out for a caller that lost the answer to an approval: it takes the whole payment back, by the
// order's own id. After the hour it is refused with 2020.
func (s *Sim) netCancel(_ *http.Request, body []byte) any {
	var in struct {
		OrderID string `json:"orderId"`
	}
	if json.Unmarshal(body, &in) != nil || in.OrderID == "" {
		return refuse("U100", "필수입력항목이 누락되었습니다.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[in.OrderID]
	if o == nil || o.payment() == nil {
		return refuse("2012", "취소 해당거래 없음")
	}
	p := o.payment()
	switch status := p.status(s.c.Now()); {
	case status == cancelled:
		return refuse("2013", "취소 완료 거래")
	case status != ready && status != paid:
		return refuse("2014", "취소 불가능 거래")
	case s.c.Now().Sub(p.CreatedAt) > time.Hour:
		return refuse("2020", "망상 취소 허용시간 초과")
	}
	c := s.takeBack(p, p.Amount, "", "netcancel")
	s.kept(o)
	s.notify(s.tellCancel(o, p, c))
	out := s.tellCancel(o, p, c)
	out.ResultCode, out.ResultMsg = "2001", "취소 성공"
	return out
}
