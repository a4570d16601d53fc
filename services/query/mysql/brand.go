package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"hub.internal/pkg/text"
	"hub.internal/services/query"
	"hub.internal/services/query/keyword"
	"hub.internal/services/query/marketplace"
)

// lastCampaign is the brand's newest start_at: the last entry of ix_campaign_brand for it, and no more. With brand_id in the order MySQL
// takes that one as well; without it sorts all entries of the brand.
const lastCampaign = `(SELECT l.start_at FROM campaign l WHERE l.brand_id = b.brand_id ORDER BY l.brand_id DESC, l.start_at DESC LIMIT 1)`

// lastCampaignID is the id of that campaign, of several with one start the highest: the index has it behind start_at.
const lastCampaignID = `(SELECT l.campaign_id FROM campaign l WHERE l.brand_id = b.brand_id
  ORDER BY l.brand_id DESC, l.start_at DESC, l.campaign_id DESC LIMIT 1)`

// categoryName is the brand's category (alias b) in Korean, else in English.
const categoryName = `COALESCE(
    (SELECT n.category_name FROM category_name n WHERE n.category_id = b.category_id AND n.language = 'ko'),
    (SELECT n.category_name FROM category_name n WHERE n.category_id = b.category_id AND n.language = 'en'))`

// SearchBrands implements query.Source. It finds the ids of the page first: a
// candidate costs what filters and order need, and the winners alone are joined for
// columns, contact and names.
//
// Where the candidates are many beside the page, those with a campaign since some time
// often fill it, and an index finds them (see walk). Only when they do not, all
// candidates are looked at.
// A page is LIMIT and OFFSET, because the tool has an offset; keyset pagination would need a cursor. One row more than
// the page is read, by which the service knows that there is more.
func (s *Source) SearchBrands(ctx context.Context, f query.BrandFilter) ([]query.BrandMatch, error) {
	if perRow := campaignsPerBrand(f); perRow > 0 {
		if brands, done, err := s.newestBrands(ctx, f, perRow); err != nil || done {
			return brands, err
		}
	}
	return s.brands(ctx, f, nil)
}

// newestBrands answers the page when the newest campaigns are of its brands, perRow of them or some more for each.
// done says that the page is exact: it is full, or no campaign of the dates that were asked for is older. Otherwise brands
// is only a beginning, and the caller looks at all candidates.
func (s *Source) newestBrands(ctx context.Context, f query.BrandFilter, perRow int64) (brands []query.BrandMatch, done bool, err error) {
	c := query.CampaignFilter{StartedAfter: f.LastCampaignAfter, StartedBefore: f.LastCampaignBefore, Page: f.Page}
	dated := !c.StartedAfter.IsZero() || !c.StartedBefore.IsZero()
	// Where all are looked at a brand costs a fourth of what a campaign does, less without a category, whose index is read first, and
	// least with a keyword, which few of them have. What is likely to be enough is not always.
	most := func() (n int64, err error) {
		if f.Category != nil {
			n = f.Category.Brands / 6
		} else if n, err = s.rows(ctx, "brand"); err != nil {
			return 0, err
		} else {
			n /= 16
		}
		if f.Keyword != "" {
			n /= 2
		}
		return n, nil
	}
	err = s.walk(ctx, c, perRow, most, func(since time.Time, all bool) (int64, error) {
		brands, err = s.brands(ctx, f, &since)
		// A date filter leaves no brand that has no campaign.
		done = all && dated || int64(len(brands)) > f.Limit
		if done || err != nil || len(brands) > 0 || f.Offset == 0 {
			return f.Offset + int64(len(brands)), err
		}
		// Nothing is left behind the offset: how many were before it tells walk how far it has come.
		before := f
		before.Page = query.Page{Limit: f.Offset}
		ids, args := brandIDs(before, &since)
		return s.count(ctx, ids, args)
	})
	return brands, done, err
}

// campaignsPerBrand is how many of the newest campaigns to look at first for each brand
// of the page, or 0 when looking at all candidates costs less.
func campaignsPerBrand(f query.BrandFilter) int64 {
	c := f.Category
	switch {
	case f.Offset > deepestMerge:
		return 0
	case c == nil:
		return campaignsPerRow
	case c.Brands == 0:
		return 0
	}
	// Every one in AllBrands/Brands campaigns is of the category; a brand often has two
	// of them. A campaign costs about twice what a candidate does.
	perRow := 2 * c.AllBrands / c.Brands
	if perRow*(f.Limit+1) > c.Brands/2 {
		return 0
	}
	return perRow
}

// brands searches all brands, or those with a campaign since a time.
// With since, the campaigns by ix_campaign_status come first and their brands are looked up by the primary key.
func (s *Source) brands(ctx context.Context, f query.BrandFilter, since *time.Time) ([]query.BrandMatch, error) {
	ids, args := brandIDs(f, since)
	return s.brandsOf(ctx, ids, args, f.VerifiedContact)
}

