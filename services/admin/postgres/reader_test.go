package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/admin/auditlog"
	"hub.internal/services/admin/postgres"

	"go.opentelemetry.io/otel/trace"
)

func reader(t testing.TB, s store, now func() time.Time) *postgres.Reader {
	t.Helper()
	r, err := postgres.OpenReader(s.AuditURL(), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// fact is a row as a test writes it, at any time.
type fact struct {
	At                             time.Time
	Request, Tool, Outcome, Caller string
	User, Detail                   string
	Count, Took                    int
}

// put writes rows past the trigger that dates them, with partitions for their months.
func (s store) put(t testing.TB, facts ...fact) {
	t.Helper()
	ctx := context.Background()
	conn, err := s.super.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	months := map[string]bool{}
	for _, f := range facts {
		month := time.Date(f.At.Year(), f.At.Month(), 1, 0, 0, 0, 0, time.UTC)
		if name := month.Format("calls_2006_01"); !months[name] {
			months[name] = true
			if _, err := conn.Exec(
				ctx,
				fmt.Sprintf(
					`CREATE TABLE IF NOT EXISTS audit.%s PARTITION OF audit.calls FOR VALUES FROM ('%s') TO ('%s'); ALTER TABLE audit.%[1]s OWNER TO hub`,
					name,
					month.Format(time.RFC3339),
					month.AddDate(0, 1, 0).Format(time.RFC3339),
				),
			); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := conn.Exec(ctx, `SET session_replication_role = replica`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.CopyFrom(
		ctx,
		pgx.Identifier{"audit", "calls"},
		[]string{"at", "request_id", "tool", "outcome", "credential_id", "external_user_id", "detail", "count", "took_ms"},
		pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
			f := facts[i]
			var detail *string
			if f.Detail != "" {
				detail = &f.Detail
			}
			return []any{f.At, f.Request, f.Tool, f.Outcome, f.Caller, f.User, detail, f.Count, f.Took}, nil
		}),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, `RESET session_replication_role`); err != nil {
		t.Fatal(err)
	}
}

// rollUp does all that is due at a moment.
func (s store) rollUp(t testing.TB, moment time.Time) {
	t.Helper()
	for more := true; more; {
		if err := s.super.QueryRow(context.Background(), `SELECT audit.roll_up_at($1)`, moment).Scan(&more); err != nil {
			t.Fatal(err)
		}
	}
}

func fixed(at time.Time) func() time.Time { return func() time.Time { return at } }

// TestSummaryIsWhatTheRowsSay lets calls happen, and roll-ups run now and then, late, or not for days; each range's summary
// is what one gets by counting the rows.
func TestSummaryIsWhatTheRowsSay(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var clock time.Time
	r := reader(t, s, func() time.Time { return clock })
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := s.super.Exec(
			t.Context(),
			`SET session_replication_role = replica; DELETE FROM audit.calls; DELETE FROM audit.rollups; DELETE FROM audit.rollup_callers; `+
				`UPDATE audit.watermarks SET until = '-infinity'; RESET session_replication_role`,
		); err != nil {
			rt.Fatal(err)
		}
		clock = time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 40*24*60).Draw(rt, "start")) * time.Minute)
		var all []fact
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			clock = clock.Add(
				time.Duration(rapid.SampledFrom([]int{1, 60, 301, 3600, 5 * 3600, 86_400, 9 * 86_400}).Draw(rt, "pause")) * time.Second,
			)
			var some []fact
			for range rapid.IntRange(0, 40).Draw(rt, "rows") {
				some = append(some, fact{
					At:      clock.Add(-time.Duration(rapid.IntRange(0, 299_999).Draw(rt, "age")) * time.Millisecond),
					Tool:    rapid.SampledFrom([]string{"search_brands", "get_brand", "review.decide", "session.refused"}).Draw(rt, "tool"),
					Outcome: rapid.SampledFrom([]string{"ok", "ok", "E_RATE_LIMIT", "E_DB", "E_VALIDATION"}).Draw(rt, "outcome"),
					Caller: rapid.SampledFrom(
						[]string{"", "ak_1", "ak_2"},
					).Draw(
						rt,
						"caller",
					),
					Took: rapid.IntRange(0, 100_000).Draw(rt, "took"),
				})
			}
			if rapid.Bool().Draw(rt, "tally") {
				some = append(
					some,
					fact{
						At:      clock,
						Tool:    "calls.refused",
						Outcome: "E_RATE_LIMIT",
						Caller:  "ak_2",
						Count:   70,
						Detail:  `{"outcomes":{"E_RATE_LIMIT":60,"E_SCOPE":10,"x":5,"E_DB":"many","E_NOT_FOUND":-4}}`,
					},
				)
			}
			s.put(t, some...)
			all = append(all, some...)
			if rapid.Bool().Draw(rt, "roll up") {
				s.rollUp(t, clock)
			}
		}
		// What is older than an hour counts when it is rolled up.
		s.rollUp(t, clock)
		for _, g := range auditlog.Ranges() {
			got, err := r.Summary(t.Context(), g)
			if err != nil {
				rt.Fatal(err)
			}
			if want := tell(all, g, clock); told(got) != want {
				rt.Fatalf("%s at %s:\n%s\nwant\n%s", g.Name, clock, told(got), want)
			}
			if len(got.Points) != g.Steps+1 || !got.MissingFrom.IsZero() {
				rt.Fatalf("%s has %d points, misses %s", g.Name, len(got.Points), got.MissingFrom)
			}
			near(rt, got, all)
		}
	})
}

