package main

// The workloads stand for what agents do: one row by its key, searches with filters, and rows in bulk, where the time
// goes into bytes.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// workload is one kind of call.
type workload struct {
	// The name for --only, and the heading in the report.
	name, title string
	tool        string // of Hub
	list        string // where the tool's data hold the rows; empty when data is the row
	fields      []string
	concurrency []int
	// inputs are called in turn. statements are those that Hub itself sends to the source
	// database for each of them; the rows of the last one are the answer, of rows with the
	// same first column only the first. single has the same result in one statement, for
	// peers that can do no more: the best that is known; empty where no peer is asked.
	inputs     []input
	statements []string
	single     string
	// straightforward is the SQL that a person would write first, to be beaten; may be empty.
	straightforward string
	// most is how many rows an answer has at most, rows how many the sample's first answer has.
	most, rows int
}

// input is one call's input, and the argument of the SQL that stands for it.
type input struct {
	// The tool's input, and the values of the placeholders in statements.
	json []byte
	args []any
}

// columns are the ten of the wide reads.
const columns = "campaign_id, partner_id, brand_id, name, status_code, start_at, end_at, offer_count, apply_count, view_count"

// candidates is how many brands the category of search_brands should hold, about: a
// category of the size that agents ask for.
const candidates = 1400

// workloadNames are the workloads in the order of the report.
func workloadNames() []string {
	return []string{"point", "brands", "winback", "brandword", "campaignword", "rows200", "rows1000", "rows10000"}
}

// workloads makes those that were asked for.
func workloads(ctx context.Context, s *stack, o options) ([]*workload, error) {
	var all []*workload
	for name, prepare := range map[string]func(context.Context, *stack) (*workload, error){
		"point": pointWorkload, "brands": brandsWorkload,
		"winback": searchWorkload("search_brands, win-back: verified contact, last campaign before 2025", "brands",
			`{"lastCampaignBefore":"2025-01-01","hasVerifiedContact":true,"limit":50}`, brandFields...),
		"brandword": searchWorkload("search_brands, a keyword of one company in thirty", "brands", `{"keyword":"무역","limit":50}`,
			"brand_id", "brand_name", "president", "last_campaign_at"),
		"campaignword": searchWorkload("search_campaigns, a keyword of one campaign in twenty", "campaigns", `{"keyword":"서포터즈","limit":50}`,
			"campaign_id", "name", "status_code", "start_at", "partner_id"),
		"rows200": func(context.Context, *stack) (*workload, error) {
			w := rowsWorkload(mostOverMCP, 1, 16, 64)
			w.single = "" // the peers are asked for more
			return w, nil
		},
		"rows1000":  func(context.Context, *stack) (*workload, error) { return rowsWorkload(1000, 1, 16, 64), nil },
		"rows10000": func(context.Context, *stack) (*workload, error) { return rowsWorkload(10_000, 1, 8), nil },
	} {
		if len(o.only) > 0 && !slices.Contains(o.only, name) {
			continue
		}
		w, err := prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		w.name = name
		all = append(all, w)
	}
	// A map has no order.
	slices.SortFunc(all, func(a, b *workload) int {
		return slices.Index(workloadNames(), a.name) - slices.Index(workloadNames(), b.name)
	})
	return all, nil
}

// pointWorkload asks for one campaign after another.
func pointWorkload(ctx context.Context, s *stack) (*workload, error) {
	w := &workload{title: "get_campaign_performance, 1 row", tool: "get_campaign_performance", most: 1, concurrency: []int{1, 16, 64},
		fields: []string{"campaign_id", "status_code", "start_at", "offer_count", "apply_count", "view_count"}}
	ids, err := s.campaigns(ctx, 64)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		w.inputs = append(w.inputs, input{json: fmt.Appendf(nil, `{"campaignId":%d}`, id), args: []any{id}})
	}
	// Any campaign would do to learn the statement.
	last := w.inputs[len(w.inputs)-1]
	sent, err := capture(ctx, s, w.tool, last.json)
	if err != nil {
		return nil, err
	}
	if len(sent) != 1 || strings.Count(sent[0], "?") != 1 { // it is prepared
		return nil, fmt.Errorf("want one statement with one placeholder, and Hub sends %q", sent)
	}
	w.single, w.statements = sent[0], sent
	return w, nil
}

// brandFields are those of a brand with a contact.
var brandFields = []string{"brand_id", "brand_name", "president", "last_campaign_at", "email"}

// searchWorkload is one search for a page of 50 rows.
func searchWorkload(what, list, in string, fields ...string) func(context.Context, *stack) (*workload, error) {
	return func(ctx context.Context, s *stack) (w *workload, err error) {
		w = &workload{title: what + ", 50 rows", tool: "search_" + list, list: list, most: 50, concurrency: []int{1, 16}, fields: fields,
			inputs: []input{{json: []byte(in)}}}
		w.statements, err = capture(ctx, s, w.tool, w.inputs[0].json)
		return w, err
	}
}

