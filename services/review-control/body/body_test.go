package body

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"hub.internal/pkg/markup"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"paragraphs":       {"<h1>Title</h1><p>One\n two</p><p>Three<br>four</p>five", "Title\n\nOne two\n\nThree\nfour\n\nfive"},
		"inline":           {"a<b>b</b> <i>c</i>\n<span>d</span>e", "ab c de"},
		"divs":             {"<div>a</div><div>b<div>c</div></div>", "a\nb\nc"},
		"breaks":           {"a<br><br><br>b", "a\n\nb"},
		"head and scripts": {"<html><head><title>T</title><style>p{}</style></head><body><script>x</script>a</body></html>", "a"},
		"entities":         {"a&nbsp;&amp;&nbsp;b &lt;c&gt;", "a & b <c>"},
		"list":             {"<p>x</p><ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>y</p>", "x\n\n- a\n- b\n  - c\n\ny"},
		"numbers":          {"<ol start=9><li>a<li><p>b</p><p>c</p></ol>", "9. a\n10. b\n\n    c"},
		"quote":            {"<blockquote>a<br>b</blockquote>c", "> a\n> b\n\nc"},
		"definitions":      {"<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n  b\nc\n  d"},
		"preformatted":     {"<pre>a  b\n  c\n</pre>d", "a  b\n  c\n\nd"},
		"spaces that stay": {`<p style="white-space:pre-wrap">a  b` + "\n" + `  c</p>d`, "a  b\n  c\n\nd"},
		"rule":             {"a<hr>b", "a\n\n----------\n\nb"},
		"link":             {`Go <a href="https://hub.example/x?y=1">here</a>.`, "Go here (https://hub.example/x?y=1)."},
		"bare link":        {`<a href="https://hub.example/">hub.example</a>`, "hub.example"},
		"mailto":           {`<a href="mailto:a@hub.example">a@hub.example</a> <a href="tel:+82-2">call</a>`, "a@hub.example call (tel:+82-2)"},
		"no link":          {`<a name=x>a</a> <a href="#x">b</a> <a href="javascript:x">c</a>`, "a b c"},
		"picture link":     {`<a href="https://hub.example/"><img src=x alt="Shop"></a>`, "Shop (https://hub.example/)"},
		"picture": {`<a href="https://hub.example/"><img src="https://hub.example/x.png" alt="Shop"></a>`,
			"[Shop] (https://hub.example/)"},
		"empty link":        {`<a href="https://hub.example/x"><img src=x></a>`, "https://hub.example/x"},
		"data table":        {"<table><tr><th>Name<th>Price</tr><tr><td>A<td>1</tr><tr><td>B<td></tr></table>", "Name | Price\nA | 1\nB"},
		"layout table":      {"<table><tr><td><p>a</p><p>b</p></td><td>c</td></tr><tr><td>d</td></tr></table>", "a\n\nb\n\nc\n\nd"},
		"table in table":    {"<table><tr><td><table><tr><td>a<td>b</tr></table></td></tr></table>c", "a | b\n\nc"},
		"list in a cell":    {"<table><tr><td><ul><li>a<li>b</ul><td>c</table>", "- a\n- b\n\nc"},
		"not hidden":        {`<div style="display:none">preheader</div><p>a</p>`, "preheader\n\na"},
		"faint":             {`<p style="color:#fff">white</p>`, "white"},
		"zero-width":        {"pay\u200bpal", "paypal"},
		"joined emoji":      {"👩\u200d💻 ❤\ufe0f می\u200cروم", "👩\u200d💻 ❤\ufe0f می\u200cروم"},
		"noscript is seen":  {"<noscript>a</noscript>b", "ab"},
		"unclosed":          {"<p>a<p>b<div>c", "a\n\nb\n\nc"},
		"Korean":            {"<p>안녕하세요, 브랜드 담당자님</p>", "안녕하세요, 브랜드 담당자님"},
		"conditional":       {"<!--[if mso]><p>x</p><![endif]--><!--[if !mso]><!-->a<!--<![endif]-->", "a"},
		"nothing":           {"", ""},
		"comments in words": {"a<!-- -->b", "ab"},
		"too deep":          {strings.Repeat("<div>", 600) + "a\nb", "a\nb"},
	} {
		if _, _, v := read(c.body); v.Text != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, v.Text, c.want)
		}
	}
	if got := Read("a\n<b>  x\n", false).Text; got != "a\n<b>  x\n" {
		t.Errorf("plain text came back as %q", got)
	}
}

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Link
	}{
		"plain": {`<a href="https://Hub.Example/x">Hub</a>`, []Link{{"Hub", "https://hub.example/x", "hub.example", false}}},
		"port":  {`<a href="http://hub.example:8080/">x</a>`, []Link{{"x", "http://hub.example:8080/", "hub.example", false}}},
		"punycode": {`<a href="https://xn--bcher-kva.example">x</a>`,
			[]Link{{"x", "https://xn--bcher-kva.example", "bücher.example (xn--bcher-kva.example)", false}}},
		"look-alike": {`<a href="https://раypal.com">paypal.com</a>`,
			[]Link{{"paypal.com", "https://xn--ypal-43d9g.com", "раypal.com (xn--ypal-43d9g.com)", true}}},
		"mailto": {`<a href="mailto:a@Hub.Example?subject=x">write</a><a href="tel:+8210">call</a>`,
			[]Link{{"write", "mailto:a@Hub.Example?subject=x", "hub.example", false}, {"call", "tel:+8210", "", false}}},
		"twice": {`<a href="https://a.example">x</a><a href="https://a.example">x</a><a href="https://a.example">y</a>`,
			[]Link{{"x", "https://a.example", "a.example", false}, {"y", "https://a.example", "a.example", false}}},
		"taken out": {`<a href="//evil.example">x</a><a href="javascript:x">y</a><form action="https://b.example"><meta http-equiv=refresh ` +
			`content="0;url=https://c.example">`, nil},
		"picture": {`<a href="https://a.example"><img src="https://a.example/x.png" alt="Our   shop"></a>`,
			[]Link{{"Our shop", "https://a.example", "a.example", false}}},
		"text": {`See https://a.example/x(y). <b>Or</b> www.b.example!`,
			[]Link{{"https://a.example/x(y)", "https://a.example/x(y)", "a.example", false},
				{"www.b.example", "http://www.b.example", "www.b.example", false}}},
		"misleading": {`<a href="https://evil.example/">https://www.bank.com/login</a>`,
			[]Link{{"https://www.bank.com/login", "https://evil.example/", "evil.example", true}}},
		"bare host": {`<a href="https://evil.example/">Go to bank.com now</a>`,
			[]Link{{"Go to bank.com now", "https://evil.example/", "evil.example", true}}},
		"same site": {`<a href="https://click.bank.com/?x">www.bank.com</a>`,
			[]Link{{"www.bank.com", "https://click.bank.com/?x", "click.bank.com", false}}},
		"shared site": {`<a href="https://evil.github.io/">bank.github.io</a>`,
			[]Link{{"bank.github.io", "https://evil.github.io/", "evil.github.io", true}}},
		"no host": {`<a href="https://a.example">Node.js, v1.2, e.g. this. U.S.A</a>`,
			[]Link{{"Node.js, v1.2, e.g. this. U.S.A", "https://a.example", "a.example", false}}},
		"zero-width": {"<a href='https://evil.example'>ba\u200bnk.com</a>", []Link{{"bank.com", "https://evil.example", "evil.example", true}}},
		"split":      {"<a href='https://evil.example'>ba<b>nk</b>.com</a>", []Link{{"bank.com", "https://evil.example", "evil.example", true}}},
		"mailbox": {`<a href="mailto:a@evil.example">help@bank.com</a>`,
			[]Link{{"help@bank.com", "mailto:a@evil.example", "evil.example", true}}},
		"the same": {`<a href="mailto:Help@bank.com">help@bank.com</a>`, []Link{{"help@bank.com", "mailto:Help@bank.com", "bank.com", false}}},
		"a user": {`Go to https://bank.com@evil.com/x`,
			[]Link{{"https://bank.com@evil.com/x", "https://bank.com@evil.com/x", "evil.com", true}}},
	} {
		if _, _, v := read(c.body); !slices.Equal(v.Links, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, v.Links, c.want)
		}
	}
}

