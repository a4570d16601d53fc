package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

// agent is a program that has nothing but the tools, over one transport.
type agent struct {
	t    *testing.T
	name string
	call func(tool, input string) (data json.RawMessage, refusal string)
	// skip is how many partners are left to other agents.
	skip int
}

// asks calls a tool, which has to succeed, and reads its answer. It returns the rules of the warnings.
func (a *agent) asks(tool string, input map[string]any, into any) (rules []string) {
	a.t.Helper()
	b, err := json.Marshal(input)
	if err != nil {
		a.t.Fatal(err)
	}
	data, refusal := a.call(tool, string(b))
	var told struct {
		Warnings []struct{ Rule, Message string }
	}
	if refusal != "" || json.Unmarshal(data, into) != nil || json.Unmarshal(data, &told) != nil {
		a.t.Fatalf("%s %s: %s%s", tool, b, refusal, data)
	}
	for _, w := range told.Warnings {
		rules = append(rules, w.Rule)
		a.t.Logf("%s warns: %s: %s", tool, w.Rule, w.Message)
	}
	return rules
}

// knows is asks for a call that nothing has to be said of.
func (a *agent) knows(tool string, input map[string]any, into any) {
	a.t.Helper()
	if rules := a.asks(tool, input, into); len(rules) > 0 {
		a.t.Errorf("%s %v warns of %v", tool, input, rules)
	}
}

// table is what execute_read_sql answers.
type table struct{ Rows [][]any }

// rows runs a statement that is right.
func (a *agent) rows(sql string) [][]any {
	a.t.Helper()
	var found table
	a.knows("execute_read_sql", map[string]any{"sql": sql}, &found)
	return found.Rows
}

// one is the only value that a statement finds, as text.
func (a *agent) one(sql string) string {
	a.t.Helper()
	rows := a.rows(sql)
	if len(rows) != 1 || len(rows[0]) != 1 {
		a.t.Fatalf("%s: %v", sql, rows)
	}
	return fmt.Sprint(rows[0][0])
}

// prospect is a brand as search_brands answers it.
type prospect struct {
	BrandID   int64  `json:"brand_id"`
	BrandName string `json:"brand_name"`
	PartnerID int64  `json:"partner_id"`
	Contact   *struct{ Name, Email string }
}

// listOf is a list of SQL.
func listOf[T any](list []T, value func(T) string) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = value(one)
	}
	return strings.Join(texts, ", ")
}

// TestAnAgent: eight tasks of marketing over HTTP and over `hub mcp`, with the tools alone. No call is refused, what is right is answered
// without a warning, what would mislead is told, and two ways to an answer agree.
func TestAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	ada := s.person("Ada Lovelace", "reviewer")
	program := s.stdio(t, s.url, s.key)
	n := 0
	transports := []*agent{
		{name: "http", call: func(tool, input string) (json.RawMessage, string) {
			r := s.call(tool, input, "Idempotency-Key", fmt.Sprint("agent ", s.calls.Add(1)))
			if !r.OK {
				return nil, r.raw
			}
			return r.Data, ""
		}},
		{name: "stdio", skip: 6, call: func(tool, input string) (json.RawMessage, string) {
			n++
			a := program.call(t, mcpCall(n, tool, input, fmt.Sprint("stdio ", n)))
			if a.Result.IsError || a.Result.StructuredContent == nil {
				return nil, fmt.Sprintf("%s %v", a.Result.StructuredContent, a.Error)
			}
			return a.Result.StructuredContent, ""
		}},
	}
	for _, a := range transports {
		t.Run(a.name, func(t *testing.T) {
			a.t = t
			a.finds()
			a.wins()
			a.measures()
			a.adds()
			a.isTold()
			people := a.prospects()
			a.knowsPeople(people)
			s.closesTheLoop(t, a, ada, people)
			a.reports()
		})
	}
}

