package markup_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/markup"
	"hub.internal/pkg/markup/markuptest"
)

const (
	pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	still = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAUwAOw=="
	moves = "data:image/gif;base64,R0lGODlhAQABAPAAAP///wAAACH/" +
		"C05FVFNDQVBFMi4wAwEAAAAh+QQFCgAAACwAAAAAAQABAAACAkQBACH5BAUKAAAALAAAAAABAAEAAAICRAEAOw=="
)

// kept are texts by what stays of them, and what is told of the rest, as "what" or "what ×n".
var kept = map[string]struct{ text, want, removed string }{
	"nothing":    {"", "", ""},
	"text":       {" a < b & c\r\nd ", "a &lt; b &amp; c\nd", ""},
	"entities":   {"&lt;b&gt;&nbsp;&copy;&#39;", "&lt;b&gt;\u00a0©'", ""},
	"formatting": {"<P>a<B>b</B><i>c</i><br>d", "<p>a<b>b</b><i>c</i><br>d</p>", ""},
	"unclosed":   {"<p>a<p>b<div>c", "<p>a</p><p>b</p><div>c</div>", ""},
	"a document": {
		"<!DOCTYPE html><html lang=ko><head><meta charset=utf-8><title>x</title></head><body bgcolor=#000 text=white><p>a</body></html>",
		`<div lang="ko"><div style="background-color:#000000;color:#ffffff"><p>a</p></div></div>`,
		"",
	},
	"scripts": {"a<script>x</script><style>y</style>b", "ab", "<script>, <style>"},
	"in the head": {
		"<head><style>a{}</style><link rel=x><meta http-equiv=refresh content=5><base href=x></head>a",
		"a",
		"<style>, <link>, <meta>, <base>",
	},
	"handlers": {`<p onclick="x" id=a class=b data-c=d>a</p>`, "<p>a</p>", "attribute onclick"},
	"unknown":  {"<x-y>a<blink>b</blink></x-y>", "ab", "<x-y>, <blink>"},
	"sections": {"<section><header>a</header><p>b</p></section>", "<div><div>a</div><p>b</p></div>", ""},
	"forms": {
		"<form action=x><label>a</label><input name=b><textarea>c</textarea><button>d</button></form>",
		"<div>acd</div>",
		"<form>, attribute action, <input>, <textarea>, <button>",
	},
	"hidden": {
		"<p hidden>a</p><details><summary>b</summary>c</details>",
		"<p>a</p><div><div>b</div>c</div>",
		"attribute hidden, <details>, <summary>",
	},
	"comments": {"a<!-- b --><!-- --><!--[if mso]><p>c</p><![endif]--><!--[if !mso]><!-->d<!--<![endif]-->", "ad", "comment ×2"},
	"foreign":  {"a<svg><text>b</text></svg><math><mi>c</mi></math>", "a", "<svg>, <math>"},
	"tables": {
		"<table width=600 align=left><caption>a</caption><thead><tr><th>b<tbody><tr><td rowspan=2 colspan=2 nowrap>c</table>",
		`a<table width="600" style="max-width:100%"><tbody><tr><th>b</th></tr></tbody><tbody><tr><td colspan="2">c</td></tr></tbody></table>`,
		"attribute align, <caption>, attribute rowspan, attribute nowrap",
	},
	"lists": {
		"<ol start=3 type=a><li value=9>a</ol><li>b",
		`<ol start="3"><li>a</li></ol><div>b</div>`,
		"attribute type, attribute value",
	},
	"preformatted": {"<pre>\n\n a</pre>", `<pre style="white-space:pre-wrap">` + "\n\n a</pre>", ""},
	"links": {
		`<a href=" https://Hub.Example:80/a b?c=d&amp;e#f " target=_top>a</a><a href="MAILTO:a@hub.example?subject=x">b</a><a ` +
			`href="tel:+82-2-1">c</a>`,
		`<a href="https://hub.example:80/a%20b?c=d&amp;e#f">a</a><a href="mailto:a@hub.example?subject=x">b</a><a href="tel:+82-2-1">c</a>`,
		"",
	},
	"bad links": {
		`<a href="javascript:x">a</a><a href="/b">b</a><a href="//c">c</a><a href="https:\\d">d</a><a href="https://e@f">e</a><a ` +
			`href="http://127.1">g</a><a href="https://%65">h</a><a href="ht&#9;tps://i">i</a><a href=#j>j</a><a name=k>k</a>`,
		"abceghijk"[:3] + "d" + "eghijk",
		"link ×9",
	},
	"a name abroad": {`<a href="https://bücher.example/ü">a</a>`, `<a href="https://xn--bcher-kva.example/ü">a</a>`, ""},
	"link in link": {
		`<a href=https://a.example>a<table><tr><td><a href=https://b.example>b</a></table></a>`,
		`<a href="https://a.example">a<table><tbody><tr><td>b</td></tr></tbody></table></a>`,
		"link",
	},
	"pictures": {
		`<img src="` + pixel + `" alt=" a  b " width=9 onload=x><img src=https://a.example/b.png>`,
		`<img src="` + pixel + `" alt="a b" width="9" style="height:auto;max-width:100%"><img src="https://a.example/b.png" alt="" ` +
			`style="max-width:100%">`,
		"attribute onload",
	},
	"bad pictures": {
		`<img src="` + moves + `" alt=a><img src="data:image/svg+xml,x" alt=b><img src=cid:x alt=c><img src=/x alt=d><img ` +
			`src="data:image/png;base64,AAAA" alt="<e>">`,
		"abcd&lt;e&gt;",
		"picture ×5",
	},
	"a still picture": {`<img src="` + still + `">`, `<img src="` + still + `" alt="" style="max-width:100%">`, ""},
	"styles": {
		`<p style="COLOR:#FFF;padding:4px 8px;display:none;font-size:14px!important">a</p>`,
		`<p style="color:#ffffff;font-size:14px;padding:4px 8px">a</p>`,
		"style display",
	},
	"bounds": {
		`<p style="font-size:7px;line-height:.9;margin:-1px;padding:61px;letter-spacing:4px;width:99999px;text-align:evil">a</p>`,
		"<p>a</p>",
		"style font-size, style line-height, style margin, style padding, style letter-spacing, style width, style text-align",
	},
	"units": {
		`<p style="font-size:12pt;padding-left:1em;line-height:24px;margin:0 0 .5in">a</p>`,
		`<p style="font-size:16px;line-height:1.5;margin:0 0 48px 0;padding-left:16px">a</p>`,
		"",
	},
	"sizes": {
		`<h1 style="font-size:2em">a</h1><div style="font-size:.5em">b</div><b style="font-size:smaller">c</b>`,
		`<h1 style="font-size:30px">a</h1><div>b</div><b style="font-size:12.5px">c</b>`,
		"style font-size",
	},
	"small": {
		"<small><small><small><small>a</small></small></small></small>",
		"<small><small><small>a</small></small></small>",
		"<small>",
	},
	"fonts": {
		`<p style="font:italic 700 14px/1.5 'Malgun Gothic',Wingdings,sans-serif">a</p><font face="Arial,Webdings" size=+2 color=red>b</font>`,
		`<p style="font-family:'malgun gothic',sans-serif;font-size:14px;font-style:italic;font-weight:700;line-height:1.5">a</p><font ` +
			`color="#ff0000" face="arial" size="+2">b</font>`,
		"style font",
	},
	"backgrounds": {
		`<td style="background:#036 url(x)">a</td><p style="background:transparent">b</p><p style="background:#036 url(x)">c</p>`,
		`a<p>b</p><p style="background-color:#003366">c</p>`,
		"style background",
	},
	"borders": {
		`<table style="border:1px solid rgb(1,2,3);border-radius:4px;border-collapse:collapse"><tr><td style="border-top:99px solid ` +
			`red;border-width:1px 2px">a</table>`,
		`<table style="border:1px solid #010203;border-collapse:collapse;border-radius:4px"><tbody><tr><td style="border-width:1px 2px 1px ` +
			`2px">a</td></tr></tbody></table>`,
		"style border-top",
	},
	"in the line": {
		`<b style="padding:40px 8px;margin:4px;border:9px solid red;width:9px">a</b>`,
		`<b style="padding-left:8px;padding-right:8px">a</b>`,
		"style padding, style margin, style border, style width",
	},
	"widths": {
		`<div style="width:600px">a</div><div style="width:50%">b</div><table style="width:100%"><tr><td width=30% style="width:40px">c</table>`,
		`<div style="max-width:600px">a</div><div style="max-width:50%">b</div><table style="width:100%"><tbody><tr><td width="30%" ` +
			`style="width:40px">c</td></tr></tbody></table>`,
		"",
	},
	"escapes": {
		`<p style="col\6fr:red;colo/**/r:red;color:r\65 d;color/**/:/**/blue;}{;color:red;x:expression(alert(1));--a:b">a</p>`,
		`<p style="color:#0000ff">a</p>`,
		"style col\\6fr, style colo, style color ×2",
	},
	"characters": {
		"pay\u200bpal \u202ex ❤\ufe0f 👩\u200d💻 می\u200cروم e" + strings.Repeat("\u0301", 9),
		"paypal x ❤\ufe0f 👩\u200d💻 می\u200cروم e" + strings.Repeat("\u0301", 4),
		"invisible character U+200B (zero-width space), invisible character U+202E (right-to-left override), " +
			"invisible character (too many marks on a letter) ×5",
	},
	"too deep": {strings.Repeat("<div>", 600) + "a <b>b</b>", `<p style="white-space:pre-wrap">a b</p>`, "markup"},
	"Korean":   {"<p>안녕하세요, <b>브랜드</b> 담당자님</p>", "<p>안녕하세요, <b>브랜드</b> 담당자님</p>", ""},
}

