package main

import (
	"fmt"
	"slices"
	"time"
)

// ratioGoal is what Hub's rate has to be beside another target's, at a concurrency.
type ratioGoal struct {
	workload    string
	concurrency int
	beside      string
	atLeast     float64
}

var ratioGoals = []ratioGoal{
	{"point", 1, "toolbox", 1.0}, {"point", 16, "toolbox", 1.4}, {"point", 64, "toolbox", 1.6},
	{"brands", 1, "toolbox", 1.1}, {"brands", 16, "toolbox", 1.3}, {"brands", 64, "toolbox", 1.3},
	{"rows1000", 1, "toolbox", 4}, {"rows1000", 16, "toolbox", 5}, {"rows1000", 64, "toolbox", 6},
	{"rows10000", 1, "toolbox", 6}, {"rows10000", 8, "toolbox", 7},
	{"brands", 1, "limit", 0.6}, {"brands", 16, "limit", 0.65},
	{"rows1000", 1, "limit", 0.55}, {"rows1000", 16, "limit", 0.65},
	{"rows10000", 1, "limit", 0.75}, {"rows10000", 8, "limit", 0.85},
}

// mcpShare is what MCP over HTTP has to reach of REST, whatever the workload.
const mcpShare = 0.85

// mcpVerdicts judges one transport beside the other.
func (b *bench) mcpVerdicts() (list []verdict) {
	for _, w := range workloadNames() {
		for _, c := range []int{1, 8, 16, 64} {
			rest, mcp := b.cell(w, "hub", c), b.cell(w, "mcp", c)
			if rest == nil || mcp == nil || rest.rate == 0 {
				continue
			}
			ratio := mcp.rate / rest.rate
			list = append(list, verdict{fmt.Sprintf("MCP beside REST, %s, c %d", w, c), fmt.Sprintf("≥ %.2f ×", mcpShare),
				fmt.Sprintf("%.2f ×", ratio), ratio >= mcpShare})
		}
	}
	return list
}

const (
	addedP50   = 350 * time.Microsecond // by the gateway at concurrency 1
	addedP99   = time.Millisecond
	rssStart   = 64 << 20 // bytes, gateway and query together
	rssPeak    = 192 << 20
	startLimit = 200 * time.Millisecond // exec to ready
)

// verdict is one target and what came of it.
type verdict struct {
	what, goal, got string
	reached         bool
}

// verdicts judges all targets whose figures this run has.
func (b *bench) verdicts() (list []verdict) {
	for _, g := range ratioGoals {
		hub, other := b.cell(g.workload, "hub", g.concurrency), b.cell(g.workload, g.beside, g.concurrency)
		if hub == nil || other == nil || other.rate == 0 {
			continue
		}
		ratio := hub.rate / other.rate
		list = append(list, verdict{fmt.Sprintf("%s beside %s, c %d", g.workload, g.beside, g.concurrency),
			fmt.Sprintf("≥ %.2f ×", g.atLeast), fmt.Sprintf("%.2f ×", ratio), ratio >= g.atLeast})
	}
	list = append(list, b.mcpVerdicts()...)
	for _, w := range workloadNames() {
		hub, service := b.cell(w, "hub", 1), b.cell(w, "service", 1)
		if hub == nil || service == nil {
			continue
		}
		p50, p99 := hub.p50-service.p50, hub.p99-service.p99
		list = append(list,
			verdict{"added by the gateway, " + w + ", p50 at c 1", "≤ 0.35 ms", fmt.Sprintf("%.2f ms", ms(p50)), p50 <= addedP50},
			verdict{"added by the gateway, " + w + ", p99 at c 1", "≤ 1 ms", fmt.Sprintf("%.2f ms", ms(p99)), p99 <= addedP99})
	}
	start, peak := b.rssAtStart["gateway"]+b.rssAtStart["query"], memoryOf(b.pids["gateway"]).peak+memoryOf(b.pids["query"]).peak
	list = append(list,
		verdict{"gateway + query after their start, RSS", "≤ 64 MiB", mib(start), start <= rssStart},
		verdict{"gateway + query through all of this, greatest RSS", "≤ 192 MiB", mib(peak), peak <= rssPeak})
	for _, name := range measured {
		took := b.startTimes[name]
		list = append(list, verdict{"start of " + name + ", exec to ready", "≤ 200 ms", fmt.Sprintf("%.0f ms", ms(took)), took <= startLimit})
	}
	return append(list, b.consoleVerdicts()...)
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

// mib writes bytes in MiB, for the report.
func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
