package query_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

// brands lists the ids of the brands of a page.
func (x *tools) brands(input string) string {
	x.t.Helper()
	var b strings.Builder
	p := call[query.BrandPage](x, "search_brands", input)
	for _, m := range p.Brands {
		fmt.Fprintf(&b, "%d ", m.ID)
	}
	if p.HasMore {
		b.WriteString("+")
	}
	return strings.TrimSpace(b.String())
}

func (x *tools) campaigns(input string) string {
	x.t.Helper()
	var b strings.Builder
	p := call[query.CampaignPage](x, "search_campaigns", input)
	for _, c := range p.Campaigns {
		fmt.Fprintf(&b, "%d ", c.ID)
	}
	if p.HasMore {
		b.WriteString("+")
	}
	return strings.TrimSpace(b.String())
}

const ruleRows = `
INSERT INTO category VALUES (12, 0, 1), (120, 12, 1), (1200, 120, 1), (13, 0, 2), (500, 501, 1), (501, 500, 1);
INSERT INTO category_name VALUES (12, 'ko', '뷰티'), (120, 'en', 'Skin'), (1200, 'ja', '肌');
INSERT INTO partner VALUES (1, 'One_Co', NULL, 'KR', '2020-01-01'), (2, 'Two%Co', '22', 'KR', '2020-01-01'), (3, 'Three\\Co!', NULL,
	'JP', '2020-01-01');
INSERT INTO partner_admin VALUES
  (10, 1, 'a', 'unverified-a@x.example', 0, 'READY', NULL, '2026-05-01', '2020-01-01'),
  (11, 1, 'b', 'b@x.example', 1, 'PENDING', NULL, '2026-05-01', '2020-01-01'),
  (12, 1, 'c', 'c@x.example', 1, 'READY', NULL, NULL, '2020-01-01'),
  (13, 1, 'd', 'd@x.example', 1, 'READY', 'CEO', '2026-01-01', '2020-01-01'),
  (14, 1, 'e', 'e@x.example', 1, 'READY', NULL, '2026-01-01', '2020-01-01'),
  (20, 2, 'f', 'f@x.example', 1, 'LEAVE', NULL, '2026-05-01', '2020-01-01'),
  (21, 2, 'g', 'unverified-g@x.example', 0, 'READY', NULL, '2026-05-01', '2020-01-01');
INSERT INTO brand VALUES
  (101, 1, 'B101', 'Kim',      1200, 'KR', NULL, '2020-01-01'),
  (102, 1, 'B102', '100% Kim', 120,  'KR', NULL, '2020-01-01'),
  (103, 2, 'B103', 'lee_x',    12,   'JP', NULL, '2020-01-01'),
  (104, 3, 'B104', 'leeyx',    13,   'KR', NULL, '2020-01-01'),
  (105, 3, 'B105', '',         500,  'KR', NULL, '2020-01-01'),
  (106, 9, 'B106', 'orphan',   777,  'KR', NULL, '2020-01-01');
INSERT INTO campaign VALUES
  (1, 1, 101, 'First',   '1209', '2026-01-01 00:00:00', NULL, 3, 10, 7, '2020-01-01'),
  (2, 1, 101, 'Second',  '1206', '2026-03-01 00:00:00', NULL, 3, 10, 7, '2020-01-01'),
  (3, 1, 102, 'Third_x', '1208', '2026-03-01 00:00:00', NULL, 3, 0, 0, '2020-01-01'),
  (4, 2, 103, 'Fourth%', '1210', '2026-02-01 12:00:00', NULL, 0, 10, 7, '2020-01-01'),
  (5, 9, 106, 'Fifth',   'XXXX', '2026-02-01 12:00:00', NULL, 0, 10, 7, '2020-01-01')`

