package connect

import (
	"context"

	"hub.internal/pkg/web/i18n"
)

// inWords is what a scope lets an app do, for its user. One that has no words yet is named.
func inWords(ctx context.Context, scope string) string {
	switch scope {
	case "pay:read":
		return i18n.T(ctx, "See your payment orders that it has made, and what became of them")
	case "pay:write":
		return i18n.T(ctx, "Make payment orders for you, and cancel them before they are paid")
	case "pay:refund":
		return i18n.T(ctx, "Pay back, in part or whole, what was paid for your orders")
	}
	return i18n.T(ctx, "Use %s", scope)
}

// wordsOf are those of several scopes.
func wordsOf(ctx context.Context, scopes []string) []string {
	var all []string
	for _, s := range scopes {
		all = append(all, inWords(ctx, s))
	}
	return all
}

// masked shows enough of a user's name with an app for its owner to know it, and no more: two characters at either end of
// a long one, one of a short one.
func masked(user string) string {
	all := []rune(user)
	switch n := len(all); {
	case n >= 8:
		return string(all[:2]) + "…" + string(all[n-2:])
	case n >= 4:
		return string(all[:1]) + "…" + string(all[n-1:])
	case n >= 1:
		return string(all[:1]) + "…"
	}
	return "…"
}
