package authoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/services/authoring"
)

func TestOperationsNeedAToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, path := range []string{authoring.DraftGetPath, authoring.DraftListPath, authoring.DraftTargetsPath,
		authoring.DraftTransitionPath, authoring.DraftProgressPath, "/internal/tools/create_segment"} {
		res, err := http.Post(h.url+path, "application/json", strings.NewReader(`{"draft_id":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
		if res, err = http.Get(h.url + path); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %v", path, err)
		}
		res.Body.Close()
	}
}

func TestDraftGetAndList(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(0, `{}`))
	body := draft(s, target(0))
	body["senderName"], body["createdBy"] = "Hub", "agent"
	ok[saved](h, "save_message_draft", body)
	got, err := operate[json.RawMessage](h, authoring.DraftGetPath, object{"draft_id": "1", "added_later": true})
	want := `{"id":"1","name":"win back","status":"draft","segment_id":"1","segment_name":"quiet ` +
		`brands","segment_kind":"partner","target_count":1,` +
		`"decisions":{"pending":1,"approved":0,"rejected":0},"delivery":{"sent":0,"failed":0,"suppressed":0,"unknown":0},` +
		`"progress_version":0,"created_by":"agent",` +
		`"origin":{"service":"crm","external_user_id":"u1","credential_id":"ak_1","hub_user":""},"created_at":"2026-01-15T09:00:00.000Z",` +
		`"queued_at":null,` +
		`"subject_template":"Hello","body_template":"Dear reader","sender_name":"Hub","sender_email":null}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, id := range []string{"2", "", "x", "01"} {
		for _, path := range []string{authoring.DraftGetPath, authoring.DraftTargetsPath, authoring.DraftProgressPath} {
			if _, err := operate[any](h, path, object{"draft_id": id, "version": 1}); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s %q: %v", path, id, err)
			}
		}
	}
	for range 9 {
		h.draftOf(s, 1)
	}
	for _, id := range []string{"3", "5"} {
		must[any](
			t,
		)(
			operate[any](
				h,
				authoring.DraftTransitionPath,
				object{"draft_id": id, "from": []string{"draft"}, "to": "in_review", "operation_id": id},
			),
		)
	}
	page := func(in object) (ids []string, next any) {
		p := must[authoring.DraftListResponse](t)(operate[authoring.DraftListResponse](h, authoring.DraftListPath, in))
		for _, d := range p.Drafts {
			ids = append(ids, d.ID)
		}
		if p.NextAfterID != nil {
			next = *p.NextAfterID
		}
		return ids, next
	}
	for _, c := range []struct {
		in   object
		want string
	}{
		{object{}, "[10 9 8 7 6 5 4 3 2 1] <nil>"}, {object{"limit": 4}, "[10 9 8 7] 7"},
		{object{"limit": 4, "after_id": "7"}, "[6 5 4 3] 3"}, {object{"limit": 4, "after_id": "3"}, "[2 1] <nil>"},
		{object{"limit": 10}, "[10 9 8 7 6 5 4 3 2 1] <nil>"}, {object{"status": []string{"in_review"}}, "[5 3] <nil>"},
		{object{"status": []string{"in_review", "sent"}, "limit": 1}, "[5] 5"},
		{object{"status": []string{"draft", "in_review"}, "after_id": "9", "limit": 3}, "[8 7 6] 6"},
		{object{"status": []string{"nonsense"}}, "[] <nil>"},
	} {
		ids, next := page(c.in)
		if got := fmt.Sprint(ids, " ", next); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
	for _, bad := range []object{{"limit": -1}, {"limit": 501}, {"after_id": "x"}, {"limit": "1"}} {
		if _, err := operate[any](h, authoring.DraftListPath, bad); !fault.Is(err, fault.Validation) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestDraftsAsReviewersLookForThem searches, orders and counts drafts, with statuses that authoring has not heard of yet.
func TestDraftsAsReviewersLookForThem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := h.super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	quiet, loud := h.segmentOf(member(0, `{}`)), h.segmentOf(member(0, `{}`))
	exec(`UPDATE authoring.segments SET name = '50%_loud' WHERE id = ` + loud)
	for i, d := range []struct{ segment, name, by string }{
		{quiet, "spring", "agent"}, {loud, "spring sale", "Ada"}, {quiet, "봄 세일", "agent"}, {quiet, "autumn", "Ada"},
		{loud, "winter", "agent"}, {quiet, "plain", "agent"},
	} {
		body := draft(d.segment, target(0))
		body["name"], body["createdBy"] = d.name, d.by
		ok[saved](h, "save_message_draft", body)
		// The later the draft, the earlier it was queued; the last is not.
		exec(
			fmt.Sprintf(
				`UPDATE authoring.drafts SET status = 'in_review', queued_at = '2026-01-15T08:00:00Z'::timestamptz - %d * interval '1 hour' `+
					`WHERE id = %d AND name <> 'plain'`,
				i,
				i+1,
			),
		)
	}
	ada := []object{{"created_by": "Ada", "hub_user": "", "external_user_id": "u1"}}
	review := []string{"in_review"}
	list := func(in object) string {
		t.Helper()
		p := must[authoring.DraftListResponse](t)(operate[authoring.DraftListResponse](h, authoring.DraftListPath, in))
		var ids []string
		for _, d := range p.Drafts {
			ids = append(ids, d.ID)
		}
		return fmt.Sprint(ids, " ", p.Counts, " ", p.CountsOthers)
	}
	for name, c := range map[string]struct {
		in   object
		want string
	}{
		"by the queue":             {object{"order": "queued"}, "[5 4 3 2 1] map[] map[]"},
		"the next page":            {object{"order": "queued", "status": review, "after_id": "4", "limit": 2}, "[3 2] map[] map[]"},
		"behind what is not there": {object{"order": "queued", "after_id": "6"}, "[] map[] map[]"},
		"another's count": {object{"search": "s", "limit": 2, "makers": ada, "count": true},
			"[6 4] map[draft:1 in_review:4] map[draft:1 in_review:2]"},
		"but for one": {object{"order": "queued", "status": review, "makers": ada, "others": true, "count": true},
			"[5 3 1] map[draft:1 in_review:5] map[draft:1 in_review:3]"},
		"one by another name": {object{"status": review, "others": true,
			"makers": []object{{"created_by": "ada"}, {"created_by": "Ada", "hub_user": "x"}}}, "[5 4 3 2 1] map[] map[]"},
		"a name":           {object{"search": "SPRING", "count": true}, "[2 1] map[in_review:2] map[in_review:2]"},
		"a name in Korean": {object{"search": "세일"}, "[3] map[] map[]"},
		"a segment":        {object{"search": "50%_l", "status": review, "order": "queued"}, "[5 2] map[] map[]"},
		"no pattern":       {object{"search": "s%g"}, "[] map[] map[]"},
		"no escape":        {object{"search": `\`}, "[] map[] map[]"},
		"what no name has": {object{"search": "spring\x00"}, "[] map[] map[]"},
		"an id":            {object{"search": "4"}, "[4] map[] map[]"},
		"news": {object{"status": review, "order": "queued", "count": true,
			"ahead": []object{{"draft_id": "4", "status": "approved"}, {"draft_id": "999", "status": "in_review"}}},
			"[5 3 2 1] map[approved:1 draft:1 in_review:4] map[approved:1 draft:1 in_review:4]"},
		"what the news bring": {object{"status": []string{"approved", "sent"}, "search": "a",
			"ahead": []object{{"draft_id": "4", "status": "approved"}, {"draft_id": "1", "status": "sent"}}}, "[4 1] map[] map[]"},
		"news in pages": {object{"status": review, "order": "queued", "after_id": "4", "limit": 2,
			"ahead": []object{{"draft_id": "3", "status": "in_review"}, {"draft_id": "5", "status": "in_review"}}},
			"[3 2] map[] map[]"},
	} {
		if got := list(c.in); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for _, bad := range []object{{"order": "name"}, {"search": strings.Repeat("가", 201)},
		{"ahead": []object{{"draft_id": "x", "status": "sent"}}}, {"makers": make([]object, 1001)}, {"ahead": make([]object, 5001)}} {
		if _, err := operate[any](h, authoring.DraftListPath, bad); !fault.Is(err, fault.Validation) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestTargetPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{"b": 1.50,"a":"<b>"}`), member(3, `{}`))
	targets := make([]any, 200)
	for i := range targets {
		targets[i] = target(i, object{"context": object{"n": i}})
	}
	id := ok[saved](h, "save_message_draft", with(draft(s, targets...), "bodyTemplate", "<p>{{context.n}}</p>")).DraftID
	page := func(in object) authoring.DraftTargetsResponse {
		t.Helper()
		in["draft_id"] = id
		return must[authoring.DraftTargetsResponse](t)(operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath, in))
	}
	p := page(object{"limit": 3})
	if len(p.Targets) != 3 || p.NextAfter == nil || *p.NextAfter != 2 {
		t.Fatalf("%+v", p)
	}
	got := p.Targets[1]
	if got.Index != 1 || got.ExternalID != 1 || got.ToEmail != "c1@partner.example" || got.ToName != "Contact 1" ||
		got.Subject != "Hello" || got.Body != "<p>1</p>" || !got.HTML ||
		string(got.Context) != `{"n":1}` ||
		string(got.Snapshot) != `{"b":1.50,"a":"<b>"}` ||
		len(got.ContentHash) != 64 ||
		string(p.Targets[0].Snapshot) != "null" {
		t.Errorf("%+v, snapshot %s", got, got.Snapshot)
	}
	mail := authoring.Mail{ToEmail: got.ToEmail, ToName: got.ToName, Subject: got.Subject, Body: got.Body, HTML: got.HTML}
	if hash := mail.ContentHash(); fmt.Sprintf("%x", hash) != got.ContentHash {
		t.Errorf("%x, %s", hash, got.ContentHash)
	}
	seen := 0
	for after, in := -1, (object{"limit": 70}); ; {
		p := page(in)
		for _, x := range p.Targets {
			if x.Index != after+1 {
				t.Fatalf("index %d after %d", x.Index, after)
			}
			after, seen = x.Index, seen+1
		}
		if p.NextAfter == nil {
			break
		}
		in = object{"limit": 70, "after": *p.NextAfter}
	}
	if seen != 200 {
		t.Errorf("%d targets", seen)
	}
	var indexes []int
	for _, x := range page(object{"ids": []int{7, 3, 199, 200, -1, 3}}).Targets {
		indexes = append(indexes, x.Index)
	}
	if !slices.Equal(indexes, []int{3, 7, 199}) {
		t.Error(indexes)
	}
	recipients := func(in object) authoring.RecipientsResponse {
		t.Helper()
		in["draft_id"] = id
		return must[authoring.RecipientsResponse](t)(operate[authoring.RecipientsResponse](h, authoring.DraftRecipientsPath, in))
	}
	all := recipients(object{"limit": 5000})
	if len(all.Recipients) != 200 || all.NextAfter != nil {
		t.Errorf("%d recipients, then %v", len(all.Recipients), all.NextAfter)
	}
	two := recipients(object{"limit": 2, "after": 4})
	if want := (authoring.RecipientView{Index: 6, ExternalID: 6, ToEmail: "c6@partner.example", ToName: "Contact 6"}); len(
		two.Recipients,
	) != 2 ||
		*two.NextAfter != 6 ||
		two.Recipients[1] != want {
		t.Errorf("%+v", two)
	}
	for _, bad := range []object{{"limit": 5001}, {"limit": -1}} {
		bad["draft_id"] = id
		if _, err := operate[any](h, authoring.DraftRecipientsPath, bad); !fault.Is(err, fault.Validation) {
			t.Errorf("%v", err)
		}
	}
	for _, bad := range []object{{"limit": 501}, {"limit": -1}, {"ids": make([]int, 501)}} {
		bad["draft_id"] = id
		if _, err := operate[any](h, authoring.DraftTargetsPath, bad); !fault.Is(err, fault.Validation) {
			t.Errorf("%v", err)
		}
	}
}

