package reviewcontrol_test

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/rpc"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/auth"
	"hub.internal/services/review-control/console"
)

// made is a draft with a name that somebody made, queued so long ago.
func (h *house) made(name, by string, ago time.Duration) reviewcontrol.ID {
	h.t.Helper()
	id := h.authoring.draft(2, func(d *draftRow) { d.Name, d.CreatedBy = name, &by })
	now := h.clock.Now()
	h.clock.Advance(-ago)
	defer func() { h.clock.Advance(now.Sub(h.clock.Now())) }()
	if _, err := h.send(agent(h.t.Context()), newKey(), queueing(id)); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *house) list(f reviewcontrol.DraftFilter) (ids string, page reviewcontrol.DraftPage) {
	h.t.Helper()
	page, err := h.service.Drafts(h.t.Context(), f)
	if err != nil {
		h.t.Fatal(err)
	}
	var list []string
	for _, d := range page.Drafts {
		list = append(list, d.ID.String())
	}
	return strings.Join(list, " "), page
}

// TestWhatWaitsForMe lists what others made, the longest waiting first, and counts what it lists.
func TestWhatWaitsForMe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.made("late", "agent", time.Hour)                                  // 1
	h.made("early", "agent", 3*time.Hour)                               // 2
	h.made("by label", "ADA", 9*time.Hour)                              // 3
	h.made("by address", "Ada Lovelace <ADA@hub.example>", 8*time.Hour) // 4
	h.made("middle", "ben@hub.example", 2*time.Hour)                    // 5
	h.authoring.draft(1)                                                // 6
	waiting := reviewcontrol.DraftFilter{Waiting: true, For: ada}
	ids, page := h.list(waiting)
	if ids != "2 5 1" || page.Counts.Waiting != 3 || page.Counts.All != 6 || page.Counts.ByStatus[reviewcontrol.InReview] != 5 ||
		!page.Counts.Known {
		t.Errorf("%s, %+v", ids, page.Counts)
	}
	if ids, page := h.list(reviewcontrol.DraftFilter{Waiting: true, For: ben}); ids != "3 4 2 1" || page.Counts.Waiting != 4 {
		t.Errorf("%s, %+v", ids, page.Counts)
	}
	if ids, page := h.list(reviewcontrol.DraftFilter{Status: reviewcontrol.InReview, For: ada}); ids != "3 4 2 5 1" ||
		page.Counts.Waiting != 3 {
		t.Errorf("%s, %+v", ids, page.Counts)
	}
	// Pages end where the next begins, also when what they ended with is decided meanwhile.
	waiting.Limit = 1
	_, page = h.list(waiting)
	h.decide(2, 0, reviewcontrol.Reject)
	h.decide(2, 1, reviewcontrol.Reject)
	waiting.Limit, waiting.After = 2, page.Next
	if ids, page := h.list(waiting); page.Next != 0 || ids != "5 1" || page.Counts.Waiting != 2 ||
		page.Counts.ByStatus[reviewcontrol.Rejected] != 1 {
		t.Errorf("%s, %+v", ids, page)
	}
	// A search narrows pages and counts alike.
	if ids, page := h.list(reviewcontrol.DraftFilter{Waiting: true, For: ada, Search: "LATE"}); ids != "1" || page.Counts.Waiting != 1 ||
		page.Counts.All != 1 {
		t.Errorf("%s, %+v", ids, page.Counts)
	}
	// An authoring of an earlier release does not know whose drafts they are; nobody is asked to decide on their own.
	h.authoring.mu.Lock()
	h.authoring.old = true
	h.authoring.mu.Unlock()
	if ids, page := h.list(reviewcontrol.DraftFilter{Waiting: true, For: ada}); ids != "5 1" || page.Counts.Known {
		t.Errorf("%s, %+v", ids, page.Counts)
	}
}

