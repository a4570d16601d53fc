package reviewcontrol_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hub.internal/pkg/fault"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/mailer"
)

// model is what CONTRACT.md 10 says of one draft.
type model struct {
	status    reviewcontrol.Status
	choices   []reviewcontrol.Choice
	revisions []int
	progress  []reviewcontrol.DeliveryState
	attempts  []int
	attempted bool
	finished  bool
	history   int
	// actions counts what was decided at once; held are the decisions on each target that hold, or would
	// if the later ones were undone.
	actions int
	held    [][]held
}

type held struct {
	choice reviewcontrol.Choice
	action int
}

// decide is a decision on a target, as a part of the newest action.
func (m *model) decide(i int, choice reviewcontrol.Choice) {
	m.held[i] = append(m.held[i], held{choice, m.actions})
	m.choices[i] = choice
	m.revisions[i]++
	m.history++
}

// undo takes an action back, and tells on how many targets.
func (m *model) undo(action int) (undone int) {
	for i, h := range m.held {
		if len(h) == 0 || h[len(h)-1].action != action {
			continue
		}
		h = h[:len(h)-1]
		m.held[i], m.choices[i] = h, reviewcontrol.Pending
		if len(h) > 0 {
			m.choices[i] = h[len(h)-1].choice
		}
		m.revisions[i]++
		m.history++
		undone++
	}
	return undone
}

func (m *model) counts() (c reviewcontrol.Counts) {
	for i, choice := range m.choices {
		switch choice {
		case reviewcontrol.Pending:
			c.Pending++
		case reviewcontrol.Approve:
			c.Approved++
		case reviewcontrol.Reject:
			c.Rejected++
		}
		switch m.progress[i] {
		case reviewcontrol.Delivered:
			c.Sent++
		case reviewcontrol.Failed:
			c.Failed++
		case reviewcontrol.Suppressed:
			c.Suppressed++
		case reviewcontrol.Unknown:
			c.Unknown++
		}
	}
	return c
}

func (m *model) decided() {
	switch c := m.counts(); {
	case c.Pending > 0:
	case c.Approved > 0:
		m.status = reviewcontrol.Approved
	default:
		m.status = reviewcontrol.Rejected
	}
}

func (m *model) delivered() {
	if c := m.counts(); c.Sent+c.Failed+c.Suppressed+c.Unknown == c.Approved {
		m.status = reviewcontrol.Sent
	}
}

