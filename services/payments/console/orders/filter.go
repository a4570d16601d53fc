package orders

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
	"hub.internal/services/payments/provider"
)

const (
	// maxText bounds what a filter looks for, in characters.
	maxText = 200
	// allTime is the period that leaves out nothing, and lately the one that a list begins with.
	allTime = "all"
	lately  = "30d"
	oneDay  = 24 * time.Hour
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
	Show string
	// Fields are those of the form with what was asked for, Values the address.
	Fields []web.Field
	Values url.Values
	// Wrong tells that a field could not be read.
	Wrong bool
}

// moments are the forms of a time that people write, in UTC.
var moments = []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly, time.RFC3339}

// periods are how far back a list goes. The length of all time is 0, which bounds nothing.
var periods = []struct {
	name, text string
	length     time.Duration
}{{"24h", "24 hours", oneDay}, {"7d", "7 days", 7 * oneDay}, {lately, "30 days", 30 * oneDay}, {"90d", "90 days", 90 * oneDay},
	{"365d", "A year",
		365 * oneDay}, {allTime, "All time", 0}}

// filterOf reads the address of a list. What it cannot read is left out of the filter, but a time that is none is
// marked as wrong: the list would silently be another one.
func filterOf(v url.Values, now time.Time) filter {
	// Each helper reads one kind of field, and keeps what was asked for in the form and in the address of the page.
	f := filter{Values: url.Values{}}
	typed := func(name string) string {
		s := text.Head(strings.TrimSpace(text.Storable(v.Get(name))), maxText)
		if s != "" {
			f.Values.Set(name, s)
		}
		return s
	}
	field := func(x web.Field) string {
		x.Value, x.MaxLength, x.Autocomplete, x.Quiet = typed(x.Name), maxText, "off", true
		f.Fields = append(f.Fields, x)
		return x.Value
	}
	choice := func(x web.Field, options ...web.Option) string {
		x.Type, x.Options = "select", options
		s := field(x)
		if !slices.ContainsFunc(options, func(o web.Option) bool { return o.Value == s }) {
			f.Values.Del(x.Name)
			f.Fields[len(f.Fields)-1].Value = ""
			return ""
		}
		return s
	}
	when := func(x web.Field) time.Time {
		s := field(x)
		for _, form := range moments {
			if at, err := time.ParseInLocation(form, s, time.UTC); err == nil && at.Year() > 1970 && at.Year() < 9999 {
				return at.UTC()
			}
		}
		if s != "" {
			f.Fields[len(f.Fields)-1].Error = "This is no time such as 2026-01-31 09:30."
			f.Wrong = true
		}
		return time.Time{}
	}
	f.Show = typed("show")
	if !slices.Contains([]string{showAttention, showStuck, showUndelivered}, f.Show) {
		f.Show = showAll
		f.Values.Del("show")
	}
	f.Search = field(web.Field{Name: "q", Type: "search", Label: "Code, client’s id, provider’s id or account"})
	if s := choice(web.Field{Name: "status", Label: "Status"}, statuses()...); s != "" {
		f.Status = []order.Status{order.Status(s)}
	}
	f.PayMethod = provider.PayMethod(choice(web.Field{Name: "method", Label: "Pay method"}, web.Option{Text: "Any"},
		web.Option{Value: string(provider.Card), Text: "Card"},
		web.Option{Value: string(provider.VBank), Text: "Virtual account"}))
	f.ServiceCode = field(web.Field{Name: "app", Label: "App"})
	within := choice(web.Field{Name: "within", Label: "Made within the last"}, withins()...)
	f.CreatedAfter = when(web.Field{Name: "from", Label: "From (UTC)", Placeholder: "2026-01-31 09:30"})
	f.CreatedBefore = when(web.Field{Name: "to", Label: "To (UTC)", Placeholder: "2026-01-31 10:00"})
	f.limit(within, now)
	return f
}

// limit keeps the part of the list, and a period where nothing else limits it: who looks for one order, or for a case,
// finds it however old it is.
func (f *filter) limit(within string, now time.Time) {
	if within == "" && f.CreatedAfter.IsZero() && f.CreatedBefore.IsZero() && f.Search == "" && f.Show == showAll {
		within = lately
	}
	for i := range f.Fields {
		if f.Fields[i].Name == "within" {
			f.Fields[i].Value = within
		}
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
func statuses() []web.Option {
	list := []web.Option{{Text: "Any"}}
	for _, s := range order.Statuses() {
		list = append(list, web.Option{Value: string(s), Text: statusBadge(s).Text})
	}
	return list
}

// withins are the options for the period.
func withins() []web.Option {
	list := []web.Option{{Text: "–"}}
	for _, p := range periods {
		list = append(list, web.Option{Value: p.name, Text: p.text})
	}
	return list
}

// address is a page of the list with the filter, and one value changed; an empty one leaves it out.
func (f filter) address(path, name, value string) string {
	v := url.Values{}
	for name, list := range f.Values {
		v[name] = list
	}
	if v.Del(name); value != "" {
		v.Set(name, value)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// Searches tells that something is looked for.
func (f filter) Searches() bool { return len(f.Values) > 0 }

// detail is what the audit log keeps of the filter: not what was searched for, which may be an account's number.
func (f filter) detail() map[string]string {
	d := map[string]string{}
	for name := range f.Values {
		if d[name] = f.Values.Get(name); name == "q" {
			d[name] = "…"
		}
	}
	return d
}

// positionOf reads where a page of the list begins: a moment and a code.
func positionOf(text string) (payments.Position, bool) {
	at, code, ok := strings.Cut(text, "_")
	moment, err := time.Parse(time.RFC3339Nano, at)
	return payments.Position{At: moment, Code: code}, ok && err == nil && code != "" && len(code) < 64 && utf8.ValidString(code) &&
		!strings.Contains(code, "\x00")
}

// cursorOf is a position as positionOf reads it.
func cursorOf(p payments.Position) string { return p.At.UTC().Format(time.RFC3339Nano) + "_" + p.Code }
