package query

import (
	"context"
	"strings"
)

// Code is a value of a column that holds codes.
type Code struct {
	Value string `json:"value" jsonschema:"The code as it is stored"`
	Rows  int64  `json:"rows" jsonschema:"How many of the counted rows have it"`
	// Negative and Positive tell the sign of the table's amount in these rows.
	Negative *int64 `json:"negative_amounts,omitempty" jsonschema:"How many of these rows have an amount below 0; only where the table has amounts"`
	Positive *int64 `json:"positive_amounts,omitempty" jsonschema:"How many of these rows have an amount above 0; only where the table has amounts"`
}

// Reference tells which column a column refers to.
type Reference struct {
	Table  string `json:"table" jsonschema:"Table that the column refers to"`
	Column string `json:"column" jsonschema:"Column of that table"`
	// Declared tells a foreign key of the schema from what the names say.
	Declared bool `json:"declared" jsonschema:"Whether the schema has a foreign key; otherwise it is so by convention, and a row may be missing"`
}

// Freshness is the greatest date of a table.
type Freshness struct {
	Column string   `json:"column" jsonschema:"Column that was looked at"`
	At     DateTime `json:"at" jsonschema:"Its greatest value among the newest rows, without a zone"`
}

// TableFacts are what the rows of a CRM table say beside its schema.
type TableFacts struct {
	// Codes are by column.
	Codes map[string][]Code
	// Counted is how many rows were counted; less than all where there are many.
	Counted int64
	// Declared are the foreign keys by column.
	Declared map[string]Reference
	// Freshest is nil of a table without rows or dates.
	Freshest *Freshness
}

// TableShape is what is known of a CRM table without asking the source.
type TableShape struct {
	Key string // the primary key, ascending with time
	// Codes are the columns that hold codes.
	Codes []string
	// Amount is the signed column beside the first code; empty for none.
	Amount string
	// Date is the column that tells when a row came; empty for none.
	Date string
}

// shapes are the CRM tables'. No column with names, addresses or texts of people is among the codes.
func shapes(table string) (TableShape, bool) {
	s, ok := map[string]TableShape{
		"category":             {Key: "category_id"},
		"category_name":        {Key: "category_id", Codes: []string{"language"}},
		"partner":              {Key: "partner_id", Codes: []string{"country_code"}, Date: "created_at"},
		"partner_admin":        {Key: "partner_admin_id", Codes: []string{"account_status", "email_verified"}, Date: "created_at"},
		"brand":                {Key: "brand_id", Codes: []string{"country_code"}, Date: "created_at"},
		"campaign":             {Key: "campaign_id", Codes: []string{"status_code"}, Date: "created_at"},
		"deposit_transaction":  {Key: "deposit_transaction_id", Codes: []string{"kind"}, Amount: "amount_liter", Date: "created_at"},
		"member":               {Key: "member_id", Codes: []string{"country_code"}, Date: "created_at"},
		"campaign_application": {Key: "campaign_application_id", Codes: []string{"status"}, Date: "applied_at"},
		"review":               {Key: "review_id", Codes: []string{"rating"}, Date: "created_at"},
	}[table]
	return s, ok
}

// referred is what a column of a CRM table refers to by its name, or nil.
func referred(table, column string) *Reference {
	target := map[string]string{"category_id": "category", "partner_id": "partner", "brand_id": "brand", "campaign_id": "campaign",
		"member_id": "member"}[column]
	if table == "category" && column == "parent_id" {
		return &Reference{Table: "category", Column: "category_id"}
	}
	if target == "" || target == table {
		return nil
	}
	return &Reference{Table: target, Column: column}
}

// withFacts adds to the description of a table what its rows say.
func (s *Service) withFacts(ctx context.Context, t *TableColumns) {
	shape, crm := shapes(t.Table)
	facts, _ := s.facts.get(ctx, strings.ToLower(t.Table), knownAge, func(ctx context.Context) (TableFacts, error) {
		if !crm {
			shape = TableShape{}
		}
		return s.Source.Facts(ctx, t.Table, shape)
	})
	for i := range t.Columns {
		c := &t.Columns[i]
		if declared, ok := facts.Declared[c.Name]; ok {
			c.References = &declared
		} else if crm {
			c.References = referred(t.Table, c.Name)
		}
		c.Codes = facts.Codes[c.Name]
	}
	t.CountedRows, t.Freshest = facts.Counted, facts.Freshest
}