func TestRules(t *testing.T) {
	x := serve(t, ruleRows)
	for _, c := range []struct{ what, input, want string }{
		{"newest first, ties by id, none last", `{}`, "101 102 103 106 104 105"},
		{"a category covers what is below", `{"categoryId": 12}`, "101 102 103"},
		{"below the middle", `{"categoryId": 120}`, "101 102"},
		{"leaf", `{"categoryId": 1200}`, "101"},
		{"unknown category", `{"categoryId": 777}`, ""},
		{"category 0", `{"categoryId": 0}`, ""},
		{"a circle ends", `{"categoryId": 500}`, "105"},
		{"country", `{"countryCode": "JP"}`, "103"},
		{"empty country does not filter", `{"countryCode": ""}`, "101 102 103 106 104 105"},
		{"after is inclusive", `{"lastCampaignAfter": "2026-03-01"}`, "101 102"},
		{"before is exclusive", `{"lastCampaignBefore": "2026-03-01"}`, "103 106"},
		{"the newest campaign counts, not any", `{"lastCampaignBefore": "2026-01-15"}`, ""},
		{"a brand without campaigns matches no date", `{"lastCampaignBefore": "2030-01-01"}`, "101 102 103 106"},
		{"nor the other", `{"lastCampaignAfter": "1999-01-01"}`, "101 102 103 106"},
		{"a time with a zone", `{"lastCampaignAfter": "2026-03-01T09:00:00+09:00"}`, "101 102"},
		{"one second on", `{"lastCampaignAfter": "2026-03-01T00:00:01Z"}`, ""},
		{"one nanosecond on", `{"lastCampaignAfter": "2026-03-01T00:00:00.000000001Z"}`, ""},
		{"one nanosecond later is not before", `{"lastCampaignBefore": "2026-03-01T00:00:00.000000001Z"}`, "101 102 103 106"},
		{"midday", `{"lastCampaignAfter": "2026-02-01T12:00:00Z", "lastCampaignBefore": "2026-02-01T12:00:01Z"}`, "103 106"},
		{"year 0", `{"lastCampaignAfter": "0000-01-01"}`, "101 102 103 106"},
		{"after the first day", `{"lastCampaignAfter": "0001-01-01"}`, "101 102 103 106"},
		{"before year 1", `{"lastCampaignBefore": "0001-01-01T00:00:00+14:00"}`, ""},
		{"year 10000 in UTC", `{"lastCampaignBefore": "9999-12-31T23:59:59-12:00"}`, "101 102 103 106"},
		{"verified contact", `{"hasVerifiedContact": true}`, "101 102"},
		{"no contact wanted", `{"hasVerifiedContact": false}`, "101 102 103 106 104 105"},
		{"keyword in president", `{"keyword": "kim"}`, "101 102"},
		{"keyword in partner", `{"keyword": "three"}`, "104 105"},
		{"percent is literal", `{"keyword": "%"}`, "102 103"},
		{"underscore is literal", `{"keyword": "lee_x"}`, "103"},
		{"underscore in partner", `{"keyword": "e_C"}`, "101 102"},
		{"backslash is literal", `{"keyword": "\\"}`, "104 105"},
		{"exclamation mark is literal", `{"keyword": "o!"}`, "104 105"},
		{"quote is data", `{"keyword": "' OR ''='"}`, ""},
		{"NUL is data", `{"keyword": "\u0000"}`, ""},
		{"empty keyword", `{"keyword": ""}`, "101 102 103 106 104 105"},
		{"a partner that is not there", `{"keyword": "orphan"}`, "106"},
		{"filters combine", `{"categoryId": 12, "countryCode": "KR", "keyword": "100%", "hasVerifiedContact": true, "lastCampaignAfter": ` +
			`"2026-03-01"}`, "102"},
		{"page", `{"limit": 2}`, "101 102 +"},
		{"next page", `{"limit": 2, "offset": 2}`, "103 106 +"},
		{"last page", `{"limit": 2, "offset": 4}`, "104 105"},
		{"past the end", `{"limit": 2, "offset": 6}`, ""},
		{"far past the end", `{"offset": 9223372036854775807}`, ""},
		{"exactly full", `{"limit": 6}`, "101 102 103 106 104 105"},
	} {
		if got := x.brands(c.input); got != c.want {
			t.Errorf("%s: search_brands %s answers %q, want %q", c.what, c.input, got, c.want)
		}
	}
	for _, c := range []struct{ what, input, want string }{
		{"newest first, then the highest id", `{}`, "3 2 5 4 1"},
		{"partner", `{"partnerId": 1}`, "3 2 1"},
		{"no such partner", `{"partnerId": 8}`, ""},
		{"statuses", `{"statusCodes": ["1206", "1209"]}`, "2 1"},
		{"a status twice", `{"statusCodes": ["1206", "1206", "1206"]}`, "2"},
		{"a status that the collation takes for another", `{"statusCodes": ["1206", "1206 ", "xxxx", "XXXX"]}`, "2 5"},
		{"the same for a partner", `{"statusCodes": ["1206", "1206 "], "partnerId": 1}`, "2"},
		{"a blank behind a status is another text", `{"statusCodes": ["1206 "]}`, ""},
		{"also for a partner", `{"statusCodes": ["1206 "], "partnerId": 1}`, ""},
		{"unknown status", `{"statusCodes": ["9999"]}`, ""},
		{"unknown among known", `{"statusCodes": ["9999", "1210"]}`, "4"},
		{"no status", `{"statusCodes": []}`, "3 2 5 4 1"},
		{"after is inclusive", `{"startedAfter": "2026-02-01T12:00:00Z"}`, "3 2 5 4"},
		{"before is exclusive", `{"startedBefore": "2026-02-01T12:00:00Z"}`, "1"},
		{"keyword", `{"keyword": "TH"}`, "3 5 4"},
		{"percent is literal", `{"keyword": "%"}`, "4"},
		{"underscore is literal", `{"keyword": "d_x"}`, "3"},
		{"applications", `{"minApplyCount": 10}`, "2 5 4 1"},
		{"no more applications", `{"minApplyCount": 11}`, ""},
		{"0 applications", `{"minApplyCount": 0}`, "3 2 5 4 1"},
		{"page", `{"limit": 2}`, "3 2 +"},
		{"next page", `{"limit": 2, "offset": 2}`, "5 4 +"},
		{"last page", `{"limit": 2, "offset": 4}`, "1"},
		{"past the end", `{"limit": 2, "offset": 5}`, ""},
		{"far past the end", `{"offset": 9223372036854775807}`, ""},
		{"deep, with a keyword", `{"keyword": "th", "limit": 1, "offset": 2}`, "4"},
	} {
		if got := x.campaigns(c.input); got != c.want {
			t.Errorf("%s: search_campaigns %s answers %q, want %q", c.what, c.input, got, c.want)
		}
	}

	match := call[query.BrandPage](x, "search_brands", `{"keyword": "100%", "hasVerifiedContact": true}`).Brands[0]
	if got, want := text(match), `{"brand_id":102,"brand_name":"B102","president":"100% `+
		`Kim","category_id":120,"category_name":"Skin","country_code":"KR","partner_id":1,"partner_name":"One_Co",`+
		`"last_campaign_at":"2026-03-01T00:00:00","last_campaign":{"campaign_id":3,"name":"Third_x","status_code":"1208",`+
		`"status":"under_review","start_at":"2026-03-01T00:00:00"},"contact":{"partner_admin_id":13,"name":"d","email":"d@x.example",`+
		`"position":"CEO"}}`; got != want {
		t.Errorf("a match is %s\nwant %s", got, want)
	}
	orphan := call[query.BrandProfile](x, "get_brand", `{"brandId": 106}`)
	if orphan.Partner != nil || orphan.LiterBalance != "0.00" || len(orphan.Contacts) != 0 || len(orphan.Campaigns) != 1 ||
		orphan.Campaigns[0].Status != nil || orphan.Campaigns[0].PartnerName != nil {
		t.Errorf("a brand without a partner: %s", text(orphan))
	}
	if got := call[query.PartnerContacts](x, "search_partner_contacts", `{"partnerId": 3}`); text(got) !=
		`{"partner":{"partner_id":3,"name":"Three\\Co!","business_no":null,"country_code":"JP","created_at":"2020-01-01T00:00:00"},`+
			`"contacts":[]}` {
		t.Errorf("a partner without contacts: %s", text(got))
	}
	p := call[query.Performance](x, "get_campaign_performance", `{"campaignId": 2}`)
	if got, want := text(p.Ratios), `{"fill_rate":0,"application_density":1.428571,"oversubscription":3.333333}`; got != want {
		t.Errorf("ratios %s, want %s", got, want)
	}
	if got := text(call[query.CategoryList](x, "list_categories",
		`{"parentId": 120, "language": "en"}`)); got != `{"categories":[{"category_id":1200,"parent_id":120,"category_name":"肌",`+
		`"language":"ja","has_children":false}]}` {
		t.Errorf("a name in another language alone: %s", got)
	}
	if got := text(call[query.CategoryList](x, "list_categories", `{"language": "vi"}`)); got !=
		`{"categories":[{"category_id":12,"parent_id":0,"category_name":"뷰티","language":"ko","has_children":true},{"category_id":13,`+
			`"parent_id":0,"category_name":null,"language":null,"has_children":false}]}` {
		t.Errorf("top level: %s", got)
	}
}

