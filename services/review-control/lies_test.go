package reviewcontrol_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

// lies are what an authoring service can answer that says otherwise than it did, always under the
// content_hash that it said before.
var lies = map[string]func(*draftRow){
	"another body":      func(d *draftRow) { d.targets[0].Body = "Send the money to evil.example" },
	"another word":      func(d *draftRow) { d.targets[0].Body += " " + "now" },
	"another subject":   func(d *draftRow) { d.targets[0].Subject = "Your invoice" },
	"no HTML":           func(d *draftRow) { d.targets[0].HTML = !d.targets[0].HTML },
	"hidden words":      func(d *draftRow) { d.targets[0].Body += `<p style="color:#fff">evil words</p>` },
	"another link":      func(d *draftRow) { d.targets[0].Body += `<a href="https://evil.example">x</a>` },
	"another picture":   func(d *draftRow) { d.targets[0].Body += `<img src="https://evil.example/x.png">` },
	"a script":          func(d *draftRow) { d.targets[0].Body += `<script>alert(1)</script>` },
	"nothing":           func(d *draftRow) { d.targets[0].Body, d.targets[0].Subject = "", "" },
	"another name":      func(d *draftRow) { d.targets[0].ToName = "Mallory" },
	"another recipient": func(d *draftRow) { d.targets[0].ToEmail = "mallory@evil.example" },
	"another partner":   func(d *draftRow) { d.targets[0].ExternalID = 4711 },
	"another context":   func(d *draftRow) { d.targets[0].Context = json.RawMessage(`{"why":"evil"}`) },
	"other evidence":    func(d *draftRow) { d.targets[0].Snapshot = json.RawMessage(`{"brand":"evil"}`) },
	"another sender":    func(d *draftRow) { d.SenderName, d.SenderEmail = new("Mallory"), new("mallory@evil.example") },
	"another maker": func(d *draftRow) {
		d.CreatedBy, d.Origin = new("somebody else"), map[string]any{"service": "crm", "external_user_id": "u9", "credential_id": "ak_9",
			"hub_user": ""}
	},
	"swapped targets":      func(d *draftRow) { swap(&d.targets[0], &d.targets[1]) },
	"all of another":       func(d *draftRow) { i := d.targets[0].Index; d.targets[0] = d.targets[1]; d.targets[0].Index = i },
	"another index":        func(d *draftRow) { d.targets[0].Index = 7 },
	"indexes swapped":      func(d *draftRow) { d.targets[0].Index, d.targets[1].Index = 1, 0 },
	"the same index twice": func(d *draftRow) { d.targets[1].Index = 0 },
	"fewer targets":        func(d *draftRow) { d.targets, d.TargetCount = d.targets[1:], 1 },
	"no targets":           func(d *draftRow) { d.targets, d.TargetCount = nil, 0 },
	"more targets": func(d *draftRow) {
		more := d.targets[0]
		more.Index, more.ToEmail = 2, "mallory@evil.example"
		d.targets, d.TargetCount = append(d.targets, more), 3
	},
	"it is a draft":      func(d *draftRow) { d.Status = "draft" },
	"it is approved":     func(d *draftRow) { d.Status = "approved" },
	"it is cancelled":    func(d *draftRow) { d.Status = "cancelled" },
	"it has no status":   func(d *draftRow) { d.Status = "evil" },
	"other counts":       func(d *draftRow) { d.Decisions = map[string]int{"pending": 0, "approved": 2, "rejected": 0} },
	"another hash":       func(d *draftRow) { d.targets[0].ContentHash = strings.Repeat("0", 64) },
	"no hash":            func(d *draftRow) { d.targets[0].ContentHash = "" },
	"another name of it": func(d *draftRow) { d.Name = "Evil" },
}

// swap swaps what two targets get.
func swap(a, b *targetRow) {
	i, j := a.Index, b.Index
	*a, *b = *b, *a
	a.Index, b.Index = i, j
}

