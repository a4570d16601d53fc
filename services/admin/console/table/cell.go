// Package table shows a table as people read it: numbers grouped and aligned, moments and addresses recognised, series
// drawn, records in cells laid out. It takes any JSON for a row, and answers text for templates to escape.
package table

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/jsontree"
	"hub.internal/pkg/markup"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
	"hub.internal/services/admin/console/charts"
)

const (
	// maxText is how many characters of a text a cell shows, maxWhole how many when it is opened. The CSV has all.
	maxText, maxWhole = 200, 5000
	// maxParts bounds the members of a record and of a list in a cell.
	maxParts = 8
	maxPart  = 120
)

// Cell is a value as it is shown: one of its parts is set, or none for what is absent.
type Cell struct {
	Text string
	// Whole is the text of which Text is the beginning.
	Whole string
	// Href makes the text a link.
	Href string
	At   time.Time
	// Day tells that of At only the day is shown.
	Day    bool
	Series *Series
	// Bar stands beside Text.
	Bar   *web.Bar
	Parts []Part
	// More is how many parts are not shown.
	More int

	number bool
	value  float64
}

// Part is a member of a record, or an entry of a list, which has no name.
type Part struct{ Name, Text string }

// Empty tells that there is nothing to show.
func (c Cell) Empty() bool {
	return c.Text == "" && c.At.IsZero() && c.Series == nil && len(c.Parts) == 0
}

// Key is what the column is sorted by, where that is not the text that is shown.
func (c Cell) Key() string {
	switch {
	case c.number:
		return strconv.FormatFloat(c.value, 'g', -1, 64)
	case !c.At.IsZero():
		return c.At.UTC().Format(time.RFC3339Nano)
	}
	return ""
}

var (
	day      = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	moment   = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?$`)
	decimal  = regexp.MustCompile(`^-?\d{1,30}\.\d{1,30}$`)
	mailbox  = regexp.MustCompile(`^[^\s@:/]+@[^\s@:/]+\.[^\s@:/]+$`)
	identity = regexp.MustCompile(`(?i)^(id|year|code|no)$|_(id|year|code|no)$|[a-z](Id|Year|Code|No)$`)
)

// cellOf shows a value; plain says that its number is a name, such as an id.
func cellOf(ctx context.Context, raw json.RawMessage, plain bool) Cell {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == 'n' {
		return Cell{}
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return Cell{}
		}
		return textCell(s, plain)
	case 't':
		return Cell{Text: i18n.T(ctx, "yes")}
	case 'f':
		return Cell{Text: i18n.T(ctx, "no")}
	case '[':
		return listCell(ctx, raw)
	case '{':
		return recordCell(ctx, raw)
	}
	return numberCell(string(raw), plain)
}

// formatted shows a value in the format of its column; false for one that does not fit it, and for a format of a later release.
func formatted(raw json.RawMessage, format string) (Cell, bool) {
	if format == admin.Date {
		day, at, ok := admin.DateOf(raw)
		return Cell{Text: day, At: at, Day: true}, ok
	}
	if format == admin.Sparkline {
		values, ok := admin.Numbers(raw)
		if !ok {
			return Cell{}, false
		}
		s := &Series{values}
		return Cell{Series: s, number: true, value: s.newest()}, true
	}
	value, ok := admin.Number(raw)
	c := Cell{number: true, value: value, Text: charts.Number(strings.Trim(string(raw), `" `))}
	switch format {
	case admin.Percent:
		c.Text = charts.Percent(value)
	case admin.Money:
		c.Text = charts.WithUnit(c.Text, "₩")
	case admin.InBar:
		c.Bar = new(web.Bar) // of the column's largest, which is not known yet
	default:
		ok = false
	}
	return c, ok
}

// numberCell is a number: grouped by thousands unless it is plain, and sorted by its value.
func numberCell(literal string, plain bool) Cell {
	value, err := strconv.ParseFloat(literal, 64)
	if err != nil && math.IsInf(value, 0) {
		return Cell{Text: text.Shorten(literal, maxText)}
	}
	shown := charts.Number(literal)
	if plain {
		shown = text.Shorten(literal, maxText)
	}
	return Cell{Text: shown, number: true, value: value}
}

// textCell is a text as what it looks like: a number, a moment, a link to an address that a page may lead to, or else words.
func textCell(s string, plain bool) Cell {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return Cell{}
	case decimal.MatchString(s):
		return numberCell(s, plain)
	case day.MatchString(s):
		return Cell{Text: s}
	case moment.MatchString(s): // of no known zone
		return Cell{Text: strings.Replace(s, "T", " ", 1)}
	}
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil && !at.IsZero() {
		return Cell{At: at}
	}
	c := Cell{Text: text.Shorten(s, maxText)}
	if c.Text != s {
		c.Whole = text.Shorten(s, maxWhole)
	}
	address := s
	if mailbox.MatchString(s) {
		address = "mailto:" + s
	}
	if to, ok := markup.Address(address); ok && !strings.HasPrefix(to, "tel:") {
		c.Href, c.Whole = to, ""
	}
	return c
}

// listCell is a list: of numbers a line, of others their texts.
func listCell(ctx context.Context, raw json.RawMessage) Cell {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return Cell{}
	}
	if s := seriesOf(list); s != nil {
		return Cell{Series: s, number: true, value: s.values[len(s.values)-1]}
	}
	var c Cell
	for _, v := range list[:min(len(list), maxParts)] {
		c.Parts = append(c.Parts, Part{Text: partOf(ctx, v, false)})
	}
	c.More = len(list) - len(c.Parts)
	return c
}

// recordCell lays out an object in the order of its members.
func recordCell(ctx context.Context, raw json.RawMessage) Cell {
	var c Cell
	members, _ := jsontree.Members(raw) // what is no object has nothing to show
	for _, m := range members {
		if len(c.Parts) == maxParts {
			c.More++
			continue
		}
		if part := partOf(ctx, m.Value, identity.MatchString(m.Name)); part != "" {
			key, _ := markup.Text(m.Name)
			c.Parts = append(c.Parts, Part{Name: text.Shorten(strings.ReplaceAll(key, "_", " "), 40), Text: part})
		}
	}
	return c
}

// partOf is a value within a cell, in one line.
func partOf(ctx context.Context, raw json.RawMessage, plain bool) string {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
		var b bytes.Buffer
		if json.Compact(&b, raw) != nil {
			return ""
		}
		return text.Shorten(b.String(), maxPart)
	}
	c := cellOf(ctx, raw, plain)
	if !c.At.IsZero() {
		return c.At.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	return text.Shorten(c.Text, maxPart)
}

// numeric tells that all cells with something in them are numbers.
func numeric(cells []Cell) bool {
	return slices.ContainsFunc(cells, func(c Cell) bool { return c.number }) &&
		!slices.ContainsFunc(cells, func(c Cell) bool { return !c.number && !c.Empty() })
}
