package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// contact is somebody at a partner, as search_brands answers.
type contact struct {
	Brand   json.RawMessage
	Partner int64
	Email   string
	Name    string
}

// contacts asks for partners with a verified contact that a draft may be for, each contact once.
func (s *suite) contacts(t testing.TB, n int) []contact {
	t.Helper()
	r := s.call("search_brands", `{"hasVerifiedContact":true,"limit":200}`)
	var found struct{ Brands []json.RawMessage }
	if err := json.Unmarshal(r.Data, &found); err != nil {
		t.Fatalf("search_brands: %v: %s", err, r.raw)
	}
	// A contact may be a member of the marketplace too; then nobody writes to them.
	var members struct{ Rows [][]string }
	s.must(
		t,
		"execute_read_sql",
		map[string]any{"sql": "SELECT a.email FROM partner_admin a JOIN member m ON m.email = a.email", "limit": 1000},
		&members,
	)
	known := map[string]bool{}
	for _, row := range members.Rows {
		known[row[0]] = true
	}
	var list []contact
	for _, raw := range found.Brands {
		var b struct {
			PartnerID int64 `json:"partner_id"`
			Contact   struct{ Name, Email string }
		}
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("search_brands: %v: %s", err, raw)
		}
		if !known[b.Contact.Email] && len(list) < n {
			known[b.Contact.Email] = true
			list = append(list, contact{raw, b.PartnerID, b.Contact.Email, b.Contact.Name})
		}
	}
	if len(list) < n {
		t.Fatalf("the sample has only %d partners with a verified contact, not %d", len(list), n)
	}
	return list
}

// draftOptions is what a test wants of a draft; the rest is made up.
type draftOptions struct {
	name, createdBy string
	subject, body   string
	senderName      string
	// targets is how many there are: contacts of the sample, or of nobody where madeUp.
	targets int
	// each changes a target before it is sent.
	each func(i int, target map[string]any)
	// snapshot is the evidence of each target; the brand's row by default.
	snapshot json.RawMessage
	// madeUp recipients need HUB_DRAFT_RECIPIENTS=not_b2c.
	madeUp bool
}

// draft makes a segment and a draft by the tools, as an agent does, and returns its id.
func (s *suite) draft(t testing.TB, o draftOptions) string {
	t.Helper()
	var list []contact
	if o.madeUp {
		for i := range o.targets {
			list = append(
				list,
				contact{
					json.RawMessage(`{"note":"made up"}`),
					int64(i + 1),
					fmt.Sprintf("person%03d@company.example", i),
					fmt.Sprintf("Person %d", i),
				},
			)
		}
	} else {
		list = s.contacts(t, o.targets)
	}
	fill := func(text *string, otherwise string) {
		if *text == "" {
			*text = otherwise
		}
	}
	fill(&o.name, "Spring offer")
	fill(&o.subject, "An offer for {{toName}}")
	fill(&o.body, `<p>Dear {{toName}},</p><p>we have read your page. <a href="https://hub.example/offer">See the offer</a>.</p>`)
	fill(&o.createdBy, "campaign agent")
	serial := s.drafts.Add(1)
	evidence, targets := []map[string]any{}, []map[string]any{}
	partners := map[int64]bool{}
	for i, c := range list {
		if !partners[c.Partner] {
			partners[c.Partner] = true
			snapshot := o.snapshot
			if snapshot == nil {
				snapshot = c.Brand
			}
			evidence = append(evidence, map[string]any{"externalId": c.Partner, "snapshot": snapshot})
		}
		target := map[string]any{
			"externalId": c.Partner,
			"toEmail":    c.Email,
			"toName":     c.Name,
			"context":    map[string]any{"why": "It sells what we like."},
		}
		if o.each != nil {
			o.each(i, target)
		}
		if context, is := target["context"].(map[string]any); is && serial > 1 { // another text than that of a draft before
			context["serial"] = serial
		}
		targets = append(targets, target)
	}
	var segment struct {
		ID string `json:"segment_id"`
	}
	s.must(t, "create_segment", map[string]any{"name": "Partners of " + o.name, "kind": "partner", "targets": evidence}, &segment)
	var draft struct {
		ID string `json:"draft_id"`
	}
	input := map[string]any{
		"segmentId":       segment.ID,
		"name":            o.name,
		"subjectTemplate": o.subject,
		"bodyTemplate":    o.body,
		"createdBy":       o.createdBy,
		"targets":         targets,
	}
	if o.senderName != "" {
		input["senderName"] = o.senderName
	}
	s.must(t, "save_message_draft", input, &draft)
	return draft.ID
}

// queued hands a draft over to people, and returns its id.
func (s *suite) queued(t testing.TB, id string) string {
	t.Helper()
	s.must(t, "queue_for_review", map[string]any{"draftId": id, "actor": "campaign agent"}, nil)
	return id
}

// must calls a tool that has to succeed.
func (s *suite) must(t testing.TB, tool string, input any, into any) reply {
	t.Helper()
	r := s.call(tool, input, "Idempotency-Key", fmt.Sprint(tool, " ", s.calls.Add(1)))
	if !r.OK {
		t.Fatalf("%s: %s", tool, r.raw)
	}
	if into != nil {
		if err := json.Unmarshal(r.Data, into); err != nil {
			t.Fatalf("%s: %v: %s", tool, err, r.raw)
		}
	}
	return r
}

// listed is a draft as list_drafts tells it.
type listed struct {
	ID, Name, Status string
	TargetCount      int
	Decisions        struct{ Pending, Approved, Rejected int }
	Delivery         struct{ Sent, Failed, Suppressed, Unknown int }
}

func (s *suite) listed(t testing.TB, id string) listed {
	t.Helper()
	var all struct{ Drafts []listed }
	s.must(t, "list_drafts", map[string]any{"limit": 100}, &all)
	for _, d := range all.Drafts {
		if d.ID == id {
			return d
		}
	}
	t.Fatalf("list_drafts does not have %s", id)
	return listed{}
}