// TestTheNextDraftIsAnothers: however many drafts of their own have waited longer, a reviewer finds the one that waits for them.
func TestTheNextDraftIsAnothers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.made("her own", ada.Email, 3*time.Hour)
	h.exec(`INSERT INTO review_control.reviews (draft_id, status, target_count, pending, queued_at, actor, note, created_by, hub_user,
			external_user, sender_name, sender_email, credential_id, tool, key, fingerprint, caller, input_hash)
		SELECT 1000 + n, status, target_count, pending, queued_at, actor, note, created_by, hub_user, external_user, sender_name, sender_email,
			credential_id, tool, key || n, fingerprint, caller, input_hash FROM review_control.reviews, generate_series(1, 60) n`)
	id := h.made("another's", "agent", time.Hour)
	for but, want := range map[reviewcontrol.ID]bool{0: true, id: false} {
		next, found, err := h.service.Waiting(t.Context(), ada, but)
		if err != nil || found != want || found && next != id {
			t.Errorf("but %s: %s, %t, %v", but, next, found, err)
		}
	}
	if next, found, err := h.service.Waiting(t.Context(), ben, 0); err != nil || !found || next != 1 {
		t.Errorf("for Ben: %s, %t, %v", next, found, err)
	}
}

// TestPresence shows colleagues who has a draft open: others, for a minute, and nothing of it for ever.
func TestPresence(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id, other := h.queued(1), h.queued(1)
	here := func(r reviewcontrol.Reviewer, id reviewcontrol.ID) string {
		t.Helper()
		names, err := h.service.Here(signedIn(t.Context(), r), r, id)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(names, ", ")
	}
	carl := reviewcontrol.Reviewer{ID: "usr_carl", Email: "carl@hub.example"}
	if got := here(ada, id) + here(ada, id); got != "" {
		t.Errorf("Ada sees %q", got)
	}
	if got := here(ben, id); got != "Ada" {
		t.Errorf("Ben sees %q", got)
	}
	if got := here(carl, id); got != "Ada, Ben" {
		t.Errorf("Carl sees %q", got)
	}
	if got := here(ada, id); got != "carl@hub.example, Ben" && got != "Ben, carl@hub.example" {
		t.Errorf("Ada sees %q", got)
	}
	if got := here(ben, other); got != "" {
		t.Errorf("at another draft Ben sees %q", got)
	}
	_, page := h.list(reviewcontrol.DraftFilter{Waiting: true, For: carl})
	if got := fmt.Sprint(page.Drafts[0].Here, page.Drafts[1].Here); got != "[Ada Ben] [Ben]" {
		t.Errorf("the list has %s", got)
	}
	seen := func() time.Time {
		return one[time.Time](h, `SELECT seen_at FROM review_control.presence WHERE draft_id = $1 AND email = $2`, int64(id), ada.Email)
	}
	before := seen()
	h.clock.Advance(14 * time.Second)
	here(ada, id)
	if !seen().Equal(before) {
		t.Error("each look is written")
	}
	h.clock.Advance(time.Second)
	here(ada, id)
	if seen().Equal(before) {
		t.Error("nothing is written after 15 s")
	}
	h.clock.Advance(45 * time.Second) // a minute since Ben and Carl were here
	if got, err := h.service.Present(t.Context(), ben, id); err != nil || strings.Join(got, ", ") != "Ada" {
		t.Errorf("%v, %v", got, err)
	}
	h.clock.Advance(time.Hour)
	here(ben, other)
	if n := one[int](h, `SELECT count(*) FROM review_control.presence`); n != 1 {
		t.Errorf("%d rows are kept", n)
	}
	// Nobody fills the table with what is no review, and agents are nowhere.
	if _, err := h.service.Here(signedIn(t.Context(), ada), ada, 987654321); !fault.Is(err, fault.NotFound) {
		t.Errorf("a draft that is not there: %v", err)
	}
	here(ada, h.authoring.draft(1))
	if n := one[int](h, `SELECT count(*) FROM review_control.presence`); n != 1 {
		t.Errorf("%d rows", n)
	}
	if _, err := h.service.Here(agent(t.Context()), ada, id); !fault.Is(err, fault.Scope) {
		t.Errorf("an agent: %v", err)
	}
	var all sync.WaitGroup
	h.clock.Advance(2 * time.Hour)
	for range 8 {
		all.Go(func() {
			for _, r := range []reviewcontrol.Reviewer{ada, ben, carl} {
				for _, at := range []reviewcontrol.ID{id, other} {
					if _, err := h.service.Here(signedIn(t.Context(), r), r, at); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
}

// TestHere is what a page asks for while it is open.
func TestHere(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(1)
	o.authoring.change(id, func(d *draftRow) { d.Name = "shared" })
	path := "/drafts/" + id.String() + "/here"
	if w := o.post(path, nil); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, nowhere := range []string{"/drafts/987654/here", "/drafts/x/here"} {
		if w := o.post(nowhere, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", nowhere, w.Code, w.Body)
		}
	}
	if w := o.post("/drafts/"+o.authoring.draft(1).String()+"/here", nil); w.Code != http.StatusNoContent {
		t.Errorf("one that nobody has queued: %d %s", w.Code, w.Body)
	}
	grace := reviewcontrol.Reviewer{ID: "usr_g", Email: "grace@hub.example", Name: `<b>Grace`}
	asGrace := session(grace, "reviewer")
	if w := o.send(asGrace, "POST", path, "application/x-www-form-urlencoded", "shown=", scripted...); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "Ada has this draft open") || strings.Contains(w.Body.String(), "<html") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := o.post(path, url.Values{"shown": {"Somebody else"}}, scripted...)
	has(t, w.Body.String(), "&lt;b&gt;Grace has this draft open", "!<b>Grace")
	if w := o.post(path, url.Values{"shown": {"<b>Grace has this draft open"}}, scripted...); w.Code != http.StatusNoContent {
		t.Errorf("what the page has already: %d %s", w.Code, w.Body)
	}
	has(t, o.get("/drafts"), "Open: &lt;b&gt;Grace", "!Open: Ada")
	o.clock.Advance(time.Minute)
	if w := o.post(path, url.Values{"shown": {"<b>Grace has this draft open"}}, scripted...); w.Code != http.StatusOK ||
		strings.Contains(w.Body.String(), "Grace") {
		t.Errorf("a minute later: %d %s", w.Code, w.Body)
	}
	has(t, o.get("/drafts"), "!Grace")
}

// TestListOfDrafts looks at rows, chips, the search and what an empty list says.
func TestListOfDrafts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	has(t, o.get("/drafts"), "Nothing waits for you", "queue_for_review", `Waiting for me <span class="count">0<`)
	o.made("Ada's own", "ada@hub.example", time.Hour)
	has(t, o.get("/drafts"), "Nothing waits for you", "made by you", `href="/drafts?status=in_review"`)
	flagged := o.made("봄 세일 <b>", "agent", 3*time.Hour+20*time.Minute)
	o.exec(`UPDATE review_control.targets SET flags = 5 WHERE draft_id = $1`, int64(flagged))
	o.made("plain", "agent", 3*24*time.Hour)
	page := o.get("/drafts")
	has(t, page, "봄 세일 &lt;b&gt;", "2 flagged", ">waiting 3 h</time>", ">waiting 3 days</time>", "2 of 2 left",
		`Waiting for me <span class="count">2<`, `In review <span class="count">3<`, `All <span class="count">3<`, "!Ada&#39;s own")
	if strings.Index(page, ">plain<") > strings.Index(page, "봄 세일") {
		t.Error("the oldest is not first")
	}
	o.decide(flagged, 0, reviewcontrol.Approve)
	has(t, o.get("/drafts?q=%EC%84%B8%EC%9D%BC"), "1 flagged", "1 of 2 left", `value="세일"`, `Waiting for me <span class="count">1<`,
		`href="/drafts?q=%EC%84%B8%EC%9D%BC&amp;status=sent"`, "!>plain<", ">Clear</a>")
	o.decide(flagged, 1, reviewcontrol.Approve)
	has(t, o.get("/drafts?status=approved"), "!flagged", "0 of 2 sent", ">&lt;1 min ago</time>")
	has(t, o.get("/drafts?q=%22%3E%3Cb%3E%25"), "No draft matches", "Clear the search", "!\"><b>%")
	has(t, o.get("/drafts?q="+flagged.String()), "No draft here matches", "1 draft matches elsewhere",
		fmt.Sprintf("/drafts?q=%s&amp;status=all", flagged))
	has(t, o.get("/drafts?q="+strings.Repeat("x", 5000)), "No draft matches")
	for _, status := range []string{"draft", "rejected", "sent", "cancelled"} {
		page := o.get("/drafts?status=" + status)
		empty := regexp.MustCompile(`(?s)<div class="empty"><p class="what">.+</p><p>.+</p><p><a class="button" href="([^"]+)">`).
			FindStringSubmatch(page)
		if empty == nil || o.get(html.UnescapeString(empty[1])) == "" {
			t.Errorf("%s says not what to do: %s", status, page)
		}
	}
	o.authoring.mu.Lock()
	o.authoring.old = true
	o.authoring.mu.Unlock()
	has(t, o.get("/drafts"), ">plain<", `!class="count"`)
	o.authoring.say(fault.New(fault.DB, "The store is away."))
	if w := o.send(asAda, "GET", "/drafts", "", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without authoring: %d", w.Code)
	}
}

// TestKeysHaveNames shows who made a draft by the name of the key, and by its id while auth is away.
func TestKeysHaveNames(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, away := 0, false
	names := func(_ context.Context, in struct {
		IDs []string `json:"ids"`
	}) (map[string]any, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; away {
			return nil, fault.New(fault.DB, "The store is away.")
		}
		found := map[string]string{"ak_unasked": "nobody's"}
		for _, id := range in.IDs {
			if id == "ak_01" {
				found[id] = "캠페인 <agent>"
			}
		}
		return map[string]any{"names": found}, nil
	}
	declared := rpc.Declaration{Path: "/internal/apikeys/names",
		Takes: caller.Rule{"admin": {caller.Service}, "review-control": {caller.Service}}}
	url := contract.Serve(t, "auth", contract.Fake(t, "auth", declared, names))
	h := newHouse(t)
	o := &office{h, http.NewServeMux()}
	keys := auth.New(h.remote("auth", url, h.keys), h.clock.Now)
	c, err := console.New(h.another(func(c *reviewcontrol.Config) { c.Keys = keys }), h.suppressed, h.keys, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Mount(o.mux)
	by := func(external string) reviewcontrol.ID {
		id := o.authoring.draft(1, func(d *draftRow) {
			d.CreatedBy, d.Origin = nil, map[string]any{"service": "crm", "external_user_id": external, "credential_id": "ak_1", "hub_user": ""}
		})
		if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	known := by("ak_01")
	by("ak_02")
	by("u7")
	calls := func() int { mu.Lock(); defer mu.Unlock(); return asked }
	named := `<bdi title="API key ak_01">캠페인 &lt;agent&gt;</bdi>`
	has(t, o.get("/drafts"), named, "<bdi>ak_02</bdi>", "<bdi>u7</bdi>")
	has(t, o.get("/drafts/"+known.String()), named)
	if n := calls(); n != 1 {
		t.Errorf("auth was asked %d times", n)
	}
	mu.Lock()
	away = true
	mu.Unlock()
	o.clock.Advance(time.Minute)
	for range 3 {
		has(t, o.get("/drafts"), "<bdi>ak_01</bdi>", "<bdi>ak_02</bdi>", "!캠페인")
	}
	mu.Lock()
	away = false
	mu.Unlock()
	before := calls()
	o.clock.Advance(4 * time.Second)
	has(t, o.get("/drafts"), "<bdi>ak_01</bdi>")
	if n := calls(); n != before {
		t.Error("auth is not left alone")
	}
	o.clock.Advance(time.Second)
	has(t, o.get("/drafts"), named)
	// A key's name is no person's: whoever is called like it may decide.
	if (reviewcontrol.Maker{ExternalUser: "ak_01", KeyName: "Ada"}).Is(ada) {
		t.Error("a key's name is taken for a person's")
	}
}
