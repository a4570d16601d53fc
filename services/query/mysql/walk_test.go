package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
	"hub.internal/services/query/marketplace"
	"hub.internal/services/query/mysql/server"
)

// filled is a source: 4,000 brands of 900 partners and of some that are gone, each tenth without a campaign and each seventh
// without a new one, and 24,000 campaigns that start together with others, one in fifty at one moment.
func filled(t *testing.T, on *localserver.SourceServer) (*Source, *sql.DB) {
	adminDSN, readerDSN := hubtest.SourceDBOn(t, on)
	db := admin(t, adminDSN)
	insert := func(table string, n int, row func(i int) string) {
		for from := 1; from <= n; from += 2000 {
			var rows []string
			for i := from; i <= min(n, from+1999); i++ {
				rows = append(rows, "("+row(i)+")")
			}
			if _, err := db.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES "+strings.Join(rows, ",")); err != nil {
				t.Fatal(err)
			}
		}
	}
	const made = "'2020-01-01'"
	insert("partner", 900, func(i int) string { return fmt.Sprintf("%d, 'firm %d', NULL, 'KR', %s", i, i%300, made) })
	insert("partner_admin", 900, func(i int) string {
		return fmt.Sprintf("%d, %d, 'n%d', 'c%d@p.example', %d, '%s', NULL, NULL, %s", i, 1+i*7%900, i, i, min(i%3, 1),
			[]string{"READY", "LEAVE"}[i%4/3], made)
	})
	insert("brand", 4000, func(i int) string {
		return fmt.Sprintf("%d, %d, 'b', 'person %d', %d, '%s', NULL, %s", i, 1+i*31%920, i*17%500, i*13%40,
			[]string{"KR", "KR", "JP", "US"}[i%4], made)
	})
	insert("campaign", 24_000, func(i int) string {
		brand := 1 + i*7919%4001*(i%5+1)%4000
		brand += (10 - brand%10) / 10 // those that end in 0 have none
		hour := i * 40 / 24           // 40,000 hours in all, a few campaigns in each
		switch {
		case brand%7 == 3:
			hour /= 3
		case i%50 == 7:
			hour = 20_000
		}
		start := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(hour/3*3) * time.Hour)
		code := append(marketplace.StatusCodes(), "1209", "1209", "1209", "1299", "12ab")[i*11%97%10]
		return fmt.Sprintf("%d, 1, %d, 'run %d', '%s', '%s', NULL, 1, %d, 1, %s", i, brand, i*29%700, code, start.Format(time.DateTime),
			i*37%1000, made)
	})
	if _, err := db.ExecContext(t.Context(), "ANALYZE TABLE partner, partner_admin, brand, campaign"); err != nil {
		t.Fatal(err)
	}
	return openSource(t, readerDSN, server.Options{}), db
}

