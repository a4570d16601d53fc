package reviewcontrol_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/services/review-control/suppression"
)

func TestSuppressions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := signedIn(t.Context(), ada)
	for i, email := range []string{"Bo@One.example", "al@one.example", "bob@two.example", "b_b@two.example", "zoe@one.example",
		"b%@two.example"} {
		added, err := h.suppressed.Add(ctx, ada.Email, " "+email+" ", fmt.Sprint("reason ", i))
		if err != nil || !added {
			t.Errorf("%s: %v, %v", email, added, err)
		}
	}
	if added, err := h.suppressed.Add(ctx, ben.Email, "bo@ONE.example", "again"); added || err != nil {
		t.Errorf("%v, %v", added, err)
	}
	list := func(search string, limit int) (emails []string) {
		for after := ""; ; {
			page, next, err := h.suppressed.Entries(ctx, search, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range page {
				emails = append(emails, x.Email)
			}
			if after = next; next == "" {
				return emails
			}
		}
	}
	for search, want := range map[string]string{
		"":                  "al@one.example b%@two.example b_b@two.example Bo@One.example bob@two.example zoe@one.example",
		"B":                 "b%@two.example b_b@two.example Bo@One.example bob@two.example",
		"b_":                "b_b@two.example",
		"b%":                "b%@two.example",
		"bo@":               "Bo@One.example",
		"@one.example":      "al@one.example Bo@One.example zoe@one.example",
		"@O":                "al@one.example Bo@One.example zoe@one.example",
		"@":                 "al@one.example Bo@One.example zoe@one.example b%@two.example b_b@two.example bob@two.example",
		" al@one.example ":  "al@one.example",
		"al@one.example.de": "", "x\x00": "", "\xff": "", `\`: "",
	} {
		for _, limit := range []int{1, 2, 100} {
			if got := strings.Join(list(search, limit), " "); got != want {
				t.Errorf("%q by %d: %s, want %s", search, limit, got, want)
			}
		}
	}
	x, _, err := h.suppressed.Entries(ctx, "bo@one", "", 1)
	if err != nil || x[0].Reason != "reason 0" || x[0].Source != "console" || x[0].By != ada.Email || !x[0].At.Equal(h.clock.Now()) {
		t.Errorf("%+v, %v", x, err)
	}
	for _, bad := range []string{"", "x", "Bo <bo@one.example>", "bo@one", "bo@one.example\nx@y.example", "bö@one.example"} {
		_, err := h.suppressed.Add(ctx, ada.Email, bad, "")
		wants(t, err, fault.Validation)
		wants(t, h.suppressed.Remove(ctx, ada.Email, bad, "x"), fault.Validation)
	}
	wants(t, h.suppressed.Remove(ctx, ben.Email, "bo@one.example", " "), fault.Validation)
	if err := h.suppressed.Remove(ctx, ben.Email, "BO@one.example", "asked to be back"); err != nil {
		t.Error(err)
	}
	wants(t, h.suppressed.Remove(ctx, ben.Email, "bo@one.example", "again"), fault.NotFound)
	if got := one[string](h, `SELECT string_agg(event || ' ' || by || ' ' || reason, ', ' ORDER BY id) `+
		`FROM review_control.suppression_events WHERE email_key = 'bo@one.example'`); got != "add ada@hub.example reason 0, "+
		"remove ben@hub.example asked to be back" {
		t.Error(got)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool LIKE 'suppression.%'`); n != 7 { // an address that was there is no change
		t.Errorf("%d audit rows", n)
	}
}

