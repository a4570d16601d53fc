package orders

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments"
	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

const (
	// allTime is the period that leaves out nothing, and lately the one that a list begins with.
	allTime = "all"
	lately  = "30d"
	oneDay  = 24 * time.Hour
	// bothEnvs is the environment that leaves out nothing.
	bothEnvs = "both"
)

// The parts of the list.
const (
	showAll         = ""
	showAttention   = "attention"
	showStuck       = "ready"
	showUndelivered = "undelivered"
)

// filter is which orders a page shows, as its address has it.
type filter struct {
	payments.Filter
	web.FilterForm
	// Show is the part of the list: one of the constants above.
	Show string
}

// periods are how far back a list goes. The length of all time is 0, which bounds nothing.
var periods = []struct {
	name, text string
	length     time.Duration
}{{"24h", i18n.N("24 hours"), oneDay}, {"7d", i18n.N("7 days"), 7 * oneDay}, {lately, i18n.N("30 days"), 30 * oneDay},
	{"90d", i18n.N("90 days"), 90 * oneDay}, {"365d", i18n.N("A year"), 365 * oneDay}, {allTime, i18n.N("All time"), 0}}

// filterOf reads the address of a list. What it cannot read is left out of the filter, but a time that is none is
// marked as wrong: the list would silently be another one.
// Each call of Text, Choice and Moment adds a field to the form and reads it, so this is the form as well. Wrong is set by a time that
// is none.
func filterOf(ctx context.Context, v url.Values, now time.Time, own credentials.Env) filter {
	f := filter{FilterForm: web.ReadFilter(v)}
	f.Show = f.Typed("show")
	if !slices.Contains([]string{showAttention, showStuck, showUndelivered}, f.Show) {
		f.Show = showAll
		f.Values.Del("show")
	}
	f.Search = f.Text(web.Field{Name: "q", Type: "search", Label: i18n.T(ctx, "Code, client’s id, provider’s id or account")})
	if s := f.Choice(web.Field{Name: "status", Label: i18n.T(ctx, "Status")}, statuses(ctx)...); s != "" {
		f.Status = []order.Status{order.Status(s)}
	}
	f.PayMethod = provider.PayMethod(f.Choice(web.Field{Name: "method", Label: i18n.T(ctx, "Pay method")},
		web.Option{Text: i18n.T(ctx, "Any")},
		web.Option{Value: string(provider.Card), Text: i18n.T(ctx, "Card")},
		web.Option{Value: string(provider.VBank), Text: i18n.T(ctx, "Virtual account")}))
	f.ServiceCode = f.Text(web.Field{Name: "app", Label: i18n.T(ctx, "App")})
	env := f.Choice(web.Field{Name: "env", Label: i18n.T(ctx, "Environment")}, environments(ctx, own)...)
	within := f.Choice(web.Field{Name: "within", Label: i18n.T(ctx, "Made within the last")}, withins(ctx)...)
	f.CreatedAfter = f.Moment(web.Field{Name: "from", Label: i18n.T(ctx, "From")})
	f.CreatedBefore = f.Moment(web.Field{Name: "to", Label: i18n.T(ctx, "To")})
	f.limit(within, now)
	switch {
	case env == bothEnvs:
	case env != "":
		f.Env = credentials.Env(env)
	case f.Search == "" && f.Show == showAll:
		f.Env = own
	}
	return f
}

// sums are which orders are added up: those of one environment, since money of the sandbox is none.
func (f filter) sums(own credentials.Env) payments.Filter {
	f.Env = cmp.Or(f.Env, own)
	return f.Filter
}

// limit keeps the part of the list, and a period where nothing else limits it: who looks for one order, or for a case,
// finds it however old it is, and of whatever environment.
// An example: /admin/orders shows 30 days, and /admin/orders?show=attention all cases. READY for longer than payments.StuckFor is stuck.
func (f *filter) limit(within string, now time.Time) {
	if within == "" && f.CreatedAfter.IsZero() && f.CreatedBefore.IsZero() && f.Search == "" && f.Show == showAll {
		within = lately
	}
	for _, p := range periods {
		if p.name == within && p.length > 0 && f.CreatedAfter.IsZero() {
			f.CreatedAfter = now.Add(-p.length)
		}
	}
	switch f.Show {
	case showAttention:
		f.Attention = true
	case showStuck:
		f.ReadySince = now.Add(-payments.StuckFor)
	case showUndelivered:
		f.Undelivered = true
	}
}

// statuses are the options of the form's field.
func statuses(ctx context.Context) []web.Option {
	list := []web.Option{{Text: i18n.T(ctx, "Any")}}
	for _, s := range order.Statuses() {
		list = append(list, web.Option{Value: string(s), Text: said(ctx, statusBadge(s))})
	}
	return list
}

// environments are the options for the environment.
func environments(ctx context.Context, own credentials.Env) []web.Option {
	return []web.Option{{Text: i18n.T(ctx, "%s, or both when something is looked for", said(ctx, envBadge(own)))},
		{Value: string(credentials.Production), Text: i18n.T(ctx, "Production")},
		{Value: string(credentials.Sandbox), Text: i18n.T(ctx, "Sandbox")}, {Value: bothEnvs, Text: i18n.T(ctx, "Both")}}
}

// withins are the options for the period. That of a page which was asked for no period stays chosen: a form that came back with 30 days
// could not be told from one in which somebody has chosen these, and the search would miss what is older.
func withins(ctx context.Context) []web.Option {
	list := []web.Option{{Text: i18n.T(ctx, "30 days, or all when something is looked for")}}
	for _, p := range periods {
		list = append(list, web.Option{Value: p.name, Text: i18n.From(ctx).Text(p.text)})
	}
	return list
}

// detail is what the audit log keeps of the filter: not what was searched for, which may be an account's number.
func (f filter) detail() map[string]string {
	d := f.Detail()
	d["env"] = cmp.Or(string(f.Env), bothEnvs)
	if d["q"] != "" {
		d["q"] = "…"
	}
	return d
}

// positionOf reads where a page of the list begins: a moment and a code.
// ok is false for any other text, and the list begins at its first page then. Two orders of one moment are told apart by their codes.
func positionOf(text string) (payments.Position, bool) {
	at, code, ok := strings.Cut(text, "_")
	moment, err := time.Parse(time.RFC3339Nano, at)
	return payments.Position{At: moment, Code: code}, ok && err == nil && code != "" && len(code) < 64 && utf8.ValidString(code) &&
		!strings.Contains(code, "\x00")
}

// cursorOf is a position as positionOf reads it.
func cursorOf(p payments.Position) string { return p.At.UTC().Format(time.RFC3339Nano) + "_" + p.Code }
