package main

// The load is a closed loop: each of c workers calls again as soon as it has its answer. A slow target is asked less,
// so rates and times belong together, and a queue never grows.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// bench runs workloads against targets.
type bench struct {
	*stack
	targets []target
	say     func(string, ...any)
	cells   []cell
	console []consolePage
	flood   *flood // nil when none was measured
	growth  growth // the same
	// noBrowser tells that there was none to open the console's pages in.
	noBrowser bool
	// answers are the checked answers of each target to each input, by target and workload.
	answers map[[2]string][][]byte
}

// cell is a target's result for a workload at a concurrency: the medians of the rounds.
type cell struct {
	// The names of a workload and of a target, and how many workers there were.
	workload, target string
	concurrency      int
	measurement
}

// measurement is the outcome of one window of load.
type measurement struct {
	rate          float64 // calls per second
	p50, p90, p99 time.Duration
	calls, errors int // the sums of the rounds in a cell
	problem       error
	cpu           map[string]float64 // CPU seconds per 1,000 calls, by process
	rss           int64              // bytes, of the target's own processes after the window
}

// mostOverMCP is how many rows a workload may have to be asked over MCP, where an answer ends at 40,000 bytes, which a model reads at once.
const mostOverMCP = 200

// run runs everything: per workload and concurrency the targets take turns, and each second round in the reverse order, since
// what one target leaves to the machine (collecting its garbage, a database's flush) slows down the one behind it.
func (b *bench) run(ctx context.Context, works []*workload) error {
	b.pids["bench"] = os.Getpid()
	b.answers = map[[2]string][][]byte{}
	for _, w := range works {
		targets := slices.DeleteFunc(slices.Clone(b.targets), func(t target) bool {
			return w.single == "" && isPeer(t.name) || w.most > mostOverMCP && t.name == "mcp"
		})
		// Only where a person would write other SQL than Hub does.
		if w.straightforward != "" {
			targets = append(targets, straightforwardTarget(b.stack))
		}
		if err := b.compare(w, targets); err != nil {
			return err
		}
		for _, c := range w.concurrency {
			rounds := map[string][]measurement{}
			order := slices.Clone(targets)
			for round := range b.rounds {
				for _, t := range order {
					m, err := b.measure(ctx, t, w, c)
					if err != nil {
						return fmt.Errorf("%s, concurrency %d, %s: %w", w.name, c, t.name, err)
					}
					b.say("%-9s c %-2d round %d  %-15s %8.0f calls/s  p50 %7.2f ms  errors %d", w.name, c, round+1, t.name, m.rate, ms(m.p50), m.errors)
					rounds[t.name] = append(rounds[t.name], m)
				}
				slices.Reverse(order)
			}
			for _, t := range targets {
				b.cells = append(b.cells, cell{w.name, t.name, c, middle(rounds[t.name])})
			}
		}
	}
	return nil
}

// compare asks every target every input once, holds the answers against the limit's, and
// keeps them as what each later answer has to be, byte for byte.
func (b *bench) compare(w *workload, targets []target) error {
	// By input: the rows of the bare SQL, which comes first.
	want := make([][][]string, len(w.inputs))
	reference := limitTarget(b.stack, b.sources[0])
	for _, t := range append([]target{reference}, targets...) {
		s, err := t.open(w)
		if err != nil {
			return err
		}
		var answers [][]byte
		for i := range w.inputs {
			answer, err := s.call(i)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", w.name, t.name, err)
			}
			rows, err := t.read(w, answer)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", w.name, t.name, err)
			}
			if want[i] == nil {
				want[i] = rows
			}
			if d := difference(want[i], rows); d != "" {
				return fmt.Errorf("%s: %s answers otherwise than the SQL itself: %s", w.name, t.name, d)
			}
			answers = append(answers, bytes.Clone(answer))
		}
		s.close()
		b.answers[[2]string{t.name, w.name}] = answers
	}
	w.rows = len(want[0])
	return nil
}

// worker is one closed loop: it calls again as soon as it has its answer.
type worker struct {
	session session
	answers [][]byte
	next    int // input
	calls   []timedCall
	errors  int
	problem error
}

// timedCall is a call that ended after the window had begun.
type timedCall struct {
	start time.Time
	took  time.Duration
}