// brandsOf joins the columns of a page to its ids and their newest start_at, and a contact to each if asked: a brand without one
// is left out then.
func (s *Source) brandsOf(ctx context.Context, ids string, args []any, contact bool) ([]query.BrandMatch, error) {
	columns, join, order := `NULL, NULL, NULL, NULL`, ``, ``
	if contact {
		// A row for each contact, the best one first: choosing in the statement, with a
		// subquery for each brand, costs more.
		columns = `a.partner_admin_id, a.name, a.email, a.position`
		join = `
JOIN partner_admin a ON a.partner_id = b.partner_id AND ` + active
		order = `, ` + newestLogin
	}
	statement := `SELECT b.brand_id, b.brand_name, b.president, b.category_id, ` + categoryName +
		`, b.country_code, b.partner_id, p.name, page.last_campaign_at, c.campaign_id, c.name, c.status_code, c.start_at, ` + columns + `
FROM (` + ids + `) page
JOIN brand b ON b.brand_id = page.brand_id
LEFT JOIN partner p ON p.partner_id = b.partner_id
LEFT JOIN campaign c ON c.campaign_id = ` + lastCampaignID + join + `
ORDER BY page.last_campaign_at DESC, page.brand_id` + order
	brands := []query.BrandMatch{}
	var id query.ID
	idAlone := firstOf(17, &id)
	// What is not kept of a row is there once for all of them.
	var contactID, campaignID sql.NullInt64
	var category, partner, campaign, status, name, email, position sql.NullString
	err := s.Query(ctx, statement, args, func(r *sql.Rows) error {
		if contact && len(brands) > 0 { // another contact of the same brand is not the best one
			if err := r.Scan(idAlone...); err != nil || id == brands[len(brands)-1].ID {
				return err
			}
		}
		var b query.BrandMatch
		var start *query.DateTime
		if err := r.Scan(&b.ID, &b.Name, &b.President, &b.CategoryID, &category, &b.CountryCode, &b.PartnerID, &partner,
			nullDateTime(&b.LastCampaignAt), &campaignID, &campaign, &status, nullDateTime(&start), &contactID, &name, &email,
			&position); err != nil {
			return err
		}
		b.CategoryName, b.PartnerName = textOf(category), textOf(partner)
		if campaignID.Valid {
			b.LastCampaign = &query.LastCampaign{ID: query.ID(campaignID.Int64), Name: campaign.String, StatusCode: status.String,
				Status: marketplace.CampaignStatus(status.String), StartAt: *start}
		}
		if contactID.Valid {
			b.Contact = &query.BrandContact{ID: query.ID(contactID.Int64), Name: name.String, Email: email.String, Position: textOf(position)}
		}
		brands = append(brands, b)
		return nil
	})
	if incomparable(err) {
		err = nil
	}
	return brands, err
}

// brandIDs is a statement for the ids of a page with their newest start_at, and its
// arguments.
// last_campaign_at is computed for each candidate, one step in ix_campaign_brand, and bounded by HAVING, since WHERE does
// not know it. brand_id behind it makes the order total, so that no brand is on two pages.
func brandIDs(f query.BrandFilter, since *time.Time) (string, []any) {
	var where, having conditions
	from, args := `brand b`, []any(nil)
	// Of all brands, the partners with such a name are found first, in one pass over the index. Of a few recent brands it
	// is cheaper to look each one's partner up, by the primary key.
	named := `b.partner_id IN (SELECT p.partner_id FROM partner p WHERE p.name` + like + `)` // reads ix_partner_name, once
	if since != nil {
		named = `(SELECT p.name FROM partner p WHERE p.partner_id = b.partner_id)` + like
		var recent string
		recent, args = byStatus(query.CampaignFilter{StartedAfter: *since, StartedBefore: f.LastCampaignBefore}, `SELECT c.brand_id`, ``,
			` UNION `)
		// STRAIGHT_JOIN fixes the order of the join, the recent campaigns first, whatever the optimizer estimates.
		from = `(` + recent + `) recent STRAIGHT_JOIN brand b ON b.brand_id = recent.brand_id`
	}
	if f.Category != nil {
		in, args := placeholders(f.Category.IDs)
		where.add("b.category_id IN ("+in+")", args...)
	}
	if f.CountryCode != "" {
		where.add("b.country_code = ?", f.CountryCode)
	}
	if f.Keyword != "" {
		where.contain(f.Keyword, "b.president"+like, named)
	}
	if f.VerifiedContact {
		where.add("EXISTS (SELECT 1 FROM partner_admin a WHERE a.partner_id = b.partner_id AND " + active + ")")
	}
	having.between("last_campaign_at", f.LastCampaignAfter, f.LastCampaignBefore)
	statement := `SELECT b.brand_id, ` + lastCampaign + ` AS last_campaign_at FROM ` + from + ` WHERE TRUE` + where.and()
	if len(having.text) > 0 {
		statement += ` HAVING TRUE` + having.and()
	}
	// NULL is the least: brands without a campaign come last.
	return statement + `
  ORDER BY last_campaign_at DESC, b.brand_id LIMIT ? OFFSET ?`, slices.Concat(args, where.args, having.args, []any{f.Limit + 1, f.Offset})
}