// proposal is a draft of two targets in HTML that ada made, in review.
func (h *house) proposal() reviewcontrol.ID {
	h.t.Helper()
	id := h.authoring.draft(2, func(d *draftRow) {
		d.CreatedBy = new(ada.Email)
		for i := range d.targets {
			d.targets[i].HTML, d.targets[i].Body = true, fmt.Sprintf("<p>Dear Contact %d</p>", i)
		}
	})
	if _, err := h.send(agent(h.t.Context()), newKey(), queueing(id)); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// witness keeps what a reviewer has approved of one draft, as the page showed it.
type witness struct {
	*house
	id       reviewcontrol.ID
	approved map[int]mailer.Content
	before   int
}

func (h *house) witness() *witness {
	return &witness{h, h.proposal(), map[int]mailer.Content{}, len(h.sender.mails())}
}

// look is what a reviewer's page shows of a target.
func (w *witness) look(index int) (reviewcontrol.TargetView, error) {
	return w.service.Target(w.t.Context(), w.id, index)
}

// approve is ben's approval of what was looked at.
func (w *witness) approve(v reviewcontrol.TargetView) error {
	_, err := w.service.Decide(signedIn(w.t.Context(), ben), ben, w.id,
		reviewcontrol.Shown{Index: v.Index, Hash: v.Rendering.Hash(), Revision: v.Decision.Revision},
		reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
	if err == nil {
		w.approved[v.Index] = v.Rendering.Content
	}
	return err
}

// judge wants every mail of the draft that has left to be one that was approved, once.
func (w *witness) judge(fail func(string, ...any)) {
	w.t.Helper()
	left := w.sender.mails()[w.before:]
	seen := map[string]bool{}
	for _, m := range left {
		approved := slices.Collect(maps.Values(w.approved))
		if !slices.Contains(approved, m.Content) {
			fail("a mail left that nobody approved: %+v", m)
		}
		if seen[m.To.Email] {
			fail("two mails left to %s", m.To.Email)
		}
		seen[m.To.Email] = true
	}
}

// TestALyingNeighbour has authoring say something else between the page and the decision, and between
// the decision and the hand-over.
func TestALyingNeighbour(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	// Of what is no part of a mail the mail does not depend; the recipient and the sender are those that
	// were kept when the draft was queued.
	same := []string{"another name", "another recipient", "another partner", "another context", "other evidence", "another sender",
		"another maker", "more targets", "it is a draft",
		"it is approved", "it is cancelled", "it has no status", "other counts", "another hash", "no hash", "another name of it", "a script"}
	for name, lie := range lies {
		t.Run("before the decision: "+name, func(t *testing.T) {
			w := h.witness()
			shown, err := w.look(0)
			if err != nil {
				t.Fatal(err)
			}
			h.authoring.change(w.id, lie)
			err = w.approve(shown)
			if slices.Contains(same, name) != (err == nil) || err != nil && code(err) != fault.Conflict && code(err) != fault.NotFound &&
				code(err) != fault.Internal {
				t.Errorf("the decision: %v", err)
			}
			if d := h.target(w.id, 0).Decision; err != nil && d.Choice != reviewcontrol.Pending || err == nil && d.Hash != shown.Rendering.Hash() {
				t.Errorf("%+v", d)
			}
			// Whoever made it is who made it when it was queued.
			if _, err := h.service.Decide(signedIn(t.Context(), ada), ada, w.id, reviewcontrol.Shown{Index: 0, Hash: shown.Rendering.Hash()},
				reviewcontrol.Judgement{Choice: reviewcontrol.Approve}); code(err) != fault.Scope {
				t.Errorf("its maker decides: %v", err)
			}
		})
		t.Run("before the hand-over: "+name, func(t *testing.T) {
			w := h.witness()
			for i := range 2 {
				shown, err := w.look(i)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.approve(shown); err != nil {
					t.Fatal(err)
				}
			}
			h.authoring.change(w.id, lie)
			if _, err := h.service.Finish(t.Context(), w.id); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				_, _ = h.service.Deliver(t.Context(), w.id, i) // an answer that makes no sense is an error, and tried again
			}
			w.judge(t.Errorf)
			d := h.target(w.id, 0).Delivery
			switch {
			case slices.Contains(same, name):
				if d.State != reviewcontrol.Delivered {
					t.Errorf("%+v", d)
				}
			case d.State == reviewcontrol.Queued && strings.Contains("another index, the same index twice, indexes swapped", name):
			case d.State != reviewcontrol.Changed || d.Attempts != 0 || !strings.Contains(d.Problem, "content changed after approval"):
				t.Errorf("%+v", d)
			}
		})
	}
	refused := one[int](h, `SELECT count(*) FROM audit.calls WHERE tool = 'review.refuse' AND outcome = 'E_CONFLICT' `+
		`AND detail ->> 'reason' LIKE 'content changed after approval%' AND service = 'review-control'`)
	if changed := one[int](h, `SELECT count(*) FROM review_control.targets WHERE progress = 'changed'`); changed < 10 || refused != changed {
		t.Errorf("%d mails were refused, and %d are in the audit log", changed, refused)
	}
}

// TestLiesOfAnyOrder looks, lies, approves and delivers in any order.
func TestLiesOfAnyOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	names := slices.Sorted(maps.Keys(lies))
	rapid.Check(t, func(rt *rapid.T) {
		w := h.witness()
		truth := h.authoring.row(w.id)
		target := rapid.IntRange(0, 1)
		seen := map[int]reviewcontrol.TargetView{}
		rt.Repeat(map[string]func(*rapid.T){
			"look": func(rt *rapid.T) {
				i := target.Draw(rt, "index")
				if v, err := w.look(i); err == nil {
					seen[i] = v
				}
			},
			"lie": func(rt *rapid.T) {
				h.authoring.change(w.id, func(d *draftRow) {
					if len(d.targets) >= 2 {
						lies[rapid.SampledFrom(names).Draw(rt, "lie")](d)
					}
				})
			},
			"tell the truth": func(*rapid.T) {
				h.authoring.change(w.id, func(d *draftRow) {
					*d = truth
					d.targets = slices.Clone(truth.targets)
				})
			},
			"approve": func(rt *rapid.T) {
				if v, ok := seen[target.Draw(rt, "index")]; ok {
					_ = w.approve(v)
				}
			},
			"approve shown": func(*rapid.T) {
				var shown []reviewcontrol.Shown
				for _, v := range seen {
					shown = append(shown, reviewcontrol.Shown{Index: v.Index, Hash: v.Rendering.Hash()})
				}
				before := []reviewcontrol.Choice{h.target(w.id, 0).Decision.Choice, h.target(w.id, 1).Decision.Choice}
				if n, _, err := h.service.ApproveShown(signedIn(t.Context(), ben), ben, w.id, shown); err == nil && n > 0 {
					for i, v := range seen {
						if before[i] == reviewcontrol.Pending {
							w.approved[i] = v.Rendering.Content
						}
					}
				}
			},
			"deliver": func(rt *rapid.T) {
				_, _ = h.service.Finish(t.Context(), w.id)
				_, _ = h.service.Deliver(t.Context(), w.id, target.Draw(rt, "index"))
			},
			"": func(rt *rapid.T) { w.judge(rt.Fatalf) },
		})
	})
}

