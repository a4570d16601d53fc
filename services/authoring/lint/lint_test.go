package lint_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"hub.internal/services/authoring/lint"
)

// right are bodies as people write them: nothing of them is a mistake.
var right = []string{
	"안녕하세요, {{toName}}님.\n\n라온담에센셜의 지난 캠페인은 모집 30명에 212명이 신청했습니다.\n감사합니다.",
	"※ 유의사항\n- 배송은 2~3일 걸립니다.\n* 재고 소진 시 조기 마감\n1) 신청 2) 선정 3) 발송\n■ 일정: 12/1 ~ 12/15\n▶ 자세히 보기: https://hub.example/p/7",
	"#뷰티 #신상 #체험단 #1위 브랜드와 함께하세요",
	"당첨자: 김**, 이**, 박** (010-****-1234, 02-****-5678)\n문의: hub**@hub.example, lee**@hub.example",
	"당첨자: **수 님, **희 님, **진 님",
	"가격은 29,900원** 입니다.\n** 부가세 별도, 배송비 3,000원**\n*** 마감 임박 ***",
	"[공지] 12월 체험단 모집 안내 (선착순)\n[Hub] (광고) 2026년 결산 [자세히](아래 참고)",
	"할 일(To do) 목록을 정리해 드립니다. TODO 앱과 연동됩니다. todo 리스트도 무료입니다.",
	"OFERTA: TODO INCLUIDO por 99 €. Venue: TBD. Speaker (TBD).",
	"Dear {{toName}},\n\nYour last campaign filled 87% of its seats - thank you!\n\n* Free shipping\n* No fees until 2027\n\nBest,\nHub",
	"Save 5 * 3 = 15 and 2 ** 3 is 8. Issue #12 is solved, and #1 in sales. C# and F# developers welcome.",
	"--- Original message ---\n> Hello,\n> ### is our hashtag style: #go#fast\n=====\n____________\nsignature",
	`<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><style>#a{color:#fff} .b > # {}</style></head>` +
		`<body style="color:#333333"><p><b>특가</b> 안내</p><p>1* 2** 3***</p><a href="https://hub.example/#top">보기</a>` +
		`<img src="https://hub.example/a.png" alt="#1"></body></html>`,
	"<p>Prices from 10,000 KRW* per month</p>\n<p>* VAT excluded. ** Terms apply.</p>\n<p>#beauty #new</p>",
	"저희 사이트는 https://hub.example 입니다. (http 가 아닌 https 로 접속하세요.)",
	"Lorem 브랜드의 Ipsum 라인 신제품을 소개합니다.",
}

func TestRightBodiesStaySilent(t *testing.T) {
	t.Parallel()
	for _, body := range right {
		if found := lint.Markdown(body) + lint.Unfinished(body) + lint.Insecure(body, strings.Contains(body, "<p")); found != "" {
			t.Errorf("%q: %q", body, found)
		}
	}
}

func TestSlipsAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"# 제목\n**굵게** [링크](https://hub.example)":    "# 제목",
		"안녕하세요\n\n## 12월 혜택\n본문":                    "## 12월 혜택",
		"이번 **특가**를 놓치지 마세요":                        "**특가**",
		"It is **now or never**.":                   "**now or never**",
		"(**중요**)":                                  "**중요**",
		"**A**, **B**":                              "**A**",
		"자세한 내용은 [여기](https://hub.example/a?b=1)에서": "[여기](https://hub.example/a?b=1)",
		"[Book]({{context.url}})":                   "[Book]({{context.url}})",
		"[mail us](mailto:a@hub.example)":           "[mail us](mailto:a@hub.example)",
		"```html\n<p>a</p>\n```":                    "```html",
		"<p># 제목</p><p>본문</p>":                      "# 제목",
		"<p><b>a</b> **b** c</p>":                   "**b**",
		"# " + strings.Repeat("가", 100):             "# " + strings.Repeat("가", 58) + "…",
	} {
		if got := lint.Markdown(body); got != want {
			t.Errorf("%q: %q", body, got)
		}
	}
	for text, want := range map[string]string{
		"Hi,\nTODO: insert text\nBye": "TODO: insert text", "[TODO]": "[TODO]", "(TODO 링크)": "(TODO 링크)", "a\n TODO \nb": "TODO",
		"Lorem ipsum dolor sit": "Lorem ipsum dolor sit", "<p>LOREM IPSUM</p>": "LOREM IPSUM</p>", "FIXME: x": "FIXME: x",
		"할인율 TODO： 확인": "TODO： 확인",
	} {
		if got := lint.Unfinished(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	for _, c := range []struct {
		body string
		html bool
		want string
	}{
		{"보기: http://hub.example/a, 끝", false, "http://hub.example/a,"},
		{`<p><a href="http://hub.example/a">a</a></p>`, true, "http://hub.example/a"},
		{`<p><img SRC=http://hub.example/a.png></p>`, true, "http://hub.example/a.png"},
		{`<p xmlns="http://www.w3.org/1999/xhtml">http://hub.example</p>`, true, ""},
	} {
		if got := lint.Insecure(c.body, c.html); got != c.want {
			t.Errorf("%q: %q", c.body, got)
		}
	}
	for email, want := range map[string]string{"me@gmail.com": "gmail.com", "kim@NAVER.com": "naver.com", "a@mail.naver.com": "",
		"hub@hub.example": "", "a@navercorp.com": "", "": ""} {
		if got := lint.Private(&email); got != want {
			t.Errorf("%s: %q", email, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		known  []string
		unlike bool
	}{
		{"전혀다른이름", []string{"조영희"}, true}, {"김철수", []string{"조영희"}, true}, {"조영희", []string{"조영희"}, false},
		{"조영희님", []string{"조영희"}, false}, {"조 영희 대표님", []string{"조영희"}, false}, {"영희", []string{"조영희"}, false},
		{"라온담에센셜 조영희 팀장님", []string{"조영희"}, false}, {"담당자님", []string{"조영희"}, false}, {"마케팅팀", []string{"조영희"}, false},
		{"Younghee Cho", []string{"조영희"}, false}, {"", []string{"조영희"}, false}, {"조영희", nil, false}, {"조영희", []string{""}, false},
		{"김 민지", []string{"김철수"}, true}, {"조 대리님", []string{"조영희"}, false}, {"이준호", []string{"김민지", "이준호"}, false},
		{"Minji Kim", []string{"Kim, Min-ji"}, false}, {"M. Kim", []string{"Minji Kim"}, false}, {"Ms. Kim", []string{"Minji Kim"}, false},
		{"Ada Lovelace", []string{"Grace Hopper"}, true}, {"Marketing Team", []string{"Grace Hopper"}, false},
		{"grace", []string{"Grace Hopper"}, false},
		{"田中 太郎", []string{"佐藤 花子"}, true}, {"佐藤様", []string{"佐藤 花子"}, false}, {"😀", []string{"조영희"}, false},
		{"Contact 1", []string{"Contact 2"}, false}, {norm.NFD.String("조영희"), []string{"조영희"}, false},
		{"조영희 팀장님", []string{norm.NFD.String("조영희")}, false}, {norm.NFD.String("김철수"), []string{"조영희"}, true},
	} {
		if got := lint.Unlike(c.name, c.known); got != c.unlike {
			t.Errorf("%q and %q: %v", c.name, c.known, got)
		}
	}
}
