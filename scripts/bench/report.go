package main

// The report is Markdown. The one beside this file is kept: whoever changes the read path runs the benchmark and
// compares.

import (
	"fmt"
	"maps"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// report writes down what a run has found.
type report struct {
	*bench
	works   []*workload
	skipped string // why a peer is missing
	began   time.Time
	machine string
}

// markdown is the report: the machine, the targets with their verdicts, a table for each workload, the console,
// and memory and start times. scripts/bench/report.md is a kept one.
func (r report) markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Benchmark\n\n%s\n\n", r.machine)
	p("%s, %.0f s in all. Sample of scale %g, %d rounds of %v each, closed loop; medians. ", r.began.UTC().Format(time.RFC3339),
		time.Since(r.began).Seconds(), r.scale, r.rounds, r.window)
	p("Databases, services, peers and load generator share the machine; ratios within this run are what counts.\n\n")
	p("hub: gateway, REST, API key. service: query alone. limit: the statements that Hub sends through go-sql-driver in one process, " +
		"rows appended as JSON, no HTTP. ")
	p("straightforward: the joins that come to mind first, run like the limit. Peers get the best single statement with the same " +
		"result.\n\n")
	b.WriteString(r.skipped)
	p("## Targets\n\n| What | Target | Here | |\n|---|---|---|---|\n")
	for _, v := range r.verdicts() {
		p("| %s | %s | %s | %s |\n", v.what, v.goal, v.got, map[bool]string{true: "reached", false: "**not reached**"}[v.reached])
	}
	for _, w := range r.works {
		p("\n## %s: %s\n\n", w.name, w.title)
		if w.rows < w.most {
			p("The sample has %d rows only.\n\n", w.rows)
		}
		p("![Throughput and latency over concurrency](plots/%s.svg)\n\n", w.name)
		p("| c | target | calls/s | p50 ms | p90 ms | p99 ms | errors | server CPU s per 1,000 calls | RSS | hub beside it |\n" +
			"|---|---|---|---|---|---|---|---|---|---|\n")
		for _, c := range r.of(w) {
			beside := ""
			if hub := r.cell(w.name, "hub", c.concurrency); c.target != "hub" && c.rate > 0 {
				beside = fmt.Sprintf("%.2f ×", hub.rate/c.rate)
			}
			rss := ""
			if c.rss > 0 {
				rss = fmt.Sprintf("%.0f MiB", mib(c.rss))
			}
			p("| %d | %s | %.0f | %.2f | %.2f | %.2f | %d | %s | %s | %s |\n", c.concurrency, c.target, c.rate, ms(c.p50), ms(c.p90), ms(c.p99),
				c.errors, r.serverCPU(c), rss, beside)
		}
		p("\nCPU seconds per 1,000 calls by process:\n\n| c | target | by process |\n|---|---|---|\n")
		for _, c := range r.of(w) {
			p("| %d | %s | %s |\n", c.concurrency, c.target, byProcess(c.cpu))
		}
		for _, c := range r.of(w) {
			if c.problem != nil {
				p("\nAn error of %s at c %d: %v\n", c.target, c.concurrency, c.problem)
			}
		}
	}
	b.WriteString(r.floodReport() + r.growthReport() + r.consoleReport())
	p("\n## Memory and start\n\n| Process | RSS after start | RSS at the end | greatest | exec to ready |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.rssAtStart)) {
		m, start := memoryOf(r.pids[name]), ""
		if took, ok := r.startTimes[name]; ok {
			start = fmt.Sprintf("%.0f ms", ms(took))
		}
		p("| %s | %.0f MiB | %.0f MiB | %.0f MiB | %s |\n", name, mib(r.rssAtStart[name]), mib(m.resident), mib(m.peak), start)
	}
	return b.String()
}

// plots are drawings, by the names of their files: of each workload the throughput and the median latency over concurrency.
func (r report) plots() map[string]string {
	drawn := map[string]string{}
	for _, w := range r.works {
		rate, latency := panel{title: w.name + ": calls a second, by calls at once"}, panel{title: w.name + ": p50 in ms"}
		for _, c := range w.concurrency {
			rate.at = append(rate.at, fmt.Sprint(c))
		}
		latency.at = rate.at
		for _, c := range r.of(w) {
			if c.concurrency == w.concurrency[0] {
				of := func(figure func(cell) float64) line {
					l := line{name: c.target}
					for _, at := range w.concurrency {
						v := math.NaN()
						if found := r.cell(w.name, c.target, at); found != nil {
							v = figure(*found)
						}
						l.values = append(l.values, v)
					}
					return l
				}
				rate.lines = append(rate.lines, of(func(c cell) float64 { return c.rate }))
				latency.lines = append(latency.lines, of(func(c cell) float64 { return ms(c.p50) }))
			}
		}
		drawn[w.name+".svg"] = drawing(rate, latency)
	}
	if r.flood != nil {
		drawn[floodName+".svg"] = r.floodPlot()
	}
	if r.growth != nil {
		drawn[growthName+".svg"] = r.growthPlot()
	}
	return drawn
}

// of lists a workload's cells, concurrency by concurrency.
func (r report) of(w *workload) (cells []cell) {
	for _, c := range r.cells {
		if c.workload == w.name {
			cells = append(cells, c)
		}
	}
	return cells
}

// serverCPU is what all processes but the database and the load generator used.
// The limit and the straightforward SQL run within the load generator, so for these it counts.
func (r report) serverCPU(c cell) string {
	total := 0.0
	for name, seconds := range c.cpu {
		within := strings.HasPrefix(c.target, "limit") || c.target == "straightforward"
		if name != "mariadb" && name != "mysql" && (name != "bench" || within) {
			total += seconds
		}
	}
	return fmt.Sprintf("%.3f", total)
}

// byProcess lists CPU seconds by process, by their names.
func byProcess(cpu map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(cpu)) {
		parts = append(parts, fmt.Sprintf("%s %.3f", name, cpu[name]))
	}
	return strings.Join(parts, ", ")
}

// describeMachine says where and of what the figures are.
func describeMachine(root string) string {
	commit := "unknown"
	cmd := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	model, memory, load := "unknown CPU", "unknown memory", ""
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
			model = cpus[0].ModelName
		}
		if m, err := proc.Meminfo(); err == nil && m.MemTotalBytes != nil {
			memory = fmt.Sprintf("%.0f GiB", float64(*m.MemTotalBytes)/(1<<30))
		}
		if l, err := proc.LoadAvg(); err == nil {
			load = fmt.Sprintf(", load average before the run %.2f %.2f %.2f", l.Load1, l.Load5, l.Load15)
		}
	}
	return fmt.Sprintf("Commit %s, %s, %s/%s, %d × %s, %s%s.", commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		model, memory, load)
}