// TestNoFalseAlarm: what servers take for an existing code is one, and a category is asked for where rows are filtered by it.
func TestNoFalseAlarm(t *testing.T) {
	x := serve(t, ruleRows, `INSERT INTO review VALUES (1, 1, 1, 5, 'x', '2026-01-01'), (2, 1, 1, 4, 'x', '2026-01-01')`)
	for text, want := range map[string]string{
		`SELECT review_id FROM review WHERE rating = '5.0' AND campaign_id = 77`:                               "",
		`SELECT review_id FROM review WHERE rating IN (05) AND campaign_id = 77`:                               "",
		`SELECT review_id FROM review WHERE rating = '5.5'`:                                                    "sql.codes",
		`SELECT COUNT(*) FROM brand WHERE category_id = 12`:                                                    "sql.tree",
		`SELECT COUNT(*) FROM brand HAVING SUM(category_id = 12) > 0`:                                          "",
		`SELECT COUNT(*) FROM category_name WHERE category_id = 12 /* brand */`:                                "",
		`SELECT COUNT(*) FROM category_name brand WHERE category_id = 12`:                                      "",
		`SELECT SUM(CASE WHEN category_id = 12 THEN 1 ELSE 0 END) FROM brand`:                                  "",
		`SELECT SUM(IF(b.category_id = 12, 1, 0)) FROM brand b`:                                                "",
		`SELECT (SELECT COUNT(*) FROM brand WHERE category_id = 12) AS direct`:                                 "sql.tree",
		`SELECT COUNT(*) FROM brand b JOIN category c ON c.category_id = b.category_id AND c.category_id = 12`: "sql.tree",
	} {
		out := call[struct {
			Columns, Rows any
			RowCount      int  `json:"row_count"`
			RowLimit      int  `json:"row_limit"`
			Truncated     bool `json:"truncated"`
			Warnings      []tool.Warning
		}](x, "execute_read_sql", map[string]any{"sql": text})
		got := ""
		for _, w := range out.Warnings {
			got += w.Rule
		}
		if got != want {
			t.Errorf("%s: %v, want %q", text, out.Warnings, want)
		}
	}
}

