package mysql

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode"

	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
)

// campaignColumns are what a query.Campaign is made of (alias c), in the order of campaignFields.
const campaignColumns = `c.campaign_id, c.name, c.status_code, c.start_at, c.end_at,
  c.offer_count, c.apply_count, c.view_count, c.brand_id, c.partner_id`

// longestCode is more bytes than any code has: what is longer needs no look.
const longestCode = 20

// campaignFields are where the columns are scanned to.
func campaignFields(c *query.Campaign) []any {
	return []any{&c.ID, &c.Name, &c.StatusCode, dateTime(&c.StartAt), nullDateTime(&c.EndAt), &c.OfferCount, &c.ApplyCount, &c.ViewCount,
		&c.BrandID, &c.PartnerID}
}

// SearchCampaigns implements query.Source. It finds the ids of the page first, and
// joins only those.
//
// Without a partner nothing narrows the campaigns, and no index has them all in the
// order of start_at; but each status has its own in that order (ix_campaign_status),
// so the newest of each are merged. Where rows have to be looked at as well, those
// since some time often fill a page (see walk); only when they do not, all are looked at.
// An offset beyond deepestMerge, and a partner's campaigns, are read by allCampaigns.
func (s *Source) SearchCampaigns(ctx context.Context, f query.CampaignFilter) ([]query.Campaign, error) {
	if len(f.StatusCodes) > 0 {
		// No status is other than ASCII, and such a text must not fail the others (see
		// incomparable). Nor must "1206 " be taken for 1206, as most collations would.
		f.StatusCodes = slices.DeleteFunc(slices.Clone(f.StatusCodes), func(code string) bool {
			return len(code) > longestCode || strings.HasSuffix(code, " ") ||
				strings.ContainsFunc(code, func(r rune) bool { return r > unicode.MaxASCII })
		})
		if len(f.StatusCodes) == 0 {
			return []query.Campaign{}, nil
		}
	}
	if f.PartnerID == nil && f.Offset <= deepestMerge {
		if campaigns, done, err := s.newestCampaigns(ctx, f); err != nil || done {
			return campaigns, err
		}
	}
	return s.allCampaigns(ctx, f)
}

// allCampaigns looks at all campaigns, or at all of a partner's.
// A partner's are a range of ix_campaign_partner, in its order. All of them are a scan of the table with a sort (filesort),
// of which the server keeps as many rows as the page's end needs.
func (s *Source) allCampaigns(ctx context.Context, f query.CampaignFilter) ([]query.Campaign, error) {
	where := filters(f)
	if f.PartnerID != nil {
		where.add("c.partner_id = ?", *f.PartnerID)
	}
	if len(f.StatusCodes) > 0 {
		in, args := placeholders(f.StatusCodes)
		// Not the column alone: ix_campaign_status has it in this order, and to look up each of its rows costs eight times what it
		// costs to read the table.
		where.add("CONCAT(c.status_code) IN ("+in+")", args...)
	}
	return s.campaigns(ctx, `SELECT c.campaign_id FROM campaign c WHERE TRUE`+where.and()+`
  ORDER BY c.start_at DESC, c.campaign_id DESC LIMIT ? OFFSET ?`, append(where.args, f.Limit+1, f.Offset))
}

// newestCampaigns answers the page when it is among the newest campaigns.
// done says that the page is exact, as that of newestBrands does.
func (s *Source) newestCampaigns(ctx context.Context, f query.CampaignFilter) (campaigns []query.Campaign, done bool, err error) {
	page := func(since time.Time, all bool) (int64, error) {
		narrow := f
		narrow.StartedAfter = since
		narrow.Limit++
		ids, args := mergedByStatus(narrow, "c.campaign_id")
		campaigns, err = s.campaigns(ctx, ids, args)
		done = all || int64(len(campaigns)) > f.Limit
		if done || err != nil || len(campaigns) > 0 || f.Offset == 0 {
			return f.Offset + int64(len(campaigns)), err
		}
		narrow.Page = query.Page{Limit: f.Offset}
		before, args := mergedByStatus(narrow, "c.campaign_id")
		return s.count(ctx, before, args)
	}
	// The index alone decides who is on the page: one statement, whatever the size of the source.
	if f.Keyword == "" && f.MinApplyCount == nil {
		_, err = page(f.StartedAfter, true)
		return campaigns, done, err
	}
	// To read the table takes a row in a thirtieth of the time that one takes by the index.
	most := func() (int64, error) {
		n, err := s.rows(ctx, "campaign")
		return n / 32, err
	}
	err = s.walk(ctx, f, campaignsPerRow, most, page)
	return campaigns, done, err
}

// filters are those on the row itself, other than status and partner.
func filters(f query.CampaignFilter) (where conditions) {
	where.between("c.start_at", f.StartedAfter, f.StartedBefore)
	if f.Keyword != "" {
		where.contain(f.Keyword, "c.name"+like)
	}
	if f.MinApplyCount != nil {
		where.add("c.apply_count >= ?", *f.MinApplyCount)
	}
	return where
}

// deepestMerge is the offset up to which merging reads less than sorting does: each
// status is read down to the end of the page.
const deepestMerge = 1000

