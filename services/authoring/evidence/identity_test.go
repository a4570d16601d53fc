package evidence_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"hub.internal/services/authoring/evidence"
)

// TestStray: a context is held to the rows of its own partner, and only what is certainly another's is told.
func TestStray(t *testing.T) {
	t.Parallel()
	known := evidence.Known{}
	known.Add(7, []byte(`{"brand_id":31,"brand_name":"라온담에센셜","president":"조영희","partner_id":7,"partner_name":"㈜라온담","category_name":"뷰티",
		"contact":{"name":"조영희"}}`))
	known.Add(9, []byte(`{"brand_id":32,"brand_name":"바다나무에센셜","president":"김민지","partner_id":9,"partner_name":"(주)바다나무"}`))
	known.Add(9, []byte(`{"brand_id":33,"brand_name":"Sea Tree"}`))
	known.Add(11, []byte(`{"brand":{"brand_id":34,"name":"봄"},"partner":{"partner_id":11,"partner_name":"봄날"},"campaigns":[{}]}`))
	known.Add(13, []byte(`{"campaign_id":51,"name":"여름 캠페인","partner_id":13}`))
	owners := known.Owners()
	for context, want := range map[string]string{
		`{}`: "", `{"brand_name":"라온담에센셜","fill_rate":0.9}`: "", `{"brandName":"라온담 에센셜"}`: "", `{"brand":"라온담"}`: "",
		`{"brand":"Raondam Essential"}`: "", `{"brand":"아무 데도 없는"}`: "", `{"partner":"주식회사 라온담"}`: "", `{"company":"라온담"}`: "",
		`{"brand_id":31,"partner_id":7}`: "", `{"brandId":"31"}`: "", `{"campaign_id":51}`: "", `{"campaign_name":"여름 캠페인"}`: "",
		`{"category_name":"바다나무에센셜"}`: "", `{"competitor":"바다나무에센셜"}`: "", `{"brand":["바다나무에센셜"]}`: "", `{"brand_id":"BR-31"}`: "",
		`{"partner_id":null}`: "", `{"contact_name":"김민지"}`: "",
		norm.NFD.String(`{"브랜드명":"라온담에센셜","company":"주식회사 라온담"}`): "",
		`{"brand_name":"바다나무에센셜"}`:                                "brand_name 바다나무에센셜 9 라온담에센셜",
		norm.NFD.String(`{"브랜드명":"바다나무에센셜"}`):                     norm.NFD.String("브랜드명 바다나무에센셜 9 ") + "라온담에센셜",
		`{"brand":"sea tree","offer":3}`:                          "brand sea tree 9 라온담에센셜",
		`{"브랜드명":"봄"}`:                                            "브랜드명 봄 11 라온담에센셜",
		`{"company_name":"바다나무"}`:                                 "company_name 바다나무 9 ㈜라온담",
		`{"president":"김민지"}`:                                     "president 김민지 9 조영희",
		`{"brand_id":33}`:                                         "brand_id 33 9 31",
		`{"brand_id":999}`:                                        "brand_id 999 0 31",
		`{"partnerId":9}`:                                         "partnerId 9 0 7",
		`{"brand":{"brand_id":34,"name":"봄"}}`:                    "brand_id 34 11 31",
	} {
		got := ""
		if x := known.Stray(7, evidence.Facts([]byte(context)), owners); x != nil {
			got = fmt.Sprint(x.Name, " ", x.Value, " ", x.Owner, " ", x.Own)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", context, got, want)
		}
	}
	for context, want := range map[string]bool{`{"campaign":"여름 캠페인"}`: false, `{"campaign_id":52}`: true, `{"partner_id":13}`: false} {
		if got := known.Stray(13, evidence.Facts([]byte(context)), owners) != nil; got != want {
			t.Errorf("%s: %v", context, got)
		}
	}
	if list := evidence.Facts([]byte(`{"brand":`)); len(list) != 0 || known.Stray(99, evidence.Facts([]byte(`{"brand":"봄"}`)), owners) != nil {
		t.Error(list)
	}
}

// TestManyRowsOfOnePartner: names of which a partner has too many are not compared by their parts, and ids are, however many.
func TestManyRowsOfOnePartner(t *testing.T) {
	t.Parallel()
	known := evidence.Known{}
	for i := range 1000 {
		known.Add(7, fmt.Appendf(nil, `{"campaign_id":%d,"name":"campaign %d","partner_id":7}`, 1000+i, i))
	}
	known.Add(9, []byte(`{"campaign_id":1,"name":"another","partner_id":9}`))
	if list, all := known.Names(7); list != nil || all {
		t.Errorf("%d names", len(list))
	}
	owners := known.Owners()
	for context, want := range map[string]string{
		`{"campaign_id":1500}`: "", `{"campaign":"campaign 7"}`: "", `{"campaign":"another"}`: "", `{"campaign_id":1}`: "1 9 1000",
	} {
		got := ""
		if x := known.Stray(7, evidence.Facts([]byte(context)), owners); x != nil {
			got = fmt.Sprint(x.Value, " ", x.Owner, " ", x.Own)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", context, got, want)
		}
	}
}

// TestNoNameIsThatLong: what has more characters than a name may have says nothing, in a row as in a context, since each target is
// compared with it.
func TestNoNameIsThatLong(t *testing.T) {
	t.Parallel()
	known, longest := evidence.Known{}, strings.Repeat("가", 200)
	known.Add(7, fmt.Appendf(nil, `{"brand_name":"%s","partner_name":"%s가","campaign_id":%s}`, longest, longest, strings.Repeat("1", 201)))
	if list, all := known.Names(7); len(list) != 1 || list[0] != longest || !all {
		t.Errorf("%d names", len(list))
	}
	if list := evidence.Facts([]byte(`{"brand":"` + longest + `가"}`)); len(list) != 0 {
		t.Errorf("%d facts", len(list))
	}
}