// TestEvidenceOfBrandsAndCampaigns has snapshots of what belongs to partners: search tools
// name the partner in each row.
func TestEvidenceOfBrandsAndCampaigns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"brand", "campaign"} {
		for _, more := range []int{0, 200} { // few targets are stored in another way than many
			h := newHouse(t)
			members := []any{
				member(0, `{"x":1}`),
				member(1, `{"brand_id":1, "partner_id":2}`),
				member(2, `{"partner_id":"3","a":1.50}`),
				member(3, `{"partner_id": 3}`),
				member(
					4,
					`{"partner_id":null}`,
				),
				member(5, `{"partner_id":{"partner_id":0}}`),
				member(6, `{"partner_id":1.5}`),
				member(7, `{"nested":{"partner_id":1}}`),
			}
			for i := range 11 {
				members = append(members, member(100+i, fmt.Sprintf(`{"partner_id":4,"n":%d}`, 11-i)))
			}
			for i := range more {
				members = append(members, member(1000+i, `{"partner_id":999}`))
			}
			s := ok[object](h, "create_segment", with(segment(members...), "kind", kind))["segment_id"].(string)
			p := must[authoring.DraftTargetsResponse](
				t,
			)(
				operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath, object{"draft_id": h.draftOf(s, 5)}),
			)
			for i, want := range []string{`null`, `null`, `{"brand_id":1,"partner_id":2}`, `[{"partner_id":"3","a":1.50},{"partner_id":3}]`} {
				if got := string(p.Targets[i].Snapshot); got != want {
					t.Errorf("%s, partner %d: %s, want %s", kind, i, got, want)
				}
			}
			if got := string(
				p.Targets[4].Snapshot,
			); strings.Count(got, "partner_id") != 10 ||
				!strings.HasPrefix(got, `[{"partner_id":4,"n":11},`) {
				t.Errorf("%s, a partner with eleven: %s", kind, got)
			}
		}
	}
}

