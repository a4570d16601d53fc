// Package auth asks the auth service about Connected Apps. It keeps nothing of the answers: an app that was suspended, or a
// secret that was revoked, is so for the very next question. It refuses an answer about another app than it has asked for.
package auth

import (
	"context"
	"fmt"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/services/payments"
)

// settingsQuestion is what the operation of auth takes.
type settingsQuestion struct {
	ServiceCode string `json:"service_code"`
}

// settingsAnswer has of auth's answer what payments needs. Members that a later auth adds are ignored.
type settingsAnswer struct {
	ServiceCode    string   `json:"service_code"`
	Status         string   `json:"status"`
	RedirectURLs   []string `json:"redirect_urls"`
	Origins        []string `json:"origins"`
	WebhookSecrets []string `json:"webhook_secrets"`
}

// readSettings is auth's operation. It changes nothing, so that pkg/remote may repeat it within its retry budget.
var readSettings = remote.Operation[settingsQuestion, settingsAnswer]{Path: "/internal/apps/settings", Repeatable: true}

// Contracts are what payments takes for granted of auth.
func Contracts() []remote.Contract { return []remote.Contract{readSettings.Contract()} }

// Apps knows Connected Apps by asking auth.
type Apps struct{ client *remote.Client }

var _ payments.Apps = Apps{}

// New returns the apps behind a client of auth.
func New(client *remote.Client) Apps { return Apps{client} }

// patience bounds one question. It is far below the 50 s of a route that asks (package api), which has time left to refuse then.
const patience = 3 * time.Second

// App implements payments.Apps.
func (a Apps) App(ctx context.Context, serviceCode string) (payments.App, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := readSettings.Call(caller.Alone(ctx, "payments"), a.client, settingsQuestion{serviceCode})
	if err != nil {
		return payments.App{}, err
	}
	if s.ServiceCode != serviceCode { // the secrets of another app would sign for this one
		return payments.App{}, fault.New(fault.DB, "The auth service cannot be asked right now. Try again in a moment.").
			Because(fmt.Errorf("auth answers for %.60q when asked about %q", s.ServiceCode, serviceCode))
	}
	return payments.App{Active: s.Status == "ACTIVE", RedirectURLs: s.RedirectURLs, Origins: s.Origins, Secrets: s.WebhookSecrets}, nil
}
