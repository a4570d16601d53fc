package overview

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
	"hub.internal/services/admin/auditlog"
)

// homePage is the overview.
type homePage struct {
	Ranges []choice
	// Range is the one that is shown, Ranges the links to all.
	Range   auditlog.Range
	Summary auditlog.Summary
	// Now is the moment of the page.
	Now time.Time
	// Plots are tables that the page's script draws; without it they are read as they stand.
	Calls   web.Plot
	Latency web.Plot
	Tools   []toolRow
	Errors  []errorRow
	Callers []callerRow
	Limited []callerRow
	// Backlog and Source are nil where the neighbour did not answer in time.
	Backlog  *admin.Backlog
	Source   *admin.SourceHealth
	Log      string // the address of the log in the range
	Failures string // that of what failed there
	// Lines are the lines of the cards, by what they show; nil where there is too little to draw.
	Lines cardLines
}

// cardLines are how the numbers of the cards came about, step by step.
type cardLines struct{ Calls, Failed, Median, Slow Line }

// choice is a link of which one is where the reader is.
type choice struct {
	web.Link
	Active bool
}

// toolRow is a tool of the ten most called.
type toolRow struct {
	auditlog.Tool
	Href string
	// Bar is its part of the calls, those that failed in another colour.
	Bar web.Bar
}

// errorRow is an error code with its share of all calls.
type errorRow struct {
	auditlog.Count
	// Share is of all calls, not of those that failed.
	Href, Share string
}

// callerRow is a caller of the ten who called most, or were limited most.
type callerRow struct {
	auditlog.Caller
	named
	Href string
}

const home = "/admin"

// home shows the overview. The log and the neighbours are asked at the same time.
func (o *Overview) home(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), o.c.Now()
	g := rangeOf(r.URL.Query().Get("range"))
	p := homePage{Range: g, Now: now, Log: logOf(g, url.Values{}), Failures: logOf(g, url.Values{"outcome": {auditlog.Failed}})}
	for _, one := range auditlog.Ranges() {
		p.Ranges = append(p.Ranges, choice{web.Link{Text: rangeText(ctx, one), Href: home + "?range=" + one.Name}, one.Name == g.Name})
	}
	// The neighbours answer while the log is read; both are waited for.
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		p.Backlog, p.Source = o.neighbours(ctx, g.At(now))
	}()
	summary, err := o.c.Log.Summary(ctx, g)
	<-asked
	if err != nil {
		return err
	}
	p.Summary = summary
	o.plots(ctx, &p, g)
	p.lists(ctx, g)
	o.name(r, &p)
	return o.site.Render(w, r, "home", web.Page{Title: i18n.T(ctx, "Overview"), Wide: true, Data: p})
}

// rangeOf is the range of a name; a day for anything else.
func rangeOf(name string) auditlog.Range {
	all := auditlog.Ranges()
	for _, g := range all {
		if g.Name == name {
			return g
		}
	}
	return all[1]
}

// logOf is the address of the log's rows in a range.
func logOf(g auditlog.Range, v url.Values) string {
	v.Set("within", g.Name)
	return logPath + "?" + v.Encode()
}

// plots fills the two plots: calls, and how long they took.
func (o *Overview) plots(ctx context.Context, p *homePage, g auditlog.Range) {
	step, by := int(g.Step.Seconds()), stepText(ctx, g.Step)
	p.Calls = web.Plot{ID: "calls", Title: i18n.T(ctx, "Calls"), Kind: "bars", Step: step, Caption: i18n.T(ctx, "Calls by %s", by),
		Series: []web.Series{{Label: i18n.T(ctx, "Calls"), Color: "--accent", Rest: web.Number(p.Summary.Total.Calls)},
			{Label: i18n.T(ctx, "Failed"), Color: "--bad-fill", Rest: web.Number(p.Summary.Total.Failed)},
			{Label: i18n.T(ctx, "Failure rate"), Color: "--warn-fill", Rest: p.Failed(), Share: true}}}
	p.Latency = web.Plot{ID: "latency", Title: i18n.T(ctx, "Latency"), Kind: "lines", Unit: "ms", Step: step,
		Caption: i18n.T(ctx, "Time that calls took by %s", by), Series: []web.Series{{Label: i18n.T(ctx, "Median"), Color: "--accent"},
			{Label: i18n.T(ctx, "95th percentile"), Color: "--warn-fill"}}}
	if all := p.Summary.Total; all.Measured > 0 {
		p.Latency.Series[0].Rest, p.Latency.Series[1].Rest = milliseconds(all.P50), milliseconds(all.P95)
	}
	var calls, failed, median, slow []float64
	for _, x := range p.Summary.Points {
		rows := logPath + "?" + url.Values{"from": {x.At.UTC().Format(time.RFC3339)},
			"to": {x.At.Add(g.Step).UTC().Format(time.RFC3339)}}.Encode()
		p.Calls.Rows = append(p.Calls.Rows, web.PlotRow{At: x.At, Href: rows,
			Values: []web.PlotValue{countValue(x.Calls), countValue(x.Failed), rateValue(x.Failed, x.Calls)}})
		calls, failed = append(calls, float64(x.Calls)), append(failed, float64(x.Failed))
		p50, p95 := math.NaN(), math.NaN()
		took := []web.PlotValue{{Text: "–"}, {Text: "–"}}
		if x.Measured > 0 {
			took = []web.PlotValue{durationValue(x.P50), durationValue(x.P95)}
			p50, p95 = x.P50, x.P95
		}
		p.Latency.Rows = append(p.Latency.Rows, web.PlotRow{At: x.At, Href: rows, Values: took})
		median, slow = append(median, p50), append(slow, p95)
	}
	if draw := o.c.Draw; draw != nil {
		p.Lines = cardLines{draw(calls), draw(failed), draw(median), draw(slow)}
	}
}

