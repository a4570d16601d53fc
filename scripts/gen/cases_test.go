package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCases counts each case that the data is made to hold. The query tools' tests
// rely on these being there, at scale 1 with any seed.
func TestCases(t *testing.T) {
	t.Run("seed 1", func(t *testing.T) { checkCases(t, scale1()) })
	t.Run("seed 77", func(t *testing.T) { checkCases(t, newDataset(1, 77)) })
}

func checkCases(t *testing.T, d *dataset) {
	atLeast := func(what string, n, want int) {
		t.Helper()
		if n < want {
			t.Errorf("%s: %d, want at least %d", what, n, want)
		}
	}
	between := func(what string, n, lo, hi int) {
		t.Helper()
		if n < lo || n > hi {
			t.Errorf("%s: %d, want %d to %d", what, n, lo, hi)
		}
	}

	// Owners and skew.
	brandsOf, campaignsOf := map[int64]int{}, map[int64][]campaignRow{}
	for _, b := range d.brands {
		brandsOf[b.partner]++
	}
	for _, c := range d.campaigns {
		campaignsOf[c.brand] = append(campaignsOf[c.brand], c)
	}
	between("partners without brands", len(d.partners)-len(brandsOf), 5, 30)
	between("brands without campaigns", len(d.brands)-len(campaignsOf), 220, 260)
	largest := 0
	for _, n := range brandsOf {
		largest = max(largest, n)
	}
	atLeast("brands of the largest partner", largest, 20)
	largest = 0
	for _, list := range campaignsOf {
		largest = max(largest, len(list))
	}
	atLeast("campaigns of the largest brand", largest, 80)
	inCategory := map[int64]int{}
	abroad := 0
	for _, b := range d.brands {
		inCategory[b.category]++
		if b.country != d.partners[b.partner-1].country {
			abroad++
		}
	}
	largest = 0
	for _, n := range inCategory {
		largest = max(largest, n)
	}
	atLeast("brands of the largest category", largest, 150)
	atLeast("categories without brands", len(d.plan.categories)-len(inCategory), 1)
	atLeast("brands right below a top level", inCategory[12]+inCategory[33], 1)
	atLeast("brands of another country than their partner", abroad, 50)
	countries := map[string]int{}
	for _, p := range d.partners {
		countries[p.country]++
	}
	for _, c := range []string{"KR", "JP", "CN", "VN", "US"} {
		atLeast("partners of "+c, countries[c], 40)
	}

	// Contacts.
	adminsOf := map[int64][]admin{}
	addresses, folded := map[string]map[int64]bool{}, map[string]map[string]bool{}
	for _, a := range d.admins {
		adminsOf[a.partner] = append(adminsOf[a.partner], a)
		low := strings.ToLower(a.email)
		if addresses[a.email] == nil {
			addresses[a.email] = map[int64]bool{}
		}
		addresses[a.email][a.partner] = true
		if folded[low] == nil {
			folded[low] = map[string]bool{}
		}
		folded[low][a.email] = true
	}
	only := func(keep func(a admin) bool) (n int) {
		for _, list := range adminsOf {
			if !slices.ContainsFunc(list, func(a admin) bool { return !keep(a) }) {
				n++
			}
		}
		return n
	}
	atLeast("partners without contacts", len(d.partners)-len(adminsOf), 20)
	atLeast("partners with only unverified contacts", only(func(a admin) bool { return !a.verified }), 20)
	atLeast("partners with only pending contacts", only(func(a admin) bool { return a.status == pending }), 20)
	atLeast("partners with only former contacts", only(func(a admin) bool { return a.status == leave }), 20)
	atLeast("partners whose only verified contacts left", only(func(a admin) bool { return !a.verified || a.status == leave }), 100)
	var several, tied, noLogin, mixed, leftLatest, unverifiedLatest, otherStatus int
	for _, list := range adminsOf {
		var good []admin
		var newest admin
		for _, a := range list {
			if a.verified && a.status == ready {
				good = append(good, a)
			}
			if a.lastLogin.Valid && a.lastLogin.V > newest.lastLogin.V {
				newest = a
			}
			if a.status != ready && a.status != pending && a.status != leave {
				otherStatus++
			}
		}
		if len(good) < 1 {
			continue
		}
		if newest.status == leave {
			leftLatest++
		}
		if newest.status == ready && !newest.verified {
			unverifiedLatest++
		}
		if len(good) < 2 {
			continue
		}
		several++
		slices.SortFunc(good, func(a, b admin) int { return cmp.Compare(b.lastLogin.V, a.lastLogin.V) })
		switch first, second := good[0].lastLogin, good[1].lastLogin; {
		case !first.Valid:
			noLogin++
		case first == second:
			tied++
		case !good[len(good)-1].lastLogin.Valid:
			mixed++
		}
	}
	atLeast("partners with several contacts", several, 200)
	atLeast("partners whose contacts tie for the newest login", tied, 50)
	atLeast("partners none of whose contacts logged in", noLogin, 50)
	atLeast("partners with and without logins", mixed, 50)
	atLeast("partners where a former contact logged in last", leftLatest, 50)
	atLeast("partners where an unverified contact logged in last", unverifiedLatest, 50)
	atLeast("contacts of another status", otherStatus, 50)
	var sharedAddress, otherCase int
	for _, partners := range addresses {
		if len(partners) > 1 {
			sharedAddress++
		}
	}
	for _, spellings := range folded {
		if len(spellings) > 1 {
			otherCase++
		}
	}
	between("addresses of two partners", sharedAddress, 20, 100)
	between("addresses in two spellings", otherCase, 20, 100)

	// Members who are contacts as well.
	var trapGood, trapOther, trapCase int
	for _, m := range d.members {
		for spelling := range folded[strings.ToLower(m.email)] {
			good := slices.ContainsFunc(d.admins, func(a admin) bool { return a.email == spelling && a.verified && a.status == ready })
			switch {
			case spelling != m.email:
				trapCase++
			case good:
				trapGood++
			default:
				trapOther++
			}
		}
	}
	between("members under a verified contact's address", trapGood, 1, 10)
	between("members under an unverified contact's address", trapOther, 1, 10)
	between("members under a contact's address in another case", trapCase, 1, 10)

	// Campaigns.
	var noOffers, noViews, noneApplied, noEnd, midnight, before, after, future, farFuture, most, overApplied int
	starts := map[stamp]map[int64]bool{}
	statuses := map[string]int{}
	for _, c := range d.campaigns {
		count(&noOffers, c.offers == 0)
		count(&noViews, c.views == 0)
		count(&noneApplied, c.applied == 0)
		count(&noEnd, !c.end.Valid)
		count(&midnight, c.start == newYear)
		count(&before, c.start == newYear-second)
		count(&after, c.start == newYear+second)
		count(&future, c.start > today)
		count(&farFuture, c.start > date(2027, 1, 1))
		count(&most, c.views == 1<<31-1)
		count(&overApplied, c.applied > c.offers && c.offers > 0)
		if starts[c.start] == nil {
			starts[c.start] = map[int64]bool{}
		}
		starts[c.start][c.brand] = true
		statuses[c.status]++
	}
	atLeast("campaigns without offers", noOffers, 100)
	atLeast("campaigns without views", noViews, 100)
	atLeast("campaigns without applications", noneApplied, 100)
	atLeast("campaigns without an end", noEnd, 100)
	atLeast("campaigns at the start of 2026", midnight, 50)
	atLeast("campaigns a second before", before, 50)
	atLeast("campaigns a second after", after, 50)
	atLeast("campaigns in the future", future, 200)
	atLeast("campaigns years ahead", farFuture, 50)
	atLeast("campaigns with the most views a column holds", most, 2)
	atLeast("campaigns with more applications than offers", overApplied, 1000)
	for _, s := range []string{accepting, underReview, closed, cancelled, rejected} {
		atLeast("campaigns of status "+s, statuses[s], 300)
	}
	if len(statuses) != 5 {
		t.Errorf("statuses %v", statuses)
	}
	across := 0
	for _, brands := range starts {
		count(&across, len(brands) > 1)
	}
	atLeast("starts that brands share", across, 1000)
	newestTied := 0
	for _, list := range campaignsOf {
		newest := slices.MaxFunc(list, func(a, b campaignRow) int { return cmp.Compare(a.start, b.start) })
		n := 0
		for _, c := range list {
			count(&n, c.start == newest.start)
		}
		count(&newestTied, n > 1)
	}
	atLeast("brands whose newest campaigns start together", newestTied, 60)

	// Applications and reviews.
	states := map[string]int{}
	perCampaign := map[int64]int64{}
	for _, a := range d.applications {
		states[a.status]++
		perCampaign[a.campaign]++
	}
	for _, s := range []string{"APPLIED", "SELECTED", "DECLINED", "DONE"} {
		atLeast("applications "+s, states[s], 3000)
	}
	if len(states) != 4 {
		t.Errorf("application states %v", states)
	}
	off := 0
	for _, c := range d.campaigns {
		count(&off, c.applied != perCampaign[c.id])
	}
	atLeast("campaigns whose counter is not the number of applications", off, 1000)
	var noContent, emptyContent, lines int
	for _, r := range d.reviews {
		count(&noContent, !r.content.Valid)
		count(&emptyContent, r.content.Valid && r.content.V == "")
		count(&lines, strings.Contains(r.content.V, "\n"))
	}
	atLeast("reviews without content", noContent, 100)
	atLeast("reviews with empty content", emptyContent, 100)
	atLeast("reviews of two lines", lines, 100)

	// Deposits.
	ledgers := byBrand(d.deposits)
	between("brands without deposits", len(d.brands)-len(ledgers), 200, 500)
	var sameMoment, newestSame, newestNotLast, misleading, negative, overdrawn, nothing, rich, wholeSeconds, huge int
	for _, rows := range ledgers {
		newest := rows[len(rows)-1]
		last := slices.MaxFunc(rows, func(a, b deposit) int { return cmp.Compare(a.id, b.id) })
		count(&newestNotLast, newest.id != last.id)
		count(&misleading, newest.id != last.id && newest.balance != last.balance)
		count(&newestSame, len(rows) > 1 && rows[len(rows)-2].created == newest.created)
		count(&rich, newest.balance > 100_000_000_000*liter)
		for i, r := range rows {
			count(&sameMoment, i > 0 && rows[i-1].created == r.created)
			count(&negative, r.kind == "ADJUST" && r.amount < 0)
			count(&overdrawn, r.balance < 0)
			count(&nothing, r.balance == 0)
			count(&huge, r.balance >= 999_999_999_999*liter)
			count(&wholeSeconds, r.created == r.created.whole())
		}
	}
	atLeast("deposits at the moment of the one before", sameMoment, 500)
	atLeast("brands whose newest deposits are of one moment", newestSame, 100)
	atLeast("brands whose newest deposit has not the highest id", newestNotLast, 100)
	atLeast("… and another balance", misleading, 100)
	atLeast("negative adjustments", negative, 500)
	atLeast("negative balances", overdrawn, 10)
	atLeast("balances of nothing", nothing, 10)
	atLeast("balances of 10^12", huge, 2)
	between("deposits at whole seconds", wholeSeconds, 500, 10_000)

	// Names.
	for _, column := range []struct {
		name  string
		bound int
		all   []string
	}{
		{"partner.name", 200, values(d.partners, func(r partner) string { return r.name })},
		{"brand_name", 200, values(d.brands, func(r brand) string { return r.name })},
		{"brand.president", 200, values(d.brands, func(r brand) string { return r.president })},
		{"campaign.name", 300, values(d.campaigns, func(r campaignRow) string { return r.name })},
		{"member.nickname", 100, values(d.members, func(r member) string { return r.nickname })},
	} {
		holds := func(what string, is func(string) bool) {
			t.Helper()
			if !slices.ContainsFunc(column.all, is) {
				t.Errorf("%s: none %s", column.name, what)
			}
		}
		// Partners are few: each oddity exists among brands and campaigns, not in each column.
		if strings.HasPrefix(column.name, "campaign") || column.name == "brand_name" {
			for _, part := range []string{"%", "_", "'", `"`, `\`, "<b>", "<script>", "{{toName}}", "=HYPERLINK", "Ignore previous instructions",
				"👩‍👩‍👧‍👦", "𠮷野家", "e\u0301", "שלום", "\u202e", "--"} {
				holds("with "+part, func(s string) bool { return strings.Contains(s, part) })
			}
			holds("that begins with a space", func(s string) bool { return strings.HasPrefix(s, " ") })
			holds("that ends with a space", func(s string) bool { return strings.HasSuffix(s, " ") })
			holds("that ends with a backslash", func(s string) bool { return strings.HasSuffix(s, `\`) })
			holds("as long as the column", func(s string) bool { return utf8.RuneCountInString(s) == column.bound })
		}
		holds("with 100%", func(s string) bool { return strings.Contains(s, "100% ") })
		holds("with 4-byte characters", func(s string) bool {
			return strings.ContainsFunc(s, func(r rune) bool { return r > 0xffff })
		})
		for script, part := range map[string]string{"Korean": "한", "Vietnamese": "ạ", "Japanese": "さくら", "Chinese": "金",
			"English": "B"} {
			if column.name == "member.nickname" || column.name == "brand.president" || script == "Vietnamese" {
				continue
			}
			holds("in "+script, func(s string) bool { return strings.Contains(s, part) })
		}
	}
	forms := strings.Join(values(d.partners, func(r partner) string { return r.name }), "\n")
	for _, form := range []string{"주식회사", "(주)", "㈜", "株式会社", "有限公司", "Công ty TNHH", "Inc.", "Ltd."} {
		if !strings.Contains(forms, form) {
			t.Errorf("no partner is a %s", form)
		}
	}

	// NULLs.
	null := map[string]int{}
	tally := func(what string, valid bool) {
		if !valid {
			null[what]++
		}
	}
	for _, r := range d.partners {
		tally("business_no", r.businessNo.Valid)
	}
	for _, r := range d.admins {
		tally("position", r.position.Valid)
		tally("last_login_at", r.lastLogin.Valid)
	}
	for _, r := range d.brands {
		tally("homepage_url", r.homepage.Valid)
		tally("president", r.president != "")
	}
	for _, r := range d.members {
		tally("marketing_consent", r.consent.Valid)
	}
	for _, what := range []string{"business_no", "position", "last_login_at", "homepage_url", "president", "marketing_consent"} {
		atLeast("rows without "+what, null[what], 20)
	}
}

func count(n *int, when bool) {
	if when {
		*n++
	}
}

func values[R any](rows []R, of func(R) string) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = of(r)
	}
	return list
}

// TestSmallScaleHasTheCases guards what tests of other packages want from a data set
// that loads in a moment.
func TestSmallScaleHasTheCases(t *testing.T) {
	d := newDataset(0.01, 1)
	var noOffers, noViews, boundary, future, newestNotLast, noCampaigns, noBrands int
	brands, owners := map[int64]bool{}, map[int64]bool{}
	for _, c := range d.campaigns {
		brands[c.brand] = true
		count(&noOffers, c.offers == 0)
		count(&noViews, c.views == 0)
		count(&boundary, c.start == newYear)
		count(&future, c.start > today)
	}
	for _, b := range d.brands {
		count(&noCampaigns, !brands[b.id])
		owners[b.partner] = true
	}
	for _, p := range d.partners {
		count(&noBrands, !owners[p.id])
	}
	for _, rows := range byBrand(d.deposits) {
		last := slices.MaxFunc(rows, func(a, b deposit) int { return cmp.Compare(a.id, b.id) })
		count(&newestNotLast, last.id != rows[len(rows)-1].id)
	}
	if min(noOffers, noViews, boundary, future, newestNotLast, noCampaigns, noBrands) == 0 {
		t.Errorf(
			"without offers %d, views %d, at the boundary %d, future %d, late deposits %d, brands without campaigns %d, partners without brands %d",
			noOffers,
			noViews,
			boundary,
			future,
			newestNotLast,
			noCampaigns,
			noBrands,
		)
	}
}
