package nicepay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"strings"

	json "github.com/go-json-experiment/json"

	"hub.internal/services/payments"
)

// webhookLimit bounds a webhook.
const webhookLimit = 64 << 10

// VerifyWebhook implements payments.Provider. The signature covers the tid, the amount and the time: status and code of
// the event are what its sender says, and no more. The trial of an address is not verified, since the vendor cannot sign it.
func (p *Provider) VerifyWebhook(contentType string, raw []byte, creds []payments.Cred) (payments.Event, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if len(raw) > webhookLimit || contentType != "" && (err != nil || media != "application/json") {
		return payments.Event{}, fmt.Errorf("%w: it is not a JSON object of at most %d bytes", payments.ErrUnverified, webhookLimit)
	}
	var a answer
	if json.Unmarshal(raw, &a) != nil {
		return payments.Event{}, fmt.Errorf("%w: it cannot be read", payments.ErrUnverified)
	}
	e := payments.Event{Key: key(a), TID: a.TID, Code: printable(a.OrderID), Kind: payments.EventPayment, Status: printable(a.Status)}
	if a.Status == "" && a.PayMethod == "" {
		return payments.Event{Key: e.Key, Kind: payments.EventTest}, nil
	}
	if !tidForm.MatchString(a.TID) || a.OrderID == "" || len(a.OrderID) > 64 || a.Amount < 1 || a.Amount > maxWireAmount || a.EdiDate == "" {
		return payments.Event{}, fmt.Errorf("%w: it names no payment", payments.ErrUnverified)
	}
	found := false
	for _, c := range creds { // all of them, so that the time tells nothing of which it was
		if _, secret := c.Reveal(); a.signed(secret) && !found {
			e.Cred, found = c, true
		}
	}
	if !found {
		return payments.Event{}, payments.ErrUnverified
	}
	return e, nil
}

// key is the same for a repetition: its parts are those that say what has happened and when, not those of the delivery.
// The times tell a second deposit, and the reversal of one, from what was told before. The order is one of them, since it is not
// signed: what names another order must not stand in the way of what is true.
func key(a answer) string {
	parts := []string{a.OrderID, a.TID, a.Status, fmt.Sprint(a.Amount), a.CancelledTID, a.PaidAt, a.FailedAt, a.CancelledAt}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
