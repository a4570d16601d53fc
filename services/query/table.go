package query

import "slices"

// Table is a base table of the source.
type Table struct {
	Name       string
	Comment    string
	ApproxRows int64
}

// Column is a column of a table.
type Column struct {
	Name     string  `json:"name" jsonschema:"Column name"`
	Type     string  `json:"type" jsonschema:"SQL type such as varchar(200)"`
	Nullable bool    `json:"nullable" jsonschema:"Whether the column may hold NULL"`
	Key      string  `json:"key" jsonschema:"PRI primary key, UNI unique, MUL first of a non-unique index, or empty"`
	Default  *string `json:"default" jsonschema:"Default value as plain text; null when there is none"`
	Extra    string  `json:"extra" jsonschema:"auto_increment and the like, or empty"`
	Comment  string  `json:"comment" jsonschema:"What the column holds, as the schema says it"`
	// References and Codes are describe_schema's.
	References *Reference `json:"references,omitempty" jsonschema:"What the column refers to; absent when it refers to nothing"`
	Codes      []Code     `json:"codes,omitempty" jsonschema:"The codes that the column holds, the most frequent first, up to 50; absent when it holds none"`
}

// SchemaTitle implements schema.Titled.
func (Column) SchemaTitle() string { return "Column" }

// TableColumns is the answer of describe_schema for one table.
type TableColumns struct {
	Table      string   `json:"table" jsonschema:"Table name"`
	Comment    string   `json:"comment" jsonschema:"What the table holds, as the schema says it"`
	ApproxRows int64    `json:"approx_rows" jsonschema:"Number of rows by the server's own estimate"`
	Columns    []Column `json:"columns" jsonschema:"The table's columns in order"`
	// CountedRows and Freshest are of what the rows say: at most ten minutes old.
	CountedRows int64      `json:"counted_rows,omitempty" jsonschema:"How many rows the codes were counted in, the newest ones of a large table; at most ten minutes ago"`
	Freshest    *Freshness `json:"freshest,omitempty" jsonschema:"How fresh the table is; absent without rows or dates"`
}

// Count is the number of columns.
func (t TableColumns) Count() int { return len(t.Columns) }

// Index is an index of a table.
type Index struct {
	Name    string   `json:"name" jsonschema:"Index name"`
	Unique  bool     `json:"unique" jsonschema:"Whether no two rows are equal in it"`
	Type    string   `json:"type" jsonschema:"BTREE, FULLTEXT and the like"`
	Columns []string `json:"columns" jsonschema:"Its columns, or expressions, in order: name(20) of the first 20 characters alone, name DESC of descending ones"`
	Unused  bool     `json:"unused,omitempty" jsonschema:"Whether the server leaves it alone when it plans: INVISIBLE or IGNORED"`
}

// TableDDL is the answer of get_ddl for one table.
type TableDDL struct {
	Table   string   `json:"table" jsonschema:"Table name"`
	DDL     string   `json:"ddl" jsonschema:"CREATE TABLE statement, indexes included"`
	Columns []Column `json:"columns" jsonschema:"The table's columns in order"`
	// Indexes is nil when they were not asked for.
	Indexes []Index `json:"indexes,omitzero" jsonschema:"The table's indexes, the primary key first; absent when includeIndexes is false"`
}

// Count is the number of columns.
func (t TableDDL) Count() int { return len(t.Columns) }

// SchemaTable is a row of describe_schema without a table.
type SchemaTable struct {
	Name        string `json:"name" jsonschema:"Table name"`
	Audience    string `json:"audience" jsonschema:"B2B, whose people may be written to, or B2C, which is for analytics only"`
	Description string `json:"description" jsonschema:"What the table holds"`
	ApproxRows  int64  `json:"approx_rows" jsonschema:"Number of rows by the server's own estimate"`
}

// SchemaTables is the answer of describe_schema without a table.
type SchemaTables struct {
	Tables []SchemaTable `json:"tables" jsonschema:"The curated CRM tables that the source has"`
}

// Count is the number of tables.
func (t SchemaTables) Count() int { return len(t.Tables) }

// DDLTable is a row of get_ddl without a table.
type DDLTable struct {
	Name       string `json:"name" jsonschema:"Table name"`
	ApproxRows int64  `json:"approx_rows" jsonschema:"Number of rows by the server's own estimate"`
	PrimaryCRM bool   `json:"primary_crm" jsonschema:"Whether describe_schema lists the table as one of the CRM's"`
}

// DDLTables is the answer of get_ddl without a table.
type DDLTables struct {
	Tables []DDLTable `json:"tables" jsonschema:"Every base table of the source, by name"`
}

// Count is the number of tables.
func (t DDLTables) Count() int { return len(t.Tables) }

// crmTables are the curated tables, in the order in which they are shown.
var crmTables = [...]SchemaTable{
	{Name: "category", Audience: "B2B", Description: "Product category tree"},
	{Name: "category_name", Audience: "B2B", Description: "Category name in each language"},
	{Name: "partner", Audience: "B2B", Description: "B2B account (corporate member)"},
	{Name: "partner_admin", Audience: "B2B", Description: "Corporate contact person of a partner; the only kind of e-mail recipient"},
	{Name: "brand", Audience: "B2B", Description: "Marketing unit owned by one partner"},
	{Name: "campaign", Audience: "B2B", Description: "One marketing run"},
	{Name: "deposit_transaction", Audience: "B2B", Description: "Liter deposits of a brand; the newest row holds the current balance"},
	{Name: "member", Audience: "B2C", Description: "B2C general member and reviewer; not marketable"},
	{Name: "campaign_application", Audience: "B2C", Description: "A member's application to a campaign (B2C)"},
	{Name: "review", Audience: "B2C", Description: "A member's review of a campaign's product (B2C)"},
}

// curated picks the CRM tables out of those that exist.
func curated(existing []Table) SchemaTables {
	out := SchemaTables{Tables: []SchemaTable{}}
	for _, t := range crmTables {
		i := slices.IndexFunc(existing, func(e Table) bool { return e.Name == t.Name })
		if i < 0 {
			continue
		}
		t.ApproxRows = existing[i].ApproxRows
		if comment := existing[i].Comment; comment != "" {
			t.Description = comment // the source's own words win
		}
		out.Tables = append(out.Tables, t)
	}
	return out
}

// flagged lists the tables, the CRM's marked.
func flagged(existing []Table) DDLTables {
	out := DDLTables{Tables: make([]DDLTable, len(existing))}
	for i, e := range existing {
		crm := slices.ContainsFunc(crmTables[:], func(t SchemaTable) bool { return t.Name == e.Name })
		out.Tables[i] = DDLTable{Name: e.Name, ApproxRows: e.ApproxRows, PrimaryCRM: crm}
	}
	return out
}
