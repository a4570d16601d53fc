package main

import "strconv"

// member is a row of table member: a consumer, whom Hub never writes to.
type member struct {
	// consent is the consent to marketing, which nobody has given.
	id              int64
	nickname, email string
	country         string
	consent         text
	created         stamp
}

// member makes the row of an id.
func (p *plan) member(id int64) member {
	d := roll(p.seed, forMember, id)
	lex := country(&d)
	first, second := pick(&d, lex.NickFirst), pick(&d, lex.NickSecond)
	who := lex.person(&d)
	r := member{
		id: id, nickname: first + " " + second, country: lex.Country,
		email: who.given + "." + who.family + strconv.FormatInt(id, 10) + "@" +
			pick(&d, []string{"member.example", "inbox.example", "post.example"}),
		created: date(2016, 1, 1) + stamp(d.below(int64(opening-date(2016, 1, 1)))).whole(),
	}
	if d.percent(50) {
		r.nickname += strconv.FormatInt(d.below(1000), 10)
	}
	if id%211 == 31 {
		r.nickname = odd(r.nickname, oddities[id/211%int64(len(oddities))], 100)
	}
	// Nobody has consented: the column is NULL or empty, always.
	if d.percent(50) {
		r.consent = some("")
	}
	if trap, ok := p.trapEmail(id); ok {
		r.email = trap
	}
	return r
}

// trapEmail makes a handful of members people who are a partner's contact as well,
// under the same address. Members may not be written to, so neither may these.
func (p *plan) trapEmail(id int64) (string, bool) {
	// One in about ten thousand, and the eleventh first: the least scale has one, too.
	const every, firstTrap = 9973, 11
	if id%every != firstTrap {
		return "", false
	}
	n := id / every
	partner := []int64{2, 6, 13}[n%3] + n/3*int64(len(situations)) // one contact; only unverified; several
	if partner > p.partners {
		return "", false
	}
	email := p.adminEmail(partner, 0)
	if n%3 == 2 { // the same address in another case
		email = swapCase(email)
	}
	return email, true
}

// swapCase turns letters to the other case: addresses are compared without it.
func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

// values are those of the row, in the order of the table's columns.
func (r member) values() []any {
	return []any{r.id, r.nickname, r.email, r.country, r.consent, r.created}
}

// application is a row of campaign_application: a member who wants to take part.
type application struct {
	id, campaign, member int64
	status               string
	applied              stamp
}

// application makes the row of an id, for a campaign that exists.
func (p *plan) application(id int64) application {
	c, ordinal := p.appCampaign.of(id)
	return p.applicationOf(id, c, ordinal)
}

// applicationOf makes the ordinal-th application of a campaign.
func (p *plan) applicationOf(id, campaignID, ordinal int64) application {
	c := p.campaign(campaignID)
	// No member applies twice to one campaign, as long as there are enough members.
	who := shuffle{key: mix(p.seed ^ mix(uint64(forApplicant)) ^ uint64(campaignID)), n: p.members}
	r := application{id: id, campaign: campaignID, member: who.at(ordinal%p.members) + 1}
	d := roll(p.seed, forApplication, campaignID<<24|ordinal)
	until := c.start + 30*day
	if c.end.Valid {
		until = c.end.V
	}
	until = min(until, today)
	r.applied = c.start + stamp(d.below(int64(until-c.start))).whole()
	selected, done := p.chosen(campaignID, c)
	switch {
	case ordinal < done:
		r.status = "DONE"
	case ordinal < selected:
		r.status = "SELECTED"
	case c.status == closed && !d.percent(8), d.percent(4):
		r.status = "DECLINED"
	default:
		r.status = "APPLIED"
	}
	return r
}

// values are those of the row, in the order of the table's columns.
func (r application) values() []any {
	return []any{r.id, r.campaign, r.member, r.status, r.applied}
}

// review is a row of table review: what a member wrote.
type review struct {
	id, campaign, member int64
	rating               int64
	content              text
	created              stamp
}

// review is written by a member whose application is done.
func (p *plan) review(id int64) review {
	c, ordinal := p.reviewCampaign.of(id)
	a := p.applicationOf(0, c, ordinal)
	d := roll(p.seed, forReview, id)
	r := review{
		id: id, campaign: c, member: a.member, rating: pick(&d, []int64{1, 2, 3, 4, 4, 4, 5, 5, 5, 5}),
		created: a.applied + stamp(d.between(int64(3*day), int64(30*day))).whole(),
	}
	lex := p.brand(p.campaign(c).brand).lex
	if d.percent(10) {
		lex = country(&d)
	}
	content := pick(&d, lex.Reviews)
	switch n := d.below(100); {
	case n < 5: // NULL
	case n < 7:
		r.content = some("")
	case n < 9:
		r.content = some(odd(content, oddities[d.below(int64(len(oddities)))], 2000))
	default:
		r.content = some(content)
	}
	return r
}

// values are those of the row, in the order of the table's columns.
func (r review) values() []any {
	return []any{r.id, r.campaign, r.member, r.rating, r.content, r.created}
}
