package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

// WebhookOutcome says what became of a webhook. The empty one is that of a webhook that waits for its job.
type WebhookOutcome string

// The outcomes of a webhook. Unmatched is for an order that is not there, or not yet.
const (
	WebhookReceived  WebhookOutcome = ""
	WebhookApplied   WebhookOutcome = "APPLIED"
	WebhookIgnored   WebhookOutcome = "IGNORED"
	WebhookUnmatched WebhookOutcome = "UNMATCHED"
	WebhookAbandoned WebhookOutcome = "ABANDONED"
	maxWebhookBytes                 = 64 << 10
	returnTimeout                   = 5 * time.Second
	// webhookRetention is how long a webhook is looked into that the provider does not explain.
	webhookRetention = 3 * 24 * time.Hour
	// returnCheckInterval is how long after a check a browser's return starts no other: a page that is reloaded asks once.
	returnCheckInterval = 2 * time.Second
)

// Webhook is a row of the inbox. Its key is the provider, the environment and what the event is, so that a repetition is the same
// row. What it claims is shown to operators and believed by nobody.
type Webhook struct {
	Provider   string
	Env        credentials.Env
	Key        string
	TID, Code  string
	Claims     string
	Raw        []byte
	ReceivedAt time.Time
	Outcome    WebhookOutcome
	Attempts   int
}

// redactedFields begin the names of what of a webhook nobody sees: what proves or is secret, and who has paid. It is in lower case.
var redactedFields = []string{"signature", "secret", "clientid", "clientkey", "authorization", "buyer", "mallreserved", "malluserid",
	"refundaccount", "refundholder",
	"cardnum", "cardno"}

// Redacted is what the webhook says as an operator may see it, indented: without its signature, and without the payer. It
// is empty for what is no JSON.
func (w Webhook) Redacted() string {
	decoder := json.NewDecoder(bytes.NewReader(w.Raw))
	decoder.UseNumber()
	var said any
	if decoder.Decode(&said) != nil {
		return ""
	}
	out, err := json.MarshalIndent(redact(said), "", "  ")
	if err != nil {
		return ""
	}
	return string(out)
}

// redact replaces the values of secret members, at any depth. It changes the value that it is given.
func redact(said any) any {
	switch v := said.(type) {
	case map[string]any:
		for name, member := range v {
			if slices.ContainsFunc(redactedFields, func(hidden string) bool { return strings.HasPrefix(strings.ToLower(name), hidden) }) {
				v[name] = "…"
				continue
			}
			v[name] = redact(member)
		}
	case []any:
		for n := range v {
			v[n] = redact(v[n])
		}
	}
	return said
}

// Inbox keeps webhooks until they have been looked into.
type Inbox interface {
	// Receive stores a webhook with the job that looks into it; one that is there already changes nothing. Of a payment that has
	// many, the order is looked at and nothing is stored; E_RATE_LIMIT when it has none.
	Receive(ctx context.Context, w Webhook) error
	// Webhook returns a webhook; E_NOT_FOUND without one.
	Webhook(ctx context.Context, provider string, env credentials.Env, key string) (Webhook, error)
	// Settle keeps what became of a webhook, and counts the attempt.
	Settle(ctx context.Context, w Webhook, o WebhookOutcome) error
}

// rematchWaits are the waits for an order that a webhook names and that is not there.
var rematchWaits = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour}

// Receive takes a webhook of a provider: what is signed is stored and looked into later, for a signature does not cover
// what the webhook claims. E_NOT_FOUND for a provider that Hub does not have, E_AUTH_INVALID for what no credential
// verifies, of which nothing is stored, E_DB when it could not be stored: the provider sends it again. E_RATE_LIMIT for one too
// many of a payment that no order has.
func (s *Service) Receive(ctx context.Context, providerName, contentType string, raw []byte) error {
	if providerName != s.c.Provider.Name() {
		return fault.New(fault.NotFound, "There is no provider of that name.")
	}
	if len(raw) > maxWebhookBytes {
		return fault.New(fault.Validation, "A webhook has at most %d bytes.", maxWebhookBytes)
	}
	// A webhook does not say which credential it is signed with: an order may have been made with one that was rotated since.
	creds, err := s.c.Credentials.Verifying(ctx, providerName)
	if err != nil {
		return err
	}
	e, err := s.c.Provider.VerifyWebhook(contentType, raw, creds)
	switch {
	case err != nil:
		return fault.New(fault.AuthInvalid, "The webhook is not signed with a credential of this service.").Because(err)
	case e.Kind == provider.WebhookTrial:
		return nil
	}
	return s.c.Store.Receive(ctx, Webhook{Provider: providerName, Env: e.Credential.Env, Key: e.Key, TID: e.TID, Code: e.Code,
		Claims:     e.Status,
		Raw:        raw,
		ReceivedAt: s.now()})
}

