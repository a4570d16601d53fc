package main

import (
	"strconv"
	"strings"
)

// partner is a row of table partner: a company on the marketplace.
type partner struct {
	id         int64
	name       string
	businessNo text
	country    string
	created    stamp

	lex    *lexicon
	domain string // of its e-mail addresses
}

// partner makes the row of an id.
func (p *plan) partner(id int64) partner {
	d := roll(p.seed, forPartner, id)
	lex := country(&d)
	stem := lex.stem(&d)
	name := strings.ReplaceAll(pick(&d, lex.Firms), "*", lex.after(stem.native, pick(&d, lex.Trades)))
	if id%41 == 17 {
		name = odd(name, oddities[id/41%int64(len(oddities))], 200)
	}
	r := partner{
		id: id, name: cut(name, 200), country: lex.Country, lex: lex,
		domain:  stem.ascii + strconv.FormatInt(id, 10) + ".example",
		created: (firstPartner + stamp(d.below(int64(date(2020, 1, 1)-firstPartner)))).whole(),
	}
	if !d.percent(12) {
		no := strconv.FormatInt(d.between(1_000_000_000, 9_999_999_999), 10)
		if lex.Country == "KR" {
			no = no[:3] + "-" + no[3:5] + "-" + no[5:]
		}
		r.businessNo = some(no)
	}
	return r
}

// values are those of the row, in the order of the table's columns.
func (r partner) values() []any {
	return []any{r.id, r.name, r.businessNo, r.country, r.created}
}

// A situation is the set of contacts that a partner has. Each stands for a case in
// the rules of who may be written to; partners take them in turn, so that every case
// exists at every scale and seed.
type situation struct {
	// What the case is, for tests and readers, and the contacts in the order of their ids.
	about  string
	admins []contact
}

type contact struct {
	// Only a contact that is verified and READY may be written to.
	verified bool
	status   string
	login    login
}

type login int

const (
	never  login = iota // NULL
	own                 // a moment of its own
	shared              // the same moment for all such contacts of the partner
	latest              // later than any other of the partner
)

const (
	ready   = "READY"
	pending = "PENDING"
	leave   = "LEAVE"
	blocked = "BLOCKED"
)

const verified, unverified = true, false

var situations = []situation{
	{"several contacts", []contact{{verified, ready, own}, {verified, ready, own}, {verified, ready, own}, {unverified, ready, latest}}},
	{"one contact", []contact{{verified, ready, own}}},
	{"nobody", nil},
	{"equal logins: the lowest id wins", []contact{{verified, ready, shared}, {verified, ready, shared}, {verified, ready, shared}}},
	{"one contact among others", []contact{{verified, ready, own}, {unverified, pending, never}, {verified, leave, latest}}},
	{"only unverified", []contact{{unverified, ready, own}, {unverified, ready, never}}},
	{"only pending", []contact{{verified, pending, own}, {unverified, pending, never}}},
	{"only former", []contact{{verified, leave, own}, {unverified, leave, own}}},
	{"nobody ever logged in: the lowest id wins", []contact{{verified, ready, never}, {verified, ready, never}, {verified, ready, never}}},
	{"verified but former", []contact{{verified, leave, latest}, {unverified, ready, own}, {unverified, pending, never}}},
	{"a login goes before none", []contact{{verified, ready, never}, {verified, ready, own}}},
	{"one contact among others", []contact{{verified, ready, own}, {unverified, leave, own}, {verified, pending, never}}},
	{"several contacts", []contact{{verified, ready, own}, {verified, ready, own}, {verified, ready, never}, {verified, leave, own}}},
	{"one contact", []contact{{verified, ready, never}}},
	{"another status", []contact{{verified, blocked, latest}, {verified, ready, own}}},
	{"pending with the latest login", []contact{{verified, pending, latest}, {verified, ready, own}, {verified, ready, never}}},
	{"one contact among others", []contact{{verified, ready, own}, {unverified, ready, latest}, {unverified, pending, never}}},
	{"one contact", []contact{{verified, ready, own}}},
	{"two share the latest login", []contact{{verified, ready, latest}, {verified, ready, latest}, {verified, ready, own},
		{unverified, ready, shared}}},
	{"several contacts", []contact{{verified, ready, own}, {verified, ready, own}, {verified, leave, own}, {unverified, pending, own}}},
}

