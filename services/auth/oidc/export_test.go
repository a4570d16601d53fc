package oidc

import "hub.internal/services/auth"

// Identity is who the claims speak of.
func (p *Provider) Identity(claims map[string]any) (auth.Identity, error) { return p.identity(claims) }
