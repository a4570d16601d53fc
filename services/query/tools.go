package query

import (
	"embed"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/query/recipients"
)

// Scopes of the tools (CONTRACT.md 3.2).
const (
	scopeExplore = "explore"
	scopeQuery   = "query"
)

const (
	defaultPage      = 50
	maxPage          = 200
	defaultCampaigns = 5
	maxCampaigns     = 20
)

// Manifest is what query owns, with the default limits.
func Manifest() tool.Manifest {
	s := New(Config{})
	return rpc.Manifest("query", Tools(s), Operations(s, recipients.New(nil)))
}

// Tools are the service's tools in the order of the catalog (CONTRACT.md 6.1).
func Tools(s *Service) []tool.Tool {
	return []tool.Tool{
		describeSchemaTool(s),
		getDDLTool(s),
		executeReadSQLTool(s),
		listCategoriesTool(s),
		searchBrandsTool(s),
		getBrandTool(s),
		searchCampaignsTool(s),
		searchPartnerContactsTool(s),
		getCampaignPerformanceTool(s),
	}
}

type describeSchemaIn struct {
	Table string `json:"table"`
}

func describeSchemaTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "describe_schema", Position: 1, Category: tool.Explore, Scope: scopeExplore,
		Description: "Learn the source database before you write SQL. Without table: the CRM tables with audience (B2B tables hold the " +
			"companies and people that may be written to, B2C tables are for analytics only), description and approximate row " +
			"count. With table (any base table; get_ddl lists all): its columns with type, nullability, key, default, comment, " +
			"what they refer to and the codes they hold, and how fresh it is.",
		Input: schema.Object(
			schema.Optional("table", schema.String("A base table, without schema or quotes.")),
		),
		Output:   eitherOf(schema.Of[SchemaTables](), schema.Of[TableColumns]()),
		Errors:   errorDocs("The table does not exist, is a view, or belongs to another schema."),
		Examples: examples("describe_schema"),
	}, s.DescribeSchema)
}

type getDDLIn struct {
	Table          string `json:"table"`
	IncludeIndexes bool   `json:"includeIndexes"`
}

func getDDLTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "get_ddl", Position: 2, Category: tool.Explore, Scope: scopeExplore,
		Description: "Exact definitions from the source database. Without table: every base table with an approximate row count, the " +
			"CRM's own as primary_crm. With table: its CREATE TABLE statement, and the same as columns and indexes, to see which " +
			"filters and joins an index supports.",
		Input: schema.Object(
			schema.Optional("table", schema.String("A base table, without schema or quotes.")),
			schema.Optional("includeIndexes", schema.Boolean("Whether to list indexes; the DDL is whole either way.", schema.Default(true))),
		),
		Output:   eitherOf(schema.Of[DDLTables](), schema.Of[TableDDL]()),
		Errors:   errorDocs("The table does not exist, is a view, or belongs to another schema."),
		Examples: examples("get_ddl"),
	}, s.GetDDL)
}

type listCategoriesIn struct {
	ParentID int64  `json:"parentId"`
	Language string `json:"language"`
}

func listCategoriesTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "list_categories", Position: 4, Category: tool.Query, Scope: scopeQuery,
		Description: "The product categories directly below one, in display order: start without parentId for the top level (12 " +
			"beauty, 13 fashion, 14 life, 33 food, 34 baby, 35 hobby, 6666 pets) and go down while has_children is true. " +
			"search_brands takes a category_id for all below it. A category without children, or an unknown one, answers an empty " +
			"list.",
		Input: schema.Object(
			schema.Optional("parentId", schema.Integer("", schema.Default(0))),
			schema.Optional("language", schema.String("Language of category_name; a missing name falls back to ko, then en, then any.",
				schema.Enum("ko", "en", "ja", "cn", "vi", "in"), schema.Default("ko"))),
		),
		Errors:   errorDocs(missingTable),
		Examples: examples("list_categories"),
	}, s.ListCategories)
}

type searchBrandsIn struct {
	CategoryID         *int64 `json:"categoryId"`
	CountryCode        string `json:"countryCode"`
	LastCampaignBefore string `json:"lastCampaignBefore"`
	LastCampaignAfter  string `json:"lastCampaignAfter"`
	HasVerifiedContact bool   `json:"hasVerifiedContact"`
	Keyword            string `json:"keyword"`
	Limit              int64  `json:"limit"`
	Offset             int64  `json:"offset"`
}

func searchBrandsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "search_brands", Position: 5, Category: tool.Query, Scope: scopeQuery,
		Description: "Find brands to market to: the first step before create_segment. One row per brand, the most recently active " +
			"first (last_campaign_at descending, brands without a campaign last, then brand_id). Filters combine with AND. Dates " +
			"look at last_campaign, the one that starts last: rejected, cancelled and future ones count. So lastCampaignBefore " +
			"finds brands that have gone quiet; a brand without campaigns matches neither. Times: 2026-01-31, 2026-01-31T09:00:00 " +
			"(UTC, as in the source) or RFC 3339. Read on with offset while has_more is true.",
		Input: schema.Object(
			schema.Optional("categoryId", schema.Integer("The brand's category, or one above it. An unknown one matches nothing.",
				schema.Min(0))),
			schema.Optional("countryCode", schema.String("The brand's country, such as KR.", schema.Length(0, 5))),
			schema.Optional("lastCampaignBefore",
				schema.String("The last campaign starts before this (exclusive).", schema.Format(schema.ISODate))),
			schema.Optional("lastCampaignAfter",
				schema.String("The last campaign starts then or later (inclusive).",
					schema.Format(schema.ISODate))),
			schema.Optional("hasVerifiedContact",
				schema.Boolean("true: only brands whose partner has a contact with a verified address and an active account, and that "+
					"contact. Else contact is null.")),
			schema.Optional("keyword",
				schema.String("Part of the brand's president or the partner's corporate name, taken literally (% and _ too); not of "+
					"brand_name: where nothing has it, warnings names brands that have it there. Empty does not filter.")),
			schema.Optional("limit", schema.Integer("", schema.Range(1, maxPage), schema.Default(defaultPage))),
			schema.Optional("offset", schema.Integer("", schema.Min(0), schema.Default(0))),
		),
		Errors:   errorDocs(missingTable),
		Limits:   map[string]int64{"default_limit": defaultPage, "max_limit": maxPage},
		Examples: examples("search_brands"),
	}, s.SearchBrands)
}

type getBrandIn struct {
	BrandID              int64 `json:"brandId"`
	RecentCampaignsLimit int64 `json:"recentCampaignsLimit"`
}

func getBrandTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "get_brand", Position: 6, Category: tool.Query, Scope: scopeQuery,
		Description: "Everything about one brand before you write to it: its profile, its partner, the partner's contacts with a " +
			"verified address and an active account, its newest campaigns, and the liter balance (deposit) as a decimal string.",
		Input: schema.Object(
			schema.Required("brandId", schema.Integer("Id of the brand.", schema.Min(0))),
			schema.Optional("recentCampaignsLimit", schema.Integer("How many campaigns; 0 skips them.",
				schema.Range(0, maxCampaigns), schema.Default(defaultCampaigns))),
		),
		Errors:   errorDocs("There is no brand of that id. " + missingTable),
		Limits:   map[string]int64{"default_recent_campaigns": defaultCampaigns, "max_recent_campaigns": maxCampaigns},
		Examples: examples("get_brand"),
	}, s.GetBrand)
}

type searchCampaignsIn struct {
	PartnerID     *int64   `json:"partnerId"`
	StatusCodes   []string `json:"statusCodes"`
	StartedAfter  string   `json:"startedAfter"`
	StartedBefore string   `json:"startedBefore"`
	Keyword       string   `json:"keyword"`
	MinApplyCount *int64   `json:"minApplyCount"`
	Limit         int64    `json:"limit"`
	Offset        int64    `json:"offset"`
}

func searchCampaignsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "search_campaigns", Position: 7, Category: tool.Query, Scope: scopeQuery,
		Description: "Find campaigns with their counts and partner, newest start first (then the highest campaign_id). Filters combine " +
			"with AND. Status codes: 1206 accepting participants, 1208 under review, 1209 closed, 1210 cancelled, 1211 rejected. " +
			"Times: 2026-01-31, 2026-01-31T09:00:00 (UTC, as in the source) or RFC 3339. Read on with offset while has_more is " +
			"true. selected and fill_rate say how each did; get_campaign_performance has the other ratios.",
		Input: schema.Object(
			schema.Optional("partnerId", schema.Integer("", schema.Min(0))),
			schema.Optional("statusCodes",
				schema.Array("In one of these; an unknown code matches nothing, an empty list is no filter.",
					schema.String("Such as 1209."), schema.Items(0, 100))),
			schema.Optional("startedAfter", schema.String("Starts then or later (inclusive).",
				schema.Format(schema.ISODate))),
			schema.Optional("startedBefore", schema.String("Starts before this (exclusive).",
				schema.Format(schema.ISODate))),
			schema.Optional("keyword",
				schema.String("Part of the name, taken literally (% and _ too). Empty does not filter.")),
			schema.Optional("minApplyCount", schema.Integer("", schema.Min(0))),
			schema.Optional("limit", schema.Integer("", schema.Range(1, maxPage), schema.Default(defaultPage))),
			schema.Optional("offset", schema.Integer("", schema.Min(0), schema.Default(0))),
		),
		Errors:   errorDocs(missingTable),
		Limits:   map[string]int64{"default_limit": defaultPage, "max_limit": maxPage},
		Examples: examples("search_campaigns"),
	}, s.SearchCampaigns)
}