// situationOf is a partner's situation, which follows from the id alone, so that every scale has each.
func situationOf(partnerID int64) situation {
	return situations[(partnerID-1)%int64(len(situations))]
}

// admin is a row of partner_admin: a person who may be written to.
type admin struct {
	id, partner int64
	name, email string
	verified    bool
	status      string
	position    text
	lastLogin   moment
	created     stamp
}

// admin makes the row of an id.
func (p *plan) admin(id int64) admin {
	owner, ordinal := p.adminOwner.of(id)
	firm := p.partner(owner)
	what := situationOf(owner).admins[ordinal]
	d := p.adminDice(owner, ordinal)
	who := firm.lex.person(&d)
	r := admin{
		id: id, partner: owner, name: who.name, email: p.adminEmail(owner, ordinal),
		verified: what.verified, status: what.status,
		created: firm.created + stamp(d.below(int64(300*day))).whole(),
	}
	if id%151 == 19 {
		r.name = odd(r.name, oddities[id/151%int64(len(oddities))], 100)
	}
	if !d.percent(25) {
		r.position = some(pick(&d, firm.lex.Positions))
	}
	busy := roll(p.seed, forAdmin, -owner) // for the moments that contacts share
	moment := today - 400*day + stamp(busy.below(int64(300*day))).whole()
	switch what.login {
	case own:
		r.lastLogin = at(moment - day - stamp(d.below(int64(500*day))).whole())
	case shared:
		r.lastLogin = at(moment)
	case latest:
		r.lastLogin = at(moment + 30*day)
	}
	return r
}

// adminDice is the dice for a partner's contact of that number.
func (p *plan) adminDice(partner, ordinal int64) dice {
	return roll(p.seed, forAdmin, partner<<8|ordinal)
}

// adminEmail is unique to the contact, but for agencies that work for two partners
// under one address, some of which were typed in another case the second time.
func (p *plan) adminEmail(partner, ordinal int64) string {
	if ordinal == 0 && partner > 1 && len(situationOf(partner-1).admins) > 0 {
		switch partner % 19 {
		case 5:
			return p.adminEmail(partner-1, 0)
		case 9:
			local, domain, _ := strings.Cut(p.adminEmail(partner-1, 0), "@")
			return strings.ToUpper(local[:1]) + local[1:] + "@" + strings.ToUpper(domain[:1]) + domain[1:]
		}
	}
	firm := p.partner(partner)
	d := p.adminDice(partner, ordinal)
	who := firm.lex.person(&d)
	mail := roll(p.seed, forAdmin, -(partner<<8 | ordinal | 1<<60))
	n := strconv.FormatInt(ordinal+1, 10)
	switch mail.below(12) {
	case 0:
		return "marketing+" + who.given + n + "@" + firm.domain
	case 1: // an apostrophe is legal in an address
		if firm.lex.GivenFirst {
			return "o'" + who.family + n + "@" + firm.domain
		}
	case 2, 3:
		return who.family + "_" + who.given + n + "@" + firm.domain
	case 4: // no own domain
		return who.given + "." + who.family + "." + strconv.FormatInt(partner, 10) + "x" + n + "@webmail.example"
	case 5:
		return who.given + n + "@mail." + firm.domain
	}
	return who.given + "." + who.family + n + "@" + firm.domain
}

// values are those of the row, in the order of the table's columns.
func (r admin) values() []any {
	return []any{r.id, r.partner, r.name, r.email, r.verified, r.status, r.position, r.lastLogin, r.created}
}
