package write_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

const notes = `-- +goose Up
CREATE TABLE authoring.notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL);
GRANT SELECT, INSERT ON authoring.notes TO hub_authoring;`

// A write is done once: sent again with its key it is answered with the bytes of the first time,
// and with another input it is refused. The note, the row of the audit log and the answer are
// stored together, or not at all.
func ExampleKeys_Once() {
	hubtest.Example(func(t testing.TB) {
		store := hubtest.WriteStore(t)
		err := postgres.MigrateAll(t.Context(), store.OwnerURL, "authoring", audit.Tables,
			postgres.Files(fstest.MapFS{"migrations/00001_notes.sql": {Data: []byte(notes)}}), write.Migrate)
		if err != nil {
			t.Fatal(err)
		}
		keys := write.New(hubtest.Pool(t, store.URL("authoring")), write.Options{Service: "authoring"})

		add := func(key, text string) {
			input := []byte(`{"text":"` + text + `"}`)
			fingerprint, err := write.Fingerprint(context.Background(), input)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := keys.Once(t.Context(), write.Key{Principal: "ak_1", Operation: "add_note", Key: key, Fingerprint: fingerprint},
				func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
					id, err := postgres.One(ctx, tx, pgx.RowTo[int64], `INSERT INTO authoring.notes (text) VALUES ($1) RETURNING id`, text)
					if err != nil {
						return tool.Result{}, audit.Entry{}, err
					}
					answer, err := write.Answer(map[string]int64{"note": id}, 1)
					return answer, audit.Entry{Caller: caller.From(ctx), Tool: "add_note", Outcome: audit.OK, Count: 1}, err
				})
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("%s replayed: %v\n", answer.Data, answer.Replayed)
		}
		add("k1", "call Kim")
		add("k1", "call Kim")
		add("k1", "call Lee")
		add("k2", "call Lee")
	})
	// Output:
	// {"note":1} replayed: false
	// {"note":1} replayed: true
	// E_IDEMPOTENCY: This Idempotency-Key was used before with another input. Send a new key for a new call.
	// {"note":4} replayed: false
}