func TestClean(t *testing.T) {
	p := markup.Mail()
	for name, c := range kept {
		clean, removed := p.Clean(c.text)
		var told []string
		for _, r := range removed {
			text := r.What
			if r.Count > 1 {
				text += fmt.Sprintf(" ×%d", r.Count)
			}
			told = append(told, text)
			if r.Count < 1 || r.Example == "" || len([]rune(r.Example)) > 120 || strings.ContainsAny(r.Example, "\n\u200b\u202e") {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if got := strings.Join(told, ", "); clean != c.want || got != c.removed {
			t.Errorf("%s:\n got %s\nwant %s\n told %s\n want %s", name, clean, c.want, got, c.removed)
		}
		if again, more := p.Clean(clean); again != clean || len(more) > 0 {
			t.Errorf("%s: cleaned again it is %s, without %v", name, again, more)
		}
		if problem := markuptest.Harm(clean); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// A policy with less in it lets less stay.
func TestPolicies(t *testing.T) {
	p := markup.Page("p", "b")
	got, removed := p.Clean(
		`<p style="color:red">a <i>b</i><b>c</b></p><table><tr><td>d</td></tr></table><img src="` + pixel + `" alt=e>` + strings.Repeat(
			"<ul>",
			600,
		),
	)
	if got != "a b c d" || len(removed) != 1 {
		t.Errorf("%s, %+v", got, removed)
	}
	got, removed = p.Clean(`<p style="color:red">a <i>b</i><b>c</b></p><div>d</div><img src="https://a.example/x.png" alt=e>`)
	if got != "<p>a b<b>c</b></p>de" || len(removed) != 4 {
		t.Errorf("%s, %+v", got, removed)
	}
	if got, _ := markup.Page(
		"img",
	).Clean(
		`<img src="https://a.example/x.png" alt=e><img src="` + pixel + `">`,
	); got != `e<img src="`+pixel+`" alt="">` {
		t.Errorf("without remote pictures: %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a policy lets an unknown element stay")
		}
	}()
	markup.Page("script")
}

func TestText(t *testing.T) {
	got, removed := markup.Text("a\r\nb\u200bc\x00\x1b[2J\td\xff")
	if got != "a\nbc[2J\td\ufffd" || len(removed) != 2 || removed[1].Count != 2 {
		t.Errorf("%q, %+v", got, removed)
	}
	if got, removed := markup.Text(
		"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F שלום\u200f",
	); len(removed) > 0 ||
		!strings.HasSuffix(got, "\u200f") {
		t.Errorf("%q, %+v", got, removed)
	}
	_, removed = markup.Text("hi\U000E0068\U000E0069")
	if len(removed) != 1 || removed[0].Count != 2 || removed[0].Example != "hi" {
		t.Errorf("%+v", removed)
	}
}

// The list of what was taken out is bounded, whatever the names.
func TestManyKinds(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "<x%d-%s>", i, strings.Repeat("y", 90))
	}
	_, removed := markup.Mail().Clean(b.String()[:40_000])
	all := 0
	for _, r := range removed {
		all += r.Count
		if len([]rune(r.What)) > 60 {
			t.Errorf("%q", r.What)
		}
	}
	if len(removed) != 40 || all < 300 {
		t.Errorf("%d kinds of %d", len(removed), all)
	}
	merged := markup.Merge(removed, removed)
	if len(merged) != 40 || merged[0].Count != 2*removed[0].Count {
		t.Errorf("%+v", merged[:2])
	}
}

// The time is bounded whatever the text; among these are those that make a browser's tree
// quadratic or worse.
func TestLargeTextsAreCleanedInTime(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, large/len(s)) }
	count := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < large; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	reopened := func() string {
		var b strings.Builder
		for i := range 400 {
			fmt.Fprintf(&b, "<b a=%d>", i)
		}
		return "<div>" + b.String() + "</div>" + fill("<p>x</p>")
	}
	for name, body := range map[string]string{
		"text": fill("hello world "), "mail": fill(`<p style="color:#333">Hello <b>you</b>, see <a href="https://a.example/x">this</a></p>` +
			strings.Repeat("some text ", 20)),
		"paragraphs": fill("<p>"), "divs": fill("<div>"), "links": count(`<a href="https://a%d.example">b</a>`), "bold": count("<p><b a=%d>"),
		"reopened": reopened(), "reopened, hidden in quotes": strings.ReplaceAll(reopened(), "<b ", `<b x=">" `),
		"tables": fill("<table><tr><td>"), "rows": fill("<tr><td>a<td>b</tr>"), "angles": fill("<"), "comments": fill("<!--a-->"),
		"comment":     fill("<!--"),
		"conditional": fill("<!--[if mso]>a<![endif]-->"), "attributes": "<p " + count("a%d=1 "), "bodies": count("<body a%d=1>"),
		"one body": "<body " + count("a%d ") + ">" + fill("<body b>")[:40], "svg": fill("<svg><a>"), "font": fill("<font><p></font>"),
		"foster": fill("<table>x"), "templates": fill("<template>"), "entities": fill("&lt;"), "end tags": fill("</p>"),
		"lists":  strings.Repeat("<ul><li>", 200) + fill("a<br>"),
		"quotes": strings.Repeat("<blockquote>", 200) + fill("a<br>"), "unmatched": strings.Repeat("<span>", 500) + fill("</b>"),
		"styles":  fill(`<p style="color:red;display:block">x`),
		"classes": `<p class="` + fill("a ") + `">x`, "braces": "<style>" + fill("{") + "</style>", "brackets": `<p style="` + fill("(") +
			`">`, "declarations": `<p style="` + fill("a:b;")[:16000] + `">`,
		"marks": fill("\u200b"), "accents": fill("e\u0301\u0301\u0301\u0301\u0301\u0301"), "dots": "<a href=https://" + fill("a.") + ">x</a>",
		"percent": "<a href=//" + fill("%41") + ">x</a>",
		"names":   count("<x%d>"), "picture": `<img src="data:image/png;base64,` + fill("AAAA") + `">`,
		"pictures": fill(`<img src="` + pixel + `">`), "pre": fill("<pre>\n\n"), "selects": fill("<select><option>"),
	} {
		began := time.Now()
		clean, removed := markup.Mail().Clean(body)
		took := time.Since(began)
		t.Logf("%-28s %4d ms, %d bytes left, %d kinds out", name, took.Milliseconds(), len(clean), len(removed))
		if took > 30*time.Second*slow {
			t.Errorf("%s: in %v", name, took)
		}
	}
}

