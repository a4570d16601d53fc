package apps

import (
	"context"
	"fmt"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
)

// SettingsPath is where payments asks what it needs of an app to notify it.
const SettingsPath = "/internal/apps/settings"

// SettingsRequest names an app.
type SettingsRequest struct {
	ServiceCode string `json:"service_code"`
}

// SettingsResponse is what of an app a service needs that sends it messages and browsers.
type SettingsResponse struct {
	ServiceCode string `json:"service_code"`
	Status      Status `json:"status"`
	// RedirectURLs are compared byte by byte. Without Origins every origin is allowed.
	RedirectURLs []string `json:"redirect_urls"`
	Origins      []string `json:"origins"`
	// WebhookSecrets are in clear, to sign with: the current one first, then the one that it has replaced less than 24
	// hours ago. They are not to be kept, logged or answered.
	WebhookSecrets []string `json:"webhook_secrets"`
}

// Operations declares what is told of apps to neighbours.
func Operations(s *Service) []rpc.Operation {
	return []rpc.Operation{rpc.New(rpc.Declaration{Path: SettingsPath, Takes: caller.Neighbour("payments")}, s.settings)}
}

// settings returns E_NOT_FOUND for a code that no app has.
func (s *Service) settings(ctx context.Context, in SettingsRequest) (SettingsResponse, error) {
	a, secrets, err := s.c.Store.Keyring(ctx, in.ServiceCode, Webhook, s.now())
	if err != nil {
		return SettingsResponse{}, err
	}
	out := SettingsResponse{ServiceCode: a.Code, Status: a.Status, RedirectURLs: a.RedirectURLs, Origins: a.Origins,
		WebhookSecrets: []string{}}
	for _, secret := range secrets {
		if s.c.Sealer == nil {
			return SettingsResponse{}, fmt.Errorf("%s has a webhook secret, and HUB_SECRETS_KEYSET is not set", a.Code)
		}
		text, err := s.c.Sealer.Open(secret.Sealed, Webhook.SealName(secret.Secret))
		if err != nil {
			return SettingsResponse{}, err
		}
		out.WebhookSecrets = append(out.WebhookSecrets, text)
	}
	return out, nil
}
