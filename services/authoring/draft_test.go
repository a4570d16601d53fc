package authoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/services/authoring"
)

func TestDraftIsSaved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{"name":"one"}`), member(2, `{}`))
	body := draft(
		s,
		target(1, object{"context": json.RawMessage(`{"a":1}`)}),
		target(2, object{"subject": "Own", "body": "", "toName": ""}),
	)
	body["senderName"], body["senderEmail"], body["createdBy"] = "Hub", "hub@hub.example", "agent"
	a, err := h.send(agent(t.Context()), "save_message_draft", "k", text(body))
	if err != nil || a.count != 2 ||
		a.data != `{"draft_id":"1","id":"1","status":"draft","segmentId":"1","targetCount":2,"createdAt":"2026-01-15T09:00:00.000Z",`+
			`"removed":[],`+
			`"preview":{"toEmail":"c1@partner.example","subject":"Hello","text":"Dear reader","html":false,"truncated":false}}` {
		t.Fatalf("%+v, %v\n%s", a, err, h.logs)
	}
	if calls, targets := h.query.asked(); calls != 1 || targets != 2 {
		t.Errorf("%d calls about %d targets", calls, targets)
	}
	if n := h.count(`SELECT count(*) FROM authoring.draft_targets WHERE draft_id = 1 AND external_id = position + 1`); n != 2 {
		t.Errorf("%d targets", n)
	}
	if n := h.count(
		`SELECT count(*) FROM audit.calls WHERE tool = 'save_message_draft' AND outcome = 'ok' AND count = 2 AND detail->>'draft_id' = '1'`,
	); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	a, err = h.send(agent(t.Context()), "list_drafts", "", `{}`)
	want := `{"drafts":[{"id":"1","draft_id":"1","name":"win back","status":"draft","segmentId":"1","segmentName":"quiet ` +
		`brands","segmentKind":"partner","targetCount":2,` +
		`"decisions":{"pending":0,"approved":0,"rejected":0},"delivery":{"sent":0,"failed":0,"suppressed":0,"unknown":0},` +
		`"rejections":{},"rejected":[],"rejected_more":0,` +
		`"createdBy":"agent",` +
		`"createdAt":"2026-01-15T09:00:00.000Z","queuedAt":null,"review_url":"https://hub.example/drafts/1"}]}`
	if err != nil || a.data != want || a.count != 1 {
		t.Errorf("%s, %v", a.data, err)
	}
}

// TestWhatRecipientsWillNotGet is told to whoever saves a draft, and stored all the same.
func TestWhatRecipientsWillNotGet(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf(member(1, `{"name":"one"}`))
	removed := func(body object) string {
		t.Helper()
		a, err := h.send(agent(t.Context()), "save_message_draft", newKey(), text(body))
		if err != nil {
			t.Fatal(err)
		}
		var saved struct {
			Removed []struct {
				What    string
				Count   int
				Example string
			}
		}
		if err := json.Unmarshal([]byte(a.data), &saved); err != nil || saved.Removed == nil {
			t.Fatalf("%v in %s", err, a.data)
		}
		return fmt.Sprint(saved.Removed)
	}
	hidden := draft(s, target(1, object{"context": object{"link": "https://hub.example/x", "script": "javascript:alert(1)"}}), target(2))
	hidden["subjectTemplate"] = "He\u200bllo"
	hidden["bodyTemplate"] = `<style>.x{}</style><p class=x style="display:none;color:#333">Hello</p><p hidden>you</p>`
	if got, want := removed(
		hidden,
	), "[{invisible character U+200B (zero-width space) in the subject 2 He[U+200B]llo} {<style> 2 <style>.x{}} {style display 2 "+
		"display:none} {attribute hidden 2 hidden=\"\"}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p, err := operate[authoring.DraftTargetsResponse](
		h,
		authoring.DraftTargetsPath,
		object{"draft_id": "1"},
	); err != nil ||
		p.Targets[0].Body != hidden["bodyTemplate"] {
		t.Errorf("what is stored is %+v, %v", p, err)
	}
	// Values count as they are put in.
	values := draft(s, target(1, object{"context": object{"link": "https://hub.example/x", "bad": "javascript:alert(1)"}}))
	values["bodyTemplate"] = `<a href="{{context.link}}">a</a><a href="{{context.bad}}">b</a>`
	if got, want := removed(values), `[{link 1 <a href="javascript:alert(1)">b}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// And so do the targets' own texts.
	own := draft(
		s,
		target(1, object{"body": "<p onclick=x>a</p>"}),
		target(2, object{"body": "plain <script>text</script>"}),
		target(3, object{"body": "<p onclick=y>b</p>", "subject": "c\u2060d"}),
	)
	if got, want := removed(
		own,
	), `[{attribute onclick 2 onclick="x"} {invisible character U+2060 (word joiner) in the subject 1 c[U+2060]d}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := removed(draft(s, target(1))); got != "[]" {
		t.Errorf("%s", got)
	}
	// Values of any target may be what is taken out, and a value that a link can have is not.
	later := draft(s, target(1, object{"context": object{"brand": "Copper", "link": "https://hub.example"}}),
		target(2, object{"context": object{"brand": "O'달빛마루", "link": "javascript:alert(2)"}}),
		target(3, object{"context": object{"brand": "'; DROP {TABLE}", "link": "javascript:alert(3)"}, "subject": "Own"}),
		target(4, object{"context": object{"brand": "L'Oréal & \"Co\"", "link": ""}, "body": "<p>own</p>"}))
	later["bodyTemplate"] = `<a href="https://hub.example/apply?brand={{context.brand}}&amp;src=mail">a</a><a href="{{context.link}}">b</a>`
	if got, want := removed(later), `[{link 2 <a href="javascript:alert(2)">b}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	second := object{"draft_id": "5", "ids": []int{1}}
	if p, err := operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath, second); err != nil ||
		!strings.HasPrefix(p.Targets[0].Body, `<a href="https://hub.example/apply?brand=O%27달빛마루&amp;src=mail">`) {
		t.Errorf("%+v, %v", p, err)
	}
	// Mails with usual values lose what any of these does.
	usual := draft(s, target(1), target(2), target(3, object{"toName": "김\u200b민지"}), target(4), target(5))
	usual["bodyTemplate"] = `<p onclick=x>{{toName}} <a href="https://hub.example/?to={{toName}}">a</a></p>`
	if got, want := removed(usual), `[{attribute onclick 5 onclick="x"} {invisible character U+200B (zero-width space) 1 `+
		`김[U+200B]민지} {link 1 <a href="https://hub.example/?to=김[U+200B]민지">a}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// What is said of texts is said of those, too, whose mails are behind the bound of what is rendered.
	many := []any{}
	for i := range 4 {
		many = append(many, target(i+1, object{"context": object{"link": "javascript:alert(4)", "brand": strings.Repeat("x", 1<<19)}}))
	}
	many = append(many, target(5, object{"context": object{"link": "javascript:alert(5)", "brand": "x"}, "body": "<p onclick=x>a</p>"}))
	later = draft(s, many...)
	later["bodyTemplate"] = `<p>{{context.brand}}</p><a href="{{context.link}}">b</a>`
	if got, want := removed(later), `[{link 3 <a href="javascript:alert(4)">b} {attribute onclick 1 onclick="x"}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDraftNeedsItsSegment(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, id := range []string{"1", "0", "-1", "", "x", "01", "1.0", " 1", "9223372036854775807", "9223372036854775808", "\x00",
		strings.Repeat("9", 5000)} {
		h.refused("save_message_draft", draft(id, target(1)), fault.NotFound)
	}
	if calls, _ := h.query.asked(); calls != 0 {
		t.Errorf("the source was asked %d times", calls)
	}
}

// injections are texts that would begin another header, end one, or hide what it says.
var injections = []string{
	"a\r\nBcc: everybody@evil.example",
	"a\nBcc: x@evil.example",
	"a\rb",
	"\r\n\r\n<script>",
	"a\x00b",
	"a\x0bb",
	"a\x0cb",
	"a\x1b[31m",
	"a\x7f",
	"a\u0085b",
	"a\u009fb",
	"a\u2028b",
	"a\u2029b",
	"a\tb",
	"\u202etxt.exe",
	"\u2066x\u2069",
}

// TestHeaderInjection tries each text in each field that becomes a part of a header.
func TestHeaderInjection(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	for _, bad := range injections {
		for path, body := range map[string]object{
			"/name": with(draft(s, target(1)), "name", bad), "/createdBy": with(draft(s, target(1)), "createdBy", bad),
			"/subjectTemplate": with(draft(s, target(1)), "subjectTemplate", bad), "/senderName": with(draft(s, target(1)), "senderName", bad),
			"/targets/1/toName":  draft(s, target(1), target(2, object{"toName": bad})),
			"/targets/0/subject": draft(s, target(1, object{"subject": bad})),
			"/targets/0":         with(draft(s, target(1, object{"context": object{"k": bad}})), "subjectTemplate", "S {{context.k}}"),
		} {
			d := read(t, h.refused("save_message_draft", body, fault.Validation))
			if len(d.Violations) == 0 || d.Violations[0].Rule != "controlCharacters" || d.Violations[0].Path != path {
				t.Errorf("%s %q: %+v", path, bad, d.Violations)
			}
		}
	}
	for _, bad := range []string{"a@b.example\r\nBcc: x@evil.example", "Bob <a@b.example>", "a@b.example,c@d.example", "a@b",
		"a@[127.0.0.1]", "a b@c.example", "a@b.example ", "", "a@b..example", "é@b.example", "\"a\"@b.example", "a@b.example\x00",
		"(c)a@b.example"} {
		for path, body := range map[string]object{"/senderEmail": with(draft(s, target(1)), "senderEmail", bad),
			"/targets/0/toEmail": draft(s, target(1, object{"toEmail": bad}))} {
			d := read(t, h.refused("save_message_draft", body, fault.Validation))
			if len(d.Violations) != 1 || d.Violations[0].Rule != "format" || d.Violations[0].Path != path {
				t.Errorf("%s %q: %+v", path, bad, d.Violations)
			}
		}
	}
	// Every violation is listed, up to 50.
	many := make([]any, 80)
	for i := range many {
		many[i] = target(i, object{"toName": "a\nb"})
	}
	body := with(with(draft(s, many...), "senderName", "\r"), "name", "\n")
	f := h.refused("save_message_draft", body, fault.Validation)
	if d := read(t, f); len(d.Violations) != 50 || !strings.Contains(f.Message, "81 more") {
		t.Errorf("%d violations, %s", len(d.Violations), f.Message)
	}
	if n := h.count(`SELECT count(*) FROM authoring.drafts`); n != 0 {
		t.Errorf("%d drafts", n)
	}
}

func with(o object, name string, value any) object {
	o[name] = value
	return o
}

func TestBodiesAreText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	ok[saved](h, "save_message_draft", with(draft(s, target(1, object{"body": "own\r\n\ttext"})), "bodyTemplate", "a\nb\tc\r\n\u202eé"))
	for path, body := range map[string]object{
		"/bodyTemplate":   with(draft(s, target(1)), "bodyTemplate", "a\x00b"),
		"/targets/0/body": draft(s, target(1, object{"body": "a\x1bb"})),
		"/targets/0":      with(draft(s, target(1, object{"context": object{"k": "\x00"}})), "bodyTemplate", "{{context.k}}"),
	} {
		if d := read(
			t,
			h.refused("save_message_draft", body, fault.Validation),
		); len(d.Violations) != 1 || d.Violations[0].Path != path ||
			d.Violations[0].Rule != "controlCharacters" {
			t.Errorf("%s: %+v", path, d.Violations)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	page := func(id string) authoring.TargetView {
		p, err := operate[authoring.DraftTargetsResponse](h, authoring.DraftTargetsPath, object{"draft_id": id})
		if err != nil || len(p.Targets) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		return p.Targets[0]
	}
	context := json.RawMessage(
		`{"a":"A&B <i>","n":1.50,"big":9007199254740993,"yes":true,"empty":"","null":null,"list":[1],"obj":{},"a.b":"dotted","한":"글",` +
			`"brace":"{{toName}}","amps":"` + strings.Repeat(
			"&",
			20,
		) + `"}`,
	)
	for name, c := range map[string]struct {
		subject, body         string
		own                   object
		wantSubject, wantBody string
		html                  bool
	}{
		"each":                {"{{toName}} {{toEmail}} {{context.a}}", "x", nil, "Contact 1 c1@partner.example A&B <i>", "x", false},
		"numbers as written":  {"s", "{{context.n}} {{context.big}} {{context.yes}}", nil, "s", "1.50 9007199254740993 true", false},
		"keys of any kind":    {"{{context.a.b}}", "{{context.한}}", nil, "dotted", "글", false},
		"an empty value":      {"s{{context.empty}}", "b", nil, "s", "b", false},
		"not twice":           {"{{context.brace}}", "b", nil, "{{toName}}", "b", false},
		"text is not escaped": {"s", "{{context.a}}", nil, "s", "A&B <i>", false},
		"html is":             {"{{context.a}}", "<p>{{context.a}}</p>", nil, "A&B <i>", "<p>A&amp;B &lt;i&gt;</p>", true},
		"a value is no html":  {"s", "a < b {{context.a}}", nil, "s", "a < b A&B <i>", false},
		"lone braces":         {"s }} {", "@media{a{b:c}}", nil, "s }} {", "@media{a{b:c}}", false},
		"no subject is html":  {"<b>{{context.a}}</b>", "b", nil, "<b>A&B <i></b>", "b", false},
		"nor is an own one":   {"s", "b", object{"subject": "<b>{{context.a}}</b>"}, "<b>A&B <i></b>", "b", false},
		"the longest subject": {"<b>" + strings.Repeat("é", 975) + "{{context.amps}}", "b", nil, "<b>" + strings.Repeat("é", 975) +
			strings.Repeat("&", 20), "b", false},
		"own subject":          {"{{context.missing}}", "b", object{"subject": "Own {{toName}}"}, "Own Contact 1", "b", false},
		"own body":             {"s", "<p>{{context.missing}}</p>", object{"body": "plain {{context.a}}"}, "s", "plain A&B <i>", false},
		"empty overrides none": {"s", "b", object{"subject": "", "body": ""}, "s", "b", false},
		"twice":                {"{{toName}}{{toName}}", "b", nil, "Contact 1Contact 1", "b", false},
	} {
		body := with(with(draft(s, target(1, object{"context": context}, c.own)), "subjectTemplate", c.subject), "bodyTemplate", c.body)
		got := page(ok[saved](h, "save_message_draft", body).DraftID)
		if got.Subject != c.wantSubject || got.Body != c.wantBody || got.HTML != c.html {
			t.Errorf("%s: %q, %q, html %t", name, got.Subject, got.Body, got.HTML)
		}
	}
	for name, c := range map[string]struct {
		subject, body string
		own           object
		path, what    string
	}{
		"no name":          {"{{toName}}", "b", object{"toName": nil}, "/targets/1", "{{toName}}"},
		"an empty name":    {"s", "{{toName}}", object{"toName": ""}, "/targets/1", "{{toName}}"},
		"no key":           {"s", "{{context.x}}", nil, "/targets/1", "{{context.x}}"},
		"null":             {"s", "{{context.null}}", nil, "/targets/1", "{{context.null}}"},
		"a list":           {"s", "{{context.list}}", nil, "/targets/1", "list"},
		"an object":        {"s", "{{context.obj}}", nil, "/targets/1", "object"},
		"no context":       {"s", "{{context.a}}", object{"context": nil}, "/targets/1", "{{context.a}}"},
		"case":             {"{{toname}}", "b", nil, "/subjectTemplate", "{{toname}}"},
		"blanks":           {"s", "{{ toName }}", nil, "/bodyTemplate", "without blanks"},
		"a line break":     {"s", "{{context.a\nb}}", nil, "/bodyTemplate", "without blanks"},
		"unknown":          {"s", "{{password}}", nil, "/bodyTemplate", "{{password}}"},
		"no such member":   {"s", "{{context}}", nil, "/bodyTemplate", "{{context}}"},
		"no key at all":    {"s", "{{context.}}", nil, "/bodyTemplate", "{{context.}}"},
		"open":             {"s", "a {{toName", nil, "/bodyTemplate", "without }}"},
		"empty":            {"s {{}}", "b", nil, "/subjectTemplate", "{{}}"},
		"nested":           {"s", "{{context.{{toName}}}}", nil, "/bodyTemplate", "{{context.{{toName}}"},
		"three":            {"s", "{{{toName}}}", nil, "/bodyTemplate", "{{{toName}}"},
		"in an own body":   {"s", "b", object{"body": "{{x}}"}, "/targets/1/body", "{{x}}"},
		"in an own title":  {"s", "b", object{"subject": "{{"}, "/targets/1/subject", "without }}"},
		"a blank subject":  {"{{context.empty}} ", "b", nil, "/targets/1", "visible"},
		"an unseen one":    {"\u200b{{context.empty}}\ufeff", "b", nil, "/targets/1", "visible"},
		"a longer subject": {"{{context.long}}", "b", nil, "/targets/1", "998"},
	} {
		// Target 0 has a value for everything: the other one is at fault.
		all := json.RawMessage(`{"a":"A","x":"X","null":"N","list":"L","obj":"O","empty":"E","long":"l"}`)
		broken := json.RawMessage(`{"a":"A","null":null,"list":[1],"obj":{"a":1},"empty":"","long":"` + strings.Repeat("가", 999) + `"}`)
		body := with(
			with(draft(s, target(1, object{"context": all}), target(2, object{"context": broken}, c.own)), "subjectTemplate", c.subject),
			"bodyTemplate",
			c.body,
		)
		d := read(t, h.refused("save_message_draft", body, fault.Validation))
		if len(d.Violations) != 1 || d.Violations[0].Path != c.path || !strings.Contains(d.Violations[0].Message, c.what) {
			t.Errorf("%s: %+v", name, d.Violations)
		}
	}
	// A short template must not become terabytes.
	big := with(
		draft(s, target(1, object{"context": object{"k": strings.Repeat("x", 100_000)}})),
		"bodyTemplate",
		strings.Repeat("{{context.k}}", 100),
	)
	if d := read(t, h.refused("save_message_draft", big, fault.Validation)); len(d.Violations) != 1 || d.Violations[0].Rule != "maxBytes" {
		t.Errorf("%+v", d.Violations)
	}
}

func TestRecipients(t *testing.T) {
	t.Parallel()
	reasons := map[string][]string{
		"c1@partner.example": {
			"not_a_verified_contact",
		},
		"c3@partner.example": {"unknown_partner"},
		"c4@partner.example": {"b2c_member", "not_a_verified_contact"},
	}
	strict, loose := newHouse(t), newHouse(t, policy(authoring.NotB2C))
	for _, h := range []*house{strict, loose} {
		h.query.say(nil, reasons)
	}
	targets := []any{target(0), target(1), target(2), target(3), target(4)}
	d := read(t, strict.refused("save_message_draft", draft(strict.segmentOf(), targets...), fault.Validation))
	if got := fmt.Sprint(
		d.Targets,
	); got != "[{1 1 c1@partner.example not_a_verified_contact <nil>} {3 3 c3@partner.example unknown_partner <nil>} {4 4 "+
		"c4@partner.example b2c_member <nil>}]" {
		t.Error(got)
	}
	if len(d.Violations) != 3 || d.Violations[0].Path != "/targets/1/toEmail" || d.Violations[0].Rule != "not_a_verified_contact" ||
		d.Violations[1].Path != "/targets/3/externalId" {
		t.Errorf("%+v", d.Violations)
	}
	d = read(t, loose.refused("save_message_draft", draft(loose.segmentOf(), targets...), fault.Validation))
	if got := fmt.Sprint(d.Targets); got != "[{4 4 c4@partner.example b2c_member <nil>}]" || len(d.Violations) != 1 {
		t.Error(got)
	}
	ok[saved](loose, "save_message_draft", draft("1", targets[:4]...))
	for _, h := range []*house{strict, loose} {
		if got, want := h.count(`SELECT count(*) FROM authoring.drafts`), map[*house]int{strict: 0, loose: 1}[h]; got != want {
			t.Errorf("%d drafts, want %d", got, want)
		}
	}
}

// TestEachOffenderIsNamed refuses a whole draft of 10,000: more than a megabyte of reasons.
func TestEachOffenderIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	reasons := map[string][]string{}
	targets := make([]any, authoring.MaxDraftTargets)
	for i := range targets {
		email := fmt.Sprintf("%s.%d@a-rather-long-name-of-a-company-%d.example", strings.Repeat("x", 40), i, i)
		reasons[email] = []string{"not_a_verified_contact"}
		targets[i] = target(i, object{"toEmail": email})
	}
	h.query.say(nil, reasons)
	f := h.refused("save_message_draft", draft(s, targets...), fault.Validation)
	d := read(t, f)
	if len(d.Targets) != len(targets) || len(d.Violations) != 50 || d.Targets[9999].Index != 9999 {
		t.Errorf("%d targets, %d violations", len(d.Targets), len(d.Violations))
	}
	if !strings.Contains(f.Message, "10000 of 10000") {
		t.Error(f.Message)
	}
}

func TestQueryAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	for code, down := range map[fault.Code]error{
		fault.DB: fault.New(fault.DB, "The source database is not available."), fault.DBTimeout: fault.New(fault.DBTimeout, "Too slow."),
		fault.Internal: fmt.Errorf("broken"),
	} {
		h.query.say(down, nil)
		_, err := h.send(agent(t.Context()), "save_message_draft", "k", text(draft(s, target(1))))
		if !fault.Is(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if n := h.count(
		`SELECT count(*) FROM authoring.drafts`,
	) + h.count(
		`SELECT count(*) FROM authoring.idempotency_keys WHERE tool = 'save_message_draft'`,
	); n != 0 {
		t.Errorf("%d rows", n)
	}
	// The key is free, and once the draft is saved its replay needs neither query nor contact.
	h.query.say(nil, nil)
	first, err := h.send(agent(t.Context()), "save_message_draft", "k", text(draft(s, target(1))))
	if err != nil || first.replayed {
		t.Fatal(first, err)
	}
	h.query.say(fault.New(fault.DB, "Away."), map[string][]string{"c1@partner.example": {"b2c_member"}})
	again, err := h.send(agent(t.Context()), "save_message_draft", "k", text(draft(s, target(1))))
	if err != nil || !again.replayed || again.data != first.data || again.count != 1 {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestTargetsMayShareAnAddress: each is a mail of its own, whoever its recipient is.
func TestTargetsMayShareAnAddress(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	got := ok[saved](
		h,
		"save_message_draft",
		draft(
			h.segmentOf(),
			target(1),
			target(1, object{"toEmail": "other@partner.example"}),
			target(1, object{"toEmail": "C1@Partner.example"}),
		),
	)
	if got.TargetCount != 3 {
		t.Errorf("%+v", got)
	}
}

func TestListDrafts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	for i := range 23 {
		id := h.draftOf(s, 1)
		if i%2 == 0 {
			must[any](
				t,
			)(
				operate[any](
					h,
					authoring.DraftTransitionPath,
					object{"draft_id": id, "from": []string{"draft"}, "to": "cancelled", "operation_id": id},
				),
			)
		}
		h.clock.Advance(time.Second)
	}
	list := func(input string) string {
		a, err := h.send(agent(t.Context()), "list_drafts", "", input)
		if err != nil {
			t.Fatal(err)
		}
		var l struct {
			Drafts []struct{ ID, Status string }
		}
		if err := json.Unmarshal([]byte(a.data), &l); err != nil || a.count != len(l.Drafts) {
			t.Fatalf("%v in %s", err, a.data)
		}
		return fmt.Sprintln(len(l.Drafts), l.Drafts)
	}
	if got := list(`{}`); !strings.HasPrefix(got, "20 [{23 cancelled} {22 draft}") {
		t.Error(got)
	}
	if got := list(
		`{"status":"draft","limit":3}`,
	) + list(
		`{"status":"sent"}`,
	) + list(`{"status":"cancelled","limit":100}`)[:14]; got != "3 [{22 draft} {20 draft} {18 draft}]\n0 []\n12 [{23 cancel" {
		t.Error(got)
	}
	if got := list(`{"limit":2,"offset":21}`) + list(`{"limit":2,"offset":2,"status":"draft"}`) +
		list(`{"draftId":"7"}`) + list(`{"draftId":8,"status":"draft"}`); got !=
		"2 [{2 draft} {1 cancelled}]\n2 [{18 draft} {16 draft}]\n1 [{7 cancelled}]\n1 [{8 draft}]\n" {
		t.Error(got)
	}
	for input, want := range map[string]string{
		`{"offset":23}`: `"offset"`, `{"offset":9000000000000000000}`: `"offset"`, `{"status":"draft","offset":11}`: `"offset"`,
		`{"draftId":"7","offset":1}`: `no draft has the id 7`, `{"draftId":"7","status":"sent"}`: `"draftId"`,
		`{"draftId":24}`: `"draftId"`, `{"draftId":"a"}`: `"draftId"`, `{"draftId":"0"}`: `"draftId"`, `{"draftId":-1}`: `"draftId"`,
		`{"status":"sent"}`: ``, `{"offset":22}`: ``,
	} {
		a, err := h.send(agent(t.Context()), "list_drafts", "", input)
		if err != nil || strings.Contains(a.data, `"warnings"`) != (want != "") || !strings.Contains(a.data, want) {
			t.Errorf("%s: %s, %v", input, a.data, err)
		}
	}
	h.refused("list_drafts", `{"draftId":""}`, fault.Validation)
}

// TestTextsThatGrow: what the templates become for a target is made no further than a mail may be long, however often they name a
// value of a megabyte, and is judged in time that grows with the input alone.
func TestTextsThatGrow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.segmentOf()
	large := object{"context": object{"a": strings.Repeat("x", 1<<20)}}
	often, distinct := strings.Repeat("{{context.a}}", 80_000), strings.Builder{}
	for i := range 200_000 {
		fmt.Fprintf(&distinct, "{{context.%07d}}", i)
	}
	for name, c := range map[string]struct {
		draft object
		want  string
	}{
		"a body":             {with(draft(s, target(1, large)), "bodyTemplate", often), "maxBytes"},
		"a subject":          {with(draft(s, target(1, large)), "subjectTemplate", often), "maxLength maxLength"},
		"values that lack":   {with(draft(s, target(1)), "bodyTemplate", distinct.String()), strings.Repeat(" placeholder", 50)[1:]},
		"a body of its own":  {draft(s, target(1, large, object{"body": often})), "maxBytes"},
		"a template unasked": {with(draft(s, target(1, large, object{"body": "own"})), "bodyTemplate", often), ""},
	} {
		ctx, cancel := context.WithTimeout(agent(t.Context()), 20*time.Second)
		_, err := h.send(ctx, "save_message_draft", newKey(), text(c.draft))
		cancel()
		got := ""
		if err != nil {
			got = fault.From(err).Error()
			var rules []string
			for _, v := range read(t, fault.From(err)).Violations {
				rules = append(rules, v.Rule)
			}
			if rules != nil {
				got = strings.Join(rules, " ")
			}
		}
		if got != c.want {
			t.Errorf("%s: %.200q, want %q", name, got, c.want)
		}
	}
}
