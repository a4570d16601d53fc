package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/jobs"
	"hub.internal/pkg/postgres"
)

// welcome is a job: its fields are kept as JSON.
type welcome struct {
	Name string `json:"name"`
}

// Kind implements jobs.Job.
func (welcome) Kind() string { return "welcome" }

// A job is added in the transaction of what it follows from: it runs once that has committed, and
// never when it was rolled back.
func Example() {
	hubtest.Example(func(t testing.TB) {
		store := hubtest.WriteStore(t)
		err := postgres.MigrateAll(t.Context(), store.OwnerURL, "authoring",
			postgres.Files(fstest.MapFS{"migrations/00001_none.sql": {Data: []byte("-- +goose Up\nSELECT 1;")}}), jobs.Migrate)
		if err != nil {
			t.Fatal(err)
		}
		pool := hubtest.Pool(t, store.URL("authoring"))
		adder := jobs.NewAdder(pool, "authoring")

		for _, name := range []string{"Bo", "Ada"} {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if err := adder.Add(t.Context(), tx, welcome{name}); err != nil {
					return err
				}
				if name == "Bo" {
					return errors.New("something else fails")
				}
				return nil
			})
			fmt.Println(name, err)
		}

		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		err = jobs.Runner{Pool: pool, Service: "authoring", Schema: "authoring", Logger: slog.New(slog.DiscardHandler), Kinds: []jobs.Kind{
			jobs.On(func(_ context.Context, j welcome) error {
				fmt.Println("welcome", j.Name)
				stop()
				return nil
			}),
		}}.Run(ctx)
		fmt.Println("stopped", err)
	})
	// Output:
	// Bo something else fails
	// Ada <nil>
	// welcome Ada
	// stopped <nil>
}
