package apps

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// Issued is a secret that is revealed this once.
type Issued struct {
	Secret
	Token Token
	// Replaced is the one that expires for it; nil for the first one.
	Replaced *Secret
	// Webhook is the app's first webhook secret, which is issued with its first secret.
	Webhook *Issued
}

// draft is a secret of a kind that is not in the store yet.
type draft struct {
	Issued
	sealed SealedSecret
}

// draft draws a secret and seals it for its row. It returns E_CONFLICT where Hub has no keyset.
func (s *Service) draft(ctx context.Context, kind Kind, code string) (d draft, err error) {
	if s.c.Sealer == nil {
		return d, fault.New(fault.Conflict,
			"Hub has no keyset to keep secrets with: set HUB_SECRETS_KEYSET (`auth keyset new` makes one).")
	}
	id := ulid.MustNew(ulid.Timestamp(s.c.Now()), rand.Reader)
	d.Token = kind.draw()
	d.Secret = Secret{ID: kind.prefix() + id.String(), Code: code, CreatedBy: caller.From(ctx).Actor(), CreatedAt: s.now()}
	sealed, err := s.c.Sealer.Seal(d.Token.Reveal(), kind.SealName(d.Secret))
	d.sealed = SealedSecret{d.Secret, sealed}
	return d, err
}

// IssueSecret makes the secret of an app that has none that is good, and with it the webhook secret of one that has
// none.
func (s *Service) IssueSecret(ctx context.Context, code string) (Issued, error) {
	signing, err := s.draft(ctx, Signing, code)
	if err != nil {
		return Issued{}, err
	}
	webhook, err := s.draft(ctx, Webhook, code)
	if err != nil {
		return Issued{}, err
	}
	_, err = s.change(ctx, code, func(a App, held Held) (Change, error) {
		detail := map[string]any{"secret": signing.ID}
		c := Change{App: a, Added: &signing.sealed}
		signing.Webhook = nil
		switch {
		case a.Status == Revoked:
			return Change{}, ended(a)
		case len(live(held.Signing, s.now())) > 0:
			return Change{}, fault.New(fault.Conflict, "The app %s has a secret already. Rotate it.", a.Code)
		case len(live(held.Webhook, s.now())) == 0:
			c.AddedWebhook, signing.Webhook, detail["webhook_secret"] = &webhook.sealed, &webhook.Issued, webhook.ID
		}
		c.Audit = s.entry(ctx, "app.issue_secret", code, detail)
		return c, nil
	})
	return signing.Issued, err
}

// RotateSecret makes another secret of an app, and lets the one that it has expire after overlap, or earlier if it was
// about to.
func (s *Service) RotateSecret(ctx context.Context, code string, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, schema.Invalid("/overlap", "range", "must be between 0 and 30 days")
	}
	return s.rotate(ctx, Signing, "app.rotate_secret", code, func(a App, held Held) (*Secret, error) {
		old, err := replace(a, held.Signing, overlap, s.now())
		return &old, err
	})
}

// RotateWebhookSecret makes another secret to sign an app's notifications with. The one before is signed with beside it
// for 24 hours. An app that has none gets its first one.
func (s *Service) RotateWebhookSecret(ctx context.Context, code string) (Issued, error) {
	return s.rotate(ctx, Webhook, "app.rotate_webhook_secret", code, func(a App, held Held) (*Secret, error) {
		if len(live(held.Webhook, s.now())) == 0 {
			return nil, nil
		}
		old, err := replace(a, held.Webhook, WebhookOverlap, s.now())
		return &old, err
	})
}

// rotate adds a secret of the kind to an app that is not revoked; replaces says which secret of the app ends by that, nil
// for none.
func (s *Service) rotate(ctx context.Context, kind Kind, operation, code string,
	replaces func(App, Held) (*Secret, error),
) (Issued, error) {
	d, err := s.draft(ctx, kind, code)
	if err != nil {
		return Issued{}, err
	}
	_, err = s.change(ctx, code, func(a App, held Held) (Change, error) {
		if a.Status == Revoked {
			return Change{}, ended(a)
		}
		var err error
		if d.Replaced, err = replaces(a, held); err != nil {
			return Change{}, err
		}
		c, detail := Change{App: a}, map[string]any{"secret": d.ID}
		var old []Secret
		if d.Replaced != nil {
			old = []Secret{*d.Replaced}
			detail["replaces"], detail["old_expires_at"] = d.Replaced.ID, d.Replaced.ExpiresAt
		}
		if kind == Webhook {
			c.AddedWebhook, c.EndedWebhooks = &d.sealed, old
		} else {
			c.Added, c.Ended = &d.sealed, old
		}
		c.Audit = s.entry(ctx, operation, code, detail)
		return c, nil
	})
	return d.Issued, err
}

// RevokeSecret destroys a secret of an app, at once.
func (s *Service) RevokeSecret(ctx context.Context, code, id string) (Secret, error) {
	var revoked Secret
	_, err := s.change(ctx, code, func(a App, held Held) (Change, error) {
		for _, secret := range held.Signing {
			if secret.ID == id {
				secret.RevokedAt = new(s.now())
				revoked = secret
				return Change{App: a, Ended: []Secret{secret}, Audit: s.entry(ctx, "app.revoke_secret", code, map[string]any{"secret": id})}, nil
			}
		}
		return Change{}, fault.New(fault.NotFound, "The app %s has no secret %q.", code, text.Shown(id, maxShown))
	})
	return revoked, err
}