// brandsWorkload is the first step of every mailing.
func brandsWorkload(ctx context.Context, s *stack) (*workload, error) {
	c, err := s.chooseCategory(ctx)
	if err != nil {
		return nil, err
	}
	w, err := searchWorkload(fmt.Sprintf("search_brands, category %d and those below (%d brands), verified contact, newest campaign first",
		c.id, c.brands), "brands", fmt.Sprintf(`{"categoryId":%d,"hasVerifiedContact":true,"limit":50}`, c.id), brandFields...)(ctx, s)
	if err != nil {
		return nil, err
	}
	w.concurrency = []int{1, 16, 64}
	w.single = fmt.Sprintf(brandsInOne, c.below)
	w.straightforward = fmt.Sprintf(brandsPlain, c.below)
	return w, nil
}

// brandsInOne is search_brands in the best single statement: the ids of
// the page first, the rest for the winners only.
const brandsInOne = `SELECT b.brand_id, b.brand_name, b.president, b.category_id,
  COALESCE((SELECT n.category_name FROM category_name n WHERE n.category_id = b.category_id AND n.language = 'ko'),
    (SELECT n.category_name FROM category_name n WHERE n.category_id = b.category_id AND n.language = 'en')) AS category_name,
  b.country_code, b.partner_id, p.name AS partner_name, page.last_campaign_at, a.partner_admin_id, a.name, a.email, a.position
FROM (SELECT b.brand_id,
  (SELECT l.start_at FROM campaign l WHERE l.brand_id = b.brand_id ORDER BY l.start_at DESC LIMIT 1) AS last_campaign_at
  FROM brand b WHERE b.category_id IN (%s)
  AND EXISTS (SELECT 1 FROM partner_admin a WHERE a.partner_id = b.partner_id AND a.email_verified = 1 AND a.account_status = 'READY')
  ORDER BY last_campaign_at DESC, b.brand_id LIMIT 51) page
JOIN brand b ON b.brand_id = page.brand_id
LEFT JOIN partner p ON p.partner_id = b.partner_id
LEFT JOIN partner_admin a ON a.partner_admin_id = (SELECT i.partner_admin_id FROM partner_admin i
  WHERE i.partner_id = b.partner_id AND i.email_verified = 1 AND i.account_status = 'READY'
  ORDER BY i.last_login_at DESC, i.partner_admin_id LIMIT 1)
ORDER BY page.last_campaign_at DESC, page.brand_id`

// brandsPlain is the same with the joins that come to mind first.
const brandsPlain = `SELECT b.brand_id, b.brand_name, b.president, c.last_campaign_at, a.email
FROM brand b JOIN partner p ON p.partner_id = b.partner_id
LEFT JOIN (SELECT brand_id, MAX(start_at) AS last_campaign_at FROM campaign GROUP BY brand_id) c ON c.brand_id = b.brand_id
JOIN (SELECT partner_id, email, ROW_NUMBER() OVER (PARTITION BY partner_id ORDER BY last_login_at DESC, partner_admin_id) AS place
  FROM partner_admin WHERE email_verified = 1 AND account_status = 'READY') a ON a.partner_id = b.partner_id AND a.place = 1
WHERE b.category_id IN (%s) ORDER BY c.last_campaign_at DESC, b.brand_id LIMIT 51`

// rowsWorkload reads n rows of ten columns.
func rowsWorkload(n int, concurrency ...int) *workload {
	statement := fmt.Sprintf("SELECT %s FROM campaign ORDER BY campaign_id LIMIT %d", columns, n)
	body, err := json.Marshal(map[string]any{"sql": statement, "limit": n})
	if err != nil {
		panic(err) // plain data
	}
	return &workload{title: fmt.Sprintf("execute_read_sql, %d rows, 10 columns, audit row awaited", n), tool: "execute_read_sql", list: "rows",
		most: n, concurrency: concurrency, fields: strings.Split(columns, ", "), inputs: []input{{json: body}}, statements: []string{statement},
		single: statement}
}

// campaigns are up to n ids spread evenly over the table, the last one included.
// Evenly, so that neither a page of the index nor a brand is asked for again and again.
func (s *stack) campaigns(ctx context.Context, n int64) (ids []int64, err error) {
	db, err := s.sources[0].Admin()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var last int64
	if err := db.QueryRowContext(ctx, "SELECT MAX(campaign_id) FROM "+s.source.Database+".campaign").Scan(&last); err != nil {
		return nil, err
	}
	for i := range n {
		if id := last * (i + 1) / n; id > 0 {
			ids = append(ids, id)
		}
	}
	return slices.Compact(ids), nil
}

// category is one with all that lies below it.
type category struct {
	id, brands int64
	below      string // its own id and its descendants', with commas
}

// chooseCategory finds the one whose number of brands is nearest to candidates.
func (s *stack) chooseCategory(ctx context.Context) (c category, err error) {
	db, err := s.sources[0].Admin()
	if err != nil {
		return c, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `WITH RECURSIVE below (top, id) AS (
  SELECT category_id, category_id FROM `+s.source.Database+`.category
  UNION SELECT b.top, c.category_id FROM below b JOIN `+s.source.Database+`.category c ON c.parent_id = b.id),
counted AS (SELECT category_id, COUNT(*) AS n FROM `+s.source.Database+`.brand GROUP BY category_id)
SELECT top, COALESCE(SUM(n), 0), GROUP_CONCAT(id) FROM below LEFT JOIN counted ON category_id = id
GROUP BY top ORDER BY ABS(COALESCE(SUM(n), 0) - ?), top LIMIT 1`, candidates).Scan(&c.id, &c.brands, &c.below)
	return c, err
}
