package authoring_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
)

// sloppyCall is a call as agents make it that know the catalog only, and the call that mends it as the answer says.
type sloppyCall struct{ name, tool, input, mend string }

func ofSegment(name, kind, targets, mendedKind, mended string) sloppyCall {
	in := func(kind, targets string) string {
		return `{"name": "Quiet", "kind": "` + kind + `", "targets": ` + targets + `}`
	}
	return sloppyCall{"segment-" + name, "create_segment", in(kind, targets), in(mendedKind, mended)}
}

const (
	hanbit = `{"externalId": 501, "snapshot": {"brand_id": 3001, "partner_id": 501}}`
	minji  = `{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지"}`
	junho  = `{"externalId": 501, "toEmail": "junho.lee@hanbit.example", "toName": "이준호"}`
	signed = `"senderName": "Hub", "senderEmail": "hub@hub.example"`
)

// ofDraft has the members of a draft that a case is about; others are as they should be.
func ofDraft(name string, sloppy, mend object) sloppyCall {
	in := func(change object) string {
		body := object{"segmentId": "1", "name": "Win back", "subjectTemplate": "Hello {{toName}}", "bodyTemplate": "Your next campaign",
			"senderName": "Hub", "senderEmail": "hub@hub.example", "targets": json.RawMessage("[" + minji + "]")}
		for member, value := range change {
			if raw, isRaw := value.(string); isRaw {
				body[member] = json.RawMessage(raw)
			} else {
				delete(body, member)
			}
		}
		return text(body)
	}
	if mend == nil {
		return sloppyCall{"draft-" + name, "save_message_draft", in(sloppy), ""}
	}
	return sloppyCall{"draft-" + name, "save_message_draft", in(sloppy), in(mend)}
}

