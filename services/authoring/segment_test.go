package authoring_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/tool/tooltest"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
)

// TestBoundsOfASegment tries each bound of each tool's schema, over the wire.
func TestBoundsOfASegment(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.segmentOf()
	for _, declared := range authoring.Tools(authoring.New(authoring.Config{})) {
		for _, c := range tooltest.Bounds(t, declared.Spec) {
			a, err := h.send(agent(t.Context()), declared.Spec.Name, newKey(), string(c.Input))
			var listed []schema.Violation
			if err != nil {
				f := fault.From(err)
				if f.Code != fault.Validation {
					t.Errorf("%s, %s: %v", declared.Spec.Name, c.Name, err)
				}
				listed = read(t, f).Violations
			}
			if c.Valid() {
				// The domain may refuse what the schema lets through, such as 50,000 equal targets.
				for _, v := range listed {
					switch v.Rule {
					case "uniqueItems", "maxLength", "maxBytes", "controlCharacters", "placeholder":
					default:
						t.Errorf("%s, %s: %+v", declared.Spec.Name, c.Name, v)
					}
				}
				continue
			}
			found := false
			for _, v := range listed {
				found = found || v.Path == c.Path && v.Rule == c.Rule
			}
			if !found {
				t.Errorf("%s, %s: %s at %s is not among %+v (%s)", declared.Spec.Name, c.Name, c.Rule, c.Path, listed, a.data)
			}
		}
	}
}

func TestCatalogFacts(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"list_segments": "10 query query false 1048576", "list_drafts": "11 query query false 1048576",
		"create_segment": "13 author author true 33554432", "save_message_draft": "14 author author true 33554432",
	}
	for _, d := range authoring.Tools(authoring.New(authoring.Config{})) {
		s := d.Spec
		if got := fmt.Sprintln(s.Position, s.Category, s.Scope, s.Write, s.MaxBody); strings.TrimSpace(got) != want[s.Name] {
			t.Errorf("%s: %s", s.Name, got)
		}
	}
}

func TestSegmentIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	snapshots := []string{
		`{"b":1.50,"a": [1e2, 9007199254740993],"z":"\u0041\/\u0000","a b":null}`,
		`{"":{}}`,
		"{\"x\":\n\t\"é😀\u2028\"}",
		`{"deep":{"b":1,"a":2}}`,
	}
	var targets []any
	for i, s := range snapshots {
		targets = append(targets, member(i, s))
	}
	// Marshalling would compact the snapshots: the body is put together as text.
	var list []string
	for i, s := range snapshots {
		list = append(list, fmt.Sprintf(`{"snapshot":%s,"externalId":%d.0}`, s, i))
	}
	body := `{"kind":"brand","targets":[` + strings.Join(list, " , ") + `],"name":"n"}`
	a, err := h.send(agent(t.Context()), "create_segment", "k", body)
	if err != nil || a.count != len(targets) || a.replayed ||
		a.data != `{"segment_id":"1","id":"1","name":"n","kind":"brand","targetCount":4,"createdAt":"2026-01-15T09:00:00.000Z"}` {
		t.Fatalf("%+v, %v\n%s", a, err, h.logs)
	}
	rows, err := h.super.Query(
		t.Context(),
		`SELECT position, external_id, snapshot::text FROM authoring.segment_targets WHERE segment_id = 1 ORDER BY position`,
	)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var position, id int
		var snapshot string
		if err := rows.Scan(&position, &id, &snapshot); err != nil || position != n || id != n || snapshot != snapshots[n] {
			t.Errorf("target %d: %d, %d, %s, %v", n, position, id, snapshot, err)
		}
	}
	if n != len(snapshots) {
		t.Errorf("%d targets", n)
	}
	var detail struct {
		SegmentID string `json:"segment_id"`
		Targets   int
	}
	var text, credential string
	var count int
	if err := h.super.QueryRow(
		t.Context(),
		`SELECT detail::text, credential_id, count FROM audit.calls WHERE tool = 'create_segment' AND outcome = 'ok' AND input_hash = sha256($1)`,
		[]byte(body),
	).Scan(
		&text,
		&credential,
		&count,
	); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(
		[]byte(text),
		&detail,
	); err != nil || detail.SegmentID != "1" || detail.Targets != 4 || credential != "ak_1" ||
		count != 4 {
		t.Errorf("audit %s, %s, %d, %v", text, credential, count, err)
	}
}

