package body_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hub.internal/services/review-control/body"
)

func TestMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		isHTML  bool
		values  []string
		want    string
	}{
		"a text":           {"Dear Kim,\nGlow costs 5.", false, []string{"Kim", "5"}, "Dear <mark>Kim</mark>,"},
		"markup as text":   {"a <b> c", false, []string{"<b>"}, "a <mark>&lt;b&gt;</mark> c"},
		"HTML":             {"<p>Dear <b>Kim</b></p>", true, []string{"Kim"}, "<b><mark>Kim</mark></b>"},
		"escaped":          {"<p>A &amp; B</p>", true, []string{"A &amp; B"}, "<mark>A &amp; B</mark>"},
		"in a link's text": {`<a href="https://a.example/kim">kim</a>`, true, []string{"kim", "kim"}, "<mark>kim</mark></a>"},
		"empty":            {"<p>Dear </p>", true, []string{""}, "<p>Dear </p>"},
	} {
		var spans [][2]int
		at := 0
		for _, v := range c.values {
			from := at + strings.Index(c.content[at:], v)
			at = from + len(v)
			spans = append(spans, [2]int{from, at})
		}
		got, same := body.Marked(c.content, c.isHTML, body.Newest, spans)
		cleaned := body.Clean("", c.content, c.isHTML, body.Newest)
		plain := body.Preview(cleaned.HTML, cleaned.Text)
		_, rest, _ := strings.Cut(got, "</head>")
		if !same || !strings.Contains(got, c.want) || !strings.HasSuffix(plain, strings.NewReplacer("<mark>", "", "</mark>", "").Replace(rest)) {
			t.Errorf("%s: %t %s", name, same, got)
		}
	}
}

// TestMarksChangeNothing: a marked preview is the preview but for its marks, or there is none.
func TestMarksChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"<p>", "</p>", "<a href=\"https://a.example/", "\">", "</a>", "<style>", "</style>",
			"<!--", "-->", "x", " ", "&amp;", "<img src=\"", "한", "<script>", "\u202e"}), 1, 12).Draw(rt, "parts")
		content := strings.Join(parts, "")
		from := rapid.IntRange(0, len(content)).Draw(rt, "from")
		spans := [][2]int{{from, rapid.IntRange(from, len(content)).Draw(rt, "to")}}
		isHTML := rapid.Bool().Draw(rt, "html")
		got, same := body.Marked(content, isHTML, body.Newest, spans)
		cleaned := body.Clean("", content, isHTML, body.Newest)
		_, plain, _ := strings.Cut(body.Preview(cleaned.HTML, cleaned.Text), "</head>")
		_, rest, _ := strings.Cut(got, "</head>")
		if same && strings.NewReplacer("<mark>", "", "</mark>", "").Replace(rest) != plain {
			rt.Fatalf("%q in %v: %q", content, spans, got)
		}
	})
}
