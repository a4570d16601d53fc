package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/picture"
	"hub.internal/pkg/schema"
)

// The types of a section.
const (
	Text     = "text"
	Stats    = "stats"
	Table    = "table"
	Bar      = "bar"
	Line     = "line"
	Progress = "progress"
)

// Bounds of a page.
const (
	maxSections    = 50
	maxTitle       = 200
	maxDescription = 1000
	maxCaption     = 1000
	maxCards       = 100
	maxColumns     = 50
	maxRows        = 1000
	// maxCells bounds the tables and charts of a page together: rows take nothing where they are empty, and their cells do.
	maxCells = 50_000
	maxKey   = 100
	maxLabel = 200
	maxValue = 200
	maxUnit  = 50
	maxHint  = 500
	// maxPoints and maxSeries bound a chart, maxGoals a progress section.
	maxPoints = 200
	maxSeries = 6
	maxGoals  = 100
	// maxNumber bounds the numbers that are drawn, in both directions: beyond it they lose digits.
	maxNumber = 1e15
	// maxPixels bounds the pictures of a page together, and so how long they take to decode; pkg/picture bounds each.
	maxPixels = 12 << 20
)

// Section is a part of a page. What belongs to another type is absent.
type Section struct {
	Type    string            `json:"type" jsonschema:"text, stats, table, bar, line or progress"`
	Title   *string           `json:"title,omitempty" jsonschema:"Heading"`
	Body    *string           `json:"body,omitempty" jsonschema:"Of text: HTML, without what was removed"`
	Cards   []Card            `json:"cards,omitzero" jsonschema:"Of stats"`
	Columns []Column          `json:"columns,omitzero" jsonschema:"Of a table"`
	Rows    []json.RawMessage `json:"rows,omitzero" jsonschema:"Of a table: objects"`
	Labels  []string          `json:"labels,omitzero" jsonschema:"Of a bar or line chart: what each of the values is of"`
	Series  []Series          `json:"series,omitzero" jsonschema:"Of a bar or line chart"`
	Items   []Goal            `json:"items,omitzero" jsonschema:"Of progress"`
	Unit    *string           `json:"unit,omitempty" jsonschema:"Of a chart and of progress: what stands beside each number"`
	Caption *string           `json:"caption,omitempty" jsonschema:"Of all but text and stats"`
}

// Card is a number that matters, or a word.
type Card struct {
	Label string `json:"label" jsonschema:"What it is"`
	// Value is a string or a number.
	Value json.RawMessage `json:"value" jsonschema:"A text or a number"`
	Unit  *string         `json:"unit,omitempty" jsonschema:"Behind the value"`
	// Delta is a string or a number.
	Delta json.RawMessage `json:"delta,omitempty" jsonschema:"How it has changed: a text or a number"`
	Hint  *string         `json:"hint,omitempty" jsonschema:"A line below"`
}

// Column is a column of a table: Key names a member of each row, or with dots a member of a member.
type Column struct {
	Key   string  `json:"key" jsonschema:"Member of each row"`
	Label string  `json:"label" jsonschema:"Heading"`
	Align *string `json:"align,omitempty" jsonschema:"left, right or center"`
	// Format is one of those of figure.go; one of a later release does nothing.
	Format *string `json:"format,omitempty" jsonschema:"percent, money, bar, sparkline or date"`
}

// members are those of each type beside type and title; the ones it needs come first.
var members = map[string]struct{ needs, may []string }{
	Text:     {needs: []string{"body"}},
	Stats:    {needs: []string{"cards"}},
	Table:    {needs: []string{"columns", "rows"}, may: []string{"caption"}},
	Bar:      {needs: []string{"labels", "series"}, may: []string{"unit", "caption"}},
	Line:     {needs: []string{"labels", "series"}, may: []string{"unit", "caption"}},
	Progress: {needs: []string{"items"}, may: []string{"unit", "caption"}},
}

// textPolicy is what of the HTML of a text section stays: what structures and stresses text, tables, pictures that
// the text carries itself, and links to https, mail, telephone and this console. No styles: a page looks like the
// console, by day and night. DESIGN.md lists it.
var textPolicy = markup.Page(
	"a", "b", "blockquote", "br", "cite", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
	"img", "ins", "kbd", "li", "ol", "p", "pre", "s", "samp", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "tr",
	"u", "ul", "var", "wbr",
)

