package nicepay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"strings"

	json "github.com/go-json-experiment/json"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// webhookLimit bounds a webhook.
const webhookLimit = 64 << 10

// VerifyWebhook implements provider.Port. The signature covers the tid, the amount and the time: status and code of
// the event are what its sender says, and no more. The trial of an address is not verified, since the vendor cannot sign it.
func (p *Provider) VerifyWebhook(contentType string, raw []byte, creds []credentials.Unsealed) (provider.WebhookEvent, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if len(raw) > webhookLimit || contentType != "" && (err != nil || media != "application/json") {
		return provider.WebhookEvent{}, fmt.Errorf("%w: it is not a JSON object of at most %d bytes", provider.ErrUnverified, webhookLimit)
	}
	var a answer
	if json.Unmarshal(raw, &a) != nil {
		return provider.WebhookEvent{}, fmt.Errorf("%w: it cannot be read", provider.ErrUnverified)
	}
	e := provider.WebhookEvent{Key: eventKey(a), TID: a.TID, Code: printable(a.OrderID), Kind: provider.WebhookOfPayment,
		Status: printable(a.Status)}
	if a.Status == "" && a.PayMethod == "" {
		return provider.WebhookEvent{Key: e.Key, Kind: provider.WebhookTrial}, nil
	}
	if !tidForm.MatchString(a.TID) || a.OrderID == "" || len(a.OrderID) > 64 || a.Amount < 1 || a.Amount > maxWireAmount || a.EdiDate == "" {
		return provider.WebhookEvent{}, fmt.Errorf("%w: it names no payment", provider.ErrUnverified)
	}
	found := false
	for _, c := range creds { // all of them, so that the time tells nothing of which it was
		if _, secret := c.Reveal(); a.signed(secret) && !found {
			e.Credential, found = c, true
		}
	}
	if !found {
		return provider.WebhookEvent{}, provider.ErrUnverified
	}
	return e, nil
}

// eventKey is the same for a repetition: its parts are those that say what has happened and when, not those of the delivery.
// The times tell a second deposit, and the reversal of one, from what was told before. The order is one of them, since it is not
// signed: what names another order must not stand in the way of what is true.
func eventKey(a answer) string {
	parts := []string{a.OrderID, a.TID, a.Status, fmt.Sprint(a.Amount), a.CancelledTID, a.PaidAt, a.FailedAt, a.CancelledAt}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