func TestLargeIDsStayApart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	body := `{"name":"n","kind":"partner","targets":[{"externalId":9007199254740992,"snapshot":{}},{"externalId":9007199254740993,` +
		`"snapshot":{}},{"externalId":9223372036854775807,"snapshot":{}}]}`
	if a, err := h.send(agent(t.Context()), "create_segment", "k", body); err != nil || a.count != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	other := strings.Replace(body, "9007199254740993", "9007199254740994", 1)
	if _, err := h.send(agent(t.Context()), "create_segment", "k", other); !fault.Is(err, fault.Idempotency) {
		t.Errorf("another id: %v", err)
	}
	if n := h.count(`SELECT count(DISTINCT external_id) FROM authoring.segment_targets`); n != 3 {
		t.Errorf("%d ids", n)
	}
}

func TestSegmentNamesEachTargetOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	d := read(
		t,
		h.refused(
			"create_segment",
			segment(member(7, `{}`), member(8, `{}`), member(7, `{}`), member(json.Number("7.0"), `{}`)),
			fault.Validation,
		),
	)
	if len(d.Violations) != 2 || d.Violations[0].Path != "/targets/2/externalId" || d.Violations[1].Path != "/targets/3/externalId" ||
		d.Violations[0].Rule != "uniqueItems" ||
		!strings.Contains(d.Violations[0].Message, "target 0") {
		t.Errorf("%+v", d)
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = member(1, `{}`)
	}
	f := h.refused("create_segment", segment(many...), fault.Validation)
	if d := read(t, f); len(d.Violations) != 50 || !strings.Contains(f.Message, "298 more") {
		t.Errorf("%d violations; %s", len(d.Violations), f.Message)
	}
	if n := h.count(`SELECT count(*) FROM authoring.segments`) + h.count(`SELECT count(*) FROM authoring.idempotency_keys`); n != 0 {
		t.Errorf("%d rows of refused calls", n)
	}
	if n := h.count(`SELECT count(*) FROM audit.calls WHERE outcome = 'ok'`); n != 0 {
		t.Errorf("%d effects in the audit log", n)
	}
	hubtest.Eventually(t, "refusals are audited", func() bool {
		return h.count(`SELECT count(*) FROM audit.calls WHERE tool = 'create_segment' AND outcome = 'E_VALIDATION'`) == 2
	})
}

func TestSegmentTextsAreClean(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for member, c := range map[string]struct{ good, bad []string }{
		"name":        {[]string{"é 😀 <b>", strings.Repeat("가", 200)}, []string{"a\nb", "a\x00", "\u202eevil", "a\u2028b", "\u0085"}},
		"createdBy":   {[]string{"", "agent 7"}, []string{"a\rb", "\x7f"}},
		"description": {[]string{"", "two\nlines\tand a tab"}, []string{"\x00", "\x1b[2J"}},
	} {
		for _, good := range c.good {
			s := segment()
			s[member] = good
			ok[any](h, "create_segment", s)
		}
		for _, bad := range c.bad {
			s := segment()
			s[member] = bad
			if d := read(
				t,
				h.refused("create_segment", s, fault.Validation),
			); len(d.Violations) != 1 || d.Violations[0].Path != "/"+member ||
				d.Violations[0].Rule != "controlCharacters" {
				t.Errorf("%s %q: %+v", member, bad, d)
			}
		}
	}
}

