package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
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

const (
	// knownAge is how long what was read of the source for the sake of messages is good for.
	knownAge = 10 * time.Minute
	// knownRetry is how soon it is read again: because that failed, or because it seems to be too old.
	knownRetry = time.Minute
	// knownLimit bounds the wait for it: the answer is complete without.
	knownLimit = 2 * time.Second
	// mostCodes is how many codes a message lists.
	mostCodes = 20
)

// known keeps what is read of the source beside answers, by name. One caller at a time reads an entry; who comes meanwhile
// waits. What could not be read is the zero value, until knownRetry has passed.
type known[V any] struct {
	now     func() time.Time
	mu      sync.Mutex
	entries map[string]*knownEntry[V]
}

type knownEntry[V any] struct {
	reading chan struct{} // holds one token while a caller reads
	value   V
	good    bool
	at      time.Time
}

func newKnown[V any](now func() time.Time) *known[V] {
	return &known[V]{now: now, entries: map[string]*knownEntry[V]{}}
}

// get returns what is known under a name, at most age old, or reads it.
func (k *known[V]) get(ctx context.Context, name string, age time.Duration, read func(context.Context) (V, error)) (value V, good bool) {
	k.mu.Lock()
	e := k.entries[name]
	if e == nil {
		e = &knownEntry[V]{reading: make(chan struct{}, 1)}
		k.entries[name] = e
	}
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, knownLimit)
	defer cancel()
	select {
	case e.reading <- struct{}{}:
	case <-ctx.Done():
		return value, false
	}
	defer func() { <-e.reading }()
	if e.at.IsZero() || k.now().Sub(e.at) >= age || !e.good && k.now().Sub(e.at) >= knownRetry {
		fresh, err := read(ctx)
		if e.at = k.now(); err == nil {
			e.value = fresh
		}
		e.good = err == nil
	}
	return e.value, e.good
}

// unknownCodes warns of codes that no row of a column of the source has. seen are those of the answer, which need no look.
func (s *Service) unknownCodes(ctx context.Context, rule, table, column string, codes, seen []string) []tool.Warning {
	is := func(code string) func(string) bool {
		return func(other string) bool { return strings.EqualFold(code, other) }
	}
	missing := slices.DeleteFunc(slices.Clone(codes), func(code string) bool { return slices.ContainsFunc(seen, is(code)) })
	if len(missing) == 0 {
		return nil
	}
	read := func(ctx context.Context) ([]string, error) { return s.Source.Codes(ctx, table, column) }
	exist, good := s.codes.get(ctx, table+"."+column, knownAge, read)
	hasAll := func() bool {
		return !slices.ContainsFunc(missing, func(code string) bool { return !slices.ContainsFunc(exist, is(code)) })
	}
	if good && !hasAll() { // which may have come since
		exist, good = s.codes.get(ctx, table+"."+column, knownRetry, read)
	}
	if !good || hasAll() {
		return nil
	}
	missing = slices.DeleteFunc(missing, func(code string) bool { return slices.ContainsFunc(exist, is(code)) })
	return []tool.Warning{{Rule: rule, Message: unknownCode(table, column, missing[0], exist)}}
}

func unknownCode(table, column, code string, exist []string) string {
	message := fmt.Sprintf("no %s of the source has the %s %.40q", table, column, code)
	if nearest := schema.Nearest(code, exist); nearest != "" && len(code) > 3 {
		message += ": did you mean " + nearest + "?"
	}
	if meaning := codeOf(code); meaning != "" {
		message += fmt.Sprintf("; %s is %s", code, meaning)
	}
	list := slices.Clone(exist)
	for i, c := range list {
		if meant := CampaignStatus(c); meant != nil && column == "status_code" {
			list[i] += " (" + *meant + ")"
		}
	}
	switch {
	case len(list) == 0:
		return message + "; there is none at all"
	case len(list) > mostCodes:
		return message + fmt.Sprintf("; there are %s and %d more", strings.Join(list[:mostCodes], ", "), len(list)-mostCodes)
	}
	return message + "; there are " + strings.Join(list, ", ")
}

// codeOf is the status code of a meaning, for who writes closed in place of 1209.
func codeOf(meaning string) string {
	for _, s := range statuses {
		if strings.EqualFold(strings.ReplaceAll(meaning, " ", "_"), s.meaning) {
			return s.code
		}
	}
	return ""
}