// TestLargePagesEndEarly renders what would be 100 MiB in one page.
func TestLargePagesEndEarly(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	targets := make([]any, 100)
	for i := range targets {
		targets[i] = target(i)
	}
	id := ok[saved](h, "save_message_draft", with(draft(s, targets...), "bodyTemplate", strings.Repeat("x", 1<<20))).DraftID
	p := must[authoring.DraftTargetsResponse](
		t,
	)(
		operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath, object{"draft_id": id}),
	)
	if len(p.Targets) != 5 || p.NextAfter == nil || *p.NextAfter != 4 {
		t.Errorf("%d targets", len(p.Targets))
	}
}

var statuses = authoring.Statuses()

// allowed is the table of CONTRACT.md 10.1, written down a second time.
var allowed = map[[2]string]bool{
	{"draft", "in_review"}: true, {"draft", "cancelled"}: true, {"in_review", "cancelled"}: true, {"in_review", "approved"}: true,
	{"in_review", "rejected"}: true, {"approved", "sent"}: true, {"approved", "cancelled"}: true, {"approved", "in_review"}: true,
}

type transitioned struct {
	DraftID  string `json:"draft_id"`
	From, To string
	QueuedAt *string `json:"queued_at"`
	At       string
	Replayed bool
}

// TestTransitions plays every pair, allowed and refused, repeats and stale wishes at random on
// real drafts, beside a model.
func TestTransitions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	tried := map[[2]string]bool{}
	operations := 0
	rapid.Check(t, func(rt *rapid.T) {
		id := h.draftOf(s, 1)
		now := "draft"
		var queued *string
		past := map[string]transitioned{}
		wishes := map[string]object{}
		wish := func(in object) (transitioned, error) {
			return operate[transitioned](h, authoring.DraftTransitionPath, in)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"wish": func(rt *rapid.T) {
				operations++
				operation := fmt.Sprintf("op-%s-%d", id, operations)
				to := rapid.SampledFrom(statuses).Draw(rt, "to")
				from := rapid.SliceOfNDistinct(rapid.SampledFrom(statuses), 1, 6, rapid.ID[string]).Draw(rt, "from")
				in := object{"draft_id": id, "from": from, "to": to, "operation_id": operation}
				got, err := wish(in)
				if slices.Contains(from, now) {
					tried[[2]string{now, to}] = true
				}
				if slices.Contains(from, now) && allowed[[2]string{now, to}] {
					if err != nil || got.From != now || got.To != to || got.Replayed || got.DraftID != id {
						rt.Fatalf("%v from %s: %+v, %v", in, now, got, err)
					}
					if now == "approved" && to == "in_review" && *got.QueuedAt != *queued {
						rt.Fatalf("it was queued at %s, and now at %s", *queued, *got.QueuedAt)
					}
					if now == "draft" && to == "in_review" {
						queued = got.QueuedAt
						if queued == nil {
							rt.Fatal("no queued_at")
						}
					}
					now, past[operation], wishes[operation] = to, got, in
					return
				}
				if d := read(t, fault.From(err)); !fault.Is(err, fault.Conflict) || d.From != now || d.To != to {
					rt.Fatalf("%v from %s: %+v, %v", in, now, got, err)
				}
			},
			"repeat": func(rt *rapid.T) {
				for operation, first := range past {
					got, err := wish(wishes[operation])
					first.Replayed = true
					if err != nil || text(got) != text(first) {
						rt.Fatalf("repeat of %+v: %+v, %v", first, got, err)
					}
				}
			},
			"reuse": func(rt *rapid.T) {
				for operation, first := range past {
					other := object{
						"draft_id":     id,
						"from":         []string{first.From},
						"to":           rapid.SampledFrom(statuses).Draw(rt, "to"),
						"operation_id": operation,
					}
					if other["to"] == first.To {
						other["from"] = []string{first.To}
					}
					if _, err := wish(other); !fault.Is(err, fault.Idempotency) {
						rt.Fatalf("%v: %v", other, err)
					}
				}
			},
			"": func(rt *rapid.T) {
				d, err := operate[authoring.DraftSummary](h, authoring.DraftGetPath, object{"draft_id": id})
				if err != nil || string(d.Status) != now || text(d.QueuedAt) != text(queued) {
					rt.Fatalf("%+v, %v; want %s", d, err, now)
				}
			},
		})
	})
	for _, from := range statuses {
		for _, to := range statuses {
			if !tried[[2]string{from, to}] {
				t.Logf("not tried at random: %s → %s", from, to)
			}
		}
	}
}

