package postgres_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"hub.internal/services/auth/apps"
	"hub.internal/services/auth/postgres"
)

// TestTokensUseIndexes asks for the plans of what each call of an app runs, with many apps, tokens and links.
func TestTokensUseIndexes(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	owner := connect(t, db.OwnerURL)
	for _, sql := range []string{
		`INSERT INTO auth.users (id, email, name, roles, created_by, created_at) SELECT 'usr_' || n, 'a' || n || '@b.example', 'A', '{}', ` +
			`'x', now() FROM generate_series(1, 2000) n`,
		`INSERT INTO auth.connected_apps SELECT 'app' || n, 'A', 'ACTIVE', '', '{}', '{}', '{}', 'consent', 1, 1, 1, 1, 1, 'x', now(), now() ` +
			`FROM generate_series(1, 2000) n`,
		`INSERT INTO auth.app_secrets SELECT 's_' || n || '_' || m, 'app' || n, '\x00', 'x', now(), NULL, NULL FROM generate_series(1, 2000) ` +
			`n, generate_series(1, 2) m`,
		`INSERT INTO auth.app_webhook_secrets SELECT replace(id, 's_', 'w_'), service_code, sealed, created_by, created_at, NULL, NULL ` +
			`FROM auth.app_secrets`,
		`INSERT INTO auth.identity_links SELECT 'l' || n, 'app7', 'u' || n, 'usr_1', '{}', 1, ` +
			`CASE n % 3 WHEN 0 THEN 'REVOKED' ELSE 'ACTIVE' END, now(), NULL, '', '' FROM generate_series(1, 20000) n`,
		`INSERT INTO auth.jwt_replay SELECT 'app7', sha256(n::text::bytea), now() + n * interval '1 s' FROM generate_series(1, 20000) n`,
		`ANALYZE`,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	role := connect(t, db.URL("auth"))
	hash := sha256.Sum256([]byte("x"))
	for name, c := range map[string]struct {
		sql   string
		args  []any
		index string
	}{
		"the secrets of an app":  {postgres.Keyring(apps.Signing), []any{"app7", time.Now()}, "app_secrets_held"},
		"its webhook secrets":    {postgres.Keyring(apps.Webhook), []any{"app7", time.Now()}, "app_webhook_secrets_held"},
		"the link of a user":     {postgres.LinkOf, []any{"app7", "u77"}, "identity_links_pair"},
		"tokens that are over":   {postgres.Sweep, []any{time.Now(), 10}, "jwt_replay_exp"},
		"a token that is burned": {postgres.UseToken, []any{"app7", hash[:], time.Now()}, ""},
	} {
		rows, err := role.Query(t.Context(), `EXPLAIN `+c.sql, c.args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		rows.Close()
		if !strings.Contains(plan.String(), c.index) || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s:\n%s", name, plan.String())
		}
	}
}
