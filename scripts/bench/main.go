// Command bench measures Hub's read path beside the least that the same SQL can cost and
// beside a peer from npm, all in one run on one machine. It is what `make bench` calls:
//
//	go run ./scripts/bench                         everything, about 9 minutes
//	go run ./scripts/bench --only point            one workload
//	go run ./scripts/bench --only console          the pages for reviewers, with the services behind them
//	go run ./scripts/bench --seconds 0.2 --rounds 1 --peers=false --scale 0.05
//
// It always runs a stack of its own: private MariaDB, PostgreSQL and Redis servers and the
// services of this checkout, below .hub/bench, apart from what `make up` runs. Only so are
// the sample's scale, the settings, the start times and the memory after the start known.
// The servers are as `make up` makes them, with fsync; the services have their default
// settings but for MCP_MAX_ROW_LIMIT=10000. Everything is made anew at each run.
//
// The targets take turns, A B C A B C, so that a slow minute of the machine is everybody's,
// and the report shows the medians of the rounds. Every answer is checked. Absolute rates
// differ from machine to machine: the ratios within one run are what counts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	o, err := readOptions(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o, os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		restore()
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	root   string        // of the checkout
	dir    string        // for data, logs and the report
	rounds int           // of which the median counts
	window time.Duration // of one measurement
	only   []string      // names of workloads; empty means all
	pages  bool          // measure the console, too
	scale  float64       // of the sample data, as scripts/gen has it
	peers  bool
}

// readOptions reads the command line; usage and problems go to out. An error names the flag that is wrong.
func readOptions(args []string, out io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.IntVar(&o.rounds, "rounds", 3, "rounds; the report shows their medians")
	seconds := f.Float64("seconds", 3, "seconds of one measurement")
	parts := append(workloadNames(), consoleName)
	only := f.String("only", "", "workloads to run, with commas: "+strings.Join(parts, ","))
	f.Float64Var(&o.scale, "scale", 1, "size of the sample data, 0.001 to 100; 1 is 20,000 campaigns")
	f.BoolVar(&o.peers, "peers", true, "compare with the peer from npm, when npm is there")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(parts, name) {
			return o, fmt.Errorf("--only %s: there are %s", name, strings.Join(parts, ", "))
		}
	}
	o.pages = len(o.only) == 0 || slices.Contains(o.only, consoleName)
	o.window = time.Duration(*seconds * float64(time.Second))
	if o.rounds < 1 || o.window < 50*time.Millisecond || f.NArg() > 0 {
		return o, fmt.Errorf("want --rounds of at least 1, --seconds of at least 0.05, and no arguments")
	}
	root, err := findRoot()
	o.root, o.dir = root, filepath.Join(root, ".hub", "bench")
	return o, err
}

// findRoot finds the repository that the working directory is in.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work in %s or above: run this inside the repository", start)
		}
	}
}

// run is the whole benchmark: the report goes to out and to report.md in o.dir, progress
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
	targets, skipped := []target{hubTarget(s), mcpTarget(s), serviceTarget(s), limitTarget(s)}, ""
	if o.peers && len(works) > 0 {
		peer, err := startToolbox(ctx, s, works, say)
		if err == nil {
			targets = append(targets, peer)
		} else {
			skipped = fmt.Sprintf("Skipped toolbox (%s %s): %v.\n\n", toolboxPackage, toolboxVersion, err)
			say("%s", strings.TrimSpace(skipped))
		}
	}
	b := &bench{stack: s, targets: targets, say: say}
	if err := b.run(ctx, works); err != nil {
		return err
	}
	if o.pages {
		if err := b.measureConsole(ctx); err != nil {
			return fmt.Errorf("%s: %w", consoleName, err)
		}
	}
	text := report{bench: b, works: works, skipped: skipped, began: began, machine: machine}.markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.dir, "report.md"), []byte(text), 0o644)
}