func TestListSegments(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if got := ok[struct{ Segments []any }](h, "list_segments", `{}`); got.Segments == nil || len(got.Segments) != 0 {
		t.Errorf("%+v", got)
	}
	kinds := authoring.Kinds()
	for i := range 25 {
		s := segment(member(1, `{}`))
		s["name"], s["kind"] = fmt.Sprint(i), kinds[i%3]
		if i == 24 {
			s["description"], s["createdBy"] = "d", "me"
		}
		ok[any](h, "create_segment", s)
		h.clock.Advance(time.Second)
	}
	list := func(input string) (names []string) {
		a, err := h.send(agent(t.Context()), "list_segments", "", input)
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Segments []struct{ ID, Name, Kind string }
		}
		if err := json.Unmarshal([]byte(a.data), &l); err != nil || a.count != len(l.Segments) {
			t.Fatalf("%v in %s", err, a.data)
		}
		for _, s := range l.Segments {
			names = append(names, s.Name)
		}
		return names
	}
	if got := list(`{}`); len(got) != 20 || got[0] != "24" || got[19] != "5" {
		t.Errorf("by default %v", got)
	}
	if got := fmt.Sprint(
		list(`{"limit":2}`),
		list(`{"kind":"campaign","limit":3}`),
		len(list(`{"limit":100}`)),
		len(list(`{"kind":"partner","limit":100}`)),
	); got != "[24 23] [23 20 17] 25 9" {
		t.Error(got)
	}
	if got := fmt.Sprint(list(`{"limit":2,"offset":23}`), list(`{"kind":"campaign","limit":2,"offset":2}`), list(`{"segmentId":"3"}`),
		list(`{"segmentId":3,"kind":"campaign"}`), list(`{"offset":25}`)); got != "[1 0] [17 14] [2] [2] []" {
		t.Error(got)
	}
	for input, want := range map[string]string{
		`{"offset":25}`: `"rule":"offset"`, `{"segmentId":"3","kind":"brand"}`: `no segment has the id 3`,
		`{"segmentId":3,"offset":2}`: `"rule":"segmentId"`,
	} {
		if a, err := h.send(agent(t.Context()), "list_segments", "", input); err != nil || !strings.Contains(a.data, want) {
			t.Errorf("%s: %s, %v", input, a.data, err)
		}
	}
	a, err := h.send(agent(t.Context()), "list_segments", "", `{"limit":1}`)
	if want := `{"segments":[{"id":"25","segment_id":"25","name":"24","kind":"partner","description":"d","targetCount":1,"createdBy":"me",` +
		`"createdAt":"2026-01-15T09:00:24.000Z"}]}`; err != nil ||
		a.data != want {
		t.Errorf("%s, %v", a.data, err)
	}
}

