package main

// The flood asks for searches at a multiple of what the suite can do, with keys that pay no heed, while one quiet key asks now and then.
// It is the one open loop here: calls come when they come, whether or not earlier ones have been answered.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hub.internal/pkg/localstack"
)

// floodName is the part that measures a flood.
const floodName = "flood"

const (
	floodKeys   = 20
	floodFactor = 10                     // times what the suite answers when it is asked without a pause
	floodConns  = 10                     // connections of each key
	quietPause  = 100 * time.Millisecond // between the calls of the quiet key
	// What has to stand while the flood lasts: the rate, and times as multiples of those of the quiet key alone.
	floodGoodput, floodSlowdown = 0.9, 3.0
)

// flood is what came of it. Rates are in calls a second.
type flood struct {
	// Without a flood: the quiet key alone, and what the suite answers at most.
	base        measurement
	sustainable float64
	// While it lasted: what was to be asked for, what the generator could ask for, and what came of that.
	wanted, asked, answered, refused, failed float64
	admitted                                 measurement // the flood's calls that were answered
	quiet                                    measurement // errors are those that were not answered
	rss                                      [2]int64    // of gateway and query, before and after
}

// measureFlood measures a flood of the search that the workload "brands" has.
func (b *bench) measureFlood(ctx context.Context) error {
	w, err := brandsWorkload(ctx, b.stack)
	if err != nil {
		return err
	}
	w.name = floodName
	hub := hubTarget(b.stack)
	if err := b.compare(w, []target{hub}); err != nil {
		return err
	}
	b.say("issuing %d keys", floodKeys+1)
	quiet, err := b.floodCaller(ctx, w, 0)
	if err != nil {
		return err
	}
	var flooding []*floodCaller
	for i := range floodKeys {
		c, err := b.floodCaller(ctx, w, i+1)
		if err != nil {
			return err
		}
		for range floodConns {
			flooding = append(flooding, &floodCaller{wire: wire{addr: c.addr}, request: c.request})
		}
	}
	f := &flood{}
	if f.base, err = b.measure(ctx, hub, w, 1); err != nil {
		return err
	}
	most, err := b.measure(ctx, hub, w, 64)
	if err != nil {
		return err
	}
	f.sustainable, f.wanted, f.rss[0] = most.rate, most.rate*floodFactor, b.readersRSS()
	pause := time.Duration(float64(len(flooding)) / f.wanted * float64(time.Second))
	begin := time.Now().Add(b.window / 10)
	end := begin.Add(3 * b.window)
	var all sync.WaitGroup
	for i, c := range flooding {
		all.Go(func() {
			c.run(ctx, begin, end, time.Now().Add(pause*time.Duration(i)/time.Duration(len(flooding))), pause)
		})
	}
	all.Go(func() { quiet.run(ctx, begin, end, time.Now(), min(quietPause, b.window)) })
	all.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	f.rss[1] = b.readersRSS()
	f.count(flooding, quiet, end.Sub(begin))
	b.flood = f
	b.say("%-9s %.0f calls/s answered of %.0f, %.0f refused, %.0f failed, p99 %.1f ms", floodName, f.answered, f.sustainable, f.refused,
		f.failed, ms(f.admitted.p99))
	b.say("%-9s the quiet key %d of %d, p99 %.1f ms, alone %.1f", floodName, f.quiet.calls-f.quiet.errors, f.quiet.calls, ms(f.quiet.p99),
		ms(f.base.p99))
	return nil
}

// floodCaller issues a key, the n-th, and prepares its call.
func (b *bench) floodCaller(ctx context.Context, w *workload, n int) (*floodCaller, error) {
	rights := append([]string{"--scopes", "query"}, localstack.Unlimited()...)
	key, err := b.hub().IssueKey(ctx, fmt.Sprint("flood ", n), fmt.Sprint("hub-flood-", n), rights...)
	if err != nil {
		return nil, err
	}
	addr := b.addr["gateway"]
	header := http.Header{"Authorization": {"Bearer " + key.Key}}
	return &floodCaller{wire: wire{addr: addr}, request: request(addr, "/api/tools/"+w.tool, header, w.inputs[0].json)}, nil
}

// readersRSS is the resident memory of gateway and query, in bytes.
func (b *bench) readersRSS() int64 {
	return memoryOf(b.pids["gateway"]).resident + memoryOf(b.pids["query"]).resident
}

// floodCaller is one connection of a key.
type floodCaller struct {
	wire
	request         []byte
	took            []time.Duration // of the calls that were answered
	refused, failed int
	problem         error
}