// TestDecomposedKeywords: a name copied of a Mac's file, whose syllables are in parts, finds what it is, as does one of Hanja that Unicode
// has twice.
func TestDecomposedKeywords(t *testing.T) {
	x := serve(t, ruleRows, `UPDATE brand SET president = '김하늘' WHERE brand_id = 101`, `UPDATE partner SET name = '李라온' WHERE partner_id = 2`,
		`UPDATE campaign SET name = '여름 캠페인' WHERE campaign_id = 4`)
	for keyword, want := range map[string]string{"김하늘": "101", "라온": "103", "\uf9e1": "103"} {
		if got := x.brands(`{"keyword": "` + norm.NFD.String(keyword) + `"}`); got != want && keyword != "\uf9e1" {
			t.Errorf("brands of %s: %s, want %s", keyword, got, want)
		}
		if got := x.brands(`{"keyword": "` + keyword + `"}`); got != want {
			t.Errorf("brands of %s as it is: %s, want %s", keyword, got, want)
		}
	}
	// A source may have them in parts as well.
	x.exec(`UPDATE brand SET president = '` + norm.NFD.String("김하늘") + `' WHERE brand_id = 101`)
	if got := x.brands(`{"keyword": "` + norm.NFD.String("김하늘") + `"}`); got != "101" {
		t.Errorf("brands of a name in parts: %s", got)
	}
	x.exec(`UPDATE brand SET president = '김하늘' WHERE brand_id = 101`)
	if got := x.campaigns(`{"keyword": "` + norm.NFD.String("여름") + `"}`); got != "4" {
		t.Errorf("campaigns: %s", got)
	}
	page := call[query.BrandPage](x, "search_brands", `{"keyword": "`+norm.NFD.String("(주) 김하늘")+`"}`)
	if len(page.Brands) > 0 || !strings.Contains(text(page.Warnings), "B101") {
		t.Errorf("a form in front: %s", text(page))
	}
}

