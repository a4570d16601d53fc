package servicejwt

import (
	"context"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
	"hub.internal/services/auth/apps"
)

// VerifyPath is where the gateway asks about a token.
const VerifyPath = "/internal/apps/verify"

// VerifyRequest asks whose a token is.
type VerifyRequest struct {
	Token string `json:"token"`
}

// VerifyResponse tells it. An app that is suspended is told apart here and not by a fault, so that the gateway can
// record which app was refused.
type VerifyResponse struct {
	ServiceCode string      `json:"service_code"`
	Subject     string      `json:"sub"`
	ID          string      `json:"jti"`
	ExpiresAt   int64       `json:"exp"`
	Scopes      []string    `json:"scopes"`
	Limits      apps.Limits `json:"limits"`
	Status      apps.Status `json:"status"`
}

// AdmitPath is where the gateway uses a token up that was verified.
const AdmitPath = "/internal/apps/admit"

// AdmitRequest are the claims of a token that was verified. Linked says whether the call needs a linked account.
type AdmitRequest struct {
	ServiceCode string `json:"service_code"`
	Subject     string `json:"sub"`
	ID          string `json:"jti"`
	ExpiresAt   int64  `json:"exp"`
	Linked      bool   `json:"linked"`
}

// AdmitResponse tells for whom the token speaks.
type AdmitResponse struct {
	// ServiceCode and Subject are those that were asked for.
	ServiceCode string `json:"service_code"`
	Subject     string `json:"sub"`
	// HubUser is whose account is linked, empty for nobody's; Scopes are what they have consented to.
	HubUser string   `json:"hub_user"`
	Scopes  []string `json:"scopes"`
	// Reason is why the account has to be linked, or linked again for scopes that were not consented to: empty,
	// NOT_LINKED, PENDING or SCOPE_INCREASED. LinkURL is where that is done.
	Reason    string     `json:"reason"`
	LinkURL   string     `json:"link_url"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// Operations declares what the gateway asks about tokens.
func Operations(v *Verifier) []rpc.Operation {
	gateway := caller.Neighbour(caller.Gateway)
	return []rpc.Operation{
		rpc.New(rpc.Declaration{Path: VerifyPath, Takes: gateway, MaxBody: 2 * MaxToken}, v.verify),
		rpc.New(rpc.Declaration{Path: AdmitPath, Takes: gateway}, v.admit),
	}
}

// verify answers the first half of a token's check.
func (v *Verifier) verify(ctx context.Context, in VerifyRequest) (VerifyResponse, error) {
	t, err := v.Verify(ctx, in.Token)
	if err != nil {
		return VerifyResponse{}, err
	}
	return VerifyResponse{ServiceCode: t.Issuer, Subject: t.Subject, ID: t.ID, ExpiresAt: t.ExpiresAt.Unix(),
		Scopes: t.App.Scopes, Limits: t.App.Limits, Status: t.App.Status}, nil
}

// admit answers the second half: it uses the token up.
func (v *Verifier) admit(ctx context.Context, in AdmitRequest) (AdmitResponse, error) {
	a, err := v.Admit(ctx, Claims{in.ServiceCode, in.Subject, in.ID, time.Unix(in.ExpiresAt, 0)}, in.Linked)
	if err != nil {
		return AdmitResponse{}, err
	}
	out := AdmitResponse{ServiceCode: in.ServiceCode, Subject: in.Subject, HubUser: a.HubUser, Scopes: a.Scopes,
		Reason: a.Reason, LinkURL: a.URL}
	if out.Scopes == nil {
		out.Scopes = []string{}
	}
	if a.Reason != "" {
		out.ExpiresAt = &a.ExpiresAt
	}
	return out, nil
}
