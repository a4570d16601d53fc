package postgres_test

import (
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/postgres"
)

// TestLikePattern asks the server: a pattern finds its own text, and nothing that its characters would mean.
func TestLikePattern(t *testing.T) {
	pool := open(t, postgres.Config{URL: hubtest.WriteStore(t).OwnerURL})
	for text, others := range map[string][]string{
		`50%`: {`50 %`, `500`}, `a_b`: {`aXb`}, `a\b`: {`ab`, `a\\b`}, `\%_`: {`%_`, `\x_`}, `plain`: {`plainer`},
	} {
		for _, s := range append(others, text) {
			var found bool
			if err := pool.QueryRow(t.Context(), `SELECT $1::text LIKE $2`, s, postgres.LikePattern(text)).Scan(&found); err != nil {
				t.Fatal(err)
			}
			if found != (s == text) {
				t.Errorf("the pattern of %q finds %q: %t", text, s, found)
			}
		}
	}
}
