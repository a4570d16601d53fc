package query_test

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
)

// generated makes a source that scripts/gen has filled.
func generated(t testing.TB, scale string) *tools {
	t.Helper()
	adminDSN, readerDSN := hubtest.SourceDB(t)
	gen := exec.CommandContext(t.Context(), "go", "run", "./gen", "--dsn", adminDSN, "--scale", scale)
	gen.Dir = filepath.Join(hubtest.Root(t), "scripts") // its module: a release is tested without the workspace
	if out, err := gen.CombinedOutput(); err != nil {
		t.Fatalf("scripts/gen: %v\n%s", err, out)
	}
	x := &tools{t: t, admin: openAdmin(t, adminDSN)}
	x.open(readerDSN)
	return x
}

// TestPlainSQL compares the searches with the straightforward statement for the same
// question, on sample data.
func TestPlainSQL(t *testing.T) {
	x := generated(t, "0.1")
	list := func(t rapid.TB, statement string, args []any) []string {
		rows, err := x.admin.QueryContext(x.t.Context(), statement, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
		defer rows.Close()
		var out []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			out = append(out, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	// like is the server's own way to say the same, with its own escape character.
	like := func(keyword string) string {
		return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(keyword) + "%"
	}
	people := list(t, `SELECT president FROM brand WHERE president <> '' UNION ALL SELECT name FROM partner`, nil)
	titles := list(t, `SELECT name FROM campaign`, nil)
	// pieces are substrings of names that there are.
	pieces := func(t *rapid.T, names []string) string {
		runes := []rune(rapid.SampledFrom(names).Draw(t, "name"))
		start := rapid.IntRange(0, len(runes)-1).Draw(t, "start")
		return string(runes[start : start+rapid.IntRange(1, min(3, len(runes)-start)).Draw(t, "length")])
	}
	dates := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("20%02d-%02d-%02d", rapid.IntRange(22, 27).Draw(t, "year"), rapid.IntRange(1, 12).Draw(t, "month"),
			rapid.IntRange(1, 28).Draw(t, "day"))
	})

	t.Run("search_brands", rapid.MakeCheck(func(t *rapid.T) {
		q := brandQuery{
			CategoryID:        maybe(t, "category", rapid.Ptr(rapid.SampledFrom([]int64{12, 13, 14, 33, 34, 35, 6666, 101, 2001, 1}), false)),
			CountryCode:       maybe(t, "country", rapid.SampledFrom([]string{"KR", "JP", "US"})),
			LastCampaignAfter: maybe(t, "after", dates), LastCampaignBefore: maybe(t, "before", dates),
			HasVerifiedContact: maybe(t, "verified", rapid.Ptr(rapid.Bool(), false)), Limit: ptr(rapid.IntRange(1, 200).Draw(t, "limit")),
		}
		q.LastCampaignAfter, q.LastCampaignBefore = inOrder(q.LastCampaignAfter, q.LastCampaignBefore)
		if rapid.Bool().Draw(t, "keyword?") {
			q.Keyword = pieces(t, people)
		}
		var where []string
		var args []any
		add := func(text string, arg ...any) { where, args = append(where, text), append(args, arg...) }
		if q.CategoryID != nil {
			add(`b.category_id IN (WITH RECURSIVE d (id) AS (SELECT category_id FROM category WHERE category_id = ? UNION SELECT c.category_id `+
				`FROM category c JOIN d ON c.parent_id = d.id) SELECT id FROM d)`, *q.CategoryID)
		}
		if q.CountryCode != "" {
			add(`b.country_code = ?`, q.CountryCode)
		}
		if q.LastCampaignAfter != "" {
			add(`m.last >= ?`, q.LastCampaignAfter)
		}
		if q.LastCampaignBefore != "" {
			add(`m.last < ?`, q.LastCampaignBefore)
		}
		if q.Keyword != "" {
			add(`(b.president LIKE ? OR p.name LIKE ?)`, like(q.Keyword), like(q.Keyword))
		}
		contact := `NULL`
		if q.HasVerifiedContact != nil && *q.HasVerifiedContact {
			add(`a.partner_admin_id IS NOT NULL`)
			contact = `a.partner_admin_id`
		}
		want := list(t, `SELECT CONCAT_WS(' ', b.brand_id, COALESCE(m.last, '-'), COALESCE(`+contact+`, '-'), p.name)
			FROM brand b JOIN partner p ON p.partner_id = b.partner_id
			LEFT JOIN (SELECT brand_id, MAX(start_at) last FROM campaign GROUP BY brand_id) m ON m.brand_id = b.brand_id
			LEFT JOIN (SELECT partner_admin_id, partner_id, ROW_NUMBER() OVER (PARTITION BY partner_id ORDER BY last_login_at IS NULL,
				last_login_at DESC, partner_admin_id) n
			  FROM partner_admin WHERE email_verified = 1 AND account_status = 'READY') a ON a.partner_id = b.partner_id AND a.n = 1
			WHERE `+strings.Join(append(where, "TRUE"), " AND ")+` ORDER BY m.last IS NULL, m.last DESC, b.brand_id`, args)
		var got []string
		for _, b := range pages(t, *q.Limit, func(offset int) ([]query.BrandMatch, bool) {
			q.Offset = offset
			p := call[query.BrandPage](x, "search_brands", q)
			return p.Brands, p.HasMore
		}) {
			last, contact := "-", "-"
			if b.LastCampaignAt != nil {
				last = strings.Replace(string(*b.LastCampaignAt), "T", " ", 1)
			}
			if b.Contact != nil {
				contact = fmt.Sprint(b.Contact.ID)
			}
			got = append(got, fmt.Sprint(b.ID, " ", last, " ", contact, " ", *b.PartnerName))
		}
		equal(t, q, got, want)
	}))
	t.Run("search_campaigns", rapid.MakeCheck(func(t *rapid.T) {
		q := campaignQuery{
			PartnerID:    maybe(t, "partner", rapid.Ptr(rapid.Int64Range(1, 100), false)),
			StatusCodes:  maybe(t, "status", rapid.SliceOfN(rapid.SampledFrom(codes), 0, 3)),
			StartedAfter: maybe(t, "after", dates), StartedBefore: maybe(t, "before", dates),
			MinApplyCount: maybe(t, "min", rapid.Ptr(rapid.Int64Range(0, 400), false)), Limit: ptr(rapid.IntRange(20, 200).Draw(t, "limit")),
		}
		q.StartedAfter, q.StartedBefore = inOrder(q.StartedAfter, q.StartedBefore)
		if rapid.IntRange(0, 2).Draw(t, "keyword?") == 0 {
			q.Keyword = pieces(t, titles)
		}
		where := []string{"TRUE"}
		var args []any
		add := func(text string, arg any) { where, args = append(where, text), append(args, arg) }
		if q.PartnerID != nil {
			add(`c.partner_id = ?`, *q.PartnerID)
		}
		if len(q.StatusCodes) > 0 {
			add(`FIND_IN_SET(c.status_code, ?)`, strings.Join(q.StatusCodes, ","))
		}
		if q.StartedAfter != "" {
			add(`c.start_at >= ?`, q.StartedAfter)
		}
		if q.StartedBefore != "" {
			add(`c.start_at < ?`, q.StartedBefore)
		}
		if q.Keyword != "" {
			add(`c.name LIKE ?`, like(q.Keyword))
		}
		if q.MinApplyCount != nil {
			add(`c.apply_count >= ?`, *q.MinApplyCount)
		}
		want := list(t, `SELECT CONCAT_WS(' ', c.campaign_id, c.name, p.name) FROM campaign c JOIN partner p USING (partner_id) WHERE `+
			strings.Join(where, " AND ")+
			` ORDER BY c.start_at DESC, c.campaign_id DESC`, args)
		var got []string
		for _, c := range pages(t, *q.Limit, func(offset int) ([]query.CampaignMatch, bool) {
			q.Offset = offset
			p := call[query.CampaignPage](x, "search_campaigns", q)
			return p.Campaigns, p.HasMore
		}) {
			got = append(got, fmt.Sprint(c.ID, " ", c.Name, " ", *c.PartnerName))
		}
		equal(t, q, got, want)
	}))
}

var source = flag.String("source", "", "what BenchmarkTools asks, in place of a sample of scale 1: data source name of a reader")

// BenchmarkTools tells the median of a call, at the service, by one caller.
func BenchmarkTools(b *testing.B) {
	var x *tools
	if *source != "" {
		x = &tools{t: b}
		x.open(*source)
	} else {
		x = generated(b, "1")
		x.exec(`ANALYZE TABLE partner, partner_admin, brand, campaign, campaign_application, deposit_transaction`)
	}
	for _, c := range []struct{ what, name, input string }{
		{"list", "describe_schema", `{}`},
		{"table", "describe_schema", `{"table": "campaign"}`},
		{"table", "get_ddl", `{"table": "campaign"}`},
		{"top", "list_categories", `{}`},
		{"all", "search_brands", `{}`},
		{"category", "search_brands", `{"categoryId": 12}`},
		{"contact", "search_brands", `{"categoryId": 12, "hasVerifiedContact": true}`},
		{"leaf", "search_brands", `{"categoryId": 101, "hasVerifiedContact": true}`},
		{"before", "search_brands", `{"lastCampaignBefore": "2025-01-01"}`},
		{"before-half-a-year", "search_brands", `{"lastCampaignBefore": "2026-01-01"}`},
		{"before-category", "search_brands", `{"categoryId": 12, "lastCampaignBefore": "2025-01-01"}`},
		{"before-leaf", "search_brands", `{"categoryId": 101, "lastCampaignBefore": "2025-01-01"}`},
		{"before-contact", "search_brands", `{"countryCode": "KR", "lastCampaignBefore": "2025-01-01", "hasVerifiedContact": true}`},
		{"before-200", "search_brands", `{"lastCampaignBefore": "2025-01-01", "limit": 200}`},
		{"before-few", "search_brands", `{"lastCampaignBefore": "2022-07-01"}`},
		{"before-none", "search_brands", `{"lastCampaignBefore": "2021-01-01"}`},
		{"before-keyword", "search_brands", `{"keyword": "김", "lastCampaignBefore": "2025-01-01"}`},
		{"before-rare", "search_brands", `{"keyword": "100%", "lastCampaignBefore": "2025-01-01"}`},
		{"between", "search_brands", `{"lastCampaignAfter": "2024-07-01", "lastCampaignBefore": "2025-01-01"}`},
		{"keyword", "search_brands", `{"keyword": "100%"}`},
		{"keyword-often", "search_brands", `{"keyword": "김"}`},
		{"offset", "search_brands", `{"offset": 1000}`},
		{"offset-before", "search_brands", `{"offset": 1000, "lastCampaignBefore": "2025-01-01"}`},
		{"brand", "get_brand", `{"brandId": 77}`},
		{"all", "search_campaigns", `{}`},
		{"status", "search_campaigns", `{"statusCodes": ["1206"]}`},
		{"partner", "search_campaigns", `{"partnerId": 77}`},
		{"keyword", "search_campaigns", `{"keyword": "100%"}`},
		{"no-hit", "search_campaigns", `{"keyword": "zzqqxx"}`},
		{"applied", "search_campaigns", `{"statusCodes": ["1209"], "minApplyCount": 100}`},
		{"applied-none", "search_campaigns", `{"statusCodes": ["1209"], "minApplyCount": 100000}`},
		{"applied-any", "search_campaigns", `{"minApplyCount": 100000}`},
		{"offset", "search_campaigns", `{"offset": 1000}`},
		{"partner", "search_partner_contacts", `{"partnerId": 77}`},
		{"campaign", "get_campaign_performance", `{"campaignId": 777}`},
	} {
		b.Run(c.name+"/"+c.what, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := x.raw(b.Context(), c.name, c.input); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
