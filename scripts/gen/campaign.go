package main

import (
	"math"
	"strings"
)

const (
	// The marketplace's own status codes, as the source stores them.
	accepting   = "1206"
	underReview = "1208"
	closed      = "1209"
	cancelled   = "1210"
	rejected    = "1211"
)

// campaign is what other rows need to know of one. Its name and counters are made
// only for its own row.
type campaign struct {
	// end is NULL for a campaign that is open until somebody closes it; offers is how many members may take part.
	id, brand int64
	status    string
	start     stamp
	end       moment
	offers    int64
}

// campaign makes one by its id. Ids grow with time, roughly. Starts are on the hours at which people
// publish, so that many are equal, also among brands.
func (p *plan) campaign(id int64) campaign {
	brand, _ := p.campaignBrand.of(id)
	d := roll(p.seed, forCampaign, id)
	along := opening + stamp((id-1)*int64((lastPlanned-opening)/day)/p.campaigns)*day
	start := along + stamp(d.between(-4, 4))*day
	start = max(start, opening) + pick(&d, []stamp{0, 9 * hour, 10 * hour, 10 * hour, 14 * hour, 17*hour + 30*minute})
	// Remainders of ids, and no dice, decide on the special cases: so each is there at every seed.
	switch id % 97 {
	case 7: // on the boundary of a date filter, and a second to either side
		start = newYear
	case 8:
		start = newYear - second
	case 9:
		start = newYear + second
	case 10: // years ahead
		start = date(2027, 1, 1) + stamp(d.below(1500))*day
	}
	if brand%13 == 5 {
		// The brand announced all its last campaigns for one moment: its most recent
		// campaign is a tie.
		b := roll(p.seed, forCampaignBrand, brand)
		start = min(start, date(2024, 1, 1)+stamp(b.below(365))*day)
	}
	c := campaign{id: id, brand: brand, start: start}
	if d.percent(96) {
		c.end = at(start + stamp(d.between(5, 45))*day - second)
	}
	switch n := d.below(100); {
	case start >= today || !c.end.Valid && n < 60:
		c.status = []string{accepting, underReview}[n%2]
	case c.end.Valid && c.end.V >= today:
		c.status = accepting
		if n < 20 {
			c.status = []string{underReview, cancelled, rejected}[n%3]
		}
	case n < 82:
		c.status = closed
	case n < 86: // nobody closed it
		c.status = underReview
	case n < 94:
		c.status = cancelled
	default:
		c.status = rejected
	}
	c.offers = pick(&d, []int64{1, 2, 3, 3, 5, 5, 5, 10, 10, 20, 30, 50, 100, 300})
	if id%23 == 3 || id%37 == 6 {
		c.offers = 0
	}
	return c
}

// chosen answers how many of a campaign's applications were selected, and how many
// of those are done. The first ordinals are the done ones, then the selected.
func (p *plan) chosen(id int64, c campaign) (selected, done int64) {
	apps := p.appCampaign.count(id)
	d := roll(p.seed, forSelection, id)
	switch c.status {
	case closed:
		selected = min((apps*d.between(40, 100)+99)/100, c.offers)
		return selected, selected * d.between(60, 100) / 100
	case accepting:
		if d.percent(20) {
			return min(apps/4, c.offers), 0
		}
	}
	return 0, 0
}

// campaignRow is a campaign as stored.
type campaignRow struct {
	campaign
	partner        int64
	name           string
	applied, views int64
	created        stamp
}

// campaignRow makes the row of an id, with the counts of its applications and reviews.
func (p *plan) campaignRow(id int64) campaignRow {
	c := p.campaign(id)
	b := p.brand(c.brand)
	d := roll(p.seed, forCampaignText, id)
	name := strings.NewReplacer("{b}", b.name, "{p}", pick(&d, b.lex.Products[b.theme])).Replace(pick(&d, b.lex.Campaigns))
	if id%37 == 11 {
		name = odd(name, oddities[id/37%int64(len(oddities))], 300)
	}
	r := campaignRow{campaign: c, partner: b.partner, name: cut(name, 300),
		created: c.start - stamp(d.between(1, 30))*day + stamp(d.below(int64(day))).whole()}
	// The counters are the marketplace's own and only about right: they count
	// withdrawn applications too, and some were never kept up.
	r.applied = p.appCampaign.count(id)
	r.applied += r.applied*d.between(0, 30)/100 + d.below(3)
	r.views = r.applied*d.between(2, 60) + d.below(400)
	if id%31 == 5 || id%37 == 6 {
		r.applied = 0
	}
	if id%29 == 4 || id%37 == 6 {
		r.views = 0
	}
	if id%1999 == 5 {
		r.views = math.MaxInt32
	}
	return r
}

// values are those of the row, in the order of the table's columns.
func (r campaignRow) values() []any {
	return []any{r.id, r.partner, r.brand, r.name, r.status, r.start, r.end, r.offers, r.applied, r.views, r.created}
}