func TestLinksOfPlainText(t *testing.T) {
	text := "보러가기:https://a.example/한글?x=1。 (see http://b.example/y), mail me@c.example. " +
		"MAILTO:d@e.example\n<https://f.example>, www.g.example/ www. " +
		"http:// tel:+8210-1234 a.b@c https://h.example,https://i.example http://2130706433/x"
	var got []string
	for _, l := range Read(text, false).Links {
		got = append(got, l.Href+" "+l.Host)
	}
	want := []string{
		"https://a.example/한글?x=1 a.example", "http://b.example/y b.example", "MAILTO:d@e.example e.example",
		"https://f.example f.example", "http://www.g.example/ www.g.example", "tel:+8210-1234 ", "https://h.example h.example",
		"https://i.example i.example", "http://2130706433/x 127.0.0.1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if got := Read("mail bob@hub.com, please", false).Links; len(got) != 1 || got[0].Href != "mailto:bob@hub.com" {
		t.Errorf("a mailbox in the text: %+v", got)
	}
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct{ body, text, reason string }{
		"white on white": {`<p style="color:#FFF">x</p>`, "x", "text of color #ffffff on #ffffff"},
		"nearly white":   {`<p style="color:rgb(240,250,250)">x</p>`, "x", "text of color #f0fafa on #ffffff"},
		"yellow":         {`<p style="color:yellow">x</p>`, "x", "text of color #ffff00 on #ffffff"},
		"font element":   {`<font color=white>x</font>`, "x", "text of color #ffffff on #ffffff"},
		"on black":       {`<table bgcolor="#000000"><tr><td style="color:#fff">x</td></tr></table>`, "", ""},
		"dark on dark":   {`<table bgcolor=black><tr><td>x</td></tr></table>`, "x", "text of color #1b1b1b on #000000"},
		"body colors":    {`<body bgcolor=navy text=white><p>x</p></body>`, "", ""},
		"body alone":     {`<body text=white><p>x</p></body>`, "x", "text of color #ffffff on #ffffff"},
		"with a picture": {`<div style="background:#336 url(x.png) repeat"><p style="color:#336">x</p></div>`, "x",
			"text of color #333366 on #333366"},
		"grey can be read": {`<p style="color:#ccc">x</p>`, "", ""},
		"link on white": {
			`<div style="color:white;background:black"><p style="background:#fff"><a href="https://a.example">x</a></p></div>`, "", ""},
		"link on blue": {`<div style="background:#00e;color:#fff"><a href="https://a.example">x</a></div>`, "x",
			"text of color #0000ee on #0000ee"},
		"link as its text": {`<div style="background:#00e;color:#fff"><a href="https://a.example" style="color:inherit">x</a></div>`, "", ""},
		"goes on":          {`<p style="color:#fff">a</p><p style="color:#fff">b</p>`, "a b", "text of color #ffffff on #ffffff"},
		"picture":          {`x<img src="https://a.example/x.png" alt="Our shop">`, "", ""},
		"pictures alone": {`<p style="color:#fff"> &nbsp; </p><img src="https://a.example/x.png" alt="Our shop">`, "",
			"all that it says is in pictures, which are not loaded here"},
		"nothing": {`<p style="color:#fff"> &nbsp; </p>`, "", "nothing in it can be read"},
	} {
		_, _, v := read(c.body)
		var want []Warning
		if c.reason != "" {
			want = []Warning{{c.text, c.reason}}
		}
		if !slices.Equal(v.Warnings, want) || v.Flagged() != (want != nil) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, v.Warnings, want)
		}
	}
	_, _, v := read(`<img src="https://a.example/x.png"><img src="https://a.example/x.png"><img src="http://b.example/y">`)
	if len(v.Pictures) != 3 || len(v.Warnings) != 1 {
		t.Errorf("%+v", v)
	}
}

