package main

import (
	"context"
	"errors"

	"hub.internal/pkg/service"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

// pepperProof wants one active key at least that verifies, where there are any. Some that do not are told: keys of a pepper that was
// dropped too early do not stop the others.
func pepperProof(s *auth.Service) service.Proof {
	return service.Proof{Try: s.UnverifiableKeys, What: "keys",
		None: "it is not the pepper of any of the %d active API keys, and HUB_KEY_PEPPER_PREVIOUS is neither",
		Some: "active keys were issued under a pepper that is not configured; they do not verify"}
}

// keysetProof wants one secret of an app at least that opens, where there are any, of the newest.
// A service without a keyset opens none, so it does not start where secrets are kept.
func keysetProof(s *apps.Service) service.Proof {
	return service.Proof{Try: s.Unopenable, What: "secrets",
		None: "it opens none of the newest %d secrets of apps; it is not the keyset that they were sealed with",
		Some: "secrets of apps were sealed with a key that HUB_SECRETS_KEYSET does not have; tokens signed with them do not verify"}
}

// linkPage is the doctor's question whether users of apps can be told where to link their account, where there are apps.
func linkPage(s *apps.Service, publicURL string) func(context.Context) error {
	return func(ctx context.Context) error {
		if publicURL != "" {
			return nil
		}
		active, _, err := s.List(ctx, apps.Filter{Status: apps.Active, Limit: 1})
		if err == nil && len(active) > 0 {
			err = errors.New("it is not set; calls of apps for users without a link are E_INTERNAL, for want of the page to send them to")
		}
		return err
	}
}
