// Command bench measures Hub's read path beside the least that the same SQL can cost and
// beside its peers, all in one run on one machine. It is what `make bench` calls:
//
//	go run ./scripts/bench                         everything, about 13 minutes
//	go run ./scripts/bench --only point            one workload
//	go run ./scripts/bench --only flood            what twenty keys that pay no heed leave a quiet one
//	go run ./scripts/bench --only growth           searches at scale 1, 10 and 100, about 15 minutes more
//	go run ./scripts/bench --only console          the pages for reviewers, with the services behind them
//	go run ./scripts/bench --mysql                 the query service on MySQL as well, beside the one on MariaDB
//	go run ./scripts/bench --seconds 0.2 --rounds 1 --peers=false --scale 0.05
//
// It always runs a stack of its own: private MariaDB, PostgreSQL and Redis servers and the
// services of this checkout, below .hub/bench, apart from what `make up` runs. Only so are
// the sample's scale, the settings, the start times and the memory after the start known.
// The servers are as `make up` makes them, with fsync; the services have their default
// settings but for MCP_MAX_ROW_LIMIT=10000. Everything is made anew at each run.
//
// The targets take turns, A B C C B A, so that a slow minute of the machine is everybody's,
// and the report shows the medians of the rounds. Every answer is checked. Absolute rates
// differ from machine to machine: the ratios within one run are what counts.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/scripts/program"
)

func main() { program.Main(command(run)) }

// options are what the command line says.
type options struct {
	root    string        // of the checkout
	dir     string        // for data, logs and the report
	rounds  int           // of which the median counts
	seconds float64       // of one measurement, as the flag says it
	window  time.Duration // the same
	only    []string      // names of workloads; empty means all
	flood   bool          // measure a flood, too
	grow    []float64     // the scales to measure growth at
	pages   bool          // and the console
	scale   float64       // of the sample data, as scripts/gen has it
	peers   bool          // compare with them
	mysql   bool          // compare with the same data in MySQL
}

// command is the command line, whose options it hands to do: the report goes to out, progress to progress.
func command(do func(ctx context.Context, o options, out, progress io.Writer) error) *cobra.Command {
	o := options{}
	c := &cobra.Command{Use: "bench", Short: "Measure Hub beside the bare SQL and its peers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return do(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		}}
	f := c.Flags()
	f.IntVar(&o.rounds, "rounds", 3, "rounds; the report shows their medians")
	f.Float64Var(&o.seconds, "seconds", 3, "seconds of one measurement, 0.05 to 30")
	f.StringSliceVar(&o.only, "only", nil, "workloads to run, with commas: "+strings.Join(parts(), ","))
	f.Float64Var(&o.scale, "scale", 1, "size of the sample data, 0.001 to 100; 1 is 20,000 campaigns")
	f.BoolVar(&o.peers, "peers", true, "compare with toolbox, nginx before toolbox and dbhub, those that can be had")
	f.BoolVar(&o.mysql, "mysql", false, "compare with the same data in MySQL, which `make servers` has fetched")
	return c
}

// parts are what --only can name.
func parts() []string { return append(workloadNames(), floodName, growthName, consoleName) }

// complete checks what the flags say, and adds what follows from it. The error names the flag that is wrong.
func (o *options) complete() (err error) {
	for _, name := range o.only {
		if !slices.Contains(parts(), name) {
			return fmt.Errorf("--only %s: there are %s", name, strings.Join(parts(), ", "))
		}
	}
	// A token of the target "service" is good for a minute, and each measurement has one.
	if o.rounds < 1 || o.seconds < 0.05 || o.seconds > 30 {
		return errors.New("want --rounds of at least 1, and --seconds of 0.05 to 30")
	}
	o.window = time.Duration(o.seconds * float64(time.Second))
	o.flood = len(o.only) == 0 || slices.Contains(o.only, floodName)
	if slices.Contains(o.only, growthName) {
		o.grow = growthScales
	}
	o.pages = len(o.only) == 0 || slices.Contains(o.only, consoleName)
	if o.root, err = program.Root(); err == nil && o.dir == "" {
		o.dir = filepath.Join(o.root, ".hub", "bench")
	}
	return err
}

// run is the whole benchmark: the report goes to out and to report.md in o.dir, its plots beside it, progress
// to progress.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	machine := describeMachine(o.root) // first: the load average is that of before the run
	say := func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) }
	began := time.Now()
	s, err := startStack(ctx, o, say)
	if err != nil {
		return err
	}
	defer s.stop()
	works, err := workloads(ctx, s, o)
	if err != nil {
		return err
	}
	targets, skipped := []target{hubTarget(s), mcpTarget(s)}, ""
	for _, on := range s.sources {
		targets = append(targets, serviceTarget(s, on), limitTarget(s, on))
	}
	if o.peers && len(works) > 0 {
		var found []target
		found, skipped = startPeers(ctx, s, works, say)
		targets = append(targets, found...)
	}
	b := &bench{stack: s, targets: targets, say: say}
	if err := b.run(ctx, works); err != nil {
		return err
	}
	if o.flood {
		if err := b.measureFlood(ctx); err != nil {
			return fmt.Errorf("%s: %w", floodName, err)
		}
	}
	if len(o.grow) > 0 {
		if err := b.measureGrowth(ctx); err != nil {
			return fmt.Errorf("%s: %w", growthName, err)
		}
	}
	if o.pages {
		if err := b.measureConsole(ctx); err != nil {
			return fmt.Errorf("%s: %w", consoleName, err)
		}
	}
	r := report{bench: b, works: works, skipped: skipped, began: began, machine: machine}
	text := r.markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	plots := filepath.Join(o.dir, "plots")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for name, drawn := range r.plots() {
		if err := os.WriteFile(filepath.Join(plots, name), []byte(drawn), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(o.dir, "report.md"), []byte(text), 0o644)
}