// TestCharacterSets is a source that is older than utf8mb4.
func TestCharacterSets(t *testing.T) {
	for _, set := range []string{"utf8mb3", "latin1"} {
		x := serve(t, ruleRows, `DELETE FROM category_name`)
		for _, table := range []string{"brand", "campaign", "partner", "partner_admin", "category_name"} {
			x.exec(`ALTER TABLE ` + table + ` CONVERT TO CHARACTER SET ` + set)
		}
		for input, want := range map[string]string{
			`{"keyword": "🧴"}`: "", `{"keyword": "김"}`: "", `{"keyword": "100%"}`: "102", `{"countryCode": "🧴"}`: "",
			`{"countryCode": "한국"}`:              "",
			`{"keyword": "🧴", "categoryId": 12}`: "",
		} {
			if got := x.brands(input); got != want {
				t.Errorf("%s: search_brands %s answers %q, want %q", set, input, got, want)
			}
		}
		for input, want := range map[string]string{
			`{"keyword": "🧴"}`: "", `{"keyword": "김"}`: "", `{"statusCodes": ["🧴"]}`: "",
			`{"statusCodes": ["🧴", "1206", "한국"]}`: "2", `{"statusCodes": ["🧴", "1206"], "partnerId": 1}`: "2",
		} {
			if got := x.campaigns(input); got != want {
				t.Errorf("%s: search_campaigns %s answers %q, want %q", set, input, got, want)
			}
		}
	}
}

// TestDecimals holds the balance to the newest transaction and to two decimals.
func TestDecimals(t *testing.T) {
	x := serve(t, ruleRows, `INSERT INTO deposit_transaction VALUES
		(1, 101, 'CHARGE', 0, 9999999999999999.99, '2026-01-01 00:00:00.000001'), (2, 101, 'CHARGE', 0, 5, '2026-01-01 00:00:00.000000'),
		(3, 102, 'CHARGE', 0, 1, '2026-01-01'), (4, 102, 'CHARGE', 0, -0.5, '2026-01-01')`)
	for id, want := range map[int]string{101: "9999999999999999.99", 102: "-0.50", 103: "0.00"} {
		if got := call[query.BrandProfile](x, "get_brand", map[string]int{"brandId": id}).LiterBalance; got != want {
			t.Errorf("brand %d has %q, want %q", id, got, want)
		}
	}
}