// run calls at fixed times, whatever the answers say, and counts what begins and ends within the window. What it could not ask for in
// time, since an earlier call had no answer yet, is left out.
func (c *floodCaller) run(ctx context.Context, begin, end, next time.Time, pause time.Duration) {
	defer c.close()
	for ; ; next = next.Add(pause) {
		if behind := time.Since(next); behind > pause {
			next = next.Add(behind.Truncate(pause))
		}
		if !next.Before(end) || ctx.Err() != nil {
			return
		}
		time.Sleep(time.Until(next))
		start := time.Now()
		_, err := c.send(c.request)
		took := time.Since(start)
		if start.Before(begin) || start.Add(took).After(end) {
			continue
		}
		var status statusError
		switch {
		case err == nil:
			c.took = append(c.took, took)
		case errors.As(err, &status) && status.status == http.StatusTooManyRequests:
			c.refused++
		default:
			c.failed, c.problem = c.failed+1, err
		}
	}
}

// count adds up what the callers met within the window.
func (f *flood) count(flooding []*floodCaller, quiet *floodCaller, window time.Duration) {
	var took []time.Duration
	var refused, failed int
	for _, c := range flooding {
		took, refused, failed = append(took, c.took...), refused+c.refused, failed+c.failed
		if c.problem != nil {
			f.admitted.problem = c.problem
		}
	}
	f.admitted = timesOf(took, f.admitted.problem)
	f.quiet = timesOf(quiet.took, quiet.problem)
	f.quiet.errors = quiet.refused + quiet.failed
	f.quiet.calls += f.quiet.errors
	second := func(n int) float64 { return float64(n) / window.Seconds() }
	f.answered, f.refused, f.failed = second(len(took)+len(quiet.took)), second(refused), second(failed)
	f.asked = f.answered + f.refused + f.failed
}

// timesOf has the quantiles of calls that were answered.
func timesOf(took []time.Duration, problem error) measurement {
	slices.Sort(took)
	return measurement{calls: len(took), p50: quantile(took, 0.5), p90: quantile(took, 0.9), p99: quantile(took, 0.99), problem: problem}
}

// floodVerdicts judge what has to stand in a flood; the generator takes its part of the machine's CPU all the while.
func (b *bench) floodVerdicts() []verdict {
	f := b.flood
	if f == nil {
		return nil
	}
	slowdown := func(what string, got measurement) verdict {
		return atMost(what, float64(got.p99)/float64(max(f.base.p99, 1)), floodSlowdown, " × that of the quiet key alone", 2)
	}
	goodput := f.answered / max(f.sustainable, 1)
	return []verdict{
		{"flood: calls answered, of those that can be", fmt.Sprintf("≥ %.2f ×", floodGoodput), fmt.Sprintf("%.2f ×", goodput),
			goodput >= floodGoodput},
		slowdown("flood: p99 of what is answered", f.admitted),
		atMost("flood: calls of the quiet key that were not answered", float64(f.quiet.errors), 0, "", 0),
		slowdown("flood: p99 of the quiet key", f.quiet),
		atMost("flood: calls a second that failed otherwise than by a refusal", f.failed, 0, "", 0),
	}
}

// floodReport is the section of the report.
func (b *bench) floodReport() string {
	f := b.flood
	if f == nil {
		return ""
	}
	var t strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&t, format, args...) }
	p("\n## flood: %d keys with %d connections each, %d × what the suite answers, search_brands\n\n", floodKeys, floodConns, floodFactor)
	p("![Latency in a flood](plots/%s.svg)\n\n", floodName)
	p("Open loop; the generator shares the machine. To be asked for: %.0f calls/s; the generator came to %.0f.\n\n", f.wanted, f.asked)
	p("| | calls/s | p50 ms | p90 ms | p99 ms |\n|---|---|---|---|---|\n")
	row := func(name string, rate string, m measurement) {
		p("| %s | %s | %.1f | %.1f | %.1f |\n", name, rate, ms(m.p50), ms(m.p90), ms(m.p99))
	}
	row("the quiet key alone", "", f.base)
	p("| answered when 64 ask without a pause | %.0f | | | |\n", f.sustainable)
	row("answered in the flood", fmt.Sprintf("%.0f", f.answered), f.admitted)
	p("| refused in the flood | %.0f | | | |\n| failed in the flood | %.0f | | | |\n", f.refused, f.failed)
	row("the quiet key in the flood", fmt.Sprintf("%d of %d calls", f.quiet.calls-f.quiet.errors, f.quiet.calls), f.quiet)
	p("\nMemory of gateway and query: %.0f MiB before, %.0f MiB after.\n", mib(f.rss[0]), mib(f.rss[1]))
	for _, m := range []measurement{f.admitted, f.quiet} {
		if m.problem != nil {
			p("\nAn error: %v\n", m.problem)
		}
	}
	return t.String()
}

// floodPlot draws how long a call takes, of most of them and of the slowest.
func (b *bench) floodPlot() string {
	of := func(name string, m measurement) line {
		return line{name, []float64{ms(m.p50), ms(m.p90), ms(m.p99)}}
	}
	f := b.flood
	return drawing(panel{title: "ms, of most calls and of the slowest", at: []string{"p50", "p90", "p99"},
		lines: []line{of("alone", f.base), of("quiet key", f.quiet), of("answered", f.admitted)}})
}