// TestALieWhileQueueing: what is kept of a draft when it is queued is whole, or the draft is not queued.
func TestALieWhileQueueing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, lie := range map[string]func(*draftRow){
		"fewer": lies["fewer targets"], "none": lies["no targets"], "an index twice": lies["the same index twice"],
		"another index": lies["another index"],
		"another count": func(d *draftRow) { d.TargetCount = 3 },
		"no address":    func(d *draftRow) { d.targets[0].ToEmail = "Mallory <m@evil.example>" },
	} {
		id := h.authoring.draft(2, lie)
		if _, err := h.send(agent(t.Context()), newKey(), queueing(id)); err == nil {
			t.Errorf("%s: it is queued", name)
		}
	}
	// A draft that was sent is not queued again, whatever authoring says of it.
	id := h.approved(1)
	h.deliver(id, 0)
	h.authoring.change(id, lies["it is a draft"])
	_, err := h.send(agent(t.Context()), newKey(), queueing(id))
	wants(t, err, fault.Conflict)
	if n := len(h.sender.mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// TestOurOwnMailboxChanges has an operator change whom mails are from between approval and hand-over.
func TestOurOwnMailboxChanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	other := h.another(func(c *reviewcontrol.Config) { c.From = mailer.Address{Name: "Hub", Email: "new@hub.example"} })
	own := h.authoring.draft(1, func(d *draftRow) { d.SenderEmail = new("kim@shop.example") })
	if _, err := h.send(agent(t.Context()), newKey(), queueing(own)); err != nil {
		t.Fatal(err)
	}
	h.decide(own, 0, reviewcontrol.Approve)
	if _, err := h.service.Finish(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	for _, id := range []reviewcontrol.ID{h.approved(1), own} { // the header Sender is read as well
		if again, err := other.Deliver(t.Context(), id, 0); again != 0 || err != nil {
			t.Errorf("%s, %v", again, err)
		}
		if d, r := h.target(id, 0).Delivery, h.review(id); d.State != reviewcontrol.Changed || r.Status != reviewcontrol.Sent ||
			r.Counts.Failed != 1 || len(h.sender.mails()) != 0 {
			t.Errorf("%+v, %+v", d, r)
		}
	}
}

// TestApprovalsOfAnEarlierRelease: they hold what authoring said of the content, and send nothing.
func TestApprovalsOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(2)
	o.decide(id, 0, reviewcontrol.Approve)
	earlier := func() {
		o.exec(`UPDATE review_control.targets SET content_hash = $2, rendering_hash = '' WHERE draft_id = $1 AND position = 0`, int64(id),
			o.authoring.row(id).targets[0].ContentHash)
	}
	earlier()
	page := "/drafts/" + id.String()
	has(t, o.get(page+"/targets/0"), "This approval was for other content than is here now, or was made in an earlier release of Hub")
	// The same choice is a decision again, and leaves nothing for the earlier release to send on.
	o.post(page+"/decide", form(t, o.get(page+"/targets/0"), 0, "approved", ""))
	if d := o.target(id, 0).Decision; d.Revision != 2 || d.Hash == "" || o.review(id).Counts.Approved != 1 {
		t.Errorf("%+v", d)
	}
	if kept := one[string](o.house, `SELECT content_hash FROM review_control.targets WHERE position = 0`); kept != "" {
		t.Errorf("an earlier release would send what it has as %q", kept)
	}
	has(t, o.get(page), "!This approval was for other content")
	earlier()
	o.decide(id, 1, reviewcontrol.Approve)
	if _, err := o.service.Finish(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		o.deliver(id, i)
	}
	if d := o.target(id, 0).Delivery; d.State != reviewcontrol.Changed || !strings.Contains(d.Problem, "an earlier release of Hub") ||
		len(o.sender.mails()) != 1 {
		t.Errorf("%+v", d)
	}
	has(t, o.get(page), "Not sent: content changed", "an earlier release of Hub", "1 of 2 approved mails were sent")
	has(t, o.get(page+"?delivery=changed"), `id="t-0"`, `!id="t-1"`)
}