// Brand implements query.Source.
// It is three statements at most: the profile by the primary key, with the balance that ix_deposit_brand has as its last
// entry; the contacts by ix_partner_admin_partner; the campaigns by ix_campaign_brand. It is nil where no brand has the id.
// Each statement sees the source as it is then: a campaign that ends meanwhile may be there beside an older balance.
func (s *Source) Brand(ctx context.Context, id, campaigns int64) (*query.BrandProfile, error) {
	const profile = `SELECT b.brand_id, b.brand_name, b.president, b.category_id, ` + categoryName +
		`, b.country_code, b.partner_id, b.homepage_url, b.created_at,
  p.name, p.business_no, p.country_code, p.created_at,
  COALESCE((SELECT d.balance_liter FROM deposit_transaction d WHERE d.brand_id = b.brand_id
    ORDER BY d.brand_id DESC, d.created_at DESC, d.deposit_transaction_id DESC LIMIT 1), 0.00)
FROM brand b LEFT JOIN partner p ON p.partner_id = b.partner_id
WHERE b.brand_id = ?`
	var out *query.BrandProfile
	err := s.Query(ctx, profile, []any{id}, func(r *sql.Rows) error {
		out = &query.BrandProfile{Contacts: []query.Contact{}, Campaigns: []query.Campaign{}}
		b := &out.Brand
		var partner, country sql.NullString
		p := query.Partner{}
		var created *query.DateTime
		if err := r.Scan(&b.ID, &b.Name, &b.President, &b.CategoryID, &b.CategoryName, &b.CountryCode, &b.PartnerID, &b.HomepageURL,
			dateTime(&b.CreatedAt),
			&partner, &p.BusinessNo, &country, nullDateTime(&created), &out.LiterBalance); err != nil {
			return err
		}
		// A partner row that is missing leaves partner null: the source declares no foreign keys.
		if partner.Valid {
			p.ID, p.Name, p.CountryCode, p.CreatedAt = b.PartnerID, partner.String, country.String, *created
			out.Partner = &p
		}
		return nil
	})
	if err != nil || out == nil {
		return nil, err
	}
	const contacts = `SELECT ` + contactColumns + ` FROM partner_admin a WHERE a.partner_id = ? AND ` + active + ` ORDER BY ` + newestLogin
	err = s.Query(ctx, contacts, []any{out.Brand.PartnerID}, func(r *sql.Rows) error {
		var c query.Contact
		if err := r.Scan(contactFields(&c)...); err != nil {
			return err
		}
		out.Contacts = append(out.Contacts, c)
		return nil
	})
	if err != nil || campaigns == 0 {
		return out, err
	}
	out.Campaigns, err = s.campaigns(ctx, `SELECT c.campaign_id FROM campaign c WHERE c.brand_id = ?
  ORDER BY c.start_at DESC, c.campaign_id DESC LIMIT ?`, []any{id, campaigns})
	return out, err
}

// loose is a column without blanks and forms of companies.
// It is an expression of nested REPLACE calls, which no index serves. The forms are constants of package keyword, so that
// no text of a caller's is in the statement.
func loose(column string) string {
	for _, form := range append(keyword.Forms, " ") {
		column = "REPLACE(" + column + ", '" + form + "', '')"
	}
	return column
}

// BrandsLike implements query.Source. It reads all brands, as a keyword without a match has done before, for two seconds at most.
func (s *Source) BrandsLike(ctx context.Context, plain string) (named []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, likeLimit)
	defer cancel()
	statement := `SELECT b.brand_id, b.brand_name, COALESCE(p.name, 'no partner')
FROM brand b LEFT JOIN partner p ON p.partner_id = b.partner_id
WHERE ` + loose("b.brand_name") + like + ` OR ` + loose("b.president") + like + ` OR ` + loose("p.name") + like + ` LIMIT ?`
	pattern := contains(plain)
	err = s.Query(ctx, statement, []any{pattern, pattern, pattern, keyword.Most + 1}, func(r *sql.Rows) error {
		var id int64
		var brand, partner string
		err := r.Scan(&id, &brand, &partner)
		named = append(named, fmt.Sprintf("brand %d (%s, of %s)", id, text.Shorten(brand, 40), text.Shorten(partner, 40)))
		return err
	})
	return named, err
}

// likeLimit bounds BrandsLike: it makes a message better, and an answer is complete without it.
const likeLimit = 2 * time.Second
