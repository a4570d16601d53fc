// Package query answers questions about the marketplace's own database, which Hub only ever reads. It refuses to write anywhere but
// the audit log, and to show an e-mail address that its owner has not verified.
//
// The domain files (category.go, brand.go, campaign.go, table.go) hold the records and their rules. The SQL of the
// fixed reads is in package mysql, beside the method that runs it. A statement of a caller's passes the allow-list of
// package sqlguard and the bulkhead, which limits how many run at once, before package statements runs it.
package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/query/keyword"
	"hub.internal/services/query/known"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/sqlguard"
	"hub.internal/services/query/sqlguard/notice"
)

// Source is the marketplace's database. Its errors are faults: E_DB, E_DB_TIMEOUT,
// and E_NOT_FOUND that names the table when the database has no such CRM table.
type Source interface {
	// Tables lists the base tables by name.
	Tables(context.Context) ([]Table, error)
	// TableColumns describes one base table; nil when there is none of that name.
	TableColumns(ctx context.Context, name string) (*TableColumns, error)
	// TableDDL is TableColumns with the table's DDL and, if asked, its indexes.
	TableDDL(ctx context.Context, name string, indexes bool) (*TableDDL, error)
	// IsView reports whether the name is a view's.
	IsView(ctx context.Context, name string) (bool, error)

	// CategoryTree lists each category.
	CategoryTree(context.Context) ([]CategoryNode, error)
	// CategoriesNamed are the ids of the categories with a name in any language, in order; ten at most.
	CategoriesNamed(ctx context.Context, name string) ([]int64, error)
	// Categories are the children of a category.
	Categories(ctx context.Context, parent int64, language string) ([]Category, error)
	// SearchBrands returns a page and one brand more when there is one.
	SearchBrands(context.Context, BrandFilter) ([]BrandMatch, error)
	// BrandsLike names brands whose own name, president or partner has the text, blanks and forms of companies apart; six at most.
	BrandsLike(ctx context.Context, plain string) ([]string, error)
	// Codes are the distinct values of a column of a CRM table that holds few, in order; at most 200.
	Codes(ctx context.Context, table, column string) ([]string, error)
	// Catalog is what there is of tables, columns and time zones, for messages about statements.
	Catalog(context.Context) (*notice.Catalog, error)
	// Facts are what the rows of a base table say; of one with no shape, its foreign keys alone.
	Facts(ctx context.Context, table string, shape marketplace.Shape) (TableFacts, error)
	// Brand is a profile; nil when there is none of that id.
	Brand(ctx context.Context, id, campaigns int64) (*BrandProfile, error)
	// SearchCampaigns returns a page and one campaign more when there is one.
	SearchCampaigns(context.Context, CampaignFilter) ([]Campaign, error)
	// Selected counts the selected applications of campaigns; those without any are absent.
	Selected(ctx context.Context, campaigns []ID) (map[ID]int64, error)
	// CampaignCounts are a campaign's raw counts; nil when there is none of that id.
	CampaignCounts(ctx context.Context, id int64) (*CampaignCounts, error)
	// PartnerContacts are a partner and its verified contacts; nil when there is no
	// partner of that id.
	PartnerContacts(ctx context.Context, partner int64, inactive bool) (*PartnerContacts, error)
}