type searchPartnerContactsIn struct {
	PartnerID       int64 `json:"partnerId"`
	IncludeInactive bool  `json:"includeInactive"`
}

func searchPartnerContactsTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "search_partner_contacts", Position: 8, Category: tool.Query, Scope: scopeQuery,
		Description: "The people of one partner that may be written to: each has a verified e-mail address and, unless includeInactive " +
			"is true, an active (READY) account. Newest log-in first. partner.partner_id is the externalId, a contact's email the " +
			"toEmail of save_message_draft.",
		Input: schema.Object(
			schema.Required("partnerId", schema.Integer("Id of the partner.", schema.Min(0))),
			schema.Optional("includeInactive",
				schema.Boolean("Also contacts whose account is not READY (PENDING, LEAVE, …).",
					schema.Default(false))),
		),
		Errors:   errorDocs("There is no partner of that id. " + missingTable),
		Examples: examples("search_partner_contacts"),
	}, s.SearchPartnerContacts)
}

type getCampaignPerformanceIn struct {
	CampaignID int64 `json:"campaignId"`
}

func getCampaignPerformanceTool(s *Service) tool.Tool {
	return tool.New(tool.Declaration{
		Name: "get_campaign_performance", Position: 9, Category: tool.Query, Scope: scopeQuery,
		Description: "How one campaign did: views, applications, places offered, applications selected (SELECTED or DONE), and the " +
			"ratios fill_rate = selected / offer, application_density = apply / view, oversubscription = apply / offer, with six " +
			"decimals, null where the denominator is 0.",
		Input: schema.Object(
			schema.Required("campaignId", schema.Integer("Id of the campaign.", schema.Min(0))),
		),
		Errors:   errorDocs("There is no campaign of that id. " + missingTable),
		Examples: examples("get_campaign_performance"),
	}, s.GetCampaignPerformance)
}

const missingTable = "The source database has no such CRM table; the message names it."

