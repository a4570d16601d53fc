package main

// What grows with the source: the query service, one call after another, over the same market at several scales.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/localserver"
	"hub.internal/pkg/localstack"
)

// growthName is the part that measures growth. It is measured only when it is asked for: to load the largest source takes ten minutes.
const growthName = "growth"

// growthScales are the sources: 20,000 campaigns, ten times and a hundred times of that.
var growthScales = []float64{1, 10, 100}

// growing are the calls that are looked at.
var growing = []struct{ what, tool, input string }{
	{"performance", "get_campaign_performance", `{"campaignId":777}`},
	{"contacts", "search_partner_contacts", `{"partnerId":7}`},
	{"brand", "get_brand", `{"brandId":7}`},
	{"newest brands", "search_brands", `{}`},
	{"category", "search_brands", `{"categoryId":12,"hasVerifiedContact":true}`},
	{"win-back", "search_brands", `{"lastCampaignBefore":"2025-01-01"}`},
	{"win-back, category", "search_brands", `{"categoryId":12,"lastCampaignBefore":"2025-01-01"}`},
	{"win-back, contact", "search_brands", `{"countryCode":"KR","lastCampaignBefore":"2025-01-01","hasVerifiedContact":true}`},
	{"brand keyword", "search_brands", `{"keyword":"무역"}`},
	{"offset 1,000", "search_brands", `{"offset":1000}`},
	{"newest campaigns", "search_campaigns", `{}`},
	{"of a partner", "search_campaigns", `{"partnerId":7}`},
	{"keyword, no hit", "search_campaigns", `{"keyword":"zzqqxx"}`},
	{"status, applied", "search_campaigns", `{"statusCodes":["1209"],"minApplyCount":100}`},
}

const (
	// A call is repeated for the window, and at least as often; the median counts. What fills memory is asked before.
	growthLeast, growthWarm       = 7, 3
	growthDatabase, growthService = "growth", "query-9"
)

// growth is the median of each call at each scale, by the places in growing and in the scales that are measured.
type growth [][]time.Duration

// measureGrowth makes the source anew at each scale, beside the one of the other workloads.
func (b *bench) measureGrowth(ctx context.Context) error {
	g := make(growth, len(growing))
	for _, scale := range b.grow {
		if err := b.growTo(ctx, g, scale); err != nil {
			return fmt.Errorf("scale %g: %w", scale, err)
		}
	}
	b.growth = g
	return nil
}

func (b *bench) growTo(ctx context.Context, g growth, scale float64) (err error) {
	on, source := b.sources[0], b.source
	source.Database, source.Owner, source.Reader = growthDatabase, growthDatabase+"_owner", growthDatabase+"_ro"
	if err := on.CreateSource(ctx, source); err != nil {
		return err
	}
	defer func() {
		if dropped := on.DropSource(context.WithoutCancel(ctx), source); err == nil {
			err = dropped
		}
	}()
	b.say("loading sample data, scale %g", scale)
	dsn := on.DSN(source.Owner, source.OwnerPassword, source.Database)
	if _, err := localstack.Run(ctx, b.path("bin", "gen"), b.root, nil, "", "--scale", fmt.Sprint(scale), "--dsn", dsn); err != nil {
		return err
	}
	stop, err := b.startGrown(ctx, source)
	if err != nil {
		return err
	}
	defer stop()
	on.query = growthService
	service := serviceTarget(b.stack, on)
	for i, call := range growing {
		s, err := service.open(&workload{tool: call.tool, inputs: []input{{json: []byte(call.input)}}})
		if err != nil {
			return err
		}
		took, err := repeated(ctx, s, b.window)
		s.close()
		if err != nil {
			return fmt.Errorf("%s: %w", call.what, err)
		}
		b.say("%-9s scale %g  %-20s p50 %8.2f ms", growthName, scale, call.what, ms(took))
		g[i] = append(g[i], took)
	}
	return nil
}

// startGrown starts a query service of its own over the source.
func (b *bench) startGrown(ctx context.Context, source localserver.Source) (stop func(), err error) {
	port, err := localserver.FreePort()
	if err != nil {
		return nil, err
	}
	b.addr[growthService] = fmt.Sprintf("127.0.0.1:%d", port)
	p, err := b.programs.Find("query")
	if err != nil {
		return nil, err
	}
	settings := b.hub().Settings(p, growthService)
	settings["HUB_SOURCE_DSN"] = b.sources[0].DSN(source.Reader, source.ReaderPassword, source.Database)
	process, err := b.spawn(growthService, localserver.Program{Path: b.path("bin", "query"), Args: []string{"serve"},
		Env: localstack.Environ(settings), Dir: b.root})
	if err != nil {
		return nil, err
	}
	stop = func() { _ = process.Stop(context.WithoutCancel(ctx)) }
	if err := awaitOK(ctx, process, "http://"+b.addr[growthService]+"/readyz"); err != nil {
		stop()
		return nil, fmt.Errorf("%w; see %s", err, b.path("log", growthService+".log"))
	}
	return stop, nil
}

// repeated is the median time of a call that is asked again and again.
func repeated(ctx context.Context, s session, window time.Duration) (time.Duration, error) {
	var took []time.Duration
	for n, until := 0, time.Now().Add(window); n < growthWarm+growthLeast || time.Now().Before(until); n++ {
		start := time.Now()
		if _, err := s.call(0); err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if n >= growthWarm {
			took = append(took, time.Since(start))
		}
	}
	return median(took), nil
}

// growthReport is the section of the report.
func (b *bench) growthReport() string {
	if b.growth == nil {
		return ""
	}
	var t strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&t, format, args...) }
	p("\n## growth: the query service alone, c 1, p50 in ms by the scale of the source\n\n")
	p("Scale 1 is 20,000 campaigns. The database has the same memory at all scales. What indexes would bring is in query's " +
		"OPERATING.md.\n\n")
	p("![Median latency over the scale of the source](plots/%s.svg)\n\n| call | input |", growthName)
	for _, scale := range b.grow {
		p(" scale %g |", scale)
	}
	p("\n|---|---|%s\n", strings.Repeat("---|", len(b.grow)))
	for i, call := range growing {
		p("| %s | %s `%s` |", call.what, call.tool, call.input)
		for _, took := range b.growth[i] {
			p(" %.2f |", ms(took))
		}
		p("\n")
	}
	return t.String()
}

// growthPlot draws the calls in two panels, the quick ones apart: by their slowest median they would be a line at the bottom.
func (b *bench) growthPlot() string {
	quick, slow := panel{title: "p50 in ms, by scale: up to 20 ms"}, panel{title: "p50 in ms, by scale: above"}
	for _, scale := range b.grow {
		quick.at = append(quick.at, fmt.Sprint(scale))
	}
	slow.at = quick.at
	for i, call := range growing {
		l := line{name: call.what}
		for _, took := range b.growth[i] {
			l.values = append(l.values, ms(took))
		}
		if slices.Max(append([]float64{math.Inf(-1)}, l.values...)) > 20 {
			slow.lines = append(slow.lines, l)
		} else {
			quick.lines = append(quick.lines, l)
		}
	}
	return drawing(quick, slow)
}