// TestRedraw: pictures are made anew once each, and what is made of them is clean.
func TestRedraw(t *testing.T) {
	p := markup.Page("p", "img")
	asked := 0
	redraw := func(format string, data []byte) (string, []byte, error) {
		if asked++; format == "jpeg" || len(data) == 0 {
			return "", nil, errors.New("that is not nice")
		}
		again, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(pixel, "data:image/png;base64,"))
		return "png", again, err
	}
	text := `<p><img src="` + still + `" alt=a><img src="DATA:image/webp;base64,AAAA" alt=b>` +
		`<img src="DATA:image/webp;base64,AAAA"><img src="` + moves + `" alt=c>` +
		`<img src="data:image/jpg;base64,AAAA" alt=d><img src="data:image/png;base64,A" alt=e><img src="data:image/svg+xml,x" ` +
		`alt=f><img src="https://a.example/x.png" alt=g></p>`
	clean, removed := p.Redraw(text, redraw)
	if want := `<p><img src="` + pixel + `" alt="a"><img src="` + pixel + `" alt="b"><img src="` + pixel +
		`" alt="">cdefg</p>`; clean != want {
		t.Errorf("%s\nwant\n%s", clean, want)
	}
	if asked != 4 || len(removed) != 1 || removed[0].Count != 5 || !strings.HasPrefix(removed[0].Example, "that moves: <img") {
		t.Errorf("%d asked, %v", asked, removed)
	}
	if again, removed := p.Clean(clean); again != clean || len(removed) > 0 {
		t.Errorf("%s: %v", again, removed)
	}
}