// lists fills the lists of tools, errors and callers.
func (p *homePage) lists(ctx context.Context, g auditlog.Range) {
	all := p.Summary.Total
	for _, t := range p.Summary.Tools {
		p.Tools = append(p.Tools, toolRow{t, logOf(g, url.Values{"tool": {t.Name}}), web.Bar{
			Label: i18n.T(ctx, "%s, %s failed", web.PluralIn(ctx, int(t.Calls), "call", "calls"), web.Number(t.Failed)),
			Total: int(p.Summary.Tools[0].Calls),
			Parts: []web.Part{{Kind: "info", Count: int(t.Calls - t.Failed)}, {Kind: "bad", Count: int(t.Failed)}}}})
	}
	for _, e := range p.Summary.Errors {
		if e.Calls > 0 {
			p.Errors = append(p.Errors, errorRow{e, logOf(g, url.Values{"outcome": {e.Code}}), percent(e.Calls, all.Calls)})
		}
	}
	rows := func(list []auditlog.Caller, outcome string) (out []callerRow) {
		for _, c := range list {
			v := url.Values{"caller": {c.CredentialID}}
			if outcome != "" {
				v.Set("outcome", outcome)
			}
			out = append(out, callerRow{c, named{ID: c.CredentialID}, logOf(g, v)})
		}
		return out
	}
	p.Callers, p.Limited = rows(p.Summary.Callers, ""), rows(p.Summary.Limited, string(fault.RateLimit))
}

// name asks for the names of those who called.
func (o *Overview) name(r *http.Request, p *homePage) {
	ids := map[string]bool{}
	for _, c := range append(append([]callerRow{}, p.Callers...), p.Limited...) {
		ids[c.ID] = true
	}
	names := o.names(r.Context(), ids)
	for _, list := range [][]callerRow{p.Callers, p.Limited} {
		for i := range list {
			list[i].Name = names[list[i].ID]
		}
	}
}

// Failed is the share of calls that failed.
func (p homePage) Failed() string { return percent(p.Summary.Total.Failed, p.Summary.Total.Calls) }

// LimitedCalls is how many calls were refused because they were too many.
func (p homePage) LimitedCalls() (n int64) {
	for _, e := range p.Summary.Errors {
		if e.Code == string(fault.RateLimit) {
			n = e.Calls
		}
	}
	return n
}

// stepText is the step of a plot in words.
func stepText(ctx context.Context, step time.Duration) string {
	switch step {
	case time.Hour:
		return i18n.T(ctx, "hour")
	case 24 * time.Hour:
		return i18n.T(ctx, "day")
	case 7 * 24 * time.Hour:
		return i18n.T(ctx, "week")
	}
	if step < time.Hour {
		return i18n.T(ctx, "%d minutes", int(step.Minutes()))
	}
	return i18n.T(ctx, "%d hours", int(step.Hours()))
}

// countValue is a count as plots and their tables have it.
func countValue(n int64) web.PlotValue {
	return web.PlotValue{Raw: strconv.FormatInt(n, 10), Text: web.Number(n)}
}

// rateValue is a share of calls in percent; nothing where there were no calls.
func rateValue(n, of int64) web.PlotValue {
	if of == 0 {
		return web.PlotValue{Text: "–"}
	}
	return web.PlotValue{Raw: strconv.FormatFloat(100*float64(n)/float64(of), 'f', 2, 64), Text: percent(n, of)}
}

// durationValue is a duration in milliseconds as plots and their tables have it.
func durationValue(ms float64) web.PlotValue {
	return web.PlotValue{Raw: strconv.FormatFloat(ms, 'f', 1, 64), Text: milliseconds(ms)}
}

// milliseconds is a time as people read it.
func milliseconds(ms float64) string {
	switch {
	case ms < 1:
		return "<1 ms"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 1000:
		return strconv.Itoa(int(math.Round(ms))) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}

// percent is a share as people read it: what is there is never 0 %.
func percent(n, of int64) string {
	switch share := 100 * float64(n) / float64(max(of, 1)); {
	case n == 0:
		return "0 %"
	case share < .1:
		return "<0.1 %"
	case share < 10:
		return strconv.FormatFloat(share, 'f', 1, 64) + " %"
	default:
		return strconv.Itoa(int(math.Round(share))) + " %"
	}
}