func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.approved(2)
	h.deliver(id, 0)
	token := strings.TrimPrefix(h.sender.mails()[0].Unsubscribe, "https://hub.example/unsubscribe/")
	ctx := caller.With(t.Context(), caller.Caller{Kind: caller.Visitor, RequestID: "req_9"})
	email, done, err := h.suppressed.Unsubscription(ctx, token)
	if err != nil || done || email != "C1-0@partner.example" {
		t.Errorf("%s, %v, %v", email, done, err)
	}
	for range 2 {
		if email, err := h.suppressed.Unsubscribe(ctx, token); err != nil || email != "C1-0@partner.example" {
			t.Errorf("%s, %v", email, err)
		}
	}
	if _, done, err := h.suppressed.Unsubscription(ctx, token); err != nil || !done {
		t.Errorf("%v, %v", done, err)
	}
	list, _, err := h.suppressed.Entries(ctx, "", "", 10)
	if err != nil || len(list) != 1 || list[0].Source != "unsubscribe" || list[0].By != "" || list[0].Reason != "Unsubscribed from draft 1." {
		t.Errorf("%+v, %v", list, err)
	}
	other := []byte("0123456789abcdef")
	for _, bad := range []string{"", "x", token[:21], token + "A", token + "=", "!" + token[1:], base64.RawURLEncoding.EncodeToString(other)} {
		_, _, err := h.suppressed.Unsubscription(ctx, bad)
		wants(t, err, fault.NotFound)
		_, err = h.suppressed.Unsubscribe(ctx, bad)
		wants(t, err, fault.NotFound)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.unsubscribe' AND request_id = 'req_9'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	// Whoever has the link follows it again and again: nothing more is kept of it.
	stored := func() string {
		return one[string](h, `SELECT concat((SELECT count(*) FROM audit.calls), ' ', (SELECT count(*) FROM review_control.suppressions), `+
			`' ', (SELECT count(*) FROM review_control.suppression_events))`)
	}
	before := stored()
	var again sync.WaitGroup
	for range 8 {
		again.Go(func() {
			for range 250 {
				if _, err := h.suppressed.Unsubscribe(ctx, token); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	again.Wait()
	if after := stored(); after != before {
		t.Errorf("2,000 repetitions: %s, before %s", after, before)
	}
	// Who was taken off the list and unsubscribes again is new there.
	if err := h.suppressed.Remove(signedIn(t.Context(), ada), ada.Email, email, "asked to be back"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.suppressed.Unsubscribe(ctx, token); err != nil {
		t.Error(err)
	}
	if n := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.unsubscribe'`); n != 2 {
		t.Errorf("%d audit rows", n)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := signedIn(t.Context(), ada)
	if _, err := h.suppressed.Add(ctx, ada.Email, "old@one.example", "before"); err != nil {
		t.Fatal(err)
	}
	file := "\ufeffName,E-Mail,Reason\r\n\"Doe, " +
		"Jo\",Jo@one.example,bounced\r\n\r\nOld,OLD@one.example,\r\nnobody,,\r\n\"x\"y,z@one.example,\r\nTwo,jo@ONE.example,twice\r\nBad,not " +
		"an address,\r\nMulti,\"m@one.example\",\"line\nbreak\"\r\nThree,three@one.example,\r\n"
	in, err := h.suppressed.StartImport(ctx, ada.Email, "list\x00.csv", "given reason", []byte(file))
	if err != nil || in.Status != "waiting" || in.Lines != 8 || in.Name != "list .csv" {
		t.Fatalf("%+v, %v", in, err)
	}
	if err := h.suppressed.RunImport(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.suppressed.RunImport(t.Context(), in.ID); err != nil { // a job that comes too late
		t.Fatal(err)
	}
	in, err = h.suppressed.Import(ctx, in.ID)
	if err != nil || in.Status != "done" || in.Done != 8 || in.Added != 3 || in.Known != 2 || in.Bad != 3 || in.Finished == nil {
		t.Errorf("%+v, %v", in, err)
	}
	bad, err := h.suppressed.BadLines(ctx, in.ID, 0, 10)
	want := []suppression.BadLine{{Line: 5, Text: "nobody,,", Reason: "there is no address"},
		{Line: 6, Text: `"x"y,z@one.example,`, Reason: "there is text behind a closing quotation mark"},
		{Line: 8, Text: "Bad,not an address,", Reason: "this is no e-mail address"}}
	if err != nil || fmt.Sprint(bad) != fmt.Sprint(want) {
		t.Errorf("%v, %v", bad, err)
	}
	if bad, err = h.suppressed.BadLines(ctx, in.ID, 5, 1); err != nil || len(bad) != 1 || bad[0].Line != 6 {
		t.Errorf("%v, %v", bad, err)
	}
	if got := one[string](h, `SELECT string_agg(email || '|' || reason || '|' || source || '|' || by, ' ' ORDER BY email_key) `+
		`FROM review_control.suppressions`); got != "Jo@one.example|bounced|import|ada@hub.example m@one.example|line "+
		"break|import|ada@hub.example old@one.example|before|console|ada@hub.example three@one.example|given reason|import|ada@hub.example" {
		t.Error(got)
	}
	if n := one[int](h, `SELECT length(data) FROM review_control.imports`); n != 0 {
		t.Errorf("%d bytes of the file are left", n)
	}
	for name, data := range map[string]string{"empty": "", "a header": "email,reason\n", "blank": "\n\n , \n",
		"a workbook": "PK\x03\x04\x00\x00", "UTF-16": "e\x00m\x00", "large": strings.Repeat("x", suppression.MaxImport+1)} {
		if _, err := h.suppressed.StartImport(ctx, ada.Email, "x", "", []byte(data)); code(err) != fault.Validation {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = h.suppressed.Import(ctx, 999)
	wants(t, err, fault.NotFound)
	if list, err := h.suppressed.Imports(ctx, 0); err != nil || len(list) != 1 || list[0].ID != in.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestImportTakesTheFirst of an address that is in a file many times.
func TestImportTakesTheFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	file := strings.Builder{}
	file.WriteString("email,reason\n")
	for i := range 900 {
		fmt.Fprintf(&file, "u%d@one.example,reason %d\n", i%3, i)
	}
	in, err := h.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "list.csv", "", []byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.suppressed.RunImport(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	if got := one[string](h, `SELECT string_agg(reason, ', ' ORDER BY email_key) FROM review_control.suppressions`); got != "reason 0, "+
		"reason 1, reason 2" {
		t.Error(got)
	}
}

// TestImportGoesOn breaks an import off after its first batches, and lets two jobs read it.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var file strings.Builder
	for i := range 4500 {
		if i%3 == 0 {
			fmt.Fprintf(&file, "no address %d\n", i)
		} else {
			fmt.Fprintf(&file, "u%d@one.example\n", i)
		}
	}
	in, err := h.suppressed.StartImport(signedIn(t.Context(), ada), ada.Email, "list.csv", "", []byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	h.exec(`CREATE FUNCTION review_control.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.done > 2000 THEN RAISE 'stop'; ` +
		`END IF; RETURN NEW; END $$`)
	h.exec(`CREATE TRIGGER stop BEFORE UPDATE ON review_control.imports FOR EACH ROW EXECUTE FUNCTION review_control.stop()`)
	if err := h.suppressed.RunImport(t.Context(), in.ID); err == nil {
		t.Fatal("it did not stop")
	}
	if now, err := h.suppressed.Import(t.Context(), in.ID); err != nil || now.Status != "running" || now.Done != 2000 ||
		now.Added != 1333 || now.Bad != 667 {
		t.Errorf("%+v, %v", now, err)
	}
	h.exec(`DROP TRIGGER stop ON review_control.imports`)
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- h.suppressed.RunImport(context.Background(), in.ID) }()
	}
	if first, second := <-ended, <-ended; first != nil && second != nil {
		t.Error(first, second)
	}
	now, err := h.suppressed.Import(t.Context(), in.ID)
	if err != nil || now.Status != "done" || now.Done != 4500 || now.Added != 3000 || now.Bad != 1500 || now.Known != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if n := one[int](h, `SELECT count(*) FROM review_control.import_problems`); n != suppression.MaxBadLines {
		t.Errorf("%d bad lines are kept", n)
	}
	if n := one[int](h, `SELECT count(*) FROM review_control.suppression_events WHERE import_id = 1`); n != 3000 {
		t.Errorf("%d events", n)
	}
}