// Config is what a Service needs.
type Config struct {
	Source Source
	// Reader runs the statements of execute_read_sql.
	Reader StatementReader
	// Guard judges them first; nil means one that admits no stored function.
	Guard *sqlguard.Guard
	// Ping tells whether the source answers.
	Ping func(context.Context) error
	// Replicas tells how its servers are; nil for a source that is one.
	Replicas func() []ReplicaHealth
	// Audit keeps the record of each statement.
	Audit SQLAudit
	// SQL bounds execute_read_sql.
	SQL SQLLimits
	// MaxRowLimit (MCP_MAX_ROW_LIMIT) clamps the limit of execute_read_sql; 0 means 1,000.
	MaxRowLimit int
	// QueryTimeout (MCP_QUERY_TIMEOUT_MS) bounds a statement; 0 means 30 s.
	QueryTimeout time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service answers the query tools.
type Service struct {
	Config
	categories *categories
	statements *statements
	codes      *known.Values[[]string]
	facts      *known.Values[TableFacts]
	catalog    *known.Values[*notice.Catalog]
}

// New returns a service. It touches no database.
func New(c Config) *Service {
	if c.MaxRowLimit <= 0 {
		c.MaxRowLimit = 1000
	}
	if c.QueryTimeout <= 0 {
		c.QueryTimeout = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{Config: c, categories: newCategories(c.Source, c.Now), statements: newStatements(c),
		codes: known.New[[]string](c.Now), facts: known.New[TableFacts](c.Now), catalog: known.New[*notice.Catalog](c.Now)}
	s.statements.noticed = s.noticed
	return s
}

// DescribeSchema lists the CRM tables, or describes one table of any kind.
func (s *Service) DescribeSchema(ctx context.Context, in describeSchemaIn) (counted, error) {
	if in.Table == "" {
		tables, err := s.Source.Tables(ctx)
		if err != nil {
			return nil, err
		}
		return curated(tables), nil
	}
	t, err := s.Source.TableColumns(ctx, in.Table)
	if t == nil || err != nil {
		return nil, s.noTable(ctx, in.Table, err)
	}
	s.withFacts(ctx, t)
	return t, nil
}

// GetDDL lists every base table, or answers the definition of one.
func (s *Service) GetDDL(ctx context.Context, in getDDLIn) (counted, error) {
	if in.Table == "" {
		tables, err := s.Source.Tables(ctx)
		if err != nil {
			return nil, err
		}
		return flagged(tables), nil
	}
	t, err := s.Source.TableDDL(ctx, in.Table, in.IncludeIndexes)
	if t == nil || err != nil {
		return nil, s.noTable(ctx, in.Table, err)
	}
	return t, nil
}

// noTable is E_NOT_FOUND with the table that was most likely meant, unless reading it failed otherwise.
func (s *Service) noTable(ctx context.Context, name string, err error) error {
	if err != nil {
		return err
	}
	if view, err := s.Source.IsView(ctx, name); err != nil {
		return err
	} else if view {
		return fault.New(fault.NotFound, "%.64q is a view, not a table: execute_read_sql reads it, and SHOW COLUMNS and SHOW CREATE VIEW "+
			"there tell what it has.", name).With(map[string]any{"table": name})
	}
	tables, err := s.Source.Tables(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	refusal := fault.New(fault.NotFound, "The source database has no table %.64q. Call without table for the list.", name)
	if nearest := schema.Nearest(name[strings.LastIndexByte(name, '.')+1:], names); nearest != "" {
		refusal = fault.New(fault.NotFound, "The source database has no table %.64q. Did you mean %s? Call without table for the list.",
			name, nearest)
	}
	return refusal.With(map[string]any{"table": name})
}

// ListCategories lists the children of a category.
func (s *Service) ListCategories(ctx context.Context, in listCategoriesIn) (CategoryList, error) {
	categories, err := s.Source.Categories(ctx, in.ParentID, in.Language)
	list := CategoryList{Categories: categories}
	if err != nil || len(categories) > 0 || in.ParentID == 0 {
		return list, err
	}
	if above, err := s.categories.scope(ctx, in.ParentID); err == nil && above == nil {
		list.Warnings = []tool.Warning{{Rule: "parentId", Message: fmt.Sprintf("there is no category %d: list_categories without parentId has "+
			"the top level", in.ParentID)}}
	}
	return list, nil
}

// SearchBrands finds brands to write to.
func (s *Service) SearchBrands(ctx context.Context, in searchBrandsIn) (BrandPage, error) {
	f := BrandFilter{CountryCode: in.CountryCode, VerifiedContact: in.HasVerifiedContact, Keyword: in.Keyword,
		Page: Page{Limit: in.Limit, Offset: in.Offset}}
	var err error
	if f.LastCampaignAfter, f.LastCampaignBefore, err = dates("lastCampaign", in.LastCampaignAfter, in.LastCampaignBefore); err != nil {
		return BrandPage{}, err
	}
	if in.CategoryID != nil {
		if f.Category, err = s.categories.scope(ctx, *in.CategoryID); err != nil {
			return BrandPage{}, err
		}
		if f.Category == nil {
			return BrandPage{Brands: []BrandMatch{}, Warnings: []tool.Warning{{Rule: "categoryId",
				Message: fmt.Sprintf("there is no category %d: list_categories finds them", *in.CategoryID)}}}, nil
		}
	}
	brands, err := s.Source.SearchBrands(ctx, f)
	if err != nil {
		return BrandPage{}, err
	}
	brands, more := cut(brands, in.Limit)
	page := BrandPage{Brands: brands, HasMore: more}
	if len(brands) > 0 {
		return page, nil
	}
	if in.CountryCode != "" {
		page.Warnings = s.unknownCodes(ctx, "countryCode", "brand", "country_code", []string{in.CountryCode}, nil)
	}
	var named []string
	if plain := keyword.Plain(in.Keyword); plain != "" && in.Offset == 0 {
		named, _ = s.Source.BrandsLike(ctx, plain) // without it the answer is complete, too
	}
	page.Warnings = append(page.Warnings, keyword.Nothing(in.Keyword, in.Offset, named)...)
	return page, nil
}

// GetBrand answers a brand's profile.
func (s *Service) GetBrand(ctx context.Context, in getBrandIn) (*BrandProfile, error) {
	b, err := s.Source.Brand(ctx, in.BrandID, in.RecentCampaignsLimit)
	return found(b, err, "brand", in.BrandID)
}

// SearchCampaigns finds campaigns.
func (s *Service) SearchCampaigns(ctx context.Context, in searchCampaignsIn) (CampaignPage, error) {
	f := CampaignFilter{PartnerID: in.PartnerID, StatusCodes: in.StatusCodes, Keyword: in.Keyword, MinApplyCount: in.MinApplyCount,
		Page: Page{Limit: in.Limit, Offset: in.Offset}}
	var err error
	if f.StartedAfter, f.StartedBefore, err = dates("started", in.StartedAfter, in.StartedBefore); err != nil {
		return CampaignPage{}, err
	}
	campaigns, err := s.Source.SearchCampaigns(ctx, f)
	if err != nil {
		return CampaignPage{}, err
	}
	campaigns, more := cut(campaigns, in.Limit)
	page := CampaignPage{HasMore: more}
	if page.Campaigns, err = s.matches(ctx, campaigns); err != nil {
		return CampaignPage{}, err
	}
	if len(in.StatusCodes) > 0 {
		seen := make([]string, len(campaigns))
		for i, c := range campaigns {
			seen[i] = c.StatusCode
		}
		page.Warnings = s.unknownCodes(ctx, "statusCodes", "campaign", "status_code", in.StatusCodes, seen)
	}
	if len(campaigns) > 0 {
		return page, nil
	}
	page.Warnings = append(page.Warnings, keyword.Nothing(in.Keyword, in.Offset, nil)...)
	if in.PartnerID != nil && in.Offset == 0 {
		if p, err := s.Source.PartnerContacts(ctx, *in.PartnerID, false); err == nil && p == nil {
			page.Warnings = append(page.Warnings, tool.Warning{Rule: "partnerId", Message: fmt.Sprintf("there is no partner %d: search_brands "+
				"answers the partner_id of brands", *in.PartnerID)})
		}
	}
	return page, nil
}

// matches says of each campaign of a page how it did, so that nobody has to ask for each of them.
func (s *Service) matches(ctx context.Context, campaigns []Campaign) ([]CampaignMatch, error) {
	ids := make([]ID, len(campaigns))
	for i, c := range campaigns {
		ids[i] = c.ID
	}
	selected, err := s.Source.Selected(ctx, ids)
	out := make([]CampaignMatch, len(campaigns))
	for i, c := range campaigns {
		out[i] = CampaignMatch{Campaign: c, Selected: selected[c.ID], FillRate: ratio(selected[c.ID], c.OfferCount)}
	}
	return out, err
}

// SearchPartnerContacts lists whom Hub may write to at a partner.
func (s *Service) SearchPartnerContacts(ctx context.Context, in searchPartnerContactsIn) (*PartnerContacts, error) {
	p, err := s.Source.PartnerContacts(ctx, in.PartnerID, in.IncludeInactive)
	return found(p, err, "partner", in.PartnerID)
}

// GetCampaignPerformance answers a campaign's counts and ratios.
func (s *Service) GetCampaignPerformance(ctx context.Context, in getCampaignPerformanceIn) (*Performance, error) {
	c, err := s.Source.CampaignCounts(ctx, in.CampaignID)
	if c, err = found(c, err, "campaign", in.CampaignID); err != nil {
		return nil, err
	}
	p := c.performance()
	return &p, nil
}

// found turns what is not there into E_NOT_FOUND.
func found[T any](value *T, err error, kind string, id any) (*T, error) {
	if err == nil && value == nil {
		return nil, fault.New(fault.NotFound, "The source database has no %s %v.", kind, id).With(map[string]any{kind: id})
	}
	return value, err
}

// cut takes the probe for more off a page.
func cut[T any](rows []T, limit int64) ([]T, bool) {
	if int64(len(rows)) > limit {
		return slices.Clip(rows[:limit]), true
	}
	return rows, false
}

// dates reads a pair of ISO dates, whose members are called so with After and Before behind; an empty one is the zero time.
// DATETIME of the source has no zone: Hub takes it for UTC. It returns E_VALIDATION for a pair that no time can be between.
func dates(member, after, before string) (from, to time.Time, err error) {
	if from, err = date(after); err == nil {
		to, err = date(before)
	}
	if after != "" && from.IsZero() { // the zero time is no bound, and one from that day on leaves out what has no date
		from = from.Add(-time.Nanosecond)
	}
	if err == nil && before != "" && to.IsZero() {
		err = schema.Invalid("/"+member+"Before", "range", "must be later than %s: nothing is before it", before)
	} else if err == nil && !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = schema.Invalid("/"+member+"Before", "range", "must be later than %sAfter: nothing is from %s on and before %s",
			member, after, before)
	}
	return from, to, err
}

func date(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := schema.ParseISODate(text)
	return t.UTC(), err
}

// ID is a primary key of the source: a JSON number, and a string where a number
// would lose digits in a reader that has only doubles (beyond 2^53).
type ID int64

const exact = 1 << 53

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 22)
	if id >= -exact && id <= exact {
		return strconv.AppendInt(b, int64(id), 10), nil
	}
	b = strconv.AppendInt(append(b, '"'), int64(id), 10)
	return append(b, '"'), nil
}

// Scan implements sql.Scanner. The driver brings texts, and whole numbers of prepared statements.
func (id *ID) Scan(value any) error {
	text, ok := value.([]byte)
	if !ok {
		text = fmt.Append(nil, value)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*id = ID(n)
	return err
}

// DateTime is a DATETIME of the source as it stands there: 2026-01-31T09:00:00,
// without a zone.
type DateTime string
