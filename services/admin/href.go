package admin

import (
	"strings"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/schema"
)

// href judges where an item leads and returns nil for its own page: a path of this console, or an address of
// https elsewhere. Whatever browsers repair, each in its way, is refused, so that nothing but what is
// written is where a click leads.
func href(v *schema.Violations, text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	if len(*text) > maxHref {
		v.Add("/href", "maxLength", "must have at most %d characters", maxHref)
		return nil
	}
	if to, ok := markup.LocalAddress(*text); ok {
		return &to
	}
	if to, ok := markup.Address(*text); ok && strings.HasPrefix(to, "https://") {
		return &to
	}
	v.Add("/href", "href", "must be a path of this console such as /drafts, or an https:// address written plainly; "+
		"leave it out for a page of the item's own")
	return nil
}