// measure loads a target with c workers for a tenth of the window to warm up and then for
// the window itself.
// Where every call fails it is an error that says why.
func (b *bench) measure(ctx context.Context, t target, w *workload, c int) (measurement, error) {
	workers := make([]*worker, c)
	for i := range workers {
		s, err := t.open(w)
		if err != nil {
			return measurement{}, err
		}
		defer s.close()
		workers[i] = &worker{session: s, answers: b.answers[[2]string{t.name, w.name}], next: i % len(w.inputs)}
	}
	began := time.Now()
	begin := began.Add(b.window / 10)
	end := begin.Add(b.window)
	var all sync.WaitGroup
	for _, k := range workers {
		all.Go(func() { k.loop(ctx, begin, end) })
	}
	time.Sleep(time.Until(begin))
	before := b.cpu(t)
	time.Sleep(time.Until(end))
	after := b.cpu(t)
	rss := int64(0)
	for _, name := range t.processes[:t.own] {
		rss += memoryOf(b.pids[name]).resident
	}
	// The last calls end after the window.
	all.Wait()
	if err := ctx.Err(); err != nil {
		return measurement{}, err
	}
	m := sum(workers, begin, end)
	m.rss, m.cpu = rss, map[string]float64{}
	for name := range after {
		if m.rate > 0 {
			m.cpu[name] = (after[name] - before[name]) / (m.rate * b.window.Seconds()) * 1000
		}
	}
	if m.calls == m.errors {
		return m, fmt.Errorf("no call succeeded: %w", m.problem)
	}
	return m, nil
}

// cpu reads the CPU seconds of the processes that a call of the target occupies.
func (b *bench) cpu(t target) map[string]float64 {
	now := map[string]float64{}
	for _, name := range append([]string{"bench"}, t.processes...) {
		now[name] = cpuOf(b.pids[name], name == "postgres" || name == nginxName)
	}
	return now
}

// loop is the closed loop, until the window's end. Calls that ended before the window began are not counted; each
// answer is compared, byte for byte, with the one that was checked.
func (k *worker) loop(ctx context.Context, begin, end time.Time) {
	for {
		start := time.Now()
		if !start.Before(end) || ctx.Err() != nil {
			return
		}
		answer, err := k.session.call(k.next)
		if err == nil && !bytes.Equal(answer, k.answers[k.next]) {
			err = errors.New("the answer differs from the one that was checked")
		}
		k.next = (k.next + 1) % len(k.answers)
		took := time.Since(start)
		if start.Add(took).Before(begin) {
			continue
		}
		k.calls = append(k.calls, timedCall{start, took})
		if err != nil {
			k.errors++
			k.problem = err
		}
	}
}

// sum joins the workers' results. A call that began before the window or ended after it
// counts by the part of its time that lies within, so that the rate is right however long
// the calls are; the quantiles are those of the calls that began within the window.
func sum(workers []*worker, begin, end time.Time) (m measurement) {
	var took, all []time.Duration
	// Calls within the window, in parts of calls.
	within := 0.0
	for _, k := range workers {
		m.calls += len(k.calls)
		m.errors += k.errors
		m.problem = cmp.Or(m.problem, k.problem)
		for _, c := range k.calls {
			within += overlap(c, begin, end)
			all = append(all, c.took)
			if !c.start.Before(begin) {
				took = append(took, c.took)
			}
		}
	}
	if m.calls > 0 {
		m.rate = within / end.Sub(begin).Seconds() * float64(m.calls-m.errors) / float64(m.calls)
	}
	// Calls that are longer than the window all began before it.
	if len(took) == 0 {
		took = all
	}
	slices.Sort(took)
	m.p50, m.p90, m.p99 = quantile(took, 0.5), quantile(took, 0.9), quantile(took, 0.99)
	return m
}

// overlap is the part of a call's time, 0 to 1, that lies between begin and end.
func overlap(c timedCall, begin, end time.Time) float64 {
	from, to := c.start, c.start.Add(c.took)
	if from.Before(begin) {
		from = begin
	}
	if to.After(end) {
		to = end
	}
	return max(0, float64(to.Sub(from))/float64(max(c.took, 1)))
}

// quantile is the nearest rank in a sorted list.
// q is from 0 to 1; without any value the quantile is 0.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// middle takes the median of each figure, and the sum of the calls and errors.
// A figure's median is its own: the p99 and the rate of one cell may be those of two rounds.
func middle(rounds []measurement) (m measurement) {
	of := func(figure func(measurement) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, figure(r))
		}
		return median(values)
	}
	m.rate = of(func(r measurement) float64 { return r.rate })
	m.p50 = time.Duration(of(func(r measurement) float64 { return float64(r.p50) }))
	m.p90 = time.Duration(of(func(r measurement) float64 { return float64(r.p90) }))
	m.p99 = time.Duration(of(func(r measurement) float64 { return float64(r.p99) }))
	m.rss = int64(of(func(r measurement) float64 { return float64(r.rss) }))
	m.cpu = map[string]float64{}
	for name := range rounds[0].cpu {
		m.cpu[name] = of(func(r measurement) float64 { return r.cpu[name] })
	}
	for _, r := range rounds {
		m.calls += r.calls
		m.errors += r.errors
		m.problem = cmp.Or(m.problem, r.problem)
	}
	return m
}

// median is the middle value, of an even number the mean of the two.
// There is one value at least.
func median[T ~int64 | ~float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
