package mysql

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"hub.internal/services/query"
	"hub.internal/services/query/recipients"
)

// listed bounds an IN list, so that a statement stays small and the server takes ranges
// of the index. MariaDB makes a derived table of a list of 1,000 and more.
const listed = 500

var _ recipients.Source = (*Source)(nil)

// selectOwners finds what exists by its primary key, and whose it is.
var selectOwners = map[recipients.Kind]string{
	recipients.PartnerID:  `SELECT p.partner_id, p.partner_id FROM partner p WHERE p.partner_id IN `,
	recipients.BrandID:    `SELECT b.brand_id, b.partner_id FROM brand b WHERE b.brand_id IN `,
	recipients.CampaignID: `SELECT c.campaign_id, c.partner_id FROM campaign c WHERE c.campaign_id IN `,
}

// Owners implements recipients.IDSource.
// What does not exist is absent from the map. A partner owns itself.
func (s *Source) Owners(ctx context.Context, kind recipients.Kind, ids []int64) (map[int64]int64, error) {
	owners := make(map[int64]int64, len(ids))
	err := inLists(ids, func(list string, args []any) error {
		return s.Query(ctx, selectOwners[kind]+list, args, func(r *sql.Rows) error {
			var id, owner int64
			if err := r.Scan(&id, &owner); err != nil {
				return err
			}
			owners[id] = owner
			return nil
		})
	})
	return owners, err
}

// Rows implements recipients.IDSource.
// The order of the rows is not that of ids, and an id that does not exist has no row. The rows are those of the searches,
// so that a segment shows what a search has shown.
func (s *Source) Rows(ctx context.Context, kind recipients.Kind, ids []int64) ([]recipients.Row, error) {
	rows := make([]recipients.Row, 0, len(ids))
	err := inLists(ids, func(list string, args []any) error {
		switch kind {
		case recipients.BrandID:
			brands, err := s.brandsOf(ctx, selectBrands+list, args, false)
			for _, b := range brands {
				rows = append(rows, recipients.Row{ID: int64(b.ID), Row: b})
			}
			return err
		case recipients.CampaignID:
			campaigns, err := s.campaigns(ctx, `SELECT c.campaign_id FROM campaign c WHERE c.campaign_id IN `+list, args)
			for _, c := range campaigns {
				rows = append(rows, recipients.Row{ID: int64(c.ID), Row: c})
			}
			return err
		}
		return s.Query(ctx, selectPartners+list, args, func(r *sql.Rows) error {
			var p query.Partner
			err := r.Scan(&p.ID, &p.Name, &p.BusinessNo, &p.CountryCode, dateTime(&p.CreatedAt))
			rows = append(rows, recipients.Row{ID: int64(p.ID), Row: p})
			return err
		})
	})
	return rows, err
}

// selectBrands is what brandsOf takes for a page: the ids with their newest start_at.
const selectBrands = `SELECT b.brand_id, ` + lastCampaign + ` AS last_campaign_at FROM brand b WHERE b.brand_id IN `

// selectPartners reads partners by their primary key.
const selectPartners = `SELECT p.partner_id, p.name, p.business_no, p.country_code, p.created_at FROM partner p WHERE p.partner_id IN `

// By partner and not by address, so that ix_partner_admin_partner finds them and the
// addresses are compared here, whatever the column's collation.
const selectContactAddresses = `SELECT a.partner_id, a.email, a.name FROM partner_admin a WHERE ` + active + ` AND a.partner_id IN `

// ContactAddresses implements recipients.Source.
// Only active contacts are yielded: verified, and with an account that is READY. Neither order nor uniqueness is promised.
func (s *Source) ContactAddresses(ctx context.Context, partners []int64, yield func(partner int64, email, name string)) error {
	return inLists(partners, func(list string, args []any) error {
		return s.Query(ctx, selectContactAddresses+list, args, func(r *sql.Rows) error {
			var partner int64
			var email, name string
			if err := r.Scan(&partner, &email, &name); err != nil {
				return err
			}
			yield(partner, email, name)
			return nil
		})
	})
}

// selectMemberAddresses finds by ix_member_email which addresses belong to B2C members, who are never written to.
const selectMemberAddresses = `SELECT m.email FROM member m WHERE m.email` + like

// MemberAddresses implements recipients.Source. An address is found with blanks around it too, however the column's collation
// compares them: each is the beginning of what is looked for, and those that begin with a blank, of which there are few, are all
// yielded. Where the collation tells case apart (TiDB's default does), it finds what is stored as it was given and in lower case,
// which is what an index can find there.
func (s *Source) MemberAddresses(ctx context.Context, emails []string, yield func(string)) error {
	patterns := make([]string, 0, len(emails)+1)
	for _, email := range emails {
		pattern := escapeLike.Replace(email)
		if strings.Contains(email, "@") { // what is no address would be the beginning of many
			pattern += "%"
		}
		patterns = append(patterns, pattern)
		if lower := strings.ToLower(pattern); lower != pattern {
			patterns = append(patterns, lower)
		}
	}
	if len(patterns) > 0 {
		patterns = append(patterns, " %")
	}
	for some := range slices.Chunk(patterns, listed) {
		_, args := placeholders(some)
		statement := selectMemberAddresses + strings.Repeat(` OR m.email`+like, len(some)-1)
		if err := s.Query(ctx, statement, args, func(r *sql.Rows) error {
			var email string
			if err := r.Scan(&email); err != nil {
				return err
			}
			yield(email)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// inLists runs a statement for at most listed values at a time.
// A list is written with placeholders: values of callers are never part of a statement's text. It stops at the first error.
func inLists[T any](values []T, run func(list string, args []any) error) error {
	for len(values) > 0 {
		n := min(len(values), listed)
		args := make([]any, n)
		for i, v := range values[:n] {
			args[i] = v
		}
		if err := run("("+strings.TrimSuffix(strings.Repeat("?,", n), ",")+")", args); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
