package authoring_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/services/authoring"
)

// bareSegment is 50,000 targets of about 12 MB, as rows and as a body.
func bareSegment(n int) (rows [][]any, body []byte) {
	var b bytes.Buffer
	b.WriteString(`{"name":"n","kind":"partner","targets":[`)
	for i := range n {
		snapshot := fmt.Sprintf(
			`{"brand_id":%d,"brand_name":"브랜드 %d","president":"Kim \"K\" `+
				`Minsu","category_id":%d,"category_name":"beauty","country_code":"KR","partner_id":%d,"partner_name":"%s",`+
				`"last_campaign_at":"2026-01-31T09:00:00","contact":null}`,
			i*7,
			i,
			i%100,
			i,
			strings.Repeat("x", 30),
		)
		rows = append(rows, []any{int64(1), int32(i), int64(i), []byte(snapshot)})
		fmt.Fprintf(&b, `%s{"externalId":%d,"snapshot":%s}`, strings.Repeat(",", min(i, 1)), i, snapshot)
	}
	b.WriteString(`]}`)
	return rows, b.Bytes()
}

func bareDraft(n int) (rows [][]any, body []byte) {
	var b bytes.Buffer
	b.WriteString(
		`{"segmentId":"1","name":"n","subjectTemplate":"Hello {{toName}}","bodyTemplate":"<p>Dear {{toName}}, ` +
			`{{context.brand}} had {{context.applicants}} applicants.</p>","targets":[`,
	)
	for i := range n {
		context := fmt.Sprintf(`{"brand":"브랜드 %d","applicants":%d,"note":"%s"}`, i, i*3, strings.Repeat("y", 80))
		email, name := fmt.Sprintf("contact%d@partner%d.example", i, i), fmt.Sprintf("Contact %d", i)
		rows = append(rows, []any{int64(1), int32(i), int64(i), email, name, "", "", []byte(context)})
		fmt.Fprintf(
			&b,
			`%s{"externalId":%d,"toEmail":"%s","toName":"%s","context":%s}`,
			strings.Repeat(",", min(i, 1)),
			i,
			email,
			name,
			context,
		)
	}
	b.WriteString(`]}`)
	return rows, b.Bytes()
}

// BenchmarkWrites alternates each write over HTTP with the bare transaction of the same
// rows, and reports how many times as long it takes.
func BenchmarkWrites(b *testing.B) {
	segmentRows, segmentBody := bareSegment(authoring.MaxSegmentTargets)
	draftRows, draftBody := bareDraft(authoring.MaxDraftTargets)
	oneRows, oneBody := bareSegment(1)
	for _, c := range []struct {
		name, tool, table string
		columns           []string
		rows              [][]any
		body              []byte
		goal              float64
	}{
		{"create_segment/50000", "create_segment", "segment_targets", []string{"segment_id", "position", "external_id", "snapshot"},
			segmentRows, segmentBody, 4},
		{"save_message_draft/10000", "save_message_draft", "draft_targets",
			[]string{"draft_id", "position", "external_id", "to_email", "to_name", "subject", "body", "context"}, draftRows, draftBody, 6},
		{"create_segment/1", "create_segment", "segment_targets", nil, oneRows, oneBody, 3},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := newHouse(b)
			h.segmentOf()
			config := must[*pgx.ConnConfig](b)(pgx.ParseConfig(h.db.URL("authoring")))
			conn := must[*pgx.Conn](b)(pgx.ConnectConfig(b.Context(), config))
			defer conn.Close(b.Context())
			b.SetBytes(int64(len(c.body)))
			var bare, whole time.Duration
			n := int64(1 << 30)
			for b.Loop() {
				n++
				start := time.Now()
				err := pgx.BeginFunc(b.Context(), conn, func(tx pgx.Tx) error {
					if c.columns == nil { // two rows
						_, err := tx.Exec(
							b.Context(),
							`INSERT INTO authoring.segments (name, kind, created_at, target_count, service, external_user_id, credential_id, hub_user) `+
								`VALUES ('n', 'partner', now(), 1, '', '', '', '')`,
						)
						if err == nil {
							_, err = tx.Exec(
								b.Context(),
								`INSERT INTO authoring.segment_targets VALUES ($1, $2, $3, $4)`,
								n,
								c.rows[0][1],
								c.rows[0][2],
								c.rows[0][3],
							)
						}
						return err
					}
					_, err := tx.CopyFrom(
						b.Context(),
						pgx.Identifier{"authoring", c.table},
						c.columns,
						pgx.CopyFromSlice(len(c.rows), func(i int) ([]any, error) {
							c.rows[i][0] = n
							return c.rows[i], nil
						}),
					)
					return err
				})
				bare += time.Since(start)
				if err != nil {
					b.Fatal(err)
				}
				start = time.Now()
				if _, err := h.send(agent(b.Context()), c.tool, newKey(), string(c.body)); err != nil {
					b.Fatal(err)
				}
				whole += time.Since(start)
			}
			b.ReportMetric(float64(bare.Microseconds())/1000/float64(b.N), "bare-ms")
			b.ReportMetric(float64(whole.Microseconds())/1000/float64(b.N), "hub-ms")
			b.ReportMetric(float64(whole)/float64(bare), fmt.Sprintf("x-bare(≤%v)", c.goal))
		})
	}
}
