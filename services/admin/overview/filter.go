package overview

import (
	"net/url"
	"slices"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/services/admin/auditlog"
)

const logPath = "/admin/audit"

// filter is what of the log a page shows, as its address has it.
type filter struct {
	auditlog.Filter
	web.FilterForm
}

// filterOf reads the address of a search. A time that cannot be read is marked at its field, and finds nothing.
func filterOf(v url.Values, now time.Time, owners auditlog.Owners) filter {
	f := filter{FilterForm: web.ReadFilter(v)}
	// within is a range's name, for a search that stays true tomorrow; from and to go before it.
	within := f.Text(web.Field{Name: "within", Label: "Within the last", Type: "select", Options: withins()})
	f.From = f.Moment(web.Field{Name: "from", Label: "From"})
	f.To = f.Moment(web.Field{Name: "to", Label: "To"})
	f.Tool = f.Text(web.Field{Name: "tool", Label: "Tool or act"})
	f.Outcome = f.Text(web.Field{Name: "outcome", Label: "Outcome", Type: "select", Options: outcomes()})
	f.Caller = f.Text(web.Field{Name: "caller", Label: "Caller’s id"})
	f.Person = f.Text(web.Field{Name: "person", Label: "Person"})
	f.Draft = f.Text(web.Field{Name: "draft", Label: "Draft’s id"})
	f.RequestID = f.Text(web.Field{Name: "request", Label: "Request id"})
	f.SQL = f.Text(web.Field{Name: "sql", Label: "Part of the SQL"})
	if f.Text(web.Field{Name: "recorder", Label: "Recorded by", Type: "select",
		Options: []web.Option{{Value: "", Text: "Anybody"}, {Value: "foreign", Text: "No owner of the tool"}}}) == "foreign" {
		f.Foreign = owners
	}
	if f.From.IsZero() {
		for _, g := range auditlog.Ranges() {
			if g.Name == within {
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
