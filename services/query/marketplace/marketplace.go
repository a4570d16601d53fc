// Package marketplace has what is known of the marketplace's schema without asking a source: which columns of its tables hold codes,
// dates and amounts, what columns refer to, and what the status codes of campaigns mean.
package marketplace

import "strings"

// Shape is what is known of a CRM table.
type Shape struct {
	Key string // the primary key, ascending with time
	// Codes are the columns that hold codes. No column with names, addresses or texts of people is among them.
	Codes []string
	// Amount is the signed column beside the first code; empty for none.
	Amount string
	// Date is the column that tells when a row came; empty for none.
	Date string
}

var shapes = map[string]Shape{
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
}

// ShapeOf is the shape of a table, by its name in lower case; false of any other table than the CRM's.
func ShapeOf(table string) (Shape, bool) {
	s, is := shapes[table]
	return s, is
}

// Referred is what a column of a CRM table refers to by its name; empty for nothing.
func Referred(table, column string) (toTable, toColumn string) {
	if table == "category" && column == "parent_id" {
		return "category", "category_id"
	}
	target := map[string]string{"category_id": "category", "partner_id": "partner", "brand_id": "brand", "campaign_id": "campaign",
		"member_id": "member"}[column]
	if target == "" || target == table {
		return "", ""
	}
	return target, column
}

// statuses are the status codes of campaigns that have a meaning.
var statuses = [...]struct{ code, meaning string }{
	{"1206", "accepting"}, {"1208", "under_review"}, {"1209", "closed"}, {"1210", "cancelled"}, {"1211", "rejected"},
}

// CampaignStatus is what a status code means, or nil.
func CampaignStatus(code string) *string {
	for i := range statuses {
		if statuses[i].code == code {
			return &statuses[i].meaning
		}
	}
	return nil
}

// StatusCodes are the codes that have a meaning.
func StatusCodes() []string {
	codes := make([]string, len(statuses))
	for i, s := range statuses {
		codes[i] = s.code
	}
	return codes
}

// CodeOf is the status code of a meaning, for who writes closed in place of 1209; empty for none.
func CodeOf(meaning string) string {
	for _, s := range statuses {
		if strings.EqualFold(strings.ReplaceAll(meaning, " ", "_"), s.meaning) {
			return s.code
		}
	}
	return ""
}
