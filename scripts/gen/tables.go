package main

// table is one table of the source and the way to make its rows.
type table struct {
	// The name, and its columns with commas, in the order in which a row has its values.
	name    string
	columns string
	rows    int64
	// make begins a pass over the table: it answers what makes the values of row id, from 1.
	// A pass asks for the ids in order, because a balance follows from the one before.
	make func() func(id int64) []any
}

// head is what each INSERT statement starts with.
func (t table) head() string { return "INSERT INTO " + t.name + " (" + t.columns + ") VALUES" }

// each is a table's make for rows that follow from their ids alone.
func each[R interface{ values() []any }](row func(id int64) R) func() func(int64) []any {
	return func() func(int64) []any { return func(id int64) []any { return row(id).values() } }
}

// categoryNameRow is a row of table category_name.
type categoryNameRow struct {
	category int64
	categoryName
}

// values are those of the row, in the order of the table's columns.
func (r categoryNameRow) values() []any { return []any{r.category, r.language, r.name} }

// tables answers all tables in the order in which they are loaded.
func (p *plan) tables() []table {
	var names []categoryNameRow
	for _, c := range p.categories {
		for _, n := range c.names {
			names = append(names, categoryNameRow{c.id, n})
		}
	}
	return []table{
		{"category", "category_id,parent_id,display_order", int64(len(p.categories)),
			each(func(id int64) category { return p.categories[id-1] })},
		{"category_name", "category_id,language,category_name", int64(len(names)),
			each(func(id int64) categoryNameRow { return names[id-1] })},
		{"partner", "partner_id,name,business_no,country_code,created_at", p.partners, each(p.partner)},
		{"partner_admin", "partner_admin_id,partner_id,name,email,email_verified,account_status,position,last_login_at,created_at",
			p.adminOwner.rows(), each(p.admin)},
		{"brand", "brand_id,partner_id,brand_name,president,category_id,country_code,homepage_url,created_at", p.brands, each(p.brand)},
		{"campaign", "campaign_id,partner_id,brand_id,name,status_code,start_at,end_at,offer_count,apply_count,view_count,created_at",
			p.campaigns, each(p.campaignRow)},
		{"deposit_transaction", "deposit_transaction_id,brand_id,kind,amount_liter,balance_liter,created_at", p.depositBrand.rows(),
			func() func(int64) []any { return each(newLedger(p).next)() }},
		{"member", "member_id,nickname,email,country_code,marketing_consent,created_at", p.members, each(p.member)},
		{"campaign_application", "campaign_application_id,campaign_id,member_id,status,applied_at", p.appCampaign.rows(), each(p.application)},
		{"review", "review_id,campaign_id,member_id,rating,content,created_at", p.reviewCampaign.rows(), each(p.review)},
	}
}
