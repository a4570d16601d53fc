package replicas

import (
	"context"

	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/mysql"
	"hub.internal/services/query/recipients"
	"hub.internal/services/query/sqlguard/notice"
)

// none is the answer of what answers nothing but an error.
type none = struct{}

// ask has one server answer, and another one when that goes away: nothing of an answer has been handed on
// before it is whole.
// It is one retry, and only for reads that have failed for the server's sake: a third server is not tried, so that an
// outage of the network costs each call two waits and no more.
func ask[Out any](ctx context.Context, s *Set, read func(context.Context, *mysql.Source) (Out, error)) (Out, error) {
	m := s.pick(nil)
	out, err, moves := try(ctx, m, read)
	if !moves {
		return out, err
	}
	m.suspect()
	if other := s.pick(m); other != nil {
		s.metrics.moved(ctx, m)
		out, err, _ = try(ctx, other, read)
	}
	return out, err
}

// try asks one server; moves says that another one may do better.
func try[Out any](ctx context.Context, m *member, read func(context.Context, *mysql.Source) (Out, error)) (out Out, err error, moves bool) {
	attempt, leave := m.begin(ctx)
	defer leave()
	out, err = read(attempt, m.source)
	return out, err, m.moves(ctx, attempt, err)
}

// Tables implements query.Source.
func (s *Set) Tables(ctx context.Context) ([]query.Table, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]query.Table, error) { return from.Tables(ctx) })
}

// TableColumns implements query.Source.
func (s *Set) TableColumns(ctx context.Context, name string) (*query.TableColumns, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*query.TableColumns, error) {
		return from.TableColumns(ctx, name)
	})
}

// TableDDL implements query.Source.
func (s *Set) TableDDL(ctx context.Context, name string, indexes bool) (*query.TableDDL, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*query.TableDDL, error) {
		return from.TableDDL(ctx, name, indexes)
	})
}

// CategoryTree implements query.Source.
func (s *Set) CategoryTree(ctx context.Context) ([]query.CategoryNode, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]query.CategoryNode, error) {
		return from.CategoryTree(ctx)
	})
}

// CategoriesNamed implements query.Source.
func (s *Set) CategoriesNamed(ctx context.Context, name string) ([]int64, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]int64, error) { return from.CategoriesNamed(ctx, name) })
}

// IsView implements query.Source.
func (s *Set) IsView(ctx context.Context, name string) (bool, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (bool, error) { return from.IsView(ctx, name) })
}

// Categories implements query.Source.
func (s *Set) Categories(ctx context.Context, parent int64, language string) ([]query.Category, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]query.Category, error) {
		return from.Categories(ctx, parent, language)
	})
}

// SearchBrands implements query.Source.
func (s *Set) SearchBrands(ctx context.Context, f query.BrandFilter) ([]query.BrandMatch, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]query.BrandMatch, error) {
		return from.SearchBrands(ctx, f)
	})
}

// BrandsLike implements query.Source.
func (s *Set) BrandsLike(ctx context.Context, plain string) ([]string, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]string, error) { return from.BrandsLike(ctx, plain) })
}

// Codes implements query.Source.
func (s *Set) Codes(ctx context.Context, table, column string) ([]string, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]string, error) { return from.Codes(ctx, table, column) })
}

// Catalog implements query.Source.
func (s *Set) Catalog(ctx context.Context) (*notice.Catalog, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*notice.Catalog, error) { return from.Catalog(ctx) })
}

// Facts implements query.Source.
func (s *Set) Facts(ctx context.Context, table string, shape marketplace.Shape) (query.TableFacts, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (query.TableFacts, error) {
		return from.Facts(ctx, table, shape)
	})
}

// Brand implements query.Source.
func (s *Set) Brand(ctx context.Context, id, campaigns int64) (*query.BrandProfile, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*query.BrandProfile, error) {
		return from.Brand(ctx, id, campaigns)
	})
}

// SearchCampaigns implements query.Source.
func (s *Set) SearchCampaigns(ctx context.Context, f query.CampaignFilter) ([]query.Campaign, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]query.Campaign, error) {
		return from.SearchCampaigns(ctx, f)
	})
}

// Selected implements query.Source.
func (s *Set) Selected(ctx context.Context, campaigns []query.ID) (map[query.ID]int64, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (map[query.ID]int64, error) {
		return from.Selected(ctx, campaigns)
	})
}

// CampaignCounts implements query.Source.
func (s *Set) CampaignCounts(ctx context.Context, id int64) (*query.CampaignCounts, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*query.CampaignCounts, error) {
		return from.CampaignCounts(ctx, id)
	})
}

// PartnerContacts implements query.Source.
func (s *Set) PartnerContacts(ctx context.Context, partner int64, inactive bool) (*query.PartnerContacts, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (*query.PartnerContacts, error) {
		return from.PartnerContacts(ctx, partner, inactive)
	})
}

// Owners implements recipients.IDSource.
func (s *Set) Owners(ctx context.Context, kind recipients.Kind, ids []int64) (map[int64]int64, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) (map[int64]int64, error) {
		return from.Owners(ctx, kind, ids)
	})
}

// Rows implements recipients.IDSource.
func (s *Set) Rows(ctx context.Context, kind recipients.Kind, ids []int64) ([]recipients.Row, error) {
	return ask(ctx, s, func(ctx context.Context, from *mysql.Source) ([]recipients.Row, error) {
		return from.Rows(ctx, kind, ids)
	})
}

// ContactAddresses implements recipients.Source. It yields nothing before all has been read.
func (s *Set) ContactAddresses(ctx context.Context, partners []int64, yield func(partner int64, email, name string)) error {
	type contact struct {
		partner     int64
		email, name string
	}
	all, err := ask(ctx, s, func(ctx context.Context, from *mysql.Source) (all []contact, err error) {
		err = from.ContactAddresses(ctx, partners, func(partner int64, email, name string) {
			all = append(all, contact{partner, email, name})
		})
		return all, err
	})
	if err != nil {
		return err
	}
	for _, c := range all {
		yield(c.partner, c.email, c.name)
	}
	return nil
}

// MemberAddresses implements recipients.Source. It yields nothing before all has been read.
func (s *Set) MemberAddresses(ctx context.Context, emails []string, yield func(string)) error {
	all, err := ask(ctx, s, func(ctx context.Context, from *mysql.Source) (all []string, err error) {
		err = from.MemberAddresses(ctx, emails, func(email string) { all = append(all, email) })
		return all, err
	})
	if err != nil {
		return err
	}
	for _, email := range all {
		yield(email)
	}
	return nil
}
