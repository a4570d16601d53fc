package pgsim

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed page.html
var pageText string

// submit brings the browser back without a press of the button, where scripts run.
const submit = `document.forms.back.submit()`

// view is what the checkout page shows.
// Texts are ready for the page; Fields are what the browser brings back, signed.
type view struct {
	Order                   *order
	VBank                   bool
	Paid, Issued, Closed    bool
	Problem, Bank, Number   string
	Holder, Due, Back, Sum  string
	Fields                  []pair
	ReturnsByItself, Failed bool
	Submit                  template.JS
}

// pair is a hidden field of the form that brings the browser back.
type pair struct{ Name, Value string }

// token stands for the merchant in the address of its checkout pages.
// It is derived from the client id and is no secret: a wrong one is answered as a checkout that does not exist.
func (s *Sim) token() string {
	sum := sha256.Sum256([]byte(s.c.ClientID))
	return hex.EncodeToString(sum[:8])
}

// page shows what there is to pay, and the buttons of a payer.
func (s *Sim) page(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	o := s.sessions[r.PathValue("sessionId")]
	if o == nil || !same(r.PathValue("token"), s.token()) {
		s.mu.Unlock()
		render(w, http.StatusNotFound, view{Problem: "There is no such checkout."})
		return
	}
	v := s.view(o)
	s.mu.Unlock()
	render(w, http.StatusOK, v)
}

// view is what the page shows of an order; the lock is held.
func (s *Sim) view(o *order) view {
	v := view{Order: o, VBank: o.Method == methodVBank, Closed: s.isClosed(o), Back: o.ReturnURL, Sum: grouped(o.Amount)}
	if p := o.payment(); p != nil {
		v.Paid, v.Issued, v.Failed = p.Status == paid, p.Status == ready, p.Status == failed
		v.Bank, v.Number, v.Holder, v.Due = p.BankName, p.Number, p.Owner, p.Due.In(kst).Format("2006-01-02 15:04")
		v.Closed = v.Closed || p.Status == cancelled
		v.Fields = s.back(o, p)
	}
	return v
}

// grouped writes an amount as people read it.
// 1234567 is 1,234,567.
func grouped(amount int64) string {
	text := strconv.FormatInt(amount, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// back is what the browser brings to the returnUrl.
// It is signed as an answer is, and proves as little: a receiver asks the provider what is true (SPEC.md 8.3).
func (s *Sim) back(o *order, p *payment) []pair {
	a := s.tell(o, p)
	success := a.Status != failed
	if !success {
		a.ResultCode, a.ResultMsg = "3095", "카드사 실패 응답"
	}
	return []pair{{"success", strconv.FormatBool(success)}, {"resultCode", a.ResultCode}, {"resultMsg", a.ResultMsg}, {"tid", a.TID},
		{"orderId", a.OrderID}, {"clientId", s.c.ClientID}, {"amount", strconv.FormatInt(a.Amount, 10)}, {"status", a.Status},
		{"payMethod", a.PayMethod}, {"ediDate", a.EdiDate}, {"signature", a.Signature}, {"sessionId", o.SessionID}}
}

// pressed does what a payer has pressed, and brings the browser back.
// 404 is an unknown checkout, 410 one that is closed, 400 a button that does not exist, 409 what the order does not allow.
// The form has no token against forgery: what it moves is no money.
func (s *Sim) pressed(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
	s.mu.Lock()
	o := s.sessions[r.PathValue("sessionId")]
	open := o != nil && same(r.PathValue("token"), s.token())
	var v view
	if open {
		v = s.view(o)
	}
	s.mu.Unlock()
	if !open {
		render(w, http.StatusNotFound, view{Problem: "There is no such checkout."})
		return
	}
	if v.Closed {
		render(w, http.StatusGone, v)
		return
	}
	act := map[string]func(string) error{"pay": s.Pay, "issue": s.Issue, "fail": s.Fail}[r.PostFormValue("press")]
	if act == nil {
		v.Problem = "There is no such button."
		render(w, http.StatusBadRequest, v)
		return
	}
	err := act(o.OrderID)
	s.mu.Lock()
	v = s.view(o)
	s.mu.Unlock()
	if err != nil {
		v.Problem = "That is not possible any more: " + err.Error() + "."
		render(w, http.StatusConflict, v)
		return
	}
	v.ReturnsByItself = true
	render(w, http.StatusOK, v)
}

// render writes the page. Its policy lets the one script run that submits the form, known by its hash.
// The hash is computed from the script itself, so that the two cannot differ.
func render(w http.ResponseWriter, status int, v view) {
	t, err := template.New("page").Parse(pageText)
	var b bytes.Buffer
	if v.Submit = submit; err == nil {
		err = t.Execute(&b, v)
	}
	if err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256([]byte(submit))
	policy := "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'"
	if v.Back != "" {
		policy += " http: https:" // from the returnUrl the browser is sent on, and the form's policy holds on that way, too
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}
