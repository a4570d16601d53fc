package lint

import (
	"fmt"
	"strings"

	"hub.internal/pkg/tool"
)

// Mailbox is an address without what people write differently of one: case, and a tag behind a plus.
func Mailbox(email string) string {
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	if name, _, tagged := strings.Cut(local, "+"); tagged && name != "" {
		local = name
	}
	return local + "@" + domain
}

// Mailboxes tells of mailboxes that get several mails of a draft.
type Mailboxes struct {
	firsts   map[string]addressed
	repeated map[string]bool
	count    int
	// pair are two mails to one mailbox. One for several partners says the most.
	pair     [2]addressed
	partners bool
}

// addressed is a target.
type addressed struct {
	index   int
	email   string
	partner int64
}

// Add adds the next target.
func (m *Mailboxes) Add(email string, partner int64) {
	if m.firsts == nil {
		m.firsts, m.repeated = map[string]addressed{}, map[string]bool{}
	}
	box, other := Mailbox(email), addressed{m.count, email, partner}
	m.count++
	first, twice := m.firsts[box]
	if !twice {
		m.firsts[box] = other
		return
	}
	m.repeated[box] = true
	several := first.partner != partner
	if m.pair[1].index == 0 || several && !m.partners {
		m.pair, m.partners = [2]addressed{first, other}, several
	}
}

// Warning names two of the mails.
func (m Mailboxes) Warning() *tool.Warning {
	if len(m.repeated) == 0 {
		return nil
	}
	gets := fmt.Sprintf("%d addresses get", len(m.repeated))
	if len(m.repeated) == 1 {
		gets = "one address gets"
	}
	one, other := m.pair[0], m.pair[1]
	return &tool.Warning{Rule: "draft.address", Message: fmt.Sprintf("%s several mails of this draft: target %d (%.80q, partner %d) and "+
		"target %d (%.80q, partner %d) are one mailbox: if that is not meant, save the draft with one target for it", gets, one.index, one.email,
		one.partner, other.index, other.email, other.partner)}
}