// CleanText is what of the HTML of a text section stays, with what was taken out. Its pictures stay as they are: they were made anew when
// the page was written.
func CleanText(body string) (string, []markup.Removed) { return textPolicy.Clean(body) }

// cleaner judges a page and takes out of it what nobody is to get.
type cleaner struct {
	schema.Violations
	removed []markup.Removed
	cells   int
	// pictures makes those of the texts anew.
	pictures picture.Redrawer
}

// sections judges what the schema does not, and returns what is stored. Where ctx ends, pictures are missing and nothing is
// stored: AddPage takes the same ctx.
func (c *cleaner) sections(ctx context.Context, in []sectionIn) []Section {
	out := make([]Section, len(in))
	for n, s := range in {
		out[n] = c.section(ctx, "/sections/"+strconv.Itoa(n), s)
	}
	return out
}

// section judges one section by its type; at is its JSON pointer.
func (c *cleaner) section(ctx context.Context, at string, in sectionIn) Section {
	c.members(at, in)
	out := Section{Type: in.Type, Title: c.optional(at+"/title", in.Title, maxTitle), Caption: c.prose(at+"/caption", in.Caption)}
	switch in.Type {
	case Text:
		if in.Body != nil {
			body, removed := textPolicy.Redraw(*in.Body, func(format string, data []byte) (string, []byte, error) {
				return c.pictures.Redraw(ctx, format, data)
			})
			c.removed = markup.Merge(c.removed, removed)
			out.Body = &body
		}
	case Stats:
		out.Cards = make([]Card, len(in.Cards))
		for n, card := range in.Cards {
			out.Cards[n] = c.card(at+"/cards/"+strconv.Itoa(n), card)
		}
	case Table:
		out.Columns = c.columns(at+"/columns", in.Columns)
		c.count(at+"/rows", len(in.Rows)*len(in.Columns))
		out.Rows = make([]json.RawMessage, len(in.Rows))
		for n, row := range in.Rows {
			out.Rows[n] = c.values(row)
		}
	case Bar, Line:
		out.Unit = c.optional(at+"/unit", in.Unit, maxUnit)
		out.Labels, out.Series = c.chart(at, in)
		c.count(at+"/series", len(in.Labels)*len(in.Series))
	case Progress:
		out.Unit = c.optional(at+"/unit", in.Unit, maxUnit)
		out.Items = make([]Goal, len(in.Items))
		for n, goal := range in.Items {
			out.Items[n] = c.goal(at+"/items/"+strconv.Itoa(n), goal)
		}
		c.count(at+"/items", len(in.Items))
	}
	return out
}

// members judges which a section has: that depends on its type, and the tool's schema is flat and does not say it.
func (c *cleaner) members(at string, in sectionIn) {
	all := []struct {
		name  string
		there bool
	}{{"body", in.Body != nil}, {"cards", in.Cards != nil}, {"columns", in.Columns != nil}, {"rows", in.Rows != nil},
		{"labels", in.Labels != nil}, {"series", in.Series != nil}, {"items", in.Items != nil}, {"unit", in.Unit != nil},
		{"caption", in.Caption != nil}}
	known := members[in.Type]
	for _, m := range all {
		switch needed := slices.Contains(known.needs, m.name); {
		case needed && !m.there:
			c.Add(at+"/"+m.name, "required", "is required of a %s section", in.Type)
		case m.there && !needed && !slices.Contains(known.may, m.name):
			c.Add(at+"/"+m.name, "section", "is no member of a %s section, which has %s beside type and title", in.Type,
				strings.Join(append(slices.Clone(known.needs), known.may...), ", "))
		}
	}
}

// count adds to the cells of the page; at is where there are too many.
func (c *cleaner) count(at string, cells int) {
	if c.cells += cells; c.cells > maxCells {
		c.Add(at, "maxCells", "makes more than %d cells of the page's tables and charts together; leave out some, or make another page", maxCells)
	}
}

// card reads a card: the schema knows no value that is a string or a number.
func (c *cleaner) card(at string, raw json.RawMessage) (out Card) {
	c.record(at, "card", raw, []string{"label", "value"}, []string{"unit", "delta", "hint"}, func(here, name string, v json.RawMessage) {
		switch name {
		case "label":
			out.Label = c.textOf(here, v, maxLabel)
		case "unit":
			out.Unit = new(c.textOf(here, v, maxUnit))
		case "hint":
			out.Hint = new(c.textOf(here, v, maxHint))
		case "value":
			out.Value = c.figure(here, v)
		case "delta":
			out.Delta = c.figure(here, v)
		}
	})
	return out
}

