package statements

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"hub.internal/pkg/tool"
	"hub.internal/services/query"
)

// discarded is a RowWriter that only counts.
type discarded struct {
	rows int
	row  []byte
}

func (d *discarded) Arrived(int) bool             { return true }
func (d *discarded) Columns([]query.ResultColumn) {}
func (d *discarded) Row(encode query.RowEncoder) bool {
	d.rows++
	d.row, _ = encode(d.row[:0], math.MaxInt)
	return true
}

const benchColumns = "campaign_id, partner_id, brand_id, name, status_code, start_at, end_at, offer_count, apply_count, view_count"

func benchFixture(b *testing.B) *fixture {
	f := newFixture(b, ReaderOptions{MaxRows: 100_000})
	f.exec(b, "INSERT INTO campaign ("+benchColumns+", created_at) SELECT seq, 1000 + seq % 997, 2000 + seq % 2999, CONCAT('캠페인 ', "+
		"seq, ' spring \"launch\"'), '1206', "+
		"'2026-01-31 09:00:00' + INTERVAL seq MINUTE, IF(seq % 3, '2026-03-31 09:00:00', NULL), seq % 50, seq % 977, seq % 99991, "+
		"'2026-01-01' FROM seq_1_to_10000")
	return f
}

// BenchmarkRead compares the reader with the least that go-sql-driver can do: the same
// SQL on an unguarded pool, sql.RawBytes appended to one buffer.
func BenchmarkRead(b *testing.B) {
	f := benchFixture(b)
	for _, n := range []int{1, 1000, 10_000} {
		text := fmt.Sprintf("SELECT %s FROM campaign ORDER BY campaign_id LIMIT %d", benchColumns, n)
		b.Run(fmt.Sprintf("hub/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var d discarded
			for b.Loop() {
				d.rows = 0
				if err := f.reader.ReadStatement(b.Context(), query.Statement{Text: text}, &d); err != nil || d.rows != n {
					b.Fatal(d.rows, err)
				}
			}
		})
		b.Run(fmt.Sprintf("driver/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				if rows, err := plainLoop(f.source.DB(), text, &out); err != nil || rows != n {
					b.Fatal(rows, err)
				}
			}
		})
	}
}

// BenchmarkBesideDriver alternates the two, so that a busy machine disturbs both alike,
// and reports medians in µs and how many times faster the reader is.
func BenchmarkBesideDriver(b *testing.B) {
	f := benchFixture(b)
	for _, n := range []int{1, 1000, 10_000} {
		text := fmt.Sprintf("SELECT %s FROM campaign ORDER BY campaign_id LIMIT %d", benchColumns, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var hub, driver []time.Duration
			var out []byte
			var answer discarded
			for b.Loop() {
				start := time.Now()
				answer.rows = 0
				if err := f.reader.ReadStatement(b.Context(), query.Statement{Text: text}, &answer); err != nil || answer.rows != n {
					b.Fatal(answer.rows, err)
				}
				between := time.Now()
				if rows, err := plainLoop(f.source.DB(), text, &out); err != nil || rows != n {
					b.Fatal(rows, err)
				}
				hub, driver = append(hub, between.Sub(start)), append(driver, time.Since(between))
			}
			slices.Sort(hub)
			slices.Sort(driver)
			h, d := hub[len(hub)/2], driver[len(driver)/2]
			b.ReportMetric(float64(h.Microseconds()), "hub-µs")
			b.ReportMetric(float64(d.Microseconds()), "driver-µs")
			b.ReportMetric(float64(d)/float64(h), "x-driver")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func plainLoop(db *sql.DB, text string, buffer *[]byte) (n int, err error) {
	rows, err := db.Query(text)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return 0, err
	}
	values, pointers, quoted := make([]sql.RawBytes, len(columns)), make([]any, len(columns)), make([]bool, len(columns))
	for i, c := range columns {
		pointers[i] = &values[i]
		switch c.DatabaseTypeName() {
		case "BIGINT", "INT":
		default:
			quoted[i] = true
		}
	}
	out := (*buffer)[:0]
	defer func() { *buffer = out }()
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return 0, err
		}
		out = append(out, '[')
		for i, v := range values {
			if i > 0 {
				out = append(out, ',')
			}
			switch {
			case v == nil:
				out = append(out, "null"...)
			case quoted[i]:
				out = appendQuoted(out, v)
			default:
				out = append(out, v...)
			}
		}
		out = append(out, ']', ',')
		n++
	}
	return n, rows.Err()
}

func (d *discarded) Ended()                {}
func (d *discarded) Warned([]tool.Warning) {}
