package main

import (
	"fmt"
	"math"
)

// The sample's calendar. Nothing here looks at the clock: "today" is the day the
// sample was taken, and data after it is the future as seen from there.
var (
	firstPartner = date(2014, 3, 1)
	opening      = date(2022, 1, 1) // of the marketplace: campaigns and deposits begin
	today        = date(2026, 7, 1)
	lastPlanned  = today + 75*day // regular campaigns; a few are years ahead
	newYear      = date(2026, 1, 1)
)

// plan is everything about the data set that is not one row's own: how many rows
// there are, and who belongs to whom. It is small (20 MB at scale 100).
type plan struct {
	seed       uint64
	partners   int64
	brands     int64
	campaigns  int64
	members    int64
	categories []category

	brandOwner     relation // brand -> partner
	adminOwner     relation // admin -> partner
	campaignBrand  relation
	depositBrand   relation
	appCampaign    relation // application -> campaign
	reviewCampaign relation
	brandCategory  shares // places in [0, total) -> category
}

// relation assigns children to parents: shares says how many each parent has, the
// shuffle which of them. It answers in both id spaces from 1.
type relation struct {
	shares  shares
	shuffle shuffle
}

// relate makes a relation; window bounds how far children move (shuffle).
func relate(s shares, seed uint64, what purpose, window int64) relation {
	return relation{s, shuffle{key: mix(seed ^ mix(uint64(what))), n: s.total(), window: window}}
}

// rows is how many children there are.
func (r relation) rows() int64 { return r.shares.total() }

// of answers the parent of a child and the child's number within it, from 0.
func (r relation) of(id int64) (parent, ordinal int64) {
	p, o := r.shares.owner(r.shuffle.at(id - 1))
	return p + 1, o
}

// count answers how many children a parent has.
func (r relation) count(parent int64) int64 { return r.shares.count(parent - 1) }

const (
	minScale = 0.001
	maxScale = 100
)

// newPlan makes the plan of a scale from 0.001 to 100. The number of rows grows with it, categories do not.
func newPlan(scale float64, seed uint64) (*plan, error) {
	if !(scale >= minScale && scale <= maxScale) {
		return nil, fmt.Errorf("--scale %v: want a number from %v to %v", scale, minScale, maxScale)
	}
	// A table has one row at least, at any scale.
	rows := func(atScale1 float64) int64 { return max(1, int64(math.Round(atScale1*scale))) }
	p := &plan{
		seed:       seed,
		partners:   rows(1_000),
		brands:     rows(3_000),
		campaigns:  rows(20_000),
		members:    rows(50_000),
		categories: readCategories(),
	}
	weights := func(n int64, of func(id int64) uint64) []uint64 {
		w := make([]uint64, n)
		for i := range w {
			w[i] = of(int64(i) + 1)
		}
		return w
	}

	// Fixed counts: a partner's contacts follow from its situation.
	admins := make(shares, p.partners)
	var total uint32
	for i := range admins {
		total += uint32(len(situationOf(int64(i) + 1).admins))
		admins[i] = total
	}
	p.adminOwner = relate(admins, seed, forAdminOwner, 64)

	p.brandCategory = share(1<<30, weights(int64(len(p.categories)), p.categoryWeight), false)
	p.brandOwner = relate(share(p.brands, weights(p.partners, p.partnerWeight), true), seed, forBrandOwner, 0)
	p.campaignBrand = relate(share(p.campaigns, weights(p.brands, p.brandWeight), true), seed, forCampaignBrand, 0)
	p.depositBrand = relate(share(rows(60_000), weights(p.brands, p.depositWeight), true), seed, forDepositBrand, 0)

	// Applications follow campaigns in time, and so do reviews: their windows are small.
	p.appCampaign = relate(share(rows(100_000), weights(p.campaigns, p.applicationWeight), false), seed, forApplicationCampaign, 1<<14)
	done := weights(p.campaigns, func(id int64) uint64 {
		_, done := p.chosen(id, p.campaign(id))
		return uint64(done)
	})
	var allDone int64
	for _, n := range done {
		allDone += int64(n)
	}
	// In proportion to, and so never more than, the finished applications of a campaign.
	p.reviewCampaign = relate(share(min(rows(20_000), allDone), done, false), seed, forReviewCampaign, 1<<12)
	return p, nil
}

// countryWeights are in percent, in the order of lexicons.
var countryWeights = []int64{58, 12, 11, 11, 8}

// country draws the language of a country by its weight.
func country(d *dice) *lexicon {
	n := d.below(100)
	// The order is that of words.json.
	for i, w := range countryWeights {
		if n -= w; n < 0 {
			return lexicons[i]
		}
	}
	return lexicons[0]
}

// partnerWeight skews brands towards few partners; one in 67 partners has none.
func (p *plan) partnerWeight(id int64) uint64 {
	if id%67 == 4 {
		return 0
	}
	d := roll(p.seed, forPartnerWeight, id)
	return d.heavy()
}

// brandWeight skews campaigns; two brands in 25 never had one.
func (p *plan) brandWeight(id int64) uint64 {
	if id%25 == 6 || id%25 == 19 {
		return 0
	}
	d := roll(p.seed, forBrandWeight, id)
	return d.heavy()
}

// depositWeight skews deposits; one brand in nine never paid in.
func (p *plan) depositWeight(id int64) uint64 {
	if id%9 == 2 {
		return 0
	}
	d := roll(p.seed, forDepositWeight, id)
	return d.heavy() + 10_000 // several deposits for almost all
}

// applicationWeight is about how open a campaign is or was.
func (p *plan) applicationWeight(id int64) uint64 {
	c := p.campaign(id)
	if c.start >= today {
		return 0
	}
	d := roll(p.seed, forCampaignWeight, id)
	w := d.heavy()
	switch c.status {
	case closed, accepting:
		return w
	case cancelled, underReview:
		return w / 8
	}
	return 0
}

// categoryWeight is Zipf's law over the tree, top levels included; the last
// categories of the ranking have no brands. The key was chosen so that the ranking is
// believable: serums first, top levels in the middle.
func (p *plan) categoryWeight(i int64) uint64 {
	n := int64(len(p.categories))
	rank := shuffle{key: 279, n: n}.at(i - 1)
	if rank >= n-3 {
		return 0
	}
	return uint64(1_000_000 / (rank + 3))
}