// record reads an object that the schema leaves free, member by member in the order of needs and may; kind names it in messages.
func (c *cleaner) record(at, kind string, raw json.RawMessage, needs, may []string, read func(here, name string, v json.RawMessage)) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(raw, &in); err != nil {
		c.Add(at, "type", "must be an object")
		return
	}
	all := slices.Concat(needs, may)
	for n, name := range all {
		if v, there := in[name]; there {
			read(at+"/"+name, name, v)
		} else if n < len(needs) {
			c.Add(at+"/"+name, "required", "is required of a %s", kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(all, name) {
			// A name in a JSON pointer (RFC 6901).
			here := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			c.Add(here, "additionalProperties", "is no member of a %s, which has %s", kind, strings.Join(all, ", "))
		}
	}
}

// figure is a string or a number.
func (c *cleaner) figure(at string, raw json.RawMessage) json.RawMessage {
	switch raw = bytes.TrimSpace(raw); {
	case raw[0] == '"':
		b, err := json.Marshal(c.textOf(at, raw, maxValue))
		if err != nil {
			c.Add(at, "type", "must be a string or a number")
		}
		return b
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		c.Add(at, "type", "must be a string or a number")
	case len(raw) > maxValue:
		c.Add(at, "maxLength", "must have at most %d digits", maxValue)
	}
	return raw
}

// textOf judges a value that has to be a text of at most so many characters.
func (c *cleaner) textOf(at string, raw json.RawMessage, most int) string {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		c.Add(at, "type", "must be a string")
		return ""
	}
	return c.line(at, *s, most)
}

// columns judges the columns of a table.
func (c *cleaner) columns(at string, in []columnIn) []Column {
	// first is the place of each key, to name it when the key comes again.
	out, first := make([]Column, len(in)), map[string]int{}
	if in != nil && len(in) == 0 {
		c.Add(at, "minItems", "must have at least one column")
	}
	for n, column := range in {
		here := at + "/" + strconv.Itoa(n)
		if earlier, twice := first[column.Key]; twice {
			c.Add(here+"/key", "uniqueItems", "is the key of column %d too; name each member once", earlier)
		} else {
			first[column.Key] = n
		}
		out[n] = Column{Key: column.Key, Label: c.line(here+"/label", column.Label, maxLabel), Align: column.Align,
			Format: column.Format}
	}
	return out
}

// line judges a text of one line and takes out what cannot be seen.
func (c *cleaner) line(at, text string, most int) string {
	c.Line(at, text, most)
	return c.visible(text)
}

// optional judges a text that may be missing.
func (c *cleaner) optional(at string, text *string, most int) *string {
	if text == nil || *text == "" {
		return nil
	}
	return new(c.line(at, *text, most))
}

// prose cleans a text of several lines; what readers will not get of it is noted.
func (c *cleaner) prose(at string, text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	c.Prose(at, *text)
	return new(c.visible(*text))
}

// visible takes out of a text what nobody sees, and notes it.
func (c *cleaner) visible(text string) string {
	clean, removed := markup.Text(text)
	if len(removed) > 0 {
		c.removed = markup.Merge(c.removed, removed)
	}
	return clean
}

// values is a row without the characters in its texts that nobody sees. Numbers and the order of members stay.
func (c *cleaner) values(row json.RawMessage) json.RawMessage {
	// Token by token: a row keeps the order of its members and each digit of its numbers, which a map and a float64 would not.
	in := jsontext.NewDecoder(bytes.NewReader(row))
	var b bytes.Buffer
	out := jsontext.NewEncoder(&b)
	for {
		token, err := in.ReadToken()
		if err != nil {
			break // the schema has read it to its end
		}
		if _, n := in.StackIndex(in.StackDepth()); token.Kind() == '"' && !(inObject(in) && n%2 == 1) {
			token = jsontext.String(c.visible(token.String()))
		}
		if err := out.WriteToken(token); err != nil {
			panic(fmt.Sprintf("admin: a row that was read cannot be written: %v", err)) // and the call answers E_INTERNAL
		}
	}
	return bytes.TrimSpace(b.Bytes())
}

// inObject tells whether the value that was read last stands in an object.
func inObject(d *jsontext.Decoder) bool {
	kind, _ := d.StackIndex(d.StackDepth())
	return kind == '{'
}