// finds: which brands of a category can be written to? Every one has a contact whom the source calls verified and active.
func (a *agent) finds() {
	type category struct {
		ID   int64  `json:"category_id"`
		Name string `json:"category_name"`
		Has  bool   `json:"has_children"`
	}
	var top struct{ Categories []category }
	a.knows("list_categories", map[string]any{}, &top)
	i := slices.IndexFunc(top.Categories, func(c category) bool { return c.Has })
	if i < 0 {
		a.t.Fatalf("no category has children: %+v", top)
	}
	var found struct{ Brands []prospect }
	a.knows("search_brands", map[string]any{"categoryId": top.Categories[i].ID, "hasVerifiedContact": true, "limit": 30}, &found)
	if len(found.Brands) == 0 {
		a.t.Fatalf("no brand of %s can be written to", top.Categories[i].Name)
	}
	for _, b := range found.Brands {
		if b.Contact == nil {
			a.t.Fatalf("%s has no contact", b.BrandName)
		}
	}
	emails := map[string]bool{}
	for _, b := range found.Brands {
		emails[b.Contact.Email] = true
	}
	list := listOf(found.Brands, func(b prospect) string { return "'" + strings.ReplaceAll(b.Contact.Email, "'", "''") + "'" })
	if got := a.one("SELECT COUNT(DISTINCT email) FROM partner_admin WHERE email_verified = 1 AND account_status = 'READY' AND email IN (" +
		list + ")"); got != fmt.Sprint(len(emails)) {
		a.t.Errorf("%s of %d contacts are verified", got, len(emails))
	}
}

// wins: who has gone quiet? No campaign of theirs is newer than the date.
func (a *agent) wins() {
	const date = "2026-01-01"
	var quiet struct{ Brands []prospect }
	a.knows("search_brands", map[string]any{"lastCampaignBefore": date, "hasVerifiedContact": true, "limit": 20}, &quiet)
	ids := listOf(quiet.Brands, func(b prospect) string { return fmt.Sprint(b.BrandID) })
	if len(quiet.Brands) == 0 {
		a.t.Fatal("nobody is quiet")
	}
	if got := a.one("SELECT COUNT(*) FROM campaign WHERE start_at >= '" + date + "' AND brand_id IN (" + ids + ")"); got != "0" {
		a.t.Errorf("%s campaigns of brands that have none", got)
	}
}

// measures: how did the campaigns do? The list, the tool for one, and the source agree.
func (a *agent) measures() {
	var closed struct {
		Campaigns []struct {
			ID       int64 `json:"campaign_id"`
			Selected *int64
			Rate     *float64 `json:"fill_rate"`
		}
	}
	a.knows("search_campaigns", map[string]any{"statusCodes": []string{"1209"}, "minApplyCount": 1, "limit": 3}, &closed)
	for _, c := range closed.Campaigns {
		var did struct {
			Counts struct{ Selected int64 }
			Ratios struct {
				Rate *float64 `json:"fill_rate"`
			}
		}
		a.knows("get_campaign_performance", map[string]any{"campaignId": c.ID}, &did)
		got := a.one(fmt.Sprintf("SELECT COUNT(*) FROM campaign_application WHERE campaign_id = %d AND status IN ('SELECTED', 'DONE')", c.ID))
		if c.Selected == nil || *c.Selected != did.Counts.Selected || got != fmt.Sprint(did.Counts.Selected) ||
			(c.Rate == nil) != (did.Ratios.Rate == nil) || c.Rate != nil && *c.Rate != *did.Ratios.Rate {
			a.t.Errorf("campaign %d: the list has %v, the tool %+v, the source %s", c.ID, c, did, got)
		}
	}
	if len(closed.Campaigns) == 0 {
		a.t.Error("no campaign is closed")
	}
}

