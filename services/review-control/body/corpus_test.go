package body

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// vectors reads the hostile bodies; the head of the file tells its form.
func vectors(t testing.TB) map[string]string { return corpus(t, "xss.tsv") }

// corpus reads bodies by their names.
func corpus(t testing.TB, name string) map[string]string {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\f`, "\f", `\0`, "\x00")
	list := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, body, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, twice := list[name]; !ok || twice || strings.Contains(body, "\t") {
			t.Fatalf("not a name, a tab and a body, or the name is there twice: %q", line)
		}
		list[name] = unescape.Replace(body)
	}
	return list
}

func TestSafeLeavesNothingOfAnAttack(t *testing.T) {
	list := vectors(t)
	if len(list) < 60 {
		t.Fatalf("%d vectors", len(list))
	}
	for name, body := range list {
		for _, form := range []string{body, "<div>before " + body + " after</div>", "<table><tr><td>" + body, "<p title='" + body + "'>", "<svg>" + body, "<!--" + body} {
			if problem := harm(Safe(form)); problem != "" {
				t.Errorf("%s: %s\nbody: %q\nsafe: %q", name, problem, form, Safe(form))
			}
		}
	}
}

// harm says what in a page's fragment could run, fetch or break out; empty if nothing can.
func harm(fragment string) string {
	for _, scripting := range []bool{true, false} {
		context := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
		nodes, err := html.ParseFragmentWithOptions(strings.NewReader(fragment), context, html.ParseOptionEnableScripting(scripting))
		if err != nil {
			return err.Error()
		}
		for _, root := range nodes {
			for n := range selfAndBelow(root) {
				if problem := harmOf(n); problem != "" {
					return problem
				}
			}
		}
	}
	return ""
}

func selfAndBelow(root *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		if !yield(root) {
			return
		}
		for n := range root.Descendants() {
			if !yield(n) {
				return
			}
		}
	}
}

func harmOf(n *html.Node) string {
	switch n.Type {
	case html.CommentNode:
		return "a comment"
	case html.TextNode:
		return ""
	}
	if n.Namespace != "" || !slices.Contains(kept, n.Data) {
		return "element " + n.Data
	}
	for _, a := range n.Attr {
		low := strings.ToLower(a.Val)
		switch a.Key {
		case "href":
			if n.Data != "a" || !strings.HasPrefix(low, "https://") && !strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "mailto:") && !strings.HasPrefix(low, "tel:") {
				return "href " + a.Val
			}
			if value(n, "target") != "_blank" || !strings.Contains(value(n, "rel"), "noopener") {
				return "a link that opens in the page itself"
			}
		case "src":
			if n.Data != "img" || !strings.HasPrefix(low, "data:image/") || strings.Contains(low, "svg") {
				return "src " + a.Val
			}
		case "style":
			for _, bad := range []string{"url(", "image(", "image-set(", "src(", "import", "expression", "binding", "behavior", "position", "var(", "attr(", `\`, "/*", "{", "}", "<", "@", "--", "z-index"} {
				if strings.Contains(low, bad) {
					return "style " + a.Val
				}
			}
		case "alt", "title", "aria-label", "lang", "dir", "align", "valign", "bgcolor", "color", "face", "size", "width", "height", "border",
			"cellpadding", "cellspacing", "hspace", "vspace", "colspan", "rowspan", "span", "start", "value", "nowrap", "noshade", "reversed",
			"open", "type", "target", "rel":
		default:
			return "attribute " + a.Key
		}
	}
	return ""
}

func TestSafeKeepsTheMarkupOfMails(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"text":           {"Hello & <b>welcome</b>", "Hello &amp; <b>welcome</b>"},
		"table":          {`<table width="600" cellpadding=0 bgcolor="#ffffff"><tr><td align=center>x</td></tr></table>`, `<table width="600" cellpadding="0" bgcolor="#ffffff"><tbody><tr><td align="center">x</td></tr></tbody></table>`},
		"link":           {`<a href="https://hub.example/a?b=c&amp;d=e" onclick=x target=_top>go</a>`, `<a href="https://hub.example/a?b=c&amp;d=e" target="_blank" rel="noopener noreferrer nofollow">go</a>`},
		"style":          {`<p style="color:#FF0000; font: bold 12px/1.5 'Malgun Gothic', sans-serif; position:fixed; background:url(x)">x</p>`, `<p style="color: #ff0000; font: bold 12px/1.5 &#39;malgun gothic&#39;, sans-serif">x</p>`},
		"important":      {`<p style="display:none !important">x</p>`, `<p style="display: none">x</p>`},
		"own picture":    {`<img alt="Logo" src="data:image/png;base64,iVBORw0KGgo=">`, `<img alt="Logo" src="data:image/png;base64,iVBORw0KGgo=">`},
		"remote picture": {`<img alt="Logo" src="https://x.example/logo.png">`, `<img alt="Logo">`},
		"body colors":    {`<body bgcolor="#000000" style="color:#fff"><p>x</p></body>`, `<div bgcolor="#000000" style="color: #fff"><p>x</p></div>`},
		"unknown":        {`<x-y>kept <nobr>text</nobr></x-y>`, `kept text`},
		"Korean":         {`<p>안녕하세요</p>`, `<p>안녕하세요</p>`},
	} {
		got := Safe(c.body)
		if !strings.HasPrefix(c.want, "<div bgcolor") {
			got = strings.TrimSuffix(strings.TrimPrefix(got, "<div>"), "</div>")
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// What follows an unbalanced tag is still shown: a preview must not lose text.
func TestSafeLosesNoText(t *testing.T) {
	for _, body := range []string{
		"</noscript><noscript></noscript>SEEN", "</script>SEEN", "<iframe></iframe></iframe>SEEN", "</object><object></object>SEEN",
		"<font><p>SEEN", "</div></div></table>SEEN", "<noscript>SEEN</noscript>", "<form><fieldset><legend>SEEN</legend></fieldset></form>",
		strings.Repeat("<div>", 2000) + "SEEN", strings.Repeat("<b>", 2000) + "SEEN",
	} {
		if !strings.Contains(Safe(body), "SEEN") {
			t.Errorf("%.60q: %.200q", body, Safe(body))
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, body := range vectors(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if problem := harm(Safe(body)); problem != "" && !strings.Contains(problem, "exceeds 512") {
			t.Errorf("%s\nsafe: %q", problem, Safe(body))
		}
	})
}