// TestBigIDs answers an id that a double cannot hold as a string.
func TestBigIDs(t *testing.T) {
	x := serve(t, `INSERT INTO partner VALUES (9007199254740992, 'a', NULL, 'KR', '2020-01-01'), (9007199254740993, 'b', NULL, 'KR', `+
		`'2020-01-01')`)
	for id, want := range map[string]string{"9007199254740992": `{"partner_id":9007199254740992,`,
		"9007199254740993": `{"partner_id":"9007199254740993",`} {
		r, err := x.raw(t.Context(), "search_partner_contacts", `{"partnerId": `+id+`}`)
		if err != nil || !strings.HasPrefix(string(r.Data), `{"partner":`+want) {
			t.Errorf("%s: %s, %v", id, r.Data, err)
		}
	}
}

// TestBounds tries each bound of each schema from both sides.
func TestBounds(t *testing.T) {
	x := serve(t, ruleRows)
	for _, c := range []struct{ name, good, bad string }{
		{"describe_schema", `{"table": null}`, `{"table": {}}`},
		{"describe_schema", `{"table": "brand"}`, `{"table": false}`},
		{"describe_schema", `{}`, `{"tables": "brand"}`},
		{"get_ddl", `{"includeIndexes": "true"}`, `{"includeIndexes": "yes"}`},
		{"list_categories", `{"parentId": -1}`, `{"parentId": 1.5}`},
		{"list_categories", `{"language": "in"}`, `{"language": "fr"}`},
		{"list_categories", `{"language": "KO"}`, `{"language": "korean"}`},
		{"search_brands", `{"limit": 1}`, `{"limit": 0}`},
		{"search_brands", `{"limit": 200}`, `{"limit": 201}`},
		{"search_brands", `{"offset": 0}`, `{"offset": -1}`},
		{"search_brands", `{"categoryId": 0}`, `{"categoryId": -1}`},
		{"search_brands", `{"countryCode": "한국한국한"}`, `{"countryCode": "KR1234"}`},
		{"search_brands", `{"lastCampaignBefore": "2026-02-28"}`, `{"lastCampaignBefore": "2026-02-29"}`},
		{"search_brands", `{"lastCampaignAfter": "2026-02-28T00:00:00Z"}`, `{"lastCampaignAfter": "2026-02-28 00:00:00"}`},
		{"search_brands", `{"hasVerifiedContact": true}`, `{"hasVerifiedContact": 1}`},
		{"search_brands", `{"keyword": ""}`, `{"keyword": []}`},
		{"get_brand", `{"brandId": 101}`, `{}`},
		{"get_brand", `{"brandId": 101.0}`, `{"brandId": -1}`},
		{"get_brand", `{"brandId": 101, "recentCampaignsLimit": 0}`, `{"brandId": 101, "recentCampaignsLimit": -1}`},
		{"get_brand", `{"brandId": 101, "recentCampaignsLimit": 20}`, `{"brandId": 101, "recentCampaignsLimit": 21}`},
		{"get_brand", `{"brandId": 1.01e2}`, `{"brandId": 9223372036854775808}`},
		{"search_campaigns", `{"partnerId": 0}`, `{"partnerId": -1}`},
		{"search_campaigns", `{"statusCodes": "1206"}`, `{"statusCodes": "1206,1209"}`},
		{"search_campaigns", `{"statusCodes": [1206]}`, `{"statusCodes": [{}]}`},
		{"search_campaigns", `{"minApplyCount": 0}`, `{"minApplyCount": -1}`},
		{"search_campaigns", `{"limit": 200}`, `{"limit": 201}`},
		{"search_campaigns", `{"limit": 1}`, `{"limit": 0}`},
		{"search_campaigns", `{"startedAfter": "2026-01-01"}`, `{"startedAfter": "yesterday"}`},
		{"search_campaigns", `{"startedBefore": "2026-01-01"}`, `{"startedBefore": ""}`},
		{"search_partner_contacts", `{"partnerId": "1"}`, `{"partnerId": "one"}`},
		{"search_partner_contacts", `{"partnerId": 1, "includeInactive": false}`, `{"includeInactive": true}`},
		{"get_campaign_performance", `{"campaignId": 1}`, `{"campaignId": null}`},
		{"get_campaign_performance", `{"campaignId": 1}`, `{"campaignId": 1, "campaign": 1}`},
	} {
		if _, err := x.raw(t.Context(), c.name, c.good); err != nil {
			t.Errorf("%s %s: %v", c.name, c.good, err)
		}
		x.refused(c.name, c.bad, fault.Validation)
	}
}

