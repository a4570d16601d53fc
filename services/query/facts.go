package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/query/known"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/sqlguard/notice"
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

// Freshness is the greatest date of a table that is not in the future.
type Freshness struct {
	Column string   `json:"column" jsonschema:"Column that was looked at"`
	At     DateTime `json:"at" jsonschema:"Its greatest value up to now among the newest rows, without a zone"`
	// InFuture tells of rows that are dated wrongly, or ahead.
	InFuture int64 `json:"in_future,omitempty" jsonschema:"How many of the newest 10000 rows are later than now; absent for none"`
}

// TableFacts are what the rows of a CRM table say beside its schema.
type TableFacts struct {
	// Codes are by column, the most frequent of them; More says of a column that it has others.
	Codes map[string][]Code
	More  map[string]bool
	// Counted is how many rows were counted; less than all where there are many.
	Counted int64
	// Declared are the foreign keys by column.
	Declared map[string]Reference
	// Freshest is nil of a table without rows or dates.
	Freshest *Freshness
}

// factsOf are what the rows of a table said, at most age ago.
func (s *Service) factsOf(ctx context.Context, table string, shape marketplace.Shape, age time.Duration) TableFacts {
	facts, _ := s.facts.Get(ctx, strings.ToLower(table), age, func(ctx context.Context) (TableFacts, error) {
		return s.Source.Facts(ctx, table, shape)
	})
	return facts
}

// NewestPath is where the gateway asks how new the source's rows are.
const NewestPath = "/internal/source/newest"

// NewestRequest asks for it.
type NewestRequest struct{}

// NewestResponse has the time of the newest row up to now, without a zone, of each table that grows by the day. A table without
// rows, or one that was not read within two seconds, is not there.
type NewestResponse struct {
	Newest map[string]DateTime `json:"newest"`
}

// newestRows tells how new the rows were at most ten minutes ago. It reads no more of a table than that.
func (s *Service) newestRows(ctx context.Context, _ NewestRequest) (NewestResponse, error) {
	r := NewestResponse{Newest: map[string]DateTime{}}
	for _, table := range []string{"campaign", "campaign_application", "deposit_transaction"} {
		shape, _ := marketplace.ShapeOf(table)
		facts, _ := s.facts.Get(ctx, "newest "+table, knownAge, func(ctx context.Context) (TableFacts, error) {
			return s.Source.Facts(ctx, table, marketplace.Shape{Key: shape.Key, Date: shape.Date})
		})
		if facts.Freshest != nil {
			r.Newest[table] = facts.Freshest.At
		}
	}
	return r, nil
}

// withFacts adds to the description of a table what its rows say.
func (s *Service) withFacts(ctx context.Context, t *TableColumns) {
	shape, crm := marketplace.ShapeOf(t.Table)
	facts := s.factsOf(ctx, t.Table, shape, knownAge)
	for i := range t.Columns {
		c := &t.Columns[i]
		if declared, ok := facts.Declared[c.Name]; ok {
			c.References = &declared
		} else if table, column := marketplace.Referred(t.Table, c.Name); crm && table != "" {
			c.References = &Reference{Table: table, Column: column}
		}
		c.Codes = facts.Codes[c.Name]
	}
	t.CountedRows, t.Freshest = facts.Counted, facts.Freshest
}

const (
	// knownAge is how long what was read of the source for the sake of messages is good for.
	knownAge = 10 * time.Minute
	// catalogAge is how long the names and types of columns are.
	catalogAge = time.Minute
	// noticedLimit is how long an empty answer waits for why it is empty, beside one look that has begun.
	noticedLimit = 2 * time.Second
	// mostCodes is how many codes a message lists.
	mostCodes = 20
)

// noticed warns of what a statement may have meant otherwise, as the types of its columns and the categories tell, and of an answer
// with nothing in it what it looked for.
func (s *Service) noticed(ctx context.Context, text string, empty bool) (list []tool.Warning) {
	catalog, good := s.catalog.Get(ctx, "", catalogAge, s.Source.Catalog)
	if !good {
		return nil
	}
	for _, n := range catalog.Notices(text) {
		list = append(list, tool.Warning{Rule: n.Rule, Message: n.Message})
	}
	lower := strings.ToLower(text)
	ofCategory := strings.Contains(lower, "category_id") && !strings.Contains(lower, "parent_id") && catalog.Reads(text, "BRAND")
	if !empty && !ofCategory {
		return list
	}
	ctx, cancel := context.WithTimeout(ctx, noticedLimit)
	defer cancel()
	compared := catalog.Compared(text, s.Now().UTC())
	if ofCategory {
		list = append(list, s.categories.below(ctx, compared)...)
	}
	if !empty {
		return list
	}
	for _, c := range compared {
		if w := s.nothing(ctx, c); w != nil && !slices.Contains(list, *w) {
			list = append(list, *w)
		}
	}
	return list
}

