package overview

import (
	"context"
	"net/url"
	"slices"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin/auditlog"
)

const logPath = "/admin/audit"

// filter is what of the log a page shows, as its address has it.
type filter struct {
	auditlog.Filter
	web.FilterForm
}

// filterOf reads the address of a search. A time that cannot be read is marked at its field, and finds nothing.
func filterOf(ctx context.Context, v url.Values, now time.Time, owners auditlog.Owners) filter {
	f := filter{FilterForm: web.ReadFilter(v)}
	// within is a range's name, for a search that stays true tomorrow; from and to go before it.
	within := f.Text(web.Field{Name: "within", Label: i18n.T(ctx, "Within the last"), Type: "select", Options: withins(ctx)})
	f.From = f.Moment(web.Field{Name: "from", Label: i18n.T(ctx, "From")})
	f.To = f.Moment(web.Field{Name: "to", Label: i18n.T(ctx, "To")})
	f.Tool = f.Text(web.Field{Name: "tool", Label: i18n.T(ctx, "Tool or act")})
	f.Outcome = f.Text(web.Field{Name: "outcome", Label: i18n.T(ctx, "Outcome"), Type: "select", Options: outcomes(ctx)})
	f.Caller = f.Text(web.Field{Name: "caller", Label: i18n.T(ctx, "Caller’s id")})
	f.Person = f.Text(web.Field{Name: "person", Label: i18n.T(ctx, "Person")})
	f.Draft = f.Text(web.Field{Name: "draft", Label: i18n.T(ctx, "Draft’s id")})
	f.RequestID = f.Text(web.Field{Name: "request", Label: i18n.T(ctx, "Request id")})
	f.SQL = f.Text(web.Field{Name: "sql", Label: i18n.T(ctx, "Part of the SQL")})
	recorders := []web.Option{{Value: "", Text: i18n.T(ctx, "Anybody")}, {Value: "foreign", Text: i18n.T(ctx, "No owner of the tool")}}
	if f.Text(web.Field{Name: "recorder", Label: i18n.T(ctx, "Recorded by"), Type: "select", Options: recorders}) == "foreign" {
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

// What auditlog calls its ranges, for the catalogue of these pages.
var _ = []string{i18n.N("1 hour"), i18n.N("24 hours"), i18n.N("7 days"), i18n.N("30 days"), i18n.N("1 year")}

// rangeText is a range in words.
func rangeText(ctx context.Context, g auditlog.Range) string {
	return i18n.From(ctx).Text(g.Text)
}

// withins are the choices of how far back a search goes.
func withins(ctx context.Context) []web.Option {
	list := []web.Option{{Value: "", Text: i18n.T(ctx, "Any time")}}
	for _, g := range auditlog.Ranges() {
		list = append(list, web.Option{Value: g.Name, Text: rangeText(ctx, g)})
	}
	return list
}

// outcomes are the choices of an outcome: all codes that there are.
func outcomes(ctx context.Context) []web.Option {
	list := []web.Option{{Value: "", Text: i18n.T(ctx, "Any outcome")}, {Value: audit.OK, Text: "OK"},
		{Value: auditlog.Failed, Text: i18n.T(ctx, "Any failure")}}
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
