package authoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/tool"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/preview"
)

// warned calls a write tool and returns its warnings by rule.
func (h *house) warned(name string, input any) map[string]string {
	h.t.Helper()
	a, err := h.send(agent(h.t.Context()), name, newKey(), text(input))
	if err != nil {
		h.t.Fatalf("%s %.300s: %v", name, text(input), err)
	}
	var out struct{ Warnings []tool.Warning }
	if err := json.Unmarshal([]byte(a.data), &out); err != nil {
		h.t.Fatal(err)
	}
	list := map[string]string{}
	for _, w := range out.Warnings {
		if _, twice := list[w.Rule]; twice || w.Message == "" || len(w.Message) > 1500 || !utf8.ValidString(w.Message) {
			h.t.Errorf("%+v", w)
		}
		list[w.Rule] = w.Message
	}
	return list
}

func rules(warnings map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(warnings)), " ")
}

// TestWarningsOfDrafts shares a house: each part leaves query as it was.
func TestWarningsOfDrafts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, part := range map[string]func(*testing.T, *house){
		"the source has no say": sourceHasNoSay, "snapshots": snapshots, "unknown ids": unknownIDsAreCounted,
		"outside the segment": outsideTheSegment,
		"mailboxes":           mailboxes, "previews": previews, "a whole draft": wholeDraft,
		"slips": slips, "strangers": strangers, "a part of a segment": leftOut,
	} {
		t.Run(name, func(t *testing.T) {
			here := *h
			here.t = t
			part(t, &here)
		})
	}
}

