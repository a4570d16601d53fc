package admin

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/schema"
)

// ID is the identity of a group or an item.
type ID = schema.ID

// Bounds of menus. What a console page carries of them stays small.
const (
	maxGroupName = 50
	maxItemName  = 100
	maxGroupSlug = 50
	maxItemSlug  = 100
	// maxIcon counts characters as people do: a flag or a family is one.
	maxIcon      = 10
	maxIconBytes = 256
	maxCreatedBy = 200
	maxHref      = 2000

	// MaxGroups and MaxItems are how many groups there may be, and items in each.
	MaxGroups = 20
	MaxItems  = 50
)

// slugPattern is the form of slugs.
const slugPattern = `^[a-z0-9]+(-[a-z0-9]+)*$`

// Group is a tab of the console with its items.
type Group struct {
	ID ID
	// Slug is the group's part of addresses and never changes.
	Slug string
	Name string
	// Icon is nil where there is none.
	Icon *string
	// Position orders groups, and those of one position by their age.
	Position int64
	// Hidden groups are in no navigation; the pages in them still open by their addresses.
	Hidden bool
	// Fixed groups are those that the services' own pages make: nobody changes them.
	Fixed bool
	Items []Item
	// Origin is who made it.
	Origin    Origin
	CreatedAt time.Time
}

// Item is a line of the sidebar.
type Item struct {
	ID      ID
	GroupID ID
	Slug    string
	Name    string
	Icon    *string
	// Href is nil for an item that leads to its own page.
	Href     *string
	Position int64
	Hidden   bool
	// HasPage tells that its page was written.
	HasPage   bool
	Origin    Origin
	CreatedAt time.Time
}

// Address is where the item leads.
func (i Item) Address(group string) string {
	if i.Href != nil {
		return *i.Href
	}
	return PagePath(group, i.Slug)
}

// PagePath is the address of an item's own page.
func PagePath(group, item string) string { return "/p/" + group + "/" + item }

// Origin is who made something, as the internal token says it: unlike createdBy, which is a label of
// the caller's choice.
type Origin struct {
	// Service is the rate-limit and audit identity, ExternalUserID whom that service acted for.
	Service        string
	ExternalUserID string
	// CredentialID is the key or session, HubUser the id of a person of the console, empty for an agent.
	CredentialID string
	HubUser      string
}

// checkName judges the name of a group or an item.
func checkName(v *schema.Violations, name string, most int) {
	v.Line("/name", name, most)
	if !strings.ContainsFunc(name, schema.Visible) {
		v.Add("/name", "visible", "must have a character that can be seen")
	}
	checkSeen(v, "/name", name)
}

// checkSeen refuses characters without a shape, by which one name could pass for another.
func checkSeen(v *schema.Violations, path, text string) {
	if _, removed := markup.Text(text); len(removed) > 0 && utf8.ValidString(text) {
		v.Add(path, "invisible", "must have no characters that nobody sees, but has an %s", removed[0].What)
	}
}

// skeleton is what a name is read as at a glance: its letters and digits, whichever of their forms they have.
func skeleton(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKD.String(name))
}

// icon judges an icon and returns nil for an empty one.
func icon(v *schema.Violations, text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	v.Line("/icon", *text, maxIconBytes)
	if n := uniseg.GraphemeClusterCount(*text); n > maxIcon {
		v.Add("/icon", "maxLength", "must have at most %d characters as people count them, not %d", maxIcon, n)
	} else if len(*text) > maxIconBytes {
		v.Add("/icon", "maxBytes", "must have at most %d bytes, not %d", maxIconBytes, len(*text))
	}
	if !strings.ContainsFunc(*text, schema.Visible) {
		v.Add("/icon", "visible", "must have a character that can be seen")
	}
	checkSeen(v, "/icon", *text)
	return text
}