// tell counts facts as a summary does, in words.
func tell(all []fact, g auditlog.Range, now time.Time) string {
	from := g.At(now)
	points, tools, codes, callers := map[string][2]int{}, map[string][2]int{}, map[string]int{}, map[string][3]int{}
	count := func(f fact, outcome string, n int) {
		if f.At.Before(from) || strings.Contains(f.Tool, ".") && f.Tool != "calls.refused" {
			return
		}
		failed, limited := 0, 0
		if outcome != "ok" {
			failed = n
			codes[outcome] += n
		}
		if outcome == "E_RATE_LIMIT" {
			limited = n
		}
		at := from.Add(f.At.Sub(from).Truncate(g.Step)).Format(time.DateTime)
		points[at] = [2]int{points[at][0] + n, points[at][1] + failed}
		if f.Tool != "calls.refused" {
			tools[f.Tool] = [2]int{tools[f.Tool][0] + n, tools[f.Tool][1] + failed}
		}
		c := callers[f.Caller]
		callers[f.Caller] = [3]int{c[0] + n, c[1] + failed, c[2] + limited}
	}
	for _, f := range all {
		if f.Tool == "calls.refused" {
			count(f, "E_RATE_LIMIT", 60)
			count(f, "E_SCOPE", 10)
			continue
		}
		count(f, f.Outcome, 1)
	}
	delete(codes, "")
	return fmt.Sprint(points, tools, codes, callers)
}

func told(s auditlog.Summary) string {
	points, tools, codes, callers := map[string][2]int{}, map[string][2]int{}, map[string]int{}, map[string][3]int{}
	for _, p := range s.Points {
		if p.Calls > 0 {
			points[p.At.Format(time.DateTime)] = [2]int{int(p.Calls), int(p.Failed)}
		}
	}
	for _, x := range s.Tools {
		tools[x.Name] = [2]int{int(x.Calls), int(x.Failed)}
	}
	for _, c := range s.Errors {
		if c.Calls > 0 {
			codes[c.Code] = int(c.Calls)
		}
	}
	for _, c := range append(slices.Clone(s.Limited), s.Callers...) {
		callers[c.CredentialID] = [3]int{int(c.Calls), int(c.Failed), int(c.Limited)}
	}
	return fmt.Sprint(points, tools, codes, callers)
}