// nothing is why a comparison finds nothing: the word NULL as a text, a code that no row has, or a time later than the newest row;
// nil where that is not known.
func (s *Service) nothing(ctx context.Context, c notice.Comparison) *tool.Warning {
	if c.Nullable && slices.ContainsFunc(c.Texts, func(text string) bool { return strings.EqualFold(text, "NULL") }) {
		return &tool.Warning{Rule: "sql.null", Message: fmt.Sprintf("%s.%s is compared with the text 'NULL', which is a word: write %[2]s IS "+
			"NULL for what has no value", c.Table, c.Column)}
	}
	shape, crm := marketplace.ShapeOf(c.Table)
	isCode := slices.Contains(shape.Codes, c.Column) && len(c.Texts) > 0
	if !crm || !isCode && (c.Since.IsZero() || c.Column != shape.Date) || ctx.Err() != nil {
		return nil
	}
	w := withoutFacts(c, s.factsOf(ctx, c.Table, shape, knownAge), isCode)
	if w != nil { // which may have come since
		w = withoutFacts(c, s.factsOf(ctx, c.Table, shape, known.Retry), isCode)
	}
	return w
}

// withoutFacts is why a comparison finds nothing in a table of which these are the facts: a code that no row has, where isCode, or a
// time later than the newest row.
func withoutFacts(c notice.Comparison, facts TableFacts, isCode bool) *tool.Warning {
	if isCode {
		exist := make([]string, 0, len(facts.Codes[c.Column]))
		for _, code := range facts.Codes[c.Column] {
			exist = append(exist, code.Value)
		}
		if len(exist) == 0 || facts.More[c.Column] || slices.ContainsFunc(c.Texts, func(text string) bool {
			return slices.ContainsFunc(exist, func(code string) bool { return sameCode(strings.TrimRight(text, " "), code) })
		}) {
			return nil
		}
		return &tool.Warning{Rule: "sql.codes", Message: unknownCode(c.Table, c.Column, c.Texts[0], exist) +
			fmt.Sprintf(" in the newest %d rows", facts.Counted)}
	}
	if facts.Freshest == nil {
		return nil
	}
	newest, err := time.Parse("2006-01-02T15:04:05", strings.SplitN(string(facts.Freshest.At), ".", 2)[0])
	if err != nil || !c.Since.After(newest) {
		return nil
	}
	return &tool.Warning{Rule: "sql.stale", Message: fmt.Sprintf("the newest %s up to now is of %s (%s), and the statement looks from %s on: "+
		"the source has nothing of that time, which does not say that nothing happened", c.Table, facts.Freshest.At, c.Column,
		c.Since.Format("2006-01-02T15:04:05"))}
}

// sameCode reports whether a server may take a text for a code: 5.0 and 05 are 5 in a column of numbers.
func sameCode(text, code string) bool {
	x, errX := strconv.ParseFloat(text, 64)
	y, errY := strconv.ParseFloat(code, 64)
	return strings.EqualFold(text, code) || errX == nil && errY == nil && x == y
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
	exist, good := s.codes.Get(ctx, table+"."+column, knownAge, read)
	hasAll := func() bool {
		return !slices.ContainsFunc(missing, func(code string) bool { return !slices.ContainsFunc(exist, is(code)) })
	}
	if good && !hasAll() { // which may have come since
		exist, good = s.codes.Get(ctx, table+"."+column, known.Retry, read)
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
	if meaning := marketplace.CodeOf(code); meaning != "" {
		message += fmt.Sprintf("; %s is %s", code, meaning)
	}
	list := slices.Clone(exist)
	for i, c := range list {
		if meant := marketplace.CampaignStatus(c); meant != nil && column == "status_code" {
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