// TestLife does whatever can be done to drafts, in every order, and holds the store and
// authoring to a model of CONTRACT.md 10.1.
func TestLife(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "targets")
		id := h.authoring.draft(n)
		m := &model{status: reviewcontrol.Drafted, choices: slices.Repeat([]reviewcontrol.Choice{reviewcontrol.Pending}, n),
			revisions: make([]int, n),
			progress:  make([]reviewcontrol.DeliveryState, n), attempts: make([]int, n), held: make([][]held, n)}
		email := func(i int) string { return fmt.Sprintf("C%s-%d@partner.example", id, i) }
		target := rapid.IntRange(0, n-1)
		conflict := func(err error, what string) {
			if code(err) != fault.Conflict {
				rt.Fatalf("%s in %s: %v", what, m.status, err)
			}
		}
		ok := func(err error, what string) {
			if err != nil {
				rt.Fatalf("%s in %s: %v", what, m.status, err)
			}
		}
		ctx := signedIn(t.Context(), ada)
		shown := func(i int) reviewcontrol.Shown {
			v, err := h.service.Target(ctx, id, i)
			ok(err, "look")
			return reviewcontrol.Shown{Index: i, Hash: v.Rendering.Hash(), Revision: v.Decision.Revision}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"queue": func(rt *rapid.T) {
				_, err := h.send(agent(t.Context()), newKey(), queueing(id))
				if m.status != reviewcontrol.Drafted {
					conflict(err, "queue")
					return
				}
				ok(err, "queue")
				m.status = reviewcontrol.InReview
			},
			"decide": func(rt *rapid.T) {
				i := target.Draw(rt, "index")
				choice := rapid.SampledFrom([]reviewcontrol.Choice{reviewcontrol.Approve, reviewcontrol.Reject}).Draw(rt, "choice")
				seen := shown(i)
				stale := rapid.IntRange(0, 5).Draw(rt, "stale") == 0 && seen.Revision > 0
				if stale {
					seen.Revision--
				}
				r, err := h.service.Decide(ctx, ada, id, seen, reviewcontrol.Judgement{Choice: choice})
				switch same := m.choices[i] == choice; {
				case m.status == reviewcontrol.Drafted, !same && (m.status != reviewcontrol.InReview || stale),
					m.status == reviewcontrol.Cancelled && !same:
					conflict(err, "decide")
				case same:
					ok(err, "decide again")
				default:
					ok(err, "decide")
					m.actions++
					m.decide(i, choice)
					m.decided()
					if r.Status != m.status || r.Counts != m.counts() {
						rt.Fatalf("answers %+v, want %s %+v", r, m.status, m.counts())
					}
				}
			},
			"decide on another mail": func(rt *rapid.T) {
				seen := shown(target.Draw(rt, "index"))
				seen.Hash = seen.Hash[1:] + seen.Hash[:1]
				_, err := h.service.Decide(ctx, ada, id, seen, reviewcontrol.Judgement{Choice: reviewcontrol.Approve})
				conflict(err, "decide")
			},
			"undo": func(rt *rapid.T) {
				action := rapid.IntRange(max(m.actions-2, 0), m.actions+1).Draw(rt, "action")
				done, r, err := h.service.Undo(ctx, ada, id, action)
				switch open := m.status == reviewcontrol.InReview || m.status == reviewcontrol.Approved && !m.attempted && action == m.actions; {
				case m.status == reviewcontrol.Drafted || (action > 0 && action <= m.actions && !open):
					conflict(err, "undo")
				case action == 0 || action > m.actions:
					if code(err) != fault.NotFound && code(err) != fault.Conflict {
						rt.Fatalf("undo of no action in %s: %v", m.status, err)
					}
				default:
					undone := m.undo(action)
					if undone == 0 {
						conflict(err, "undo of what was decided again")
						return
					}
					ok(err, "undo")
					if m.status == reviewcontrol.Approved {
						m.status, m.finished = reviewcontrol.InReview, false
						clear(m.progress)
					}
					if done != undone || r.Status != m.status || r.Counts != m.counts() {
						rt.Fatalf("undo of %d: %d undone, %+v, want %d, %s %+v", action, done, r, undone, m.status, m.counts())
					}
				}
			},
			"approve what is shown": func(rt *rapid.T) {
				from := target.Draw(rt, "from")
				var all []reviewcontrol.Shown
				pending := 0
				for i := from; i < n; i++ {
					all = append(all, shown(i))
					if m.choices[i] == reviewcontrol.Pending {
						pending++
					}
				}
				done, _, err := h.service.ApproveShown(ctx, ada, id, all)
				switch {
				case m.status == reviewcontrol.Drafted, pending > 0 && m.status != reviewcontrol.InReview:
					conflict(err, "approve")
				default:
					ok(err, "approve")
					if done != pending {
						rt.Fatalf("%d approved, want %d", done, pending)
					}
					if pending > 0 {
						m.actions++
					}
					for i := from; i < n; i++ {
						if m.choices[i] == reviewcontrol.Pending {
							m.decide(i, reviewcontrol.Approve)
						}
					}
					if pending > 0 {
						m.decided()
					}
				}
			},
			"reject what is found": func(*rapid.T) {
				pending := m.counts().Pending
				out, err := h.service.RejectFound(ctx, ada, id, reviewcontrol.TargetFilter{}, n, reviewcontrol.Judgement{})
				if m.status == reviewcontrol.Drafted || pending > 0 && m.status != reviewcontrol.InReview {
					conflict(err, "reject")
					return
				}
				ok(err, "reject")
				if out.Rejected != pending || out.Left != n-pending {
					rt.Fatalf("%+v, want %d of %d", out, pending, n)
				}
				if pending > 0 {
					m.actions++
				}
				for i := range n {
					if m.choices[i] == reviewcontrol.Pending {
						m.decide(i, reviewcontrol.Reject)
					}
				}
				if pending > 0 {
					m.decided()
				}
			},
			"cancel": func(rt *rapid.T) {
				if rapid.IntRange(0, 4).Draw(rt, "seldom") > 0 && m.status != reviewcontrol.Sent {
					return
				}
				err := h.service.Cancel(ctx, ada, id, "")
				switch m.status {
				case reviewcontrol.Drafted, reviewcontrol.InReview:
					ok(err, "cancel")
					m.status = reviewcontrol.Cancelled
				case reviewcontrol.Approved:
					if m.attempted {
						conflict(err, "cancel")
						return
					}
					ok(err, "cancel")
					m.status = reviewcontrol.Cancelled
					for i, p := range m.progress {
						if p == reviewcontrol.Queued {
							m.progress[i] = reviewcontrol.NotDue
						}
					}
				default:
					conflict(err, "cancel")
				}
			},
			"finish": func(*rapid.T) {
				_, err := h.service.Finish(ctx, id)
				if _, missing := h.store.Review(ctx, id); missing != nil {
					return
				}
				ok(err, "finish")
				if m.status == reviewcontrol.Approved {
					m.finished = true
					for i, choice := range m.choices {
						if choice == reviewcontrol.Approve && m.progress[i] == reviewcontrol.NotDue {
							m.progress[i] = reviewcontrol.Queued
						}
					}
				}
			},
			"deliver": func(rt *rapid.T) {
				i := target.Draw(rt, "index")
				verdict := rapid.SampledFrom([]string{"ok", "ok", "refused", "later", "never", "perhaps", "suppressed", "crash"}).Draw(rt, "verdict")
				h.sender.to(email(i)) // nothing is left over from a delivery that was not due
				switch verdict {
				case "ok":
				case "refused":
					h.sender.to(email(i), answer{refuse: sendError(mailer.Later)})
				case "suppressed":
					_, err := h.suppressed.Add(ctx, ada.Email, email(i), "")
					ok(err, "suppress")
				case "crash":
					h.sender.to(email(i), answer{say: errors.New("crashed")})
				default:
					h.sender.to(email(i), answer{say: sendError(mailer.Verdict(verdict))})
				}
				before := len(h.sender.mails())
				again, err := h.service.Deliver(ctx, id, i)
				if verdict == "suppressed" {
					ok(h.suppressed.Remove(ctx, ada.Email, email(i), "test"), "unsuppress")
				}
				if _, missing := h.store.Review(ctx, id); missing != nil {
					return
				}
				ok(err, "deliver")
				if m.status != reviewcontrol.Approved || m.progress[i] != reviewcontrol.Queued {
					if len(h.sender.mails()) != before || again != 0 {
						rt.Fatalf("a mail left in %s, %s", m.status, m.progress[i])
					}
					return
				}
				if verdict != "suppressed" && verdict != "refused" {
					m.attempted = true
					m.attempts[i]++
				}
				m.progress[i] = map[string]reviewcontrol.DeliveryState{"ok": reviewcontrol.Delivered, "refused": reviewcontrol.Queued,
					"later": reviewcontrol.Queued, "never": reviewcontrol.Failed,
					"perhaps": reviewcontrol.Unknown, "crash": reviewcontrol.Unknown, "suppressed": reviewcontrol.Suppressed}[verdict]
				if (again > 0) != (m.progress[i] == reviewcontrol.Queued) {
					rt.Fatalf("%s: again in %s", verdict, again)
				}
				m.delivered()
			},
			"wait": func(*rapid.T) { h.clock.Advance(time.Minute) },
			"": func(rt *rapid.T) {
				r, err := h.store.Review(ctx, id)
				if err != nil {
					if code(err) != fault.NotFound || m.status != reviewcontrol.Drafted && m.status != reviewcontrol.Cancelled ||
						h.authoring.row(id).Status != string(m.status) {
						rt.Fatalf("%v in %s", err, m.status)
					}
					return
				}
				if r.Status != m.status || r.Counts != m.counts() || r.Attempted != m.attempted {
					rt.Fatalf("got %+v\nwant %s %+v attempted %v", r, m.status, m.counts(), m.attempted)
				}
				for i := range n {
					x := h.target(id, i)
					if x.Decision.Choice != m.choices[i] || x.Decision.Revision != m.revisions[i] || x.Delivery.State != m.progress[i] ||
						x.Delivery.Attempts != m.attempts[i] {
						rt.Fatalf("target %d: got %+v\nwant %s %d %s %d", i, x, m.choices[i], m.revisions[i], m.progress[i], m.attempts[i])
					}
				}
				if rows := one[int](h, `SELECT count(*) FROM review_control.decisions WHERE draft_id = $1`, int64(id)); rows != m.history {
					rt.Fatalf("%d decisions, want %d", rows, m.history)
				}
				ok(h.service.Sync(ctx, id), "sync")
				row, c := h.authoring.row(id), m.counts()
				if row.Status != string(m.status) || row.Decisions["approved"] != c.Approved || row.Decisions["pending"] != c.Pending ||
					row.Delivery["sent"] != c.Sent || row.Delivery["failed"] != c.Failed || row.Delivery["unknown"] != c.Unknown {
					rt.Fatalf("authoring has %+v, want %s %+v", row, m.status, c)
				}
			},
		})
	})
}
