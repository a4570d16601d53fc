package main

// The goals are those that Hub sets itself. A run that misses one says so in its report and is no error: another
// machine has other ratios, and a busy one has none that count.

import (
	"fmt"
	"slices"
)

// ratioGoal is what Hub's rate has to be beside another target's, at a concurrency.
type ratioGoal struct {
	// The workload by its name, how many calls are under way at once, the target that Hub is held against, and the
	// least ratio of the rates.
	workload    string
	concurrency int
	beside      string
	atLeast     float64
}

var ratioGoals = []ratioGoal{
	{"point", 1, toolboxName, 0.9}, {"point", 16, toolboxName, 1.1}, {"point", 64, toolboxName, 1.2},
	{"point", 1, nginxName, 1.1}, {"point", 16, nginxName, 1.4}, {"point", 64, nginxName, 1.3},
	{"brands", 1, toolboxName, 1.1}, {"brands", 16, toolboxName, 1.3}, {"brands", 64, toolboxName, 1.3},
	{"rows1000", 1, toolboxName, 4}, {"rows1000", 16, toolboxName, 5}, {"rows1000", 64, toolboxName, 6},
	{"rows10000", 1, toolboxName, 6}, {"rows10000", 8, toolboxName, 7},
	{"brands", 1, "limit", 0.6}, {"brands", 16, "limit", 0.65},
	{"rows1000", 1, "limit", 0.55}, {"rows1000", 16, "limit", 0.65},
	{"rows10000", 1, "limit", 0.75}, {"rows10000", 8, "limit", 0.85},
}

// mcpShare is what MCP over HTTP has to reach of REST, whatever the workload.
const mcpShare = 0.9

// The limits of what is measured once, by the names that verdicts give them. Durations are in
// milliseconds, memory is in MiB.
const (
	addedP50   = 0.35 // by the gateway at concurrency 1: its answer's time less that of the service alone
	addedP99   = 1
	rssStart   = 64 // gateway and query together, before the first call
	rssPeak    = 160
	startLimit = 200 // exec to ready
)

// verdict is one target and what came of it.
type verdict struct {
	// As the report writes them.
	what, goal, got string
	reached         bool
}

// atMost is the verdict on a figure with a limit, both in a unit; digits are those behind the point.
func atMost(what string, got, limit float64, unit string, digits int) verdict {
	return verdict{what, fmt.Sprintf("≤ %g%s", limit, unit), fmt.Sprintf("%.*f%s", digits, got, unit), got <= limit}
}

// beside is the verdict on the rate of a target divided by that of another one; none where this run has not both.
func (b *bench) beside(what, workload, target, other string, concurrency int, atLeast float64) []verdict {
	one, two := b.cell(workload, target, concurrency), b.cell(workload, other, concurrency)
	if one == nil || two == nil || two.rate == 0 {
		return nil
	}
	ratio := one.rate / two.rate
	return []verdict{{fmt.Sprintf("%s, c %d", what, concurrency), fmt.Sprintf("≥ %.2f ×", atLeast), fmt.Sprintf("%.2f ×", ratio),
		ratio >= atLeast}}
}

// verdicts judges all targets whose figures this run has.
func (b *bench) verdicts() (list []verdict) {
	for _, g := range ratioGoals {
		list = append(list, b.beside(g.workload+" beside "+g.beside, g.workload, "hub", g.beside, g.concurrency, g.atLeast)...)
	}
	for _, w := range workloadNames() {
		for _, c := range []int{1, 8, 16, 64} {
			list = append(list, b.beside("MCP beside REST, "+w, w, "mcp", "hub", c, mcpShare)...)
		}
	}
	for _, w := range workloadNames() {
		hub, service := b.cell(w, "hub", 1), b.cell(w, "service", 1)
		if hub != nil && service != nil {
			list = append(list, atMost("added by the gateway, "+w+", p50 at c 1", ms(hub.p50-service.p50), addedP50, " ms", 2),
				atMost("added by the gateway, "+w+", p99 at c 1", ms(hub.p99-service.p99), addedP99, " ms", 2))
		}
	}
	start, peak := b.rssAtStart["gateway"]+b.rssAtStart["query"], memoryOf(b.pids["gateway"]).peak+memoryOf(b.pids["query"]).peak
	list = append(list, atMost("gateway + query after their start, RSS", mib(start), rssStart, " MiB", 0),
		atMost("gateway + query through all of this, greatest RSS", mib(peak), rssPeak, " MiB", 0))
	for _, name := range measured {
		list = append(list, atMost("start of "+name+", exec to ready", ms(b.startTimes[name]), startLimit, " ms", 0))
	}
	return append(append(list, b.floodVerdicts()...), b.consoleVerdicts()...)
}

// cell finds a result; nil when this run has none.
func (b *bench) cell(workload, target string, concurrency int) *cell {
	i := slices.IndexFunc(b.cells, func(c cell) bool {
		return c.workload == workload && c.target == target && c.concurrency == concurrency
	})
	if i < 0 {
		return nil
	}
	return &b.cells[i]
}

// mib is a number of bytes in MiB.
func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
