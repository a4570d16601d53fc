package console

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	reviewcontrol "hub.internal/services/review-control"
)

const (
	// mostMails and mostDrafts are how many of them the search in the header shows.
	mostMails, mostDrafts = 50, 5
	// leastAddress is how much of an address finds mails, in bytes: less of it finds anybody.
	leastAddress = 3
)

// find returns, for reviewers, the mails to an address that begins like this, over all drafts, and the drafts that the list's search
// finds.
func (c *Console) find(ctx context.Context, u web.User, text string) (found web.FindResponse, err error) {
	if !u.Is(reviewer) {
		return found, nil
	}
	if len(text) >= leastAddress && !strings.Contains(text, " ") {
		mails, err := c.service.MailsTo(ctx, text, mostMails+1)
		if err != nil {
			return found, err
		}
		hits := make([]web.Hit, len(mails))
		for i, m := range mails {
			hits[i] = mailHit(ctx, m)
		}
		found.Add(mostMails, hits...)
	}
	drafts, err := c.service.FindDrafts(ctx, text, mostDrafts+1)
	if err != nil {
		return found, err
	}
	hits := make([]web.Hit, len(drafts))
	for i, d := range drafts {
		hits[i] = web.Hit{Kind: i18n.T(ctx, "Drafts"), Title: d.Name,
			Note: i18n.T(ctx, "Draft %s to %s · %s", d.ID, d.SegmentName, stateText(ctx, d.Status)),
			At:   &d.CreatedAt, Href: "/drafts/" + d.ID.String()}
	}
	found.Add(mostDrafts, hits...)
	return found, nil
}

// mailHit is a mail as a line of the search: where it stands, and since when.
func mailHit(ctx context.Context, m reviewcontrol.AddressedMail) web.Hit {
	text, at := stateText(ctx, m.Decision.Choice), m.Decision.At
	if m.Delivery.State != reviewcontrol.NotDue {
		text, at = stateText(ctx, m.Delivery.State), cmp.Or(m.Delivery.At, at)
	}
	return web.Hit{Kind: i18n.T(ctx, "Mails"), Title: m.ToEmail, At: at,
		Note: i18n.T(ctx, "%s · draft %s, mail %d · %s", m.ToName, m.Draft, m.Index+1, text),
		Href: fmt.Sprintf("/drafts/%s/targets/%d", m.Draft, m.Index)}
}
