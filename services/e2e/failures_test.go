package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
)

// TestFailureTable goes through the codes of CONTRACT.md 2.3, row by row.
func TestFailureTable(t *testing.T) {
	const limit = 4 * time.Second // long enough for every other row on a busy machine
	s := start(t, options{env: []string{fmt.Sprint("MCP_QUERY_TIMEOUT_MS=", limit.Milliseconds())}})
	readonly := s.issue("--scopes", "explore,query").Key
	limited := s.issue("--scopes", "query", "--user-per-minute", "1", "--user-burst", "1").Key
	gone := s.issue("--scopes", "query")
	s.run("auth", s.env["auth"], "apikey", "revoke", gone.ID, "--reason", "test")
	lapsed := s.issue("--scopes", "query")
	s.run("auth", s.env["auth"], "apikey", "rotate", lapsed.ID, "--overlap", "0s")

	draft := s.queued(t, s.draft(t, draftOptions{targets: 2}))
	leaver := s.draft(t, draftOptions{targets: 1})
	query[int](t, s, `INSERT INTO review_control.suppressions (email_key, domain, email, reason, source, by, at)
		SELECT lower(to_email), split_part(lower(to_email), '@', 2), to_email, 'test', 'console', 'test', now() FROM authoring.draft_targets
			WHERE draft_id = $1::bigint RETURNING 1`, leaver)
	s.must(t, "create_segment", `{"name":"a","kind":"brand","targets":[]}`, nil)
	s.call("create_segment", `{"name":"a","kind":"brand","targets":[]}`, "Idempotency-Key", "used")

	for _, c := range []struct {
		name, tool, input string
		headers           []string
		code              string
		status            int
		retryable         bool
	}{
		{"body fails the schema", "get_brand", `{}`, nil, "E_VALIDATION", 400, false},
		{"two statements", "execute_read_sql", `{"sql":"SELECT 1; SELECT 2"}`, nil, "E_VALIDATION", 400, false},
		{"a write", "execute_read_sql", `{"sql":"DELETE FROM member"}`, nil, "E_VALIDATION", 400, false},
		{"the server refuses", "execute_read_sql", `{"sql":"SELECT nope FROM member"}`, nil, "E_VALIDATION", 400, false},
		{"no credential", "get_brand", `{"brandId":1}`, []string{"Authorization", ""}, "E_AUTH_MISSING", 401, false},
		{"malformed key", "get_brand", `{"brandId":1}`, []string{"Authorization", "Bearer crm_x"}, "E_AUTH_INVALID", 401, false},
		{"unknown key", "get_brand", `{"brandId":1}`, []string{"Authorization", "Bearer crm_" + strings.Repeat("0", 42)}, "E_AUTH_INVALID",
			401, false},
		{"revoked key", "get_brand", `{"brandId":1}`, []string{"Authorization", "Bearer " + gone.Key}, "E_AUTH_REVOKED", 403, false},
		{"expired key", "get_brand", `{"brandId":1}`, []string{"Authorization", "Bearer " + lapsed.Key}, "E_AUTH_REVOKED", 403, false},
		{"no scope", "execute_read_sql", `{"sql":"SELECT 1"}`, []string{"Authorization", "Bearer " + readonly}, "E_SCOPE", 403, false},
		{"no such tool", "drop_everything", `{}`, nil, "E_NOT_FOUND", 404, false},
		{"no such brand", "get_brand", `{"brandId":999999999}`, nil, "E_NOT_FOUND", 404, false},
		{"no such partner", "search_partner_contacts", `{"partnerId":999999999}`, nil, "E_NOT_FOUND", 404, false},
		{"no such campaign", "get_campaign_performance", `{"campaignId":999999999}`, nil, "E_NOT_FOUND", 404, false},
		{"no such table", "describe_schema", `{"table":"nope"}`, nil, "E_NOT_FOUND", 404, false},
		{"no such draft", "queue_for_review", `{"draftId":"999999999"}`, []string{"Idempotency-Key", "1"}, "E_NOT_FOUND", 404, false},
		{"no Idempotency-Key", "queue_for_review", `{"draftId":"` + draft + `"}`, nil, "E_VALIDATION", 400, false},
		{"wrong state", "queue_for_review", `{"draftId":"` + draft + `"}`, []string{"Idempotency-Key", "2"}, "E_CONFLICT", 409, false},
		{"suppressed", "queue_for_review", `{"draftId":"` + leaver + `"}`, []string{"Idempotency-Key", "3"}, "E_SUPPRESSED", 422, false},
		{"another wish with the same key", "create_segment", `{"name":"b","kind":"brand","targets":[]}`, []string{"Idempotency-Key", "used"},
			"E_IDEMPOTENCY", 409, false},
		{"too many calls", "list_categories", `{}`, []string{"Authorization", "Bearer " + limited}, "E_RATE_LIMIT", 429, true},
		{"too slow", "execute_read_sql", `{"sql":"SELECT SLEEP(30)"}`, nil, "E_DB_TIMEOUT", 504, false},
		{"without an end", "execute_read_sql", `{"sql":"SELECT COUNT(*) FROM member a, member b, member c"}`, nil, "E_DB_TIMEOUT", 504, false},
		{"slow without an error of the server", "execute_read_sql", `{"sql":"SELECT BENCHMARK(1000000000, MD5(1))"}`, nil, "E_DB_TIMEOUT",
			504, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code == "E_RATE_LIMIT" {
				s.call(c.tool, c.input, c.headers...) // the one of this minute, if it was not used yet
			}
			r := s.call(c.tool, c.input, c.headers...)
			if r.OK || r.Error.Code != c.code || r.status != c.status || r.Error.Retryable != c.retryable || r.Error.Message == "" {
				t.Errorf("status %d: %s; want %d %s", r.status, r.raw, c.status, c.code)
			}
			if c.code == "E_DB_TIMEOUT" && r.took > limit+hubtest.Here(3*time.Second) {
				t.Errorf("answered after %s", r.took)
			}
			if !strings.HasPrefix(r.RequestID, "req_") || r.header.Get("X-Request-Id") != r.RequestID {
				t.Errorf("request id %q", r.RequestID)
			}
			for _, leak := range []string{"goroutine", "127.0.0.1", hubtest.Root(t), "mysql.go", "pgx", "password"} {
				if strings.Contains(r.raw, leak) {
					t.Errorf("the answer holds %q: %s", leak, r.raw)
				}
			}
			hubtest.Eventually(t, "the call is in the audit log", func() bool {
				rows := s.audited(r.RequestID)
				return len(rows) == 1 && rows[0].Outcome == c.code && rows[0].Tool == c.tool
			})
		})
	}
	t.Run("nothing runs on", func(t *testing.T) {
		hubtest.Eventually(t, "the process list is empty", func() bool {
			return running(t, "SELECT SLEEP(30)")+running(t, "SELECT BENCHMARK(")+running(t, "SELECT COUNT(*) FROM member a, member b") == 0
		})
	})
	t.Run("no secret in any log", func(t *testing.T) {
		for _, secret := range []string{s.key, readonly, callertest.Signing("gateway").Reveal(), callertest.Signing("query").Reveal(), pepper,
			"-test@", "reader-password"} {
			if strings.Contains(s.logs.String(), secret) {
				t.Errorf("the logs hold %q", secret)
			}
		}
	})
}

