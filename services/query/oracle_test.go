package query_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
)

// world is a marketplace in memory. The oracle answers each tool from it by brute
// force: no SQL, no index, no paging.
type world struct {
	categories []category
	names      map[int64]map[string]string
	partners   []partner
	admins     []admin
	brands     []brand
	campaigns  []campaign
	deposits   []deposit
	selected   map[int64]int64
}

type (
	category struct{ id, parent, order int64 }
	partner  struct {
		id            int64
		name, country string
	}
	admin struct {
		id, partner   int64
		verified      bool
		status, login string // login is empty for NULL
		position      any
	}
	brand struct {
		id, partner, category    int64
		name, president, country string
	}
	campaign struct {
		id, partner, brand int64
		name, status       string
		start              string
		offer, apply, view int64
	}
	deposit struct {
		id, brand   int64
		balance, at string
	}
)

// words are what names are made of, and what keywords are drawn from.
var words = []string{"김치", "Beauty", "beauty", "100%", "a_b", `back\slash`, "it's", `"quoted"`, "!", "%", "_", "🧴",
	"株式会社", "x", " "}

var codes = []string{"1206", "1208", "1209", "1210", "1211", "7777"}

const epoch = "2026-01-01 00:00:00"

// at is a time out of few, so that ties are common.
func at(r *rand.Rand, n int) string {
	t, _ := time.Parse(time.DateTime, epoch)
	return t.Add(time.Duration(r.IntN(n)) * 6 * time.Hour).Format(time.DateTime)
}

func phrase(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		b.WriteString(words[r.IntN(len(words))])
	}
	return strings.TrimRight(b.String(), " ") + "."
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{names: map[int64]map[string]string{}, selected: map[int64]int64{}}
	for i := range int64(20) {
		id, parent := 100+i, int64(0)
		if i >= 4 {
			parent = 100 + r.Int64N(i)
		}
		w.categories = append(w.categories, category{id, parent, r.Int64N(3)})
		w.names[id] = map[string]string{}
		for _, language := range []string{"ko", "en", "ja", "cn", "vi", "in"} {
			if r.IntN(2) == 0 {
				w.names[id][language] = fmt.Sprintf("%s-%d", language, id)
			}
		}
	}
	for i := range int64(30) {
		w.partners = append(w.partners, partner{1 + i, phrase(r), []string{"KR", "JP", "VN"}[r.IntN(3)]})
	}
	for i := range int64(90) {
		a := admin{id: 1 + i, partner: 1 + r.Int64N(30), verified: r.IntN(2) == 0,
			status: []string{"READY", "READY", "PENDING", "LEAVE"}[r.IntN(4)]}
		if r.IntN(3) > 0 {
			a.login = at(r, 6)
		}
		if r.IntN(2) == 0 {
			a.position = "Manager"
		}
		w.admins = append(w.admins, a)
	}
	for i := range int64(120) {
		w.brands = append(w.brands, brand{1 + i, 1 + r.Int64N(30), 100 + r.Int64N(22), phrase(r), phrase(r),
			[]string{"KR", "JP", "VN"}[r.IntN(3)]})
	}
	for i := range int64(600) {
		b := w.brands[r.IntN(100)] // 20 brands have none
		c := campaign{id: 1 + i, partner: b.partner, brand: b.id, name: phrase(r), status: codes[r.IntN(len(codes))], start: at(r, 200),
			offer: r.Int64N(4), apply: r.Int64N(30), view: r.Int64N(3) * 17}
		if r.IntN(10) == 0 {
			c.partner = 1 + r.Int64N(33) // not the brand's owner, or nobody's
		}
		w.campaigns = append(w.campaigns, c)
		w.selected[c.id] = r.Int64N(4)
	}
	for i := range int64(200) {
		w.deposits = append(w.deposits, deposit{1 + i, 1 + r.Int64N(120), fmt.Sprintf("%d.%02d", r.IntN(5000)-100, r.IntN(100)), at(r, 5)})
	}
	return w
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (w *world) load(x *tools) {
	rows := map[string][][]any{}
	add := func(table string, row ...any) { rows[table] = append(rows[table], row) }
	for _, c := range w.categories {
		add("category", c.id, c.parent, c.order)
		for language, name := range w.names[c.id] {
			add("category_name", c.id, language, name)
		}
	}
	for _, p := range w.partners {
		add("partner", p.id, p.name, nil, p.country, epoch)
	}
	for _, a := range w.admins {
		add("partner_admin", a.id, a.partner, fmt.Sprint("admin ", a.id), a.email(), a.verified, a.status, a.position, orNull(a.login), epoch)
	}
	for _, b := range w.brands {
		add("brand", b.id, b.partner, b.name, b.president, b.category, b.country, nil, epoch)
	}
	application := 0
	for _, c := range w.campaigns {
		add("campaign", c.id, c.partner, c.brand, c.name, c.status, c.start, nil, c.offer, c.apply, c.view, epoch)
		for i, status := range []string{"SELECTED", "DONE", "SELECTED", "APPLIED", "DECLINED"} {
			if int64(i) < w.selected[c.id] || i > 2 {
				application++
				add("campaign_application", application, c.id, 1+i, status, epoch)
			}
		}
	}
	for _, d := range w.deposits {
		add("deposit_transaction", d.id, d.brand, "CHARGE", "1.00", d.balance, d.at)
	}
	for table, r := range rows {
		x.insert(table, r)
	}
}