// adds: which categories get the most applications? The parts are the whole.
func (a *agent) adds() {
	parts := 0
	for _, row := range a.rows(`SELECT b.category_id, SUM(c.apply_count) AS applications, COUNT(*) AS campaigns
		FROM campaign c JOIN brand b ON b.brand_id = c.brand_id GROUP BY b.category_id ORDER BY applications DESC`) {
		var n int
		if _, err := fmt.Sscan(fmt.Sprint(row[2]), &n); err != nil {
			a.t.Fatal(err)
		}
		parts += n
	}
	if whole := a.one("SELECT COUNT(*) FROM campaign"); whole != fmt.Sprint(parts) {
		a.t.Errorf("the categories have %d campaigns, and there are %s", parts, whole)
	}
}

// isTold: statements that run and mislead are told of, each by its rule.
func (a *agent) isTold() {
	for sql, rule := range map[string]string{
		"SELECT SUM(amount_liter) AS liters FROM deposit_transaction WHERE created_at >= NOW()":                       "sql.stale",
		"SELECT COUNT(*) AS n FROM campaign WHERE start_at BETWEEN '2026-01-01' AND '2026-01-31'":                     "sql.date_only",
		"SELECT COUNT(*) AS n FROM campaign c, brand b":                                                               "sql.join",
		"SELECT SUM(c.offer_count) AS n FROM campaign c JOIN campaign_application a ON a.campaign_id = c.campaign_id": "sql.fan_out",
		"SELECT COUNT(*) AS n FROM campaign WHERE status_code = '1299'":                                               "sql.codes",
	} {
		var found table
		if rules := a.asks("execute_read_sql", map[string]any{"sql": sql}, &found); !slices.Contains(rules, rule) {
			a.t.Errorf("%s\nis told of by %v, not %s: %v", sql, rules, rule, found.Rows)
		}
	}
}

// prospects are three brands of partners that no other agent writes to.
func (a *agent) prospects() []prospect {
	var found struct{ Brands []prospect }
	a.knows("search_brands", map[string]any{"hasVerifiedContact": true, "limit": 200}, &found)
	members := map[string]bool{}
	for _, row := range a.rows("SELECT a.email FROM partner_admin a JOIN member m ON m.email = a.email") {
		members[fmt.Sprint(row[0])] = true
	}
	seen, people := map[int64]bool{}, []prospect{}
	for _, b := range found.Brands {
		if !seen[b.PartnerID] && !members[b.Contact.Email] {
			seen[b.PartnerID] = true
			people = append(people, b)
		}
	}
	return people[a.skip : a.skip+3]
}

// knowsPeople: whom to write to at a partner? The brand's page and the partner's name the same people.
func (a *agent) knowsPeople(people []prospect) {
	type contact struct{ Name, Email string }
	for _, b := range people {
		var brand, partner struct{ Contacts []contact }
		a.knows("get_brand", map[string]any{"brandId": b.BrandID}, &brand)
		a.knows("search_partner_contacts", map[string]any{"partnerId": b.PartnerID}, &partner)
		if len(brand.Contacts) == 0 || !slices.Equal(brand.Contacts, partner.Contacts) || !slices.Contains(brand.Contacts, contact(*b.Contact)) {
			a.t.Errorf("%s: %v, %v and %v", b.BrandName, brand.Contacts, partner.Contacts, *b.Contact)
		}
	}
}