// Acknowledge is what the provider wants to hear of a webhook that was stored, or with an error was not.
func (s *Service) Acknowledge(ctx context.Context, err error) (status int, contentType, body string) {
	if err != nil {
		s.c.Logger.ErrorContext(ctx, "a webhook could not be stored", "error", err)
	}
	return s.c.Provider.Ack(err == nil)
}

// ProcessWebhook asks the provider about what a webhook has hinted at. again is the wait after which to do so once more; 0 for
// one that is settled.
func (s *Service) ProcessWebhook(ctx context.Context, providerName string, env credentials.Env, key string) (again time.Duration,
	err error) {
	w, err := s.c.Store.Webhook(ctx, providerName, env, key)
	if err != nil || w.Outcome != WebhookReceived && w.Outcome != WebhookUnmatched {
		return 0, err
	}
	before, err := s.c.Store.Order(ctx, w.Code)
	if fault.Is(err, fault.NotFound) || err == nil && before.Order.Env != w.Env {
		if w.Attempts >= len(rematchWaits) {
			s.c.Logger.ErrorContext(ctx, "a webhook names an order that is not there", "provider", providerName, "order", w.Code, "tid", w.TID)
			return 0, s.c.Store.Settle(ctx, w, WebhookAbandoned)
		}
		return rematchWaits[w.Attempts], s.c.Store.Settle(ctx, w, WebhookUnmatched)
	}
	if err != nil {
		return 0, err
	}
	after, _, err := s.reconcileWithProvider(ctx, provider.PaymentRef{TID: w.TID, Code: w.Code}, Actor{Name: "provider", Now: s.now()})
	if err != nil {
		if s.now().After(w.ReceivedAt.Add(webhookRetention)) {
			// Such as one that names the payment of another order: the provider never says a word about that.
			s.c.Logger.ErrorContext(ctx, "a webhook cannot be looked into", "provider", providerName, "order", w.Code, "tid", w.TID, "error", err)
			return 0, s.c.Store.Settle(ctx, w, WebhookAbandoned)
		}
		return 0, err
	}
	// Whether it was this webhook or somebody else's question that has moved the order makes no difference to anybody.
	outcome := WebhookIgnored
	if after.Order.Version != before.Order.Version {
		outcome = WebhookApplied
	}
	return 0, s.c.Store.Settle(ctx, w, outcome)
}

// LookAt asks the provider about an order that a webhook was about of which nothing was kept, and brings the order to what it says. When
// the order is checked by itself stays as it is: who sends many webhooks changes nothing about that. E_DB when the provider does not
// answer; the job asks again.
func (s *Service) LookAt(ctx context.Context, code string) error {
	_, _, err := s.reconcileWithProvider(ctx, provider.PaymentRef{Code: code}, Actor{Name: "provider", Now: s.now()})
	return err
}

// Return is where a browser goes on that comes back from the provider's page: to the app, with the order's code and
// status, after one question to the provider. An order without a returnUrl has none. E_NOT_FOUND for a code that is none.
func (s *Service) Return(ctx context.Context, code string) (location string, status string, err error) {
	a, err := s.c.Store.Order(ctx, code)
	if err != nil {
		return "", "", err
	}
	if o := a.Order; o.Status == order.Ready || o.Status == order.AwaitingDeposit {
		fresh, err := s.c.Store.CheckedSince(ctx, code, s.now().Add(-returnCheckInterval), s.now())
		if err != nil {
			return "", "", err
		}
		if !fresh {
			asking, cancel := context.WithTimeout(ctx, returnTimeout)
			defer cancel()
			if pulled, _, err := s.reconcileWithProvider(asking, provider.PaymentRef{Code: code}, Actor{Name: "provider",
				Now: s.now()}); err == nil {
				a = pulled
			} else if errors.Is(err, context.Canceled) {
				return "", "", err
			}
		}
	}
	status = string(a.Order.Status)
	if a.Order.Status == order.AwaitingDeposit {
		status = order.VBankIssued
	}
	if a.Order.ReturnURL == "" {
		return "", status, nil
	}
	back, err := url.Parse(a.Order.ReturnURL)
	if err != nil {
		return "", "", err
	}
	q := back.Query()
	q.Set("code", a.Order.Code)
	q.Set("status", status)
	back.RawQuery = q.Encode()
	return back.String(), status, nil
}
