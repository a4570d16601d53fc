package overview

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/services/admin/auditlog"
)

const logPath = "/admin/audit"

// maxText bounds what a filter looks for, in characters.
const maxText = 200

// filter is what of the log a page shows, as its address has it. The address is the saved search.
type filter struct {
	auditlog.Filter
	// Within is a range's name, for a search that stays true tomorrow; From and To go before it.
	Within string
	// Fields are those of the form with what was asked for, Values the address.
	Fields []web.Field
	Values url.Values
	// Wrong tells that a field could not be read.
	Wrong bool
}

// timeLayouts are the forms of a time that people write, in UTC.
var timeLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly, time.RFC3339}

// filterOf reads the address of a search. A time that cannot be read is marked at its field, and finds nothing.
func filterOf(v url.Values, now time.Time, owners auditlog.Owners) filter {
	f := filter{Values: url.Values{}}
	// typed takes a value over from the address, cut to what a column of the log can hold, and keeps it for links.
	typed := func(name string) string {
		s := text.Head(strings.TrimSpace(text.Storable(v.Get(name))), maxText)
		if s != "" {
			f.Values.Set(name, s)
		}
		return s
	}
	// field adds a field of text to the form.
	field := func(x web.Field, into *string) {
		*into = typed(x.Name)
		x.Value, x.MaxLength, x.Autocomplete, x.Quiet = *into, maxText, "off", true
		f.Fields = append(f.Fields, x)
	}
	// when adds a field of time to the form. People write times in several forms; all are UTC.
	when := func(x web.Field, into *time.Time) {
		var s string
		field(x, &s)
		for _, form := range timeLayouts {
			if at, err := time.ParseInLocation(form, s, time.UTC); err == nil && at.Year() > 1970 && at.Year() < 9999 {
				*into = at.UTC()
				return
			}
		}
		if s != "" {
			f.Fields[len(f.Fields)-1].Error = "This is no time such as 2026-01-31 09:30."
			f.Wrong = true
		}
	}
	field(web.Field{Name: "within", Label: "Within the last", Type: "select", Options: withins()}, &f.Within)
	when(web.Field{Name: "from", Label: "From (UTC)", Placeholder: "2026-01-31 09:30"}, &f.From)
	when(web.Field{Name: "to", Label: "To (UTC)", Placeholder: "2026-01-31 10:00"}, &f.To)
	field(web.Field{Name: "tool", Label: "Tool or act"}, &f.Tool)
	field(web.Field{Name: "outcome", Label: "Outcome", Type: "select", Options: outcomes()}, &f.Outcome)
	field(web.Field{Name: "caller", Label: "Caller’s id"}, &f.Caller)
	field(web.Field{Name: "person", Label: "Person"}, &f.Person)
	field(web.Field{Name: "draft", Label: "Draft’s id"}, &f.Draft)
	field(web.Field{Name: "request", Label: "Request id"}, &f.RequestID)
	field(web.Field{Name: "sql", Label: "Part of the SQL"}, &f.SQL)
	var by string
	field(web.Field{Name: "recorder", Label: "Recorded by", Type: "select",
		Options: []web.Option{{Value: "", Text: "Anybody"}, {Value: "foreign", Text: "No owner of the tool"}}}, &by)
	if by == "foreign" {
		f.Foreign = owners
	}
	if f.From.IsZero() {
		for _, g := range auditlog.Ranges() {
			if g.Name == f.Within {
				f.From = g.At(now)
			}
		}
	}
	return f
}

// withins are the choices of how far back a search goes.
func withins() []web.Option {
	list := []web.Option{{Value: "", Text: "Any time"}}
	for _, g := range auditlog.Ranges() {
		list = append(list, web.Option{Value: g.Name, Text: g.Text})
	}
	return list
}

// outcomes are the choices of an outcome: all codes that there are.
func outcomes() []web.Option {
	list := []web.Option{{Value: "", Text: "Any outcome"}, {Value: audit.OK, Text: "OK"}, {Value: auditlog.Failed, Text: "Any failure"}}
	var codes []string
	for code := range fault.Codes() {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	for _, code := range codes {
		list = append(list, web.Option{Value: code, Text: code})
	}
	return list
}

// outcome is the badge of an outcome.
func outcome(text string) web.Badge {
	switch {
	case text == audit.OK:
		return web.Badge{Kind: "good", Text: "OK"}
	case fault.Codes()[fault.Code(text)] >= 500:
		return web.Badge{Kind: "bad", Text: text}
	}
	return web.Badge{Kind: "warn", Text: text}
}

// address is a page of the log with the search.
func (f filter) address(path, after string) string {
	v := url.Values{}
	for name, list := range f.Values {
		v[name] = list
	}
	if after != "" {
		v.Set("after", after)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// Searches tells that something is looked for.
func (f filter) Searches() bool { return len(f.Values) > 0 }

// detail is what the audit log keeps of the search.
func (f filter) detail() map[string]string {
	d := map[string]string{}
	for name := range f.Values {
		d[name] = f.Values.Get(name)
	}
	return d
}