// TestWalksAnswerAsTheWholeTable compares what is found among the newest campaigns with the statement that looks at all candidates.
func TestWalksAnswerAsTheWholeTable(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		s, db := filled(t, on)
		day := rapid.Custom(func(t *rapid.T) time.Time {
			// Campaigns start every three hours: a third of the dates are at such a moment, the others one or two minutes later.
			return time.Date(2022, 1, 1, 3*rapid.IntRange(-100, 13_500).Draw(t, "hours"), rapid.IntRange(0, 2).Draw(t, "minutes"), 0, 0, time.UTC)
		})
		between := func(t *rapid.T) (after, before time.Time) {
			before = maybe(t, "before", day)
			if after = maybe(t, "after", day); !before.IsZero() && after.After(before) {
				after, before = before, after
			}
			return after, before
		}
		pages := func(t *rapid.T) query.Page {
			return query.Page{Limit: rapid.SampledFrom([]int64{1, 2, 5, 10, 50, 200}).Draw(t, "limit"),
				Offset: rapid.SampledFrom([]int64{0, 0, 0, 1, 3, 10, 50, 51, 400, 1000, 1001}).Draw(t, "offset")}
		}
		equal := func(t *rapid.T, f, got, want any) {
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			if string(a) != string(b) {
				t.Fatalf("%+v\n%s\nand of all\n%s", f, a, b)
			}
		}
		t.Run("brands", rapid.MakeCheck(func(t *rapid.T) {
			f := query.BrandFilter{Page: pages(t), CountryCode: maybe(t, "country", rapid.SampledFrom([]string{"KR", "US", "VN"})),
				VerifiedContact: rapid.Bool().Draw(t, "contact"), Keyword: maybe(t, "keyword", rapid.SampledFrom([]string{"person 1", "firm 29",
					"person 499", "FIRM 299", "nobody", "😀"}))}
			f.LastCampaignAfter, f.LastCampaignBefore = between(t)
			if few := rapid.SampledFrom([]int64{0, 0, 1, 12, 40, 50}).Draw(t, "categories"); few > 0 {
				f.Category = &query.CategoryScope{Brands: min(few, 40) * 100, AllBrands: 4000}
				for id := range few {
					f.Category.IDs = append(f.Category.IDs, id)
				}
			}
			got, want := brandsBothWays(t.Context(), t, s, f)
			equal(t, f, got, want)
		}))
		t.Run("campaigns", rapid.MakeCheck(func(t *rapid.T) {
			f := query.CampaignFilter{Page: pages(t),
				Keyword:       maybe(t, "keyword", rapid.SampledFrom([]string{"run 1", "RUN 69", "run 699", "none", "😀"})),
				StatusCodes:   rapid.SliceOfN(rapid.SampledFrom([]string{"1206", "1209", "1210", "1299", "12AB", "1300"}), 0, 3).Draw(t, "statuses"),
				MinApplyCount: maybe(t, "min", rapid.Ptr(rapid.SampledFrom([]int64{0, 500, 950, 999, 5000}), false))}
			f.StartedAfter, f.StartedBefore = between(t)
			got, err := s.SearchCampaigns(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			want, err := s.allCampaigns(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, f, got, want)
		}))
		t.Run("after a change", func(t *testing.T) {
			for _, change := range []string{"", "UPDATE campaign SET start_at = start_at - INTERVAL 1 YEAR WHERE campaign_id % 3 > 0",
				"UPDATE campaign SET start_at = '2027-01-01' WHERE campaign_id % 50 = 1", "DELETE FROM campaign WHERE campaign_id % 10 > 0"} {
				if change != "" {
					if _, err := db.ExecContext(t.Context(), change); err != nil {
						t.Fatal(err)
					}
				}
				for _, f := range []query.BrandFilter{{Page: query.Page{Limit: 50}}, {Page: query.Page{Limit: 5}, CountryCode: "US"},
					{Page: query.Page{Limit: 50}, LastCampaignBefore: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}} {
					got, want := brandsBothWays(t.Context(), t, s, f)
					if len(got) == 0 || !reflect.DeepEqual(got, want) {
						t.Errorf("after %q, %+v: %d brands that are not those of the whole table", change, f, len(got))
					}
				}
			}
		})
	})
}

// brandsBothWays are the brands as a search finds them, and as the statement does that looks at all candidates.
func brandsBothWays(ctx context.Context, t rapid.TB, s *Source, f query.BrandFilter) (found, ofAll []query.BrandMatch) {
	t.Helper()
	found, err := s.SearchBrands(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	if ofAll, err = s.brands(ctx, f, nil); err != nil {
		t.Fatal(err)
	}
	return found, ofAll
}

// TestStarts are kept for a minute, and never more than so many.
func TestStarts(t *testing.T) {
	var s starts
	now := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	of := window{campaigns: 306}
	s.put(of, start{since: now.AddDate(0, -1, 0), read: now})
	for _, c := range []struct {
		of    window
		after time.Duration
		known bool
	}{
		{of, 0, true}, {of, startsAge - 1, true}, {of, startsAge, false},
		{window{campaigns: 307}, 0, false}, {window{campaigns: 306, codes: "1206"}, 0, false}, {window{campaigns: 306, before: now}, 0, false},
	} {
		if got, known := s.get(c.of, now.Add(c.after)); known != c.known || known && !got.since.Equal(now.AddDate(0, -1, 0)) {
			t.Errorf("%+v after %s: %+v, %v", c.of, c.after, got, known)
		}
	}
	for i := range int64(3 * mostStarts) {
		s.put(window{campaigns: i}, start{read: now})
		if _, known := s.get(window{campaigns: i}, now); !known || len(s.known) > mostStarts {
			t.Fatalf("%d are kept, the last one %v", len(s.known), known)
		}
	}
}

// maybe draws a value in two of three cases.
func maybe[V any](t *rapid.T, what string, g *rapid.Generator[V]) (v V) {
	if rapid.IntRange(0, 2).Draw(t, what+"?") > 0 {
		v = g.Draw(t, what)
	}
	return v
}