// near holds the percentiles of a summary to those of its rows: within a bucket, whose bounds are at most twice apart.
func near(rt *rapid.T, s auditlog.Summary, all []fact) {
	var took []int
	for _, f := range all {
		if !f.At.Before(s.From) && !strings.Contains(f.Tool, ".") && (f.Outcome == "ok" || f.Outcome == "E_DB") {
			took = append(took, f.Took)
		}
	}
	slices.Sort(took)
	if int(s.Total.Measured) != len(took) {
		rt.Fatalf("%d measured, not %d", s.Total.Measured, len(took))
	}
	if len(took) == 0 {
		return
	}
	for share, got := range map[float64]float64{.5: s.Total.P50, .95: s.Total.P95} {
		want := float64(took[max(0, int(share*float64(len(took))+.999999)-1)])
		if want = min(want, 60_000); got < want/2.01-1 || got > want*2.01+1 {
			rt.Fatalf("p%v of %v is %v", share*100, took, got)
		}
	}
}

// TestSummarySaysWhatItMisses: without roll-ups a summary reads an hour of the log and no more.
func TestSummarySaysWhatItMisses(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	s.put(t, fact{At: now.Add(-time.Minute), Tool: "a", Outcome: "ok"}, fact{At: now.Add(-3 * time.Hour), Tool: "a", Outcome: "ok"})
	r := reader(t, s, fixed(now))
	day := auditlog.Ranges()[1]
	got, err := r.Summary(t.Context(), day)
	if err != nil || got.Total.Calls != 1 || !got.MissingFrom.Equal(got.From) || !got.MissingTo.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	s.rollUp(t, now)
	if got, err = r.Summary(t.Context(), day); err != nil || got.Total.Calls != 2 || !got.MissingFrom.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNamesThatAgentsMakeUp do not make a roll-up long.
func TestNamesThatAgentsMakeUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	facts := []fact{
		{At: now.Add(-time.Hour), Tool: "search_brands", Outcome: "ok", Caller: "ak_real"},
		{At: now.Add(-time.Hour), Tool: "search_brands", Outcome: "ok", Caller: "ak_real"},
	}
	for i := range 3000 {
		facts = append(
			facts,
			fact{At: now.Add(-time.Hour), Tool: fmt.Sprint("made_up_", i), Outcome: "E_NOT_FOUND", Caller: fmt.Sprint("ak_", i)},
		)
	}
	s.put(t, facts...)
	s.rollUp(t, now)
	var rows, callers int
	if err := s.super.QueryRow(
		t.Context(),
		`SELECT (SELECT count(*) FROM audit.rollups WHERE grain = '5m'), (SELECT count(*) FROM audit.rollup_callers WHERE grain = '5m')`,
	).Scan(
		&rows,
		&callers,
	); err != nil || rows != 201 ||
		callers != 101 {
		t.Errorf("%d rows, %d callers, %v", rows, callers, err)
	}
	got, err := reader(t, s, fixed(now)).Summary(t.Context(), auditlog.Ranges()[1])
	if err != nil || got.Total.Calls != 3002 || len(got.Tools) != 10 || len(got.Callers) != 10 ||
		!slices.ContainsFunc(got.Tools, func(x auditlog.Tool) bool { return x.Name == "search_brands" && x.Calls == 2 }) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestCodesThatAServiceMakesUp: one row of a broken service makes no thousands of the roll-ups, and no page of thousands.
func TestCodesThatAServiceMakesUp(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	var codes []string
	for i := range 5000 {
		codes = append(codes, fmt.Sprintf(`"E_%c%c%c":1`, 'A'+i/26/26, 'A'+i/26%26, 'A'+i%26))
	}
	detail := `{"outcomes":{` + strings.Join(codes, ",") + `}}`
	facts := []fact{
		{At: now.Add(-time.Hour), Tool: "calls.refused", Outcome: "E_RATE_LIMIT", Detail: detail},
		{At: now.Add(-time.Minute), Tool: "calls.refused", Outcome: "E_RATE_LIMIT", Detail: detail},
	}
	for i := range 300 {
		facts = append(facts, fact{At: now.Add(-time.Minute), Tool: "search_brands", Outcome: fmt.Sprint("E_", i)})
	}
	s.put(t, facts...)
	s.rollUp(t, now)
	var rows int
	if err := s.super.QueryRow(t.Context(), `SELECT count(*) FROM audit.rollups WHERE grain = '5m'`).Scan(&rows); err != nil || rows > 100 {
		t.Errorf("%d rows, %v", rows, err)
	}
	got, err := reader(t, s, fixed(now)).Summary(t.Context(), auditlog.Ranges()[1])
	if err != nil || len(got.Errors) != 100 {
		t.Errorf("%d codes, %v", len(got.Errors), err)
	}
}

// TestRollUpsMeet: replicas roll up at once, and some are cut off; each call counts once.
func TestRollUpsMeet(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	var facts []fact
	for i := range 500 {
		facts = append(facts, fact{At: time.Now().Add(-time.Duration(i+10) * 10 * time.Minute), Tool: "a", Outcome: "ok"})
	}
	s.put(t, facts...)
	done := make(chan error)
	for i := range 4 {
		r := reader(t, s, time.Now)
		go func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%2 == 0 {
				time.AfterFunc(time.Duration(i+1)*20*time.Millisecond, cancel)
			}
			err := r.RollUp(ctx)
			if ctx.Err() != nil {
				err = nil
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var calls int
	if err := s.super.QueryRow(
		t.Context(),
		`SELECT sum(calls) FROM audit.rollups WHERE grain = '5m'`,
	).Scan(
		&calls,
	); err != nil ||
		calls != 500 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestExpireDropsWhatIsDue and nothing else: by the policy, by the month that is never dropped, and by what is not rolled up.
func TestExpireDropsWhatIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	months := []string{"2030_06", "2030_11", "2030_12", "2031_01", "2031_02", "2031_03"}
	for name, c := range map[string]struct {
		days  int
		first time.Time // of what is rolled up
		gone  string
	}{
		"a year":                {400, now, ""},
		"a hundred days":        {100, now, "2030_06 2030_11"},
		"to the day":            {104, now, "2030_06 2030_11"}, // 1 December, noon
		"a day before that":     {105, now, "2030_06"},
		"the shortest":          {62, now, "2030_06 2030_11 2030_12"},
		"not rolled up":         {62, time.Date(2030, 12, 1, 0, 0, 0, 0, time.UTC), "2030_06 2030_11"},
		"nothing was rolled up": {62, time.Time{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := migrated(t)
			months := slices.Clone(months)
			// Those of the day of the test.
			if _, err := s.super.Exec(
				t.Context(),
				`DO $$ DECLARE p text; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'audit.calls'::regclass `+
					`LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$`,
			); err != nil {
				t.Fatal(err)
			}
			for _, m := range months {
				at, err := time.Parse("2006_01", m)
				if err != nil {
					t.Fatal(err)
				}
				s.put(t, fact{At: at, Tool: "a", Outcome: "ok"})
			}
			if _, err := postgres.Retain(t.Context(), s.OwnerURL, c.days); err != nil {
				t.Fatal(err)
			}
			if !c.first.IsZero() {
				if _, err := s.super.Exec(t.Context(), `UPDATE audit.watermarks SET until = $1`, c.first); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // it is safe to repeat
				rows, err := s.owner.Query(t.Context(), `SELECT audit.expire_at($1)`, now)
				if err != nil {
					t.Fatal(err)
				}
				dropped, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if got := strings.ReplaceAll(strings.Join(dropped, " "), "calls_", ""); err != nil || got != c.gone {
					t.Fatalf("dropped %q, %v; want %q", got, err, c.gone)
				}
				months = slices.DeleteFunc(months, func(m string) bool { return slices.Contains(dropped, "calls_"+m) })
				if n := s.rows(t); n != len(months) {
					t.Errorf("%d rows left of %v", n, months)
				}
				c.gone = ""
			}
		})
	}
	s := migrated(t)
	if _, err := postgres.Retain(t.Context(), s.OwnerURL, 61); err == nil {
		t.Error("61 days would be this month and a part of the last")
	}
}

// TestExpireGivesWay to a transaction that reads or writes, and comes back later.
func TestExpireGivesWay(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.put(t, fact{At: time.Now().AddDate(-2, 0, 0), Tool: "a", Outcome: "ok"})
	r := reader(t, s, time.Now)
	if err := r.RollUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := s.service.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.Append(t.Context(), tx, entry("req_1")); err != nil {
		t.Fatal(err)
	}
	if dropped, err := r.Expire(t.Context()); !fault.Is(err, fault.DB) {
		t.Errorf("dropped %v below a transaction that writes: %v", dropped, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if dropped, err := r.Expire(t.Context()); err != nil || len(dropped) != 1 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if n := s.rows(t); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestSearch finds by each filter what is there, over pages, newest first.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	var facts []fact
	for i := range 300 { // three at a time, over 200 days
		f := fact{
			At:      now.Add(-time.Duration(i/3) * 48 * time.Hour),
			Request: fmt.Sprint("req_", i),
			Tool:    "search_brands",
			Outcome: "ok",
			Caller:  "ak_1",
			User:    "ada@example.com",
		}
		switch i % 5 {
		case 1:
			f.Tool, f.Detail, f.Caller = "execute_read_sql", `{"sql":"SELECT Name FROM partner WHERE x = '100%_'"}`, "ak_2"
		case 2:
			f.Tool, f.Detail, f.User = "review.decide", `{"draft_id":"7"}`, "rev@example.com"
		case 3:
			f.Outcome = "E_DB_TIMEOUT"
		case 4:
			f.Outcome = "E_RATE_LIMIT"
		}
		facts = append(facts, f)
	}
	s.put(t, facts...)
	r := reader(t, s, fixed(now))
	for name, c := range map[string]struct {
		filter auditlog.Filter
		want   func(fact) bool
	}{
		"all":             {auditlog.Filter{}, func(fact) bool { return true }},
		"a tool":          {auditlog.Filter{Tool: "execute_read_sql"}, func(f fact) bool { return f.Tool == "execute_read_sql" }},
		"a caller":        {auditlog.Filter{Caller: "ak_2"}, func(f fact) bool { return f.Caller == "ak_2" }},
		"a person":        {auditlog.Filter{Person: "rev@example.com"}, func(f fact) bool { return f.User == "rev@example.com" }},
		"a draft":         {auditlog.Filter{Draft: "7"}, func(f fact) bool { return strings.Contains(f.Detail, "draft_id") }},
		"a request":       {auditlog.Filter{RequestID: "req_17"}, func(f fact) bool { return f.Request == "req_17" }},
		"ok":              {auditlog.Filter{Outcome: audit.OK}, func(f fact) bool { return f.Outcome == "ok" }},
		"failed":          {auditlog.Filter{Outcome: auditlog.Failed}, func(f fact) bool { return f.Outcome != "ok" }},
		"a code":          {auditlog.Filter{Outcome: "E_RATE_LIMIT"}, func(f fact) bool { return f.Outcome == "E_RATE_LIMIT" }},
		"part of SQL":     {auditlog.Filter{SQL: "from PARTNER where"}, func(f fact) bool { return f.Tool == "execute_read_sql" }},
		"SQL, no pattern": {auditlog.Filter{SQL: "100%_"}, func(f fact) bool { return f.Tool == "execute_read_sql" }},
		"SQL, a pattern":  {auditlog.Filter{SQL: "S%T"}, func(fact) bool { return false }},
		"together": {auditlog.Filter{Tool: "search_brands", Outcome: "E_DB_TIMEOUT", Caller: "ak_1"},
			func(f fact) bool { return f.Outcome == "E_DB_TIMEOUT" }},
		"since": {auditlog.Filter{From: now.AddDate(0, 0, -30)}, func(f fact) bool { return !f.At.Before(now.AddDate(0, 0, -30)) }},
		"until": {auditlog.Filter{To: now.AddDate(0, 0, -30)}, func(f fact) bool { return f.At.Before(now.AddDate(0, 0, -30)) }},
		"between": {auditlog.Filter{From: now.AddDate(0, 0, -40), To: now.AddDate(0, 0, -30)},
			func(f fact) bool { return !f.At.Before(now.AddDate(0, 0, -40)) && f.At.Before(now.AddDate(0, 0, -30)) }},
		"nobody":           {auditlog.Filter{Person: "' OR true --"}, func(fact) bool { return false }},
		"not text":         {auditlog.Filter{Tool: "a\x00\xff"}, func(fact) bool { return false }},
		"the wrong way":    {auditlog.Filter{From: now, To: now.AddDate(0, 0, -1)}, func(fact) bool { return false }},
		"the begin itself": {auditlog.Filter{From: now.AddDate(0, 0, -198)}, func(fact) bool { return true }},
	} {
		var want []string
		for _, f := range facts {
			if c.want(f) {
				want = append(want, f.Request)
			}
		}
		slices.Sort(want)
		for _, size := range []int{4, 1000} {
			var got []auditlog.Call
			at, pages := auditlog.Position{}, 0
			for {
				page, err := r.Search(t.Context(), c.filter, at, size)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got = append(got, page.Calls...)
				// By its form in an address.
				next, ok := auditlog.ParsePosition(page.Next.String())
				if pages++; !ok || pages > 400 {
					break
				}
				at = next
			}
			var names []string
			for _, x := range got {
				names = append(names, x.RequestID)
			}
			if !slices.IsSortedFunc(got, func(a, b auditlog.Call) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.ID, a.ID)) }) {
				t.Errorf("%s, by %d: not newest first", name, size)
			}
			if slices.Sort(names); !slices.Equal(names, want) {
				t.Errorf("%s, by %d: %v, want %v", name, size, names, want)
			}
		}
		var exported []string
		_, more, err := r.Export(
			t.Context(),
			c.filter,
			10_000,
			func(x auditlog.Call) error { exported = append(exported, x.RequestID); return nil },
		)
		if slices.Sort(exported); err != nil || more || !slices.Equal(exported, want) {
			t.Errorf("%s exports %v, %v, %v", name, exported, more, err)
		}
	}
	n := 0
	next, more, err := r.Export(t.Context(), auditlog.Filter{}, 100, func(auditlog.Call) error { n++; return nil })
	if err != nil || n != 100 || !more || next.At.After(now.Add(-32*48*time.Hour)) {
		t.Errorf("%d rows, more %v after %s, %v", n, more, next.At, err)
	}
	if _, _, err := r.Export(t.Context(), auditlog.Filter{}, 100, func(auditlog.Call) error { return context.Canceled }); err == nil {
		t.Error("an export goes on that nobody takes")
	}
}

// TestSearchEndsInTime tells how far it has looked when its time is used up, and goes on from there.
func TestSearchEndsInTime(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	now := time.Date(2031, 3, 15, 12, 0, 0, 0, time.UTC)
	s.put(t, fact{At: now.AddDate(0, 0, -100), Request: "old", Tool: "execute_read_sql", Outcome: "ok", Detail: `{"sql":"a"}`},
		fact{At: now.Add(-time.Minute), Request: "new", Tool: "execute_read_sql", Outcome: "ok", Detail: `{"sql":"a"}`})
	clock := now
	slow := func() time.Time { clock = clock.Add(15 * time.Millisecond); return clock } // each look takes long
	at, found := auditlog.Position{}, []string{}
	pages := 0
	for ; pages < 50; pages++ {
		page, err := reader(t, s, slow).Search(t.Context(), auditlog.Filter{SQL: "a"}, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Calls {
			found = append(found, c.RequestID)
		}
		if !page.Unfinished {
			break
		}
		if !at.At.IsZero() && !page.Next.At.Before(at.At) {
			t.Fatalf("it looked at nothing before %s", at.At)
		}
		at = page.Next
	}
	if got := strings.Join(found, " "); got != "new old" || pages < 1 {
		t.Errorf("found %q on %d pages", got, pages+1)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	traced := trace.ContextWithSpanContext(
		t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 15: 3}, SpanID: trace.SpanID{1}}),
	)
	const id = "01020000000000000000000000000003"
	l := newLog(t, s.service, quiet)
	if err := l.Write(traced, entry("req_1")); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(traced, s.service, func(tx pgx.Tx) error { return audit.Append(traced, tx, entry("req_2")) }); err != nil {
		t.Fatal(err)
	}
	queued := entry("req_3")
	queued.TraceID = audit.TraceID(traced)
	l.Queue(queued)
	hubtest.Eventually(t, "the queued row is there", func() bool { return s.rows(t) == 3 })
	r := reader(t, s, time.Now)
	page, err := r.Search(t.Context(), auditlog.Filter{}, auditlog.Position{}, 10)
	if err != nil || len(page.Calls) != 3 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, c := range page.Calls {
		p, ok := auditlog.ParsePosition(c.Position().String())
		if !ok {
			t.Fatal(c.Position())
		}
		got, err := r.Call(t.Context(), p)
		if err != nil || got.TraceID != id || got.Writer != "hub_auth" || got.Detail != `{"sql": "SELECT 1"}` || got.Count != 3 ||
			got.TookMS != 1 ||
			got.CredentialID != "ak_1" ||
			len(got.InputHash) != 32 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for _, p := range []auditlog.Position{{}, {At: time.Now(), ID: "x"}, {At: time.Now(), ID: page.Calls[0].ID}} {
		if _, err := r.Call(t.Context(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", p, err)
		}
	}
	if got := audit.TraceID(caller.With(t.Context(), caller.Caller{})); got != "" {
		t.Errorf("no trace is %q", got)
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0", "-1", "x", "1-", "1-x", "1-00000000000000000000000000000000", "99999999999999999999",
		"253000000000000001", "1e9", " 1", "1-{0000000-0000-0000-0000-00000000000}"} {
		if p, ok := auditlog.ParsePosition(text); ok {
			t.Errorf("%q is %v", text, p)
		}
	}
}

// TestReaderMayNothingElse takes the role of the reader: it reads, and asks for what is due. It changes nothing, neither in
// the log nor elsewhere, says to nobody when it is, and sees no other schema.
func TestReaderMayNothingElse(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	if err := newLog(t, s.service, quiet).Write(t.Context(), entry("req_1")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.owner.Exec(t.Context(), `CREATE SCHEMA review_control; CREATE TABLE review_control.x (n int)`); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, s.AuditURL())
	for _, sql := range []string{
		`INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'x', 'x', 'ok')`,
		`UPDATE audit.calls SET outcome = 'x'`, `DELETE FROM audit.calls`, `TRUNCATE audit.calls`,
		`DELETE FROM audit.rollups`, `INSERT INTO audit.rollups VALUES ('day', now(), 'x', 'ok', 0, 1)`, `UPDATE audit.policy SET days = 62`,
		`DELETE FROM audit.policy`, `UPDATE audit.watermarks SET until = 'infinity'`,
		`SELECT * FROM audit.watermarks FOR UPDATE`, `SELECT audit.roll_up_at('2099-01-01')`, `SELECT audit.expire_at('2099-01-01')`,
		`SELECT audit.roll_up_log('-infinity', 'infinity')`,
		`SELECT audit.roll_up_finer('5m', 'hour', '1 hour', '-infinity', 'infinity')`, `SELECT audit.ensure_partitions(24)`,
		`CREATE TABLE audit.x (n int)`, `CREATE TEMP TABLE x (n int)`, `CREATE TABLE public.x (n int)`,
		`SELECT * FROM review_control.x`, `SET ROLE hub_service`, `SET ROLE hub`, `SET ROLE hub_auth`, `ALTER ROLE hub_audit CREATEROLE`,
		`LOCK audit.calls IN ACCESS EXCLUSIVE MODE`, `ALTER TABLE audit.calls DISABLE TRIGGER ALL`,
		`DROP TABLE audit.calls`, `CREATE FUNCTION audit.x() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `COPY audit.calls FROM STDIN`,
		`COPY (SELECT 1) TO PROGRAM 'true'`, `SELECT pg_read_file('PG_VERSION')`,
	} {
		_, err := conn.Exec(t.Context(), `BEGIN READ WRITE; `+sql)
		if code(err) != "42501" && code(err) != "42809" {
			t.Errorf("the reader may: %s (%v)", sql, err)
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), `SELECT audit.roll_up()`); code(err) != "25006" {
		t.Errorf("by default it is not read-only: %v", err)
	}
	// And nobody but it: neither of these two, nor what is read.
	for _, service := range services {
		conn := connect(t, s.URL(service))
		for _, sql := range []string{`SELECT audit.roll_up()`, `SELECT audit.expire()`, `SELECT audit.expire_at(now())`,
			`SELECT * FROM audit.measured`, `SELECT * FROM audit.rollups`, `SELECT * FROM audit.rollup_callers`,
			`SELECT * FROM audit.policy`, `UPDATE audit.policy SET days = 62`, `SELECT * FROM audit.watermarks`,
			`UPDATE audit.watermarks SET until = now()`, `INSERT INTO audit.rollups VALUES ('day', now(), 'x', 'ok', 0, 1)`, `SET ROLE hub_audit`} {
			if _, err := conn.Exec(t.Context(), sql); code(err) != "42501" {
				t.Errorf("%s may: %s (%v)", service, sql, err)
			}
		}
	}
	if n := s.rows(t); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestReaderNamesItsSetting where the log-in is wrong.
func TestReaderNamesItsSetting(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, url := range []string{"x y:z", s.URL("admin"), strings.Replace(s.AuditURL(), "hub_audit-test", "wrong-password", 1)} {
		r, err := postgres.OpenReader(url, time.Now)
		if err == nil {
			_, err = r.Search(t.Context(), auditlog.Filter{}, auditlog.Position{}, 1)
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "HUB_AUDIT_URL") || strings.Contains(err.Error(), "wrong-password") {
			t.Errorf("%v", err)
		}
	}
}

// TestNobodyStopsTheLog: while one service's role holds what it may hold and asks for what it may ask for, the others write.
func TestNobodyStopsTheLog(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	s.put(t, fact{At: time.Now().AddDate(-2, 0, 0), Tool: "a", Outcome: "ok"})
	r := reader(t, s, time.Now)
	if err := r.RollUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	holds := connect(t, s.URL("query"))
	if _, err := holds.Exec(t.Context(), `SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; BEGIN;
		INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'held', 'x', 'ok')`); err != nil {
		t.Fatal(err)
	}
	asks := connect(t, s.URL("query"))
	for _, sql := range []string{`SELECT audit.ensure_partitions(24)`, `SELECT audit.extend()`, `SELECT audit.expire()`,
		`SELECT audit.roll_up()`} {
		if _, err := asks.Exec(t.Context(), `SET lock_timeout = 0; SET statement_timeout = '3s'; `+sql); code(err) != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	// The worst that the owner's functions do is to wait for what is held, and to give up: everybody else waits as long.
	expired := make(chan error, 1)
	go func() {
		_, err := r.Expire(t.Context())
		expired <- err
	}()
	hubtest.Eventually(t, "the end of a month waits for a lock", func() bool {
		var waits bool
		err := s.super.QueryRow(
			t.Context(),
			`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'audit.calls'::regclass)`,
		).Scan(
			&waits,
		)
		return err == nil && waits
	})
	writes := connect(t, s.URL("payments"))
	if _, err := writes.Exec(
		t.Context(),
		`SET lock_timeout = '20s'; INSERT INTO audit.calls (at, request_id, tool, outcome) VALUES (clock_timestamp(), 'other', 'x', 'ok')`,
	); err != nil {
		t.Errorf("others wait behind it: %v", err)
	}
	if err := <-expired; !fault.Is(err, fault.DB) {
		t.Errorf("a month ended below a transaction that writes: %v", err)
	}
	var unbounded string
	if err := s.super.QueryRow(
		t.Context(),
		`SELECT coalesce(string_agg(p.oid::regprocedure::text, ' '), '') FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
		WHERE r.rolname = 'hub' AND p.prosecdef AND NOT EXISTS (SELECT FROM unnest(p.proconfig) c WHERE c ~ '^lock_timeout=[1-9]')`,
	).Scan(
		&unbounded,
	); err != nil ||
		unbounded != "" {
		t.Errorf("functions that run as the owner and may wait for ever: %s, %v", unbounded, err)
	}
}