// sourceHasNoSay: whatever query answers, or does not, a segment is stored; a replay has the warnings of then.
func sourceHasNoSay(t *testing.T, h *house) {
	input := text(segment(member(1, `{"partner_id":1}`)))
	for _, down := range []error{fault.New(fault.DB, "away"), fault.New(fault.DBTimeout, "slow"), fault.New(fault.Validation, "no"),
		fmt.Errorf("broken")} {
		h.query.say(down, nil)
		named := with(segment(member(1, `{"partner_id":1}`)), "name", down.Error())
		if got := rules(h.warned("create_segment", named)); got != "segment.unchecked" {
			t.Errorf("%v: %s", down, got)
		}
	}
	first, err := h.send(agent(t.Context()), "create_segment", "k", input)
	if err != nil || !strings.Contains(first.data, "segment.unchecked") {
		t.Fatal(first, err)
	}
	h.query.say(nil, nil)
	if again, err := h.send(agent(t.Context()), "create_segment", "k", input); err != nil || !again.replayed || again.data != first.data {
		t.Errorf("%+v, %v", again, err)
	}
	if got := rules(h.warned("create_segment", input)); got != "segment.equal" {
		t.Error(got)
	}
	// Nobody is asked about nothing, nor about what is refused.
	before := h.query.askedIDs()
	h.warned("create_segment", segment())
	h.refused("create_segment", segment(member(1, `{"partner_id":1}`), member(1, `{"partner_id":1}`)), fault.Validation)
	if n := h.query.askedIDs() - before; n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// slow is a source that never answers: whoever asks has to have a limit.
type slow struct{ authoring.Source }

func (slow) Unknown(ctx context.Context, _ authoring.Kind, _ []int64) (authoring.UnknownIDs, error) {
	if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > 3*time.Second {
		<-ctx.Done()
	}
	return authoring.UnknownIDs{}, context.DeadlineExceeded
}

// liar is a source that answers what cannot be.
type liar struct{}

func (liar) Check(context.Context, []authoring.Recipient) (map[int]authoring.Objection, error) {
	return map[int]authoring.Objection{
		-1: {Reasons: []string{"b2c_member"}},
		7:  {},
		0:  {Reasons: []string{}, Meant: &authoring.Meant{}},
	}, nil
}

func (liar) Unknown(context.Context, authoring.Kind, []int64) (authoring.UnknownIDs, error) {
	return authoring.UnknownIDs{Count: -5, First: make([]int64, 1000), Others: map[authoring.Kind]int{"x": 1}}, nil
}

func (liar) Rows(context.Context, authoring.Kind, []int64) (map[int64][]byte, error) {
	return map[int64][]byte{-1: []byte(`{}`), 1: []byte(`{"x":1}`)}, nil
}

func (slow) Rows(ctx context.Context, _ authoring.Kind, _ []int64) (map[int64][]byte, error) {
	return nil, nil
}

func TestSourcesThatAreSlowOrLie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source authoring.Source
		want   string
	}{"slow": {slow{}, "segment.unchecked"}, "a liar": {liar{}, ""}} {
		h := newHouse(t, func(config *authoring.Config) { config.Source = c.source })
		if got := rules(h.warned("create_segment", segment(member(1, `{}`)))); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if name == "a liar" {
			if got := rules(h.warned("save_message_draft", draft("1", target(1)))); got != "draft.sender" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// snapshots: what a snapshot says of itself is compared with its target, whatever else it holds.
func snapshots(t *testing.T, h *house) {
	for snapshot, strays := range map[string]bool{
		`{}`: false, `{"partner_id":7}`: false, `{"partner_id": 7}`: false, `{"partner_id":"7"}`: false, `{"partnerId":7}`: false,
		`{"id":7}`:         false,
		`{"partner_id":8}`: true, `{"partner_id":"8"}`: true, `{"partnerId":8}`: true, `{"id":8}`: true, `{"partner":{"partner_id":8}}`: true,
		`{"partner":{"partner_id":7},"id":8}`: false, `{"id":8,"partner_id":7}`: false, `{"brand_id":8}`: false,
		`{"brand":{"partner_id":8}}`: false,
		`{"partner_id":null}`:        false, `{"partner_id":{}}`: false, `{"partner_id":[8]}`: false, `{"partner_id":true}`: false,
		`{"partner_id":7.5}`: false,
		`{"partner_id":8e0}`: false, `{"partner_id":""}`: false, `{"partner_id":"x"}`: false, `{"partner_id":` + strings.Repeat("9", 5000) +
			`}`: false,
		`{"partner_id":"` + strings.Repeat("8", 100_000) + `"}`: false, `{"partner":{"partner":{"partner_id":8}}}`: false,
		`{"partner_id":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`: false, `{"x":"\"partner_id\":8"}`: false,
		`{"note":"\"partner_id\":7,","partner_id":8}`: true, `{"파트너":8,"partner_id":-8}`: true,
		`{"a":{"partner_id":7},"partner_id":8}`: false,
	} {
		w := h.warned("create_segment", segment(member(7, snapshot)))
		delete(w, "segment.equal") // some are one to JSON
		if _, got := w["segment.snapshot"]; got != strays || len(w) > 1 {
			t.Errorf("%.100s: %v", snapshot, w)
		}
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = member(i, fmt.Sprintf(`{"partner_id":%d,"brand_id":%d}`, i+i%2, i))
	}
	if got, want := h.warned("create_segment", segment(many...))["segment.snapshot"],
		"150 of 300 targets have the snapshot of another partner, the first is target 1: externalId 1, and 2 in its snapshot; "+
			"of 150 the externalId is the snapshot's brand_id,"; !strings.HasPrefix(
		got,
		want,
	) {
		t.Error(got)
	}
}

func unknownIDsAreCounted(t *testing.T, h *house) {
	h.query.know(map[string][]int64{"brand": {1, 2, 3}})
	defer h.query.know(nil)
	many := make([]any, 300)
	for i := range many {
		many[i] = member(int64(i)*1_000_000_007_000, `{}`)
	}
	if got := h.warned("create_segment", segment(many...))["segment.ids"]; !strings.HasPrefix(
		got,
		"300 of 300 targets: the source has no partner 0, 1000000007000, ",
	) ||
		!strings.Contains(got, "9000000063000 and 290 more:") {
		t.Error(got)
	}
	if got := h.warned("create_segment", segment(member(1, `{}`), member(9, `{}`), member(3, `{}`)))["segment.ids"]; !strings.HasPrefix(
		got,
		"3 of 3 targets: the source has no partner 1, 9, 3; ids of a brand among these: 2: ",
	) {
		t.Error(got)
	}
}

// outsideTheSegment: a draft of a segment of each kind.
func outsideTheSegment(t *testing.T, h *house) {
	of := func(kind string, targets ...any) string {
		return ok[created](h, "create_segment", with(segment(targets...), "kind", kind)).SegmentID
	}
	partners := of("partner", member(1, `{}`), member(2, `{"partner_id":3}`))
	brands := of("brand", member(31, `{"brand_id":31,"partner_id":1}`), member(32, `{"partner_id":"2"}`), member(33, `{}`))
	empty := of("campaign")
	many := make([]any, 30)
	for i := range many {
		many[i] = target(100 - i)
	}
	for name, c := range map[string]struct {
		segment string
		targets []any
		want    string
	}{
		"partners": {partners, []any{target(1), target(2)}, ""},
		"another partner": {partners, []any{target(3), target(1), target(3, object{"toEmail": "x@y.example"})},
			"recipients of partner 3 are outside segment " + partners + ", so"},
		"many":               {partners, many, "recipients of partner 71, 72, 73, 74, 75, 76, 77, 78, 79, 80 and 20 more are outside"},
		"partners of brands": {brands, []any{target(1), target(2)}, ""},
		"brands themselves": {brands, []any{target(31), target(33), target(9), target(1)},
			"recipients of partner 9, 31, 33 are outside segment " + brands + ", where 2 of these ids are those of a brand"},
		"nobody": {empty, []any{target(1)}, "segment " + empty + " has no targets"},
	} {
		if got := h.warned("save_message_draft", draft(c.segment, c.targets...))["draft.outside"]; !strings.HasPrefix(got, c.want) ||
			c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func mailboxes(t *testing.T, h *house) {
	s := h.segmentOf(member(1, `{}`), member(2, `{}`), member(3, `{}`))
	to := func(n int, email string) object { return target(n, object{"toEmail": email}) }
	for name, c := range map[string]struct {
		targets []any
		want    string
	}{
		"apart": {[]any{to(1, "a@x.example"), to(2, "b@x.example"), to(3, "a@y.example")}, ""},
		"case": {[]any{to(1, "Kim@X.example"), to(1, "kim@x.EXAMPLE")},
			`one address gets several mails of this draft: target 0 ("Kim@X.example", partner 1) and target 1 ("kim@x.EXAMPLE", partner 1)`},
		"a tag": {[]any{to(1, "kim+a@x.example"), to(2, "kim@x.example")},
			`one address gets several mails of this draft: target 0 ("kim+a@x.example", partner 1) and target 1 (`},
		"tags":           {[]any{to(1, "kim+a@x.example"), to(1, "kim+b+c@x.example")}, "one address gets"},
		"nothing but it": {[]any{to(1, "+a@x.example"), to(1, "+b@x.example")}, ""},
		"partners first": {[]any{to(1, "a@x.example"), to(1, "a@x.example"), to(2, "b@x.example"), to(3, "b@x.example")},
			`2 addresses get several mails of this draft: target 2 ("b@x.example", partner 2) and target 3 ("b@x.example", partner 3)`},
		"thrice": {[]any{to(1, "a@x.example"), to(2, "a@x.example"), to(3, "a@x.example")}, "one address gets"},
	} {
		if got := h.warned("save_message_draft", draft(s, c.targets...))["draft.address"]; !strings.HasPrefix(got, c.want) ||
			c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMistakenIDs: where the policy lets them through they are told; else the refusal says whom to write to.
func TestMistakenIDs(t *testing.T) {
	t.Parallel()
	loose := newHouse(t, policy(authoring.NotB2C))
	loose.query.say(nil, map[string][]string{"c31@partner.example": {"unknown_partner"}, "c32@partner.example": {"not_a_verified_contact"}})
	loose.query.meant = map[string]authoring.Meant{
		"c31@partner.example": {Kind: authoring.Brand, PartnerID: 1},
		"c32@partner.example": {Kind: authoring.Brand, PartnerID: 2},
	}
	s := loose.segmentOf(member(31, `{}`), member(32, `{}`))
	if got, want := loose.warned("save_message_draft", draft(s, target(32), target(31)))["draft.ids"],
		"1 of 2 targets have the id of a brand or campaign as externalId, the first is target 1: 31 is a brand of partner 1;"; !strings.HasPrefix(
		got,
		want,
	) {
		t.Errorf("%q", got)
	}
	strict := newHouse(t)
	strict.query.reasons, strict.query.meant = loose.query.reasons, loose.query.meant
	f := strict.refused("save_message_draft", draft(strict.segmentOf(), target(31), target(32)), fault.Validation)
	if d := read(
		t,
		f,
	); len(d.Targets) != 2 || *d.Targets[1].Meant != (authoring.Meant{Kind: authoring.Brand, PartnerID: 2}) ||
		!strings.HasSuffix(d.Violations[1].Message, "32 is the id of a brand of partner 2: send externalId 2") {
		t.Errorf("%s %+v", f.Message, d)
	}
}

// previews: it is what review-control will render, and no more than its beginning.
func previews(t *testing.T, h *house) {
	s := h.segmentOf(member(1, `{}`), member(2, `{}`))
	long := strings.Repeat("가나다라 ", 200)
	for name, c := range map[string]struct {
		subject, body string
		own           object
		want          preview.Mail
	}{
		"text": {"Hi {{toName}}", "Dear {{toName}},\n\n{{context.a}}", nil,
			preview.Mail{Subject: "Hi Contact 1", Text: "Dear Contact 1,\n\nA & <b>"}},
		"HTML": {"s", "<style>p{}</style><p>Dear {{toName}}</p><ul><li>{{context.a}}</ul><a href=\"https://hub.example\">Hub</a>",
			nil, preview.Mail{Subject: "s", HTML: true, Text: "Dear Contact 1\n\n- A & <b>\n\nHub (https://hub.example)"}},
		"an own text": {"s", "<p>b</p>", object{"subject": "Own  {{context.a}}", "body": "own"},
			preview.Mail{Subject: "Own A & <b>", Text: "own"}},
		"invisible":    {"a\u200bb", "c\u2060d", nil, preview.Mail{Subject: "ab", Text: "cd"}},
		"long":         {"s", long, nil, preview.Mail{Subject: "s", Text: string([]rune(long)[:500]), Truncated: true}},
		"just so long": {"s", strings.Repeat("😀", 500), nil, preview.Mail{Subject: "s", Text: strings.Repeat("😀", 500)}},
		"a long head": {"s", "<p title=\"" + strings.Repeat("x", 1<<20) + "\">a</p>", nil,
			preview.Mail{Subject: "s", HTML: true, Truncated: true}},
		"only pictures": {"s", `<img src="https://x.example/a.png" alt="A glass">`, nil,
			preview.Mail{Subject: "s", HTML: true, Text: "[A glass]"}},
	} {
		body := with(
			with(
				draft(s, target(1, object{"context": object{"a": "A & <b>"}}, c.own), target(2, object{"context": object{"a": "x"}})),
				"subjectTemplate",
				c.subject,
			),
			"bodyTemplate",
			c.body,
		)
		c.want.ToEmail = "c1@partner.example"
		if got := ok[saved](h, "save_message_draft", body).Preview; got != c.want {
			t.Errorf("%s: %.600q, want %.600q", name, fmt.Sprint(got), fmt.Sprint(c.want))
		}
	}
}

// wholeDraft: 10,000 recipients of a segment of as many, each with something to be told, take little more than
// without, and the answer stays short.
func wholeDraft(t *testing.T, h *house) {
	members, targets := make([]any, authoring.MaxDraftTargets), make([]any, authoring.MaxDraftTargets)
	for i := range members {
		members[i] = member(i, fmt.Sprintf(`{"brand_id": %d, "partner_id": %d, "name": "브랜드"}`, i, i+1))
	}
	start := time.Now()
	id := ok[created](h, "create_segment", with(segment(members...), "kind", "brand"))
	if id.Warnings != nil {
		t.Error(id.Warnings)
	}
	t.Logf("a segment of %d takes %s", len(members), time.Since(start))
	for i := range targets {
		targets[i] = target(
			i,
			object{
				"toEmail": fmt.Sprintf("kim+%d@partner%d.example", i, i/2),
				"body":    "Dear {name}, [Your Company] *|X" + fmt.Sprint(i) + "|*",
				"context": object{"n": i},
			},
		)
	}
	targets[0] = target(999_999, object{"body": strings.Repeat("{ ", 1<<19)})
	start = time.Now()
	w := h.warned(
		"save_message_draft",
		with(draft(id.SegmentID, targets...), "bodyTemplate", "<p>{a} {b} {c} {d} {e} {f} "+strings.Repeat("[x", 1<<18)+"</p>"),
	)
	t.Logf("a draft of %d takes %s: %v", len(targets), time.Since(start), w)
	if got := rules(w); got != "draft.address draft.outside draft.placeholder draft.sender" {
		t.Error(got)
	}
	if !strings.HasPrefix(w["draft.outside"], "recipients of partner 999999 are outside") ||
		!strings.HasPrefix(w["draft.address"], "4999 addresses get several mails of this draft: target 2 (") {
		t.Errorf("%v", w)
	}
}

// slips: what a text has in it is told with its place, and to review-control of each mail.
func slips(t *testing.T, h *house) {
	s := h.segmentOf(member(1, `{}`), member(2, `{}`))
	signed := object{"senderName": "Hub", "senderEmail": "hub@hub.example"}
	for name, c := range map[string]struct {
		change, own object
		rule, want  string
		doubts      string
	}{
		"right": {nil, nil, "", "", "[]"},
		"Markdown": {object{"bodyTemplate": "# 제목\n**굵게** [링크](https://hub.example)"}, nil, "draft.markdown",
			`recipients will read "# 제목" as it is written (in /bodyTemplate): `, "[markdown]"},
		"an own body": {nil, object{"body": "**굵게** {{toName}}"}, "draft.markdown",
			`recipients will read "**굵게**" as it is written (in /targets/1/body): `, "[]"},
		"TODO": {object{"bodyTemplate": "Hi\nTODO: insert text"}, object{"subject": "[TODO]"}, "draft.unfinished",
			`recipients will read "TODO: insert text" (in /bodyTemplate, /targets/1/subject): `, "[unfinished]"},
		"a long subject": {object{"subjectTemplate": strings.Repeat("가", 149) + "{{toEmail}}"}, nil, "draft.subject",
			"2 of 2 targets get a subject of more than 150 characters, of which mail programs show the beginning: target 0 (167 characters), ",
			"[]"},
		"a subject that fits": {object{"subjectTemplate": strings.Repeat("가", 150)}, nil, "", "", "[]"},
		"no TLS": {object{"bodyTemplate": `<a href="http://hub.example">Hub</a>`}, nil, "draft.links",
			`"http://hub.example" leads without TLS, of which browsers warn (in /bodyTemplate): `, "[]"},
		"a private sender": {object{"senderEmail": "me@Gmail.com"}, nil, "draft.sender", "senderEmail is at gmail.com, ", "[sender]"},
	} {
		body := draft(s, target(1), target(2, c.own))
		for _, change := range []object{signed, c.change} {
			for member, value := range change {
				body = with(body, member, value)
			}
		}
		w := h.warned("save_message_draft", body)
		if rules(w) != c.rule || !strings.HasPrefix(w[c.rule], c.want) {
			t.Errorf("%s: %v", name, w)
		}
		if got := fmt.Sprint(h.doubts(ok[saved](h, "save_message_draft", body).DraftID)[0]); got != c.doubts {
			t.Errorf("%s: review-control hears of %s", name, got)
		}
	}
}

// doubts are those of a draft's targets, as review-control hears of them.
func (h *house) doubts(id string) (list [][]string) {
	h.t.Helper()
	for _, x := range must[authoring.DraftTargetsResponse](h.t)(operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath,
		object{"draft_id": id})).Targets {
		list = append(list, x.Doubts)
	}
	return list
}

// strangers: a context of the next target, and a name that is not the contact's.
func strangers(t *testing.T, h *house) {
	rows := []any{member(1, `{"partner_id":1,"brand_name":"라온담에센셜"}`), member(2, `{"partner_id":2,"brand_name":"바다나무에센셜"}`),
		member(3, `{"partner_id":3,"brand_name":"봄날"}`)}
	s := h.segmentOf(rows...)
	names := []string{"라온담에센셜", "바다나무에센셜", "봄날"}
	of := func(shift int) (targets []any) {
		for i := range names {
			targets = append(targets, target(i+1, object{"context": object{"brand_name": names[(i+shift)%3], "fill_rate": i}}))
		}
		return targets
	}
	if w := h.warned("save_message_draft", draft(s, of(0)...)); rules(w) != "draft.sender" {
		t.Errorf("%v", w)
	}
	w := h.warned("save_message_draft", draft(s, of(1)...))
	if got, want := w["draft.context"], `3 of 3 targets have a context of somebody else: target 0 (brand_name "바다나무에센셜" of partner 2, `+
		`not "라온담에센셜" of partner 1), target 1 (`; !strings.HasPrefix(got, want) || len(w) != 2 {
		t.Errorf("%v", w)
	}
	h.query.call(map[string][]string{"c1@partner.example": {"조영희"}, "c2@partner.example": {"김민지"}})
	defer h.query.call(nil)
	called := draft(s, target(1, object{"toName": "전혀다른이름"}), target(2, object{"toName": "김민지 팀장님"}),
		target(3, object{"toName": "아무개"}))
	if got, want := h.warned("save_message_draft", called)["draft.name"],
		`1 of 3 targets have a toName that is not their contact's: target 0 ("전혀다른이름", in the source "조영희"); `; !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
	called = with(called, "targets", []any{target(1, object{"toName": "전혀다른이름", "context": object{"partner_id": 2}}), target(2), target(3)})
	if got := fmt.Sprint(h.doubts(ok[saved](h, "save_message_draft", called).DraftID)); got != "[[context name] [] []]" {
		t.Error(got)
	}
	// Who is called as the segment calls the partner is no stranger.
	if w := h.warned("save_message_draft", draft(s, target(1, object{"toName": "라온담에센셜"}), target(2), target(3))); rules(w) != "draft.sender" {
		t.Errorf("%v", w)
	}
}

// leftOut: a draft of a few of its segment's partners.
func leftOut(t *testing.T, h *house) {
	var partners, brands []any
	for i := range 20 {
		partners = append(partners, member(i+1, `{}`))
		brands = append(brands, member(i+1, fmt.Sprintf(`{"brand_id":%d,"partner_id":%d}`, i+1, i/10+1)))
	}
	of := ok[created](h, "create_segment", with(segment(brands...), "kind", "brand")).SegmentID
	for name, c := range map[string]struct {
		segment string
		targets []any
		want    string
	}{
		"one":                 {h.segmentOf(partners...), []any{target(1)}, "the draft writes to 1 partners, and segment "},
		"half":                {h.segmentOf(partners[:4]...), []any{target(1), target(2)}, ""},
		"one of two":          {h.segmentOf(partners[:2]...), []any{target(1)}, ""},
		"brands of a partner": {of, []any{target(1)}, ""},
	} {
		if got := h.warned("save_message_draft", draft(c.segment, c.targets...))["draft.segment"]; !strings.HasPrefix(got, c.want) ||
			c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRepeats: who has had, or is about to have, a mail is told when another one is saved, queued and reviewed.
func TestRepeats(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *authoring.Config) { c.ContactPause = 7 * 24 * time.Hour })
	s := h.segmentOf(member(1, `{}`), member(2, `{}`), member(3, `{}`))
	to := func(body string, targets ...any) object { return with(draft(s, targets...), "bodyTemplate", body) }
	operations := 0
	move := func(id, from, status string) {
		operations++
		must[any](t)(operate[any](h, authoring.DraftTransitionPath, object{"draft_id": id, "from": []string{from}, "to": status,
			"operation_id": fmt.Sprint("move ", operations)}))
	}
	says := func(name string, body object, want string) string {
		t.Helper()
		saved := ok[saved](h, "save_message_draft", body)
		got := ""
		for _, w := range saved.Warnings {
			if w.Rule == "draft.repeated" {
				got = w.Message
			}
		}
		if got, _, _ = strings.Cut(got, "; if that is not meant"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		return saved.DraftID
	}
	first := says("the first", to("spring", target(1), target(2)), "")
	says("nobody has queued it", to("spring", target(1)), "")
	move(first, "draft", "in_review")
	says("in review", to("spring", target(1, object{"toEmail": "C1@Partner.example"}), target(3)),
		"1 of 2 targets repeat an earlier mail: target 0 (C1@Partner.example: the same text is in draft 1, which is about to leave (in_review))")
	says("a second mail", to("summer", target(1), target(2)), "2 of 2 targets repeat an earlier mail: target 0 (c1@partner.example: "+
		"a mail is in draft 1, which is about to leave (in_review)), "+
		"target 1 (c2@partner.example: a mail is in draft 1, which is about to leave (in_review))")
	move(first, "in_review", "approved")
	move(first, "approved", "sent")
	h.clock.Advance(3*24*time.Hour + time.Hour)
	other := says("a colleague", to("summer", target(1, object{"toEmail": "colleague@partner.example"})),
		"1 of 1 targets repeat an earlier mail: target 0 (colleague@partner.example: a mail to the partner left with draft 1 3 days ago)")
	if x := must[authoring.DraftTargetsResponse](t)(operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath,
		object{"draft_id": other})).Targets[0]; !slices.Equal(x.Doubts, []string{"recent"}) ||
		x.Repeats != "a mail to the partner left with draft 1 3 days ago" {
		t.Errorf("%+v", x)
	}
	for id, want := range map[string]string{first: "[ ]", other: "[a mail to the partner left with draft 1 3 days ago]"} {
		var got []string
		for _, x := range must[authoring.RecipientsResponse](t)(operate[authoring.RecipientsResponse](h, authoring.DraftRecipientsPath,
			object{"draft_id": id})).Recipients {
			got = append(got, x.Repeats)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("draft %s: %q", id, got)
		}
	}
	h.clock.Advance(4 * 24 * time.Hour)
	says("after the pause", to("summer", target(1), target(2)), "")
	says("the same text", to("spring", target(1)),
		"1 of 1 targets repeat an earlier mail: target 0 (c1@partner.example: the same text left with draft 1 7 days ago)")
	refused := says("to be rejected", to("autumn", target(1), target(2), target(3)), "")
	move(refused, "draft", "in_review")
	must[any](t)(operate[any](h, authoring.DraftProgressPath, object{"draft_id": refused, "version": 2,
		"decisions": object{"pending": 0, "approved": 1, "rejected": 2}, "delivery": object{}, "rejections": object{"tone": 1},
		"rejected": []any{object{"index": 0, "external_id": 1, "to_email": "c1@partner.example", "subject": "Hello", "reason": "tone", "note": "",
			"decided_at": "2026-01-15T00:00:05Z"}, object{"index": 1, "external_id": 2, "to_email": "c2@partner.example", "subject": "Hello",
			"reason": "", "note": "", "decided_at": "2026-01-15T00:00:05Z"}}}))
	move(refused, "in_review", "approved")
	says("rejected", to("autumn", target(1), target(2), target(3)), "3 of 3 targets repeat an earlier mail: target 0 (c1@partner.example: "+
		"the same text was rejected in draft "+refused+" as tone), target 1 (c2@partner.example: the same text was rejected in draft "+refused+
		"), target 2 (c3@partner.example: the same text is in draft "+refused+", which is about to leave (approved))")
	says("another text than was rejected", to("winter", target(1), target(2)), "")
	move(refused, "approved", "cancelled")
	says("cancelled", to("autumn", target(3)), "")
}

// TestRepeatsOfLaterDrafts: a draft in review is held to those that were queued before it, and to those that were decided on meanwhile; of
// two that were queued at one moment, to that of the lesser id.
func TestRepeatsOfLaterDrafts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(c *authoring.Config) { c.ContactPause = 7 * 24 * time.Hour })
	n := 0
	move := func(id, from, status string) {
		n++
		in := object{"draft_id": id, "from": []string{from}, "to": status, "operation_id": fmt.Sprint("move ", n)}
		if from == "draft" {
			in["queued_at"] = h.clock.Now()
		}
		must[any](t)(operate[any](h, authoring.DraftTransitionPath, in))
		h.clock.Advance(time.Hour)
	}
	queued := func(partner int, body string) string {
		t.Helper()
		id := ok[saved](h, "save_message_draft", with(draft(h.segmentOf(member(partner, `{}`)), target(partner)), "bodyTemplate", body)).DraftID
		move(id, "draft", "in_review")
		return id
	}
	says := func(name, id, want string) {
		t.Helper()
		if got := must[authoring.DraftTargetsResponse](t)(operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath,
			object{"draft_id": id})).Targets[0].Repeats; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for partner, body := range []string{"", "spring", "another text"} {
		if partner == 0 {
			continue
		}
		what := map[int]string{1: "the same text", 2: "a mail"}[partner]
		first, second := queued(partner, "spring"), queued(partner, body)
		says("nobody has decided on the later one", first, "")
		says("the later one", second, what+" is in draft "+first+", which is about to leave (in_review)")
		move(second, "in_review", "approved")
		says("it was approved", first, what+" is in draft "+second+", which is about to leave (approved)")
		move(second, "approved", "sent")
		says("it was sent", first, what+" left with draft "+second+" today")
		third := queued(partner, body)
		move(first, "in_review", "approved")
		move(first, "approved", "sent")
		move(third, "in_review", "approved")
		says("what was approved afterwards", first, what+" left with draft "+second+" today")
	}
	first, second := queued(3, "spring"), queued(3, "spring")
	move(second, "in_review", "rejected")
	says("it was rejected", first, "the same text was rejected in draft "+second)
	at := h.clock.Now()
	var twins []string
	for range 2 {
		id := ok[saved](h, "save_message_draft", with(draft(h.segmentOf(member(4, `{}`)), target(4)), "bodyTemplate", "spring")).DraftID
		n++
		must[any](t)(operate[any](h, authoring.DraftTransitionPath, object{"draft_id": id, "from": []string{"draft"}, "to": "in_review",
			"operation_id": fmt.Sprint("move ", n), "queued_at": at}))
		twins = append(twins, id)
	}
	says("the first of a moment", twins[0], "")
	says("the second of a moment", twins[1], "the same text is in draft "+twins[0]+", which is about to leave (in_review)")
	// Who queues one is told of the other, whichever of two at once has come first.
	for i, id := range twins {
		if got := must[authoring.RecipientsResponse](t)(operate[authoring.RecipientsResponse](h, authoring.DraftRecipientsPath,
			object{"draft_id": id})).Recipients[0].Repeats; got != "the same text is in draft "+twins[1-i]+", which is about to leave (in_review)" {
			t.Errorf("the recipient of draft %s: %q", id, got)
		}
	}
}

// TestRejectedAndCancelled: what a reviewer has rejected stays so where its draft was cancelled then, and hides nothing that was rejected
// before.
func TestRejectedAndCancelled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{}`), member(2, `{}`))
	n := 0
	move := func(id, from, status string) {
		n++
		must[any](t)(operate[any](h, authoring.DraftTransitionPath, object{"draft_id": id, "from": []string{from}, "to": status,
			"operation_id": fmt.Sprint("move ", n)}))
	}
	save := func() (id string, says string) {
		out := ok[saved](h, "save_message_draft", with(draft(s, target(1), target(2)), "bodyTemplate", "untrue"))
		for _, w := range out.Warnings {
			if w.Rule == "draft.repeated" {
				says, _, _ = strings.Cut(w.Message, "; if that is not meant")
			}
		}
		return out.DraftID, says
	}
	reject := func(id string, index int, reason string) {
		must[any](t)(operate[any](h, authoring.DraftProgressPath, object{"draft_id": id, "version": 2,
			"decisions": object{"pending": 1, "approved": 0, "rejected": 1}, "delivery": object{}, "rejections": object{reason: 1},
			"rejected": []any{object{"index": index, "external_id": index + 1, "to_email": fmt.Sprintf("c%d@partner.example", index+1),
				"subject": "Hello", "reason": reason, "note": "", "decided_at": "2026-01-15T00:00:05Z"}}}))
	}
	first, _ := save()
	move(first, "draft", "in_review")
	reject(first, 0, "content")
	move(first, "in_review", "cancelled")
	second, got := save()
	want := "1 of 2 targets repeat an earlier mail: target 0 (c1@partner.example: the same text was rejected in draft " + first +
		" as content)"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	move(second, "draft", "in_review")
	reject(second, 1, "tone")
	move(second, "in_review", "cancelled")
	want = "2 of 2 targets repeat an earlier mail: target 0 (c1@partner.example: the same text was rejected in draft " + first +
		" as content), target 1 (c2@partner.example: the same text was rejected in draft " + second + " as tone)"
	if _, got := save(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNoPause(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{}`))
	id := ok[saved](h, "save_message_draft", draft(s, target(1))).DraftID
	must[any](t)(operate[any](h, authoring.DraftTransitionPath, object{"draft_id": id, "from": []string{"draft"}, "to": "in_review",
		"operation_id": "o"}))
	for body, want := range map[string]bool{"Dear reader": true, "Dear reader, again": false} {
		if got := h.warned("save_message_draft", with(draft(s, target(1)), "bodyTemplate", body))["draft.repeated"] != ""; got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// witness is a store whose evidence is the test's.
type witness struct {
	authoring.Store
	evidence func(yield func(int64, []byte))
}

func (w witness) Evidence(_ context.Context, _ authoring.Segment, _ []int64, yield func(int64, []byte)) error {
	w.evidence(yield)
	return nil
}

// namesake is a source that calls everybody Grace Hopper.
type namesake struct{ liar }

func (namesake) Check(_ context.Context, asked []authoring.Recipient) (map[int]authoring.Objection, error) {
	all := make(map[int]authoring.Objection, len(asked))
	for i := range asked {
		all[i] = authoring.Objection{Names: []string{"Grace Hopper"}}
	}
	return all, nil
}

// TestNamesAreComparedUntilTheDeadline: who has given up has no targets' names compared any more, with as many names as are compared.
func TestNamesAreComparedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{}`))
	ctx, cancel := context.WithCancel(agent(t.Context()))
	var left time.Time
	svc := authoring.New(authoring.Config{Source: namesake{}, Store: witness{h.store, func(yield func(int64, []byte)) {
		for i := range 50 {
			yield(1, fmt.Appendf(nil, `{"brand_name":"%c%c %s"}`, 'a'+i%5, 'a'+i/5, strings.Repeat("Ab ", 65)))
		}
		cancel()
		left = time.Now()
	}}})
	targets := make([]any, 10_000)
	for i := range targets {
		targets[i] = target(1, object{"toName": "Zoe Quux"})
	}
	for _, x := range authoring.Tools(svc) {
		if x.Spec.Name != "save_message_draft" {
			continue
		}
		call := &tool.Call{Tool: x.Spec.Name, Input: []byte(text(draft(s, targets...))), IdempotencyKey: newKey()}
		_, err := x.Endpoint(ctx, call)
		if took := time.Since(left); !errors.Is(err, context.Canceled) || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
	}
}
