package links

import (
	"context"
	"errors"
	"slices"
	"strings"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
)

// maxCode bounds what is taken for a code, in bytes.
const maxCode = 100

// NoCode is what an app is told whose code is none, or not any more. The answer to one that was good may have been lost.
const NoCode = "The code was used, is older than a minute, or never was. Call for the user: the link may hold already, " +
	"and if not the answer has a new link_url."

// CodeMismatch is details.code of the E_CONFLICT of a code that comes for another user.
const CodeMismatch = "LINK_MISMATCH"

// Confirm makes a link hold that its user has allowed: the app that calls says by the code, and by whom it calls for, that
// it was the same person. A code is good once. One that another app has, or that comes for another user, ends the link:
// somebody has handed on what was theirs. E_NOT_FOUND for a code that is none, or not any more; E_CONFLICT for another
// user's, and for an app that is not active.
func (s *Service) Confirm(ctx context.Context, code string) (Link, error) {
	who := caller.From(ctx)
	if who.Kind != caller.App {
		return Link{}, fault.New(fault.AuthInvalid, "Only a Connected App can confirm a link, with a token of the user's.")
	}
	gone := fault.New(fault.NotFound, NoCode)
	if code == "" || len(code) > maxCode {
		return Link{}, gone
	}
	var (
		link    Link
		refused error
	)
	err := s.c.Store.RedeemGrant(ctx, Code{text.Secret(code)}.hash(), func(r Redeemed) (Change, error) {
		var err error
		switch {
		case r.Link.Status == Revoked || !s.now().Before(r.Grant.ExpiresAt):
			return Change{}, gone
		case r.Link.Service != who.Service:
			refused = gone
		case r.Link.ExternalUser != who.ExternalUserID:
			refused = fault.New(fault.Conflict,
				"The code belongs to another user of yours, so the link was dropped. Send this user to a link_url of their own.").
				With(map[string]string{"code": CodeMismatch})
		case !r.App.Live:
			return Change{}, refuse(Closed, r.App)
		}
		if refused != nil {
			link, err = r.Link.become(Revoked, s.now())
			return Change{Link: link, Audit: s.entry(ctx, "link.drop", link, map[string]any{"why": "mismatch"})}, err
		}
		if link = r.Link; link.Status == Pending {
			link, err = link.become(Active, s.now())
		}
		// Consents to several tickets can be confirmed in any order: none takes back what another has added.
		link.Scopes, link.Version = union(link.Scopes, r.Consent.Scopes), max(link.Version, r.Consent.Version)
		return Change{Link: link, Audit: s.entry(ctx, "connect.confirm", link, map[string]any{"version": r.Consent.Version})}, err
	})
	if err == nil {
		err = refused
	}
	if fault.Is(err, fault.NotFound) {
		err = gone
	}
	if err != nil {
		return Link{}, err
	}
	return link, nil
}

// Unlink ends a link of a user's. Ending one that has ended changes nothing. E_NOT_FOUND for a link that is not theirs.
func (s *Service) Unlink(ctx context.Context, id, user string) (Link, error) {
	return s.end(ctx, "link.unlink", id, func(l Link) bool { return l.HubUser == user })
}

// Revoke is Unlink for an operator.
func (s *Service) Revoke(ctx context.Context, id string) (Link, error) {
	return s.end(ctx, "link.revoke", id, func(Link) bool { return true })
}

// end revokes a link, for who may: theirs tells whether a link is of the one who asks. Of others' links it knows nothing.
func (s *Service) end(ctx context.Context, operation, id string, theirs func(Link) bool) (Link, error) {
	var ended Link
	err := s.c.Store.EndLink(ctx, id, func(l Link) (Change, error) {
		if !theirs(l) {
			return Change{}, NoLink()
		}
		var err error
		if ended = l; l.Status != Revoked {
			ended, err = l.become(Revoked, s.now())
		}
		return Change{Link: ended, Audit: s.entry(ctx, operation, ended, map[string]any{})}, err
	})
	return ended, err
}

// NoLink is the answer to an id that names no link, or not one of the asker's.
func NoLink() error { return fault.New(fault.NotFound, "There is no such link.") }

// Of returns an active link of a user's; E_NOT_FOUND for any other.
func (s *Service) Of(ctx context.Context, id, user string) (Listed, error) {
	f := Filter{HubUser: user, After: id + "\x7f", Limit: 1} // the id itself comes right after
	page, err := s.c.Store.ListLinks(ctx, f)
	if err != nil {
		return Listed{}, err
	}
	if len(page) == 0 || page[0].ID != id {
		return Listed{}, NoLink()
	}
	return page[0], nil
}

// Add links a user's account without asking them, as an operator may: the user with the address, at once, whatever the
// link mode of the app. One that is there already stays as it is. E_VALIDATION for scopes that the app does not have;
// otherwise it refuses what Allow does.
func (s *Service) Add(ctx context.Context, service, externalUser, email string, scopes []string) (Link, error) {
	if err := pair(service, externalUser); err != nil {
		return Link{}, err
	}
	user, err := s.c.Store.UserID(ctx, email)
	if err != nil {
		return Link{}, err
	}
	id := s.newID()
	var link Link
	unchanged := errors.New("the link is there already")
	err = s.c.Store.ChangeLink(ctx, Attempt{Service: service, ExternalUser: externalUser}, func(st State) (Change, error) {
		for _, scope := range scopes {
			if !slices.Contains(st.App.Scopes, scope) {
				return Change{}, schema.Invalid("/scopes", "enum", "has %q; those of the app are %s", scope, strings.Join(st.App.Scopes, ", "))
			}
		}
		if l := st.Link; l != nil && l.Status == Active && l.HubUser == user && l.Covers(scopes) {
			link = l.Link
			return Change{}, unchanged
		}
		want := Link{ID: id, Service: service, ExternalUser: externalUser, HubUser: user, Scopes: st.App.allowed(scopes)}
		c, err := s.allow(ctx, st, want, false, Person{User: user, Agent: "auth link add"})
		c.Audit.Tool, link = "link.add", c.Link
		return c, err
	})
	if errors.Is(err, unchanged) {
		err = nil
	}
	return link, err
}
