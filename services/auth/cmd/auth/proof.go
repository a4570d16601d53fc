package main

import (
	"context"
	"log/slog"

	"hub.internal/pkg/service"
	"hub.internal/services/auth"
	"hub.internal/services/auth/apps"
)

// provePeppers wants one active key at least that verifies, where there are any. Some that do not are told: keys of a pepper that was
// dropped too early do not stop the others.
func provePeppers(s *auth.Service, logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, active, err := s.UnverifiableKeys(ctx)
		switch {
		case err != nil:
			return err
		case n > 0 && n == active:
			return service.ProofFailed("it is not the pepper of any of the %d active API keys, and HUB_KEY_PEPPER_PREVIOUS is neither", n)
		case n > 0:
			logger.WarnContext(ctx, "active keys were issued under a pepper that is not configured; they do not verify", "keys", n)
		}
		return nil
	}
}

// proveKeyset wants one secret of an app at least that opens, where there are any, of the newest.
func proveKeyset(s *apps.Service, logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, tried, err := s.Unopenable(ctx)
		switch {
		case err != nil:
			return err
		case n > 0 && n == tried:
			return service.ProofFailed("it opens none of the newest %d secrets of apps; it is not the keyset that they were sealed with", n)
		case n > 0:
			logger.WarnContext(ctx,
				"secrets of apps were sealed with a key that HUB_SECRETS_KEYSET does not have; tokens signed with them do not verify",
				"secrets", n, "tried", tried)
		}
		return nil
	}
}
