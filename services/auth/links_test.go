package auth_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/seal"
	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/links"
)

// TestLinksLive lets the links of one user of an app go through random lives, and compares them with a model: who is linked,
// with which scopes, and which tickets and codes are good.
func TestLinksLive(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.shop(t, apps.Consent)
	people := map[string]string{ada: h.add(t, ada).ID, grace: h.add(t, grace).ID}
	lives := 0
	rapid.Check(t, func(rt *rapid.T) {
		lives++
		user := fmt.Sprint("u-", lives)
		type pending struct {
			code, user string
			scopes     []string
			link       int
			used       bool
		}
		type ticket struct {
			text string
			used bool
		}
		var (
			tickets []*ticket
			codes   []*pending
			// links is how many there have been; of them the last one may be pending or hold.
			count  int
			status links.Status
			owner  string
			held   []string
		)
		mode := func(m apps.LinkMode) {
			a, err := h.apps.Inspect(h.ctx, "shop")
			if err == nil && a.LinkMode != m {
				a.LinkMode = m
				_, err = h.apps.Edit(h.ctx, "shop", a.Version, a.Settings)
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		confirms := false
		mode(apps.Consent)
		rt.Repeat(map[string]func(*rapid.T){
			"invite": func(rt *rapid.T) {
				link, _, err := h.links.Invite(
					"shop",
					user,
					rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"pay:read", "pay:write"}), 1, 2, rapid.ID).Draw(rt, "scopes"),
				)
				if err != nil {
					rt.Fatal(err)
				}
				tickets = append(tickets, &ticket{text: link[strings.Index(link, "=")+1:]})
			},
			"change mode": func(rt *rapid.T) {
				confirms = !confirms
				mode(map[bool]apps.LinkMode{true: apps.Confirm, false: apps.Consent}[confirms])
			},
			"allow": func(rt *rapid.T) {
				if len(tickets) == 0 {
					rt.Skip("no ticket")
				}
				k := rapid.SampledFrom(tickets).Draw(rt, "ticket")
				email := rapid.SampledFrom([]string{ada, grace}).Draw(rt, "who")
				who := links.Person{User: people[email], Session: "ses_" + email}
				o, err := h.links.Offer(h.ctx, k.text, shopReturn, who)
				taken := status == links.Active && owner != email
				if taken {
					if r := links.RefusalOf(err); r == nil || r.Reason != links.Taken {
						rt.Fatalf("offered what is taken: %v", err)
					}
					return
				}
				if err != nil {
					rt.Fatal(err)
				}
				to, err := h.links.Allow(h.ctx, links.Answer{Ticket: k.text, ReturnURL: shopReturn, Form: o.Form, Person: who})
				if k.used {
					if r := links.RefusalOf(err); r == nil || r.Reason != links.Used {
						rt.Fatalf("a ticket is good twice: %v", err)
					}
					return
				}
				if err != nil {
					rt.Fatal(err)
				}
				k.used = true
				scopes := slices.Clone(o.Scopes)
				widens := status == links.Active
				if !widens {
					count++
					status, owner, held = links.Active, email, nil
					if confirms {
						status = links.Pending
					}
				}
				all := append(slices.Clone(held), scopes...)
				if !confirms {
					held = all
					return
				}
				u, err := url.Parse(to)
				if err != nil {
					rt.Fatal(err)
				}
				codes = append(codes, &pending{code: u.Query().Get("code"), user: email, scopes: all, link: count})
			},
			"confirm": func(rt *rapid.T) {
				if len(codes) == 0 {
					rt.Skip("no code")
				}
				c := rapid.SampledFrom(codes).Draw(rt, "code")
				sub := rapid.SampledFrom([]string{user, user, "somebody else"}).Draw(rt, "sub")
				_, err := h.links.Confirm(
					caller.With(t.Context(), caller.Caller{Kind: caller.App, Service: "shop", ExternalUserID: sub}),
					c.code,
				)
				good := !c.used && c.link == count && status != links.Revoked && status != ""
				switch {
				case !good:
					if !fault.Is(err, fault.NotFound) {
						rt.Fatalf("a code is good that should not be: %v", err)
					}
				case sub != user:
					if !fault.Is(err, fault.Conflict) {
						rt.Fatal(err)
					}
					c.used, status, held = true, links.Revoked, nil
				default:
					if err != nil {
						rt.Fatal(err)
					}
					c.used, status, held = true, links.Active, append(held, c.scopes...)
				}
			},
			"unlink": func(rt *rapid.T) {
				if status != links.Active {
					rt.Skip("no link")
				}
				l, _, err := h.link(h.ctx, "shop", user)
				if err == nil {
					_, err = h.links.Unlink(h.ctx, l.ID, people[owner])
				}
				if err != nil {
					rt.Fatal(err)
				}
				status, held = links.Revoked, nil
			},
			"": func(rt *rapid.T) {
				l, found, err := h.link(h.ctx, "shop", user)
				if err != nil || found != (status == links.Pending || status == links.Active) {
					rt.Fatalf("%+v %t %v, and should be %s", l, found, err, status)
				}
				if found && (l.Status != status || l.HubUser != people[owner]) {
					rt.Fatalf("%+v, and should be %s of %s", l, status, owner)
				}
				if found && status == links.Active && (!l.Covers(held) || len(l.Scopes) > len(unique(held))) {
					rt.Fatalf("%v, and should be %v", l.Scopes, held)
				}
			},
		})
	})
}

func unique(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return slices.Compact(all)
}

// FuzzTickets: nothing opens that was not sealed.
func FuzzTickets(f *testing.F) {
	keyset, err := seal.NewKeyset()
	if err != nil {
		f.Fatal(err)
	}
	box, err := seal.Open(keyset)
	if err != nil {
		f.Fatal(err)
	}
	s := links.New(links.Config{Sealer: box, Now: time.Now})
	link, _, err := s.Invite("shop", "u", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("")
	f.Add(link[len("/connect?t=") : len(link)-1])
	f.Add(base64url("{}"))
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.Open(t.Context(), text, ""); links.RefusalOf(err) == nil || links.RefusalOf(err).Reason != links.BadTicket {
			t.Errorf("%q: %v", text, err)
		}
	})
}