// paths lead from draft to each status.
var paths = map[string][]string{
	"draft":     {},
	"in_review": {"in_review"},
	"approved":  {"in_review", "approved"},
	"rejected":  {"in_review", "rejected"},
	"sent":      {"in_review", "approved", "sent"},
	"cancelled": {"cancelled"},
}

func (h *house) bring(id string, to string) {
	h.t.Helper()
	for i, step := range paths[to] {
		must[any](
			h.t,
		)(
			operate[any](
				h,
				authoring.DraftTransitionPath,
				object{"draft_id": id, "from": statuses, "to": step, "operation_id": fmt.Sprintf("bring-%s-%d", id, i)},
			),
		)
	}
}

// TestEveryPair tries each of the 36, as a person and as an agent.
func TestEveryPair(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	n := 0
	for from := range paths {
		for _, to := range statuses {
			for _, kind := range []string{caller.User, caller.Service, caller.Key, caller.App} {
				n++
				id := h.draftOf(s, 1)
				h.bring(id, from)
				ctx := t.Context()
				if kind != caller.Service {
					ctx = callertest.Called(t, "review-control", caller.Caller{Kind: kind, CredentialID: "ak_1"})
				}
				_, err := remote.Operation[any, any]{
					Path:      authoring.DraftTransitionPath,
					ForCaller: true,
				}.Call(
					ctx,
					h.review,
					object{"draft_id": id, "from": []string{from}, "to": to, "operation_id": fmt.Sprint("pair", n)},
				)
				want := fault.Code("")
				switch agent := kind == caller.Key || kind == caller.App; {
				case !allowed[[2]string{from, to}]:
					want = fault.Conflict
				case agent && (from != "draft" || to != "in_review"):
					want = fault.Scope
				}
				if want == "" && err != nil || want != "" && !fault.Is(err, want) {
					t.Errorf("%s → %s by %s: %v, want %q", from, to, kind, err, want)
				}
			}
		}
	}
}

func TestTransitionRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	id := h.draftOf(s, 1)
	good := func() object {
		return object{
			"draft_id":     id,
			"from":         []string{"draft"},
			"to":           "in_review",
			"operation_id": "o",
			"queued_at":    "2026-01-15T18:00:00.1239+09:00",
		}
	}
	for name, c := range map[string]struct {
		change object
		code   fault.Code
	}{
		"no operation":       {object{"operation_id": ""}, fault.Validation},
		"a long operation":   {object{"operation_id": strings.Repeat("x", 201)}, fault.Validation},
		"NUL":                {object{"operation_id": "a\x00"}, fault.Validation},
		"from nowhere":       {object{"from": []string{}}, fault.Validation},
		"unknown from":       {object{"from": []string{"draft", "x"}}, fault.Validation},
		"unknown to":         {object{"to": "x"}, fault.Validation},
		"no such draft":      {object{"draft_id": "77"}, fault.NotFound},
		"queued by a cancel": {object{"to": "cancelled"}, fault.Validation},
		"elsewhere":          {object{"from": []string{"approved"}}, fault.Conflict},
	} {
		in := good()
		for k, v := range c.change {
			in[k] = v
		}
		if _, err := operate[any](h, authoring.DraftTransitionPath, in); !fault.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got := must[transitioned](t)(operate[transitioned](h, authoring.DraftTransitionPath, good()))
	if got.QueuedAt == nil || *got.QueuedAt != "2026-01-15T09:00:00.123Z" {
		t.Errorf("%+v", got)
	}
	other := h.draftOf(s, 1)
	in := good()
	in["draft_id"] = other
	if _, err := operate[any](h, authoring.DraftTransitionPath, in); !fault.Is(err, fault.Idempotency) {
		t.Errorf("another draft's operation: %v", err)
	}
	if n := h.count(
		`SELECT count(*) FROM authoring.draft_transitions WHERE hub_user = 'ada' AND from_status = 'draft' AND to_status = 'in_review'`,
	); n != 1 {
		t.Errorf("%d rows of history", n)
	}
}