// TestPictures describes pictures elsewhere in their place, and leaves everything else as it is.
func TestPictures(t *testing.T) {
	const still = `<img src="data:image/png;base64,iVBORw0KGgo=" alt="kept">`
	for name, c := range map[string]struct {
		html string
		want Picture
		size string
	}{
		"all": {`<img src="https://a.example/x.png" alt="Our &lt;b&gt;shop&lt;/b&gt;" width="600" height="200">`,
			Picture{"Our <b>shop</b>", "600", "200", "a.example"}, "600×200"},
		"nothing":    {`<img src="http://user@b.example:80/x.png" alt="">`, Picture{"", "", "", "b.example"}, ""},
		"width":      {`<img src="https://a.example/x" alt="" width="100%">`, Picture{"", "100%", "", "a.example"}, "100% wide"},
		"height":     {`<img src="https://a.example/x" alt="" height="9">`, Picture{"", "", "9", "a.example"}, "9 high"},
		"their name": {`<img src="https://xn--3e0b707e.example/x" alt="">`, Picture{"", "", "", "한국.example (xn--3e0b707e.example)"}, ""},
	} {
		document := "<p>a\r\n &amp; &#65; b</p>" + still + "<a href=\"https://a.example\">" + c.html + "</a> <b>z</b>\r\n"
		if v := Read(document, true); !slices.Equal(v.Pictures, []Picture{c.want}) || c.want.Size() != c.size {
			t.Errorf("%s: %+v, %q", name, v.Pictures, c.want.Size())
		}
		before, after, found := strings.Cut(Shown(document), "<span style=")
		line, after, _ := strings.Cut(after, "</span>")
		if !found || before+c.html+after != document {
			t.Errorf("%s: %q", name, Shown(document))
		}
		for _, text := range []string{html.EscapeString(c.want.Alt), c.size, html.EscapeString(c.want.Host)} {
			if !strings.Contains(line, text) {
				t.Errorf("%s: %q lacks %q", name, line, text)
			}
		}
		if strings.ContainsAny(strings.TrimSuffix(strings.TrimPrefix(line[strings.Index(line, ">"):], "><bdi>"), "</bdi>"), "<>") {
			t.Errorf("%s: %q", name, line)
		}
	}
	if long := Shown(`<img src="https://a.example/x" alt="` + strings.Repeat("가", 5000) + `">`); len(long) > 1500 {
		t.Errorf("%d bytes for one picture", len(long))
	}
	for _, text := range []string{still, "", "<p>a<!-- <img src=\"https://a.example\"> -->",
		"<p>&lt;img src=&quot;https://a.example&quot;&gt;"} {
		if got := Shown(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// TestSize knows what certainly does not fit. That nothing of what fits lies beside the window is for the browser's tests.
func TestSize(t *testing.T) {
	size := func(text string) Size {
		_, _, v := read(text)
		return v.Size
	}
	if one := size("<p>Dear reader,</p>"); one.Height < 50 || one.Height > 130 || one.Width > 100 {
		t.Errorf("one line takes %v", one)
	}
	for name, c := range map[string]struct {
		text  string
		least int
	}{
		"breaks": {"a" + strings.Repeat("<br>", 40) + "b", 900}, "paragraphs": {strings.Repeat("<p>a</p>", 20), 700},
		"words":   {strings.Repeat("word ", 400), 600},
		"padding": {strings.Repeat(`<div style="padding:60px">`, 3) + "a", 360}, "height": {`<table><tr><td height=400>a</td></tr></table>`, 400},
		"cells": {`<table cellpadding=90><tr><td>a</td></tr></table>`, 180}, "picture": {`<img src="https://a.example/x.png" height=700>`, 700},
		"large font": {`<p style="font-size:72px">` + strings.Repeat("a ", 30), 700},
		"lines":      {`<p style="line-height:3">` + strings.Repeat("word ", 100), 400},
		"list":       {"<ul>" + strings.Repeat("<li>a", 30), 600}, "a text": {"<pre>" + strings.Repeat("a\n", 30), 500},
		"rule": {strings.Repeat("<hr>", 30), 300},
		"narrow column": {`<table width="100%"><tr><td width="90%">a</td><td width="10%">` + strings.Repeat("word ", 60) +
			`</td></tr></table>`, 900},
	} {
		if got := size(c.text); got.Height < c.least {
			t.Errorf("%s takes %v, not %d", name, got, c.least)
		}
	}
	for name, text := range map[string]string{
		"columns": "<table><tr>" + strings.Repeat("<td>a", 40), "quotes": strings.Repeat("<blockquote>", 9) + "a",
		"tables":  strings.Repeat("<table cellpadding=20><tr><td>", 11) + "a",
		"padding": strings.Repeat(`<div style="padding:0 60px">`, 4) + "a",
		"borders": strings.Repeat(`<div style="border:20px solid #ccc">`, 11) + "a",
	} {
		if got := size(text); got.Width <= PreviewWidth {
			t.Errorf("%s takes %v, and is too wide", name, got)
		}
	}
	if got := Read(strings.Repeat("line\n", 50), false).Size; got.Height < 1100 || got.Height > 1400 {
		t.Errorf("text takes %v", got)
	}
}

// TestOrdinaryTablesFit holds tables as mails have them to the width of a desk.
func TestOrdinaryTablesFit(t *testing.T) {
	for _, columns := range []int{2, 3, 4} {
		for _, attributes := range []string{``, ` border="1"`, ` border="1" cellpadding="8"`, ` cellpadding="12" cellspacing="0" width="600"`,
			` style="border-collapse:collapse;width:100%"`} {
			for _, cell := range []string{`<td>`, `<td style="padding:8px 12px;border:1px solid #cccccc">`, `<td width="25%" align="center">`,
				`<td width="150">`} {
				row := "<tr>" + strings.Repeat(cell+"A price of 12,000 won</td>", columns) + "</tr>"
				_, _, v := read(`<table width="100%" cellpadding="0" cellspacing="0"><tr><td style="padding:24px"><h1>Prices</h1><table` +
					attributes + `>` + strings.Repeat(row, columns) + `</table></td></tr></table>`)
				if v.Size.Width > PreviewWidth {
					t.Errorf("%d columns of %s in a table%s take %v", columns, cell, attributes, v.Size)
				}
			}
		}
	}
}

// TestWhatCannotBeMadeSmallerIsLarge: the preview of a mail is made half as large at the least, and not when its letters are small.
func TestWhatCannotBeMadeSmallerIsLarge(t *testing.T) {
	cell := func(inner string) string { return "<table><tr><td>" + inner + "</td></tr></table>" }
	for body, large := range map[string]bool{
		cell(`<table width="600"><tr><td>a</td></tr></table>`):                           false,
		cell(`<table width="1200"><tr><td>a</td></tr></table>`):                          true,
		cell(`<table width="600"><tr><td style="font-size:8px">a</td></tr></table>`):     true,
		cell(strings.Repeat("W", 40)):                                                    false,
		cell(strings.Repeat("W", 80)):                                                    true,
		"<p>" + strings.Repeat("W", 80) + "</p>":                                         false, // it breaks
		cell(`<span style="font-size:8px">a</span> ` + strings.Repeat("W", 60)):          true,
		cell(`<span style="font-size:12px">a</span> ` + strings.Repeat("letters ", 200)): false,
	} {
		if _, _, v := read(body); v.Size.IsLarge() != large {
			t.Errorf("%.90s is taken for %v", body, v.Size)
		}
	}
}

// The time is bounded whatever the body.
func TestLargeBodiesAreReadInTime(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, (4<<20)/len(s)) }
	for name, text := range map[string]string{
		"text": fill("hello world "), "mail": fill(`<p style="color:#333">Hello <b>you</b>, see <a href="https://a.example/x">this</a></p>` +
			strings.Repeat("some text ", 20)),
		"lists": strings.Repeat("<ul><li>", 200) + fill("a<br>")[:300_000], "quotes": strings.Repeat("<blockquote>", 200) +
			fill("a<br>")[:300_000], "urls": fill("https://a.example/ "), "one url": "https://a.example/" + fill("a"),
		"mailboxes": fill("a@b.com "), "joined urls": fill("http://a"), "ats": fill("@"), "zero hosts": fill("www."), "colons": fill("a:b "),
		"nested tables": strings.Repeat("<table><tr><td>", 100) + fill("<p>a b c")[:300_000],
		"tables":        strings.Repeat("<table><tr><td>", 12) + fill("<td>a b c")[:300_000], "rows": fill("<tr><td>a<td>b</tr>")[:400_000],
		"links": fill(`<a href="https://a.example">b</a>`)[:1_500_000], "white": fill(`<p style="color:#fff">a</p><p>b</p>`)[:1_000_000],
		"one word": fill("a"), "pre": "<pre>" + fill(" \n"),
	} {
		timed := func(text string) (v View, took time.Duration) {
			clean, _ := markup.Mail().Clean(text)
			began := time.Now()
			v = Read(clean, true)
			return v, time.Since(began)
		}
		v, took := timed(text)
		t.Logf("%-16s %4d ms, text %d, links %d, told %d, size %v", name, took.Milliseconds(), len(v.Text), len(v.Links), len(v.Warnings), v.Size)
		if took < 20*time.Second {
			continue
		}
		// A machine may be that slow, or time grows faster than the body does.
		if _, quarter := timed(text[:len(text)/4]); took > 8*quarter {
			t.Errorf("%s: read in %v, a quarter of it in %v", name, took, quarter)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"xss.tsv", "hidden.tsv", "seen.tsv"} {
		for _, text := range corpus(f, name) {
			f.Add(text, true)
		}
	}
	f.Add("https://a.example, me@b.com \u200b", false)
	f.Add(`<ul><li>x<ol start=3><li style="font:9px/2 serif;color:#123">y<table cellpadding=9><tr height=9><td width=30%>z<td `+
		`colspan=3>w<img width=9 alt=q src=https://a.example/x>`, true)
	f.Fuzz(func(t *testing.T, text string, isHTML bool) {
		began := time.Now()
		var v View
		if isHTML {
			_, _, v = read(text)
		} else {
			plain, _ := markup.Text(text)
			v = Read(plain, false)
		}
		for _, l := range v.Links {
			if l.Href == "" {
				t.Errorf("a link to nowhere: %+v", l)
			}
		}
		if v.Size.Width < 0 || v.Size.Height < 0 || strings.Contains(fmt.Sprint(v), "\u202e") {
			t.Errorf("%+v", v)
		}
		if took := time.Since(began); took > 30*time.Second+time.Duration(len(text))*100*time.Microsecond {
			t.Errorf("%d bytes in %v", len(text), took)
		}
	})
}
