package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"

	"hub.internal/pkg/hubtest"
)

const (
	// mostShift is how much of a window may move by itself: a fifth of what is taken for good.
	mostShift = 0.02
	// mailBegins is at how many pixels from the top of the window a mail has begun.
	mailBegins = 200
)

// shifts is how much has moved in the window since the page was opened, or since the last question, and what.
func (p *page) shifts() (sum float64, what []string) {
	p.t.Helper()
	var moved struct {
		Sum  float64
		What []string
	}
	p.Evaluate(`(async () => {
		const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		await drawn();
		if (!window.shifted) {
			window.shifted = [];
			window.shiftedBy = new PerformanceObserver((list) => window.shifted.push(...list.getEntries()));
			window.shiftedBy.observe({ type: "layout-shift", buffered: true });
			await drawn(); // what was kept until then is handed over by itself
		}
		window.shifted.push(...window.shiftedBy.takeRecords());
		const moved = window.shifted.splice(0);
		return {
			Sum: moved.reduce((all, e) => all + e.value, 0),
			What: moved.flatMap((e) => e.sources.map((s) => (s.node?.outerHTML ?? "").slice(0,
				60) + " from " + s.previousRect.y + " to " + s.currentRect.y)),
		};
	})()`, &moved)
	return moved.Sum, moved.What
}

// crowded is a draft of which there is much to say.
func (s *suite) crowded(t testing.TB) string {
	t.Helper()
	const misleading = `<p><a href="https://evil.example/login">https://company.example/login</a></p>`
	id := s.draft(
		t,
		draftOptions{
			name:       "Frühling 봄 春 — an offer with a rather long name, to see what becomes of those when there is little room",
			targets:    8,
			madeUp:     true,
			createdBy:  "campaign-agent-with-a-name-that-nobody-can-break-anywhere",
			senderName: "Kim of the shop",
			snapshot:   evidenceOfEverything,
			each: func(i int, target map[string]any) {
				switch i {
				case 1:
					target["toName"], target["subject"] = "김민아 님께 드리는 아주 긴 이름의 수신자",
						"안녕하세요, 봄맞이 행사에 초대합니다 — 지금 바로 확인해 보세요"
					target["body"] = "<p>안녕하세요 김민아 님,</p><p>봄맞이 행사를 준비했습니다.</p>" + misleading
				case 2:
					target["body"] = `<p><img src="https://cdn.example/banner.png" alt="Our spring collection" width="600" height="200"></p><p>Look ` +
						`at <img src="https://tracker.example/p.gif" width="1" height="1"></p>` +
						misleading + `<p style="color:#fff">white on white</p><script>x</script>`
				case 3:
					delete(target, "toName")
					target["subject"], target["body"] = strings.Repeat("A subject of many words ", 5), "<p>Hello!</p>"
					target["toEmail"] = "an.address.that.is.as.long.as.they.come.and.cannot.be.broken@a-company-with-a-long-name.example"
				}
			},
		},
	)
	s.must(t, "queue_for_review", map[string]any{
		"draftId": id,
		"actor":   "campaign agent",
		"note": "Spring campaign, second wave: the first 8 of 400 quiet partners. Look at the Korean ones with care; " + strings.Repeat(
			"and more, ",
			60,
		) + "\nThanks!",
	}, nil)
	hubtest.Eventually(t, "its mails have been looked through", func() bool {
		return query[int](t, s, `SELECT inspected FROM review_control.reviews WHERE draft_id = $1::bigint`, id)[0] == 8
	})
	return id
}

// standsStill opens mails of which there is much to say: they begin near the top of the window, and nothing moves
// while a page comes, nor when a decision brings the next mail.
func (s *suite) standsStill(t *testing.T, ada person, width int64) {
	id := s.crowded(t)
	p := s.window(t, ada)
	// A page that comes in pieces is drawn in pieces, and what comes late must not move what is there.
	do(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{DownloadThroughput: 20_000, UploadThroughput: -1}}})
	for _, scheme := range []string{"light", "dark"} {
		p.Look(scheme, width)
		for i := range 4 {
			p.Open(fmt.Sprintf("/drafts/%s/targets/%d", id, i))
			var top float64
			p.Evaluate(`document.querySelector("article.target").getBoundingClientRect().top`, &top)
			if sum, what := p.shifts(); sum > mostShift || top > mailBegins {
				t.Errorf("%s, mail %d: begins at %.0f px, and %.3f of the window moves: %q", scheme, i, top, sum, what)
			}
			p.Sees("Spring campaign, second wave")
			if os.Getenv("HUB_SCREENS") != "" {
				p.write(filepath.Join(hubtest.Root(t), ".hub", "e2e", "screens", fmt.Sprintf("mail-%d-%s-%d.png", i, scheme, width)),
					do(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{}).Data)
			}
		}
		p.Button("Approve").Click()
		p.comes("t-4")
		if sum, what := p.shifts(); sum > mostShift {
			t.Errorf("%s: when a decision brings the next mail %.3f of the window moves: %q", scheme, sum, what)
		}
		p.Button("Undo").Click()
		p.Sees("Undone: 1 mail is as it was before.")
	}
}