// TestRacingTransitions lets two people decide at once, and each of them twice.
func TestRacingTransitions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	for round := range 20 {
		id := h.draftOf(s, 1)
		h.bring(id, "in_review")
		var wg sync.WaitGroup
		var mu sync.Mutex
		done := map[string]int{}
		for i, to := range []string{"approved", "rejected", "cancelled", "approved", "rejected", "cancelled"} {
			wg.Go(func() {
				got, err := operate[transitioned](
					h,
					authoring.DraftTransitionPath,
					object{"draft_id": id, "from": []string{"in_review"}, "to": to, "operation_id": fmt.Sprintf("race-%d-%s", round, to)},
				)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done[got.To]++
				case !fault.Is(err, fault.Conflict):
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n := h.count(
			`SELECT count(*) FROM authoring.draft_transitions WHERE draft_id = $1 AND from_status = 'in_review'`,
			id,
		); n != 1 ||
			len(done) != 1 {
			t.Fatalf("%d outcomes, %v", n, done)
		}
		for to, answers := range done {
			if answers != 2 || h.count(`SELECT count(*) FROM authoring.drafts WHERE id = $1 AND status = $2`, id, to) != 1 {
				t.Fatalf("%v", done)
			}
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.draftOf(h.segmentOf(), 10)
	must[any](
		t,
	)(
		operate[any](
			h,
			authoring.DraftTransitionPath,
			object{"draft_id": id, "from": []string{"draft"}, "to": "in_review", "operation_id": "q"},
		),
	)
	set := func(version, pending, approved, rejected, sent, failed, suppressed, unknown int) (authoring.ProgressResponse, error) {
		return operate[authoring.ProgressResponse](h, authoring.DraftProgressPath, object{
			"draft_id": id,
			"version":  version,
			"decisions": object{
				"pending":  pending,
				"approved": approved,
				"rejected": rejected,
			},
			"delivery": object{"sent": sent, "failed": failed, "suppressed": suppressed, "unknown": unknown},
		})
	}
	for _, c := range []struct {
		in   [8]int
		want string // version and counters afterwards; empty for E_VALIDATION
	}{
		{[8]int{1, 9, 1, 0, 0, 0, 0, 0}, "1 {9 1 0} {0 0 0 0}"}, {[8]int{3, 7, 2, 1, 0, 0, 0, 0}, "3 {7 2 1} {0 0 0 0}"},
		{[8]int{2, 8, 1, 1, 0, 0, 0, 0}, "3 {7 2 1} {0 0 0 0}"},
		{[8]int{3, 10, 0, 0, 0, 0, 0, 0}, "3 {7 2 1} {0 0 0 0}"}, {[8]int{4, 0, 9, 1, 5, 2, 1, 1}, "4 {0 9 1} {5 2 1 1}"},
		{[8]int{5, 0, 9, 0, 0, 0, 0, 0}, ""}, {[8]int{5, 0, 9, 1, 8, 1, 1, 0}, ""}, {[8]int{5, 0, 9, 1, 7, 1, 1, 1}, ""},
		{[8]int{5, 0, 9, 1, 1, 0, 0, -1}, ""}, {[8]int{5, -1, 10, 1, 0, 0, 0, 0}, ""}, {[8]int{0, 10, 0, 0, 0, 0, 0, 0}, ""},
		{[8]int{-3, 10, 0, 0, 0, 0, 0, 0}, ""},
	} {
		got, err := set(c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.in[5], c.in[6], c.in[7])
		if c.want == "" {
			if !fault.Is(err, fault.Validation) {
				t.Errorf("%v: %v", c.in, err)
			}
			continue
		}
		if text := fmt.Sprint(got.Version, " ", got.Decisions, " ", got.Delivery); err != nil || text != c.want {
			t.Errorf("%v: %s, %v; want %s", c.in, text, err, c.want)
		}
	}
	var wg sync.WaitGroup
	for v := 10; v < 30; v++ {
		wg.Go(func() {
			if _, err := set(v, 10-v%10, v%10, 0, 0, 0, 0, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := set(1, 10, 0, 0, 0, 0, 0, 0); err != nil || got.Version != 29 || got.Decisions.Approved != 9 {
		t.Errorf("%+v, %v", got, err)
	}
	a, err := h.send(agent(t.Context()), "list_drafts", "", `{}`)
	if err != nil || !strings.Contains(a.data, `"decisions":{"pending":1,"approved":9,"rejected":0}`) {
		t.Errorf("%s, %v", a.data, err)
	}
	if !strings.Contains(a.data, `"rejections":{}`) {
		t.Errorf("without reasons the list is %s", a.data)
	}
	for _, c := range []struct {
		version, rejected int
		reasons           any
		want              string // as list_drafts has them; empty for E_VALIDATION
	}{
		{30, 4, object{"tone": 1, "content": 2}, `{"content":2,"tone":1}`}, {29, 4, object{"tone": 4}, `{"content":2,"tone":1}`},
		{31, 3, object{"tone": 3}, `{"tone":3}`},
		{32, 3, object{"tone": 4}, ""}, {32, 3, object{"tone": 2, "other": 2}, ""}, {32, 3, object{"tone": 0}, ""},
		{32, 3, object{"tone": -1}, ""}, {32, 3, object{"<b>": 1}, ""}, {32, 3, object{"": 1}, ""},
		{32, 3, object{strings.Repeat("a", 41): 1}, ""}, {32, 0, object{"tone": 1}, ""},
		{33, 2, object{"tone": 2}, `{"tone":2}`}, {34, 2, nil, `{}`}, // an earlier release of review-control counts none
	} {
		in := object{
			"draft_id":  id,
			"version":   c.version,
			"decisions": object{"pending": 10 - c.rejected, "approved": 0, "rejected": c.rejected},
			"delivery":  object{"sent": 0, "failed": 0, "suppressed": 0},
		}
		if c.reasons != nil {
			in["rejections"] = c.reasons
		}
		_, err := operate[authoring.ProgressResponse](h, authoring.DraftProgressPath, in)
		if c.want == "" {
			if !fault.Is(err, fault.Validation) {
				t.Errorf("%v: %v", in, err)
			}
			continue
		}
		if a, listErr := h.send(
			agent(t.Context()),
			"list_drafts",
			"",
			`{}`,
		); err != nil || listErr != nil ||
			!strings.Contains(a.data, `"rejections":`+c.want) {
			t.Errorf("%v: %v, %v, %s", in, err, listErr, a.data)
		}
	}
	if _, err := set(35, 1, 9, 0, 0, 0, 0, 0); err != nil {
		t.Error(err)
	}
	move := func(version int) error {
		_, err := operate[transitioned](
			h,
			authoring.DraftTransitionPath,
			object{
				"draft_id":     id,
				"from":         []string{"in_review"},
				"to":           "approved",
				"operation_id": fmt.Sprint("v", version),
				"version":      version,
			},
		)
		return err
	}
	if err := move(34); !fault.Is(err, fault.Conflict) {
		t.Errorf("a wish of counts that are out of date: %v", err)
	}
	if err := move(35); err != nil {
		t.Error(err)
	}
}

// TestRejectedTargetsAreListed as review-control tells them, until it tells others or, being of an earlier release, none.
func TestRejectedTargetsAreListed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	segment := h.segmentOf()
	queue := func(targets int) string {
		id := h.draftOf(segment, targets)
		must[any](t)(operate[any](h, authoring.DraftTransitionPath,
			object{"draft_id": id, "from": []string{"draft"}, "to": "in_review", "operation_id": id}))
		return id
	}
	row := func(index int, more object) object {
		r := object{"index": index, "external_id": 100 + index, "to_email": fmt.Sprintf("c%d@partner.example", index),
			"subject": "Hello", "reason": "tone", "note": "Politer,\nplease.", "decided_at": "2026-01-15T09:00:05+09:00"}
		maps.Copy(r, more)
		return r
	}
	tell := func(id string, targets, version, count int, rejected any) error {
		in := object{"draft_id": id, "version": version, "decisions": object{"pending": targets - count, "approved": 0, "rejected": count},
			"delivery": object{"sent": 0, "failed": 0, "suppressed": 0}}
		if rejected != nil {
			in["rejected"] = rejected
		}
		_, err := operate[authoring.ProgressResponse](h, authoring.DraftProgressPath, in)
		return err
	}
	list := func(input string) authoring.DraftList {
		t.Helper()
		return ok[authoring.DraftList](h, "list_drafts", input)
	}
	id := queue(3)
	must[any](t)(nil, tell(id, 3, 1, 2, []object{row(2, nil), row(0, object{"reason": "", "note": "", "subject": ""})}))
	a, err := h.send(agent(t.Context()), "list_drafts", "", `{}`)
	if want := `"rejected":[{"externalId":102,"toEmail":"c2@partner.example","subject":"Hello","reason":"tone","note":"Politer,\nplease.",` +
		`"decidedAt":"2026-01-15T00:00:05.000Z"},{"externalId":100,"toEmail":"c0@partner.example","subject":"","reason":null,"note":null,` +
		`"decidedAt":"2026-01-15T00:00:05.000Z"}],"rejected_more":0`; err != nil || !strings.Contains(a.data, want) {
		t.Errorf("%s, %v", a.data, err)
	}
	for _, bad := range [][]object{
		{row(3, nil)}, {row(-1, nil)}, {row(0, object{"reason": "<b>"})}, {row(0, object{"note": "\x00"})},
		{row(0, nil), row(1, nil), row(2, nil)},
	} {
		if err := tell(id, 3, 2, 2, bad); !fault.Is(err, fault.Validation) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	must[any](t)(nil, tell(id, 3, 2, 2, nil)) // an earlier release of review-control lists none
	if got := list(`{}`).Drafts[0]; got.Rejected == nil || len(got.Rejected) != 0 || got.RejectedMore != 2 {
		t.Errorf("%+v", got)
	}
	must[any](t)(nil, tell(id, 3, 1, 2, []object{row(2, nil)})) // it has overtaken nobody
	if got := list(`{}`).Drafts[0]; len(got.Rejected) != 0 {
		t.Errorf("%+v", got)
	}
	// A list has 200 of its first drafts, and those that are left out are there for who asks for their draft.
	var ids []string
	for range 5 {
		id := queue(60)
		rows := make([]object, 50)
		for i := range rows {
			rows[i] = row(i, nil)
		}
		must[any](t)(nil, tell(id, 60, 1, 60, rows))
		ids = append(ids, id)
	}
	sizes := ""
	for _, d := range list(`{"limit":5}`).Drafts {
		sizes += fmt.Sprint(len(d.Rejected), "+", d.RejectedMore, " ")
	}
	if sizes != "50+10 50+10 50+10 50+10 0+60 " {
		t.Error(sizes)
	}
	if got := list(`{"draftId":"` + ids[0] + `"}`).Drafts; len(got) != 1 || len(got[0].Rejected) != 50 || got[0].RejectedMore != 10 {
		t.Errorf("%+v", got)
	}
	if err := tell(ids[0], 60, 2, 60, make([]object, 51)); !fault.Is(err, fault.Validation) {
		t.Errorf("51: %v", err)
	}
}