// mail saves a draft for some people, of a segment of their partners whose evidence Hub takes itself, and hands it over to a reviewer.
func (a *agent) mail(name, body string, people []prospect) (draft string) {
	var segment struct {
		ID    string `json:"segment_id"`
		Count int    `json:"targetCount"`
	}
	evidence, targets := []any{}, []any{}
	for _, b := range people {
		evidence = append(evidence, map[string]any{"externalId": b.PartnerID, "snapshot": map[string]any{}})
		targets = append(targets, map[string]any{"externalId": b.PartnerID, "toEmail": b.Contact.Email, "toName": b.Contact.Name,
			"context": map[string]any{"brand_id": b.BrandID, "brand_name": b.BrandName}})
	}
	a.asks("create_segment", map[string]any{"name": name, "kind": "partner", "targets": evidence}, &segment)
	var saved struct {
		ID      string `json:"draft_id"`
		Preview struct{ Text string }
	}
	if rules := a.asks("save_message_draft", map[string]any{"segmentId": segment.ID, "name": name, "createdBy": "campaign agent",
		"senderName": "Hub", "senderEmail": mailFrom,
		"subjectTemplate": "{{context.brand_name}}의 다음 캠페인", "bodyTemplate": body, "targets": targets}, &saved); len(rules) > 0 {
		a.t.Errorf("the draft %s is warned of by %v", name, rules)
	}
	if segment.Count != len(people) || !strings.Contains(saved.Preview.Text, people[0].BrandName) {
		a.t.Errorf("segment %+v, draft %+v", segment, saved)
	}
	var queued struct{ Status string }
	rules := a.asks("queue_for_review", map[string]any{"draftId": saved.ID, "actor": "campaign agent"}, &queued)
	if queued.Status != "in_review" {
		a.t.Errorf("queued as %s with %v", queued.Status, rules)
	}
	return saved.ID
}

// closesTheLoop: a person rejects one mail with a note; the agent reads which and why, and writes that one again.
func (s *suite) closesTheLoop(t *testing.T, a *agent, ada person, people []prospect) {
	const body = "<p>{{toName}}님, {{context.brand_name}}의 다음 캠페인을 함께 준비하고 싶습니다.</p>"
	draft := a.mail("Next campaign, "+a.name, body, people)
	p := s.signedIn(t, ada, "/drafts/"+draft)
	p.Note(p.Target(1)).Fill("너무 일반적입니다")
	p.Button("Reject").In(p.Target(1)).Click()
	p.Target(1).Shows("Rejected")
	type rejected struct {
		ID      int64  `json:"externalId"`
		ToEmail string `json:"toEmail"`
		Note    string `json:"note"`
	}
	var told struct {
		Drafts []struct{ Rejected []rejected }
	}
	hubtest.Eventually(t, "the agent is told of the rejection", func() bool {
		a.knows("list_drafts", map[string]any{"draftId": draft}, &told)
		return len(told.Drafts) == 1 && len(told.Drafts[0].Rejected) == 1
	})
	b := people[1]
	if got, want := told.Drafts[0].Rejected[0], (rejected{b.PartnerID, b.Contact.Email, "너무 일반적입니다"}); got != want {
		t.Fatalf("the agent is told of %+v, not %+v", got, want)
	}
	const better = "<p>{{toName}}님, 지난 캠페인에 이어 {{context.brand_name}}에 맞춘 제안을 드립니다.</p>"
	a.mail("Once more, "+a.name, better, people[1:2])
}

// reports: a page with a chart of numbers that the source has.
func (a *agent) reports() {
	months := a.rows(`SELECT DATE_FORMAT(start_at, '%Y-%m') AS month, COUNT(*) AS campaigns FROM campaign
		WHERE start_at >= '2026-01-01' AND start_at < '2026-07-01' GROUP BY DATE_FORMAT(start_at, '%Y-%m') ORDER BY month`)
	labels, values := []any{}, []any{}
	for _, row := range months {
		labels, values = append(labels, row[0]), append(values, row[1])
	}
	group := "agent-" + a.name
	var made any
	a.knows("create_menu_group", map[string]any{"name": "Agent " + a.name, "slug": group}, &made)
	a.knows("create_menu_item", map[string]any{"groupSlug": group, "name": "Months", "slug": "months"}, &made)
	var page struct {
		URL     string
		Version int
		Removed []any
	}
	a.knows("upsert_dynamic_page", map[string]any{"groupSlug": group, "itemSlug": "months", "title": "Campaigns by month", "sections": []any{
		map[string]any{"type": "bar", "title": "Campaigns", "labels": labels, "series": []any{map[string]any{"name": "2026", "values": values}}},
	}}, &page)
	if len(months) != 6 || page.Version != 1 || len(page.Removed) > 0 {
		a.t.Errorf("%d months, page %+v", len(months), page)
	}
}