// TestTreeIsRefreshed adds categories while the service runs.
func TestTreeIsRefreshed(t *testing.T) {
	x := serve(t, ruleRows)
	source := &counting{Source: x.source}
	clock := hubtest.NewClock(time.Time{})
	x.use(query.New(query.Config{Source: source, Now: clock.Now}))
	expect := func(input, want string, loads int) {
		t.Helper()
		if got := x.brands(input); got != want || source.loads() != loads {
			t.Errorf("search_brands %s answers %q after %d loads, want %q after %d", input, got, source.loads(), want, loads)
		}
	}
	expect(`{"categoryId": 13}`, "104", 1)
	expect(`{"categoryId": 12}`, "101 102 103", 1)
	x.exec(`INSERT INTO category VALUES (777, 13, 1)`)
	expect(`{"categoryId": 13}`, "104", 1)
	expect(`{"categoryId": 777}`, "", 1) // unknown, but the tree is a moment old
	clock.Advance(time.Second)
	expect(`{"categoryId": 13}`, "104", 1)
	expect(`{"categoryId": 777}`, "106", 2)
	expect(`{"categoryId": 13}`, "106 104", 2)
	clock.Advance(time.Minute)
	expect(`{"categoryId": 13}`, "106 104", 3)

	// Many callers at once load it once, whether there is a tree or not.
	for _, fresh := range []bool{true, false} {
		if fresh {
			source = &counting{Source: x.source}
			x.use(query.New(query.Config{Source: source, Now: clock.Now}))
		} else {
			clock.Advance(time.Minute)
		}
		before := source.loads()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := x.raw(t.Context(), "search_brands", `{"categoryId": 13}`); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := source.loads() - before; n != 1 {
			t.Errorf("20 callers loaded the tree %d times", n)
		}
	}

	// A caller whose patience ends does not take the others with it.
	blocked := &counting{Source: x.source, gate: make(chan struct{})}
	x.use(query.New(query.Config{Source: blocked, Now: clock.Now}))
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { _, err := x.raw(ctx, "search_brands", `{"categoryId": 13}`); first <- err }()
	hubtest.Eventually(t, "the first caller loads the tree", func() bool { return blocked.loads() == 1 })
	go func() { _, err := x.raw(t.Context(), "search_brands", `{"categoryId": 13}`); second <- err }()
	cancel()
	if err := <-first; !fault.Is(err, fault.DB) {
		t.Errorf("the caller who left gets %v", err)
	}
	close(blocked.gate)
	if err := <-second; err != nil {
		t.Errorf("the caller who stayed gets %v", err)
	}
}

// counting counts the loads of the category tree, and holds them up at the gate.
type counting struct {
	query.Source
	gate chan struct{}

	mu sync.Mutex
	n  int
}

func (c *counting) loads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counting) CategoryTree(ctx context.Context) ([]query.CategoryNode, error) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-ctx.Done():
		}
	}
	return c.Source.CategoryTree(ctx)
}