// TestAnswersOfReadSQL: an answer is audited with what was asked, and is what the service wrote.
func TestAnswersOfReadSQL(t *testing.T) {
	s := start(t, options{})
	t.Run("audited before it leaves", func(t *testing.T) { isAudited(t, s) })
	t.Run("passed through, byte for byte", func(t *testing.T) { isPassedThrough(t, s) })
}

func isAudited(t *testing.T, s *suite) {
	r := s.call("execute_read_sql", `{"sql":"SELECT partner_id, name FROM partner ORDER BY 1","limit":3}`, "X-Request-Id", "mine-1")
	rows := s.audited("mine-1")
	if r.Count != 3 || len(rows) != 1 || rows[0].Outcome != "ok" || rows[0].Count != 3 {
		t.Fatalf("%d rows audited: %+v; %s", len(rows), rows, r.raw)
	}
	var detail struct {
		SQL       string   `json:"sql"`
		Columns   []string `json:"columns"`
		RowCount  int      `json:"row_count"`
		Truncated bool     `json:"truncated"`
	}
	if err := json.Unmarshal(
		[]byte(rows[0].Detail),
		&detail,
	); err != nil || detail.SQL != "SELECT partner_id, name FROM partner ORDER BY 1" ||
		strings.Join(detail.Columns, ",") != "partner_id,name" || detail.RowCount != 3 ||
		!detail.Truncated {
		t.Errorf("detail %s: %v", rows[0].Detail, err)
	}
}

// isPassedThrough takes the characters that a JSON encoder likes to rewrite.
func isPassedThrough(t *testing.T, s *suite) {
	r := s.call(
		"execute_read_sql",
		map[string]any{"sql": `SELECT '<a href="x">&amp; 한글 🎉 \\ /' AS v, 9007199254740993 AS big, 0.10 AS dec_`},
	)
	if r.status != 200 || !bytes.Contains(r.Data, []byte(`["<a href=\"x\">&amp; 한글 🎉 \\ /","9007199254740993","0.10"]`)) {
		t.Errorf("got %s", r.raw)
	}
}
