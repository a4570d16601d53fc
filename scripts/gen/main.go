// Command gen fills the source database with sample data: the partners, brands,
// campaigns and people of a marketplace that does not exist. The same scale and seed
// give the same bytes on every machine.
//
// The data is made to be believable and to be hard: names in five languages, and
// every case that the query tools have a rule about (see partner.go, campaign.go,
// deposit.go and the oddities in names.go). All addresses end in .example.
//
// A run has three stages. newPlan decides how many rows each table has and who belongs to
// whom (plan.go, dice.go); plan.tables names for each table a pure function from an id to
// its row (brand.go, member.go and the others); loader sends the rows as INSERT statements
// of about a megabyte (batch.go, load.go). Words of the five languages are in words.json,
// the tree of categories in categories.txt. Whoever changes any of them changes the sample:
// TestSameBytes has its checksum, and kept benchmarks are then of other data.
//
// It refuses to touch tables that hold rows unless it is told to empty them, and
// never reads the clock for data.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hub.internal/scripts/program"
)

func main() { program.Main(command()) }

// options are what the command line says.
type options struct {
	// The flags by their names.
	dsn   string
	scale float64
	seed  uint64
	force bool
}

// command is the program's command line.
func command() *cobra.Command {
	o := options{}
	c := &cobra.Command{
		Use:   "gen --dsn 'user:password@tcp(host:port)/database'",
		Short: "Fill the source database with deterministic sample data",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), o, os.Stderr)
		},
	}
	f := c.Flags()
	f.StringVar(&o.dsn, "dsn", "", "MySQL, MariaDB or TiDB database to fill (required)")
	f.Float64Var(&o.scale, "scale", 1, "size, from 0.001 to 100; 1 is 1,000 partners and 20,000 campaigns")
	f.Uint64Var(&o.seed, "seed", 1, "another seed gives other data")
	f.BoolVar(&o.force, "force", false, "empty the tables first when they hold rows")
	if err := c.MarkFlagRequired("dsn"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

// run fills the database and reports each table on a line of out when it is full.
func run(ctx context.Context, o options, out io.Writer) error {
	start := time.Now()
	plan, err := newPlan(o.scale, o.seed)
	if err != nil {
		return err
	}
	tables := plan.tables()
	l, err := open(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.prepare(ctx, tables, o.force); err != nil {
		return err
	}
	var rows int64
	for _, t := range tables {
		if err := l.load(ctx, t); err != nil {
			if ctx.Err() != nil {
				err = errors.New("interrupted")
			}
			return fmt.Errorf("%w; the tables are partly filled, run again with --force", err)
		}
		rows += t.rows
		fmt.Fprintf(out, "%-21s %11d rows %7.1f s\n", t.name, t.rows, time.Since(start).Seconds())
	}
	if err := l.analyze(ctx, tables); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	fmt.Fprintf(out, "%d rows in %d tables of %s in %.1f s (%.0f rows/s), scale %g, seed %d\n",
		rows, len(tables), l.config.DBName, seconds, float64(rows)/seconds, o.scale, o.seed)
	return nil
}