// TestLargestSegment sends a body at the cap and one beyond it.
func TestLargestSegment(t *testing.T) {
	h := newHouse(t)
	const limit = 32 << 20
	body := []byte(`{"name":"n","kind":"partner","targets":[{"externalId":1,"snapshot":{"text":"`)
	const rest = `"}}]}`
	body = append(body, bytes.Repeat([]byte("x"), limit-len(body)-len(rest))...)
	body = append(body, rest...)
	hubtest.Eventually(t, "a body at the cap is stored", func() bool {
		a, err := h.send(agent(t.Context()), "create_segment", "k", string(body))
		if fault.Is(err, fault.DB) { // a busy machine takes longer than a write may
			return false
		}
		if err != nil || a.count != 1 {
			t.Fatalf("%d bytes: %+v, %v", len(body), a, err)
		}
		return true
	})
	f := h.refused("create_segment", string(body)+" ", fault.Validation)
	var d struct {
		LimitBytes int64 `json:"limit_bytes"`
	}
	if err := json.Unmarshal(f.Details.(json.RawMessage), &d); err != nil || d.LimitBytes != limit {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestWriteNeedsAKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if _, err := h.send(
		agent(t.Context()),
		"create_segment",
		"",
		text(segment()),
	); !fault.Is(err, fault.Validation) ||
		!strings.Contains(err.Error(), tool.KeyHeader) {
		t.Errorf("without a key: %v", err)
	}
}

// TestEmptySnapshotsAreTaken: a target without a row gets the source's, and nothing is stored when that cannot be read.
func TestEmptySnapshotsAreTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.query.know(map[string][]int64{"partner": {1, 2, 4}})
	const input = `{"name":"n","kind":"partner","targets":[{"externalId":1,"snapshot":{}},{"externalId":2,"snapshot":{"own":true}},` +
		`{"externalId":3,"snapshot":{ }},{"externalId":4,"snapshot":{ }}]}`
	first, err := h.send(agent(t.Context()), "create_segment", "k", input)
	if err != nil || !strings.Contains(first.data, `"snapshots_taken":2`) || !strings.Contains(first.data, "no partner 3") {
		t.Fatal(first, err)
	}
	var stored string
	if err := h.super.QueryRow(t.Context(), `SELECT string_agg(external_id || ' ' || snapshot, ', ' ORDER BY position)
		FROM authoring.segment_targets`).Scan(&stored); err != nil || stored != `1 {"partner_id":1}, 2 {"own":true}, 3 { }, 4 {"partner_id":4}` {
		t.Error(stored, err)
	}
	h.query.rowsDown = fault.New(fault.DB, "away")
	again, err := h.send(agent(t.Context()), "create_segment", "k", input)
	if err != nil || !again.replayed || again.data != first.data {
		t.Errorf("a replay: %+v, %v", again, err)
	}
	f := h.refused("create_segment", segment(member(1, `{}`)), fault.DB)
	if !strings.Contains(f.Message, "1 targets with an empty snapshot") || !strings.Contains(f.Message, "nothing is stored") {
		t.Error(f.Message)
	}
	before := h.query.rowsAsked
	h.warned("create_segment", segment(member(1, `{"partner_id":1}`)))
	if h.query.rowsAsked != before {
		t.Error("rows are asked for that nobody needs")
	}
	h.query.rowsDown = nil
	h.query.know(nil)
	many := make([]any, 10_001)
	for i := range many {
		many[i] = member(int64(i), `{}`)
	}
	before = h.query.rowsAsked
	if a, err := h.send(agent(t.Context()), "create_segment", "many", text(segment(many...))); err != nil ||
		!strings.Contains(a.data, `"snapshots_taken":10001`) {
		t.Error(a, err)
	}
	if n := h.query.rowsAsked - before; n != 2 {
		t.Errorf("asked in %d batches", n)
	}
}

// TestRowsAreBoundedAsABody: rows for empty snapshots have no more bytes together than a body may have; else nothing is stored.
func TestRowsAreBoundedAsABody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.query.rowBytes = 2 << 10
	targets := make([]any, 16_500)
	for i := range targets {
		targets[i] = member(i, `{}`)
	}
	if v := read(t, h.refused("create_segment", segment(targets...), fault.Validation)).Violations; len(v) != 1 || v[0].Rule != "maxBytes" ||
		v[0].Path != "/targets" {
		t.Errorf("%+v", v)
	}
	if n := h.count(`SELECT count(*) FROM authoring.segments`); n != 0 {
		t.Errorf("%d segments", n)
	}
}

// TestTrips: a store may be far away, and each round trip to it is waited for.
func TestTrips(t *testing.T) {
	t.Parallel()
	db, distance := hubtest.MigratedStore(t, "authoring", postgres.Migrate).Far(t)
	h := newHouseOn(t, db)
	distance.AtMost(t, 3, "a segment", func() {
		input := `{"name":"n","kind":"partner","targets":[{"externalId":1,"snapshot":{"partner_id":1}}]}`
		if _, err := h.send(agent(t.Context()), "create_segment", newKey(), input); err != nil {
			t.Fatal(err)
		}
	})
}