func (a admin) email() string {
	if a.verified {
		return fmt.Sprintf("person%d@corp.example", a.id)
	}
	return fmt.Sprintf("unverified%d@corp.example", a.id)
}

func (w *world) partner(id int64) *partner {
	if i := slices.IndexFunc(w.partners, func(p partner) bool { return p.id == id }); i >= 0 {
		return &w.partners[i]
	}
	return nil
}

// contacts are a partner's verified contacts in order.
func (w *world) contacts(partner int64, inactive bool) []query.Contact {
	out := []query.Contact{}
	for _, a := range w.admins {
		if a.partner != partner || !a.verified || a.status != "READY" && !inactive {
			continue
		}
		c := query.Contact{ID: query.ID(a.id), Name: fmt.Sprint("admin ", a.id), Email: a.email(), AccountStatus: a.status}
		if a.position != nil {
			c.Position = ptr("Manager")
		}
		if a.login != "" {
			c.LastLoginAt = ptr(dateTime(a.login))
		}
		out = append(out, c)
	}
	login := func(c query.Contact) query.DateTime {
		if c.LastLoginAt == nil {
			return ""
		}
		return *c.LastLoginAt
	}
	slices.SortFunc(out, func(a, b query.Contact) int {
		return cmp.Or(cmp.Compare(login(b), login(a)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func dateTime(s string) query.DateTime { return query.DateTime(strings.Replace(s, " ", "T", 1)) }

// below tells whether a category is another or lies below it.
func (w *world) below(id, root int64) bool {
	for {
		i := slices.IndexFunc(w.categories, func(c category) bool { return c.id == id })
		if i < 0 {
			return false
		}
		if id == root {
			return true
		}
		id = w.categories[i].parent
	}
}

func (w *world) categoryName(id int64) *string {
	for _, language := range []string{"ko", "en"} {
		if n, ok := w.names[id][language]; ok {
			return &n
		}
	}
	return nil
}

// holds is case-insensitive, as the columns' collation is.
func holds(text, keyword string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(keyword))
}

// within compares wall clocks as text; an empty bound does not bound.
func within(at, after, before string) bool {
	return (after == "" || at >= wall(after)) && (before == "" || at < wall(before))
}

// wall is an ISO date of a test as the source would write it.
func wall(iso string) string {
	if t, err := time.Parse(time.DateOnly, iso); err == nil {
		return t.Format(time.DateTime)
	}
	t, err := time.Parse(time.RFC3339, iso)
	if err != nil {
		panic(err)
	}
	return t.UTC().Format("2006-01-02 15:04:05.999999999")
}

type brandQuery struct {
	CategoryID         *int64 `json:"categoryId,omitempty"`
	CountryCode        string `json:"countryCode,omitempty"`
	LastCampaignBefore string `json:"lastCampaignBefore,omitempty"`
	LastCampaignAfter  string `json:"lastCampaignAfter,omitempty"`
	HasVerifiedContact *bool  `json:"hasVerifiedContact,omitempty"`
	Keyword            string `json:"keyword,omitempty"`
	Limit              *int   `json:"limit,omitempty"`
	Offset             int    `json:"offset,omitempty"`
}

func (w *world) searchBrands(q brandQuery) []query.BrandMatch {
	out := []query.BrandMatch{}
	for _, b := range w.brands {
		last, newest := "", campaign{}
		for _, c := range w.campaigns {
			if c.brand == b.id && (c.start > last || c.start == last && c.id > newest.id) {
				last, newest = c.start, c
			}
		}
		contacts := w.contacts(b.partner, false)
		verified := q.HasVerifiedContact != nil && *q.HasVerifiedContact
		switch {
		case q.CategoryID != nil && !w.below(b.category, *q.CategoryID),
			q.CountryCode != "" && b.country != q.CountryCode,
			(q.LastCampaignAfter != "" || q.LastCampaignBefore != "") && (last == "" || !within(last, q.LastCampaignAfter, q.LastCampaignBefore)),
			verified && len(contacts) == 0,
			!holds(b.president, q.Keyword) && !holds(w.partner(b.partner).name, q.Keyword):
			continue
		}
		m := query.BrandMatch{ID: query.ID(b.id), Name: b.name, President: b.president, CategoryID: query.ID(b.category),
			CategoryName: w.categoryName(b.category),
			CountryCode:  b.country, PartnerID: query.ID(b.partner), PartnerName: &w.partner(b.partner).name}
		if last != "" {
			m.LastCampaignAt = ptr(dateTime(last))
			m.LastCampaign = &query.LastCampaign{ID: query.ID(newest.id), Name: newest.name, StatusCode: newest.status,
				Status: marketplace.CampaignStatus(newest.status), StartAt: dateTime(last)}
		}
		if verified {
			c := contacts[0]
			m.Contact = &query.BrandContact{ID: c.ID, Name: c.Name, Email: c.Email, Position: c.Position}
		}
		out = append(out, m)
	}
	last := func(m query.BrandMatch) query.DateTime {
		if m.LastCampaignAt == nil {
			return ""
		}
		return *m.LastCampaignAt
	}
	slices.SortFunc(out, func(a, b query.BrandMatch) int { return cmp.Or(cmp.Compare(last(b), last(a)), cmp.Compare(a.ID, b.ID)) })
	return out
}

type campaignQuery struct {
	PartnerID     *int64   `json:"partnerId,omitempty"`
	StatusCodes   []string `json:"statusCodes,omitempty"`
	StartedAfter  string   `json:"startedAfter,omitempty"`
	StartedBefore string   `json:"startedBefore,omitempty"`
	Keyword       string   `json:"keyword,omitempty"`
	MinApplyCount *int64   `json:"minApplyCount,omitempty"`
	Limit         *int     `json:"limit,omitempty"`
	Offset        int      `json:"offset,omitempty"`
}

func (w *world) answer(c campaign) query.Campaign {
	out := query.Campaign{ID: query.ID(c.id), Name: c.name, StatusCode: c.status, StartAt: dateTime(c.start), OfferCount: c.offer,
		ApplyCount: c.apply, ViewCount: c.view,
		BrandID: query.ID(c.brand), PartnerID: query.ID(c.partner)}
	if meaning, ok := map[string]string{"1206": "accepting", "1208": "under_review", "1209": "closed", "1210": "cancelled",
		"1211": "rejected"}[c.status]; ok {
		out.Status = &meaning
	}
	if p := w.partner(c.partner); p != nil {
		out.PartnerName = &p.name
	}
	return out
}

func (w *world) searchCampaigns(q campaignQuery) []query.CampaignMatch {
	out := []query.CampaignMatch{}
	for _, c := range w.campaigns {
		if q.PartnerID != nil && c.partner != *q.PartnerID || len(q.StatusCodes) > 0 && !slices.Contains(q.StatusCodes, c.status) ||
			!within(c.start, q.StartedAfter, q.StartedBefore) || !holds(c.name, q.Keyword) || q.MinApplyCount != nil && c.apply < *q.MinApplyCount {
			continue
		}
		match := query.CampaignMatch{Campaign: w.answer(c), Selected: min(w.selected[c.id], 3)}
		match.FillRate = share(match.Selected, c.offer)
		out = append(out, match)
	}
	slices.SortFunc(out, func(a, b query.CampaignMatch) int {
		return cmp.Or(cmp.Compare(b.StartAt, a.StartAt), cmp.Compare(b.ID, a.ID))
	})
	return out
}

// isoDates are bounds around the times of a world, also between two and with a zone.
var isoDates = rapid.Custom(func(t *rapid.T) string {
	start, _ := time.Parse(time.DateTime, epoch)
	d := start.Add(time.Duration(rapid.IntRange(-1, 201).Draw(t, "step")) * 6 * time.Hour)
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		return d.Format(time.DateOnly)
	case 1:
		return d.In(time.FixedZone("KST", 9*3600)).Format(time.RFC3339)
	case 2:
		return d.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "ns"))).Format(time.RFC3339Nano)
	}
	return d.Format(time.RFC3339)
})