// mergedByStatus is a statement for one column of a page of campaigns, newest first,
// and its arguments.
// Each branch is read down to the end of the page, so that the outer LIMIT and OFFSET see all rows that may be on it: a
// k-way merge, written as a UNION ALL with a sort of at most that many rows for each status.
func mergedByStatus(f query.CampaignFilter, column string) (string, []any) {
	branches, args := byStatus(f, `SELECT `+column+` AS answer, c.start_at, c.campaign_id`,
		` ORDER BY c.start_at DESC, c.campaign_id DESC LIMIT ?`, `
  UNION ALL `, f.Offset+f.Limit)
	return `SELECT m.answer AS ` + column[2:] + ` FROM (` + branches + `) m
  ORDER BY m.start_at DESC, m.campaign_id DESC LIMIT ? OFFSET ?`, append(args, f.Limit, f.Offset)
}

// byStatus is a union of a SELECT for each status, so that each can use
// ix_campaign_status for start_at: tail and tailArgs end each of them. No row is in
// two, also where a collation takes another text for one of the known codes.
func byStatus(f query.CampaignFilter, selected, tail, union string, tailArgs ...any) (string, []any) {
	where := filters(f)
	var branches []string
	var args []any
	branch := func(status string, statusArgs ...any) {
		branches = append(branches, `(`+selected+` FROM campaign c WHERE `+status+where.and()+tail+`)`)
		args = slices.Concat(args, statusArgs, where.args, tailArgs)
	}
	known, others := split(f.StatusCodes)
	for _, code := range known {
		branch("c.status_code = ?", code)
	}
	not, notArgs := placeholders(marketplace.StatusCodes())
	switch {
	case len(f.StatusCodes) == 0:
		branch("c.status_code NOT IN ("+not+")", notArgs...)
	case len(others) > 0:
		in, inArgs := placeholders(others)
		branch("c.status_code IN ("+in+") AND c.status_code NOT IN ("+not+")", append(inArgs, notArgs...)...)
	}
	return strings.Join(branches, union), args
}

// split sorts the codes asked for into those with a meaning, each once, and the rest;
// no codes mean all of the known.
func split(codes []string) (known, others []string) {
	for _, code := range marketplace.StatusCodes() {
		if len(codes) == 0 || slices.Contains(codes, code) {
			known = append(known, code)
		}
	}
	for _, code := range codes {
		if !slices.Contains(known, code) {
			others = append(others, code)
		}
	}
	return known, others
}

// campaigns joins the columns of a page to its ids.
// The order is that of the page once more: a derived table has none, as SQL says.
func (s *Source) campaigns(ctx context.Context, ids string, args []any) ([]query.Campaign, error) {
	statement := `SELECT ` + campaignColumns + `, p.name
FROM (` + ids + `) page
JOIN campaign c ON c.campaign_id = page.campaign_id
LEFT JOIN partner p ON p.partner_id = c.partner_id
ORDER BY c.start_at DESC, c.campaign_id DESC`
	campaigns := []query.Campaign{}
	err := s.Query(ctx, statement, args, func(r *sql.Rows) error {
		var c query.Campaign
		if err := r.Scan(append(campaignFields(&c), &c.PartnerName)...); err != nil {
			return err
		}
		c.Status = marketplace.CampaignStatus(c.StatusCode)
		campaigns = append(campaigns, c)
		return nil
	})
	if incomparable(err) {
		err = nil
	}
	return campaigns, err
}

// Selected implements query.Source. The index on campaign and status has all that is counted.
// The index is ix_application_campaign: a covering index, so that no row of the table is read. A campaign without any is
// not in the map.
func (s *Source) Selected(ctx context.Context, campaigns []query.ID) (map[query.ID]int64, error) {
	selected := map[query.ID]int64{}
	if len(campaigns) == 0 {
		return selected, nil
	}
	in, args := placeholders(campaigns)
	err := s.Query(ctx, `SELECT campaign_id, COUNT(*) FROM campaign_application
WHERE campaign_id IN (`+in+`) AND status IN ('SELECTED', 'DONE') GROUP BY campaign_id`, args, func(r *sql.Rows) error {
		var id query.ID
		var n int64
		err := r.Scan(&id, &n)
		selected[id] = n
		return err
	})
	return selected, err
}

// CampaignCounts implements query.Source.
// It is one row by the primary key, and a count in ix_application_campaign; nil where no campaign has the id.
func (s *Source) CampaignCounts(ctx context.Context, id int64) (*query.CampaignCounts, error) {
	const statement = `SELECT ` + campaignColumns + `, p.name,
  (SELECT COUNT(*) FROM campaign_application x WHERE x.campaign_id = c.campaign_id AND x.status IN ('SELECTED', 'DONE'))
FROM campaign c LEFT JOIN partner p ON p.partner_id = c.partner_id
WHERE c.campaign_id = ?`
	var out *query.CampaignCounts
	err := s.QueryPrepared(ctx, statement, []any{id}, func(r *sql.Rows) error {
		var c query.CampaignCounts
		if err := r.Scan(append(campaignFields(&c.Campaign), &c.Campaign.PartnerName, &c.Selected)...); err != nil {
			return err
		}
		c.Campaign.Status = marketplace.CampaignStatus(c.Campaign.StatusCode)
		out = &c
		return nil
	})
	return out, err
}