// Lists come first: what they answer is what was there before.
var sloppy = []sloppyCall{
	{"list-segments-in-the-plural", "list_segments", `{"kind": "partners"}`, `{"kind": "partner"}`},
	{"list-segments-by-type", "list_segments", `{"type": "brand"}`, `{}`},
	{"list-segments-with-a-page", "list_segments", `{"limit": 1000, "offset": 0}`, `{"limit": 100}`},
	{"list-segments-wrapped", "list_segments", `{"arguments": {"limit": 1}}`, `{"limit": 1}`},
	{"list-drafts-that-wait", "list_drafts", `{"status": "queued"}`, `{"status": "in_review"}`},
	{"list-drafts-in-capitals", "list_drafts", `{"status": "DRAFT"}`, ``},
	{"list-drafts-of-one", "list_drafts", `{"draftId": 1}`, ``},
	{"list-drafts-limit-in-quotes", "list_drafts", `{"limit": "5"}`, ``},
	{"list-drafts", "list_drafts", `{}`, ``},

	ofSegment("snake-case", "partner", `[{"external_id": 501, "snapshot": {}}]`, "partner", `[{"externalId": 501, "snapshot": {}}]`),
	ofSegment("kind-in-the-plural", "brands", `[]`, "brand", `[{"externalId": 3001, "snapshot": {}}]`),
	{"segment-ids-in-quotes", "create_segment",
		`{"name": "Quiet", "kind": "PARTNER", "description": null, "targets": [{"externalId": "501", "snapshot": {}}]}`, ``},
	ofSegment("bare-ids", "partner", `[501, 502]`, "partner", `[{"externalId": 501, "snapshot": {}}, {"externalId": 502, "snapshot": {}}]`),
	ofSegment("one-without-a-list", "partner", hanbit, "partner", "["+hanbit+"]"),
	ofSegment("rows-as-they-are", "brand", `[{"brand_id": 3001, "partner_id": 501}]`, "brand",
		`[{"externalId": 3001, "snapshot": {"brand_id": 3001, "partner_id": 501}}]`),
	ofSegment("without-a-snapshot", "partner", `[{"externalId": 501}]`, "partner", `[{"externalId": 501, "snapshot": {}}]`),
	ofSegment("snapshot-as-text", "partner", `[{"externalId": 501, "snapshot": "{\"partner_id\": 501}"}]`, "partner",
		`[{"externalId": 501, "snapshot": {"partner_id": 501}}]`),
	ofSegment("twice", "partner", `[`+hanbit+`, {"externalId": 501.0, "snapshot": {}}]`, "partner", `[`+hanbit+`]`),
	ofSegment("empty", "partner", `[]`, "partner", `[`+hanbit+`]`),
	ofSegment(
		"brands-as-partners",
		"partner",
		`[{"externalId": 3001, "snapshot": {"brand_id": 3001, "partner_id": 501}}]`,
		"partner",
		`[`+hanbit+`]`,
	),
	ofSegment("partners-as-brands", "brand", `[`+hanbit+`]`, "partner", `[`+hanbit+`]`),
	ofSegment(
		"campaigns-as-brands",
		"brand",
		`[{"externalId": 70001, "snapshot": {}}]`,
		"campaign",
		`[{"externalId": 70001, "snapshot": {}}]`,
	),
	ofSegment(
		"unknown",
		"partner",
		`[{"externalId": 0, "snapshot": {}}, `+hanbit+`, {"externalId": 9999, "snapshot": {}}]`,
		"partner",
		`[`+hanbit+`]`,
	),
	ofSegment(
		"rows-mixed-up",
		"partner",
		`[{"externalId": 501, "snapshot": {"partner_id": 502}}, {"externalId": 502, "snapshot": {"partnerId": "501"}}]`,
		"partner",
		`[{"externalId": 501, "snapshot": {"partner_id": 501}}, {"externalId": 502, "snapshot": {"partnerId": "502"}}]`,
	),
	ofSegment(
		"of-a-whole-profile",
		"brand",
		`[{"externalId": 3002, "snapshot": {"brand": {"brand_id": 3001}, "partner": {"partner_id": 501}}}]`,
		"brand",
		`[{"externalId": 3001, "snapshot": {"brand": {"brand_id": 3001}, "partner": {"partner_id": 501}}}]`,
	),
	{"segment-wrapped", "create_segment", `{"input": {"name": "Quiet", "kind": "partner", "targets": [` + hanbit + `]}}`,
		`{"name": "Quiet", "kind": "partner", "targets": [` + hanbit + `]}`},
	{"segment-of-segment-names", "create_segment", `{"segmentName": "Quiet", "kind": "partner", "targets": [` + hanbit + `]}`,
		`{"name": "Quiet", "kind": "partner", "targets": [` + hanbit + `]}`},

	ofDraft("snake-case", object{"segmentId": nil, "segment_id": `"1"`}, object{}),
	ofDraft("segment-as-a-number", object{"segmentId": `1`}, nil),
	ofDraft("segment-as-a-whole-number", object{"segmentId": `1.0`}, nil),
	ofDraft("segment-as-a-fraction", object{"segmentId": `1.5`}, object{}),
	ofDraft("segment-by-name", object{"segmentId": `"Beauty, quiet"`}, object{}),
	ofDraft("unknown-segment", object{"segmentId": `"99"`}, object{}),
	ofDraft("recipients-for-targets", object{"targets": nil, "recipients": `[` + minji + `]`}, object{}),
	ofDraft("no-targets", object{"targets": `[]`}, object{}),
	ofDraft("addresses-alone", object{"targets": `["minji.kim@hanbit.example"]`}, object{}),
	ofDraft(
		"target-in-snake-case",
		object{"targets": `[{"partner_id": 501, "to_email": "minji.kim@hanbit.example", "toName": "김민지"}]`},
		object{},
	),
	ofDraft(
		"address-with-a-name",
		object{"targets": `[{"externalId": 501, "toEmail": "김민지 <minji.kim@hanbit.example>", "toName": "김민지"}]`},
		object{},
	),
	ofDraft(
		"subject-and-body",
		object{"subjectTemplate": nil, "bodyTemplate": nil, "subject": `"Hello"`, "body": `"Your next campaign"`},
		object{},
	),
	ofDraft(
		"context-as-text",
		object{"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "context": "quiet"}]`},
		object{},
	),
	ofDraft(
		"brand-for-partner",
		object{"targets": `[{"externalId": 3001, "toEmail": "minji.kim@hanbit.example", "toName": "김민지"}]`},
		object{},
	),
	ofDraft(
		"campaign-for-partner",
		object{"targets": `[{"externalId": 70001, "toEmail": "minji.kim@hanbit.example", "toName": "김민지"}]`},
		object{},
	),
	ofDraft(
		"unknown-partner",
		object{"targets": `[{"externalId": 9999, "toEmail": "minji.kim@hanbit.example", "toName": "김민지"}]`},
		object{},
	),
	ofDraft("someone-else", object{"targets": `[{"externalId": 501, "toEmail": "info@hanbit.example", "toName": "김민지"}]`}, object{}),
	ofDraft("a-member", object{"targets": `[{"externalId": 501, "toEmail": "reviewer1@member.example", "toName": "김민지"}]`}, object{}),
	ofDraft("placeholder-with-blanks", object{"subjectTemplate": `"Hello {{ toName }}"`}, object{}),
	ofDraft("placeholder-unknown", object{"subjectTemplate": `"Hello {{name}}"`}, object{}),
	ofDraft(
		"placeholder-without-a-value",
		object{"bodyTemplate": `"{{context.brand}}"`},
		object{
			"bodyTemplate": `"{{context.brand}}"`,
			"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "context": {"brand": ` +
				`"한빛 글로우"}}]`,
		},
	),
	ofDraft("single-braces", object{"subjectTemplate": `"Hello {name}"`}, object{}),
	ofDraft("brackets", object{
		"subjectTemplate": `"Hello [Contact Name]"`,
		"bodyTemplate":    `"News of [Your Company] and ${brand}"`,
		"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "context": {"Your_Company": ` +
			`"Hub", "brand": "한빛 글로우"}}]`,
	},
		object{
			"bodyTemplate": `"News of {{context.Your_Company}} and {{context.brand}}"`,
			"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "context": {"Your_Company": ` +
				`"Hub", "brand": "한빛 글로우"}}]`,
		}),
	ofDraft("merge-tags", object{"bodyTemplate": `"<p>Dear *|FNAME|*</p>"`}, object{"bodyTemplate": `"<p>Dear {{toName}}</p>"`}),
	ofDraft("statements", object{"bodyTemplate": `"{% if vip %}Dear friend{% endif %}"`},
		object{"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "body": "Dear friend"}]`}),
	ofDraft(
		"an-own-text",
		object{
			"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "subject": "{{toName}} of %company%"}]`,
		},
		object{
			"targets": `[{"externalId": 501, "toEmail": "minji.kim@hanbit.example", "toName": "김민지", "subject": ` +
				`"{{toName}} of {{context.company}}", "context": {"company": "한빛"}}]`,
		},
	),
	ofDraft(
		"outside-the-segment",
		object{"targets": `[` + minji + `, {"externalId": 502, "toEmail": "hanako@sakura.example", "toName": "花子"}]`},
		object{},
	),
	ofDraft("an-empty-segment", object{"segmentId": `"2"`}, object{}),
	ofDraft("one-address-twice", object{"targets": `[` + minji + `, ` + minji + `]`}, object{"targets": `[` + minji + `, ` + junho + `]`}),
	ofDraft(
		"one-mailbox-twice",
		object{"targets": `[` + minji + `, {"externalId": 501, "toEmail": "Minji.Kim+Work@Hanbit.example", "toName": "김민지"}]`},
		object{},
	),
	ofDraft("no-sender", object{"senderName": nil, "senderEmail": nil}, object{}),
	ofDraft("a-sender-without-an-address", object{"senderEmail": nil}, object{}),
	ofDraft("sender-in-one", object{"senderEmail": `"Hub <hub@hub.example>"`}, object{}),
	ofDraft("two-lines-of-subject", object{"subjectTemplate": `"Hello\nyou"`}, object{"subjectTemplate": `"Hello you"`}),
}

// golden is what a sloppy call comes to.
type golden struct {
	Tool    string          `json:"tool"`
	Request json.RawMessage `json:"request"`
	Refused any             `json:"refused,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Mended  json.RawMessage `json:"mended,omitempty"`
}

// made are the ids of what a call has made, which depend on the calls before.
var made = regexp.MustCompile(`"(segment_id|draft_id|id)":"\d+"`)

// TestSloppyCalls: each golden file has an answer with its warnings, or the refusal, and the call that mends it as the
// message says, which passes without a warning.
func TestSloppyCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.query.known = map[string][]int64{"partner": {501, 502}, "brand": {3001, 3002, 3003}, "campaign": {70001}}
	h.query.contacts = map[string]int64{
		"minji.kim@hanbit.example":      501,
		"minji.kim+work@hanbit.example": 501,
		"junho.lee@hanbit.example":      501,
		"hanako@sakura.example":         502,
	}
	h.query.owners = map[string]map[int64]int64{"brand": {3001: 501, 3002: 501, 3003: 502}, "campaign": {70001: 501}}
	ok[any](h, "create_segment", `{"name": "Beauty, quiet", "kind": "partner", "targets": [`+hanbit+`]}`)
	ok[any](h, "create_segment", `{"name": "Nobody", "kind": "partner", "targets": []}`)
	ok[any](
		h,
		"save_message_draft",
		`{"segmentId": "1", "name": "Win back", "subjectTemplate": "Hello", "bodyTemplate": "Hello", "targets": [`+minji+`], `+signed+`}`,
	)
	forget := func() { // the call was never sent before
		t.Helper()
		if _, err := h.super.Exec(t.Context(), `DELETE FROM authoring.idempotency_keys`); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range sloppy {
		t.Run(c.name, func(t *testing.T) {
			forget()
			g := golden{Tool: c.tool, Request: json.RawMessage(c.input), Mended: json.RawMessage(c.mend)}
			a, err := h.send(agent(t.Context()), c.tool, newKey(), c.input)
			if err == nil {
				g.Answer = json.RawMessage(a.data)
				if !strings.HasPrefix(c.tool, "list_") {
					g.Answer = json.RawMessage(made.ReplaceAllString(a.data, `"$1":"N"`))
				}
				if strings.Contains(a.data, `"warnings":`) == (c.mend == "") {
					t.Errorf("%s %s: %s", c.tool, c.input, a.data)
				}
			} else {
				f := fault.From(err)
				g.Refused = map[string]any{"code": f.Code, "message": f.Message, "details": f.Details}
			}
			if c.mend != "" {
				forget()
				mended, err := h.send(agent(t.Context()), c.tool, newKey(), c.mend)
				if err != nil || strings.Contains(mended.data, `"warnings":`) {
					t.Errorf("what mends it: %s, %v", mended.data, err)
				}
			}
			holdGolden(t, filepath.Join("testdata", "sloppy", c.name+".json"), g)
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "sloppy", "*.json"))
	if err != nil || len(files) != len(sloppy) {
		t.Errorf("%d files for %d calls (%v)", len(files), len(sloppy), err)
	}
}

func holdGolden(t *testing.T, path string, g golden) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text(g)), "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %s\nwant %s\n(%v; go test -run TestSloppyCalls -update writes it)", b.Bytes(), want, err)
	}
}
