package nicepay

import (
	"net/http"
	"time"
)

// GuardedClient is the client of a process for production.
func GuardedClient() *http.Client { return newClient(time.Second, true) }

// Snapshot reads an answer as Get does.
func Snapshot(raw []byte, tid, code, secret string) (any, error) {
	a, err := readAnswer(raw)
	if err != nil {
		return nil, err
	}
	return a.snapshot(expectation{tid: tid, codes: []string{code}, secret: secret}, raw)
}

// Trimmed is a text as the wire takes it.
func Trimmed(text string, limit int) string { return trimmed(text, limit) }

// Payable tells whether a page may be shown to a payer.
func (p *Provider) Payable(page string) bool { return p.payable(page) }
