package reviewcontrol_test

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"hub.internal/pkg/web/i18n"
	"hub.internal/services/review-control/triage"
)

// TestKorean reads pages in Korean: what stands in templates, what the code says, and what it says after a form.
func TestKorean(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	korean := []string{"Accept-Language", "ko"}
	id := o.inspected(4, func(d *draftRow) {
		d.targets[1].HTML, d.targets[1].Body = true, `<a href="https://evil.com">bank.com</a>`
	})
	page := "/drafts/" + id.String()
	has(t, o.get("/drafts", korean...), `<html lang="ko">`, "<h1>초안</h1>", "내 결정 대기 <span", "4통 중 4통 남음", "1분째 대기 중",
		"주의 표시 1</span>", ">메일 4통</span>")
	has(t, o.get("/drafts?status=cancelled", korean...), "취소된 초안이 없습니다", "내 결정을 기다리는 초안 보기")
	has(t, o.get(page, korean...), "세그먼트에 보내는 메일 4통", ">결정 대기</span>", "보낸 사람</span>", "읽은 메일 승인: <span data-shown-count>전체</span>",
		">승인</button>", "반려 사유", "사실이 아닌 내용", `"{1} selected":"{1}통 선택됨"`, "변형 1")
	has(t, o.get(page+"/targets/1", korean...), "오해를 부르는 링크", "표시된 호스트와 실제로 연결되는 호스트가 다른 링크가 있습니다.", "오해 소지 1개")
	has(t, o.get(page+"/variants/1", korean...), "<h1>변형 1</h1>", "자리 표시자 1개만 서로 다른 메일 3통", "3통 모두 반려")
	has(t, o.get(page+"/cancel", korean...), "이 초안을 취소할까요?", "메일 4통은 모두 발송되지 않습니다.")
	w := o.post(page+"/decide", form(t, o.get(page), 0, "rejected", ""), korean...)
	if got := o.flash(w); got != "메일 1번을 반려했습니다." {
		t.Errorf("%q", got)
	}
	has(t, o.get(page, korean...), "마지막 결정: 메일 1통 반려.", "되돌리기")

	const list = "/admin/suppressions"
	has(t, o.get(list, korean...), "목록에 주소가 없습니다", "한 줄에 주소 하나", ">추가</button>")
	if got := o.flash(o.post(list, url.Values{"email": {"bo@partner.example"}}, korean...)); got != "bo@partner.example 주소를 목록에 추가했습니다." {
		t.Errorf("%q", got)
	}
	has(t, o.get(list+"/remove?email=bo@partner.example", korean...), "수신 거부 목록에서 삭제", "목록에 오른 때")
	has(t, o.send(visitor, "GET", "/unsubscribe/none", "", "", korean...).Body.String(), "사용할 수 없는 링크입니다", `<html lang="ko">`)
}

// TestFlagsInKorean: the catalogue has the sentence of each flag, which triage says in English.
func TestFlagsInKorean(t *testing.T) {
	words, err := i18n.Load(i18n.Languages[1], os.DirFS("console/pages"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range triage.Flags() {
		says := f.Says()
		if says = strings.ToUpper(says[:1]) + says[1:] + "."; !words.Has(says) {
			t.Errorf("%s: %q", f.Name(), says)
		}
	}
}

// TestNamesAreMarkedWithTheirLanguage: by the letters of the name, or by how the country of the recipient writes Chinese characters.
func TestNamesAreMarkedWithTheirLanguage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	names := []string{"김민수", "Kim Min-su", "山田さくら", "王小明", "王小明"}
	id := o.inspected(len(names), func(d *draftRow) {
		for i, name := range names {
			d.targets[i].ToName = name
		}
		d.targets[3].Snapshot = []byte(`{"country_code":"TW"}`)
		d.targets[0].Subject = "봄 캠페인"
	})
	for i, want := range []string{`<bdi lang="ko">김민수`, `<bdi>Kim Min-su`, `<bdi lang="ja">山田さくら`, `<bdi lang="zh-Hant">王小明`, `<bdi>王小明`} {
		page := o.get(fmt.Sprintf("/drafts/%s/targets/%d", id, i))
		_, head, _ := strings.Cut(page, `<h2 id="name">`)
		has(t, head[:strings.Index(head, "</h2>")], want)
		has(t, page, `<span class="subjectline"><bdi lang="ko">봄 캠페인</bdi>`)
	}
}