// TestThePreviewIsThatOfThePage: while authoring says now this, now that, a frame never shows
// another content than its page was made for.
func TestThePreviewIsThatOfThePage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.proposal()
	v, err := o.service.Target(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	frame := fmt.Sprintf("/drafts/%s/targets/0/preview?of=%s", id, v.Rendering.Hash())
	for _, path := range []string{"/drafts/" + id.String(), "/drafts/" + id.String() + "/targets/0"} {
		has(t, o.send(session(ben, "reviewer"), "GET", path, "", "").Body.String(), `src="`+frame+`" data-of="`+v.Rendering.Hash()+`"`,
			"From</span> <bdi>Hub</bdi> &lt;<bdi>hub@hub.example</bdi>&gt;")
	}
	w := o.send(session(ben, "reviewer"), "GET", frame, "", "")
	if w.Body.String() != v.Rendering.HTML || !strings.HasPrefix(w.Header().Get("Set-Cookie"), "hub-shown="+v.Rendering.Hash()+
		"; Path=/drafts; Max-Age=60; Secure; SameSite=Lax") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	o.authoring.change(id, lies["another body"])
	w = o.send(session(ben, "reviewer"), "GET", frame, "", "")
	if w.Code != http.StatusConflict || strings.Contains(w.Body.String(), "evil") || w.Header().Get("Set-Cookie") != "" ||
		!strings.Contains(w.Body.String(), "has changed") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// TestFlaggedMailsAreDecidedOnByThemselves, whatever a form says.
func TestFlaggedMailsAreDecidedOnByThemselves(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	bodies := []string{"<p>plain</p>", `<p style="color:#fff">white</p>`, `<img src="https://a.example/x.png">`,
		`<a href="https://evil.com">bank.com</a>`, "<p>long</p>" + strings.Repeat("<br>", 200) + "end",
		"<table><tr>" + strings.Repeat("<td>wide", 40), `<style>p{}</style><p hidden>was hidden</p>`}
	id := o.authoring.draft(len(bodies), func(d *draftRow) {
		for i := range d.targets {
			d.targets[i].HTML, d.targets[i].Body = true, bodies[i]
		}
	})
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	page := "/drafts/" + id.String()
	for i, together := range []bool{true, false, false, false, false, false, false} {
		shown := o.shown(id, i)
		target := fmt.Sprintf("%d:%s:0", i, shown.Hash)
		if strings.Contains(o.get(fmt.Sprintf("%s/targets/%d", page, i)), `data-open="`+target+`" data-together>`) != together {
			t.Errorf("target %d is together %v", i, !together)
		}
		w := o.post(page+"/approve-shown", url.Values{"target": {target}})
		if approved := o.target(id, i).Decision.Choice == reviewcontrol.Approve; approved != together || !together &&
			!strings.Contains(o.flash(w), "has to be decided on by itself") {
			t.Errorf("target %d: approved %v, %q", i, approved, o.flash(w))
		}
	}
	if _, _, err := o.service.ApproveShown(signedIn(t.Context(), ben), ben, id,
		[]reviewcontrol.Shown{o.shown(id, 0), o.shown(id, 1)}); code(err) != fault.Conflict {
		t.Error(err)
	}
	o.decide(id, 1, reviewcontrol.Approve) // by itself
	// One that was decided on before keeps no other from being approved.
	if n, _, err := o.service.ApproveShown(signedIn(t.Context(), ben), ben, id,
		[]reviewcontrol.Shown{o.shown(id, 0), o.shown(id, 1)}); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestOpenedTargets count as shown, also for whoever has no scripts.
func TestOpenedTargets(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id, other := o.inspected(3), o.inspected(1)
	page := "/drafts/" + id.String()
	jar := map[string]string{}
	get := func(path string) string {
		var cookies []string
		for name, value := range jar {
			cookies = append(cookies, name+"="+value)
		}
		w := o.send(asAda, "GET", path, "", "", "Cookie", strings.Join(cookies, "; "))
		for _, c := range w.Result().Cookies() {
			jar[c.Name] = c.Value
			if c.HttpOnly == (c.Name == "hub-shown") || !c.Secure || len(c.Value) > 2048 {
				t.Errorf("%+v", c)
			}
		}
		return w.Body.String()
	}
	open := func(id reviewcontrol.ID, index int) {
		get(fmt.Sprintf("/drafts/%s/targets/%d", id, index))
		get(fmt.Sprintf("/drafts/%s/targets/%d/preview?of=%s", id, index, o.shown(id, index).Hash))
	}
	enabled := func() (list string) {
		_, inputs, _ := strings.Cut(get(page), "<noscript>")
		inputs, _, _ = strings.Cut(inputs, "</noscript>")
		for i := range 3 {
			if strings.Contains(inputs, fmt.Sprintf(`value="%d:%s:0"`, i, o.target(id, i).Inspection.Hash)) {
				list += fmt.Sprint(i)
			}
		}
		return list
	}
	get(page)
	if got := enabled(); got != "" {
		t.Errorf("%s are enabled", got)
	}
	get(page + "/targets/1") // of which the browser has not been given the mail
	for range 2 {
		open(id, 2)
	}
	if got := enabled(); got != "2" {
		t.Errorf("%s are enabled", got)
	}
	open(id, 0)
	if got := enabled(); got != "02" {
		t.Errorf("%s are enabled", got)
	}
	var cookies []string
	for name, value := range jar {
		cookies = append(cookies, name+"="+value)
	}
	bens := o.send(session(ben, "reviewer"), "GET", page, "", "", "Cookie", strings.Join(cookies, "; ")).Body.String()
	if _, inputs, _ := strings.Cut(bens, "<noscript>"); strings.Contains(strings.SplitN(inputs, "</noscript>", 2)[0], `name="target"`) {
		t.Error("what Ada has opened counts for Ben, who has her browser now")
	}
	before := o.shown(id, 0)
	o.authoring.change(id, func(d *draftRow) { d.targets[0].Body = "another" })
	w := o.post(page+"/approve-shown", url.Values{"target": {fmt.Sprintf("0:%s:0", before.Hash)}})
	if o.target(id, 0).Decision.Choice != reviewcontrol.Pending || !strings.Contains(o.flash(w), "is not what you were shown") {
		t.Errorf("what has changed since is approved: %q", o.flash(w))
	}
	open(other, 0)
	if got := enabled(); got != "" {
		t.Errorf("%s are enabled, of another draft", got)
	}
}
