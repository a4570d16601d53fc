package body_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"hub.internal/services/review-control/body"
)

// TestLayouts: what was queued with the first layout stays as it was to the byte; the next keeps words whole, lets long addresses break,
// and says the language.
func TestLayouts(t *testing.T) {
	t.Parallel()
	const long = "<p>https://shop.example/spring?id=1&amp;of=mail</p><p>1,200,000 KRW, info@shop.example</p>"
	first := body.Clean("", long, true, body.BreakAnywhere).HTML
	if !strings.Contains(first, `lang="und"`) || !strings.Contains(first, "overflow-wrap:anywhere") || !strings.Contains(first, long) {
		t.Errorf("the first layout is %s", first)
	}
	for content, wants := range map[string][]string{
		long: {`lang="und"`, "overflow-wrap:break-word", "https://shop.<wbr>example/spring?<wbr>id=1&amp;of=<wbr>mail",
			"1,200,000 KRW, info@shop.example"},
		`<p>봄 캠페인에 초대합니다, Kim님</p>`:                                                        {`<html lang="ko">`},
		`<p>Dear 김민수, we would like to invite you to our spring campaign</p>`:              {`<html lang="und">`},
		`<a href="https://shop.example/a/long/path?of=an&amp;address=that-stays">Look</a>`: {`path?of=an&amp;address=that-stays"`, ">Look</a>"},
	} {
		for _, want := range wants {
			if got := body.Clean("", content, true, body.WholeWords).HTML; !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
	}
}

// TestBreaksLetNoMailGrow: whoever writes nothing but marks makes it half as large again at most; other letters have no breaks.
func TestBreaksLetNoMailGrow(t *testing.T) {
	t.Parallel()
	for content, most := range map[string]float64{
		strings.Repeat("/", 100_000): 1.5,
		strings.Repeat("a/", 50_000): 1.5,
		strings.Repeat("할인율12.5%와가격1,200,000원을안내합니다.", 1000): 1,
	} {
		first, next := body.Clean("", content, true, body.BreakAnywhere).HTML, body.Clean("", content, true, body.WholeWords).HTML
		if grown := float64(len(next)-100) / float64(len(first)); grown > most {
			t.Errorf("%.40s grows %.2f times", content, grown)
		}
	}
}

// TestBreaksChangeNoText: whatever a body has, a mail says the same in both layouts, its links lead to the same addresses, and the only
// elements more are those that let a word break.
func TestBreaksChangeNoText(t *testing.T) {
	t.Parallel()
	read := func(document string) (says string) {
		root, err := html.Parse(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.Type == html.TextNode {
				says += n.Data
			} else if n.Data != "wbr" && n.Data != "html" && n.Data != "body" {
				says += "<" + n.Data
				for _, a := range n.Attr {
					says += " " + a.Key + "=" + a.Val
				}
			}
		}
		return says
	}
	rapid.Check(t, func(rt *rapid.T) {
		content := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"<p>", "<b>", "<pre>", "<td>", "<table>", "</table>", "&amp;", "&lt;",
			"&nbsp;", "<a href=\"https://shop.example/a.b/c\">", "</a>", "/", "?", "=", ".", "@", ";", "a-very-long-word-of-the-mail", "x",
			" ", "\n", "한", "&#x2f;", "<br>", "<style>a/b</style>"}), 1, 20).Draw(rt, "parts"), "")
		first, next := body.Clean("", content, true, body.BreakAnywhere), body.Clean("", content, true, body.WholeWords)
		if a, b := read(first.HTML), read(next.HTML); a != b || first.Text != next.Text {
			rt.Fatalf("%q\nsays %q\nand then %q", content, a, b)
		}
	})
}
