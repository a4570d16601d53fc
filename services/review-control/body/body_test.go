package body

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"paragraphs":        {"<h1>Title</h1><p>One\n two</p><p>Three<br>four</p>five", "Title\n\nOne two\n\nThree\nfour\n\nfive"},
		"inline":            {"a<b>b</b> <i>c</i>\n<span>d</span>e", "ab c de"},
		"divs":              {"<div>a</div><div>b<div>c</div></div>", "a\nb\nc"},
		"breaks":            {"a<br><br><br>b", "a\n\nb"},
		"head and scripts":  {"<html><head><title>T</title><style>p{}</style></head><body><script>x</script>a</body></html>", "a"},
		"entities":          {"a&nbsp;&amp;&nbsp;b &lt;c&gt;", "a & b <c>"},
		"list":              {"<p>x</p><ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>y</p>", "x\n\n- a\n- b\n  - c\n\ny"},
		"numbers":           {"<ol start=9><li>a<li><p>b</p><p>c</p></ol>", "9. a\n10. b\n\n    c"},
		"quote":             {"<blockquote>a<br>b</blockquote>c", "> a\n> b\n\nc"},
		"definitions":       {"<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n  b\nc\n  d"},
		"preformatted":      {"<pre>a  b\n  c\n</pre>d", "a  b\n  c\n\nd"},
		"rule":              {"a<hr>b", "a\n\n----------\n\nb"},
		"link":              {`Go <a href="https://hub.example/x?y=1">here</a>.`, "Go here (https://hub.example/x?y=1)."},
		"bare link":         {`<a href="https://hub.example/">hub.example</a>`, "hub.example"},
		"mailto":            {`<a href="mailto:a@hub.example">a@hub.example</a> <a href="tel:+82-2">call</a>`, "a@hub.example call (tel:+82-2)"},
		"no link":           {`<a name=x>a</a> <a href="#x">b</a> <a href="javascript:x">c</a>`, "a b c"},
		"picture link":      {`<a href="https://hub.example/"><img src=x alt="Shop"></a>`, "[Shop] (https://hub.example/)"},
		"empty link":        {`<a href="https://hub.example/x"><img src=x></a>`, "https://hub.example/x"},
		"data table":        {"<table><tr><th>Name<th>Price</tr><tr><td>A<td>1</tr><tr><td>B<td></tr></table>", "Name | Price\nA | 1\nB"},
		"layout table":      {"<table><tr><td><p>a</p><p>b</p></td><td>c</td></tr><tr><td>d</td></tr></table>", "a\n\nb\n\nc\n\nd"},
		"table in table":    {"<table><tr><td><table><tr><td>a<td>b</tr></table></td></tr></table>c", "a | b\n\nc"},
		"list in a cell":    {"<table><tr><td><ul><li>a<li>b</ul><td>c</table>", "- a\n- b\n\nc"},
		"hidden":            {`<div style="display:none">preheader</div><p>a</p>`, "a"},
		"faint stays":       {`<p style="color:#fff">white</p>`, "white"},
		"zero-width":        {"pay\u200bpal", "paypal"},
		"joined emoji":      {"👩\u200d💻 ❤\ufe0f می\u200cروم", "👩\u200d💻 ❤\ufe0f می\u200cروم"},
		"noscript is seen":  {"<noscript>a</noscript>b", "ab"},
		"unclosed":          {"<p>a<p>b<div>c", "a\n\nb\n\nc"},
		"Korean":            {"<p>안녕하세요, 브랜드 담당자님</p>", "안녕하세요, 브랜드 담당자님"},
		"conditional":       {"<!--[if mso]><p>x</p><![endif]--><!--[if !mso]><!-->a<!--<![endif]-->", "a"},
		"nothing":           {"", ""},
		"button":            {"<button>Buy</button> <label>x</label>", "Buy x"},
		"comments in words": {"a<!-- -->b", "ab"},
	} {
		if got := Read(c.body, true).Text; got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
	if got := Read("a\r\n<b>  x\n", false).Text; got != "a\n<b>  x\n" {
		t.Errorf("plain text came back as %q", got)
	}
}

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []Link
	}{
		"plain":       {`<a href="https://Hub.Example/x">Hub</a>`, []Link{{"Hub", "https://Hub.Example/x", "hub.example", false}}},
		"port, user":  {`<a href="http://me@hub.example:8080/">x</a>`, []Link{{"x", "http://me@hub.example:8080/", "hub.example", false}}},
		"backslashes": {`<a href="https:\\evil.example\x">x</a>`, []Link{{"x", `https:\\evil.example\x`, "evil.example", false}}},
		"one slash":   {`<a href="https:/evil.example">x</a>`, []Link{{"x", "https:/evil.example", "evil.example", false}}},
		"no slash":    {`<a href="https:evil.example">x</a>`, []Link{{"x", "https:evil.example", "evil.example", false}}},
		"no scheme":   {`<a href="//evil.example/x">x</a><a href="\\evil2.example">y</a>`, []Link{{"x", "//evil.example/x", "evil.example", false}, {"y", `\\evil2.example`, "evil2.example", false}}},
		"white space": {"<a href=' ht\ntps://ev\til.example '>x</a>", []Link{{"x", "ht\ntps://ev\til.example", "evil.example", false}}},
		"escaped":     {`<a href="https://%65vil%2eexample">x</a>`, []Link{{"x", "https://%65vil%2eexample", "evil.example", false}}},
		"full width":  {`<a href="https://ｅvil．example">x</a>`, []Link{{"x", "https://ｅvil．example", "evil.example", false}}},
		"punycode":    {`<a href="https://xn--bcher-kva.example">x</a><a href="https://bücher.example/y">y</a>`, []Link{{"x", "https://xn--bcher-kva.example", "bücher.example (xn--bcher-kva.example)", false}, {"y", "https://bücher.example/y", "bücher.example (xn--bcher-kva.example)", false}}},
		"look-alike":  {`<a href="https://раypal.com">paypal.com</a>`, []Link{{"paypal.com", "https://раypal.com", "раypal.com (xn--ypal-43d9g.com)", true}}},
		"numbers":     {`<a href="http://2130706433/">x</a><a href="http://0x7f.1/">y</a><a href="http://[::1]:80/">z</a>`, []Link{{"x", "http://2130706433/", "127.0.0.1", false}, {"y", "http://0x7f.1/", "127.0.0.1", false}, {"z", "http://[::1]:80/", "[::1]", false}}},
		"mailto":      {`<a href="mailto:a@Hub.Example?subject=x">write</a><a href="tel:+8210">call</a>`, []Link{{"write", "mailto:a@Hub.Example?subject=x", "hub.example", false}, {"call", "tel:+8210", "", false}}},
		"script":      {`<a href="java&#10;script:alert(1)">x</a>`, []Link{{"x", "java\nscript:alert(1)", "", false}}},
		"twice":       {`<a href="https://a.example">x</a><a href="https://a.example">x</a><a href="https://a.example">y</a>`, []Link{{"x", "https://a.example", "a.example", false}, {"y", "https://a.example", "a.example", false}}},
		"area, form": {`<map><area alt=A href="https://a.example"></map><form action="https://b.example"><button formaction="https://c.example">Go</button><input type=submit value=Send formaction=//d.example></form>`,
			[]Link{{"A", "https://a.example", "a.example", false}, {"", "https://b.example", "b.example", false}, {"Go", "https://c.example", "c.example", false}, {"Send", "//d.example", "d.example", false}}},
		"refresh":        {`<meta http-equiv=Refresh content="0; URL='https://a.example'">`, []Link{{"", "https://a.example", "a.example", false}}},
		"svg":            {`<svg><a xlink:href="https://a.example"><text>x</text></a></svg>`, []Link{{"x", "https://a.example", "a.example", false}}},
		"base":           {`<base href="https://a.example/d/"><a href="x">x</a><a href="/y">y</a><a href="//b.example">z</a>`, []Link{{"x", "x", "a.example", false}, {"y", "/y", "a.example", false}, {"z", "//b.example", "b.example", false}}},
		"relative":       {`<a href="/x">x</a><a href="#top">bank.com</a>`, []Link{{"x", "/x", "", false}, {"bank.com", "#top", "", false}}},
		"picture":        {`<a href="https://a.example"><img alt="Our   shop"></a>`, []Link{{"Our shop", "https://a.example", "a.example", false}}},
		"hidden link":    {`<p style="display:none"><a href="https://a.example">x</a></p>`, []Link{{"x", "https://a.example", "a.example", false}}},
		"Outlook only":   {`<!--[if mso]><v:roundrect href="https://a.example">Go</v:roundrect><![endif]-->`, []Link{{"Go", "https://a.example", "a.example", false}}},
		"text":           {`See https://a.example/x(y). <b>Or</b> www.b.example!`, []Link{{"https://a.example/x(y)", "https://a.example/x(y)", "a.example", false}, {"www.b.example", "http://www.b.example", "www.b.example", false}}},
		"not fetched":    {`<link rel=stylesheet href="https://a.example">`, nil},
		"misleading":     {`<a href="https://evil.example/">https://www.bank.com/login</a>`, []Link{{"https://www.bank.com/login", "https://evil.example/", "evil.example", true}}},
		"bare host":      {`<a href="https://evil.example/">Go to bank.com now</a>`, []Link{{"Go to bank.com now", "https://evil.example/", "evil.example", true}}},
		"same site":      {`<a href="https://click.bank.com/?x">www.bank.com</a>`, []Link{{"www.bank.com", "https://click.bank.com/?x", "click.bank.com", false}}},
		"shared site":    {`<a href="https://evil.github.io/">bank.github.io</a>`, []Link{{"bank.github.io", "https://evil.github.io/", "evil.github.io", true}}},
		"no host":        {`<a href="https://a.example">Node.js, v1.2, e.g. this. U.S.A</a>`, []Link{{"Node.js, v1.2, e.g. this. U.S.A", "https://a.example", "a.example", false}}},
		"user as host":   {`<a href="https://bank.com@evil.example/">Log in</a>`, []Link{{"Log in", "https://bank.com@evil.example/", "evil.example", true}}},
		"zero-width":     {"<a href='https://evil.example'>ba\u200bnk.com</a>", []Link{{"bank.com", "https://evil.example", "evil.example", true}}},
		"split":          {"<a href='https://evil.example'>ba<b>nk</b>.com</a>", []Link{{"bank.com", "https://evil.example", "evil.example", true}}},
		"other mailbox":  {`<a href="mailto:a@evil.example">help@bank.com</a>`, []Link{{"help@bank.com", "mailto:a@evil.example", "evil.example", true}}},
		"same mailbox":   {`<a href="mailto:Help@bank.com">help@bank.com</a>`, []Link{{"help@bank.com", "mailto:Help@bank.com", "bank.com", false}}},
		"script as host": {`<a href="javascript:x">bank.com</a>`, []Link{{"bank.com", "javascript:x", "", true}}},
	} {
		if got := Read(c.body, true).Links; !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestLinksOfPlainText(t *testing.T) {
	text := "보러가기:https://a.example/한글?x=1。 (see http://b.example/y), mail me@c.example. MAILTO:d@e.example\n<https://f.example>, www.g.example/ www. http:// tel:+8210-1234 a.b@c https://h.example,https://i.example"
	var got []string
	for _, l := range Read(text, false).Links {
		got = append(got, l.Href+" "+l.Host)
	}
	want := []string{
		"https://a.example/한글?x=1 a.example", "http://b.example/y b.example", "MAILTO:d@e.example e.example",
		"https://f.example f.example", "http://www.g.example/ www.g.example", "tel:+8210-1234 ", "https://h.example h.example", "https://i.example i.example",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if got := Read("mail bob@hub.com, please", false).Links; len(got) != 1 || got[0].Href != "mailto:bob@hub.com" {
		t.Errorf("a mailbox in the text: %+v", got)
	}
}

// TestWhatIsNotSeenIsTold holds the ways to hide text that are known, and the usual ones of
// mails, which hide nothing.
func TestWhatIsNotSeenIsTold(t *testing.T) {
	for name, body := range corpus(t, "hidden.tsv") {
		told := func(h Hidden) bool { return h.Text == "" || strings.Contains(h.Text, "unseen words") }
		if got := Read(body, true).Hidden; !slices.ContainsFunc(got, told) {
			t.Errorf("%s: nothing is told of %s: %q", name, body, got)
		}
	}
	for name, body := range corpus(t, "seen.tsv") {
		if got := Read(body, true).Hidden; len(got) > 0 {
			t.Errorf("%s: %q is told of %s", name, got, body)
		}
	}
}

func TestHidden(t *testing.T) {
	for name, c := range map[string]struct{ body, text, reason string }{
		"display":              {`<div style="DISPLAY : none !important">x <b>y</b></div>`, "x y", "display:none"},
		"display inside":       {`<div style="display:none"><div style="display:block">x</div></div>`, "x", "display:none"},
		"escaped CSS":          {`<p style="d\69splay/**/:n\6fne">x</p>`, "x", "display:none"},
		"visibility":           {`<p style="visibility:hidden">x</p>`, "x", "visibility:hidden"},
		"visibility undone":    {`<p style="visibility:hidden"><b style="visibility:visible">x</b></p>`, "", ""},
		"opacity":              {`<p style="opacity:.01">x</p>`, "x", "opacity:.01"},
		"opacities":            {`<p style="opacity:.2"><b style="opacity:20%">x</b></p>`, "x", "opacity:20%"},
		"font size":            {`<p style="font-size:0">x</p>`, "x", "font-size:0"},
		"font size 1px":        {`<p style="font-size:1px">x</p>`, "x", "font-size:1px"},
		"font size em":         {`<p style="font-size:0.05em">x</p>`, "x", "font-size:0.05em"},
		"font shorthand":       {`<p style="font:bold 0/0 Arial">x</p>`, "x", "font-size:0"},
		"font size undone":     {`<p style="font-size:0"><b style="font-size:14px">x</b></p>`, "", ""},
		"white on white":       {`<p style="color:#FFF">x</p>`, "x", "text of color #ffffff on #ffffff"},
		"nearly white":         {`<p style="color:rgb(250, 250, 250)">x</p>`, "x", "text of color #fafafa on #ffffff"},
		"named":                {`<p style="color:snow">x</p>`, "x", "text of color #fffafa on #ffffff"},
		"hsl":                  {`<p style="color:hsl(0 0% 99%)">x</p>`, "x", "text of color #fcfcfc on #ffffff"},
		"transparent":          {`<p style="color:transparent">x</p>`, "x", "transparent text"},
		"faint alpha":          {`<p style="color:rgba(0,0,0,.02)">x</p>`, "x", "transparent text"},
		"fill":                 {`<p style="-webkit-text-fill-color:white">x</p>`, "x", "text of color #ffffff on #ffffff"},
		"font element":         {`<font color=white>x</font>`, "x", "text of color #ffffff on #ffffff"},
		"on black":             {`<table bgcolor="#000000"><tr><td style="color:#fff">x</td></tr></table>`, "", ""},
		"black on black":       {`<table bgcolor=black><tr><td>x</td></tr></table>`, "x", "text of color #000000 on #000000"},
		"body colors":          {`<body bgcolor=navy text=white><p>x</p></body>`, "", ""},
		"background shorthand": {`<div style="background:#336 url(x.png) repeat"><p style="color:#336">x</p></div>`, "x", "text of color #333366 on #333366, until a background picture is loaded"},
		"white on a picture":   {`<table><td background="x.png"><p style="color:#fff">x</p>`, "x", "text of color #ffffff on #ffffff, until a background picture is loaded"},
		"grey can be read":     {`<p style="color:#ddd">x</p>`, "", ""},
		"link on white":        {`<div style="color:white;background:black"><a href="https://a.example">x</a></div>`, "", ""},
		"hidden attribute":     {`<p hidden>x</p>`, "x", "hidden attribute"},
		"hidden undone":        {`<p hidden style="display:block">x</p>`, "", ""},
		"zero height":          {`<div style="max-height:0;overflow:hidden">x</div>`, "x", "max-height:0 with overflow:hidden"},
		"zero width":           {`<div style="width:1px;overflow-x:clip">x</div>`, "x", "width:1px with overflow:clip"},
		"height alone":         {`<div style="height:0">x</div>`, "", ""},
		"off screen":           {`<div style="position:absolute;left:-9999px">x</div>`, "x", "left:-9999px with position:absolute"},
		"off screen percent":   {`<div style="position:absolute;left:-100%">x</div>`, "x", "left:-100% with position:absolute"},
		"indent":               {`<p style="text-indent:-9999px">x</p>`, "x", "text-indent:-9999px"},
		"margin":               {`<p style="margin:0 0 0 -5000px">x</p>`, "x", "margin-left:-5000px"},
		"clip":                 {`<p style="position:absolute;clip:rect(0 0 0 0)">x</p>`, "x", "clip:rect(0 0 0 0)"},
		"clip-path":            {`<p style="clip-path:inset(100%)">x</p>`, "x", "clip-path:inset(100%)"},
		"scale":                {`<p style="transform:translate(3px) scale(0)">x</p>`, "x", "transform:translate(3px) scale(0)"},
		"Outlook":              {`<p style="mso-hide:all">x</p>`, "x", "mso-hide:all, not shown by Outlook"},
		"computed":             {`<p style="font-size:var(--x)">x</p>`, "x", "font-size:var(--x), which may hide it"},
		"calc of zero":         {`<p style="font-size:calc(0px)">x</p>`, "x", "font-size:calc(0px)"},
		"comment":              {`<!-- for  robots -->`, "for robots", "HTML comment"},
		"empty comment":        {`<!-- --><!------->`, "", ""},
		"conditional comment":  {`<!--[if gte mso 9]><p>x</p><style>y</style><![endif]-->`, "x", "shown by Outlook alone (conditional comment [if gte mso 9])"},
		"office settings":      {`<!--[if mso]><xml><o:PixelsPerInch>96</o:PixelsPerInch></xml><![endif]-->`, "", ""},
		"shown to the others":  {`<!--[if !mso]><!--><p>x</p><!--<![endif]--><![if !mso]>y<![endif]>`, "", ""},
		"class":                {`<style>.pre{display:none}</style><p class="a pre">x</p>`, "x", "display:none (style rule .pre)"},
		"id":                   {`<style>p#pre , q {visibility:hidden}</style><p id=pre>x</p>`, "x", "visibility:hidden (style rule p#pre)"},
		"element":              {`<style>aside{font-size:0}</style><aside>x</aside>`, "x", "font-size:0 (style rule aside)"},
		"descendant":           {`<style>.a .b > i{display:none}</style><div class=a><p><span class=b><i>x</i></span></p></div>`, "x", "display:none (style rule .a .b > i)"},
		"not a descendant":     {`<style>.a > i{display:none}</style><div class=a><p><i>x</i></p></div>`, "", ""},
		"rule in a comment":    {`<style><!-- .a{display:none} --></style><p class=a>x</p>`, "x", "display:none (style rule .a)"},
		"escaped rule":         {`<style>.\61{displ\61y:none}</style><p class=a>x</p>`, "x", "display:none (style rule .a)"},
		"broken rule before":   {`<style>@foo {x{y:z}} } ;;q{ .a{display:none}</style><style>.a{display:none}</style><p class=a>x</p>`, "x", "display:none (style rule .a)"},
		"inline wins":          {`<style>p{display:none}</style><p style="display:block">x</p>`, "", ""},
		"specific wins":        {`<style>.a{display:block} p{display:none}</style><p class=a>x</p>`, "", ""},
		"important wins":       {`<style>p{display:none!important}</style><p style="display:block">x</p>`, "x", "display:none (style rule p)"},
		"later wins":           {`<style>p{display:none}</style><style>p{display:block}</style><p>x</p>`, "", ""},
		"screen":               {`<style media=screen>p{display:none}</style><p>x</p>`, "x", "display:none (style rule p)"},
		"small screens":        {`<style>@media (max-width:600px){.d{display:none}}</style><p class=d>x</p>`, "x", "display:none (style rule .d) @media (max-width:600px)"},
		"hover":                {`<style>p:hover{display:none}</style><p>x</p>`, "", ""},
		"siblings":             {`<style>h1 + p{display:none}</style><h1>a</h1><p>x</p>`, "x", "display:none (style rule h1 + p)"},
		"color rule":           {`<style>.w{color:white}</style><p class=w>x</p>`, "x", "text of color #ffffff on #ffffff"},
		"template":             {`<template>x</template>`, "x", "inside of <template>"},
		"iframe":               {`<iframe>x</iframe>`, "x", "inside of <iframe>"},
		"video":                {`<video>x</video>`, "x", "inside of <video>: shown by programs without it"},
		"details":              {`<details><summary>a</summary>x</details>`, "x", "inside of a closed <details>"},
		"bdo":                  {`<bdo dir=rtl>moc.knab</bdo>`, "moc.knab", "shown from right to left (bdo): it reads differently"},
		"svg":                  {`<svg><title>x</title></svg>`, "x", "inside of <title>"},
		"zero-width space":     {"a\u200bb c\u200bd", "a[U+200B]b c[U+200B]d", "2 × zero-width space (U+200B)"},
		"soft hyphen":          {"<b>a&shy;b</b>", "a[U+00AD]b", "1 × soft hyphen (U+00AD)"},
		"override":             {"\u202emoc.knab", "[U+202E]moc.knab", "1 × right-to-left override: the text after it is shown backwards (U+202E)"},
		"tags":                 {"hi\U000E0068\U000E0069", "hi", "2 × tag character: text that only machines read"},
		"variation":            {"a\ufe00\U000E0101", "a[U+FE00][U+E0101]", "2 × variation selector that varies nothing"},
		"flag":                 {"🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "", ""},
		"blank":                {`<p style="display:none"> &nbsp; </p>`, "", ""},
		"goes on":              {`<p style="color:#fff">a</p><p style="color:#fff">b</p>`, "a b", "text of color #ffffff on #ffffff"},
		"too deep":             {strings.Repeat("<div>", 600) + "x", "", "nested too deep, or with too much markup, to be laid out as a mail program does: what is seen there may differ from what is told here"},
	} {
		got := Read(c.body, true).Hidden
		var want []Hidden
		if c.reason != "" {
			want = []Hidden{{c.text, c.reason}}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	if got := Read("pay\u200bpal <!-- seen -->", false).Hidden; len(got) != 1 || got[0].Text != "pay[U+200B]pal <!-- seen -->" {
		t.Errorf("plain text: %q", got)
	}
}

// The usual way of mails to put a preview text in front.
func TestPreheader(t *testing.T) {
	v := Read(`<body style="background-color:#f4f4f4"><div style="display:none;font-size:1px;color:#f4f4f4;max-height:0;overflow:hidden;mso-hide:all">Your order&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;</div><p>Hello</p></body>`, true)
	if v.Text != "Hello" {
		t.Errorf("text %q", v.Text)
	}
	want := []Hidden{{"Your order", "display:none"}, {"Your order[U+034F][U+200C] [U+034F][U+200C]", "2 × invisible character (U+034F)"}, {"Your order[U+034F][U+200C] [U+034F][U+200C]", "2 × zero-width non-joiner (U+200C)"}}
	if !slices.Equal(v.Hidden, want) {
		t.Errorf("hidden %q", v.Hidden)
	}
}

func TestRemote(t *testing.T) {
	for body, want := range map[string]int{
		`<img src="https://a.example/x.png"><img src="x.png"><img src="//a.example/y">`:                         3,
		`<img src="data:image/png;base64,x"><img src="cid:x"><img src="">`:                                      0,
		`<img srcset="a.png 1x, b.png 2x"><picture><source srcset="c.webp"></picture>`:                          3,
		`<table background="a.png"><tr><td style="background:#fff url('b.png')"></td></tr></table>`:             2,
		`<style>@import "a.css"; @import url(b.css); @font-face{src:url(c.woff),url("d.woff2")} p{}</style>`:    4,
		`<style>p{background:\75rl(a.png)} q{background:url(data:x)} i{background:image-set("a" 1x)}</style>`:   2,
		`<link rel=stylesheet href=a.css><iframe src=b></iframe><object data=c></object><video poster=d src=e>`: 5,
		`<svg><image href="a.png"/><use xlink:href="#x"/><a href="https://b.example">x</a></svg>`:               1,
		`<!--[if mso]><v:fill src="a.png"/><![endif]--><p>text</p>`:                                             1,
	} {
		if got := Read(body, true).Remote; got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// The time is bounded whatever the body; among these are those that make a browser's tree
// quadratic or worse.
func TestLargeBodiesAreReadInTime(t *testing.T) {
	const size = large
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	count := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
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
		"text": fill("hello world "), "mail": fill(`<p style="color:#333">Hello <b>you</b>, see <a href="https://a.example/x">this</a></p>` + strings.Repeat("some text ", 20)),
		"paragraphs": fill("<p>"), "divs": fill("<div>"), "links": count(`<a href="https://a%d.example">b</a>`), "bold": count("<p><b a=%d>"),
		"reopened": reopened(), "reopened, hidden in quotes": strings.ReplaceAll(reopened(), "<b ", `<b x=">" `),
		"tables": fill("<table><tr><td>"), "rows": fill("<tr><td>a<td>b</tr>"), "angles": fill("<"), "comments": fill("<!--a-->"), "comment": fill("<!--"),
		"conditional": fill("<!--[if mso]>a<![endif]-->"), "attributes": "<p " + count("a%d=1 "), "bodies": count("<body a%d=1>"),
		"one body": "<body " + count("a%d ") + ">" + fill("<body b>")[:40], "svg": fill("<svg><a>"), "font": fill("<font><p></font>"),
		"foster": fill("<table>x"), "templates": fill("<template>"), "entities": fill("&lt;"), "end tags": fill("</p>"), "lists": strings.Repeat("<ul><li>", 200) + fill("a<br>"),
		"quotes": strings.Repeat("<blockquote>", 200) + fill("a<br>"), "unmatched": strings.Repeat("<span>", 500) + fill("</b>"), "styles": fill(`<p style="color:red;display:block">x`),
		"rules":      "<style>" + count(".a%d p{display:none}")[:size/2] + "</style>" + fill("<p class=a1>x")[:size/2],
		"deep rules": "<style>" + fill("a b c d e f g{color:red}")[:size/2] + "</style>" + strings.Repeat("<div>", 300) + fill("<g>")[:size/2],
		"classes":    "<style>" + fill(".a.b{display:none}")[:size/2] + `</style><p class="` + fill("a ")[:size/2] + `">x`, "braces": "<style>" + fill("{") + "</style>",
		"at rules": "<style>" + fill("@media all{") + "</style>", "brackets": `<p style="` + fill("(") + `">`, "urls": fill("https://a.example/ "), "one url": "https://a.example/" + fill("a"),
		"mailboxes": fill("a@b.com "), "joined urls": fill("http://a"), "ats": fill("@"), "marks": fill("\u200b"), "zero hosts": fill("www."),
		"nested links": strings.Repeat("<a href=x><div>", 200) + fill("x y "), "hidden": fill(`<p hidden>x</p>`), "colons": fill("a:b "),
		"nested tables": strings.Repeat("<table><tr><td>", 150) + fill("<p>a b c"), "dots": "<a href=//" + fill("a.") + ">x</a>", "percent": "<a href=//" + fill("%41") + ">x</a>",
	} {
		began := time.Now()
		v := Read(body, true)
		read := time.Since(began)
		Safe(body)
		safe := time.Since(began) - read
		t.Logf("%-28s read %4d ms, safe %4d ms, text %d, links %d, hidden %d", name, read.Milliseconds(), safe.Milliseconds(), len(v.Text), len(v.Links), len(v.Hidden))
		if limit := 5 * time.Second * slow; read > limit {
			t.Errorf("%s: read in %v", name, read)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range vectors(f) {
		f.Add(body, true)
	}
	f.Add("https://a.example, me@b.com \u200b", false)
	f.Add(`<style>@media (x){.a>b+c,d:not(e){display:none!important}}</style><ul><li>x<ol start=3><li style="font:0/0 a;color:hsl(1 2% 3%)">y`, true)
	f.Fuzz(func(t *testing.T, body string, isHTML bool) {
		began := time.Now()
		v := Read(body, isHTML)
		for _, l := range v.Links {
			if l.Href == "" {
				t.Errorf("a link to nowhere: %+v", l)
			}
		}
		if took := time.Since(began); took > 5*time.Second*slow+time.Duration(len(body))*time.Microsecond {
			t.Errorf("%d bytes in %v", len(body), took)
		}
	})
}