func maybe[T any](t *rapid.T, name string, g *rapid.Generator[T]) T {
	var zero T
	if rapid.IntRange(0, 2).Draw(t, name+"?") > 0 {
		return zero
	}
	return g.Draw(t, name)
}

// inOrder are two bounds between which there can be something: others are refused.
func inOrder(after, before string) (from, to string) {
	a, errA := schema.ParseISODate(after)
	b, errB := schema.ParseISODate(before)
	switch {
	case errA != nil || errB != nil || a.Before(b):
		return after, before
	case a.Equal(b):
		return after, ""
	}
	return before, after
}

func keywords(t *rapid.T) string {
	return maybe(t, "keyword", rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 2).Draw(t, "words"), "")
	}))
}

// pages reads a list page by page to its end.
func pages[Row any](t *rapid.T, limit int, page func(offset int) (rows []Row, more bool)) []Row {
	all := []Row{}
	for {
		rows, more := page(len(all))
		all = append(all, rows...)
		if !more {
			return all
		}
		if len(rows) != limit {
			t.Fatalf("a page of %d rows says that there are more, the limit is %d", len(rows), limit)
		}
	}
}

func TestOracle(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x, w := serve(t), newWorld(seed)
			w.load(x)
			t.Run("search_brands", rapid.MakeCheck(func(t *rapid.T) {
				q := brandQuery{
					CategoryID:        maybe(t, "category", rapid.Ptr(rapid.Int64Range(99, 123), false)),
					CountryCode:       maybe(t, "country", rapid.SampledFrom([]string{"KR", "VN", "XX"})),
					LastCampaignAfter: maybe(t, "after", isoDates), LastCampaignBefore: maybe(t, "before", isoDates),
					HasVerifiedContact: maybe(t, "verified", rapid.Ptr(rapid.Bool(), false)), Keyword: keywords(t),
					Limit: ptr(rapid.IntRange(1, 60).Draw(t, "limit")),
				}
				q.LastCampaignAfter, q.LastCampaignBefore = inOrder(q.LastCampaignAfter, q.LastCampaignBefore)
				got := pages(t, *q.Limit, func(offset int) ([]query.BrandMatch, bool) {
					q.Offset = offset
					p := call[query.BrandPage](x, "search_brands", q)
					return p.Brands, p.HasMore
				})
				equal(t, q, got, w.searchBrands(q))
			}))
			t.Run("search_campaigns", rapid.MakeCheck(func(t *rapid.T) {
				q := campaignQuery{
					PartnerID:    maybe(t, "partner", rapid.Ptr(rapid.Int64Range(0, 35), false)),
					StatusCodes:  maybe(t, "status", rapid.SliceOfN(rapid.SampledFrom(append(codes, "", "12", "1206 x")), 0, 4)),
					StartedAfter: maybe(t, "after", isoDates), StartedBefore: maybe(t, "before", isoDates), Keyword: keywords(t),
					MinApplyCount: maybe(t, "min", rapid.Ptr(rapid.Int64Range(0, 31), false)), Limit: ptr(rapid.IntRange(3, 200).Draw(t, "limit")),
				}
				q.StartedAfter, q.StartedBefore = inOrder(q.StartedAfter, q.StartedBefore)
				got := pages(t, *q.Limit, func(offset int) ([]query.CampaignMatch, bool) {
					q.Offset = offset
					p := call[query.CampaignPage](x, "search_campaigns", q)
					return p.Campaigns, p.HasMore
				})
				equal(t, q, got, w.searchCampaigns(q))
			}))
			t.Run("get_brand", func(t *testing.T) { w.checkBrands(t, x) })
			t.Run("search_partner_contacts", func(t *testing.T) { w.checkContacts(t, x) })
			t.Run("get_campaign_performance", func(t *testing.T) { w.checkPerformance(t, x) })
			t.Run("list_categories", func(t *testing.T) { w.checkCategories(t, x) })
		})
	}
}

