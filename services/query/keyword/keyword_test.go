package keyword_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"hub.internal/services/query/keyword"
)

func TestPlain(t *testing.T) {
	for written, want := range map[string]string{"(주)이음솜 코퍼레이션": "이음솜코퍼레이션", "㈜이음솜": "이음솜", "이음솜 주식회사": "이음솜", " 라온 ": "라온",
		"%라온%": "라온", "라온*": "라온", "주식회사": "", "Sakura": "Sakura", norm.NFD.String("주식회사 라온é"): "라온é"} {
		if got := keyword.Plain(written); got != want {
			t.Errorf("%q is %q, want %q", written, got, want)
		}
	}
}

func TestNothing(t *testing.T) {
	six := []string{"a", "b", "c", "d", "e", "f"}
	for _, c := range []struct {
		keyword string
		offset  int64
		named   []string
		want    string
	}{
		{"x", 0, nil, ""}, {"x", 50, six, "offset: nothing is at offset 50"}, {"%x%", 0, nil, `keyword: the keyword is part`},
		{"x", 0, six, "a, b, c, d, e and more"}, {"x", 0, six[:2], "also in a, b"},
	} {
		got := ""
		for _, w := range keyword.Nothing(c.keyword, c.offset, c.named) {
			got += w.Rule + ": " + w.Message
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %s", c, got)
		}
	}
}
