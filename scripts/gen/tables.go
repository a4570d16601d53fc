package main

// table is one table of the source and the way to make its rows.
type table struct {
	name    string
	columns string
	rows    int64
	// writer answers what appends row id (from 1) to a batch. A pass over the table
	// has a writer of its own and asks for the ids in order.
	writer func() func(b *batch, id int64)
}

// head is what each INSERT statement starts with.
func (t table) head() string { return "INSERT INTO " + t.name + " (" + t.columns + ") VALUES" }

// row is a row of any table.
type row interface{ write(b *batch) }

// each makes a writer of a pure function from id to row.
func each[R row](make func(id int64) R) func() func(*batch, int64) {
	return func() func(*batch, int64) {
		return func(b *batch, id int64) { make(id).write(b) }
	}
}

// categoryRow is a row of table category.
type categoryRow category

func (r categoryRow) write(b *batch) {
	b.int(r.id)
	b.int(r.parent)
	b.int(r.order)
}

// categoryNameRow is a row of category_name.
type categoryNameRow struct {
	category int64
	categoryName
}

func (r categoryNameRow) write(b *batch) {
	b.int(r.category)
	b.text(r.language)
	b.text(r.name)
}

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
			each(func(id int64) categoryRow { return categoryRow(p.categories[id-1]) })},
		{"category_name", "category_id,language,category_name", int64(len(names)),
			each(func(id int64) categoryNameRow { return names[id-1] })},
		{"partner", "partner_id,name,business_no,country_code,created_at", p.partners, each(p.partner)},
		{"partner_admin", "partner_admin_id,partner_id,name,email,email_verified,account_status,position,last_login_at,created_at",
			p.adminOwner.rows(), each(p.admin)},
		{"brand", "brand_id,partner_id,brand_name,president,category_id,country_code,homepage_url,created_at", p.brands, each(p.brand)},
		{"campaign", "campaign_id,partner_id,brand_id,name,status_code,start_at,end_at,offer_count,apply_count,view_count,created_at",
			p.campaigns, each(p.campaignRow)},
		{"deposit_transaction", "deposit_transaction_id,brand_id,kind,amount_liter,balance_liter,created_at", p.depositBrand.rows(),
			func() func(*batch, int64) {
				l := newLedger(p)
				return func(b *batch, id int64) { l.next(id).write(b) }
			}},
		{"member", "member_id,nickname,email,country_code,marketing_consent,created_at", p.members, each(p.member)},
		{"campaign_application", "campaign_application_id,campaign_id,member_id,status,applied_at", p.appCampaign.rows(), each(p.application)},
		{"review", "review_id,campaign_id,member_id,rating,content,created_at", p.reviewCampaign.rows(), each(p.review)},
	}
}