func equal[T any](t interface{ Fatalf(string, ...any) }, input any, got, want []T) {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || text(got[i]) != text(want[i]) {
			var g, w any
			if i < len(got) {
				g = text(got[i])
			}
			if i < len(want) {
				w = text(want[i])
			}
			t.Fatalf("%s\nrow %d of %d, want %d\n got %v\nwant %v", text(input), i, len(got), len(want), g, w)
		}
	}
}

func (w *world) checkBrands(t *testing.T, x *tools) {
	for _, limit := range []int{-1, 0, 1, 5, 20} {
		for _, b := range w.brands {
			in := map[string]any{"brandId": b.id, "recentCampaignsLimit": limit}
			n := limit
			if limit < 0 {
				delete(in, "recentCampaignsLimit")
				n = 5
			}
			got := call[query.BrandProfile](x, "get_brand", in)
			p := w.partner(b.partner)
			balance, newest := "0.00", deposit{}
			for _, d := range w.deposits {
				if d.brand == b.id && (d.at > newest.at || d.at == newest.at && d.id > newest.id) {
					newest, balance = d, d.balance
				}
			}
			all := []query.Campaign{}
			for _, c := range w.searchCampaigns(campaignQuery{}) {
				if int64(c.BrandID) == b.id {
					all = append(all, c.Campaign)
				}
			}
			want := query.BrandProfile{
				Brand: query.Brand{ID: query.ID(b.id), Name: b.name, President: b.president, CategoryID: query.ID(b.category),
					CategoryName: w.categoryName(b.category), CountryCode: b.country,
					PartnerID: query.ID(b.partner), CreatedAt: dateTime(epoch)},
				Partner:   &query.Partner{ID: query.ID(p.id), Name: p.name, CountryCode: p.country, CreatedAt: dateTime(epoch)},
				Contacts:  w.contacts(b.partner, false),
				Campaigns: all[:min(n, len(all))], LiterBalance: balance,
			}
			equal(t, in, []query.BrandProfile{got}, []query.BrandProfile{want})
		}
	}
	x.refused("get_brand", `{"brandId": 0}`, fault.NotFound)
	x.refused("get_brand", `{"brandId": 9223372036854775807}`, fault.NotFound)
}

