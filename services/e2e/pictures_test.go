package e2e_test

import (
	"encoding/json"
	"flag"
	"path/filepath"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"

	"hub.internal/pkg/hubtest"
)

var takePictures = flag.Bool("pictures", false, "take the pictures of the console that the READMEs show")

// TestPictures takes the pictures of the READMEs from the sample data: the desk of a reviewer, and the same draft on a phone, in both
// languages. Run it with -pictures where Chromium has a font for Korean (fonts-noto-cjk).
func TestPictures(t *testing.T) {
	if !*takePictures {
		t.Skip("it changes files of the repository; -pictures takes them")
	}
	s := start(t, options{})
	brands := map[string]string{}
	for _, c := range s.contacts(t, 12) {
		var brand struct {
			Name string `json:"brand_name"`
		}
		if err := json.Unmarshal(c.Brand, &brand); err != nil {
			t.Fatal(err)
		}
		brands[c.Email] = brand.Name
	}
	id := s.queued(t, s.draft(t, draftOptions{
		name: "봄 캠페인 초대", targets: 12, senderName: "Hub 파트너십 팀",
		subject: "{{toName}}님, {{context.brand}} 봄 캠페인에 함께해 주세요",
		body: `<h2 style="color:#2b50c8">{{context.brand}}의 봄을 준비합니다</h2><p>안녕하세요, {{toName}}님.</p>` +
			`<p>지난 캠페인에서 {{context.brand}}에 많은 분들이 신청해 주셨습니다. 올봄에는 체험단을 <b>40명</b>까지 모집할 수 있습니다.</p>` +
			`<ul><li>모집 기간: 3월 2일 – 3월 15일</li><li>체험단: 20–40명</li><li>비용: 무료</li></ul>` +
			`<p><a href="https://hub.example/spring">캠페인 만들기</a></p><p>감사합니다.<br>Hub 파트너십 팀 드림</p>`,
		each: func(_ int, target map[string]any) {
			target["context"] = map[string]any{
				"brand": brands[target["toEmail"].(string)], "why": "최근 90일 동안 새 캠페인이 없습니다.",
			}
		},
	}))
	p := s.signedIn(t, s.person("Ada Lovelace", "reviewer"), "/drafts/"+id)
	pictures := filepath.Join(hubtest.Root(t), "services", "review-control", "pictures")
	for language, suffix := range map[string]string{"en": "", "ko": "-ko"} {
		p.speaks(language)
		for name, width := range map[string]int64{"desk": 1280, "phone": 390} {
			p.Look("light", width)
			p.Open("/drafts/" + id + "/targets/2")
			p.Settle()
			p.write(filepath.Join(pictures, name+suffix+".png"), do(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{}).Data)
		}
	}
}