// errorDocs are what each of the fixed reads can answer, with its own reason for E_NOT_FOUND.
func errorDocs(notFound string) []tool.ErrorDoc {
	return []tool.ErrorDoc{
		{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."},
		{Code: fault.NotFound, Reason: notFound},
		{Code: fault.DBTimeout, Reason: "The source database did not answer in time. Narrow the filters, or try again later."},
		{Code: fault.DB, Reason: "The source database cannot be reached right now. Try again in a moment."},
	}
}

// eitherOf is the schema of an answer that depends on the input.
func eitherOf(without, with *schema.Schema) *schema.Schema {
	return &schema.Schema{Type: "object", AnyOf: []*schema.Schema{without, with}}
}

// counted is an answer of describe_schema or get_ddl, which depends on the input.
type counted interface{ tool.Counter }

//go:embed examples/*.json
var exampleFiles embed.FS

// examples are a tool's requests with the answers that testdata/example.sql gives;
// `go test -run TestExamples -update` writes the answers.
func examples(name string) []tool.Example { return tool.Examples(exampleFiles, name) }

const (
	toolExecuteReadSQL = "execute_read_sql"
	maxSQL             = 8000
	defaultSQLRows     = 1000
	maxSQLRows         = 1_000_000
)

// readSQLDoc documents data of execute_read_sql.
type readSQLDoc struct {
	Columns []struct {
		Name string `json:"name" jsonschema:"Name as the server gives it; the same name may come twice"`
		Type string `json:"type" jsonschema:"The server's type, such as bigint, decimal, varchar, datetime"`
	} `json:"columns" jsonschema:"The columns in order"`
	Rows        [][]any `json:"rows" jsonschema:"One array per row, its values in the order of columns"`
	RowCount    int64   `json:"row_count" jsonschema:"Number of rows in this answer"`
	Truncated   bool    `json:"truncated" jsonschema:"true when the statement has more rows than this answer; false when its own LIMIT ended it"`
	RowLimit    int64   `json:"row_limit" jsonschema:"The row cap that applied: limit, or less where the server allows less"`
	TruncatedBy string  `json:"truncated_by,omitempty" jsonschema:"bytes when the size of the answer cut it (max_result_bytes, over MCP 40,000 bytes); absent when the row cap did. With no row at all, the first is larger than an answer may be: select fewer or shorter columns, such as LEFT(col, 1000)"`
	// Warnings are what the server and the guard noticed.
	Warnings []tool.Warning `json:"warnings,omitempty" jsonschema:"What may have been meant otherwise, such as a text compared as a date; absent when there is nothing"`
}

func executeReadSQLTool(s *Service) tool.Tool {
	all, perKey := s.statements.turns.Limits()
	return tool.New(tool.Declaration{
		Name: toolExecuteReadSQL, Position: 3, Category: tool.Explore, Scope: "sql", RecordsItself: true,
		Description: "Run one read-only SQL statement on the source database (MariaDB or MySQL): SELECT, WITH ... SELECT, SHOW, " +
			"EXPLAIN or DESCRIBE; no INTO, no locking clause, no variables with :=. Functions of text, number, date, JSON, regexp, " +
			"aggregate, window, control, cast, hash and network, not of XML, geometry, locks, files or the session; stored ones " +
			"only where the operator names them. SHOW TABLES, COLUMNS, INDEX, CREATE TABLE, VARIABLES and the like, with LIKE or a " +
			"plain WHERE; of the server's schemas, information_schema where it describes tables. Joins, aggregates and ORDER BY " +
			"run over all data; only the final rows are capped at limit, and truncated says whether there were more. warnings " +
			"tells what looks meant otherwise. Integers beyond ±2^53 and decimals are strings, DATETIME is 2026-01-31T09:00:00 " +
			"without a zone (TIMESTAMP in UTC), binary data base64:…. B2C tables (member, campaign_application, review) are for " +
			"analytics, never for a mailing. Every statement is recorded. Start with describe_schema or get_ddl.",
		Input: schema.Object(
			schema.Required("sql", schema.String("One statement, without a semicolon.", schema.Length(1, maxSQL))),
			schema.Optional("limit", schema.Integer("Most rows to answer; the server's MCP_MAX_ROW_LIMIT holds too, and row_limit says "+
				"what applied.",
				schema.Range(1, maxSQLRows), schema.Default(defaultSQLRows))),
		),
		Output: schema.Of[readSQLDoc](),
		Errors: []tool.ErrorDoc{
			{Code: fault.Validation,
				Reason: "The input breaks its schema, the statement is not a single reading one (rule sql.…, with what to write instead), it has " +
					"too many columns (rule sql.columns), or the database refused it (rule sql.server, with details.db_errno), as one that needs more " +
					"than max_temporary_bytes."},
			{Code: fault.DBTimeout,
				Reason: "The statement ran longer than MCP_QUERY_TIMEOUT_MS, or than a second with JSON_ARRAYAGG, JSON_OBJECTAGG or long computed " +
					"texts, and was stopped. The same one would again, so it is not retryable: details.narrow says how to read less."},
			{Code: fault.RateLimit,
				Reason: "Too many statements run on the source database, or too many large answers are on their way, or another statement with " +
					"JSON_ARRAYAGG, JSON_OBJECTAGG or long computed texts runs (one at a time), or a statement of this key was stopped and the " +
					"database has not ended it yet: write that one cheaper (details.scope is source). Try again after retryAfter seconds."},
			{Code: fault.DB,
				Reason: "The source database cannot be reached or broke the statement off (deadlock, lock wait), or the call could not be recorded. " +
					"Try again in a moment."},
		},
		Limits: map[string]int64{
			"default_limit": defaultSQLRows, "max_row_limit": int64(s.MaxRowLimit), "max_result_bytes": int64(s.statements.byteLimit),
			"max_temporary_bytes": s.statements.tmpLimit,
			"max_sql_chars":       maxSQL, "query_timeout_ms": s.QueryTimeout.Milliseconds(),
			"max_concurrent": int64(all), "max_concurrent_per_key": int64(perKey),
		},
		Examples: examples(toolExecuteReadSQL),
		Timeout:  s.QueryTimeout + deadlineMargin,
	}, s.ExecuteReadSQL)
}