func (w *world) checkContacts(t *testing.T, x *tools) {
	for _, p := range w.partners {
		for _, inactive := range []bool{false, true} {
			in := map[string]any{"partnerId": p.id, "includeInactive": inactive}
			got := call[query.PartnerContacts](x, "search_partner_contacts", in)
			if int64(got.Partner.ID) != p.id || got.Partner.Name != p.name {
				t.Fatalf("%v: partner %v, want %v", in, got.Partner, p)
			}
			equal(t, in, got.Contacts, w.contacts(p.id, inactive))
		}
	}
	x.refused("search_partner_contacts", `{"partnerId": 31}`, fault.NotFound)
}

// share is a ratio with six decimals; nil of nothing.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	f, _ := strconv.ParseFloat(big.NewRat(part, whole).FloatString(6), 64)
	return &f
}

func (w *world) checkPerformance(t *testing.T, x *tools) {
	for _, c := range w.campaigns {
		in := map[string]any{"campaignId": c.id}
		n := min(w.selected[c.id], 3)
		want := query.Performance{Campaign: w.answer(c), Counts: query.Counts{View: c.view, Apply: c.apply, Offer: c.offer, Selected: n},
			Ratios: query.Ratios{FillRate: share(n, c.offer), ApplicationDensity: share(c.apply, c.view), Oversubscription: share(c.apply, c.offer)}}
		equal(t, in, []query.Performance{call[query.Performance](x, "get_campaign_performance", in)}, []query.Performance{want})
	}
	x.refused("get_campaign_performance", `{"campaignId": 0}`, fault.NotFound)
}

func (w *world) checkCategories(t *testing.T, x *tools) {
	for _, language := range []string{"", "ko", "en", "ja", "cn", "vi", "in"} {
		for parent := int64(-1); parent < 125; parent++ {
			in := map[string]any{"parentId": parent, "language": language}
			if language == "" {
				delete(in, "language")
			}
			if parent < 0 {
				delete(in, "parentId")
			}
			want := []query.Category{}
			for _, c := range w.categories {
				if c.parent != max(parent, 0) {
					continue
				}
				a := query.Category{ID: query.ID(c.id), ParentID: query.ID(c.parent),
					HasChildren: slices.ContainsFunc(w.categories, func(k category) bool { return k.parent == c.id })}
				for _, l := range []string{cmp.Or(language, "ko"), "ko", "en", "cn", "in", "ja", "vi"} {
					if n, ok := w.names[c.id][l]; ok {
						a.Name, a.Language = &n, &l
						break
					}
				}
				want = append(want, a)
			}
			order := func(c query.Category) int64 { return w.categories[int64(c.ID)-100].order }
			slices.SortFunc(want, func(a, b query.Category) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.ID, b.ID)) })
			equal(t, in, call[query.CategoryList](x, "list_categories", in).Categories, want)
		}
	}
}
